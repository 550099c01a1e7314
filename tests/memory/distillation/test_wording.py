"""A model's words for a lesson: taken where they hold, and never believed."""

from __future__ import annotations

import json
from typing import Any

import dspy
import pytest
from dspy.utils import DummyLM
from dspy.utils.exceptions import ContextWindowExceededError, LMServerError

from reasoningbank.corpus import Pack
from reasoningbank.errors import ModelError
from reasoningbank.memory import MemoryItem
from reasoningbank.memory.distill import Distiller
from reasoningbank.schema import Schema
from reasoningbank.sparql import EndpointConfig

from .attempts import MASS, attempt

SAID = {
    "title": "Molecular mass of a protein",
    "applies": "Questions for the mass of a given protein.",
    "steps": "1. Go from <<protein>> to its sequence by up:sequence.\n2. Read up:mass there.",
}


class Scripted(DummyLM):  # type: ignore[misc]
    """Gives scripted replies, and keeps what it was asked."""

    def __init__(self, *replies: dict[str, str]) -> None:
        super().__init__(list(replies))

    @property
    def asked(self) -> list[str]:
        return [json.dumps(entry["messages"], ensure_ascii=False) for entry in self.history]


class Failing(dspy.LM):  # type: ignore[misc]
    """Fails in the same way at every call."""

    def __init__(self, error: Exception) -> None:
        super().__init__("openai/failing", cache=False)
        self._error = error

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise self._error


@pytest.fixture
def worded(vocabulary: Schema, endpoint: EndpointConfig, pack: Pack) -> Any:
    """Return what distils with a scripted model."""

    def make(lm: Any) -> Distiller:
        return Distiller(
            vocabulary=vocabulary, endpoint=endpoint, pack=pack, lm=lm, author="lm:scripted"
        )

    return make


@pytest.fixture(scope="module")
def plain(distiller: Distiller) -> MemoryItem:
    """The item in the rules' words."""
    (item,) = distiller.distil([attempt(MASS, success=True)]).items
    return item


def test_words_that_hold_are_taken(worded: Any, plain: MemoryItem) -> None:
    distilled = worded(Scripted(SAID)).distil([attempt(MASS, success=True)])
    (item,) = distilled.items

    assert item.title == SAID["title"]
    assert item.description == SAID["applies"]
    assert item.content.startswith(SAID["steps"])
    assert "<<protein>> = uniprotkb:P04637" in item.content
    assert item.pattern == plain.pattern
    assert item.provenance.author == "lm:scripted"
    assert distilled.usage.lm_calls == 1


@pytest.mark.parametrize(
    "said",
    [
        {"title": "", "applies": "", "steps": ""},
        {"title": "By up:hasMass", "applies": "For up:hasMass only.", "steps": "See up:hasMass."},
        {"title": "x" * 91, "applies": "y" * 201, "steps": "z" * 401},
        dict.fromkeys(("title", "applies", "steps"), "As uniprotkb:P05067 is."),
        dict.fromkeys(("title", "applies", "steps"), "Use uniprot:mass here."),
        dict.fromkeys(("title", "applies", "steps"), attempt(MASS).question),
    ],
)  # fmt: skip
def test_words_that_do_not_hold_leave_the_rules_words(
    worded: Any, plain: MemoryItem, said: dict[str, str]
) -> None:
    (item,) = worded(Scripted(said)).distil([attempt(MASS, success=True)]).items

    assert item == plain


def test_each_field_is_checked_by_itself(worded: Any, plain: MemoryItem) -> None:
    said = SAID | {"steps": "1. Use up:hasMass."}
    (item,) = worded(Scripted(said)).distil([attempt(MASS, success=True)]).items

    assert (item.title, item.content) == (SAID["title"], plain.content)


def test_a_reply_without_all_fields_is_used_as_far_as_it_goes(worded: Any) -> None:
    lm = DummyLM([{"title": SAID["title"]}])
    (item,) = worded(lm).distil([attempt(MASS, success=True)]).items

    assert item.title == SAID["title"]


def test_one_short_call_a_task(worded: Any) -> None:
    lm = Scripted(SAID, SAID)
    wrong = attempt("SELECT ?m { uniprotkb:P04637 up:sequence/up:hasMass ?m }", rows=0)
    distilled = worded(lm).distil([attempt(MASS, success=True), wrong, wrong])

    assert len(lm.asked) == 1
    assert len(lm.asked[0]) < 4_500
    assert {item.src for item in distilled.items} == {"success", "failure", "contrast"}
    assert [item.provenance.author for item in distilled.items].count("lm:scripted") == 1


def test_a_pitfall_keeps_what_the_rules_say_does_not_exist(worded: Any) -> None:
    said = {
        "title": "Never write up:hasMolecularMass",
        "applies": "Questions for the mass of proteins.",
        "steps": "1. Write up:hasMolecularMass.",
    }
    wrong = attempt("SELECT ?m { ?p a up:Protein ; up:hasMolecularMass ?m }", rows=0)
    item = worded(Scripted(said)).distil([wrong]).items[0]

    assert item.title == "molecular mass: up:sequence/up:mass"
    assert item.description == "Questions for the mass of proteins."
    assert "There is no property up:hasMolecularMass." in item.content


def test_the_static_part_of_the_prompt_comes_first(worded: Any) -> None:
    first, second = Scripted(SAID), Scripted(SAID)
    worded(first).distil([attempt(MASS, success=True)])
    worded(second).distil([attempt(MASS, success=True, question="Of what mass is P04637?")])
    (one,), (other,) = first.asked, second.asked

    same = next(at for at, pair in enumerate(zip(one, other, strict=False)) if len(set(pair)) > 1)
    assert same > 0.5 * len(one)


def test_nothing_is_asked_where_there_is_nothing_to_word(worded: Any) -> None:
    lm = Scripted()

    assert not worded(lm).distil([attempt(None, success=True)]).items
    assert not lm.asked


def test_an_unreachable_model_is_an_error(worded: Any) -> None:
    lm = Failing(LMServerError("down", model="m"))

    with pytest.raises(ModelError):
        worded(lm).distil([attempt(MASS, success=True)])


def test_a_context_that_is_too_small_leaves_the_rules_words(worded: Any, plain: MemoryItem) -> None:
    lm = Failing(ContextWindowExceededError(model="m", message="full"))

    assert worded(lm).distil([attempt(MASS, success=True)]).items == (plain,)
