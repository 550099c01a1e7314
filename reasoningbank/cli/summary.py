"""Tables of a run: its summary, its comparisons, and what a dry run would take.

On a terminal the tables of a summary fit in 100 columns. In a pipe one wide table, separated by
tabs, has everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import shorten
from typing import TYPE_CHECKING

from reasoningbank.analysis import tables
from reasoningbank.cli import output
from reasoningbank.findings import counted

if TYPE_CHECKING:
    from reasoningbank.analysis import ArmComparison, ArmSummary, RunSummary
    from reasoningbank.experiment import TrialRecord
    from reasoningbank.experiment.estimate import ArmEstimate, RunEstimate


#: Leaks that are listed one by one, and rows of an answer.
_MOST_LEAKS, _MOST_ROWS = 20, 3
#: Characters of what is wrong with an answer.
_MOST_CHARS = 120
_NARROW = ("arm", "n", "tasks", "score", "95% CI", "row F1", "ran", "s median", "tokens median")
_ENDS = ("s p95", "tokens p95", "cached calls", "dollars", "passes")
_WIDE = ("arm", "n", "score", "95% CI", "row F1", "ran", *tables.STATUSES, "s median", "s p95",
         "tokens median", "tokens p95", "tasks", "seeds", "interval by", "lm calls",
         "cached calls", "dollars", "retried", "passes")  # fmt: skip


def print_result(summary: RunSummary, title: str) -> None:
    """Print what a run was made for: right answers by level, and the pre-registered comparison."""
    output.say(*_leak_lines(summary))
    output.show(tables.arm_table(summary, _NARROW, title))
    levels = tables.tables_of(summary)["levels"]
    output.show(levels)
    output.say(*(levels.notes if levels.rows else ()))
    output.say(*(line for arm in summary.arms for line in _arm_lines(arm)))
    output.say(*summary.preregistered_lines())
    output.say(f"leakage: {summary.leakage.sentence()}")


def print_summary(summary: RunSummary, title: str) -> None:
    """Print leaks, the arms, the pre-registered comparison, the others, and what memory did."""
    output.say(*_leak_lines(summary))
    if output.console.is_terminal:
        output.show(tables.arm_table(summary, _NARROW, title))
        seen = [
            name for name in tables.STATUSES if any(arm.statuses.get(name) for arm in summary.arms)
        ]
        output.show(
            tables.arm_table(summary, ("arm", *seen, *_ENDS), "how trials ended, and their cost")
        )
    else:
        wide = tables.arm_table(summary, _WIDE)
        output.print_table(wide.headers, wide.rows)
    parts = tables.tables_of(summary)
    for name in ("levels", "failures", "judges", "sampled"):
        output.show(parts[name])
    output.say(*(line for arm in summary.arms for line in _arm_lines(arm)))
    output.say(*summary.preregistered_lines())
    output.say(*(f"also: {other.sentence()}" for other in summary.others))
    if summary.online:
        output.show(parts["streams"])
        output.show(parts["stream levels"])
        output.say(*(f"in the stream: {one.sentence()}" for one in summary.online.comparisons))
        output.show(parts["stream judges"])
    for name in ("use", "banks", "learning", "compiled"):
        output.show(parts[name])
    for one in summary.memory:
        if one.rejected:
            output.say(f"{one.arm}, rejected: {tables.counts(one.rejected)}")
    for name, trials in summary.replaced.items():
        output.say(f"{name}: {trials} trials were run again after they had been judged")
    for change in summary.code:
        named = ", ".join(change.parts)
        output.say(f"other code: trials since {change.time} are by changed {named}")
    output.say(f"leakage: {summary.leakage.sentence()}")


def print_changes(summary: RunSummary, changes: Iterable[tuple[TrialRecord, TrialRecord]]) -> None:
    """Print questions that changed from wrong to right, and what the run shows in plain words."""
    for pair in changes:
        level = f" ({pair[1].level})" if pair[1].level else ""
        lines = [f"\n{pair[1].question}{level}"]
        for one in pair:
            wrong = (one.verdict or {}).get("reason") or one.error or "wrong"
            said = "right" if one.strict else shorten(str(wrong), _MOST_CHARS, placeholder=" …")
            lines.append(f"  {one.key.arm}: {said}")
            lines.append("    " + " ".join((one.sparql or "").split()))
            shown = one.evidence.get("predicted") or {}
            rows = (shown.get("rows") or ())[:_MOST_ROWS]
            lines += [
                "    → " + " | ".join("" if cell is None else str(cell) for cell in row)
                for row in rows
            ]
            if (total := shown.get("n") or 0) > len(rows) > 0:
                lines.append(f"    → {total - len(rows)} more rows")
        output.say(*lines)
    if (found := summary.comparison) is None or summary.metric != "strict":
        return
    # The counts are of the questions that are compared: those of one level, where one is named.
    compared = summary.levels if summary.level else summary.arms
    arms = {arm.arm: arm for arm in compared if arm.level == summary.level}
    first, second = arms[found.first], arms[found.second]
    sign = "more" if found.difference >= 0 else "fewer"
    ends = sorted(100 * abs(end) for end in (found.low, found.high))
    if found.low < 0 < found.high:
        ends = [100 * found.low, 100 * found.high]
    kind = f"{summary.level} questions" if summary.level else "questions"
    right = f"{found.first} answered {first.strict} of {first.judged} {kind} right"
    other = f"{found.second} {second.strict} of {second.judged}"
    points = f"{100 * abs(found.difference):.0f} percentage points {sign}"
    interval = f"(95% CI {ends[0]:.0f} to {ends[1]:.0f})"
    output.say(f"\nIn plain words: {right}, {other}: {points} {interval}.")


def print_comparisons(comparisons: Sequence[ArmComparison], title: str) -> None:
    """Print one line per comparison, and its sentence."""
    output.show(tables.comparison_table(comparisons, title, narrow=output.console.is_terminal))
    output.say(*(comparison.sentence() for comparison in comparisons))


def _leak_lines(summary: RunSummary) -> Iterator[str]:
    leaks, unread = summary.leakage.leaks, summary.leakage.unread
    if unread:
        yield f"LEAKAGE: nothing is proven; {unread} files of memory cannot be read"
    if leaks:
        yield f"LEAKAGE: {len(leaks)} found; the numbers below prove nothing"
    yield from (f"  {leak.sentence()}" for leak in leaks[:_MOST_LEAKS])
    if len(leaks) > _MOST_LEAKS:
        yield f"  and {len(leaks) - _MOST_LEAKS} more; --json has all"


def _arm_lines(arm: ArmSummary) -> Iterator[str]:
    parts = []
    if arm.errors:
        bugs = arm.statuses.get("bug", 0)
        ends = {"infrastructure error": arm.errors - bugs, "bug": bugs}
        named = " and ".join(counted(n, end) for end, n in ends.items() if n)
        parts.append(
            f"{arm.errors} of {arm.trials} trials are not judged ({named}): "
            f"{arm.metric} would be {arm.worst_case:.2f} if they had failed and "
            f"{arm.best_case:.2f} if they had succeeded"
        )
    if arm.defective:
        parts.append(f"{counted(arm.defective, 'trial')} left out: the gold query is defective")
    if parts:
        yield f"{arm.arm}: {'; '.join(parts)}"
    if arm.exhausted:
        causes = ", ".join(f"{n} {cause}" for cause, n in arm.exhausted.items())
        yield f"{arm.arm}: attempts ended by a budget: {causes}"
    if arm.timed_out:
        yield f"{arm.arm}: queries that timed out when judged: {arm.timed_out}"


# -- what a dry run prints -----------------------------------------------------------------

_ESTIMATE = ("arm", "to run", "LM calls", "tokens sent", "generated", "time", "dollars")
_BASIS = {
    "own": "{n} of this run",
    "same": "{n} with the same settings, of {runs}",
    "similar": "{n} of {runs} with other settings",
    "model": "{n} of {runs} with another model, whose time says nothing here",
    "none": "the budget, an upper bound: no such trial was measured",
}

#: From which amount on a unit is used, its size, its form, and its digits.
_Units = Sequence[tuple[float, float, str, int]]
_COUNTS: _Units = (
    (1e7, 1e6, "{}M", 0), (1e6, 1e6, "{}M", 1), (1e4, 1e3, "{}k", 0), (1e3, 1e3, "{}k", 1),
    (0.0, 1.0, "{}", 0),
)  # fmt: skip
_TIMES: _Units = (
    (36_000.0, 3600.0, "{} h", 0), (5400.0, 3600.0, "{} h", 1), (600.0, 60.0, "{} min", 0),
    (60.0, 60.0, "{} min", 1), (10.0, 1.0, "{} s", 0), (0.0, 1.0, "{} s", 1),
)  # fmt: skip
_DOLLARS: _Units = ((0.01, 1.0, "${}", 2), (0.0, 1.0, "${}", 4))
_SHOWN = {
    "lm_calls": _COUNTS, "prompt_tokens": _COUNTS, "completion_tokens": _COUNTS,
    "seconds": _TIMES, "dollars": _DOLLARS,
}  # fmt: skip


def print_estimate(estimate: RunEstimate, *, as_json: bool = False) -> None:
    """Print what a run would take: one line per arm, their sum, and what the numbers rest on."""
    if as_json:
        output.print_json(estimate.to_json())
        return
    rows = [
        [
            f"{arm.arm} (judge)" if arm.agent == "judge" else arm.arm,
            f"{arm.todo} of {arm.planned}",
            *_cells(arm.amounts, arm.is_bound),
        ]
        for arm in estimate.arms
    ]
    if len(rows) > 1:
        planned = sum(arm.planned for arm in estimate.arms if arm.agent != "judge")
        bound = any(arm.is_bound and arm.todo for arm in estimate.arms)
        # No arm can have this name.
        rows.append(["(all)", f"{estimate.todo} of {planned}", *_cells(estimate.total, bound)])
    output.print_table(_ESTIMATE, rows, estimate.name)
    output.say(*_estimate_lines(estimate))


def _cells(amounts: Mapping[str, float | None], is_bound: bool) -> list[str]:
    return [_amount(amounts[name], units, is_bound) for name, units in _SHOWN.items()]


def _amount(amount: float | None, units: _Units, is_bound: bool = False) -> str:
    """Return an amount in the largest unit in which it is at least that unit's threshold."""
    if amount is None:
        return "?"
    if amount == 0:
        return "0"
    size, form, digits = next(unit[1:] for unit in units if amount >= unit[0])
    return f"{'≤ ' * is_bound}{form.format(f'{amount / size:,.{digits}f}')}"


def _estimate_lines(estimate: RunEstimate) -> Iterator[str]:
    if not estimate.todo:
        yield f"nothing is left to run; the records are in {estimate.folder}"
        yield from estimate.notes
        return
    workers = f"{estimate.workers} at a time" if estimate.workers > 1 else "one after another"
    how = f"{counted(estimate.todo, 'trial')} to run ({estimate.executor}, {workers})"
    yield f"{how}; records would go to {estimate.folder}"
    for arm in estimate.arms:
        if arm.todo:
            n = counted(arm.measured, "trial")
            basis = _BASIS[arm.match].format(n=n, runs=" and ".join(arm.runs))
            yield f"{_name(arm)}: from {basis}"
    yield "estimates are means times trials; time is without startup"
    if estimate.polite_seconds is not None:
        requests = estimate.total["requests"]
        least = f"{requests:,.0f}" if requests else "an unknown number of"
        time = _amount(estimate.polite_seconds, _TIMES)
        yield f"endpoint: at least {least} requests, {time} by the rate limit"
    yield from (note for arm in estimate.arms for note in arm.notes)
    yield from estimate.notes


def _name(arm: ArmEstimate) -> str:
    if arm.agent == "judge":
        return f"judge of {arm.arm} ({arm.lm})"
    return f"{arm.arm} ({arm.agent}{', ' + arm.lm if arm.lm else ''})"
