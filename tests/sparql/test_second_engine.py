"""The client against Virtuoso, whose answers differ from Oxigraph's wherever they can."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from engines import VirtuosoServer
from pyoxigraph import Literal, NamedNode

from reasoningbank.errors import QueryError
from reasoningbank.sparql import (
    BooleanResult,
    EndpointConfig,
    GraphResult,
    SPARQLClient,
    TableResult,
    compact,
)

UP = "http://purl.uniprot.org/core/"
HUMAN = "http://purl.uniprot.org/taxonomy/9606"


@pytest.fixture(scope="module")
def other(virtuoso: VirtuosoServer) -> Iterator[SPARQLClient]:
    config = EndpointConfig(virtuoso.url, "Second", prefixes={"up": UP}, retries=0)
    with SPARQLClient(config) as client:
        yield client


def test_rows_keep_datatypes_and_languages(other: SPARQLClient) -> None:
    found = other.query(
        f"SELECT ?name ?rank ?old {{ <{HUMAN}> up:scientificName ?name ; a ?rank . "
        "?p a up:Protein ; up:reviewed ?old FILTER(?rank = up:Taxon) } LIMIT 1"
    )
    assert isinstance(found, TableResult)
    name, rank, reviewed = found.rows()[0]
    assert (name, rank) == (Literal("Homo sapiens"), NamedNode(f"{UP}Taxon"))
    assert compact(reviewed, {}) in (True, False)


@pytest.mark.parametrize(("name", "answer"), [("Protein", True), ("Nonsense", False)])
def test_an_ask_that_is_answered_with_a_table_is_a_boolean(
    other: SPARQLClient, name: str, answer: bool
) -> None:
    found = other.query(f"ASK {{ ?s a up:{name} }}")
    assert isinstance(found, BooleanResult)
    assert found.value is answer


@pytest.mark.parametrize("query", ["CONSTRUCT WHERE { ?s up:mnemonic ?o }", f"DESCRIBE <{HUMAN}>"])
def test_graphs_are_graphs(other: SPARQLClient, query: str) -> None:
    found = other.query(query)
    assert isinstance(found, GraphResult)
    assert found.n_rows > 10


def test_a_refused_costly_query_is_the_querys_fault(other: SPARQLClient) -> None:
    with pytest.raises(QueryError, match=r"estimates the query as too costly.*more selective"):
        other.query("SELECT DISTINCT ?a ?e { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT (1/0 AS ?x) {}", "rejects the query: .*Division by 0"),
        ("SELECT * { ?s rdfs:subClassOf+ ?o }", "name the start or the end of the path"),
        ("SELECT (<bif:nosuch>(1) AS ?x) {}", "rejects the query"),
    ],
)
def test_what_the_engine_cannot_do_is_recoverable(
    other: SPARQLClient, query: str, said: str
) -> None:
    with pytest.raises(QueryError, match=said) as caught:
        other.query(query)
    # The engine repeats the query with its own additions, which would mislead.
    assert "big-data-const" not in str(caught.value)


def test_the_engines_own_limit_is_reported(
    virtuoso: VirtuosoServer, small_uniprot_file: Path
) -> None:
    with VirtuosoServer([small_uniprot_file], max_rows=20) as server:
        client = SPARQLClient(EndpointConfig(server.url, "Second"))
        cut = client.query("SELECT * { ?s a ?class }")
        assert (cut.n_rows, cut.truncated) == (20, True)
        whole = client.query("SELECT * { ?s a ?class } LIMIT 20")
        assert (whole.n_rows, whole.truncated) == (20, False)


def test_fetching_again_changes_nothing_and_says_where_it_is(virtuoso: VirtuosoServer) -> None:
    script = Path(__file__).parents[2] / "scripts" / "fetch_virtuoso.py"
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert done.stdout.startswith("Virtuoso is there: Version 7")


def test_where_there_is_no_apt_one_line_says_so(tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "scripts" / "fetch_virtuoso.py"
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PATH": str(tmp_path), "REASONINGBANK_CACHE": str(tmp_path / "none")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "there is no apt-get" in done.stderr
    assert not (tmp_path / "none").exists()
