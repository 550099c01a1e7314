"""The check before storing: what a text may say, and what not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from dspy.utils import DummyLM

from reasoningbank.errors import EndpointError
from reasoningbank.memory import MemoryItem
from reasoningbank.memory.distill import Distiller, reworded
from reasoningbank.memory.experience import Draft
from reasoningbank.memory.grounding import Facts, Grounding, secret_in
from reasoningbank.schema import Schema
from reasoningbank.sparql import EndpointConfig, Result

from .attempts import MASS, attempt, by_turns

GOOD = "Reach the mass by up:sequence/up:mass."


def draft(content: str = GOOD, **rest: object) -> Draft:
    given = Draft("Mass of a protein", "Masses", content, "success", attempt(MASS, success=True))
    return replace(given, **rest)  # type: ignore[arg-type]


def codes(facts: Facts, given: Draft) -> list[str]:
    return [finding.code for finding in Grounding(facts).findings(given)]


@pytest.mark.parametrize(
    "given",
    [
        draft(),
        # an individual of the vocabulary is part of the schema
        draft("The rank is up:Taxonomic_Rank_Kingdom."),
        # a class without instances of its own, but with some below it
        draft("Every up:Annotation has a kind."),
        # the query's own resource
        draft("As for uniprotkb:P04637.", constants=frozenset({"uniprotkb:P04637"})),
        # what does not exist may be named where that is said
        draft("Use up:mass. There is no up:hasMass.", denied=frozenset({"up:hasMass"})),
        # a colon behind a name is prose
        draft("There are two of up:mass: one and another. At 10:30, note: nothing."),
    ],
)
def test_what_holds_is_stored(facts: Facts, given: Draft) -> None:
    assert codes(facts, given) == []


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (draft("Use up:Protein_Mass."), "unknown-name"),
        (draft("Use up:hasMass."), "unknown-name"),
        (draft(title="By up:hasMass"), "unknown-name"),
        (draft(description="For up:hasMass"), "unknown-name"),
        (draft("Use uniprot:Protein."), "unknown-prefix"),
        (draft("As for uniprotkb:P0000X."), "unknown-name"),
        (draft("It is uniprotkb:P05067."), "foreign-name"),
        (draft("Write up:hasMass.", denied=frozenset({"up:hasMass"})), "denied-name"),
        (draft("There is no up:mass.", denied=frozenset({"up:mass"})), "denied-name"),
        (draft("Not here. Use up:hasMass.", denied=frozenset({"up:hasMass"})), "denied-name"),
        (draft("Fill <<protein>>."), "unknown-slot"),
        (draft("", title=" "), "no-title"),
        (draft(""), "empty-item"),
        (draft("word " * 300), "too-long"),
        (draft("Send api_key=abcdef123456."), "secret"),
        (draft("Ask http://127.0.0.1:7878/query."), "secret"),
        (draft(attempt(MASS).question, description=""), "only-question"),
    ],
)  # fmt: skip
def test_what_does_not_hold_is_found(facts: Facts, given: Draft, code: str) -> None:
    assert code in codes(facts, given)


def test_a_text_does_not_tell_what_the_attempt_found(facts: Facts) -> None:
    ran = by_turns(("I run it.", "sparql_query(query)", "Ref(…)"))
    given = draft("The mass is 43653.", experience=attempt(MASS, success=True, trajectory=ran))

    assert codes(facts, given) == ["answer"]
    assert codes(facts, replace(given, content="Not 1436530 but up:mass.")) == []


def test_a_property_in_place_of_a_class_is_rejected(facts: Facts, distiller: Distiller) -> None:
    distilled = distiller.distil([attempt("ASK { ?p a up:mass }", success=True)])

    assert distilled.rejected[0].code == "wrong-role"


def test_what_cannot_be_found_out_is_not_stored(
    vocabulary: Schema, endpoint: EndpointConfig
) -> None:
    def gone(query: str) -> Result:
        raise EndpointError("gone")

    facts = Facts(vocabulary, endpoint, gone)

    assert codes(facts, draft()) == []  # the vocabulary knows these
    assert codes(facts, draft("Use up:Made_Up.")) == ["unchecked-name"]


def test_a_skeleton_that_does_not_parse_is_rejected(facts: Facts) -> None:
    assert codes(facts, draft(probe="ASK {")) == ["bad-skeleton"]


def test_headers_of_the_endpoint_are_secrets(endpoint: EndpointConfig) -> None:
    secured = replace(endpoint, headers={"X-Access": "opensesame99"})

    assert secret_in("say opensesame99", secured) == "a password"
    assert secret_in("say open sesame", secured) == ""


@pytest.mark.parametrize(
    "text",
    [
        "sk-abcdefghijklmnopqrst",
        "Authorization: Basic dXNlcjpwYXNzd29yZA==",
        "https://me:word@e.org/sparql",
        "see /home/me/notes.txt",
        "-----BEGIN PRIVATE KEY-----",
        "http://192.168.0.7:8080/sparql",
        "SERVICE <http://10.1.2.3/sparql> { ?s ?p ?o }",
        "(see http://172.16.0.9).",
        "bolt://127.0.0.1:7687",
        "http://desk.local:7878/query",
        "http://localhost/query",
        "/work/notes.py",
        "open('/mnt/disk/x')",
        "/srv/x/y",
        "file:///home/anna/x",
        r"C:\Users\anna\x.py",
        "open('D:\\\\work\\\\x.py')",
    ],
)
def test_secrets_are_known_by_their_shape(text: str) -> None:
    assert secret_in(text)


@pytest.mark.parametrize(
    "text",
    [
        "the token of a query",
        "up:sequence/up:mass",
        "?p up:work/up:srv/up:name ?n . ?p ^:mnt/:x ?y",
        "http://purl.uniprot.org/core/Protein",
        "<http://e.org/work/srv/x> <https://e.org:8080/mnt/x/y>",
        "http://8.8.8.8/sparql http://local.example.org/q http://e/T http://[broken",
        r'FILTER(REGEX(?go, "^C:\\w+") && ?ec = "1.10.3.2")',
        "PREFIX file: <http://e.org/> ASK { file:a file:b/file:c ?d }",
    ],
)
def test_ordinary_text_is_not_a_secret(text: str) -> None:
    assert secret_in(text) == ""


@pytest.mark.parametrize("part", ["pattern", "question", "query"])
def test_no_part_that_is_kept_may_hold_a_secret(facts: Facts, part: str) -> None:
    hidden = {"pattern": "ASK { ?s ?p 'api_key=abcdef1234' }", part: "ASK {} # api_key=abcdef1234"}
    assert "secret" in codes(facts, draft(**{part: hidden[part]}))


def test_words_with_secrets_or_strange_names_are_not_taken(facts: Facts) -> None:
    given = draft(pattern="ASK { <<protein>> up:sequence/up:mass ?mass }")
    words = {
        "title": "Use up:hasMass instead",
        "applies": "Questions with api_key=abcdef1234",
        "steps": "1. Use <<taxon>> here",
    }

    assert reworded(DummyLM([words]), given, "m", Grounding(facts).of_text)[0] == given


def test_items_are_what_was_checked(distiller: Distiller) -> None:
    items = distiller.distil([attempt(MASS, success=True)]).items

    assert all(MemoryItem.from_json(item.to_json()) == item for item in items)
