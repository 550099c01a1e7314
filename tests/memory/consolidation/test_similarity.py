"""Similar wordings, as the embedded model sees them, on labelled texts."""

from __future__ import annotations

from reasoningbank.memory import MemoryItem
from reasoningbank.memory.duplicates import NEAR, text_similarity
from reasoningbank.retrieval import open_embedder

from .wordings import WORDINGS

#: Of 14 rewordings, those that are recognized; the others stay two items.
RECOGNIZED = 4


def cosine(one: tuple[str, str, str], other: tuple[str, str, str]) -> float:
    items = [MemoryItem(*texts, src="failure") for texts in (one, other)]
    return text_similarity(open_embedder(), items[0], items[1:])[0]


def test_no_other_lesson_is_taken_for_the_same() -> None:
    others = [cosine(w.other, same) for w in WORDINGS for same in (w.lesson, w.reworded)]
    assert max(others) < NEAR


def test_some_rewordings_are_recognized() -> None:
    cosines = [cosine(w.lesson, w.reworded) for w in WORDINGS]
    assert sum(one >= NEAR for one in cosines) == RECOGNIZED
