"""Folders of examples, written by the tests that need them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

HEAD = """
@prefix ex: <https://example.org/.well-known/sparql-examples/> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix schema: <https://schema.org/> .
@prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix spex: <https://purl.expasy.org/sparql-examples/ontology#> .
@prefix rb: <urn:reasoningbank:ontology#> .
"""

GOOD = '''
ex:NAME a sh:SPARQLExecutable, sh:SPARQLSelectExecutable ;
    rdfs:comment "Which things are there?"@en ;
    sh:prefixes _:sparql_examples_prefixes ;
    sh:select """SELECT ?s WHERE { ?s a <http://example.org/Thing> }""" ;
    schema:target <https://example.org/sparql/> ;
    schema:keywords "thing", "list" .
'''


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONINGBANK_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    """Return what writes Turtle files into a folder: the name by keyword, `__` for a slash."""

    def write(**files: str) -> Path:
        root = tmp_path / "examples_here"
        root.mkdir(exist_ok=True)
        for name, text in files.items():
            file = root / (name.replace("__", "/") + ".ttl")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(HEAD + text, encoding="utf-8")
        return root

    return write
