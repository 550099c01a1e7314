"""Memory items: named by what they say, kept without loss, merged without counting twice."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings

from reasoningbank.errors import UsageError
from reasoningbank.memory import Counters, MemoryItem, Provenance, Scope, Turn

from .strategies import COUNTERS, ITEMS, PROVENANCES

ITEM = MemoryItem("Join by annotation", "Diseases", "Use up:annotation.", "success")


@settings(max_examples=200, deadline=None)
@given(ITEMS)
def test_json_loses_nothing(item: MemoryItem) -> None:
    text = json.dumps(item.to_json())
    again = MemoryItem.from_json(json.loads(text))
    assert again == item
    assert again.id == item.id == item.to_json()["id"]


@settings(max_examples=100, deadline=None)
@given(ITEMS, PROVENANCES, COUNTERS)
def test_the_id_is_of_what_it_says(item: MemoryItem, more: Provenance, counters: Counters) -> None:
    lived = replace(
        item, evidence=(more,), counters=counters, status="retired", superseded_by="x", tags=("t",)
    )
    assert lived.id == item.id
    assert len(item.id) == 16


@pytest.mark.parametrize(
    "other",
    [
        {"title": "Another"},
        {"description": "Another"},
        {"content": "Another"},
        {"src": "gold"},
        {"pattern": "ASK {}"},
        {"scope": Scope("uniprot")},
        {"question": "Which?"},
        {"query": "ASK {}"},
        {"turns": (Turn("why", "print(1)"),)},
    ],
)
def test_what_says_something_else_has_another_id(other: dict[str, object]) -> None:
    assert replace(ITEM, **other).id != ITEM.id  # type: ignore[arg-type]


@settings(max_examples=100, deadline=None)
@given(ITEMS, PROVENANCES)
def test_merging_keeps_every_experience_once(item: MemoryItem, more: Provenance) -> None:
    other = replace(item, provenance=more, evidence=(item.provenance,))
    merged = item.merged_with(other)
    assert merged.id == item.id
    assert merged.provenance == item.provenance
    assert set(merged.origins) == {*item.origins, more}
    assert merged.counters == item.counters + other.counters
    assert len(set(merged.evidence)) == len(merged.evidence)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"src": "rumour"}, "unknown source 'rumour'"),
        ({"status": "lost"}, "unknown status 'lost'"),
        ({"title": " "}, "needs a title"),
        ({"content": "", "pattern": " "}, "content or a pattern"),
        ({"scope": 3}, "no memory item"),
        ({"counters": {"wins": 1}}, "wins"),
        ({"turns": ["x"]}, "no memory item"),
        ({"extra": 1}, "unknown key 'extra'"),
        ({"content": "changed by hand"}, "was changed"),
        ({"title": None}, "no memory item"),
        ({"provenance": ["x"]}, "no memory item"),
        ({"description": 3}, "3 is no text"),
        ({"question": None}, "None is no text"),
        ({"superseded_by": 3}, "3 is no text"),
        ({"tags": "abc"}, "tags are a list"),
        ({"tags": [1]}, "1 is no text"),
        ({"provenance": {"task": 3}}, "3 is no text"),
        ({"turns": [{"reasoning": "", "code": []}]}, "is no text"),
        ({"counters": {"hurt": "1"}}, "'1' is no count of hurt"),
        ({"counters": {"hurt": -1}}, "-1 is no count of hurt"),
    ],
)
def test_what_is_no_item_is_told_in_one_line(change: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said) as told:
        MemoryItem.from_json({**ITEM.to_json(), **change})
    assert "\n" not in str(told.value)


def test_what_is_missing_is_told() -> None:
    with pytest.raises(UsageError, match="title"):
        MemoryItem.from_json({"description": "d", "content": "c", "src": "seed"})
