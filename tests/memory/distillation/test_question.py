"""A question with slots in place of what it names."""

from __future__ import annotations

import pytest

from reasoningbank.memory.skeleton import Slot
from reasoningbank.memory.success import Mention, abstracted


def mention(name: str, said: str) -> Mention:
    return Mention(Slot(name, "text", f'"{said}"'), said)


@pytest.mark.parametrize(
    ("question", "mentions", "expected"),
    [
        (
            "Which names of Homo sapiens contain taxon?",
            [mention("taxon", "Homo sapiens"), mention("text", "taxon")],
            "Which names of <<taxon>> contain <<text>>?",
        ),
        (
            "Is Homo sapiens a HOMO?",
            [mention("homo", "homo"), mention("species", "Homo sapiens")],
            "Is <<species>> a <<homo>>?",
        ),
        (
            "Are there 100 of mass 100?",
            [mention("limit", "100"), mention("mass", "100")],
            "Are there <<limit>> of mass <<limit>>?",
        ),
        ("Is it a.b or axb?", [mention("x", "a.b")], "Is it <<x>> or axb?"),
        ("What is it?", [mention("x", "")], "What is it?"),
    ],
)
def test_each_mention_becomes_its_slot(
    question: str, mentions: list[Mention], expected: str
) -> None:
    assert abstracted(question, mentions) == expected
