"""SPARQL TSV block by block, and the check of its cells."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tempfile
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from reasoningbank import spill
from reasoningbank.cache import DiskCache
from reasoningbank.errors import EndpointError, QueryError, SetupError
from reasoningbank.sparql import EndpointConfig, SPARQLClient, TableResult
from reasoningbank.sparql.formats import Broken, Unfaithful, first_bad_cell
from reasoningbank.sparql.results import AnswerCache
from reasoningbank.spill import is_on_disk

from .faulty import Answer, FaultyServer
from .many_rows import ManyRows, parsed_tsv

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


def read(body: bytes, *, cut: bool = False, max_rows: int = 99) -> Any:
    """Return what is read from a body, whatever that is."""
    try:
        result = parsed_tsv(body, cut=cut, max_rows=max_rows)
    except (Broken, Unfaithful) as error:
        return type(error), str(error)
    table = result.table
    return table.column_names, table.to_pylist(), result.n_rows, result.truncated, result.chars


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("cut", [False, True])
def test_it_makes_no_difference_how_much_is_read_at_once(
    name: str, cut: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = read(BODIES[name], cut=cut)
    for block in (1, 4, 16):
        monkeypatch.setattr(spill, "BLOCK_BYTES", block)
        assert read(BODIES[name], cut=cut) == whole


def test_what_each_of_these_bodies_is() -> None:
    seen = {name: read(body) for name, body in BODIES.items()}
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
    spool = spill.Spool(3)
    assert [spool.feed(b"?x\n1\n2\n"), spool.feed(b"3\n")] == [False, True]
    assert read(b"?x\n1\n2\n", max_rows=2)[3] is False
    assert read(b"?x\n1\n2\n3\n", max_rows=2)[1:4] == ([{"x": "1"}, {"x": "2"}], 2, True)


def test_a_message_of_any_length_is_bounded() -> None:
    with pytest.raises(Broken) as caught:
        parsed_tsv(b"?x\n" + b"Oops\n" * 900_000, max_rows=10**9)
    assert len(str(caught.value)) < 2 * spill.BLOCK_BYTES


def small_memory(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let every result of more than a few bytes go to disk, into a folder that can be watched."""
    monkeypatch.setattr(spill, "MEMORY_BYTES", 64)
    monkeypatch.setattr(spill, "BLOCK_BYTES", 64)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))


def test_a_large_result_is_on_disk_and_reads_as_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = b"?n\t?x\n" + b"".join(f'{n}\t"row {n}"\n'.encode() for n in range(1_000))
    plain = parsed_tsv(body, max_rows=2_000)
    small_memory(monkeypatch, tmp_path)
    large = parsed_tsv(body, max_rows=2_000)
    assert list(tmp_path.iterdir()) == [], "a file with a name could be left behind"
    assert (is_on_disk(large.table), is_on_disk(plain.table)) == (True, False)
    assert (large.n_rows, large.truncated) == (1_000, False)
    assert large.table.equals(plain.table)
    assert large.rows(990, 992) == plain.rows(990, 992)
    assert large.chars == TableResult(plain.table, 1_000).chars


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
    config = EndpointConfig(faulty.url, "F", retries=0, timeout_s=5, deadline_s=5)
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


def test_a_full_disk_is_reported_and_not_taken_for_a_dropped_connection(
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
    cache = AnswerCache(DiskCache(tmp_path / "answers.sqlite"))
    body = b"?x\n" + b'"a row"\n' * 500
    small = parsed_tsv(body, max_rows=999)
    small_memory(monkeypatch, tmp_path)
    large = parsed_tsv(body, max_rows=999)
    for key, result in (("small", small), ("large", large)):
        cache.put(key, result)
    assert is_on_disk(large.table)
    assert cache.get("small", max_age_s=9) is not None
    assert cache.get("large", max_age_s=9) is None


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


def test_columns_without_a_bound_cell_are_good() -> None:
    assert first_bad_cell(pa.array([], pa.string())) is None
    assert first_bad_cell(pa.array([None, None], pa.string())) is None
