"""Memory items: named by what they say, kept without loss, merged without counting twice."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings

from reasoningbank.errors import UsageError
from reasoningbank.memory import Counters, MemoryItem, Provenance, Scope, Turn

from .coded import raises
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
    ("change", "code", "field"),
    [
        ({"src": "rumour"}, "unknown-source", None),
        ({"status": "lost"}, "unknown-status", None),
        ({"title": " "}, "empty-item", None),
        ({"content": "", "pattern": " "}, "empty-item", None),
        ({"content": "changed by hand"}, "item-changed", None),
        ({"scope": 3}, "bad-item", "scope"),
        ({"counters": {"wins": 1}}, "bad-item", "counters.wins"),
        ({"turns": ["x"]}, "bad-item", "turns.0"),
        ({"extra": 1}, "bad-item", "extra"),
        ({"title": None}, "bad-item", "title"),
        ({"provenance": ["x"]}, "bad-item", "provenance"),
        ({"superseded_by": 3}, "bad-item", "superseded_by"),
        ({"tags": "abc"}, "bad-item", "tags"),
        ({"tags": ["a", 1]}, "bad-item", "tags.1"),
        ({"provenance": {"task": 3}}, "bad-item", "provenance.task"),
        ({"turns": [{"reasoning": "", "code": []}]}, "bad-item", "turns.0.code"),
        ({"turns": [{"reasoning": ""}]}, "bad-item", "turns.0.code"),
        ({"counters": {"hurt": "1"}}, "bad-item", "counters.hurt"),
        ({"counters": {"hurt": -1}}, "bad-item", "counters.hurt"),
        ({"counters": {"hurt": True}}, "bad-item", "counters.hurt"),
    ],
)
def test_a_bad_item_is_refused(change: dict[str, object], code: str, field: str | None) -> None:
    with raises(UsageError, code, field=field):
        MemoryItem.from_json({**ITEM.to_json(), **change})


def test_a_missing_field_is_named() -> None:
    with raises(UsageError, "bad-item", field="title") as raised:
        MemoryItem.from_json({"description": "d", "content": "c", "src": "seed"})
    assert str(raised.value) == "not a memory item: title: Field required"
