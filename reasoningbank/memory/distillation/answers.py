"""What an attempt found, so that no item tells it: an answer holds for one question alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reasoningbank.memory.distillation.experience import Experience

__all__ = ["Answers"]

#: Shorter values are in any text by chance, numbers of a few digits among them.
_LEAST_CHARS = 4
_WORDS = re.compile(r"\w+")


@dataclass(frozen=True)
class Answers:
    """Values in the rows that an attempt looked at.

    Attributes:
        values: The values, as the agent saw them.
        asked: The question and the query, whose own words may be said.
    """

    values: frozenset[str]
    asked: str

    @classmethod
    def of(cls, experience: Experience) -> Answers:
        """Return the values in the rows that an attempt looked at."""
        trajectory = experience.trajectory
        called = {e.index: e.data.get("tool") for e in trajectory.of("tool_call")}
        found: set[str] = set()
        for event in trajectory.of("tool_result"):
            if called.get(event.parent if event.parent is not None else -1) not in _SHOW_ROWS:
                continue
            found.update(_values(trajectory.resolve(event.data).get("result")))
        asked = f"{experience.question}\n{experience.sparql or ''}".casefold()
        return cls(frozenset(v for v in found if len(v) >= _LEAST_CHARS and not _is_name(v)), asked)

    def told_in(self, text: str, constants: frozenset[str] = frozenset()) -> str:
        """Return a value that a text tells, and that is not the question's own; else nothing."""
        said = text.casefold()
        for value in sorted(self.values):
            plain = value.casefold()
            if plain in self.asked or value in constants:
                continue
            if _stands_in(plain, said):
                return value
        return ""


#: Tools that show the rows of a query.
_SHOW_ROWS = frozenset({"sparql_peek", "sparql_slice"})


def _values(result: Any) -> Iterator[str]:
    if isinstance(result, Mapping):
        for value in result.values():
            yield from _values(value)
    elif isinstance(result, list):
        for value in result:
            yield from _values(value)
    elif isinstance(result, (str, int, float)) and not isinstance(result, bool):
        yield str(result)


def _is_name(value: str) -> bool:
    """Say whether a value is a name, of which a text may speak only if it is the query's own."""
    return value.startswith("<") or (":" in value and " " not in value)


def _stands_in(value: str, text: str) -> bool:
    """Say whether a value stands in a text as whole words."""
    at = text.find(value)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(value) : at + len(value) + 1]
        if not _WORDS.match(before) and not _WORDS.match(after):
            return True
        at = text.find(value, at + 1)
    return False
