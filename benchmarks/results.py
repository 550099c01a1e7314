"""Large results: a handle and a peek beside SPARQLWrapper's `convert()`.

Run as a module it is one measured process:
`python -m benchmarks.results handle|convert WARM_URL URL ROWS`.
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

from SPARQLWrapper import JSON, SPARQLWrapper

from benchmarks.measure import Row, in_own_processes, peak_mb
from benchmarks.replay import Replay
from reasoningbank import EndpointConfig, SPARQLTools
from reasoningbank.sparql import OxigraphServer

__all__ = ["large_result"]

_XSD_INT = "http://www.w3.org/2001/XMLSchema#int"
QUERY = "SELECT ?item ?label ?mass WHERE { ?item <urn:b:label> ?label ; <urn:b:mass> ?mass }"
THAN = "`SPARQLWrapper(…).query().convert()`"
DUMPED_ROWS = 20
ACCEPT = {"handle": "text/tab-separated-values", "convert": "application/sparql-results+json"}


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
    """Fetch a result of so many rows both ways, each time in a fresh process.

    Once from the engine; and once from a server that has the engine's bytes at hand, so that
    what is left is the time from the response to a usable result.
    """
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "data.nq")
        with data.open("w", encoding="utf-8") as file:
            for number in range(rows):
                item = f"<http://example.org/protein/{number:07}>"
                file.write(f'{item} <urn:b:label> "protein number {number} of the sample"@en .\n')
                file.write(f'{item} <urn:b:mass> "{10_000 + number}"^^<{_XSD_INT}> .\n')
        with OxigraphServer([data], union_default_graph=False) as server:
            answers = {accept: _ask(server.url, rows, accept)[1] for accept in ACCEPT.values()}
            with Replay(answers) as replay:
                ways = {
                    f"{way} {place}": [way, server.url, url, str(rows)]
                    for place, url in (("engine", server.url), ("replay", replay.url))
                    for way in ACCEPT
                }
                found = in_own_processes("benchmarks.results", ways, repeats)
            dump = len(_convert(server.url, DUMPED_ROWS).shown())

    def row(what: str, unit: str, key: str, place: str = "engine") -> Row:
        ours, other = found[f"handle {place}"], found[f"convert {place}"]
        return Row(f"{rows:,} rows: {what}", unit, ours[key], other[key], THAN)

    chars = found["handle engine"]["chars"]
    return [
        row("request to usable result", "s", "total_s"),
        row("of it, beyond the bare transfer", "s", "reading_s"),
        row("response to usable result", "s", "total_s", "replay"),
        row("of it, processor time", "s", "processor_s", "replay"),
        row("peak memory above the start", "MB", "memory_mb"),
        row("characters that reach a model", "characters", "chars"),
        Row(
            f"{rows:,} rows: characters that reach a model, beside {DUMPED_ROWS} of them",
            "characters",
            chars,
            dump,
            f"{THAN} with `LIMIT {DUMPED_ROWS}`",
        ),
    ]


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


def _ask(url: str, rows: int, accept: str) -> tuple[float, bytes]:
    """Return how long the bytes take to come when nobody looks at them, and the bytes."""
    address = f"{url}?{urllib.parse.urlencode({'query': f'{QUERY} LIMIT {rows}'})}"
    request = urllib.request.Request(address, headers={"Accept": accept})
    began = time.perf_counter()
    with urllib.request.urlopen(request) as response:
        body = response.read()
    return time.perf_counter() - began, body


def _process(way: str, warm_url: str, url: str, rows: int) -> dict[str, float]:
    job: Callable[[str, int], Fetched] = {"handle": _handle, "convert": _convert}[way]
    # A process's first query pays for what is built once, rdflib's grammar for one.
    job(warm_url, 1)
    before = peak_mb()
    began, began_processor = time.perf_counter(), time.process_time()
    fetched = job(url, rows)
    total, processor = time.perf_counter() - began, time.process_time() - began_processor
    memory = peak_mb() - before
    if fetched.rows != rows:
        raise AssertionError(f"{fetched.rows} rows came, not {rows}")
    # Written out, and fetched again, only now, so that it is part of neither time nor memory.
    chars = len(fetched.shown())
    wire, _ = _ask(url, rows, ACCEPT[way])
    return {
        "total_s": total,
        "reading_s": total - wire,
        "processor_s": processor,
        "memory_mb": memory,
        "chars": chars,
    }


if __name__ == "__main__":
    print(json.dumps(_process(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))))
