"""A small pack with hints, served for real, and scripted models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from episodes import episode, forest, kept_sandbox

from reasoningbank.corpus import Pack, load_pack, open_endpoint
from reasoningbank.sparql import EndpointConfig

__all__ = ["changed", "episode", "forest", "kept_sandbox", "woods", "woods_endpoint"]

PACK = """
name = "Woods"
endpoint = "https://woods.example/sparql"
languages = ["en", "it"]
data = ["woods.trig"]
schema = "schema.ttl"
void = "void.ttl"
hints = "hints"

[prefixes]
w = "http://w/"

[[federated]]
url = "https://soil.example/sparql"
name = "Soil"
void = "soil.ttl"
"""

DATA = """
@prefix w: <http://w/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
w:trees {
  w:oak a w:Tree ; rdfs:label "oak" ; w:height 31 .
  w:pine a w:Tree ; rdfs:label "pine" ; w:height 40 .
}
w:growth { w:oak w:near w:pine . w:pine w:near w:oak . }
"""

SCHEMA = """
@prefix w: <http://w/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
w:Tree a owl:Class . w:Plot a owl:Class .
w:height a owl:DatatypeProperty ; rdfs:domain w:Tree ; rdfs:range xsd:integer .
w:near a owl:ObjectProperty ; rdfs:domain w:Tree ; rdfs:range w:Tree .
w:grows a owl:ObjectProperty ; rdfs:domain w:Plot ; rdfs:range w:Tree .
"""

VOID = """
@prefix w: <http://w/> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix sd: <http://www.w3.org/ns/sparql-service-description#> .
@prefix void: <http://rdfs.org/ns/void#> .
[] sd:name w:trees ; sd:graph w:d1 .
w:d1 a void:Dataset ; void:triples 6 ;
  void:classPartition [ void:class w:Tree ; void:entities 2 ;
    void:propertyPartition [ void:property w:height ], [ void:property rdfs:label ] ] ;
  void:propertyPartition [ void:property w:height ], [ void:property rdfs:label ],
    [ void:property rdf:type ], [ void:property w:grows ] .
[] sd:name w:growth ; sd:graph w:d2 .
w:d2 a void:Dataset ; void:triples 2 ; void:propertyPartition [ void:property w:near ] .
"""

SOIL = """
@prefix w: <http://w/> .
@prefix void: <http://rdfs.org/ns/void#> .
[] a void:Dataset ; void:triples 9 ; void:propertyPartition [ void:property w:acidity ] .
"""

PATTERNS = """
[vocabulary]
en = ["tree list"]
it = ["albero elenca"]

[idle]
en = ["draw height"]

[[pattern]]
name = "HEIGHT"
strong.en = ["height", "high", "higher", "=tall"]
strong.it = ["altezza", "alto"]
query = [{ properties = ["w:height"] }]

[[pattern]]
name = "NEIGHBOUR"
strong.en = ["near", "next to", "height difference"]
strong.it = ["vicino"]
weak.en = ["beside", "close"]
query = [{ properties = ["w:near"] }]

[[pattern]]
name = "COUNT"
strong.en = ["how many", "number of ... tree"]
strong.it = ["quanti"]
query = [{ features = ["aggregate"] }]

[[pattern]]
name = "BOTH"
joins = [["HEIGHT"], ["NEIGHBOUR"]]

[[pattern]]
name = "KIND"
strong.en = ["all <word> tree"]
unless = ["COUNT"]
implies = ["HEIGHT"]

[[pattern]]
name = "MORE"
beside = ["KIND"]
"""

CONSTRAINTS = """
[base]
text = "Write one query."

[[source]]
name = "Woods"
where = "GRAPH w:trees"
text = "trees"

[[property]]
name = "rdfs:label"
use = "?tree rdfs:label ?name"

[[property]]
name = "w:height"
use = "?tree w:height ?metres"
entry = "measured"
patterns = ["HEIGHT"]

[[property]]
name = "w:near"
use = "?tree w:near ?other"
values = ["w:oak", "w:pine"]
where = "GRAPH w:growth"
graph = "http://w/growth"
entry = "mapped"
patterns = ["NEIGHBOUR"]

[[property]]
name = "w:acidity"
use = "?plot w:acidity ?ph"
service = "https://soil.example/sparql"
patterns = ["KIND"]

[entries]
text = "Measured and mapped trees are two things."
hint = "use two variables"
[entries.patterns]
HEIGHT = ["measured"]
NEIGHBOUR = ["mapped"]

[[rule]]
title = "Heights"
patterns = ["HEIGHT"]
text = "Heights are metres."

[[rule]]
title = "Neighbours"
patterns = ["NEIGHBOUR"]
text = "Neighbours go both ways."

[[direction]]
pattern = "NEIGHBOUR"
property = "w:near"
named = "subject"
hint = "write ?named w:near ?other"
"""

HEAD = """
@prefix ex: <urn:woods/> .
@prefix rb: <urn:reasoningbank:ontology#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix schema: <https://schema.org/> .
@prefix sh: <http://www.w3.org/ns/shacl#> .
"""

#: id, group, English, Italian, query, keywords
EXAMPLES = (
    (
        "height_of_oak",
        "height",
        'What is the height of "oak"?',
        'Qual è l\'altezza di "oak"?',
        'SELECT ?h { ?t rdfs:label "oak" ; w:height ?h }',
        "HEIGHT",
    ),
    (
        "higher_than",
        "height",
        "Which trees are higher than 35 metres?",
        "Quali alberi sono più alti di 35 metri?",
        "SELECT ?t { ?t w:height ?h FILTER(?h > 35) }",
        "",
    ),
    (
        "near_pine",
        "near",
        'Which trees are near "pine"?',
        'Quali alberi sono vicini a "pine"?',
        'SELECT ?o { ?t rdfs:label "pine" ; w:near ?o }',
        "NEIGHBOUR",
    ),
    (
        "number",
        "count",
        "How many trees are there?",
        "Quanti alberi ci sono?",
        "SELECT (COUNT(?t) AS ?n) { ?t a w:Tree }",
        "",
    ),
)


def _example(row: tuple[str, ...]) -> str:
    name, group, english, italian, query, keywords = row
    tags = f"schema:keywords {keywords!r} ;" if keywords else ""
    return (
        f"ex:{name} a sh:SPARQLExecutable, sh:SPARQLSelectExecutable ;\n"
        f'  rdfs:comment """{english} """@en , """{italian} """@it ;\n'
        f'  sh:select """{query}\n""" ; {tags}\n'
        f'  schema:target <https://woods.example/sparql> ; rb:group "{group}" .\n'
    )


@pytest.fixture(scope="session")
def woods(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    """A pack of two trees in two graphs, with patterns, rules and four examples."""
    root = tmp_path_factory.mktemp("packs") / "woods"
    (root / "examples").mkdir(parents=True)
    (root / "hints").mkdir()
    files = {
        "pack.toml": PACK,
        "woods.trig": DATA,
        "schema.ttl": SCHEMA,
        "void.ttl": VOID,
        "soil.ttl": SOIL,
        "hints/patterns.toml": PATTERNS,
        "hints/constraints.toml": CONSTRAINTS,
        "examples/all.ttl": HEAD + "".join(map(_example, EXAMPLES)),
    }
    for name, text in files.items():
        (root / name).write_text(text, encoding="utf-8")
    return load_pack(root)


@pytest.fixture(scope="session")
def woods_endpoint(woods: Pack) -> Iterator[EndpointConfig]:
    """The pack's data, served over HTTP."""
    with open_endpoint(woods) as config:
        yield replace(config, retries=0)


def changed(woods: Pack, tmp_path: Path, **files: str) -> Pack:
    """Return a copy of the pack with other hint files; a name's ``_`` is a dot."""
    root = tmp_path / "changed"
    for name in ("pack.toml", "void.ttl", "schema.ttl", "soil.ttl"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes((woods.root / name).read_bytes())
    (root / "hints").mkdir()
    for name, text in files.items():
        (root / "hints" / name.replace("_", ".")).write_text(text, encoding="utf-8")
    return load_pack(root)
