"""Tables of text: of a run's arms, comparisons, judges, streams and memory; and their cells.

Commands, the HTML report and the generated pages of the documentation show the same `TextTable`.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib.resources import files
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from reasoningbank.analysis.memory import CAUSES

if TYPE_CHECKING:
    from reasoningbank.analysis.comparison import ArmComparison
    from reasoningbank.analysis.statistics import LearningCurve
    from reasoningbank.analysis.summary import ArmSummary, Online, RunSummary
    from reasoningbank.judge import Agreement

Cells = tuple[str, ...]
_DESCRIBED: Mapping[str, Mapping[str, Any]] = tomllib.loads(
    files("reasoningbank.analysis").joinpath("tables.toml").read_text("utf-8")
)
R = TypeVar("R")
#: What the columns of a table show of a row, by header.
Columns = Mapping[str, Callable[[R], Any]]

STATUSES = ("submitted", "fallback", "exhausted", "refused", "error", "bug")

_AGREEMENT: Columns[Agreement] = {
    "both yes": lambda found: found.true_positives,
    "only judge": lambda found: found.false_positives,
    "only execution": lambda found: found.false_negatives,
    "both no": lambda found: found.true_negatives,
}
#: Headers of the columns that `agreement_cells` fills.
AGREEMENT = ("n", *_AGREEMENT, "precision", "recall", "kappa")

#: What a column of arms shows, by header; any other shows the attribute of its name. ``score`` is
#: headed by the metric's name.
_ARM: Columns[ArmSummary] = {
    "n": lambda arm: arm.judged,
    "score": lambda arm: _score(arm),
    "95% CI": lambda arm: ends(arm.mean.low, arm.mean.high),
    "interval by": lambda arm: arm.mean.method,
    "row F1": lambda arm: arm.f1 if arm.judged else None,
    "ran": lambda arm: arm.executed,
    "s median": lambda arm: number(arm.seconds[0], 1),
    "s p95": lambda arm: number(arm.seconds[1], 1),
    "tokens median": lambda arm: number(arm.tokens[0], 0),
    "tokens p95": lambda arm: number(arm.tokens[1], 0),
    "seconds": lambda arm: pair(arm.seconds, 1),
    "tokens": lambda arm: pair(arm.tokens, 0),
    "right": lambda arm: f"{arm.strict} of {arm.judged}",
    "ended": lambda arm: ", ".join(f"{n} {name}" for name, n in sorted(arm.statuses.items())),
    "dollars": lambda arm: _dollars(arm),
    "mean": lambda arm: arm.mean.rate,
    **{status: lambda arm, status=status: arm.statuses.get(status, 0) for status in STATUSES},  # type: ignore[misc]
}
_SHOWN = ("arm", "n", "tasks", "seeds", "score", "95% CI", "row F1", "ran", "s median", "s p95",
          "tokens median", "tokens p95")  # fmt: skip
_COMPARISON: Columns[ArmComparison] = {
    "arms": lambda c: f"{c.first} against {c.second}",
    "difference": lambda c: number(c.difference, sign="+"),
    "95% CI": lambda c: ends(c.low, c.high, "+"),
    "p": lambda c: number(c.p, 3),
    "Holm": lambda c: number(c.p_holm, 3),
}


class TextTable(NamedTuple):
    """A table of text; a dash marks what was not measured."""

    title: str
    headers: Cells
    rows: Sequence[Cells]
    notes: Sequence[str] = ()  #: Sentences below it on a page


def cells_of(row: R, columns: Columns[R], shown: Sequence[str]) -> Cells:
    """Return what columns show of a row."""
    plain = (attrgetter(name.replace(" ", "_")) for name in shown)
    return cells(*(columns.get(n, other)(row) for n, other in zip(shown, plain, strict=True)))


def cells(*values: Any) -> Cells:
    """Return values as text: fractions with two places, a dash for none."""
    return tuple(
        number(value) if value is None or isinstance(value, float) else str(value)
        for value in values
    )


def numeric(table: TextTable) -> list[bool]:
    """Return which columns hold nothing but numbers."""
    columns = zip(*table.rows, strict=True) if table.rows else [()] * len(table.headers)
    return [all(c.lstrip("+-")[:1].isdigit() or c == "-" for c in column) for column in columns]


def markdown(table: TextTable) -> str:
    """Return a table as Markdown, numbers aligned right."""
    lines = [
        table.headers,
        tuple("---:" if right else "---" for right in numeric(table)),
        *(tuple(cell.replace("|", "\\|") for cell in row) for row in table.rows),
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def number(value: float | None, places: int = 2, sign: str = "") -> str:
    """Return a number, or a dash for none."""
    return "-" if value is None or math.isnan(value) else f"{value:{sign}.{places}f}"


def share(value: float) -> str:
    """Return a share in per cent, or a dash for none."""
    return "-" if math.isnan(value) else f"{value:.0%}"


def pair(found: tuple[float, float], places: int) -> str:
    """Return a median with its 95th percentile in brackets."""
    median, p95 = found
    return "-" if math.isnan(median) else f"{median:.{places}f} ({p95:.{places}f})"


def ends(low: float | None, high: float | None, sign: str = "") -> str:
    """Return an interval."""
    if low is None or high is None or math.isnan(low):
        return "-"
    return f"{low:{sign}.2f} to {high:{sign}.2f}"


def counts(found: Mapping[str, int]) -> str:
    """Return how often each word occurs, the most frequent first."""
    ranked = sorted(found.items(), key=lambda one: (-one[1], one[0]))
    rest = f", and {len(ranked) - 20} other reasons" if len(ranked) > 20 else ""
    return ", ".join(f"{n} {name}" for name, n in ranked[:20]) + rest


def jsonable(value: Any) -> Any:
    """Return values, dataclasses and their parts as JSON-able data; undefined numbers are None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if hasattr(value, "to_json"):
        return jsonable(value.to_json())
    if is_dataclass(value):
        return {field.name: jsonable(getattr(value, field.name)) for field in fields(value)}
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {str(key): jsonable(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(inner) for inner in value]
    return value


def text_of(value: Any) -> str | None:
    """Return a value as the text of a cell; None if it is empty."""
    if value is None or isinstance(value, str):
        return value or None
    return json_of(value)


def json_of(value: Any) -> str:
    """Return a value as JSON."""
    return json.dumps(value, ensure_ascii=False)


def capital(text: str) -> str:
    """Return a text with a capital at its beginning."""
    return f"{text[:1].upper()}{text[1:]}"


def arm_table(
    summary: RunSummary, columns: Sequence[str] = _SHOWN, title: str = "arms on held-out tasks"
) -> TextTable:
    """Return one row per arm; the column `passes` stands for pass@k and pass^k of the largest k."""
    most = max((p.k for arm in summary.arms for p in arm.passes), default=1)
    passes: dict[str, Callable[[ArmSummary], Any]] = {}
    if most > 1:
        found = {arm.arm: p for arm in summary.arms for p in arm.passes if p.k == most}
        passes = {
            f"pass@{most}": lambda arm: getattr(found.get(arm.arm), "one", None),
            f"pass^{most}": lambda arm: getattr(found.get(arm.arm), "all", None),
        }
    shown = [n for name in columns for n in (passes if name == "passes" else (name,))]
    rows = [cells_of(arm, {**_ARM, **passes}, shown) for arm in summary.arms]
    return TextTable(title, tuple(summary.metric if n == "score" else n for n in shown), rows)


def comparison_table(
    comparisons: Sequence[ArmComparison], title: str, *, narrow: bool = False
) -> TextTable:
    """Return one row per comparison; the names of both arms share a column if `narrow`."""
    names = ("arms",) if narrow else ("first", "second")
    shown = (*names, "tasks", "difference", "95% CI", "p", "Holm", "verdict")
    return TextTable(title, shown, [cells_of(one, _COMPARISON, shown) for one in comparisons])


def agreement_cells(found: Agreement) -> Cells:
    """Return how a judge agrees with the execution judge, under the headers of `AGREEMENT`."""
    return cells_of(found, _AGREEMENT, AGREEMENT)


def tables_of(summary: RunSummary) -> dict[str, TextTable]:
    """Return all other tables of a run by name, in the order of `tables.toml`."""
    online = summary.online
    rows = _arm_rows(summary) | (_stream_rows(online) if online else {}) | _memory_rows(summary)
    several = {"METRIC": (summary.metric,), "AGREEMENT": AGREEMENT, "CAUSES": CAUSES,
               "QUARTERS": ("after 1/4", "1/2", "3/4", "all")}  # fmt: skip
    found = {}
    for name, table in _DESCRIBED.items():
        headers = tuple(h for one in table["headers"] for h in several.get(one, (one,)))
        found[name] = TextTable(table["title"], headers, rows.get(name, []), table.get("notes", ()))
    practice = (one.sentence() for one in online.comparisons) if online else ()
    notes = ["Practice: the bank was still growing.", *(f"{capital(one)}." for one in practice)]
    return {**found, "streams": found["streams"]._replace(notes=notes)}


def _arm_rows(summary: RunSummary) -> dict[str, list[Cells]]:
    arms, level = summary.arms, ("level", "arm", "n", "templates", "strict", "mean", "95% CI",
                                 "tokens median", "s median")  # fmt: skip
    return {
        "levels": [cells_of(arm, _ARM, level) for arm in summary.levels],
        "failures": [
            cells(arm.arm, arm.judged, arm.judged - arm.strict, *(found.get(c, 0) for c in CAUSES))
            for arm in summary.levels
            if arm.level == "iid" and (found := summary.failures.get(arm.arm))
        ],
        "others": list(comparison_table(summary.others, "", narrow=True).rows),
        "passes": [cells(arm.arm, p.k, p.tasks, p.one, p.all) for arm in arms for p in arm.passes],
        "sampled": [
            cells(arm.arm, s.trials, s.attempts, s.each, s.chosen, s.any, s.spent, s.least)
            for arm in arms
            if (s := arm.sampled)
        ],
        "judges": [
            (name, arm.arm, *agreement_cells(n)) for arm in arms for name, n in arm.judges.items()
        ],
    }


def _stream_rows(online: Online) -> dict[str, list[Cells]]:
    """Return the learning streams: the mean so far after each quarter; and their judges."""

    def facts(arm: ArmSummary, shown: Sequence[str], curve: LearningCurve | None) -> Cells:
        quarters = curve.quarters if curve else (None,) * 4
        return (*cells_of(arm, _ARM, (*shown, "mean", "95% CI")), *cells(*quarters))

    return {
        "streams": [
            facts(arm, ("arm", "n", "seeds"), online.curves.get(arm.arm)) for arm in online.arms
        ],
        "stream levels": [
            facts(arm, ("level", "arm", "n"), online.level_curves[arm.level][arm.arm])
            for arm in online.levels
        ],
        "stream judges": [(name, *agreement_cells(n)) for name, n in online.judges.items()],
    }


def _memory_rows(summary: RunSummary) -> dict[str, list[Cells]]:
    """Return what memory showed, the banks at the end, what learning took, what was rejected."""
    found: dict[str, list[Cells]] = defaultdict(list)
    for arm in summary.memory:
        found["use"] += [
            cells(arm.arm, where, arm.source or "-", use.trials, pair(use.shown, 0), use.empty,
                  use.demonstrated, use.filtered_out, pair(use.tokens, 0), pair(use.seconds, 2))
            for where, use in arm.uses
        ]  # fmt: skip
        for bank in arm.banks:
            total = sum(bank.active.values())
            items = f"{total} ({counts(bank.active)})" if total else "0"
            gone = (bank.superseded, bank.retired, bank.added, bank.merged)
            lost = sum(bank.rejected.values())
            found["banks"].append(cells(arm.arm, bank.permutation, bank.steps, items, *gone, lost))
            if bank.steps:
                spent = (pair(bank.tokens, 0), pair(bank.seconds, 1), bank.snapshot or None)
                found["learning"].append(cells(arm.arm, bank.permutation, *spent))
        found["rejected"] += [cells(arm.arm, reason, n) for reason, n in arm.rejected.items()]
    for one in summary.compiled:
        usage, made = one["usage"], (one["programs"], one["demonstrations"])
        tokens = usage["prompt_tokens"] + usage["completion_tokens"]
        named = (one["arm"], one["seed"], one["optimizer"], len(one["tasks"]))
        took = (tokens, one["tokens_wanted"], number(usage["seconds"], 0), one["ended"] or "itself")
        found["compiled"].append(cells(*named, *made, one["new_instructions"], *took))
    return found


def _score(arm: ArmSummary) -> str:
    """Return an arm's mean; with the count for strict matches."""
    if not arm.judged or arm.metric == "f1":
        return number(arm.mean.rate if arm.judged else None)
    rate = share(arm.mean.rate)
    return f"{arm.strict} ({rate})" if arm.metric == "strict" else rate


def _dollars(arm: ArmSummary) -> str:
    if arm.dollars is None:
        return "-"
    judging = "" if arm.judge_dollars is None else f" + {arm.judge_dollars:.4f} judging"
    return f"{arm.dollars:.4f}{judging}" + (f" ({arm.unpriced} unpriced)" if arm.unpriced else "")
