"""The check before storing: what a text may say, and what not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reasoningbank.errors import EndpointError, QueryError
from reasoningbank.memory import MemoryItem
from reasoningbank.memory.distillation import Distiller, Draft, Grounding
from reasoningbank.memory.distillation.facts import Facts
from reasoningbank.memory.distillation.secrets import secret_in
from reasoningbank.memory.distillation.wording import Words, reworded
from reasoningbank.schema import Schema
from reasoningbank.sparql import EndpointConfig, Result

from .attempts import MASS, attempt, by_turns

GOOD = "Reach the mass by up:sequence/up:mass."


def draft(content: str = GOOD, **rest: object) -> Draft:
    given = Draft("Mass of a protein", "Masses", content, "success", attempt(MASS, success=True))
    return replace(given, **rest)  # type: ignore[arg-type]


def objections(facts: Facts, given: Draft) -> str:
    return "; ".join(Grounding(facts).objections(given, None))


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
    assert objections(facts, given) == ""


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (draft("Use up:Protein_Mass."), "names the class up:Protein_Mass, which the data lack"),
        (draft("Use up:hasMass."), "names the property up:hasMass, which the data lack"),
        (draft(title="By up:hasMass"), "names the property up:hasMass"),
        (draft(description="For up:hasMass"), "names the property up:hasMass"),
        (draft("Use uniprot:Protein."), "whose prefix is not known"),
        (draft("As for uniprotkb:P0000X."), "names the resource uniprotkb:P0000X, which the data"),
        (draft("It is uniprotkb:P05067."), "it may be an answer"),
        (draft("Write up:hasMass.", denied=frozenset({"up:hasMass"})), "without saying so"),
        (draft("There is no up:mass.", denied=frozenset({"up:mass"})), "not exist, and it does"),
        (draft("Not here. Use up:hasMass.", denied=frozenset({"up:hasMass"})), "without saying so"),
        (draft("Fill <<protein>>."), "<<protein>>, which is no slot"),
        (draft("", title=" "), "it has no title"),
        (draft(""), "it says nothing"),
        (draft("word " * 300), "its content has 1,500 characters, more than 1,200"),
        (draft("Send api_key=abcdef123456."), "holds a password"),
        (draft("Ask http://127.0.0.1:7878/query."), "holds an address of a machine"),
        (draft(attempt(MASS).question, description=""), "nothing but the question"),
    ],
)  # fmt: skip
def test_what_does_not_hold_is_told(facts: Facts, given: Draft, why: str) -> None:
    assert why in objections(facts, given)


def test_a_text_does_not_tell_what_the_attempt_found(facts: Facts) -> None:
    ran = by_turns(("I run it.", "sparql_query(query)", "Ref(…)"))
    given = draft("The mass is 43653.", experience=attempt(MASS, success=True, trajectory=ran))

    assert "tells what the attempt found: '43653'" in objections(facts, given)
    assert objections(facts, replace(given, content="Not 1436530 but up:mass.")) == ""


def test_a_class_that_stands_where_a_property_should(facts: Facts, distiller: Distiller) -> None:
    distilled = distiller.distil([attempt("ASK { ?p a up:mass }", success=True)])

    assert "property up:mass where a class stands" in distilled.rejected[0].reason


def test_what_cannot_be_found_out_is_not_stored(
    vocabulary: Schema, endpoint: EndpointConfig
) -> None:
    def gone(query: str) -> Result:
        raise EndpointError("gone")

    facts = Facts(vocabulary, endpoint, gone)

    assert objections(facts, draft()) == ""  # the vocabulary knows these
    assert "could not be found out" in objections(facts, draft("Use up:Made_Up."))


def test_a_skeleton_that_does_not_parse_is_told(facts: Facts) -> None:
    found = Grounding(facts).objections(draft(), QueryError("the query cannot be parsed"))

    assert found == ["its skeleton does not parse: the query cannot be parsed"]


def test_headers_of_the_endpoint_are_secrets(endpoint: EndpointConfig) -> None:
    guarded = replace(endpoint, headers={"X-Access": "opensesame99"})

    assert secret_in("say opensesame99", guarded) == "a password"
    assert secret_in("say open sesame", guarded) == ""


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
        "/work/main/notes.py",
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
def test_ordinary_text_is_no_secret(text: str) -> None:
    assert secret_in(text) == ""


@pytest.mark.parametrize("part", ["pattern", "question", "query"])
def test_no_part_that_is_kept_may_hold_a_secret(facts: Facts, part: str) -> None:
    hidden = {"pattern": "ASK { ?s ?p 'api_key=abcdef1234' }", part: "ASK {} # api_key=abcdef1234"}
    assert "holds " in objections(facts, draft(**{part: hidden[part]}))


def test_words_with_secrets_or_strange_names_are_not_taken(facts: Facts) -> None:
    given = draft(pattern="ASK { <<protein>> up:sequence/up:mass ?mass }")
    words = Words("Use up:hasMass instead", "Questions with api_key=abcdef1234", "1. Use <<taxon>>")

    assert reworded(given, words, "m", Grounding(facts).objections_to_text) == given


def test_items_are_what_was_checked(distiller: Distiller) -> None:
    items = distiller.distil([attempt(MASS, success=True)]).items

    assert all(MemoryItem.from_json(item.to_json()) == item for item in items)
