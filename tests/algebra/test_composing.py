"""SPARQLString: what the writer of the query is told, and what it may write."""

from __future__ import annotations

from typing import Any

import pytest

from reasoningbank.errors import QueryError

from .faults import raises, said
from .in_memory import Memory, op, outcome, value

E = "http://e/sparql"
ASKED = op("SELECT", endpoint=E, query=op("SPARQLString", question="cities"))
GOOD = "SELECT ?city ?name WHERE { ?city <http://e/name> ?name }"


class Told(Memory):
    """Writes the same query always, and keeps what it was told."""

    def __init__(self, query: str = GOOD) -> None:
        super().__init__(data="<http://e/a> <http://e/name> 'A' .")
        self.query = query
        self.told: list[tuple[str, frozenset[str]]] = []

    def compose(self, question: str, endpoint: str, names: frozenset[str]) -> str:
        self.told.append((endpoint, names))
        return self.query


NAMES: list[tuple[str, Any, set[str]]] = [
    ("none outside of ForEach", ASKED, set()),
    ("those of its rows", op("ForEach", select=ASKED, operation=value("city")), {"city"}),
    (
        "those of several operations, however deep",
        op(
            "ForEach",
            select=ASKED,
            operation=[value("?city"), op("Str", input=op("Concat", inputs=[value("name"), "x"]))],
        ),
        {"city", "name"},
    ),
    (
        "those in JSON-LD",
        op(
            "ForEach",
            select=ASKED,
            operation=op("Merge", graphs=[{"@id": value("city"), "http://e/p": value("name")}]),
        ),
        {"city", "name"},
    ),
    (
        "those inside Execute",
        op("ForEach", select=ASKED, operation=op("Execute", operation=value("name"))),
        {"name"},
    ),
    (
        "not those of an inner ForEach, but of its sequence",
        op(
            "ForEach",
            select=ASKED,
            operation=op("ForEach", select=[{"x": value("city")}], operation=value("x")),
        ),
        {"city"},
    ),
    (
        "not variables",
        [
            op("Variable", name="v", value="x"),
            op("ForEach", select=ASKED, operation=[value("$v"), value("name")]),
        ],
        {"name"},
    ),
    (
        "through other operations",
        op("ForEach", select=op("Filter", input=ASKED, expression="true"), operation=value("city")),
        {"city"},
    ),
    (
        "none in the operations of a row",
        op(
            "ForEach",
            select=[{"x": {"type": "literal", "value": "1"}}],
            operation=[value("x"), ASKED],
        ),
        set(),
    ),
]


@pytest.mark.parametrize(("program", "names"), [c[1:] for c in NAMES], ids=[c[0] for c in NAMES])
def test_the_names_that_are_read_are_told(program: Any, names: set[str]) -> None:
    web = Told()
    outcome(program, web)
    assert web.told == [(E, frozenset(names))]


def test_without_an_endpoint_none_is_told() -> None:
    web = Told()
    assert outcome(op("SPARQLString", question="cities"), web) == GOOD
    assert web.told == [("", frozenset())]


def test_the_endpoint_may_be_computed() -> None:
    web = Told()
    select = op("SELECT", endpoint=op("Concat", inputs=["http://e/", "sparql"]), query=op(
        "Substitute", query=op("SPARQLString", question="x"), var="name", binding="A"))  # fmt: skip
    outcome(select, web)
    assert web.told == [(E, frozenset())]


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT * { ?city ?p ?name }", "$.args.select.args.query star"),
        ("DESCRIBE * { ?city ?p ?name }", "$.args.select.args.query star"),
        (
            "SELECT ?city { ?city ?p ?name }",
            "$.args.select.args.query columns-missing",
        ),
        ("SELECT ?city ?name { ", "$.args.select.args.query: line 1, column 20 syntax-error"),
        ("Here is the query", "$.args.select.args.query: line 1, column 1 syntax-error"),
        ("DELETE WHERE { ?s ?p ?o }", "$.args.select.args.query: line 1, column 1 update-refused"),
        ("", "$.args.select.args.query empty-query"),
    ],
)
def test_what_may_not_be_written(query: str, told: str) -> None:
    program = op("ForEach", select=ASKED, operation=[value("city"), value("name")])
    with pytest.raises(QueryError) as failed:
        outcome(program, Told(query))
    assert said(failed.value) == told


def test_a_written_query_must_fit_its_operation() -> None:
    with raises(QueryError, "wrong-form"):
        outcome(ASKED, Told("DESCRIBE <http://e/a>"))
    describe = op("DESCRIBE", endpoint=E, query=op("SPARQLString", question="x"))
    assert outcome(describe, Told("DESCRIBE <http://e/a>"))["http://e/name"] == "A"
