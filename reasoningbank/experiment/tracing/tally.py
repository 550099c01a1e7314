"""What a run comes to so far, by arm."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean, median

from reasoningbank.experiment.records import TrialKey, TrialRecord

__all__ = ["Tally"]


@dataclass(frozen=True)
class _Entry:
    part: str
    counts: bool
    error: bool
    strict: bool
    f1: float
    tokens: int
    seconds: float
    dollars: float | None


class Tally:
    """Counts trials by arm; a trial told twice counts once."""

    def __init__(self) -> None:
        self._entries: dict[TrialKey, _Entry] = {}

    def add(self, record: TrialRecord) -> None:
        """Count a trial, in place of an earlier run of the same."""
        verdict = record.verdict
        # Practice is no part of what an arm scores.
        part = record.key.arm if record.step is None else f"{record.key.arm}/stream"
        self._entries[record.key] = _Entry(
            part,
            verdict is not None and verdict.get("status") != "gold_defect",
            record.status == "error",
            record.strict,
            record.f1,
            record.usage.tokens,
            record.usage.seconds,
            record.usage.dollars,
        )

    def metrics(self) -> dict[str, float]:
        """Return the numbers of each arm as `arm/name`, of its streams as `arm/stream/name`.

        Rates, means and medians are over judged trials, as in the run's summary: neither
        infrastructure errors nor broken golds.
        """
        found: dict[str, float] = {}
        for part in sorted({entry.part for entry in self._entries.values()}):
            mine = [entry for entry in self._entries.values() if entry.part == part]
            judged = [entry for entry in mine if entry.counts]
            prices = [entry.dollars for entry in mine if entry.dollars is not None]
            numbers: dict[str, float] = {
                "trials": len(mine),
                "judged": len(judged),
                "errors": sum(entry.error for entry in mine),
                "strict": sum(entry.strict for entry in judged),
            }
            if judged:
                numbers |= {
                    "strict_rate": fmean(entry.strict for entry in judged),
                    "f1": fmean(entry.f1 for entry in judged),
                    "tokens_median": median(entry.tokens for entry in judged),
                    "seconds_median": median(entry.seconds for entry in judged),
                }
            if prices:
                numbers["dollars"] = sum(prices)
            found |= {f"{part}/{name}": float(value) for name, value in numbers.items()}
        return found
