"""A question with slots in place of what it names."""

from __future__ import annotations

import pytest

from reasoningbank.memory.success import abstracted


@pytest.mark.parametrize(
    ("question", "mentions", "expected"),
    [
        (
            "Which names of Homo sapiens contain taxon?",
            [("taxon", "Homo sapiens"), ("text", "taxon")],
            "Which names of <<taxon>> contain <<text>>?",
        ),
        (
            "Is Homo sapiens a HOMO?",
            [("homo", "homo"), ("species", "Homo sapiens")],
            "Is <<species>> a <<homo>>?",
        ),
        (
            "Are there 100 of mass 100?",
            [("limit", "100"), ("mass", "100")],
            "Are there <<limit>> of mass <<limit>>?",
        ),
        ("Is it a.b or axb?", [("x", "a.b")], "Is it <<x>> or axb?"),
        ("What is it?", [("x", "")], "What is it?"),
    ],
)
def test_each_mention_becomes_its_slot(
    question: str, mentions: list[tuple[str, str]], expected: str
) -> None:
    assert abstracted(question, mentions) == expected
