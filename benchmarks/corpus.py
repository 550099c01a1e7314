"""Loading a corpus beside rdflib, with and without a look into the queries.

Run as a module it is one measured process: `python -m benchmarks.corpus WAY FOLDER FILES`.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path

from rdflib import RDFS, Graph, Namespace
from rdflib.plugins.sparql import prepareQuery

from benchmarks.measure import Row, in_own_processes
from reasoningbank import load_shacl_tasks
from reasoningbank.corpus import load_corpus, load_pack

__all__ = ["loading"]

SH = Namespace("http://www.w3.org/ns/shacl#")
SCHEMA = Namespace("https://schema.org/")
SPEX = Namespace("https://purl.expasy.org/sparql-examples/ontology#")
FORMS = (SH.select, SH.ask, SH.construct, SPEX.describe)
WITH_PARSER = "`rdflib.Graph().parse()` and `prepareQuery()`"


def loading(files: int, repeats: int) -> list[Row]:
    """Read so many example files both ways; both find as many tasks as there are files."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "examples")
        folder.mkdir()
        _write(folder, files)
        ways = {way: [way, str(folder), str(files)] for way in WAYS}
        # What rdflib parses takes half a minute.
        slow = {"parsed by rdflib": ways.pop("parsed by rdflib")}
        found = in_own_processes("benchmarks.corpus", slow, 1)
        found |= in_own_processes("benchmarks.corpus", ways, repeats)
    seconds = {way: numbers["seconds"] for way, numbers in found.items()}
    label = f"{files:,} example files: "
    rdflib, parsed = "`rdflib.Graph().parse()`", seconds["parsed by rdflib"]
    return [
        Row(label + "tasks and findings", "s", seconds["tasks"], seconds["graphs"], rdflib),
        Row(label + "tasks and findings", "s", seconds["tasks"], parsed, WITH_PARSER),
        Row(label + "and features", "s", seconds["features"], parsed, WITH_PARSER),
    ]


def _write(folder: Path, files: int) -> None:
    """Write our own examples as often as it takes, each time under another name."""
    source = load_pack("uniprot").examples
    texts = {
        file.stem: file.read_text(encoding="utf-8") for file in sorted(source.glob("[0-9]*.ttl"))
    }
    prefixes = (source / "prefixes.ttl").read_text(encoding="utf-8")
    (folder / "prefixes.ttl").write_text(prefixes, encoding="utf-8")
    for number, (stem, text) in enumerate(islice(cycle(texts.items()), files)):
        name = f"{number:04}_{stem[4:]}"
        # A comment makes the query another one, for which nothing is known yet.
        other = text.replace(f"ex:{stem} ", f"ex:{name} ").replace('"""', f'"""# {number}\n', 1)
        (folder / f"{name}.ttl").write_text(other, encoding="utf-8")


def _tasks(folder: Path) -> int:
    return len(load_corpus(folder).tasks)


def _features(folder: Path) -> int:
    return len([task.complexity for task in load_shacl_tasks(folder)])


def _graphs(folder: Path) -> int:
    return len(_by_rdflib(folder))


def _parsed_by_rdflib(folder: Path) -> int:
    prefixes = dict(load_pack("uniprot").prefixes)
    return len([prepareQuery(query, initNs=prefixes) for _, query, _ in _by_rdflib(folder)])


def _by_rdflib(folder: Path) -> list[tuple[str, str, str]]:
    found = []
    for file in sorted(folder.glob("*.ttl")):
        graph = Graph().parse(file, format="turtle")
        for example, query in (pair for form in FORMS for pair in graph.subject_objects(form)):
            question, target = (
                graph.value(example, RDFS.comment),
                graph.value(example, SCHEMA.target),
            )
            found.append((str(question), str(query), str(target)))
    return found


WAYS: dict[str, Callable[[Path], int]] = {
    "tasks": _tasks,
    "features": _features,
    "graphs": _graphs,
    "parsed by rdflib": _parsed_by_rdflib,
}


def _process(way: str, folder: Path, files: int) -> dict[str, float]:
    began = time.perf_counter()
    found = WAYS[way](folder)
    seconds = time.perf_counter() - began
    if found != files:
        raise AssertionError(f"{way}: {found} tasks were read, not {files}")
    return {"seconds": seconds}


if __name__ == "__main__":
    print(json.dumps(_process(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))))
