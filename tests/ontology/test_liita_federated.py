"""LiITA and CompL-it as served: SERVICE, shared addresses, what silently finds nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from liita_sample import DIALECT, PACK

from reasoningbank.corpus import load_pack, open_endpoint
from reasoningbank.sparql import EndpointConfig, SPARQLClient

COMPLIT = "https://klab.ilc.cnr.it/graphdb-compl-it/"
SERVICE = f"SERVICE <{COMPLIT}>"
EMOTION = "GRAPH <http://w3id.org/elita> { ?e elita:HasEmotion elita:Gioia }"
BOTH = (
    f"?a ontolex:canonicalForm/dcterms:isPartOf {DIALECT[0]} . "
    f"?b ontolex:canonicalForm/dcterms:isPartOf {DIALECT[1]} ."
)
CORPO = '?a ontolex:isSenseOf/rdfs:label "corpo"@it'
README = (PACK / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def endpoint() -> Iterator[EndpointConfig]:
    with open_endpoint(load_pack("liita")) as config:
        yield config


@pytest.fixture(scope="module")
def client(endpoint: EndpointConfig) -> Iterator[SPARQLClient]:
    with SPARQLClient(endpoint) as client:
        yield client


def column(client: SPARQLClient, query: str) -> set[str]:
    return {row[0].value for row in client.query(query).rows() if row[0] is not None}


@pytest.mark.parametrize("query", re.findall(r"```sparql\n(SELECT.*?)```", README, re.DOTALL))
def test_the_readme_s_queries_find_something(client: SPARQLClient, query: str) -> None:
    assert len(client.query(query).rows()) >= 5


def test_the_second_endpoint_can_be_asked_directly(endpoint: EndpointConfig) -> None:
    (other,) = endpoint.federated
    assert (other.source, other.url) == ("CompL-it", COMPLIT)
    with SPARQLClient(other) as client:
        query = 'SELECT ?d { ?w rdfs:label "pesca"@it ; ontolex:sense/skos:definition ?d }'
        assert len(client.query(query).rows()) == 2


@pytest.mark.parametrize("address", [COMPLIT, COMPLIT.rstrip("/")])
def test_words_of_the_service_go_on_outside(client: SPARQLClient, address: str) -> None:
    query = f"""SELECT ?sicilian {{
        SERVICE <{address}> {{
            ?animale ontolex:isSenseOf/rdfs:label "animale"@it .
            ?sense lexinfo:hyponym+ ?animale ; ontolex:isSenseOf ?word .
        }}
        ?word ontolex:canonicalForm ?lemma .
        ?entry ontolex:canonicalForm ?lemma ; vartrans:translatableAs/ontolex:canonicalForm ?there .
        ?there dcterms:isPartOf {DIALECT[0]} ; ontolex:writtenRep ?sicilian }}"""
    assert column(client, query) >= {"cani", "gattu", "vurpi", "aceddu", "furmìcula"}


def test_a_filter_inside_the_service_and_the_lemma_outside(client: SPARQLClient) -> None:
    query = f"""SELECT ?word {{
        {SERVICE} {{ ?w ontolex:canonicalForm/ontolex:writtenRep ?word ;
            ontolex:sense/skos:definition ?d FILTER (REGEX(STR(?d), "^strumento musicale")) }}
        ?w ontolex:canonicalForm ?lemma .
        GRAPH <http://liita.it/data> {{ ?lemma lila:hasGender lila:feminine }} }}"""
    assert column(client, query) == {"chitarra", "tromba"}


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        # One entry for what two resources say.
        (
            f"?e ontolex:canonicalForm ?x . {EMOTION} "
            "?p ontolex:canonicalForm ?x ; marl:hasPolarityValue ?v",
            f"?e ontolex:canonicalForm ?x . {EMOTION} ?e marl:hasPolarityValue ?v",
        ),
        (
            f"?s ontolex:canonicalForm ?x ; vartrans:translatableAs ?a . {BOTH} "
            "?p ontolex:canonicalForm ?x ; vartrans:translatableAs ?b",
            f"?s ontolex:canonicalForm ?x ; vartrans:translatableAs ?a, ?b . {BOTH}",
        ),
        # A property in another graph than its own.
        (EMOTION.replace("?e", "?x"), EMOTION.replace("w3id.org/elita>", "liita.it/data>")),
        (
            "?x marl:hasPolarityValue ?v",
            "GRAPH <http://w3id.org/elita> { ?x marl:hasPolarityValue ?v }",
        ),
        # Emotions of lemmas, translations between lemmas, and translations back.
        (
            "?e ontolex:canonicalForm ?x ; elita:HasEmotion ?m",
            "?x a lila:Lemma ; elita:HasEmotion ?m",
        ),
        (
            "?x vartrans:translatableAs ?d",
            "?x a lila:Lemma ; vartrans:translatableAs ?d",
        ),
        (
            f"?x vartrans:translatableAs/ontolex:canonicalForm/dcterms:isPartOf {DIALECT[1]}",
            f"?x ^vartrans:translatableAs/ontolex:canonicalForm/dcterms:isPartOf {DIALECT[1]}",
        ),
        # Text without its tag, senses without SERVICE, a part of speech of the other vocabulary.
        (f'{SERVICE} {{ ?x rdfs:label "cane"@it }}', f'{SERVICE} {{ ?x rdfs:label "cane" }}'),
        (f"{SERVICE} {{ ?x ontolex:sense ?s }}", "?x ontolex:sense ?s"),
        ("?x lila:hasPOS lila:noun", "?x lila:hasPOS lexinfo:noun"),
        # The usual reading of a relation.
        (
            f'{SERVICE} {{ ?a ontolex:isSenseOf/rdfs:label "gatto"@it ; lexinfo:hyponym ?x }}',
            f'{SERVICE} {{ ?a ontolex:isSenseOf/rdfs:label "gatto"@it ; lexinfo:hypernym ?x }}',
        ),
        (
            f"{SERVICE} {{ {CORPO} . ?x lexinfo:partMeronym ?a }}",
            f"{SERVICE} {{ {CORPO} ; lexinfo:partMeronym ?x }}",
        ),
    ],
)
def test_what_is_wrong_finds_nothing(client: SPARQLClient, right: str, wrong: str) -> None:
    assert column(client, f"SELECT ?x {{ {right} }}")
    assert not column(client, f"SELECT ?x {{ {wrong} }}")
