"""What is wrong with a query: each problem is one line that says how to mend it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from reasoningbank.errors import QueryError

__all__ = ["Level", "Problem", "Validation"]

Level = Literal["syntax", "semantic", "endpoint"]


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a query.

    Attributes:
        level: At which of the three levels it was found.
        code: What kind of mistake it is, e.g. ``wrong-graph``.
        what: What is wrong, in one line.
        hint: What to do about it.
    """

    level: Level
    code: str
    what: str
    hint: str = ""

    @classmethod
    def of_error(cls, level: Level, code: str, error: QueryError) -> Problem:
        """Make a problem of an error of the client or the parser."""
        what = f"{error.where}: {error.what}" if error.where else error.what
        return cls(level, code, what, error.hint)

    def __str__(self) -> str:
        return f"{self.what}; {self.hint}" if self.hint else self.what


@dataclass(frozen=True)
class Validation:
    """What was found at one level.

    Attributes:
        problems: What is wrong, the gravest first.
        notes: What could not be checked, and why.
    """

    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def __bool__(self) -> bool:
        return self.ok
