"""The client against a real Oxigraph: forms, bounds, prefixes, and whose fault a failure is."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode

from reasoningbank.errors import EndpointError, QueryError, UsageError
from reasoningbank.sparql import (
    BooleanResult,
    EndpointConfig,
    GraphResult,
    OxigraphServer,
    SPARQLClient,
    TableResult,
)

PREFIXES = {"": "http://e/"}
# Both keep an engine busy for longer than the second it has.
SLOW = "SELECT (COUNT(*) AS ?n) { ?a :value ?x . ?b :value ?y . ?c :value ?z }"
SLOW_ROWS = "SELECT * { ?a :value ?x . ?b :value ?y . ?c :value ?z FILTER(?x + ?y < ?z - 9999) }"


def test_each_form_has_its_result(client: SPARQLClient) -> None:
    table = client.query("SELECT ?t { ?t a :Tree } ORDER BY ?t")
    assert isinstance(table, TableResult)
    assert table.rows() == [(NamedNode("http://e/oak"),), (NamedNode("http://e/pine"),)]
    assert (table.source, table.truncated) == ("Trees", False)
    assert table.seconds > 0
    yes, no = client.query("ASK { :oak a :Tree }"), client.query("ASK { :oak a :Bush }")
    assert isinstance(yes, BooleanResult)
    assert isinstance(no, BooleanResult)
    assert (yes.value, no.value) == (True, False)
    graph = client.query("CONSTRUCT WHERE { :oak rdfs:label ?l }")
    assert isinstance(graph, GraphResult)
    assert {t.object for t in graph.triples()} == {
        Literal("oak", language="en"),
        Literal("Eiche", language="de"),
    }
    described = client.query("DESCRIBE :enzyme")
    assert isinstance(described, GraphResult)
    assert described.n_rows == 1


def test_the_default_graph_is_the_union_of_all_graphs(client: SPARQLClient) -> None:
    found = client.query("SELECT ?x { :oak :in ?x } ORDER BY ?x")
    assert isinstance(found, TableResult)
    # `:oak :in :forest` stands in two graphs and is one triple of the union.
    assert found.rows() == [(NamedNode("http://e/forest"),), (NamedNode("http://e/park"),)]
    by_graph = client.query("SELECT ?g { GRAPH ?g { :oak :in :forest } }")
    assert by_graph.n_rows == 2


def test_from_narrows_the_default_graph(client: SPARQLClient) -> None:
    assert client.query("SELECT ?x FROM :g1 { :oak :in ?x }").n_rows == 1
    assert client.query("SELECT ?x FROM NAMED :g2 { GRAPH ?g { :oak :in ?x } }").n_rows == 2


def test_without_the_union_patterns_see_the_default_graph_alone(data: Path) -> None:
    with OxigraphServer([data], union_default_graph=False) as server:
        client = SPARQLClient(EndpointConfig(server.url, prefixes=PREFIXES))
        assert client.query("SELECT ?x { :oak :in ?x }").n_rows == 0
        assert client.query("SELECT ?x { ?x a :Tree }").n_rows == 2


def test_dotted_names_reach_oxigraph(client: SPARQLClient) -> None:
    assert client.query("SELECT ?s { ?s :class ec:1.1.1.1 }").n_rows == 1


def test_a_service_clause_with_the_public_address_reaches_the_loopback_one(
    client: SPARQLClient,
) -> None:
    query = "SELECT ?t { SERVICE <https://trees.example/sparql/> { ?t a :Tree } }"
    assert client.query(query).n_rows == 2


def test_a_service_elsewhere_is_refused_on_loopback(client: SPARQLClient) -> None:
    with pytest.raises(QueryError, match="not among the allowed"):
        client.query("SELECT * { SERVICE <http://127.0.0.1:9/x> { ?s ?p ?o } }")


@pytest.mark.parametrize(
    ("max_rows", "n", "truncated"), [(1, 1, True), (2, 2, False), (3, 2, False)]
)
def test_truncation_is_exact(client: SPARQLClient, max_rows: int, n: int, truncated: bool) -> None:
    found = client.query("SELECT ?t { ?t a :Tree }", max_rows=max_rows)
    assert (found.n_rows, found.truncated) == (n, truncated)
    prepared = client.prepare("SELECT ?t { ?t a :Tree }", limit=max_rows)
    found = client.query(prepared)
    assert (found.n_rows, found.truncated) == (n, truncated)
    graph = client.query("CONSTRUCT WHERE { ?t a :Tree }", max_rows=max_rows)
    assert (graph.n_rows, graph.truncated) == (n, truncated)


def test_an_authors_own_limit_is_no_truncation(client: SPARQLClient) -> None:
    found = client.query("SELECT ?t { ?t a :Tree } LIMIT 1")
    assert (found.n_rows, found.truncated) == (1, False)


def test_bytes_are_bounded(config: EndpointConfig, server: OxigraphServer) -> None:
    small = EndpointConfig(server.url, max_bytes=100_000)
    with SPARQLClient(small) as client:
        cross = "{ ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }"
        table = client.query(f"SELECT * {cross}", max_rows=1_000_000)
        assert isinstance(table, TableResult)
        assert table.truncated
        assert 0 < table.n_rows < 5_000
        assert len(table.rows()) == table.n_rows
        graph = client.query(f"CONSTRUCT {{ ?a ?e ?i }} {cross}", max_rows=1_000_000)
        assert graph.truncated


@pytest.mark.parametrize(
    "query",
    [SLOW, SLOW_ROWS, f"CONSTRUCT {{ ?s :n ?n }} {{ ?s a :Tree . {{ {SLOW} }} }}"],
)
def test_a_query_the_server_cancels_is_a_timeout_in_every_format(
    server: OxigraphServer, query: str
) -> None:
    for tsv in (True, False):
        with (
            SPARQLClient(EndpointConfig(server.url, "T", tsv=tsv, prefixes=PREFIXES)) as client,
            pytest.raises(QueryError, match=r"T: the query timed out \(the engine says: .*LIMIT"),
        ):
            client.query(query)


def test_the_clients_own_timeout_is_the_querys_fault_too(client: SPARQLClient) -> None:
    with pytest.raises(QueryError, match=r"timed out \(no answer within 0.3 s\)"):
        client.query(SLOW, timeout_s=0.3)


@pytest.mark.parametrize("tsv", [True, False])
def test_a_service_that_fails_is_the_querys_fault(server: OxigraphServer, tsv: bool) -> None:
    nowhere = server.url + "/nothing"
    config = EndpointConfig(server.url, services=(nowhere,), tsv=tsv)
    with SPARQLClient(config) as client:
        with pytest.raises(QueryError, match="404") as caught:
            client.query(f"SELECT * {{ SERVICE <{nowhere}> {{ ?s ?p ?o }} }}")
        assert "SERVICE SILENT" in caught.value.hint
        silent = client.query(f"SELECT * {{ SERVICE SILENT <{nowhere}> {{ ?s ?p ?o }} }}")
        assert silent.n_rows == 1


def test_an_engines_complaint_is_placed_in_the_authors_lines(client: SPARQLClient) -> None:
    with pytest.raises(QueryError) as caught:
        client.query("SELECT ?t (COUNT(?l) AS ?n)\n{ ?t rdfs:label ?l }")
    assert caught.value.where.startswith("line 2,")
    assert "GROUP BY" in caught.value.hint


def test_an_update_never_leaves(client: SPARQLClient) -> None:
    with pytest.raises(QueryError, match="update"):
        client.query("DELETE WHERE { ?s ?p ?o }")
    assert client.query("ASK { :oak a :Tree }") != BooleanResult(False)


def test_nobody_at_the_address_is_an_endpoint_error() -> None:
    with (
        SPARQLClient(EndpointConfig("http://127.0.0.1:9/sparql")) as client,
        pytest.raises(EndpointError, match=r"127.0.0.1:9/sparql: no connection: .*refused"),
    ):
        client.query("ASK {}")


def test_a_closed_client_says_so(config: EndpointConfig) -> None:
    client = SPARQLClient(config)
    client.close()
    with pytest.raises(UsageError, match="closed"):
        client.query("ASK {}")


def test_only_addresses_of_the_endpoint_are_fetched(client: SPARQLClient) -> None:
    for address in ("http://127.0.0.1:9/", "https://example.org/", "file:///etc/passwd", "//x/y"):
        with pytest.raises(UsageError, match="not an address of this endpoint"):
            client.fetch(address, "*/*")


@pytest.mark.parametrize(
    "wrong",
    [
        {"url": "file:///etc/passwd"},
        {"url": "example.org/sparql"},
        {"query_url": "ftp://example.org/"},
        {"max_rows": 0},
        {"timeout_s": 0},
        {"timeout_s": float("nan")},
        {"min_interval_s": -1},
        {"headers": {"Authorization": "secret\r\nX: y"}},
    ],
)
def test_a_wrong_setting_is_one_clear_line(wrong: dict[str, object]) -> None:
    settings = {"url": "https://example.org/sparql", **wrong}
    with pytest.raises(UsageError) as caught:
        EndpointConfig(**settings)  # type: ignore[arg-type]
    assert "EndpointConfig" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_headers_stay_out_of_the_repr() -> None:
    config = EndpointConfig("https://example.org/", headers={"Authorization": "s3cret"})
    assert "s3cret" not in repr(config)
