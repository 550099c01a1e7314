"""Paths in the data from a resource to the values of an answer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reasoningbank.schema.paths import paths_to
from reasoningbank.sparql import EndpointConfig, SPARQLClient, TableResult


@pytest.fixture(scope="module")
def client(sample: EndpointConfig) -> Iterator[SPARQLClient]:
    with SPARQLClient(sample) as made:
        yield made


def column(client: SPARQLClient, pattern: str) -> list[str]:
    found = client.query(f"SELECT DISTINCT ?v WHERE {{ {pattern} }}")
    assert isinstance(found, TableResult)
    return [str(row[0]) for row in found.rows()]


@pytest.mark.parametrize(
    ("start", "pattern"),
    [
        ("uniprotkb:P05067", "uniprotkb:P05067 up:mnemonic ?v"),
        ("uniprotkb:P05067", "uniprotkb:P05067 up:encodedBy/skos:altLabel ?v"),
        ("uniprotkb:P05067", "uniprotkb:P05067 up:annotation/up:disease/skos:prefLabel ?v"),
        ("taxon:10116", "?v up:organism taxon:10116"),
        ("taxon:10116", "?x1 up:organism taxon:10116 . ?x1 up:sequence/up:mass ?v"),
    ],
)
def test_the_path_of_a_query_is_found_from_its_answer(
    client: SPARQLClient, start: str, pattern: str
) -> None:
    values = column(client, pattern)
    found = paths_to(client, start, values)
    assert pattern in [one.pattern("v", client.config.namespaces) for one in found]
    assert found[0].reached == len(values)


def test_a_path_that_fits_better_comes_first(client: SPARQLClient) -> None:
    values = column(client, "?v up:organism taxon:10116")
    found = paths_to(client, "taxon:10116", values)
    differences = [abs(one.reached - len(values)) for one in found]
    assert differences == sorted(differences)


def test_what_nothing_leads_to_has_no_path(client: SPARQLClient) -> None:
    assert paths_to(client, "uniprotkb:P05067", ['"of no protein"'], most_hops=2) == ()
    assert paths_to(client, "uniprotkb:P05067", []) == ()
