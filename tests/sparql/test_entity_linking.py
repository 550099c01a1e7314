"""Linking: what a question names is found word for word in a real store, and nothing else is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reasoningbank.errors import QueryTimeoutError
from reasoningbank.sparql import (
    EndpointConfig,
    EntityLinker,
    EntityMention,
    OxigraphServer,
    SPARQLClient,
)

LONG = "Global delay, progressive ataxia, and elevated glutamine with low vision"
DATA = """
@prefix : <http://e/> .
@prefix ec: <http://ec/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:P10636 a :Protein ; :mnemonic "TAU" . :P05067 a :Protein .
ec:2.7.11.1 a :Enzyme ; rdfs:label "Kinase"@en , "Chinasi"@it .
:human a :Taxon ; :commonName "Human" ; rdfs:label "Homo sapiens" .
:leigh a :Disease ; rdfs:label "Leigh syndrome" ; rdfs:comment "Severe" .
:g1 a :Gene ; rdfs:label "HLA" . :g2 a :Gene ; rdfs:label "HLA" .
:long a :Disease ; rdfs:label "LONG" . :ataxia a :Disease ; rdfs:label "elevated glutamine" .
:syndrome a :Disease ; rdfs:label "syndrome" .
:nucleus a :Place ; rdfs:label "Nucleus" . :core a :Part ; rdfs:label "Nucleus" .
[] a :Place ; rdfs:label "Nowhere" .
""".replace("LONG", LONG)


@pytest.fixture(scope="module")
def linker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EntityLinker]:
    file: Path = tmp_path_factory.mktemp("data") / "named.ttl"
    file.write_text(DATA, encoding="utf-8")
    with OxigraphServer([file]) as server:
        config = EndpointConfig(
            "https://named.example/sparql/",
            prefixes={"e": "http://e/", "ec": "http://ec/", "none": "http://none/"},
            query_url=server.url,
            label_properties=("http://www.w3.org/2000/01/rdf-schema#label",),
        )
        with SPARQLClient(config) as client:
            yield EntityLinker(client, config, ("en", "it"))


@pytest.mark.parametrize(
    ("question", "linked"),
    [
        ("Is P10636 heavier than P05067?", "Is P10636 (e:P10636) heavier than P05067 (e:P05067)?"),
        ("Who has EC number 2.7.11.1?", "Who has EC number 2.7.11.1 (<http://ec/2.7.11.1>)?"),
        ("Which human genes are there?", "Which human (e:human) genes are there?"),
        # The longest name counts, and a name that a quotation encloses is linked behind it.
        ('Who has "Leigh syndrome"?', 'Who has "Leigh syndrome" (e:leigh)?'),
        ("Quali chinasi ci sono?", "Quali chinasi (<http://ec/2.7.11.1>) ci sono?"),
        # Diseases have long names, with commas in them.
        (
            f"Which genes play a part in {LONG}, and where?",
            f"Which genes play a part in {LONG} (e:long), and where?",
        ),
        # Two resources of different kinds are called so: either may be meant.
        ("What is in the nucleus?", "What is in the nucleus (e:core, e:nucleus)?"),
        # Not one of them, not a label, not there, no name, nothing at all.
        ("Which proteins of HLA?", "Which proteins of HLA?"),
        ("How severe is it?", "How severe is it?"),
        ("Where is P99999, Nowhere?", "Where is P99999, Nowhere?"),
        ("", ""),
    ],
)
def test_what_is_named_is_written_behind_its_words(
    linker: EntityLinker, question: str, linked: str
) -> None:
    assert linker.annotated(question) == linked


def test_a_question_is_searched_for_without_its_names(linker: EntityLinker) -> None:
    assert linker.generalized("Is P10636 of a human?") == "Is protein of a taxon?"


def test_a_mention_tells_its_class(linker: EntityLinker) -> None:
    assert linker.mentions("Is P10636 human?") == (
        EntityMention("P10636", "e:P10636", ("http://e/Protein",)),
        EntityMention("human", "e:human", ("http://e/Taxon",)),
    )


def test_an_odd_question_is_not_an_injection(linker: EntityLinker) -> None:
    odd = 'What of "} ; DROP \\ <x> 1> {" and e:2>?'
    assert linker.annotated(odd) == odd


class Failing(SPARQLClient):
    """Fails as many queries as asked, and counts all."""

    fails = 0
    asked = 0

    def query(self, *args: Any, **options: Any) -> Any:
        self.asked += 1
        if self.fails:
            self.fails -= 1
            raise QueryTimeoutError("the query timed out")
        return super().query(*args, **options)


def test_what_is_found_is_kept_and_what_failed_is_asked_again(linker: EntityLinker) -> None:
    config = linker._client.config
    question, half, whole = "Is P10636 human?", "Is P10636 (e:P10636) human?", ""
    with Failing(config) as client:
        again = EntityLinker(client, config, ("en",))
        client.fails = 2
        assert again.annotated(question) == question
        # Names failed; identifiers did not.
        client.fails = 1
        assert again.annotated(question) == half
        whole = again.annotated(question)
        assert whole == "Is P10636 (e:P10636) human (e:human)?"
        assert client.asked == 6
        assert again.annotated(question) == whole
        assert again.kinds(question) == {"http://e/Protein", "http://e/Taxon"}
        assert client.asked == 6


def test_an_address_with_dots_does_no_harm(linker: EntityLinker) -> None:
    assert linker.annotated("What of a/../P10636 and ./1?") == "What of a/../P10636 and ./1?"
