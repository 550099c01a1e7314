"""Four named plants: as Turtle, served, and as a pack."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reasoningbank.sparql import EndpointConfig, OxigraphServer

TREES = """
@prefix : <http://e/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:oak a :Tree ; rdfs:label "Oak" ; :height 31 ; :near :pine , :ash .
:pine a :Tree ; rdfs:label "Pine tree" ; :height 40 ; :near :oak .
:ash a :Tree ; rdfs:label "Mountain ash tree" ; :height 12 .
:moss a :Moss ; rdfs:label "Moss" .
"""

PACK = """
name = "Trees"
endpoint = "https://trees.example/sparql/"
authority = "The Forest"
data = ["trees.ttl"]

[prefixes]
t = "http://e/"
"""

EXAMPLES = """
@prefix ex: <urn:trees/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix schema: <https://schema.org/> .
@prefix sh: <http://www.w3.org/ns/shacl#> .
"""


@contextmanager
def serving_trees(file: Path) -> Iterator[EndpointConfig]:
    """Write the four plants into a file and serve them."""
    file.write_text(TREES, encoding="utf-8")
    with OxigraphServer([file], timeout_s=10) as server:
        yield EndpointConfig(
            "https://trees.example/sparql/",
            "Trees",
            "The Forest",
            prefixes={"t": "http://e/"},
            query_url=server.url,
            retries=0,
        )
