"""Translators side by side, as tables of text: in all, by language, by pattern, and when which.

Execution accuracy is the first number of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from reasoningbank.analysis.nl2sparql_figures import calibration_figures, translation_metrics
from reasoningbank.analysis.nl2sparql_rows import ArmRows, TranslationRow
from reasoningbank.analysis.tables import Cells, Table, number

__all__ = [
    "METRICS_SHOWN",
    "agent_table",
    "brier_table",
    "language_table",
    "mending_table",
    "metric_cells",
    "pattern_table",
    "reliability_table",
    "scenario_table",
]

#: Headers of the metrics, in the order of `metric_cells`.
METRICS_SHOWN = (
    "n", "execution accuracy", "95 % interval", "syntax validity", "execution success",
    "component match", "pattern accuracy", "calls", "tokens", "s median", "s p95",
)  # fmt: skip
#: Of these, what a choice between agents goes by.
_COSTS = ("n", "execution accuracy", "95 % interval", "calls", "tokens", "s median", "s p95")
_COMPLEXITIES = ("simple", "moderate", "complex")

_Which = Callable[[ArmRows, TranslationRow], bool]

#: Name of the questions that one query without mending does not answer.
FAILED_FIRST = "the pipeline's first query failed its checks"


def agent_table(arms: Sequence[ArmRows]) -> Table:
    """Return every arm in one row, with its pack, its model and what could not be judged."""
    return Table(
        "by agent",
        ("arm", "agent", "pack", "model", *METRICS_SHOWN, "not judged"),
        [
            (one.arm, one.agent, one.pack, one.model, *_shown(one.rows), str(one.left_out))
            for one in arms
        ],
    )


def language_table(arms: Sequence[ArmRows]) -> Table:
    """Return every arm by the language of its questions."""
    return _by(arms, "language", lambda row: [row.language])


def pattern_table(arms: Sequence[ArmRows]) -> Table:
    """Return every arm by pattern; a question counts for each of its patterns."""
    return _by(arms, "pattern", lambda row: row.patterns or ["(none)"])


def scenario_table(arms: Sequence[ArmRows]) -> Table:
    """Return every arm by what its questions are like: when to use which.

    Questions are grouped by the complexity of the right query, by the number of patterns that
    they need, and by whether the first query of the pipeline (the first arm of `rag` on the pack)
    failed its checks. Agents of one scenario stand below each other.
    """
    rows = []
    for name, of in _scenarios(arms):
        for one in arms:
            own = [row for row in one.rows if of(one, row)]
            if own:
                cells = metric_cells(translation_metrics(own))
                rows.append((name, one.arm, *(cells[column] for column in _COSTS)))
    return Table("when to use which agent", ("questions", "arm", *_COSTS), rows)


def mending_table(arms: Sequence[ArmRows]) -> Table:
    """Return, for arms that check their queries, what became of those that did not stand."""
    rows = []
    for one in arms:
        checked = [row for row in one.rows if row.first_stood is not None]
        stood = [row for row in checked if row.first_stood]
        mended = [row for row in checked if not row.first_stood]
        if checked:
            rows.append(
                (
                    one.arm,
                    str(len(stood)),
                    _share(row.right for row in stood),
                    str(len(mended)),
                    _share(bool(row.valid) for row in mended),
                    _share(row.right for row in mended),
                    f"{sum(row.queries or 0 for row in checked) / len(checked):.2f}",
                )
            )
    headers = (
        "arm", "first query stood", "of these right", "first query did not", "a later one stood",
        "right in the end", "queries a question",
    )  # fmt: skip
    return Table("what checking and mending did", headers, rows)


def brier_table(arms: Sequence[ArmRows]) -> Table:
    """Return how good the confidence of each arm is, of those that say it."""
    rows = []
    for one in arms:
        found = calibration_figures(one.rows)
        if found:
            cells = (found[name] for name in ("brier", "brier_base_rate", "brier_calibrated"))
            rows.append((one.arm, str(found["n"]), str(found["silent"]), *map(number, cells)))
    headers = (
        "arm", "n", "says nothing", "Brier score", "of the base rate", "calibrated on other tasks",
    )  # fmt: skip
    return Table("confidence: Brier score, 0 is best", headers, rows)


def reliability_table(arms: Sequence[ArmRows]) -> Table:
    """Return, by confidence, how many queries were right."""
    rows = [
        (
            one.arm,
            f"{part['from']:.1f} to {part['to']:.1f}",
            str(part["n"]),
            number(part["confidence"]),
            number(part["right"]),
            _interval(part["interval"]),
        )
        for one in arms
        for part in calibration_figures(one.rows).get("reliability", ())
    ]
    headers = ("arm", "confidence", "n", "mean confidence", "right", "95 % interval")
    return Table("confidence: reliability", headers, rows)


def metric_cells(metrics: Mapping[str, Any]) -> dict[str, str]:
    """Return metrics as text, by the names of `METRICS_SHOWN`."""
    return {
        "n": str(metrics["n"]),
        "execution accuracy": number(metrics["execution_accuracy"]),
        "95 % interval": _interval(metrics["execution_accuracy_interval"]),
        "syntax validity": number(metrics["syntax_validity"]),
        "execution success": number(metrics["execution_success"]),
        "component match": number(metrics["component_match"]),
        "pattern accuracy": number(metrics["pattern_accuracy"]),
        "calls": number(metrics["calls"], 1),
        "tokens": number(metrics["tokens"], 0),
        "s median": number(metrics["seconds_median"], 1),
        "s p95": number(metrics["seconds_p95"], 1),
    }


def _by(
    arms: Sequence[ArmRows], name: str, values: Callable[[TranslationRow], Iterable[str]]
) -> Table:
    every = sorted({value for one in arms for row in one.rows for value in values(row)})
    rows = []
    for value in every:
        for one in arms:
            own = [row for row in one.rows if value in values(row)]
            if own:
                rows.append((value, one.arm, *_shown(own)))
    return Table(f"by {name}", (name, "arm", *METRICS_SHOWN), rows)


def _scenarios(arms: Sequence[ArmRows]) -> Iterator[tuple[str, _Which]]:
    for complexity in _COMPLEXITIES:
        yield complexity, _of_complexity(complexity)
    yield "one pattern", lambda _, row: len(row.patterns) == 1
    yield "two patterns", lambda _, row: len(row.patterns) == 2
    yield "three patterns or more", lambda _, row: len(row.patterns) > 2
    pipelines = {one.pack: one for one in reversed(arms) if one.agent == "rag"}
    failed = {
        (pack, row.task, row.language)
        for pack, one in pipelines.items()
        for row in one.rows
        if row.first_stood is False
    }
    yield FAILED_FIRST, lambda one, row: (one.pack, row.task, row.language) in failed


def _of_complexity(complexity: str) -> _Which:
    return lambda _, row: row.complexity == complexity


def _shown(rows: Sequence[TranslationRow]) -> Cells:
    if not rows:
        return ("0", *("-" for _ in METRICS_SHOWN[1:]))
    cells = metric_cells(translation_metrics(rows))
    return tuple(cells[name] for name in METRICS_SHOWN)


def _share(yes: Iterable[bool]) -> str:
    found = list(yes)
    return f"{sum(found)} of {len(found)}" if found else "-"


def _interval(ends: Sequence[float | None]) -> str:
    low, high = ends
    return "-" if low is None or high is None else f"{low:.2f} to {high:.2f}"
