"""Telling when an agent repeats itself: a small model at temperature 0 does so for ever."""

from __future__ import annotations

from typing import Any

from reasoningbank.lm import STUCK_TEMPERATURE

__all__ = ["Repeats"]

#: Turns that repeat an earlier one before a loop is ended.
MOST_REPEATS = 2


class Repeats:
    """Remembers what was done in earlier turns; spaces and line breaks make no difference.

    Args:
        predict: The `dspy.Predict` that writes the turns; its temperature rises at a repeat. The
            model's seed keeps this repeatable.

    Examples:
        >>> import dspy
        >>> repeats = Repeats(dspy.Predict("question -> code"))
        >>> repeats.again("look( 1 )"), repeats.again("look(  1 )"), repeats.too_many
        (False, True, False)
        >>> repeats.again("look( 1 )"), repeats.too_many
        (True, True)
    """

    def __init__(self, predict: Any) -> None:
        self._predict = predict
        self._seen: set[str] = set()
        self._count = 0

    def again(self, text: str) -> bool:
        """Say whether this was done before, and remember it."""
        text = " ".join(text.split())
        repeated = text in self._seen
        self._seen.add(text)
        if repeated:
            self._count += 1
            self._predict.config["temperature"] = STUCK_TEMPERATURE
        return repeated

    def forget(self, text: str) -> None:
        """Let something be done again: it failed for a reason that may be gone the next time."""
        self._seen.discard(" ".join(text.split()))

    @property
    def too_many(self) -> bool:
        """Whether the loop should end."""
        return self._count >= MOST_REPEATS
