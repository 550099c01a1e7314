"""What the page knows of every trial without opening it: columns for the list and the matrix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from reasoningbank.experiment import TrialRecord

__all__ = ["TrialIndex", "outcome"]

#: Characters of a query that the search looks at.
SEARCHED = 2000


def outcome(record: TrialRecord) -> str:
    """Tell how a trial counts: `right`, `wrong`, `error` (infrastructure) or `defect` (the gold).

    Only the first two are in the denominator.
    """
    if record.verdict is None:
        return "error"
    if record.verdict.get("status") == "gold_defect":
        return "defect"
    return "right" if record.strict else "wrong"


class TrialIndex:
    """Columns over all trials, in the order in which they were added.

    Args:
        arms: Names of the arms in the order of the experiment; others follow as they are met.
    """

    def __init__(self, arms: Iterable[str] = ()) -> None:
        self._words: dict[str, dict[str, int]] = {
            name: {} for name in ("arms", "statuses", "verdicts", "outcomes", "items")
        }
        self._tasks: dict[str, int] = {}
        self._task_rows: list[dict[str, Any]] = []
        self._rows: list[dict[str, Any]] = []
        for arm in arms:
            self._word("arms", arm)

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, record: TrialRecord) -> int:
        """Add a trial and return its number."""
        verdict: Mapping[str, Any] = record.verdict or {}
        self._rows.append(
            {
                "arm": self._word("arms", record.key.arm),
                "task": self._task(record),
                "seed": record.key.seed,
                "status": self._word("statuses", record.status),
                "verdict": self._word("verdicts", str(verdict.get("status", ""))),
                "outcome": self._word("outcomes", outcome(record)),
                "f1": round(record.f1, 4),
                "tokens": record.usage.tokens,
                "seconds": round(record.usage.seconds, 2),
                "step": record.step,
                "error": record.error[:SEARCHED],
                "reason": str(verdict.get("reason", ""))[:SEARCHED],
                "sparql": (record.sparql or "")[:SEARCHED],
                "items": self._items(record),
            }
        )
        return len(self._rows) - 1

    def to_json(self) -> dict[str, Any]:
        """Return the columns, and the words that their numbers stand for."""
        names = list(self._rows[0]) if self._rows else []
        return {
            **{name: list(words) for name, words in self._words.items()},
            "tasks": self._task_rows,
            "trials": {name: [row[name] for row in self._rows] for name in names},
        }

    def _word(self, column: str, word: str) -> int:
        return self._words[column].setdefault(word, len(self._words[column]))

    def _task(self, record: TrialRecord) -> int:
        task = record.key.task
        if task not in self._tasks:
            self._tasks[task] = len(self._task_rows)
            self._task_rows.append(
                {
                    "id": task,
                    "question": record.question,
                    "complexity": record.complexity,
                    "form": record.form,
                    "group": record.group,
                }
            )
        return self._tasks[task]

    def _items(self, record: TrialRecord) -> list[int]:
        """Return the memory items that the trial was shown."""
        shown = (
            item.get("id")
            for event in record.trajectory.of("memory_retrieved")
            for item in event.data.get("items") or ()
            if isinstance(item, Mapping)
        )
        return sorted({self._word("items", str(name)) for name in shown if name})
