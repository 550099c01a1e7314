"""A query is parsed by the engine, and nothing of it is answered."""

from __future__ import annotations

import time

import pytest

from reasoningbank.errors import QueryError
from reasoningbank.sparql import prepare
from reasoningbank.sparql.parsers import complaint_of
from reasoningbank.sparql.tree import outline

SOUND = (
    "SELECT ?s { ?s ?p ?o } # a comment at the end",
    "PREFIX e: <http://e/> SELECT (COUNT(*) AS ?n) FROM e:g FROM NAMED <http://e/h> "
    "{ ?s e:p ?o } GROUP BY ?s HAVING (?n > 1) ORDER BY ?n LIMIT 5 OFFSET 2 VALUES ?s { e:a }",
    "ASK { ?s ?p ?o }",
    "ASK FROM <http://e/g> WHERE { ?s ?p ?o } GROUP BY ?s",
    "CONSTRUCT { ?s a _:b . _:b ?p 1 } WHERE { ?s ?p ?o } LIMIT 3",
    "CONSTRUCT { ?s a [] } FROM <http://e/g> { ?s ?p ?o }",
    "CONSTRUCT WHERE { ?s ?p ?o }",
    "CONSTRUCT {} {}",
    "DESCRIBE <http://e/a>",
    "DESCRIBE ?s <http://e/a> FROM <http://e/g> WHERE { ?s ?p ?o } LIMIT 1",
    "DESCRIBE * { ?s ?p ?o }",
    "SELECT * { ?s ?p <<( ?a ?b ?c )>> }",
)
BROKEN = (
    "SELECT ?s { ?s ?p }",
    "SELECT ?s { ?s ?p ?o } GROUP BY",
    "ASK { ?s ?p ?o } LIMIT many",
    "CONSTRUCT { ?s ?p } WHERE { ?s ?p ?o }",
    "DESCRIBE ?s WHERE { ?s ?p }",
    'DESCRIBE "text"',
    "DESCRIBE WHERE { ?s ?p ?o }",
)


@pytest.mark.parametrize("query", SOUND)
def test_what_is_sound_parses(query: str) -> None:
    assert complaint_of(query, outline(query)) is None


@pytest.mark.parametrize("query", BROKEN)
def test_what_is_broken_does_not(query: str) -> None:
    assert complaint_of(query, outline(query)) is not None


def test_nothing_is_answered() -> None:
    many = " ".join(map(str, range(60)))
    values = " ".join(f"VALUES ?v{n} {{ {many} }}" for n in range(8))
    # Sixty to the eighth rows; the triple term makes rdflib give up, so that the engine is asked.
    query = f"SELECT (COUNT(*) AS ?n) {{ {values} BIND(<<( <a:a> <a:b> <a:c> )>> AS ?t) }}"
    began = time.monotonic()
    assert prepare(query).form == "SELECT"
    assert time.monotonic() - began < 30


def test_a_mistake_is_told_where_it_is() -> None:
    with pytest.raises(QueryError, match=r"^line 2, column \d+"):
        prepare("SELECT * {\n ?s ?p <<( ?a ?b )>> . }")
