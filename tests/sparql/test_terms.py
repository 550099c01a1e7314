from __future__ import annotations

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from reasoningbank.errors import QueryError
from reasoningbank.sparql import (
    Term,
    compact,
    full,
    iri,
    prepare,
    string_literal,
    to_iri,
    values,
)
from reasoningbank.sparql.terms import written

XSD = "http://www.w3.org/2001/XMLSchema#"
PREFIXES = {"up": "http://purl/core/", "upx": "http://purl/core/x/", "xsd": XSD}


def lit(text: str, name: str) -> Literal:
    return Literal(text, datatype=NamedNode(XSD + name))


@pytest.mark.parametrize(
    ("term", "shown"),
    [
        (NamedNode("http://purl/core/Protein"), "up:Protein"),
        (NamedNode("http://purl/core/x/Y"), "upx:Y"),
        (NamedNode("http://purl/core/a/b"), "<http://purl/core/a/b>"),
        (NamedNode("http://purl/core/1.1.1.1"), "<http://purl/core/1.1.1.1>"),
        (NamedNode("http://purl/core/end."), "<http://purl/core/end.>"),
        (NamedNode("http://other/a"), "<http://other/a>"),
        (Literal("plain"), "plain"),
        (Literal("p53: a gene"), "p53: a gene"),
        (Literal('say "hi"'), 'say "hi"'),
        (Literal("CHEBI:57353"), '"CHEBI:57353"'),
        (Literal("up:Protein"), '"up:Protein"'),
        (Literal(":x"), '":x"'),
        (Literal("_:b0"), '"_:b0"'),
        (Literal("<http://x/>"), '"<http://x/>"'),
        (Literal("http://x/"), '"http://x/"'),
        (Literal('"Baum"@de'), '"\\"Baum\\"@de"'),
        (Literal('a "b"', language="en"), '"a \\"b\\""@en'),
        (Literal("Baum", language="de"), '"Baum"@de'),
        (lit("42", "integer"), 42),
        (lit("+7", "int"), 7),
        (lit("9" * 30, "integer"), int("9" * 30)),
        (lit("0.1000000000000000055511151231257827", "decimal"), 0.1),
        (lit("59332.926829268292682926829268292682926", "decimal"), 59332.92682926829),
        (lit("1.50", "decimal"), 1.5),
        (lit("1e3", "double"), 1000.0),
        (lit("INF", "double"), '"INF"^^xsd:double'),
        (lit("NaN", "float"), '"NaN"^^xsd:float'),
        (lit("1_0", "integer"), '"1_0"^^xsd:integer'),
        (lit("true", "boolean"), True),
        (lit("0", "boolean"), False),
        (lit("2020-01-01", "date"), '"2020-01-01"^^xsd:date'),
        (BlankNode("b1"), "_:b1"),
        (None, None),
    ],
)
def test_compact_is_what_an_agent_reads(term: NamedNode | Literal | None, shown: object) -> None:
    found = compact(term, PREFIXES)
    assert found == shown
    assert type(found) is type(shown)


def test_long_text_is_cut_with_its_length_and_long_iris_are_not() -> None:
    assert compact(Literal("x" * 1000), PREFIXES, 10) == "x" * 10 + "… (1000 characters)"
    assert compact(Literal("x" * 1000, language="en"), PREFIXES, 3) == (
        '"xxx… (1000 characters)"@en'
    )
    long = "http://other/" + "a" * 500
    assert compact(NamedNode(long), PREFIXES, 10) == f"<{long}>"


def test_triple_terms_have_both_forms() -> None:
    a = NamedNode("http://purl/core/a")
    term = Triple(a, a, Triple(a, a, Literal("x\ty")))
    inner = '<<( <http://purl/core/a> <http://purl/core/a> "x\\ty" )>>'
    assert full(term) == f"<<( <http://purl/core/a> <http://purl/core/a> {inner} )>>"
    assert compact(term, PREFIXES) == '<<( up:a up:a <<( up:a up:a "x\\ty" )>> )>>'


@pytest.mark.parametrize(
    "text", ["", "nothing", "http://e/ a", "http://e/>", "a>b:c", "http://e/\n", "http://e/\\u0020"]
)
def test_what_is_not_an_iri_never_gets_into_a_query(text: str) -> None:
    with pytest.raises(QueryError):
        iri(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("up:Protein", "http://purl/core/Protein"),
        (" <http://e/a> ", "http://e/a"),
        ("http://e/a", "http://e/a"),
        ("urn:x:y", "urn:x:y"),
        (r"up:1\.1", "http://purl/core/1.1"),
    ],
)
def test_iris_are_read_as_agents_write_them(text: str, value: str) -> None:
    assert to_iri(text, PREFIXES).value == value


@pytest.mark.parametrize("text", ["zz:Protein", "Protein", "up:a> . ?s ?p ?o", "<up:a b>", "?x"])
def test_an_unknown_name_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(QueryError) as caught:
        to_iri(text, PREFIXES)
    assert caught.value.hint


def test_strings_are_escaped() -> None:
    assert string_literal('a"\\\n\t') == '"a\\"\\\\\\n\\t"'
    assert string_literal("ja", "de") == '"ja"@de'
    with pytest.raises(QueryError):
        string_literal("x", "de } DROP ALL")


def test_values_refuses_blank_nodes_and_odd_names() -> None:
    with pytest.raises(QueryError, match="blank node"):
        values("s", [BlankNode("b")])
    with pytest.raises(QueryError, match="variable"):
        values("s } ", [Literal("x")])


@pytest.mark.parametrize(
    ("term", "text"),
    [
        (lit("1.50", "decimal"), "1.50"),
        (lit("0.10000000000000000555111512", "decimal"), "0.10000000000000000555111512"),
        (lit("1e3", "double"), "1e3"),
        (lit("5", "double"), '"5"^^xsd:double'),
        (lit("7", "int"), '"7"^^xsd:int'),
        (lit("true", "boolean"), "true"),
        (Literal("plain"), '"plain"'),
        (NamedNode("http://purl/core/Protein"), "up:Protein"),
    ],
)
def test_a_term_in_a_query_keeps_its_digits_and_datatype(term: Term, text: str) -> None:
    assert written(term, PREFIXES) == text
    assert prepare(f"SELECT * {{ ?s ?p {text} }}", prefixes=PREFIXES).parsed is not None
