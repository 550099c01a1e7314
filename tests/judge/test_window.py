"""Reading the outermost modifiers of a query."""

import pytest
from rdflib.plugins.sparql.algebra import translateQuery
from rdflib.plugins.sparql.parser import parseQuery

from reasoningbank.judge.compare import Window
from reasoningbank.judge.gold import read_modifiers

QUERIES = [
    ("SELECT ?x { ?x ?p ?o }", Window(keys=())),
    ("SELECT ?x { ?x ?p ?o } LIMIT 5", Window(0, 5, ())),
    ("select ?x { ?x ?p ?o } limit 5 offset 2", Window(2, 5, ())),
    ("SELECT ?x { ?x ?p ?o } OFFSET 2 LIMIT 5", Window(2, 5, ())),
    ("SELECT ?x { ?x ?p ?o } OFFSET 2", Window(2, None, ())),
    ("SELECT ?x { { SELECT ?x { ?x ?p ?o } LIMIT 5 } }", Window(keys=())),
    ("SELECT ?x { { SELECT ?x { ?x ?p ?o } ORDER BY ?x LIMIT 5 } } LIMIT 2", Window(0, 2, ())),
    ("SELECT ?limit { ?limit ?p 'LIMIT 3' } # LIMIT 4", Window(keys=())),
    ("PREFIX limit: <http://e/LIMIT#> SELECT ?x { ?x limit:limit 1 }LIMIT 7", Window(0, 7, ())),
    ("SELECT ?x { ?x ?p ?o } ORDER BY ?x", Window(keys=("x",))),
    ("SELECT ?x ?y { ?x ?p ?y } ORDER BY DESC(?y) asc ( $x ) LIMIT 3", Window(0, 3, ("y", "x"))),
    ("SELECT ?x { ?x ?p ?y } ORDER BY (?y) LIMIT 3", Window(0, 3, ("y",))),
    ("SELECT ?x { ?x ?p ?y } ORDER BY DESC(STR(?y)) LIMIT 3", Window(0, 3, None)),
    ("SELECT ?x { ?x ?p ?y } ORDER BY ?x STRLEN(?y)", Window(keys=None)),
    (
        "SELECT ?x (COUNT(*) AS ?n) { ?x ?p ?y } GROUP BY ?x HAVING (COUNT(*) > 2) "
        "ORDER BY DESC(?n) LIMIT 3 VALUES ?x { 1 2 }",
        Window(0, 3, ("n",)),
    ),
    ("SELECT ?x { ?x ?p ?y } ORDER BY EXISTS { ?x ?q 1 } LIMIT 3", Window(0, 3, None)),
    ("CONSTRUCT { ?x ?p ?y } WHERE { ?x ?p ?y } LIMIT 3", Window(0, 3, ())),
    ("DESCRIBE ?x { ?x ?p ?y } LIMIT 3", Window(0, 3, ())),
    ("ASK { ?x ?p ?y }", Window(keys=())),
]


@pytest.mark.parametrize(("query", "window"), QUERIES)
def test_modifiers_are_read_from_the_outermost_level(query: str, window: Window) -> None:
    found, unsliced = read_modifiers(query)
    assert found == window
    assert read_modifiers(unsliced)[0] == Window(keys=window.keys)


@pytest.mark.parametrize("query", [q for q, _ in QUERIES if not q.startswith("ASK")])
def test_a_full_parser_finds_the_same_slice(query: str) -> None:
    window, unsliced = read_modifiers(query)
    algebra = translateQuery(parseQuery(query)).algebra.p
    if algebra.name == "Slice":
        assert (algebra.start, algebra.length) == (window.start, window.length)
    else:
        assert not window.is_slice
    assert translateQuery(parseQuery(unsliced)).algebra.p.name != "Slice"


def test_a_window_at_the_end_is_short() -> None:
    assert Window(5, 10).size(8) == 3
    assert Window(9, 10).size(8) == 0
    assert Window(0, 0).size(8) == 0
    assert Window(3).size(8) == 5
