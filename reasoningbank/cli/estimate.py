"""What a dry run prints: trials, LM calls, tokens, time and dollars, before any is spent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reasoningbank.cli.output import console, print_json, print_table
from reasoningbank.experiment.estimate import ArmEstimate, RunEstimate

HEADERS = ("arm", "to run", "LM calls", "tokens sent", "generated", "time", "dollars")

_BASIS = {
    "own": "{n} trials of this run",
    "same": "{n} trials with the same settings, of {runs}",
    "similar": "{n} trials of {runs} with other settings",
    "model": "{n} trials of {runs} with another model, whose time says nothing here",
    "none": "the budget, an upper bound: no such trial was measured",
}


def print_estimate(estimate: RunEstimate, *, as_json: bool = False) -> None:
    """Print what a run would take: one line per arm, their sum, and what the numbers rest on.

    An upper bound is printed with ``≤``, an unknown amount as ``?``.
    """
    if as_json:
        print_json(estimate.to_json())
        return
    rows = [
        [
            f"{arm.arm} (judge)" if arm.agent == "judge" else arm.arm,
            f"{arm.todo} of {arm.planned}",
            *_cells(arm.amounts, is_bound=arm.is_bound),
        ]
        for arm in estimate.arms
    ]
    if len(rows) > 1:
        planned = sum(arm.planned for arm in estimate.arms if arm.agent != "judge")
        bound = any(arm.is_bound and arm.todo for arm in estimate.arms)
        total = _cells(estimate.total, is_bound=bound)
        # No arm can have this name.
        rows.append(["(all)", f"{estimate.todo} of {planned}", *total])
    print_table(HEADERS, rows, estimate.name)
    for line in _lines(estimate):
        console.print(line, soft_wrap=True)


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


def _cells(amounts: Mapping[str, float | None], *, is_bound: bool) -> list[str]:
    shown = (
        ("lm_calls", _COUNTS), ("prompt_tokens", _COUNTS), ("completion_tokens", _COUNTS),
        ("seconds", _TIMES), ("dollars", _DOLLARS),
    )  # fmt: skip
    return [_amount(amounts[name], units, is_bound=is_bound) for name, units in shown]


def _amount(amount: float | None, units: _Units, *, is_bound: bool = False) -> str:
    """Return an amount in the largest unit in which it is at least that unit's threshold."""
    if amount is None:
        return "?"
    if amount == 0:
        return "0"
    size, form, digits = next(unit[1:] for unit in units if amount >= unit[0])
    return f"{'≤ ' * is_bound}{form.format(f'{amount / size:,.{digits}f}')}"


def _lines(estimate: RunEstimate) -> list[str]:
    if not estimate.todo:
        return [f"nothing is left to run; the records are in {estimate.folder}", *estimate.notes]
    workers = f"{estimate.workers} at a time" if estimate.workers > 1 else "one after another"
    trials = "trial" if estimate.todo == 1 else "trials"
    lines = [
        f"{estimate.todo} {trials} to run ({estimate.executor}, {workers}); "
        f"records would go to {estimate.folder}",
        *(f"{_name(arm)}: from {_basis(arm)}" for arm in estimate.arms if arm.todo),
        "estimates are means times trials; time is without startup",
    ]
    if estimate.polite_seconds is not None:
        requests = estimate.total["requests"]
        least = f"{requests:,.0f}" if requests else "an unknown number of"
        time = _amount(estimate.polite_seconds, _TIMES)
        lines.append(f"endpoint: at least {least} requests, {time} by the rate limit")
    return [*lines, *(note for arm in estimate.arms for note in arm.notes), *estimate.notes]


def _name(arm: ArmEstimate) -> str:
    if arm.agent == "judge":
        return f"judge of {arm.arm} ({arm.lm})"
    return f"{arm.arm} ({arm.agent}{', ' + arm.lm if arm.lm else ''})"


def _basis(arm: ArmEstimate) -> str:
    return _BASIS[arm.match].format(n=arm.measured, runs=" and ".join(arm.runs))
