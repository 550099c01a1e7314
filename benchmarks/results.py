"""Large results: a handle and a peek beside SPARQLWrapper's `convert()`, and slices by size.

Run as a module it is one measured process: `python -m benchmarks.results handle|convert URL ROWS`.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from SPARQLWrapper import JSON, SPARQLWrapper

from benchmarks.measure import Row, in_own_process, median_seconds, peak_mb
from reasoningbank import EndpointConfig, SPARQLTools
from reasoningbank.refs import RefStore
from reasoningbank.sparql import OxigraphServer, TableResult

__all__ = ["large_result", "slices"]

_XSD_INT = "http://www.w3.org/2001/XMLSchema#int"
QUERY = "SELECT ?item ?label ?mass WHERE { ?item <urn:b:label> ?label ; <urn:b:mass> ?mass }"
THAN = "`SPARQLWrapper(…).query().convert()`"


@dataclass(frozen=True)
class Fetched:
    """A result as one of the two ways holds it.

    Attributes:
        rows: How many rows came.
        shown: Writes what a model is shown of it.
    """

    rows: int
    shown: Callable[[], str]


def large_result(rows: int, repeats: int) -> list[Row]:
    """Fetch a result of so many rows both ways, each time in a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "data.nq")
        with data.open("w", encoding="utf-8") as file:
            for number in range(rows):
                item = f"<http://example.org/protein/{number:07}>"
                file.write(f'{item} <urn:b:label> "protein number {number} of the sample"@en .\n')
                file.write(f'{item} <urn:b:mass> "{10_000 + number}"^^<{_XSD_INT}> .\n')
        with OxigraphServer([data], union_default_graph=False) as server:
            found = {
                way: in_own_process("benchmarks.results", [way, server.url, str(rows)], repeats)
                for way in ("handle", "convert")
            }
    names = (
        ("request to usable result", "s", "total_s"),
        ("of it, beyond the bare transfer", "s", "reading_s"),
        ("peak memory above the start", "MB", "memory_mb"),
        ("characters that reach a model", "characters", "chars"),
    )
    label = f"{rows:,} rows: "
    ours, other = found["handle"], found["convert"]
    return [Row(label + what, unit, ours[key], other[key], THAN) for what, unit, key in names]


def slices(sizes: tuple[int, ...], repeats: int) -> list[Row]:
    """Take 50 rows from the middle of results of growing size, in memory and spilled to disk."""
    rows = []
    for place, memory_bytes in (("in memory", 1 << 40), ("spilled to disk", 0)):
        taken = {size: _slice_seconds(size, memory_bytes, repeats) for size in sizes}
        least = sizes[0]
        rows += [
            Row(
                f"50 rows from the middle of {size:,}, {place}",
                "ms",
                taken[size] * 1000,
                taken[least] * 1000,
                f"the same of {least:,} rows",
            )
            for size in sizes[1:]
        ]
    return rows


def _slice_seconds(size: int, memory_bytes: int, repeats: int) -> float:
    with RefStore(memory_bytes) as store:
        result = TableResult(_table(size), size, source="generated")
        ref = store.put(result, dtype="results", rows=size, sz=0, source="generated")
        # Nothing is asked of the endpoint: slices come from the store alone.
        tools = SPARQLTools(EndpointConfig("http://127.0.0.1:9/"), store=store)
        middle = size // 2
        return median_seconds(lambda: tools.sparql_slice(ref, middle, middle + 50), repeats)


def _table(size: int) -> pa.Table:
    numbers = pc.cast(pa.array(range(size)), pa.string())

    def column(before: str, after: str) -> pa.ChunkedArray:
        return pc.binary_join_element_wise(before, numbers, after, "")

    return pa.table(
        {
            "item": column("<http://example.org/protein/", ">"),
            "label": column('"protein number ', ' of the sample"@en'),
            "mass": numbers,
        }
    )


def _handle(url: str, rows: int) -> Fetched:
    tools = SPARQLTools(EndpointConfig(url, "generated", max_rows=rows))
    ref = tools.sparql_query(QUERY, rows)
    shown = f"{ref}\n{tools.sparql_peek(ref)}"
    return Fetched(ref.rows, lambda: shown)


def _convert(url: str, rows: int) -> Fetched:
    wrapper = SPARQLWrapper(url)
    wrapper.setQuery(f"{QUERY} LIMIT {rows}")
    wrapper.setReturnFormat(JSON)
    result: Any = wrapper.query().convert()
    return Fetched(len(result["results"]["bindings"]), lambda: str(result))


def _wire_seconds(url: str, rows: int, accept: str) -> float:
    """Return how long the bytes take to come when nobody looks at them."""
    address = f"{url}?{urllib.parse.urlencode({'query': f'{QUERY} LIMIT {rows}'})}"
    request = urllib.request.Request(address, headers={"Accept": accept})
    began = time.perf_counter()
    with urllib.request.urlopen(request) as response:
        while response.read(1 << 18):
            continue
    return time.perf_counter() - began


def _process(way: str, url: str, rows: int) -> dict[str, float]:
    job: Callable[[str, int], Fetched] = {"handle": _handle, "convert": _convert}[way]
    accept = {"handle": "text/tab-separated-values", "convert": "application/sparql-results+json"}
    # A process's first query pays for what is built once, rdflib's grammar for one.
    job(url, 1)
    wire = _wire_seconds(url, rows, accept[way])
    before = peak_mb()
    began = time.perf_counter()
    fetched = job(url, rows)
    total = time.perf_counter() - began
    memory = peak_mb() - before
    if fetched.rows != rows:
        raise AssertionError(f"{fetched.rows} rows came, not {rows}")
    # Written out only now, so that it is part of neither time nor memory.
    chars = len(fetched.shown())
    return {"total_s": total, "reading_s": total - wire, "memory_mb": memory, "chars": chars}


if __name__ == "__main__":
    print(json.dumps(_process(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
