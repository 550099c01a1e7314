"""N-Triples as a stream: cut anywhere, each triple once, bounded, broken off."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from reasoningbank.sparql import GraphResult, formats
from reasoningbank.sparql.formats import Broken, NTriplesReader, Unfaithful, read_graph
from reasoningbank.spill import GrowingTable, is_on_disk

LINE = '<http://e/s> <http://e/p> "{}" .\n'
BODIES = {
    "triples": b'<http://e/a> <http://e/b> _:x .\n_:x <http://e/b> "l\\n"@en-GB .\n',
    "repeated": (LINE.format(1) + LINE.format(2) + LINE.format(1)).encode(),
    "written otherwise": b'<http://e/a> <u:b> "\\u00E9" .\n<http://e/a>  <u:b> "\xc3\xa9".',
    "no last newline": LINE.format(1).encode().rstrip(),
    "nothing": b"",
    "message": LINE.format(1).encode() + b"The query was cancelled",
    "broken off": LINE.format(1).encode() + b"<http://e/a> <http://e/b> ",
    "not UTF-8": b'<http://e/a> <http://e/b> "\xff" .\n',
}


def stream(parts: Sequence[bytes], *, cut: bool = False, max_rows: int = 99) -> Any:
    """Return what a reader says of a body that comes in parts, whatever that is."""
    reader = NTriplesReader(max_rows)
    try:
        for part in parts:
            if reader.feed(part):
                break
        table, n_rows, more = reader.finish(cut=cut)
    except (Broken, Unfaithful) as error:
        return type(error)
    result = GraphResult(table, n_rows, n_chars=reader.n_chars)
    assert result.chars == GraphResult(table, n_rows).chars
    return result.triples(), n_rows, more


def read_whole(body: bytes, max_rows: int) -> Any:
    try:
        triples, more = read_graph(body, "application/n-triples", cut=False, max_rows=max_rows)
    except (Broken, Unfaithful) as error:
        return type(error)
    return triples, len(triples), more


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("max_rows", [1, 99])
def test_it_makes_no_difference_where_a_body_is_parted(
    name: str, max_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = BODIES[name]
    whole = stream([body], max_rows=max_rows)
    assert whole == read_whole(body, max_rows)
    chance = random.Random(5)
    for block in (1, 1024):
        monkeypatch.setattr(formats, "BLOCK_BYTES", block)
        for _ in range(20):
            ends = sorted(chance.choices(range(len(body) + 1), k=4))
            parts = [body[a:b] for a, b in zip([0, *ends], [*ends, len(body)], strict=True)]
            assert stream(parts, max_rows=max_rows) == whole


def test_a_graph_that_was_cut_keeps_its_whole_triples() -> None:
    body = (LINE.format(1) + LINE.format(2)).encode()
    found = stream([body[:-3]], cut=True)
    assert (found[1], found[2]) == (1, True)


def test_no_more_is_wanted_once_there_are_triples_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "BLOCK_BYTES", 1)
    reader = NTriplesReader(max_rows=2)
    fed = [reader.feed(LINE.format(n % 3).encode()) for n in (0, 0, 1, 1, 2)]
    assert fed == [False, False, False, False, True]
    assert reader.finish(cut=True)[1:] == (2, True)


def test_a_large_graph_is_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "BLOCK_BYTES", 1_000)
    monkeypatch.setattr(
        formats, "GrowingTable", lambda schema: GrowingTable(schema, memory_bytes=5_000)
    )
    lines = [LINE.format(n % 500).encode() for n in range(1_500)]
    reader = NTriplesReader(10_000)
    assert not any(reader.feed(line) for line in lines)
    table, n_rows, more = reader.finish(cut=False)
    assert (is_on_disk(table), n_rows, more) == (True, 500, False)
    assert table["object"].to_pylist() == [f'"{n}"' for n in range(500)]
