"""What a dry run prints: trials, LM calls, tokens, time and dollars, before any is spent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reasoningbank.cli.output import console, print_json, print_table
from reasoningbank.experiment.estimate import Amount, ArmEstimate, RunEstimate

__all__ = ["print_estimate"]

HEADERS = ("arm", "to run", "LM calls", "tokens sent", "generated", "time", "dollars")
_SHOWN = ("lm_calls", "prompt_tokens", "completion_tokens", "seconds", "dollars")

_FROM = {
    "own": "{n} trials of this run",
    "same": "{n} trials like these, of {runs}",
    "settings": "{n} trials of {runs}, with other settings",
    "model": "{n} trials of {runs} with {models}; time is the budget's, a bound",
    "none": "the budget, an upper bound: no such trial was measured",
}


def print_estimate(estimate: RunEstimate, *, as_json: bool = False) -> None:
    """Print what a run would take: one line an arm, their sum, and what the numbers rest on.

    An estimate is printed as ``expected (low–high)``, an upper bound with ``≤``, what is not known
    as ``?``.
    """
    if as_json:
        print_json(estimate.to_json())
        return
    rows = [_row(arm) for arm in (*estimate.arms, *estimate.judges)]
    if len(rows) > 1:
        planned = sum(arm.planned for arm in estimate.arms)
        # No arm can be called so.
        rows.append(["(all)", f"{estimate.todo} of {planned}", *_amounts(estimate.total)])
    print_table(HEADERS, rows, estimate.name)
    for line in _lines(estimate):
        console.print(line, soft_wrap=True)


def _row(arm: ArmEstimate) -> list[str]:
    amounts = {name: getattr(arm, name) for name in _SHOWN}
    label = f"{arm.arm} (judge)" if arm.agent == "judge" else arm.arm
    return [label, f"{arm.todo} of {arm.planned}", *_amounts(amounts)]


def _amounts(amounts: Mapping[str, Amount]) -> list[str]:
    calls, sent, generated, seconds, dollars = (amounts[name] for name in _SHOWN)
    return [
        *(_said(amount, _COUNTS) for amount in (calls, sent, generated)),
        _said(seconds, _TIMES),
        _said(dollars, _DOLLARS),
    ]


def _said(amount: Amount, units: Sequence[tuple[float, float, str, int]]) -> str:
    """Return an amount for people, in one unit, which the expected amount decides.

    Args:
        amount: The amount.
        units: Each with the least that is told in it, its size, how it is written around a number
            and its decimals; the largest first.
    """
    measure = amount.high if amount.expected is None else amount.expected
    if measure is None:
        return "?"
    if measure == 0:
        return "0"
    size, form, digits = next(unit[1:] for unit in units if measure >= unit[0])
    expected, *ends = (
        "?" if value is None else f"{value / size:,.{digits}f}"
        for value in (measure, amount.low, amount.high)
    )
    if amount.expected is None:
        return f"≤ {form.format(expected)}"
    spread = "" if set(ends) == {expected} else f" ({'–'.join(ends)})"
    return form.format(expected) + spread


_COUNTS = (
    (1e7, 1e6, "{}M", 0), (1e6, 1e6, "{}M", 1), (1e4, 1e3, "{}k", 0), (1e3, 1e3, "{}k", 1),
    (0.0, 1.0, "{}", 0),
)  # fmt: skip
_TIMES = (
    (36_000.0, 3600.0, "{} h", 0), (5400.0, 3600.0, "{} h", 1), (600.0, 60.0, "{} min", 0),
    (60.0, 60.0, "{} min", 1), (10.0, 1.0, "{} s", 0), (0.0, 1.0, "{} s", 1),
)  # fmt: skip
_DOLLARS = ((0.01, 1.0, "${}", 2), (0.0, 1.0, "${}", 4))


def _lines(estimate: RunEstimate) -> list[str]:
    if not estimate.todo:
        return [f"nothing is left to run; the records are in {estimate.folder}", *estimate.notes]
    workers = f"{estimate.workers} at a time" if estimate.workers > 1 else "one after another"
    trials = "trial" if estimate.todo == 1 else "trials"
    lines = [
        f"{estimate.todo} {trials} to run ({estimate.executor}, {workers}); "
        f"records would go to {estimate.folder}",
        *(f"{_name(a)}: from {_basis(a)}" for a in (*estimate.arms, *estimate.judges) if a.todo),
        "in brackets: 90 % prediction intervals; time is without starting up",
    ]
    if estimate.polite_seconds is not None:
        requests = estimate.total["requests"].low
        least = f"{requests:,.0f}" if requests else "an unknown number of"
        time = _said(Amount(*[estimate.polite_seconds] * 3), _TIMES)
        lines.append(f"endpoint: at least {least} requests, {time} by the rate limit")
    told = [note for arm in (*estimate.arms, *estimate.judges) for note in arm.notes]
    return [*lines, *told, *estimate.notes]


def _name(arm: ArmEstimate) -> str:
    if arm.agent == "judge":
        return f"judge of {arm.arm} ({arm.lm})"
    return f"{arm.arm} ({arm.agent}{', ' + arm.lm if arm.lm else ''})"


def _basis(arm: ArmEstimate) -> str:
    return _FROM[arm.kinship].format(
        n=arm.measured, runs=" and ".join(arm.runs), models=", ".join(arm.models)
    )
