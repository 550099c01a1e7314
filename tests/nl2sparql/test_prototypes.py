"""Patterns by embeddings: near questions, too few labels, the joint detector."""

from __future__ import annotations

import pytest

from reasoningbank.errors import UsageError
from reasoningbank.nl2sparql import Detected, JointDetector, PrototypeDetector

EMOTION = [
    "Which emotions does the word express?",
    "Quali emozioni evoca la parola?",
    "Find words that express an emotion",
    "Trova le parole che esprimono un'emozione",
]
COUNT = [
    "How many proteins are there?",
    "Quante proteine ci sono?",
    "What is the number of proteins?",
    "Il numero delle proteine",
]


@pytest.fixture(scope="module")
def detector() -> PrototypeDetector:
    labels = [{"EMOTION"}] * len(EMOTION) + [{"COUNT"}] * len(COUNT)
    return PrototypeDetector([*EMOTION, *COUNT], labels)


def test_questions_near_labelled_ones(detector: PrototypeDetector) -> None:
    for question, pattern in (
        ("Quali sono le emozioni espresse da questo lemma?", "EMOTION"),
        ("How many proteins does the cell have?", "COUNT"),
    ):
        found = detector.detect(question)
        assert [one.pattern for one in found] == [pattern]
        assert 0.6 <= found[0].score <= 1


def test_few_labels_make_no_prototype() -> None:
    detector = PrototypeDetector([*EMOTION, COUNT[0]], [{"A"}] * 4 + [{"B"}])
    assert detector.detect(COUNT[0]) == []


def test_labels_must_fit_the_questions() -> None:
    with pytest.raises(UsageError, match="1 questions with 0 labels"):
        PrototypeDetector(["a"], [])


def test_joint_asks_prototypes_where_rules_find_nothing() -> None:
    class Says:
        def __init__(self, *found: str) -> None:
            self.found = [Detected(name, 1.0) for name in found]

        def detect(self, question: str) -> list[Detected]:
            return self.found

    assert JointDetector(Says("A"), Says("B")).detect("?") == Says("A").found
    assert JointDetector(Says(), Says("B")).detect("?") == Says("B").found
