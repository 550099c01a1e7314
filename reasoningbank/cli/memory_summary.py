"""What memory did in a run, as tables: leaks first, streams apart, banks, rejections, judges."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reasoningbank.cli import output

if TYPE_CHECKING:
    from reasoningbank.analysis import ArmMemory, ArmSummary, Leakage, Online, StreamMemory
    from reasoningbank.judge import Agreement

__all__ = [
    "AGREEMENT",
    "agreement_cells",
    "print_leaks",
    "print_memory",
    "print_online",
    "print_sampled",
]

#: Heads of the columns that `agreement_cells` fills.
AGREEMENT = ("n", "agree (yes + no)", "only judge yes", "only judge no", "precision", "recall",
             "kappa")  # fmt: skip
#: Leaks and reasons that are told one by one.
MOST_LINES = 20


def agreement_cells(found: Agreement) -> tuple[Any, ...]:
    """Return how a judge agrees with the execution judge, as cells of a table."""
    return (
        found.n,
        f"{found.true_positives} + {found.true_negatives}",
        found.false_positives,
        found.false_negatives,
        *(_number(value, 2) for value in (found.precision, found.recall, found.kappa)),
    )


def print_leaks(leakage: Leakage) -> None:
    """Say what leaked, where anything did: nothing else in the summary can be believed then."""
    leaks = leakage.leaks
    if not leaks:
        return
    _line(f"LEAKAGE: {len(leaks)} found; the numbers below prove nothing")
    for leak in leaks[:MOST_LINES]:
        _line(f"  {leak.sentence()}")
    if len(leaks) > MOST_LINES:
        _line(f"  and {len(leaks) - MOST_LINES} more; --json has all")


def print_sampled(arms: Sequence[ArmSummary]) -> None:
    """Print what choosing among several attempts came to, where an arm does."""
    rows = [
        (
            arm.arm,
            s.trials,
            s.attempts,
            *(_number(v, 2) for v in (s.each, s.chosen, s.any, s.spent, s.least)),
        )
        for arm in arms
        if (s := arm.sampled)
    ]
    if rows:
        headers = ("arm", "trials", "attempts", "each right", "chosen right", "any right",
                   "tokens by wanted", "least")  # fmt: skip
        output.print_table(headers, rows, "several attempts a task, one chosen")


def print_online(online: Online) -> None:
    """Print what happened in the learning streams, apart from what is compared."""
    rows = [
        (
            arm.arm,
            arm.judged,
            arm.seeds,
            f"{arm.mean.rate:.2f}",
            "-" if math.isnan(arm.mean.low) else f"{arm.mean.low:.2f} to {arm.mean.high:.2f}",
            *_along(online, arm.arm),
        )
        for arm in online.arms
    ]
    first = online.arms[0].metric
    headers = ("arm in its stream", "n", "orders", first, "95 % interval", "after 1/4", "1/2",
               "3/4", "all")  # fmt: skip
    output.print_table(headers, rows, "learning streams (not part of any comparison above)")
    for found in online.comparisons:
        _line(f"in the stream: {found.sentence()}")
    judges = [(name, *agreement_cells(found)) for name, found in online.judges.items()]
    if judges:
        title = "judges of the streams' attempts against the execution judge"
        output.print_table(("judge of streams", *AGREEMENT), judges, title)


def print_memory(arms: Sequence[ArmMemory]) -> None:
    """Print what arms with a memory were shown, what it cost, and what their banks hold."""
    if not arms:
        return
    shown = [
        (
            arm.arm,
            where,
            arm.source or "-",
            use.trials,
            _pair(use.shown, 0),
            use.empty,
            use.demonstrated,
            use.withheld,
            _pair(use.tokens, 0),
            _pair(use.seconds, 2),
        )
        for arm in arms
        for where, use in arm.uses
    ]
    headers = ("memory of", "over", "source", "trials", "items shown", "shown none",
               "shown turns", "withheld", "tokens shown", "s retrieving")  # fmt: skip
    output.print_table(headers, shown, "memory: items and cost a trial, median (p95)")
    banks = [(arm.arm, bank) for arm in arms for bank in arm.banks]
    if banks:
        heads = ("bank of", "order", "steps", "items at the end", "superseded", "retired", "stored",
                 "merged", "rejected")  # fmt: skip
        output.print_table(heads, [(name, *_held(bank)) for name, bank in banks], "banks")
    costs = [(name, *_cost(bank)) for name, bank in banks if bank.steps]
    if costs:
        took = ("learning of", "order", "tokens a step", "s a step", "last snapshot")
        output.print_table(took, costs, "what a step of a stream took, median (p95)")
    for arm in arms:
        if arm.rejected:
            _line(f"{arm.arm}, rejected: {_counts(arm.rejected, MOST_LINES)}")


def _held(bank: StreamMemory) -> tuple[Any, ...]:
    total = sum(bank.active.values())
    return (
        _order(bank),
        bank.steps,
        f"{total} ({_counts(bank.active, MOST_LINES)})" if total else 0,
        bank.superseded,
        bank.retired,
        bank.added,
        bank.merged,
        sum(bank.rejected.values()),
    )


def _cost(bank: StreamMemory) -> tuple[Any, ...]:
    return (_order(bank), _pair(bank.tokens, 0), _pair(bank.seconds, 1), bank.snapshot or "-")


def _order(bank: StreamMemory) -> int | str:
    return "-" if bank.order is None else bank.order


def _along(online: Online, arm: str) -> tuple[str, ...]:
    """Return the mean so far after each quarter of the stream."""
    curve = online.curves.get(arm)
    return tuple(_number(mean, 2) for mean in curve.quarters) if curve else ("-",) * 4


def _counts(counts: Mapping[str, int], most: int) -> str:
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    more = len(ranked) - most
    rest = f", and {more} other reasons" if more > 0 else ""
    return ", ".join(f"{n} {name}" for name, n in ranked[:most]) + rest


def _pair(pair: tuple[float, float], places: int) -> str:
    median, p95 = pair
    return "-" if math.isnan(median) else f"{median:.{places}f} ({p95:.{places}f})"


def _number(value: float | None, places: int) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.{places}f}"


def _line(text: str) -> None:
    output.console.print(text, soft_wrap=True, markup=False)
