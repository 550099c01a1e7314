"""SPARQL TSV as a stream, and the check of its cells."""

from __future__ import annotations

import gc
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from reasoningbank.errors import EndpointError, QueryError, SetupError
from reasoningbank.sparql import EndpointConfig, SPARQLClient, TableResult, tsv
from reasoningbank.sparql.answer_cache import AnswerCache
from reasoningbank.sparql.formats import Broken, Unfaithful
from reasoningbank.sparql.tsv import TSVReader, first_bad_cell
from reasoningbank.spill import is_on_disk

from .faulty import Answer, FaultyServer
from .many_rows import ManyRows, read_tsv

QUERY = "SELECT ?x { ?x ?y ?z }"
ROOT = Path(__file__).parents[2]
BODIES = {
    "rows": b'?x\t?y\n<http://e/a>\t"two\\tparts"@en\n\t1\n"\xc3\xa9"^^<http://e/t>\t_:b\n',
    "windows": b"\xef\xbb\xbf?x\r\n1\r\n2\r\n",
    "no last newline": b"?x\n1\n2",
    "no columns": b"\n\n\n",
    "empty cells": b"?x\n\n\n1\n",
    "header alone": b"?x\n",
    "message": b"?x\t?y\n1\t2\nError 404 with payload:\n<html>\t2\n</html>\n",
    "message at once": b"The query timed out",
    "message without columns": b"\n\nThe query timed out\n",
    "nothing": b"",
    "not a header": b'"x"\n1\n',
    "not UTF-8": b'?x\n"\xff\xfe"\n',
    "header not UTF-8": b"?\xff\n1\n",
    "odd cell": b"?x\n1\nBaum\n",
}


def stream(parts: Sequence[bytes], *, cut: bool = False, max_rows: int = 99) -> Any:
    """Return what a reader says of a body that comes in parts, whatever that is."""
    reader = TSVReader(max_rows)
    try:
        for part in parts:
            if reader.feed(part):
                break
        table, n_rows, more = reader.finish(cut=cut)
    except (Broken, Unfaithful) as error:
        return type(error), str(error)
    return table.column_names, table.to_pylist(), n_rows, more, reader.n_chars


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("cut", [False, True])
def test_it_makes_no_difference_where_a_body_is_parted(
    name: str, cut: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = BODIES[name]
    whole = stream([body], cut=cut)
    chance = random.Random(3)
    for block in (1, 4, 1024):
        monkeypatch.setattr(tsv, "BLOCK_BYTES", block)
        assert stream([body[at : at + 1] for at in range(len(body))], cut=cut) == whole
        for _ in range(20):
            ends = sorted(chance.choices(range(len(body) + 1), k=4))
            parts = [body[a:b] for a, b in zip([0, *ends], [*ends, len(body)], strict=True)]
            assert stream(parts, cut=cut) == whole


def test_what_each_of_these_bodies_is() -> None:
    seen = {name: stream([body]) for name, body in BODIES.items()}
    assert seen["rows"][1:] == (
        [
            {"x": "<http://e/a>", "y": '"two\\tparts"@en'},
            {"x": None, "y": "1"},
            {"x": '"é"^^<http://e/t>', "y": "_:b"},
        ],
        3,
        False,
        12 + 15 + 1 + 17 + 3,
    )
    assert seen["windows"][1] == seen["no last newline"][1] == [{"x": "1"}, {"x": "2"}]
    assert seen["no columns"][2] == 2
    assert seen["empty cells"][1] == [{"x": None}, {"x": None}, {"x": "1"}]
    assert seen["header alone"][2:4] == (0, False)
    kinds = {name: said[0] for name, said in seen.items() if isinstance(said[0], type)}
    assert kinds == {
        "message": Broken,
        "message at once": Broken,
        "message without columns": Broken,
        "nothing": Unfaithful,
        "not a header": Unfaithful,
        "not UTF-8": Unfaithful,
        "header not UTF-8": Unfaithful,
        "odd cell": Broken,
    }


def test_no_more_is_wanted_once_there_are_rows_enough() -> None:
    reader = TSVReader(max_rows=2)
    assert [reader.feed(b"?x\n1\n2\n"), reader.feed(b"3\n"), reader.feed(b"4\n")][:2] == [
        False,
        True,
    ]
    assert stream([b"?x\n1\n2\n"], max_rows=2)[3] is False
    assert stream([b"?x\n1\n2\n3\n"], max_rows=2)[1:4] == ([{"x": "1"}, {"x": "2"}], 2, True)


def test_a_message_of_any_length_is_bounded() -> None:
    reader = TSVReader(max_rows=10**9)
    reader.feed(b"?x\n" + b"Oops\n" * 300_000)
    fed = 0
    while not reader.feed(b"x" * 10_000):
        fed += 1
        assert fed < 20
    with pytest.raises(Broken):
        reader.finish(cut=True)


def small_memory(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let every result of more than a few bytes go to disk, into a folder that can be watched."""
    grow = tsv.GrowingTable
    monkeypatch.setattr(tsv, "GrowingTable", lambda schema: grow(schema, memory_bytes=64))
    monkeypatch.setattr(tsv, "BLOCK_BYTES", 64)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))


def test_a_large_result_is_on_disk_and_reads_as_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = b"?n\t?x\n" + b"".join(f'{n}\t"row {n}"\n'.encode() for n in range(1_000))
    plain, n_rows, _ = read_tsv(body, cut=False, max_rows=2_000)
    small_memory(monkeypatch, tmp_path)
    reader = TSVReader(2_000)
    for at in range(0, len(body), 100):
        reader.feed(body[at : at + 100])
        assert list(tmp_path.iterdir()) == [], "a file with a name could be left behind"
    table, count, more = reader.finish(cut=False)
    assert (is_on_disk(table), is_on_disk(plain)) == (True, False)
    assert (count, more, table.equals(plain)) == (n_rows, False, True)
    result = TableResult(table, count, n_chars=reader.n_chars)
    assert result.rows(990, 992) == TableResult(plain, n_rows).rows(990, 992)
    assert result.chars == TableResult(plain, n_rows).chars


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux's /proc")
def test_no_file_outlives_a_result_nor_a_failure(
    tmp_path: Path, faulty: FaultyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_memory(monkeypatch, tmp_path)

    def held() -> int:
        gc.collect()
        files = [p for p in Path("/proc/self/fd").iterdir() if p.is_symlink()]
        links = [str(p.readlink()) for p in files if p.exists() or p.is_symlink()]
        maps = Path("/proc/self/maps").read_text(encoding="utf-8")
        return maps.count(str(tmp_path)) + sum(str(tmp_path) in link for link in links)

    rows = b"?x\n" + b"".join(f'"row {n}"\n'.encode() for n in range(500))
    config = EndpointConfig(faulty.url, "F", retries=0, timeout_s=1, deadline_s=1)
    with SPARQLClient(config) as client:
        faulty.script(Answer(body=rows))
        result = client.query(QUERY)
        assert isinstance(result, TableResult)
        assert is_on_disk(result.table)
        assert held() > 0
        part = result.table.slice(3, 2)
        del result
        assert part["x"].to_pylist() == ['"row 3"', '"row 4"']
        del part
        assert held() == 0

        def drip(handler: BaseHTTPRequestHandler) -> None:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
            handler.wfile.write(b"Content-Type: text/tab-separated-values\r\n")
            handler.wfile.write(b"Content-Length: 1000000\r\n\r\n" + rows)
            handler.rfile.read(1)

        for failure, kind in (
            (Answer(body=rows, announce=10**6), EndpointError),
            (Answer(say=drip), QueryError),
            (Answer(body=rows + b"The query timed out\n"), QueryError),
        ):
            faulty.script(failure)
            with pytest.raises(kind):
                client.query(QUERY)
            assert held() == 0
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_told_and_not_taken_for_a_dropped_connection(
    tmp_path: Path, faulty: FaultyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_memory(monkeypatch, tmp_path / "nowhere")
    faulty.script(Answer(body=b"?x\n" + b'"a row"\n' * 500))
    with SPARQLClient(EndpointConfig(faulty.url)) as client, pytest.raises(SetupError) as caught:
        client.query(QUERY)
    assert "cannot be written to disk" in str(caught.value)
    assert "TMPDIR" in caught.value.hint
    assert len(faulty.seen) == 1


def test_what_is_on_disk_is_not_kept_in_the_cache_of_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = AnswerCache(tmp_path / "answers.sqlite")
    body = b"?x\n" + b'"a row"\n' * 500
    small, n_rows, _ = read_tsv(body, cut=False, max_rows=999)
    small_memory(monkeypatch, tmp_path)
    large, _, _ = read_tsv(body, cut=False, max_rows=999)
    for key, table in (("small", small), ("large", large)):
        cache.put(key, TableResult(table, n_rows))
    assert is_on_disk(large)
    assert cache.get("small", max_age_s=9) is not None
    assert cache.get("large", max_age_s=9) is None
    cache.close()


def in_own_process(rows: int, max_bytes: int) -> dict[str, Any]:
    with ManyRows(rows) as server:
        command = [sys.executable, "-m", "tests.sparql.many_rows", server.url]
        said = subprocess.run(
            [*command, str(rows), str(max_bytes)],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
    seen: dict[str, Any] = json.loads(said.stdout)
    return seen


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_ten_million_rows_stay_behind_a_handle_in_bounded_memory() -> None:
    seen = in_own_process(10_000_000, 1 << 40)
    assert (seen["rows"], seen["truncated"], seen["chars"]) == (10_000_000, False, 330_000_000)
    assert (seen["first"], seen["late"]) == ("row 00000000", "row 09999993")
    assert seen["resident"] == 0
    assert seen["spilled"] > 330_000_000
    assert seen["peak"] < 300_000_000


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_a_result_beyond_the_byte_cap_ends_in_a_truncated_handle() -> None:
    seen = in_own_process(10_000_000, 50_000_000)
    # A row is 35 bytes long on the wire, and the header 13.
    assert seen["rows"] == (50_000_000 - 13) // 35
    assert seen["truncated"] is True
    assert seen["late"] == f"row {seen['at']:08}"
    assert seen["peak"] < 300_000_000


GOOD = [
    ["<http://e/a>", "<>", "<http://e/é b>"],
    ['""', '"a"', '"漢 <b> @en ^^"'],
    ['"a"@en', '""@en', '"@en"@en'],
    ['"1"^^<http://e/int>', '"^^<"^^<http://e/int>'],
    ['"a"@en', '"b"', '"c"^^<t>', "<http://e/a>", "_:b", "1", "-.5", "true", "<<( <a> <b> 1 )>>"],
    ['"a\\"b"', '"\\\\"', '"x"@en_US'],
]
BAD = [
    "",
    "<",
    ">",
    "<a",
    "a>",
    "<a>>",
    "<<a>",
    "<a><b>",
    '"',
    '"a',
    'a"',
    '"a"b"',
    '"a"@',
    '"a"@e n',
    '"a"^^',
    '"a"^^<t',
    '"a"^^<t>x',
    '""a""',
    '"\\"',
    "Baum",
    "1.5.2",
    '"a"@en.',
]


def by_pattern(column: pa.Array) -> int | None:
    at = pc.index(pc.match_substring_regex(column, tsv._CELL), False).as_py()
    return None if at < 0 else int(at)


@pytest.mark.parametrize("good", GOOD)
@pytest.mark.parametrize("bad", BAD)
def test_one_bad_cell_is_found_in_every_column(good: list[str], bad: str) -> None:
    assert first_bad_cell(pa.array(good)) is None
    for at in range(len(good) + 1):
        column = pa.array([*good[:at], bad, *good[at:]])
        assert first_bad_cell(column) == at
        assert first_bad_cell(pa.array([None, *column.to_pylist(), None])) == at + 1
        # A part of a column says what a column of that part says.
        assert first_bad_cell(column.slice(at)) == 0
        assert first_bad_cell(column.slice(at + 1)) is None


def test_random_columns_get_the_patterns_verdict() -> None:
    chance = random.Random(11)
    pieces = ['"', "<", ">", "\\", "@", "^", "a", "é", "@en", "^^<t>", '"a"', "<b>", " "]
    seen = {True: 0, False: 0}
    for _ in range(3_000):
        kind = chance.choice(['"{}"', '"{}"@en', '"{}"^^<t>', "<{}>", "{}"])
        texts = [
            kind.format("".join(chance.choices(pieces, k=chance.randint(0, 2)))) or None
            for _ in range(chance.randint(1, 3))
        ]
        column = pa.array(texts, pa.string())
        assert first_bad_cell(column) == by_pattern(column), texts
        seen[by_pattern(column) is None] += 1
    assert min(seen.values()) > 300


def test_columns_without_a_bound_cell_are_good() -> None:
    assert first_bad_cell(pa.array([], pa.string())) is None
    assert first_bad_cell(pa.array([None, None], pa.string())) is None
