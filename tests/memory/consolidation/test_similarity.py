"""Similar wordings, as the embedded model sees them, on labelled texts.

`wordings.json` has a lesson, the same lesson in other words, and another lesson of the same names:
title, description and content each. The threshold was set on these; none is about a task.
"""

from __future__ import annotations

import json
from pathlib import Path

from reasoningbank.memory import MemoryItem
from reasoningbank.memory.consolidate import NEAR, DuplicateRule

WORDINGS = json.loads(Path(__file__).with_name("wordings.json").read_text(encoding="utf-8"))
#: Of 14 rewordings, those that are recognized; the others stay two items.
RECOGNIZED = 4


def cosine(one: list[str], other: list[str]) -> float:
    items = [MemoryItem(*texts, src="failure") for texts in (one, other)]
    return DuplicateRule().cosines(items[0], items[1:])[0]


def test_no_other_lesson_is_taken_for_the_same() -> None:
    others = [cosine(w["other"], w[same]) for w in WORDINGS for same in ("lesson", "reworded")]
    assert max(others) < NEAR


def test_some_rewordings_are_recognized() -> None:
    cosines = [cosine(w["lesson"], w["reworded"]) for w in WORDINGS]
    assert sum(one >= NEAR for one in cosines) == RECOGNIZED
