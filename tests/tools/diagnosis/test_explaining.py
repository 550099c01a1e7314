"""What is wrong with a query, in one call, at a real endpoint."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reasoningbank.sparql import EndpointConfig, SPARQLClient
from reasoningbank.tools import Vocabulary
from reasoningbank.tools.diagnosis import explain_query


@pytest.fixture
def client(trees: EndpointConfig) -> Iterator[SPARQLClient]:
    with SPARQLClient(trees) as opened:
        yield opened


@pytest.mark.parametrize(
    ("query", "empty", "said"),
    [
        ("SELECT ?x { ?x t:hight ?h }", True, "t:height"),
        ("SELECT ?x { ?x t:height 99 }", True, "t:height"),
        ("SELECT ?x { ?x a t:Tree OPTIONAL { ?x t:hight ?h } }", False, "t:height"),
        ("SELECT ?x { ?x tree:height ?h }", False, "t:height"),
    ],
)
def test_a_query_is_told_what_is_wrong_with_it(
    client: SPARQLClient, query: str, empty: bool, said: str
) -> None:
    names = Vocabulary.of(client.config)
    assert said in "\n".join(explain_query(query, client, names, empty=empty))


def test_a_sound_query_and_an_endpoint_unknown_are_told_nothing(client: SPARQLClient) -> None:
    names = Vocabulary.of(client.config)
    assert explain_query("SELECT ?x { ?x t:height ?h }", client, names, empty=False) == ()
    assert explain_query("SELECT ?x { ?x t:hight ?h }", client, None, empty=True) == ()
