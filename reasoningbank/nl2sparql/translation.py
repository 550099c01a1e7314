"""What a translation made of a question: its steps, its candidates, and the best of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from reasoningbank.findings import Finding
from reasoningbank.nl2sparql.detection import Detected
from reasoningbank.nl2sparql.hybrid import Retrieved
from reasoningbank.nl2sparql.validation import EndpointValidation

__all__ = ["Candidate", "How", "OnStep", "Translation", "best_candidate"]

#: How a query came about: an example's with other entities, an example's changed by the model,
#: written by it, or written anew after a problem.
How = Literal["exchanged", "adapted", "written", "fixed"]
#: Called after each step with its name and what came out of it.
OnStep = Callable[[str, Mapping[str, Any]], None]


@dataclass(frozen=True)
class Candidate:
    """A query, and what is wrong with it.

    Attributes:
        sparql: The query.
        how: How it came about.
        problems: What is wrong, by level; empty where nothing is.
        checked: What the endpoint gave; None where it was not asked.
    """

    sparql: str
    how: How
    problems: tuple[Finding, ...] = ()
    checked: EndpointValidation | None = None

    @property
    def rank(self) -> tuple[bool, bool, bool, bool, int]:
        """How good it is: sound before executed with rows before executed before parsed.

        Then fewer problems decide.
        """
        executed = self.checked is not None and self.checked.executed
        levels = {problem.fields["level"] for problem in self.problems}
        return (
            not self.problems,
            executed and self.checked is not None and self.checked.rows > 0,
            executed,
            "syntax" not in levels,
            -len(self.problems),
        )


@dataclass(frozen=True)
class Translation:
    """A question's query.

    Attributes:
        question: The question.
        sparql: The best query; None where the model wrote none.
        is_valid: Whether nothing is wrong with it.
        problems: What is wrong with it.
        patterns: What the question needs.
        retrieved: The examples that were found.
        rules: What the model was told of writing queries.
        candidates: All queries, in order.
        calls: Calls of the model.
        stopped: Why the loop ended before a sound query or its last round; empty where it did not.
    """

    question: str
    sparql: str | None
    is_valid: bool = False
    problems: tuple[Finding, ...] = ()
    patterns: tuple[Detected, ...] = ()
    retrieved: tuple[Retrieved, ...] = ()
    rules: str = field(default="", repr=False)
    candidates: tuple[Candidate, ...] = ()
    calls: int = 0
    stopped: str = ""

    @property
    def best(self) -> Candidate | None:
        """The candidate whose query this is."""
        return best_candidate(self.candidates)

    @property
    def rows(self) -> int | None:
        """Rows that the query gave; None where it was not executed."""
        best = self.best
        checked = best.checked if best else None
        return checked.rows if checked is not None and checked.executed else None


def best_candidate(candidates: Sequence[Candidate]) -> Candidate | None:
    """Return the best of some candidates, of equals the first; None of none."""
    return max(candidates, key=lambda one: one.rank, default=None)
