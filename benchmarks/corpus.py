"""Loading a corpus: `load_shacl_tasks` beside parsing the same files with rdflib."""

from __future__ import annotations

import tempfile
from pathlib import Path

from rdflib import RDFS, Graph, Namespace

from benchmarks.measure import Row, median_seconds
from reasoningbank import load_shacl_tasks

__all__ = ["loading"]

SH = Namespace("http://www.w3.org/ns/shacl#")
SCHEMA = Namespace("https://schema.org/")

EXAMPLE = '''@prefix ex: <urn:b:examples/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix schema: <https://schema.org/> .
@prefix sh: <http://www.w3.org/ns/shacl#> .

ex:{name} a sh:SPARQLExecutable, sh:SPARQLSelectExecutable ;
    rdfs:comment "Which items of kind {number} are heavier than {number} units?"@en ;
    sh:select """PREFIX b: <urn:b:>
SELECT ?item ?mass WHERE {{
  ?item a b:Kind{number} ; b:mass ?mass .
  OPTIONAL {{ ?item b:label ?label }}
  FILTER(?mass > {number})
}}""" ;
    schema:target <https://example.org/sparql/> ;
    schema:keywords "mass", "kind" .
'''


def loading(files: int, repeats: int) -> list[Row]:
    """Read so many example files both ways; both find as many questions as there are files."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(files):
            stem = f"{number:04}_items"
            text = EXAMPLE.format(name=stem, number=number)
            (folder / f"{stem}.ttl").write_text(text, encoding="utf-8")
        counts = {len(load_shacl_tasks(folder)), len(_by_rdflib(folder)), files}
        if len(counts) != 1:
            raise AssertionError(f"the two ways do not read the same tasks: {counts}")
        ours = median_seconds(lambda: load_shacl_tasks(folder), repeats)
        other = median_seconds(lambda: _by_rdflib(folder), repeats)
    return [Row(f"loading {files:,} example files", "s", ours, other, "`rdflib.Graph().parse()`")]


def _by_rdflib(folder: Path) -> list[tuple[str, str, str]]:
    found = []
    for file in sorted(folder.glob("*.ttl")):
        graph = Graph().parse(file, format="turtle")
        for example, query in graph.subject_objects(SH.select):
            question, target = (
                graph.value(example, RDFS.comment),
                graph.value(example, SCHEMA.target),
            )
            found.append((str(question), str(query), str(target)))
    return found
