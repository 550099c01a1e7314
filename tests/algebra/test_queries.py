"""Queries in programs: substitution, composition, extraction, results as queries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib import OWL, RDF, RDFS, XSD, BNode, Graph, Literal, Namespace, URIRef

from reasoningbank.algebra import (
    ProgramError,
    QueryRequest,
    Stream,
    Table,
    Value,
    mistakes,
    run_program,
)
from reasoningbank.algebra.queries import as_query, substitute, with_values
from reasoningbank.algebra.runtime import Runtime
from reasoningbank.algebra.terms import BlankNodes, Term, from_oxigraph
from reasoningbank.errors import QueryError
from reasoningbank.sparql import OxigraphServer

from .faults import raises, said
from .in_memory import Memory, op, outcome, text, uri, value

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
    ("ASK { ?s rdfs:p ?v }", "ASK { ?s rdfs:p <http://e/x> }"),
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


@pytest.mark.parametrize(("query", "term", "reported"), REFUSED)
def test_what_is_refused(query: str, term: Term, reported: str) -> None:
    with pytest.raises(ProgramError) as failed:
        substitute(query, {"v": term})
    assert said(failed.value) == reported


ROW = {"a": uri("http://e/a"), "b": text("B", "da")}
QUERY = "SELECT ?c { ?a ?p ?b . ?a ?q ?c }"


def test_operations_may_be_members_of_a_term() -> None:
    made = {"type": "uri", "value": op("Str", input=value("$u"))}
    call = op("Substitute", query="ASK { ?a a ?v }", var="v", binding=made)
    assert outcome(call, u=URIRef("http://e/u")) == "ASK { ?a a <http://e/u> }"
    tagged = {"type": "literal", "value": op("Concat", inputs=["x", "y"]), "xml:lang": "da"}
    row = op("Substitute", query="ASK { ?a a ?v }", binding={"v": tagged, "a": made})
    assert outcome(row, u=URIRef("http://e/u")) == 'ASK { <http://e/u> a "xy"@da }'
    each = op("ForEach", select={"results": {"bindings": [{"v": made}]}}, operation=value("v"))
    assert outcome(each, u=URIRef("http://e/u")) == ["http://e/u"]
    assert outcome(
        op("GET", url=made), Memory(documents={"http://e/u": ""}), u=Literal("http://e/u")
    )
    for wrong, reported in (
        (op("PUT", url=E, data=made), "$.args.data wrong-type"),
        (op("Str", input={**made, "lang": "da"}), "$.args.input bad-term"),
        (op("Str", input={**made, "value": op("GET", url=E)}), "$.args.input.value wrong-type"),
    ):
        assert said(mistakes(wrong, ["u"])[0]) == reported
    with raises(ProgramError, "bad-iri"):
        outcome(op("Str", input=made), u=Literal("a b"))


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
    for plain, written in ((5, f'"5"^^<{XSD.integer}>'), (True, f'"true"^^<{XSD.boolean}>')):
        assert outcome(op("Substitute", query="ASK { ?a ?b ?c }", var="c", binding=plain)) == (
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
    head, body = QUERY.split("{", 1)
    block = 'VALUES (?a ?b) {\n  (<http://e/a> "B"@da)\n  (<http://e/2> UNDEF)\n}'
    assert made == f"{head}{{ {block}{body} LIMIT 5 # end"
    made = outcome(op("Values", query=QUERY, data=rows, vars=["?a"]))
    assert "{ VALUES (?a) {\n  (<http://e/a>)\n  (<http://e/2>)\n}" in made


CITIES = """
@prefix : <http://e/> .
:riga :in :lv ; :size 6 . :cesis :in :lv ; :size 1 . :tartu :in :ee ; :size 3 . :oslo :in :no .
"""


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?c { ?c e:size ?n FILTER(?n > ?min) }",
        "SELECT ?c { ?c e:size ?n FILTER NOT EXISTS { ?c e:size ?n FILTER(?n <= ?min) } }",
        "SELECT ?c ?m { ?c e:size ?n BIND(?min + 1 AS ?m) FILTER(?n >= ?m) }",
        "SELECT ?c { ?c e:size ?n MINUS { ?c e:size ?min } FILTER(?n > ?min) }",
        "SELECT (EXISTS { ?c e:size 6 } AS ?big) ?c { ?c e:size ?n FILTER(?n > ?min) }",
        "SELECT ?c { SELECT ?c ?min { ?c e:size ?min } }",
        "SELECT (COUNT(?c) AS ?k) ?min { ?c e:size ?n FILTER(?n > ?min) } GROUP BY ?min",
        "SELECT ?c { ?c e:size ?min } VALUES ?c { e:riga e:tartu }",
    ],
)
def test_values_finds_what_substituting_each_value_finds(query: str) -> None:
    store = ox.Store()
    store.load(CITIES, format=ox.RdfFormat.TURTLE)

    def rows(text: str) -> list[str]:
        solutions: Any = store.query(text, prefixes={"e": "http://e/"})
        names = [one.value for one in solutions.variables if one.value not in ("min", "m")]
        return sorted(" ".join(str(row[name]) for name in names) for row in solutions)

    limits = [Literal(1), Literal(3)]
    joined = with_values(f"PREFIX e: <http://e/> {query}", ["min"], [{"min": n} for n in limits])
    each = [substitute(f"PREFIX e: <http://e/> {query}", {"min": n}) for n in limits]
    assert rows(joined) == sorted(row for text in each for row in rows(text)) != []


def test_a_variable_that_a_subselect_hides_joins_with_nothing() -> None:
    hidden = "SELECT ?min ?n { { SELECT (COUNT(?c) AS ?n) { ?c e:size ?min } GROUP BY ?min } }"
    with pytest.raises(ProgramError) as failed:
        with_values(f"PREFIX e: <http://e/> {hidden}", ["min"], [{"min": Literal(1)}])
    assert failed.value.code == "no-such-variable"


def test_values_without_rows_leave_none() -> None:
    for data in ([], {"results": {"bindings": []}}):
        for more in ({}, {"vars": ["a"]}):
            made = outcome(op("Values", query=QUERY, data=data, **more))
            assert "{ VALUES (?a) {\n}" in made


def test_values_of_a_template_or_a_description() -> None:
    row = [{"a": URIRef("http://e/1")}]
    made = with_values("CONSTRUCT { ?a a 1 } WHERE { ?a a 2 }", ["a"], row)
    assert made == "CONSTRUCT { ?a a 1 } WHERE { VALUES (?a) {\n  (<http://e/1>)\n} ?a a 2 }"
    for query in ("CONSTRUCT WHERE { ?a a 2 }", "DESCRIBE ?a"):
        assert with_values(query, ["a"], row) == f"{query}\nVALUES (?a) {{\n  (<http://e/1>)\n}}"


@pytest.mark.parametrize(
    ("args", "reported"),
    [
        ({"query": "ASK { ?a ?p 1 }"}, "$.args.query no-such-variable"),
        ({"vars": ["z"]}, "$.args.vars unknown-column"),
        ({"data": [{"a": {"type": "bnode", "value": "x"}}]}, "$ blank-node"),
    ],
)
def test_values_that_cannot_be(args: dict[str, object], reported: str) -> None:
    with pytest.raises(ProgramError) as failed:
        outcome(op("Values", **{"query": QUERY, "data": [ROW], **args}))
    assert said(failed.value) == reported


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
def test_a_selected_term_is_not_a_variable_that_is_in_scope_already(query: str, made: str) -> None:
    assert substitute(query, {"a": IRI}) == made


E = "http://e/sparql"
ASKED = op("SELECT", endpoint=E, query=op("SPARQLString", question="cities"))
GOOD = "SELECT ?city ?name WHERE { ?city <http://e/name> ?name }"


class Scripted(Memory):
    """Writes queries in turn, the last one again and again, and keeps its prompts."""

    def __init__(self, *queries: str) -> None:
        super().__init__(data="<http://e/a> <http://e/name> 'A' .")
        self.queries = list(queries or [GOOD])
        self.requests: list[QueryRequest] = []

    @property
    def reported(self) -> list[tuple[str, frozenset[str]]]:
        return [(one.endpoint, one.columns) for one in self.requests]

    def compose(self, request: QueryRequest) -> str:
        self.requests.append(request)
        return self.queries.pop(0) if len(self.queries) > 1 else self.queries[0]


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
def test_the_names_that_are_read_are_reported(program: Any, names: set[str]) -> None:
    web = Scripted()
    outcome(program, web)
    assert web.reported == [(E, frozenset(names))]


def test_without_an_endpoint_none_is_reported() -> None:
    web = Scripted()
    assert outcome(op("SPARQLString", question="cities"), web) == GOOD
    assert web.reported == [("", frozenset())]


def test_the_endpoint_may_be_computed() -> None:
    web = Scripted()
    select = op("SELECT", endpoint=op("Concat", inputs=["http://e/", "sparql"]), query=op(
        "Substitute", query=op("SPARQLString", question="x"), var="name", binding="A"))  # fmt: skip
    outcome(select, web)
    assert web.reported == [(E, frozenset())]


@pytest.mark.parametrize(
    ("query", "reported"),
    [
        ("SELECT * { ?city ?p ?name }", "$.args.select.args.query star"),
        ("DESCRIBE ?city { ?city ?p ?name }", "$.args.select.args.query wrong-form"),
        (
            "SELECT ?city ?name { ?city my:p ?name }",
            "$.args.select.args.query: line 1, column 28 unknown-prefix",
        ),
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
def test_what_may_not_be_written(query: str, reported: str) -> None:
    program = op("ForEach", select=ASKED, operation=[value("city"), value("name")])
    with pytest.raises(QueryError) as failed:
        outcome(program, Scripted(query))
    assert said(failed.value) == reported


def test_a_query_that_does_not_fit_is_written_again() -> None:
    program = op("ForEach", select=ASKED, operation=[value("city"), value("name")])
    wrong = ["SELECT * { ?city ?p ?name }", "SELECT ?city { ?city ?p ?name }"]
    model = Scripted(*wrong, GOOD)
    assert outcome(program, model) == [["http://e/a", "A"]]
    assert [len(one.rejected) for one in model.requests] == [0, 1, 2]
    assert [query for query, _ in model.requests[-1].rejected] == wrong
    endless = Scripted(*wrong, "SELECT ?name { ?city ?p ?name }", GOOD)
    with raises(QueryError, "columns-missing"):
        outcome(program, endless)
    assert len(endless.requests) == 3


def test_the_model_learns_which_form_of_query_is_wanted() -> None:
    question = op("SPARQLString", question="x")
    written = {
        "ASK": "ASK { ?s ?p ?o }",
        "DESCRIBE": "DESCRIBE <http://e/a>",
        "CONSTRUCT": "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }",
    }
    for form, query in written.items():
        model = Scripted(GOOD, query)
        outcome(op(form, endpoint=E, query=op("Concat", inputs=[question])), model)
        assert [one.form for one in model.requests] == [form, form]
    free = Scripted("DESCRIBE <http://e/a>")
    outcome(question, free)
    assert free.requests[0].form == ""
    with raises(QueryError, "star"):
        outcome(question, Scripted("DESCRIBE * { ?s ?p ?o }"))


EX = Namespace("http://e/")
SCHEMA = Namespace("http://schema.org/")
DATA = """
@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:City a owl:Class ; rdfs:label "city"@en , "by"@da ; rdfs:comment "A big place." ;
  rdfs:subClassOf :Place .
:Unused a rdfs:Class .
:inCountry a owl:ObjectProperty ; rdfs:domain :City ; rdfs:range :Country ; rdfs:label "country" .
:code a owl:DatatypeProperty ; rdfs:subPropertyOf :id .
:a a :City ; :inCountry :dk ; :mayor :m ; :twin :b , [ a :Village ] ; :size 5 ; :code "A1" ;
  :mixed 1 , "one" , 1.5 ; :founded "0808"^^xsd:gYear .
:b a :Village ; :twin :a ; :size 7 .
:dk a :Country ; :size 9 . :m a :Person .
:r :inCountry :dk .
"""


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    file = Path(tmp_path_factory.mktemp("data")) / "data.ttl"
    file.write_text(DATA)
    with OxigraphServer([file]) as server:
        yield server.url


def extracted(name: str, endpoint: str) -> Graph:
    with Runtime() as runtime:
        found: Any = run_program(op(name, endpoint=endpoint), runtime)
    assert isinstance(found, Graph)
    return found


def test_classes(endpoint: str) -> None:
    graph = extracted("ExtractClasses", endpoint)
    declared = {EX.City, EX.Unused}
    assert set(graph.subjects(RDF.type, OWL.Class)) == {
        *declared, EX.Village, EX.Country, EX.Person
    }  # fmt: skip
    assert set(graph.objects(EX.City, RDFS.label)) == {
        Literal("city", lang="en"),
        Literal("by", lang="da"),
    }
    assert graph.value(EX.City, RDFS.subClassOf) == EX.Place
    assert graph.value(EX.City, RDFS.comment) == Literal("A big place.")


def test_object_properties(endpoint: str) -> None:
    graph = extracted("ExtractObjectProperties", endpoint)
    assert set(graph.subjects(RDF.type, OWL.ObjectProperty)) == {
        EX.inCountry,
        EX.mayor,
        EX.twin,
    }
    # Declared: as declared.
    assert set(graph.predicate_objects(EX.inCountry)) == {
        (RDF.type, OWL.ObjectProperty), (RDFS.label, Literal("country")),
        (RDFS.domain, EX.City), (RDFS.range, EX.Country),
    }  # fmt: skip
    # One class in use: the domain. Several: any of them.
    assert set(graph.predicate_objects(EX.mayor)) == {
        (RDF.type, OWL.ObjectProperty), (RDFS.domain, EX.City), (RDFS.range, EX.Person),
    }  # fmt: skip
    assert set(graph.predicate_objects(EX.twin)) == {
        (RDF.type, OWL.ObjectProperty),
        (SCHEMA.domainIncludes, EX.City), (SCHEMA.domainIncludes, EX.Village),
        (SCHEMA.rangeIncludes, EX.City), (SCHEMA.rangeIncludes, EX.Village),
    }  # fmt: skip


def test_datatype_properties(endpoint: str) -> None:
    graph = extracted("ExtractDatatypeProperties", endpoint)
    assert set(graph.subjects(RDF.type, OWL.DatatypeProperty)) == {
        EX.size, EX.code, EX.mixed, EX.founded
    }  # fmt: skip
    assert set(graph.predicate_objects(EX.code)) == {
        (RDF.type, OWL.DatatypeProperty), (RDFS.subPropertyOf, EX.id),
        (RDFS.domain, EX.City), (RDFS.range, XSD.string),
    }  # fmt: skip
    assert graph.value(EX.founded, RDFS.range) == XSD.gYear
    assert set(graph.objects(EX.mixed, SCHEMA.rangeIncludes)) == {
        XSD.integer, XSD.string, XSD.decimal
    }  # fmt: skip
    assert set(graph.objects(EX.size, SCHEMA.domainIncludes)) == {
        EX.City,
        EX.Village,
        EX.Country,
    }
    assert graph.value(EX.size, RDFS.range) == XSD.integer


def test_the_words_of_ontologies_are_no_part_of_them(endpoint: str) -> None:
    for name in ("ExtractClasses", "ExtractObjectProperties", "ExtractDatatypeProperties"):
        for subject in extracted(name, endpoint).subjects():
            assert isinstance(subject, URIRef)
            assert str(subject).startswith(str(EX))


A, B, P = (URIRef(f"http://e/{name}") for name in "abp")


def graph(*triples: Any) -> Graph:
    made = Graph()
    for triple in triples:
        made.add(triple)
    return made


def ran(value: Value) -> Any:
    return _plain(ox.Store().query(as_query(value)))


def _plain(found: Any) -> Any:
    if isinstance(found, ox.QueryBoolean):
        return bool(found)
    if isinstance(found, ox.QueryTriples):
        return [str(triple) for triple in found]
    names = [variable.value for variable in found.variables]
    return names, [[None if cell is None else str(cell) for cell in row] for row in found]


ROWS: list[tuple[Value, tuple[list[str], list[list[str | None]]]]] = [
    (
        Table(("a", "n"), [{"a": A, "n": Literal("007", datatype=URIRef("http://e/t"))}, {"a": B}]),
        (["a", "n"], [["<http://e/a>", '"007"^^<http://e/t>'], ["<http://e/b>", None]]),
    ),
    (Table(("a",), []), (["a"], [])),
    (Literal('say "no"\n', lang="en"), (["value"], [['"say \\"no\\"\\n"@en']])),
    ({"a": A}, (["a"], [["<http://e/a>"]])),
    ([A, None, B], (["value"], [["<http://e/a>"], ["<http://e/b>"]])),
    (Stream(iter([[A, Literal("x")], [B, Literal("y")]])), (
        ["value1", "value2"], [["<http://e/a>", '"x"'], ["<http://e/b>", '"y"']],
    )),
    (
        [Table(("a",), [{"a": A}]), Table(("b",), [{"b": B}])],
        (["a", "b"], [["<http://e/a>", None], [None, "<http://e/b>"]]),
    ),
    ([Table(("a",), []), Table(("a",), [{"a": A}])], (["a"], [["<http://e/a>"]])),
    # An unbound value leaves its column empty, and moves no other into it.
    (
        [[A, B, Literal("x")], [A, None, Literal("y")]],
        (["value1", "value2", "value3"],
         [["<http://e/a>", "<http://e/b>", '"x"'], ["<http://e/a>", None, '"y"']]),
    ),
    (
        [[None, A, B], [None, None, B]],
        (["value1", "value2"], [["<http://e/a>", "<http://e/b>"], [None, "<http://e/b>"]]),
    ),
    ([[[A, None], [None, B]], [[A, B]]], (
        ["value1", "value2"],
        [["<http://e/a>", None], [None, "<http://e/b>"], ["<http://e/a>", "<http://e/b>"]],
    )),
    ([[None, Table(("a",), [{"a": A}])]], (["a"], [["<http://e/a>"]])),
    (
        [{"a b": A, "a_b": B, "": A, "} #": B}],
        (["a_b", "a_b_2", "value", "___"], [["<http://e/a>", "<http://e/b>"] * 2]),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("value", "rows"), ROWS)
def test_tables_rows_and_values_are_a_table(value: Value, rows: Any) -> None:
    assert ran(value) == rows


SEVERAL: list[tuple[list[Value], Any]] = [
    ([None, [A, B]], (["value"], [["<http://e/a>"], ["<http://e/b>"]])),
    ([[A], [B]], (["value"], [["<http://e/a>"], ["<http://e/b>"]])),
    ([None, [[A, B]]], (["value1", "value2"], [["<http://e/a>", "<http://e/b>"]])),
    ([A, B], (["value"], [["<http://e/a>"], ["<http://e/b>"]])),
    ([None, Table(("a",), [{"a": A}])], (["a"], [["<http://e/a>"]])),
    ([None, Literal(True)], True),
    ([None, [None, graph((A, P, B))], [None]], ["<http://e/a> <http://e/p> <http://e/b>"]),
]


@pytest.mark.parametrize(("results", "wanted"), SEVERAL)
def test_of_several_operations_each_has_a_result_of_its_own(
    results: list[Value], wanted: Any
) -> None:
    found = ox.Store().query(as_query(results, several=True))
    assert _plain(found) == wanted


def test_the_order_of_rows_stays() -> None:
    numbers = [Literal(n) for n in (3, 1, 2, 10)]
    assert [row[0] for row in ran(numbers)[1]] == [str(ox.Literal(n)) for n in (3, 1, 2, 10)]


@pytest.mark.parametrize("truth", [True, False])
def test_a_boolean_is_an_answer_to_ask(truth: bool) -> None:
    assert ran(Literal(truth)) is truth


def test_graphs_are_one_graph_and_keep_their_blank_nodes_apart() -> None:
    one, other = BNode(), BNode()
    triples = ran([graph((A, P, one), (one, P, B)), graph((A, P, other)), graph((A, P, B))])
    assert len(triples) == 4
    ends = {text.rpartition(" ")[2] for text in triples if text.startswith("<http://e/a>")}
    assert len(ends) == 3


@pytest.mark.parametrize(
    ("value", "reported"),
    [
        (None, "no-answer"),
        ([], "no-answer"),
        ([None, None], "no-answer"),
        (Table(("b",), [{"b": BNode()}]), "blank-node"),
        ([graph((A, P, B)), Literal("x")], "mixed-results"),
        (Table(("a",), [{"a": URIRef("relative")}]), "relative-iri"),
        ([Literal("x" * 200)] * 300, "too-many-rows"),
        (graph(*((A, P, Literal("x" * 200 + str(n))) for n in range(300))), "too-many-rows"),
    ],
)
def test_what_is_not_an_answer_is_reported(value: Value, reported: str) -> None:
    with raises(ProgramError, reported):
        as_query(value)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
IRIS = st.text(st.characters(categories=["L", "N"]), max_size=8).map(
    lambda text: URIRef(f"http://e/{text}")
)
RESTATING_TERMS = st.one_of(
    IRIS,
    TEXTS.map(Literal),
    st.builds(Literal, TEXTS, lang=st.sampled_from(["en", "da", "en-gb"])),
    st.builds(lambda text: Literal(text, datatype=P), TEXTS),
    st.integers(-(2**62), 2**62).map(Literal),
)


@given(
    rows=st.lists(
        st.dictionaries(st.sampled_from("abc"), RESTATING_TERMS, min_size=1), min_size=1, max_size=5
    )
)
def test_a_table_comes_back_as_it_was(rows: list[dict[str, Any]]) -> None:
    found = ox.Store().query(as_query(Table(("a", "b", "c"), rows)))
    assert isinstance(found, ox.QuerySolutions)
    blanks = BlankNodes(BNode)
    back = [
        {name: from_oxigraph(row[name], blanks) for name in "abc" if row[name] is not None}
        for row in found
    ]
    assert back == rows


@given(triples=st.lists(st.tuples(IRIS, IRIS, RESTATING_TERMS), min_size=1, max_size=6))
def test_a_graph_comes_back_as_it_was(triples: list[Any]) -> None:
    found = ox.Store().query(as_query(graph(*triples)))
    assert isinstance(found, ox.QueryTriples)
    blanks = BlankNodes(BNode)
    back = {
        (*(from_oxigraph(part, blanks) for part in (t.subject, t.predicate, t.object)),)
        for t in found
    }
    assert back == set(triples)
