"""The client of an endpoint, and its cache."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode

from reasoningbank.cache import DiskCache
from reasoningbank.errors import EndpointError, QueryError, UsageError
from reasoningbank.sparql import (
    BooleanResult,
    EndpointConfig,
    GraphResult,
    OxigraphServer,
    SPARQLClient,
    TableResult,
    client,
)
from reasoningbank.sparql.results import AnswerCache

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


def test_an_authors_own_limit_is_not_a_truncation(client: SPARQLClient) -> None:
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


QUERIES = (
    "SELECT ?s ?h WHERE { ?s t:height ?h } ORDER BY ?h",
    "ASK { t:oak t:near t:pine }",
    "CONSTRUCT { ?s t:high true } WHERE { ?s t:height ?h }",
    "SELECT * WHERE { t:nothing ?p ?o }",
    "SELECT (1 AS ?n) WHERE {}",
)


@pytest.fixture
def public(
    trees: EndpointConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> EndpointConfig:
    """The trees with a cache, taken for an endpoint elsewhere."""
    monkeypatch.setattr(client, "is_loopback", lambda _: False)
    return replace(trees, cache=tmp_path / "deep" / "answers.sqlite")


def test_a_kept_answer_is_the_answer(public: EndpointConfig) -> None:
    with SPARQLClient(public) as asking:
        first = [asking.query(query) for query in QUERIES]
    gone = replace(public, name="Kept")
    with SPARQLClient(gone) as kept:
        kept.close()
        again = [kept.query(query) for query in QUERIES]
    for one, other in zip(first, again, strict=True):
        assert type(one) is type(other)
        assert (one.n_rows, one.truncated) == (other.n_rows, other.truncated)
        assert other.source == "Kept"
        if hasattr(one, "rows"):
            assert one.rows() == other.rows()  # type: ignore[union-attr]
        else:
            assert one.value == other.value  # type: ignore[union-attr]


def test_other_questions_and_other_bounds_are_asked(public: EndpointConfig) -> None:
    with SPARQLClient(public) as asking:
        asking.query(QUERIES[0])
        asking.close()
        with pytest.raises(UsageError, match="closed"):
            asking.query(QUERIES[0], max_rows=1)
        with pytest.raises(UsageError, match="closed"):
            asking.query("ASK { t:oak t:near t:moss }")


def test_old_answers_are_asked_for_anew(public: EndpointConfig) -> None:
    with SPARQLClient(public) as asking:
        asking.query(QUERIES[0])
    with SPARQLClient(replace(public, cache_age_s=0)) as asking:
        asking.close()
        with pytest.raises(UsageError, match="closed"):
            asking.query(QUERIES[0])


def test_failures_are_not_kept(public: EndpointConfig) -> None:
    dead = replace(public, query_url="http://127.0.0.1:9/sparql")
    for _ in range(2):
        with SPARQLClient(dead) as asking, pytest.raises(Exception, match="no connection"):
            asking.query(QUERIES[0])


def test_an_endpoint_on_loopback_is_never_cached(trees: EndpointConfig, tmp_path: Path) -> None:
    file = tmp_path / "answers.sqlite"
    with SPARQLClient(replace(trees, cache=file)) as asking:
        asking.query(QUERIES[0])
    assert not file.exists()


def test_equal_content_is_stored_once(public: EndpointConfig) -> None:
    with SPARQLClient(public) as asking:
        for number in range(5):
            asking.query(f"ASK {{ t:oak t:near t:pine }} # {number}")
    assert public.cache is not None
    with contextlib.closing(sqlite3.connect(public.cache)) as database:
        # Five answers, and their one content.
        assert database.execute("SELECT count(*) FROM entries").fetchone() == (6,)


def test_threads_share_it(public: EndpointConfig) -> None:
    failures: list[BaseException] = []

    def ask(number: int) -> None:
        try:
            with SPARQLClient(public) as asking:
                for at in range(5):
                    asking.query(f"SELECT ?s {{ ?s t:height ?h }} LIMIT {(number + at) % 7 + 1}")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_file_that_is_not_a_cache_is_refused_and_kept(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("my notes, not a database, and longer than a header " * 40)
    before = file.read_bytes()
    with pytest.raises(UsageError, match="cannot be opened"):
        AnswerCache(DiskCache.shared(file, required=True))
    assert file.read_bytes() == before


def test_a_damaged_cache_is_set_aside_and_begun_anew(
    public: EndpointConfig, caplog: pytest.LogCaptureFixture
) -> None:
    file = public.cache
    assert file is not None
    file.parent.mkdir()
    disk = DiskCache(file, required=True)
    kept = AnswerCache(disk)
    kept.put("k", BooleanResult(True))
    disk.close()
    for damage in (file.read_bytes()[:4_096], b"garbage" * 3_000):
        file.write_bytes(damage)
        disk = DiskCache(file, required=True)
        again = AnswerCache(disk)
        assert again.get("k", max_age_s=60) is None
        again.put("k", BooleanResult(True))
        assert again.get("k", max_age_s=60) == BooleanResult(True)
        disk.close()
        assert file.with_name("answers.sqlite.damaged").read_bytes() == damage
    assert caplog.text.count("renamed to answers.sqlite.damaged and started anew") == 2


@pytest.mark.parametrize(
    "poison",
    [
        "UPDATE entries SET value = x'00'",
        "UPDATE entries SET value = substr(value, 1, 40)",
        "UPDATE entries SET key = key || 'x' WHERE length(value) > 200",
        "DELETE FROM entries WHERE length(value) > 200",
    ],
)
def test_what_is_not_what_was_kept_is_asked_for_anew(public: EndpointConfig, poison: str) -> None:
    with SPARQLClient(public) as asking:
        right = asking.query(QUERIES[0])
        assert public.cache is not None
        with contextlib.closing(sqlite3.connect(public.cache)) as other, other:
            other.execute(poison)
        assert asking.query(QUERIES[0]).rows() == right.rows()  # type: ignore[union-attr]
        asking.close()
        kept = asking.query(QUERIES[0])
    assert kept.rows() == right.rows()  # type: ignore[union-attr]
