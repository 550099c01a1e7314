"""What memory did in a run, as tables of text: streams apart, items, banks, what learning took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from reasoningbank.analysis.arm_summary import ArmSummary
from reasoningbank.analysis.memory_summary import ArmMemory, StreamMemory
from reasoningbank.analysis.online import Online
from reasoningbank.analysis.summary_tables import AGREEMENT, agreement_cells, interval_cell
from reasoningbank.analysis.tables import Cells, Table, number, pair

__all__ = [
    "bank_table",
    "counts",
    "learning_table",
    "rejected_table",
    "sampled_table",
    "stream_judge_table",
    "stream_table",
    "use_table",
]

#: Reasons that are told one by one.
MOST_TOLD = 20


def sampled_table(arms: Sequence[ArmSummary]) -> Table:
    """Return what choosing among several attempts came to, of arms that do."""
    headers = ("arm", "trials", "attempts", "each right", "chosen right", "any right",
               "tokens by wanted", "least")  # fmt: skip
    rows = [
        (
            arm.arm,
            str(s.trials),
            str(s.attempts),
            *(number(v, 2) for v in (s.each, s.chosen, s.any, s.spent, s.least)),
        )
        for arm in arms
        if (s := arm.sampled)
    ]
    return Table("several attempts a task, one chosen", headers, rows)


def stream_table(online: Online) -> Table:
    """Return what happened in the learning streams: the mean so far after each quarter."""
    first = online.arms[0].metric
    headers = ("arm in its stream", "n", "orders", first, "95 % interval", "after 1/4", "1/2",
               "3/4", "all")  # fmt: skip
    rows = [
        (
            arm.arm,
            str(arm.judged),
            str(arm.seeds),
            number(arm.mean.rate, 2),
            interval_cell(arm),
            *_along(online, arm.arm),
        )
        for arm in online.arms
    ]
    return Table("learning streams (not part of any comparison above)", headers, rows)


def stream_judge_table(online: Online) -> Table:
    """Return how other judges agree with the execution judge over all attempts of streams."""
    rows = [(name, *agreement_cells(found)) for name, found in online.judges.items()]
    title = "judges of the streams' attempts against the execution judge"
    return Table(title, ("judge of streams", *AGREEMENT), rows)


def use_table(arms: Sequence[ArmMemory]) -> Table:
    """Return what trials were shown of memory, and what it cost them."""
    headers = ("memory of", "over", "source", "trials", "items shown", "shown none",
               "shown turns", "withheld", "tokens shown", "s retrieving")  # fmt: skip
    rows = [
        (
            arm.arm,
            where,
            arm.source or "-",
            str(use.trials),
            pair(use.shown, 0),
            *map(str, (use.empty, use.demonstrated, use.withheld)),
            pair(use.tokens, 0),
            pair(use.seconds, 2),
        )
        for arm in arms
        for where, use in arm.uses
    ]
    return Table("memory: items and cost a trial, median (p95)", headers, rows)


def bank_table(arms: Sequence[ArmMemory]) -> Table:
    """Return what banks hold at the end, and what became of what was distilled."""
    headers = ("bank of", "order", "steps", "items at the end", "superseded", "retired", "stored",
               "merged", "rejected")  # fmt: skip
    rows = [(arm.arm, *_held(bank)) for arm in arms for bank in arm.banks]
    return Table("banks", headers, rows)


def learning_table(arms: Sequence[ArmMemory]) -> Table:
    """Return what a step of each stream took beside its trial."""
    headers = ("learning of", "order", "tokens a step", "s a step", "last snapshot")
    rows = [
        (arm.arm, _order(bank), pair(bank.tokens, 0), pair(bank.seconds, 1), bank.snapshot or "-")
        for arm in arms
        for bank in arm.banks
        if bank.steps
    ]
    return Table("what a step of a stream took, median (p95)", headers, rows)


def rejected_table(arms: Sequence[ArmMemory]) -> Table:
    """Return why what was distilled was not stored, a row a reason, the most frequent first."""
    rows = [
        (arm.arm, reason, str(n))
        for arm in arms
        for reason, n in Counter(arm.rejected).most_common()
    ]
    return Table("distilled and not stored", ("arm", "why", "items"), rows)


def counts(found: Mapping[str, int], most: int = MOST_TOLD) -> str:
    """Return how often each of some words was met, the most frequent first.

    Examples:
        >>> counts({"gold": 2, "success": 5, "failure": 1}, most=2)
        '5 success, 2 gold, and 1 other reasons'
    """
    ranked = sorted(found.items(), key=lambda one: (-one[1], one[0]))
    more = len(ranked) - most
    rest = f", and {more} other reasons" if more > 0 else ""
    return ", ".join(f"{n} {name}" for name, n in ranked[:most]) + rest


def _held(bank: StreamMemory) -> Cells:
    total = sum(bank.active.values())
    numbers = (bank.superseded, bank.retired, bank.added, bank.merged, sum(bank.rejected.values()))
    return (
        _order(bank),
        str(bank.steps),
        f"{total} ({counts(bank.active)})" if total else "0",
        *map(str, numbers),
    )


def _order(bank: StreamMemory) -> str:
    return "-" if bank.order is None else str(bank.order)


def _along(online: Online, arm: str) -> Cells:
    curve = online.curves.get(arm)
    return tuple(number(mean, 2) for mean in curve.quarters) if curve else ("-",) * 4
