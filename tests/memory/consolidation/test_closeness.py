"""Near words, as the embedded model sees them, on labelled wordings."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from reasoningbank.memory import MemoryItem
from reasoningbank.memory.duplicates import NEAR, TextSimilarity
from reasoningbank.retrieval import Vectors, open_embedder

from .wordings import WORDINGS

#: Of 14 rewordings, those that are recognised; the others stay two items.
RECOGNISED = 4


@pytest.fixture(scope="module")
def closeness() -> TextSimilarity:
    return TextSimilarity(open_embedder())


def item(texts: tuple[str, str, str]) -> MemoryItem:
    return MemoryItem(*texts, src="failure")


def test_no_other_lesson_is_taken_for_the_same(closeness: TextSimilarity) -> None:
    others = [
        cosine
        for wording in WORDINGS
        for cosine in closeness(item(wording.other), [item(wording.lesson), item(wording.reworded)])
    ]
    assert max(others) < NEAR


def test_some_rewordings_are_recognised(closeness: TextSimilarity) -> None:
    cosines = [closeness(item(w.lesson), [item(w.reworded)])[0] for w in WORDINGS]
    assert sum(cosine >= NEAR for cosine in cosines) == RECOGNISED


def test_a_text_is_embedded_once() -> None:
    embedder = open_embedder()

    class Counting:
        def __init__(self) -> None:
            self.name, self.dimensions = embedder.name, embedder.dimensions
            self.texts: list[str] = []

        def queries(self, texts: Sequence[str]) -> Vectors:
            raise AssertionError

        def passages(self, texts: Sequence[str]) -> Vectors:
            self.texts += texts
            return embedder.passages(texts)

    counting = Counting()
    closeness = TextSimilarity(counting)
    one, two, three = (item((title, "", "Do it.")) for title in "abc")
    assert closeness(one, [two, three]) == closeness(one, [two, three])
    assert closeness(two, [one])[0] == closeness(one, [two])[0]
    assert sorted(counting.texts) == [f"{title}\nDo it." for title in "abc"]
