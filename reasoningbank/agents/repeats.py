"""Telling when an agent repeats itself: a small model at temperature 0 does so for ever."""

from __future__ import annotations

from typing import Any

from reasoningbank.lm import stuck_temperature

__all__ = ["Repeats"]

#: Turns that repeat an earlier one before a loop is ended.
MOST_REPEATS = 2


class Repeats:
    """Remembers what was done in earlier turns; of spaces only those that indent make a difference.

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
        >>> repeats.again("if x:\\nlook(2)"), repeats.again("if x:\\n    look(2)")
        (False, False)
    """

    def __init__(self, predict: Any) -> None:
        self._predict = predict
        self._seen: set[str] = set()
        self._count = 0

    def again(self, text: str) -> bool:
        """Say whether this was done before, and remember it."""
        text = _essence(text)
        repeated = text in self._seen
        self._seen.add(text)
        if repeated:
            self._count += 1
            warmer = stuck_temperature(self._predict.lm)
            if warmer is not None:
                self._predict.config["temperature"] = warmer
        return repeated

    def forget(self, text: str) -> None:
        """Let something be done again: it failed for a reason that may be gone the next time."""
        self._seen.discard(_essence(text))

    @property
    def too_many(self) -> bool:
        """Whether the loop should end."""
        return self._count >= MOST_REPEATS


def _essence(text: str) -> str:
    # What mends an IndentationError is no repeat: in Python indentation has a meaning.
    lines = (line for line in text.splitlines() if line.strip())
    return "\n".join(
        line[: len(line) - len(line.lstrip())] + " ".join(line.split()) for line in lines
    )
