"""Substitute by the grammar: what is a variable, what is not, and what is left of the query."""

from __future__ import annotations

import pytest
from rdflib import XSD, BNode, Literal, URIRef

from reasoningbank.algebra import ProgramError
from reasoningbank.algebra.queries import substitute
from reasoningbank.algebra.terms import Term

from .faults import raises, said
from .in_memory import op, outcome, text, uri, value

IRI = URIRef("http://e/x")

CASES = [
    # What is the variable.
    ("ASK { ?v ?p ?o }", "ASK { <http://e/x> ?p ?o }"),
    ("ASK { $v ?p ?o }", "ASK { <http://e/x> ?p ?o }"),
    ("ASK{?v ?p ?v}", "ASK{<http://e/x> ?p <http://e/x>}"),
    ("ASK { ?v ?v ?o . ?s ?p ?v. }", "ASK { <http://e/x> <http://e/x> ?o . ?s ?p <http://e/x>. }"),
    # What is not.
    ("ASK { ?v ?p ?vv, ?v1, ?v_, ?V }", "ASK { <http://e/x> ?p ?vv, ?v1, ?v_, ?V }"),
    ('ASK { ?v ?p \'?v\', """?v " $v""" }', 'ASK { <http://e/x> ?p \'?v\', """?v " $v""" }'),
    ('ASK { ?v ?p "a\\"?v" }', 'ASK { <http://e/x> ?p "a\\"?v" }'),
    ("ASK { ?v <http://e/?v> ?o }", "ASK { <http://e/x> <http://e/?v> ?o }"),
    ("ASK { ?v ?p ?o # ?v\n}", "ASK { <http://e/x> ?p ?o # ?v\n}"),
    ("ASK { ?v ?p ?o }# ?v", "ASK { <http://e/x> ?p ?o }# ?v"),
    (
        "PREFIX v: <http://e/#?v> ASK { ?v v:v ?o }",
        "PREFIX v: <http://e/#?v> ASK { <http://e/x> v:v ?o }",
    ),
    ("ASK { ?v a/<http://e/p>? ?o }", "ASK { <http://e/x> a/<http://e/p>? ?o }"),
    # Where the grammar takes no term.
    ("SELECT ?v ?o { ?v ?p ?o }", "SELECT (<http://e/x> AS ?v) ?o { <http://e/x> ?p ?o }"),
    (
        "SELECT DISTINCT ?o ?v WHERE { ?v ?p ?o }",
        "SELECT DISTINCT ?o (<http://e/x> AS ?v) WHERE { <http://e/x> ?p ?o }",
    ),
    (
        "SELECT (COUNT(?v) AS ?n) ?v { ?v ?p ?o } GROUP BY ?v",
        "SELECT (COUNT(<http://e/x>) AS ?n) (<http://e/x> AS ?v) { <http://e/x> ?p ?o } "
        "GROUP BY (<http://e/x>)",
    ),
    (
        "SELECT ?o { ?v ?p ?o } ORDER BY ?o ?v DESC(?v) LIMIT 5",
        "SELECT ?o { <http://e/x> ?p ?o } ORDER BY ?o (<http://e/x>) DESC(<http://e/x>) LIMIT 5",
    ),
    (
        "SELECT ?o { ?s ?p ?o FILTER(BOUND(?v) && ?s != ?v) }",
        "SELECT ?o { ?s ?p ?o FILTER(true && ?s != <http://e/x>) }",
    ),
    (
        "SELECT ?o { { SELECT ?v ?o { ?v ?p ?o } } }",
        "SELECT ?o { { SELECT (<http://e/x> AS ?v) ?o { <http://e/x> ?p ?o } } }",
    ),
    ("SELECT * { ?v ?p ?o }", "SELECT * { <http://e/x> ?p ?o }"),
    # Other forms and places.
    ("DESCRIBE ?v", "DESCRIBE <http://e/x>"),
    ("DESCRIBE ?v ?o { ?v ?p ?o }", "DESCRIBE <http://e/x> ?o { <http://e/x> ?p ?o }"),
    (
        "CONSTRUCT { ?v ?p ?o } WHERE { ?v ?p ?o }",
        "CONSTRUCT { <http://e/x> ?p ?o } WHERE { <http://e/x> ?p ?o }",
    ),
    ("ASK { GRAPH ?v { ?s ?p ?o } }", "ASK { GRAPH <http://e/x> { ?s ?p ?o } }"),
    ("ASK { SERVICE ?v { ?s ?p ?o } }", "ASK { SERVICE <http://e/x> { ?s ?p ?o } }"),
    ("ASK { ?s ?p ?o FILTER(?o IN (1, ?v)) }", "ASK { ?s ?p ?o FILTER(?o IN (1, <http://e/x>)) }"),
    ("ASK { ?s ?p ?o FILTER(?o<?v) }", "ASK { ?s ?p ?o FILTER(?o< <http://e/x>) }"),
    ("ASK { BIND(STR(?v) AS ?s) }", "ASK { BIND(STR(<http://e/x>) AS ?s) }"),
    ("ASK { ?s ex:p ?v }", "ASK { ?s ex:p <http://e/x> }"),
    ("ASK { FILTER NOT EXISTS { ?v ?p ?o } }", "ASK { FILTER NOT EXISTS { <http://e/x> ?p ?o } }"),
    ("ASK { VALUES ?s { 1 } ?s ?p ?v }", "ASK { VALUES ?s { 1 } ?s ?p <http://e/x> }"),
    ("INSERT DATA { <a:b> <a:p> ?v }", "INSERT DATA { <a:b> <a:p> <http://e/x> }"),
    (
        "DELETE { ?v ?p ?o } INSERT { ?v ?p 1 } WHERE { ?v ?p ?o }",
        "DELETE { <http://e/x> ?p ?o } INSERT { <http://e/x> ?p 1 } WHERE { <http://e/x> ?p ?o }",
    ),
]


@pytest.mark.parametrize(("query", "result"), CASES)
def test_a_uri(query: str, result: str) -> None:
    assert substitute(query, {"v": IRI}) == result


TERMS: list[tuple[Term, str]] = [
    (Literal('a "b" \\ c'), '"a \\"b\\" \\\\ c"'),
    (Literal("a\nb\tc\r"), '"a\\nb\\tc\\r"'),
    (Literal("} # ?v"), '"} # ?v"'),
    (Literal("København", lang="da"), '"København"@da'),
    (Literal("01", datatype=XSD.integer, normalize=False), f'"01"^^<{XSD.integer}>'),
    (Literal("-1", datatype=XSD.decimal), f'"-1"^^<{XSD.decimal}>'),
    (Literal(""), '""'),
    (URIRef("http://e/æ?x=1&y='2'#f"), "<http://e/æ?x=1&y='2'#f>"),
]


@pytest.mark.parametrize(("term", "written"), TERMS)
def test_terms_are_escaped(term: Term, written: str) -> None:
    query = "SELECT ?s { ?s ?p ?v FILTER(?v-1 = 0) }"
    made = substitute(query, {"v": term})
    assert made == f"SELECT ?s {{ ?s ?p {written} FILTER({written} -1 = 0) }}"


REFUSED: list[tuple[str, Term, str]] = [
    ("ASK { ?s ?p ?vv }", IRI, "no-such-variable"),
    ("ASK { ?s ?p '?v' } # ?v", IRI, "no-such-variable"),
    ("ASK {}", IRI, "no-such-variable"),
    ("ASK { ?v ?p ?o }", BNode("b"), "blank-node"),
    ("SELECT ?v { BIND(1 AS ?v) }", IRI, "assigned-variable"),
    ("SELECT (1 AS ?v) {}", IRI, "assigned-variable"),
    ("ASK { VALUES ?v { 1 } }", IRI, "assigned-variable"),
    ("ASK { ?s ?p ?o } VALUES (?o ?v) { (1 2) }", IRI, "assigned-variable"),
    ("ASK { ?s ?v ?o }", Literal("x"), "invalid-result"),
    ("DESCRIBE ?v", Literal("x"), "invalid-result"),
    ("ASK { GRAPH ?v { ?s ?p ?o } }", Literal("x"), "invalid-result"),
    ("ASK { ?s ?v* ?o }", Literal("x"), "invalid-result"),
    ("ASK { ?v ?p", IRI, "invalid-result"),
    ("?v", IRI, "invalid-result"),
    ("ASK { ?s ?p ?v }", URIRef("rel"), "relative-iri"),
    ("ASK { ?s ?p ?v }", URIRef("http://e/> ?x"), "relative-iri"),
    ("SELECT ?n { ?v ?p ?n MINUS { ?v a ?v } }", IRI, "empty-minus"),
    ("LOAD ?v", IRI, "invalid-result"),
]  # fmt: skip


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?n { ?v ?p ?n MINUS { ?v a ?n } }",
        "SELECT ?n { ?s ?p ?n MINUS { ?v a ?t } ?v ?p ?s }",
        "SELECT ?n { { ?v ?p ?n } MINUS { ?n a ?v } }",
    ],
)
def test_a_minus_that_shares_something_else_stays(query: str) -> None:
    assert "?v" not in substitute(query, {"v": IRI})


@pytest.mark.parametrize(("query", "term", "told"), REFUSED)
def test_what_is_refused(query: str, term: Term, told: str) -> None:
    with pytest.raises(ProgramError) as failed:
        substitute(query, {"v": term})
    assert said(failed.value) == told


ROW = {"a": uri("http://e/a"), "b": text("B", "da")}
QUERY = "SELECT ?c { ?a ?p ?b . ?a ?q ?c }"


def test_a_whole_row() -> None:
    call = op("Substitute", query=QUERY, binding=op("Current"))
    assert outcome(op("ForEach", select=[ROW], operation=call)) == [
        'SELECT ?c { <http://e/a> ?p "B"@da . <http://e/a> ?q ?c }'
    ]


def test_one_variable_of_a_row() -> None:
    call = op("Substitute", query=QUERY, var="a", binding=op("Current"))
    assert outcome(op("ForEach", select=[ROW], operation=call)) == [
        "SELECT ?c { <http://e/a> ?p ?b . <http://e/a> ?q ?c }"
    ]


@pytest.mark.parametrize("var", ["b", "?b", "$b"])
def test_the_variable_may_have_its_sign(var: str) -> None:
    assert outcome(op("Substitute", query="ASK { ?a ?b 1 }", var=var, binding=ROW["a"])) == (
        "ASK { ?a <http://e/a> 1 }"
    )


def test_plain_values_are_literals() -> None:
    for given, written in ((5, f'"5"^^<{XSD.integer}>'), (True, f'"true"^^<{XSD.boolean}>')):
        assert outcome(op("Substitute", query="ASK { ?a ?b ?c }", var="c", binding=given)) == (
            f"ASK {{ ?a ?b {written} }}"
        )
    assert outcome(op("Substitute", query="ASK { ?a ?b ?c }", var="c", binding="x")) == (
        'ASK { ?a ?b "x" }'
    )


def test_a_variable_that_the_row_lacks() -> None:
    call = op("Substitute", query=QUERY, var="c", binding=op("Current"))
    with raises(ProgramError, "unknown-column"):
        outcome(op("ForEach", select=[ROW], operation=call))


def test_an_unbound_value() -> None:
    rows = {"head": {"vars": ["a", "z"]}, "results": {"bindings": [ROW]}}
    call = op("Substitute", query=QUERY, var="a", binding=value("z"))
    with raises(ProgramError, "wrong-type"):
        outcome(op("ForEach", select=rows, operation=call))


def test_a_value_without_a_variable() -> None:
    with raises(ProgramError, "missing-argument"):
        outcome(op("Substitute", query=QUERY, binding="x"))


def test_values() -> None:
    rows = {
        "head": {"vars": ["a", "b"]},
        "results": {"bindings": [ROW, {"a": uri("http://e/2")}]},
    }
    made = outcome(op("Values", query=f"{QUERY} LIMIT 5 # end", data=rows))
    assert made == (
        f'{QUERY} LIMIT 5\nVALUES (?a ?b) {{\n  (<http://e/a> "B"@da)\n  (<http://e/2> UNDEF)\n}}'
    )
    assert outcome(op("Values", query=QUERY, data=rows, vars=["?a"])).endswith(
        "VALUES (?a) {\n  (<http://e/a>)\n  (<http://e/2>)\n}"
    )


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({"query": "ASK { ?a ?p 1 }"}, "$.args.query no-such-variable"),
        ({"vars": ["z"]}, "$.args.vars unknown-column"),
        ({"query": f"{QUERY} VALUES ?a {{ 1 }}"}, "$ invalid-result"),
        ({"data": [{"a": {"type": "bnode", "value": "x"}}]}, "$ blank-node"),
    ],
)
def test_values_that_cannot_be(args: dict[str, object], told: str) -> None:
    with pytest.raises(ProgramError) as failed:
        outcome(op("Values", **{"query": QUERY, "data": [ROW], **args}))
    assert said(failed.value) == told


@pytest.mark.parametrize(
    ("query", "made"),
    [
        (
            "SELECT ?a ?b { { SELECT ?a ?b { ?a ?p ?b } } }",
            "SELECT (<http://e/x> AS ?a) ?b "
            "{ { SELECT (<http://e/x> AS ?a_1) ?b { <http://e/x> ?p ?b } } }",
        ),
        (
            "SELECT ?a { { SELECT ?a ?a_1 { { SELECT ?a { ?a ?p ?o } } } } }",
            "SELECT (<http://e/x> AS ?a) { { SELECT (<http://e/x> AS ?a_1_1) ?a_1 "
            "{ { SELECT (<http://e/x> AS ?a_2) { <http://e/x> ?p ?o } } } } }",
        ),
        (
            "SELECT * { { SELECT ?a { ?a ?p ?o } } { SELECT ?a { ?a ?q ?o } } }",
            "SELECT * { { SELECT (<http://e/x> AS ?a) { <http://e/x> ?p ?o } } "
            "{ SELECT (<http://e/x> AS ?a) { <http://e/x> ?q ?o } } }",
        ),
        (
            "SELECT ?b { { SELECT ?a ?b { ?a ?p ?b } } }",
            "SELECT ?b { { SELECT (<http://e/x> AS ?a) ?b { <http://e/x> ?p ?b } } }",
        ),
    ],
)
def test_a_selected_term_is_no_variable_that_is_in_scope_already(query: str, made: str) -> None:
    assert substitute(query, {"a": IRI}) == made
