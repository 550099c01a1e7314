"""Values as JSON: terms, rows, tables, streams, and what is none of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyoxigraph
import pytest
from rdflib import XSD, BNode, Graph, Literal, URIRef

from reasoningbank.algebra import (
    ProgramError,
    Row,
    Stream,
    Table,
    from_json,
    json_chunks,
    to_json,
)
from reasoningbank.algebra.terms import (
    BlankNodes,
    from_oxigraph,
    literal,
    term_from_json,
    term_to_json,
    to_oxigraph,
    to_sparql,
)

from .faults import raises, said
from .in_memory import text, uri

TERMS: list[tuple[dict[str, str], Any]] = [
    (uri("http://e/ø"), URIRef("http://e/ø")),
    ({"type": "bnode", "value": "b0"}, BNode("b0")),
    (text("x"), Literal("x")),
    (text(""), Literal("")),
    (text("x", "da"), Literal("x", lang="da")),
    (text("x", "zh-Hant-TW"), Literal("x", lang="zh-Hant-TW")),
    (text("01", "", str(XSD.integer)), Literal("01", datatype=XSD.integer, normalize=False)),
    (text("one", "", str(XSD.integer)), Literal("one", datatype=XSD.integer, normalize=False)),
    (text("1.50", "", str(XSD.decimal)), Literal("1.50", datatype=XSD.decimal, normalize=False)),
    (text(" 1", "", str(XSD.boolean)), Literal(" 1", datatype=XSD.boolean, normalize=False)),
    (text("\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16")), Literal("😀")),
]


@pytest.mark.parametrize(("written", "term"), TERMS)
def test_terms(written: dict[str, str], term: Any) -> None:
    assert term_from_json(written) == term
    assert term_to_json(term_from_json(written)) == written


def test_older_and_plain_forms_of_literals() -> None:
    integer = {"type": "typed-literal", "value": "1", "datatype": str(XSD.integer)}
    assert term_to_json(term_from_json(integer)) == text("1", "", str(XSD.integer))
    assert term_to_json(term_from_json(text("x", "", str(XSD.string)))) == text("x")


def test_scalars_are_literals() -> None:
    for given, datatype in ((5, XSD.integer), (1.5, XSD.double), (True, XSD.boolean)):
        term = from_json(given)
        assert isinstance(term, Literal)
        assert term.datatype == datatype
    assert from_json("5") == Literal("5")
    assert str(from_json(float("-inf"))) == "-INF"
    long = "1" + "0" * 5_000  # more digits than Python turns into a number
    assert str(literal(long, datatype=str(XSD.integer))) == long


def test_a_lone_term_is_its_lexical_value() -> None:
    assert to_json(Literal("x", lang="en")) == "x"
    assert to_json(Literal(5)) == "5"
    assert to_json(URIRef("http://e/")) == "http://e/"
    assert to_json([Literal(True), None, [URIRef("http://e/")]]) == ["true", None, ["http://e/"]]


def test_a_table_keeps_its_columns_and_their_order() -> None:
    rows: list[Row] = [{"b": Literal("x")}, {}]
    table = Table(("a", "b"), rows)
    written = {
        "head": {"vars": ["a", "b"]},
        "results": {"bindings": [{"b": text("x")}, {}]},
    }
    assert to_json(table) == written
    assert from_json(written) == table


def test_a_table_without_head_has_the_columns_that_are_bound() -> None:
    bare = {"results": {"bindings": [{"a": text("x")}, {"b": text("y")}]}}
    found = from_json(bare)
    assert isinstance(found, Table)
    assert found.vars == ("a", "b")


def test_forms_are_told_apart() -> None:
    assert isinstance(from_json({"@id": "http://e/a", "http://e/p": "x"}), Graph)
    assert isinstance(from_json({"type": "uri", "value": "http://e/"}), URIRef)
    assert from_json({"x": uri("http://e/")}) == {"x": URIRef("http://e/")}
    assert from_json([{"x": text("y")}, "z", None]) == [{"x": Literal("y")}, Literal("z"), None]
    assert from_json({}) == {}


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"type": "uri", "value": "http://e/ x"}, "$ bad-iri"),
        ({"x": {"type": "literal", "value": 1}}, "$.x.value bad-term"),
        ({"results": {"bindings": [{"x": "y"}]}}, "$.results.bindings[0].x bad-term"),
        ({"head": {"vars": "x"}, "results": {"bindings": []}}, "$.head.vars bad-results"),
        ({"name": "x"}, "$.name unmapped-key"),
    ],
)
def test_what_is_no_value(data: Any, told: str) -> None:
    with pytest.raises(ProgramError) as failed:
        from_json(data)
    assert said(failed.value) == told


def test_a_table_is_written_while_it_is_read() -> None:
    served: list[int] = []

    def rows() -> Iterator[Row]:
        for number in range(5):
            served.append(number)
            yield {"n": Literal(number)}

    chunks = json_chunks(Stream(iter([Table(("n",), rows())])))
    for _ in range(6):
        next(chunks)
    assert len(served) < 5
    assert len(list(chunks)) > 0
    assert len(served) == 5


@pytest.mark.parametrize("name", ["x", "http://e/a b", "http://e/<"])
def test_what_is_no_iri_does_not_get_into_a_query(name: str) -> None:
    for term in (URIRef(name), Literal("x", datatype=URIRef(name))):
        with raises(ProgramError, "relative-iri"):
            to_sparql(term)
    with raises(ProgramError, "bad-term"):
        to_oxigraph(URIRef("x"))


def test_terms_of_rdf_1_2_are_told_of() -> None:
    directed = pyoxigraph.Literal("x", language="he", direction=pyoxigraph.BaseDirection.RTL)
    node = pyoxigraph.NamedNode("http://e/")
    for term in (directed, pyoxigraph.Triple(node, node, node)):
        with raises(ProgramError, "unsupported-term"):
            from_oxigraph(term, BlankNodes())
