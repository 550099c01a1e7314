"""What translators' queries were worth: in all, by pattern, by language; and their confidence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from reasoningbank.analysis.nl2sparql_rows import TranslationRow
from reasoningbank.analysis.statistics import Interval, bootstrap_mean, wilson
from reasoningbank.nl2sparql import pattern_report
from reasoningbank.nl2sparql.confidence import fit_calibration

__all__ = ["calibration_figures", "translation_figures", "translation_metrics"]

#: Bins of the reliability table.
BINS = 5
#: Parts that tasks are dealt into; each is judged by a table of the others.
FOLDS = 5


def translation_figures(rows: Sequence[TranslationRow]) -> dict[str, Any]:
    """Return what rows come to, as JSON-able data; execution accuracy first.

    Args:
        rows: At least one.
    """
    patterns = list(dict.fromkeys(name for row in rows for name in row.patterns))
    languages = sorted({row.language for row in rows})
    of_pattern = {name: [row for row in rows if name in row.patterns] for name in patterns}
    of_language = {name: [row for row in rows if row.language == name] for name in languages}
    return {
        "metrics": translation_metrics(rows),
        "by_pattern": {name: translation_metrics(own) for name, own in of_pattern.items()},
        "by_language": {name: translation_metrics(own) for name, own in of_language.items()},
        "pattern_detection": _detection(rows),
        "calibration": calibration_figures(rows),
    }


def translation_metrics(rows: Collection[TranslationRow]) -> dict[str, Any]:
    """Return the metrics of rows, as JSON-able data; None for what was not measured.

    One row a task has Wilson's interval. Where a task comes in several languages or with several
    seeds, tasks are drawn again whole, since its rows are not independent.

    Args:
        rows: At least one.
    """
    right = _accuracy(rows)
    seconds = [row.seconds for row in rows]
    detected = [set(row.detected) == set(row.patterns) for row in rows if row.detected is not None]
    return {
        "n": len(rows),
        "tasks": len({row.task for row in rows}),
        "execution_accuracy": round(right.rate, 4),
        "execution_accuracy_interval": [_number(right.low), _number(right.high)],
        "interval_by": right.method,
        "syntax_validity": _mean(row.parses for row in rows),
        "execution_success": _mean(row.executes for row in rows),
        "component_match": _mean(row.components for row in rows),
        "pattern_accuracy": _mean(detected) if detected else None,
        "calls": _mean(row.calls for row in rows),
        "tokens": _mean(row.tokens for row in rows),
        "seconds_median": round(float(np.median(seconds)), 3),
        "seconds_p95": round(float(np.percentile(seconds, 95)), 3),
    }


def calibration_figures(rows: Iterable[TranslationRow]) -> dict[str, Any]:
    """Return Brier score (Brier 1950) and reliability table; empty where nothing is said.

    Beside the score of what was said stand two that tell what it is worth: that of saying the
    share of right queries every time, and that of confidence by a table of what scores are worth,
    made of the other tasks (`fit_calibration`, each fifth of the tasks by the other four).

    Args:
        rows: Any; those without a confidence are counted as silent.
    """
    every = list(rows)
    said = [(row.confidence, row.right) for row in every if row.confidence is not None]
    if not said:
        return {}
    base = float(np.mean([right for _, right in said]))
    bins: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for confidence, right in said:
        # Rounded, since 3 / 5 is a little more than 0.6 as a binary number.
        bins[min(BINS - 1, int(round(confidence * BINS, 9)))].append((confidence, right))
    table = []
    for number, here in sorted(bins.items()):
        rate = wilson(sum(r for _, r in here), len(here))
        table.append(
            {
                "from": round(number / BINS, 2),
                "to": round((number + 1) / BINS, 2),
                "n": len(here),
                "confidence": _mean(c for c, _ in here),
                "right": round(rate.rate, 4),
                "interval": [round(rate.low, 4), round(rate.high, 4)],
            }
        )
    return {
        "n": len(said),
        "silent": len(every) - len(said),
        "brier": _mean((c - r) ** 2 for c, r in said),
        "brier_base_rate": round(base * (1 - base), 4),
        "brier_calibrated": _cross_fitted(every),
        "reliability": table,
    }


def _accuracy(rows: Collection[TranslationRow]) -> Interval:
    by_task: dict[str, list[bool]] = defaultdict(list)
    for row in rows:
        by_task[row.task].append(row.right)
    if len(by_task) == len(rows):
        found = wilson(sum(row.right for row in rows), len(rows))
        return Interval(found.rate, found.low, found.high, "Wilson")
    runs = by_task.values()
    drawn = bootstrap_mean([sum(one) for one in runs], [len(one) for one in runs], bounds=(0, 1))
    return Interval(drawn.value, drawn.low, drawn.high, f"{drawn.method} over tasks")


def _detection(rows: Sequence[TranslationRow]) -> dict[str, float]:
    said = [(row.detected, row.patterns) for row in rows if row.detected is not None]
    if not said:
        return {}
    report = pattern_report(said)
    return {
        "exact": round(report.exact, 4),
        "precision": round(report.micro.precision, 4),
        "recall": round(report.micro.recall, 4),
        "f1": round(report.micro.f1, 4),
        "macro_f1": round(report.macro_f1, 4),
    }


def _cross_fitted(rows: Sequence[TranslationRow]) -> float | None:
    """Return the Brier score of confidence by tables of other tasks; None for too few tasks."""
    said = [(row.task, row.score, row.right) for row in rows if row.score is not None]
    tasks = sorted({task for task, _, _ in said})
    if len(tasks) < 2 * FOLDS:
        return None
    fold = {task: number % FOLDS for number, task in enumerate(tasks)}
    errors = []
    for one in range(FOLDS):
        table = fit_calibration((s, right) for task, s, right in said if fold[task] != one)
        errors += [(table.rate(s) - right) ** 2 for task, s, right in said if fold[task] == one]
    return _mean(errors)


def _number(value: float) -> float | None:
    return None if np.isnan(value) else round(float(value), 4)


def _mean(numbers: Iterable[float]) -> float:
    return round(float(np.mean([float(one) for one in numbers])), 4)
