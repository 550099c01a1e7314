"""Where a query loses its rows, found by few requests on a real endpoint."""

from __future__ import annotations

import pytest

from reasoningbank.errors import QueryError
from reasoningbank.schema import Schema, lookups, read_statements
from reasoningbank.schema.lookups import MOST_PROBES, Lookups, Prober
from reasoningbank.schema.probing import Failure, find_failures, joined
from reasoningbank.sparql import BooleanResult, EndpointConfig, Result, SPARQLClient
from reasoningbank.sparql.tree import read_query


class Asked:
    """Runs probes and keeps them."""

    def __init__(self, config: EndpointConfig) -> None:
        self.client = SPARQLClient(config)
        self.queries: list[str] = []

    def __call__(self, query: str) -> Result:
        self.queries.append(query)
        return self.client.query(query)


@pytest.fixture
def asked(trees: EndpointConfig) -> Asked:
    return Asked(trees)


def failures(query: str, asked: Asked, most: int = MOST_PROBES) -> list[Failure]:
    """Return the failures of a query of the trees."""
    written = read_query(asked.client.prepare(query).text)
    return find_failures(Lookups(written, Schema.of_terms((), ()), {}, Prober(asked, most)))


FAILING = [
    ("SELECT * { ?t a t:Tree ; t:hight ?h }", "?t t:hight ?h", False),
    ('SELECT * { ?t a t:Tree ; rdfs:label "oak" }', '?t rdfs:label "oak"', False),
    ("SELECT * { ?t a t:Moss . ?t t:height ?h . ?t t:near ?o }", "?t t:height ?h", True),
    ("SELECT * { ?t t:height ?h ; t:near ?o . ?o a t:Moss }", "?o a t:Moss", True),
    ("SELECT * { ?t t:near/t:near/t:hight ?h }", "?path0_step2 t:hight ?h", False),
    ("SELECT * { ?t t:height ?h FILTER(?h > 99) }", "FILTER(?h > 99)", True),
    ("SELECT * { ?t t:height ?h FILTER(?h > 30) FILTER(?h < 31) }", "FILTER(?h < 31)", True),
    ("SELECT * { ?t t:height ?h FILTER(?h > 1) FILTER(?h < 1) }", "FILTER(?h < 1)", True),
    ("SELECT * { ?t a t:Tree MINUS { ?t t:height ?h } }", "MINUS { ?t t:height ?h }", True),
    ("SELECT * { ?t a t:Tree FILTER NOT EXISTS { ?t t:height ?h } }",
     "FILTER NOT EXISTS { ?t t:height ?h }", True),
    ("SELECT * { ?t a t:Tree . { ?t t:a ?x } UNION { ?t t:b ?x } }", "?t t:a ?x", False),
    ("SELECT * { ?t a t:Tree { SELECT ?t { ?t t:hight ?h } } }", "?t t:hight ?h", False),
    ("SELECT * { ?t a t:Tree { SELECT ?t { ?t a t:Moss } } }",
     "{ SELECT ?t { ?t a t:Moss } }", True),
    ("SELECT * { VALUES ?t { t:moss } ?t t:height ?h }", "?t t:height ?h", False),
    ("SELECT * { BIND(t:moss AS ?t) ?t t:height ?h }", "?t t:height ?h", False),
    ("SELECT * { ?t t:height ?h } VALUES ?t { t:moss }", "VALUES ?t { t:moss }", True),
    ("SELECT * { [] a t:Moss ; t:height ?h }", "?blank_bracket1 t:height ?h", True),
    ("SELECT * { GRAPH <http://e/g> { ?t a t:Tree } }", "?t a t:Tree", False),
    ("ASK { t:moss t:height ?h }", "t:moss t:height ?h", False),
    ("CONSTRUCT { ?t t:x ?y } WHERE { ?t t:x ?y }", "?t t:x ?y", False),
    ("DESCRIBE ?t WHERE { ?t a t:Bush }", "?t a t:Bush", False),
    ("SELECT (COUNT(*) AS ?n) { ?t a t:Bush }", "?t a t:Bush", False),
]  # fmt: skip


@pytest.mark.parametrize(("query", "culprit", "alone"), FAILING)
def test_the_part_that_fails_is_found(query: str, culprit: str, alone: bool, asked: Asked) -> None:
    found = failures(query, asked)
    unit = found[0].unit
    assert (str(unit.pattern) if unit.pattern is not None else unit.shown) == culprit
    assert found[0].alone is alone
    assert len(asked.queries) <= 8
    if found[0].before:
        body = found[0].look.context.replace("%s", joined(found[0].before))
        before = asked.client.query(f"PREFIX t: <http://e/> ASK {{ {body} }}")
        assert isinstance(before, BooleanResult)
        assert before.value


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * { ?t t:height ?h OPTIONAL { ?t t:hight ?x } }",
        "SELECT * { ?t t:height ?h OPTIONAL { ?t t:near ?x } FILTER(!BOUND(?x)) }",
        "SELECT * { ?t a t:Moss { ?t t:height ?h } UNION { ?t rdfs:label ?l } }",
        "SELECT * { ?t rdfs:label|t:hight ?x }",
        "DESCRIBE t:nothing",
    ],
)
def test_what_takes_no_rows_away_is_not_a_failure(query: str, asked: Asked) -> None:
    assert failures(query, asked) == []


def test_all_parts_that_match_nothing_are_reported_in_one_request(asked: Asked) -> None:
    found = failures("SELECT * { ?t t:a ?x ; t:height ?h ; t:b ?y ; t:c ?z }", asked)
    assert [failure.unit.shown for failure in found] == ["?t t:a ?x", "?t t:b ?y", "?t t:c ?z"]
    assert len(asked.queries) == 1


def test_the_first_of_many_parts_is_found_by_halving(asked: Asked) -> None:
    near = " ".join(f"?x{at} t:near ?x{at + 1} ." for at in range(12))
    found = failures(f"SELECT * {{ {near} ?x12 a t:Tree . ?x12 t:near ?y . ?y a t:Moss }}", asked)
    assert found[0].unit.shown == "?y a t:Moss"
    assert len(found[0].before) == 14
    assert len(asked.queries) <= 6


def test_a_pattern_written_fifty_times_is_probed_once(asked: Asked) -> None:
    again = "?t rdfs:label ?l . " * 50
    found = failures(f"SELECT * {{ ?t a t:Bush . {again} }}", asked)
    assert found[0].unit.shown == "?t a t:Bush"
    assert all(query.count("rdfs:label ?l") < 3 for query in asked.queries)


def test_the_graph_a_query_names_is_kept(asked: Asked) -> None:
    found = failures("SELECT * FROM <http://e/g> { ?t a t:Tree }", asked)
    assert found[0].unit.shown == "?t a t:Tree"
    assert all("FROM <http://e/g>" in query for query in asked.queries)


def test_no_more_requests_are_sent_than_allowed(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert failures("SELECT * { ?t a t:Tree ; t:height 12 ; t:near ?x }", asked, most=2) == []
    assert len(asked.queries) == 2
    asked.queries.clear()
    monkeypatch.setattr(lookups, "MOST_SECONDS", 0)
    assert failures("SELECT * { ?t a t:Bush }", asked) == []
    assert asked.queries == []


def test_an_endpoint_that_refuses_tells_nothing(trees: EndpointConfig) -> None:
    refused = []

    def refuse(query: str) -> Result:
        refused.append(query)
        raise QueryError("too costly")

    written = read_query("SELECT * { ?s ?p 1 ; ?q 2 }")
    look = Lookups(written, Schema.of_terms((), ()), {}, Prober(refuse))
    assert find_failures(look) == []
    assert refused


def test_clauses_know_their_place_in_the_text() -> None:
    text = (
        "SELECT (EXISTS { ?a e:b 1 } AS ?x) FROM <http://e/g> WHERE { ?s e:p [ e:q ?o ] . "
        "OPTIONAL { ?s e:r ?t } FILTER(EXISTS { ?t e:u ?v }) } VALUES ?s { e:a }"
    )
    found = read_query(text)
    assert found.where is not None
    assert found.values is not None
    spans = [text[c.start : c.end] for c in found.where.clauses]
    assert spans == [
        "?s e:p [ e:q ?o ] .",
        "OPTIONAL { ?s e:r ?t }",
        "FILTER(EXISTS { ?t e:u ?v })",
    ]
    assert found.dataset == "FROM <http://e/g>"
    assert text[found.values.start : found.values.end] == "VALUES ?s { e:a }"
    patterns = [str(p) for p in found.triple_patterns()]
    assert patterns[:3] == ["?a e:b 1", "?s e:p _:bracket1", "_:bracket1 e:q ?o"]


def test_an_expression_after_exists_joins_its_variables_too() -> None:
    columns = "(EXISTS { ?a ?p ?b } AS ?c) (CONCAT(?x, ?y) AS ?z)"
    (related,) = read_statements(f"SELECT {columns} {{ ?x ?p ?u . ?y ?q ?v }}").related
    assert set(map(str, related)) == {"x", "y", "z"}
