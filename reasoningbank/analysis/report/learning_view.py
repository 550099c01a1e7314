"""What learning did, in the page: leaks first, streams apart, memory, and judges."""

from __future__ import annotations

import math
from collections.abc import Sequence

from reasoningbank.analysis.leakage import Leakage
from reasoningbank.analysis.memory_summary import ArmMemory, StreamMemory
from reasoningbank.analysis.report.headline import number
from reasoningbank.analysis.report.markup import Html, element, joined
from reasoningbank.analysis.report.tables import table
from reasoningbank.analysis.summary import Online, RunSummary
from reasoningbank.judge import Agreement

__all__ = ["AGREEMENT", "agreement_cells", "leak_note", "learning_view"]

#: Heads of the columns that `agreement_cells` fills.
AGREEMENT = ("attempts", "agrees", "too kind", "too strict", "precision", "recall", "κ")
#: Leaks that are told one by one.
MOST_LEAKS = 50


def agreement_cells(found: Agreement) -> list[str]:
    """Return how a judge agrees with the execution judge, as cells of a table."""
    return [
        str(found.n),
        str(found.true_positives + found.true_negatives),
        str(found.false_positives),
        str(found.false_negatives),
        *(
            "–" if value is None else number(value)
            for value in (found.precision, found.recall, found.kappa)
        ),
    ]


def leak_note(leakage: Leakage) -> Html:
    """Return the warning of a run that leaked, which stands before every number; else nothing."""
    leaks = leakage.leaks
    if not leaks:
        return Html()
    lines = [element("li", leak.sentence()) for leak in leaks[:MOST_LEAKS]]
    if len(leaks) > MOST_LEAKS:
        lines.append(element("li", f"and {len(leaks) - MOST_LEAKS} more"))
    many = "leak" if len(leaks) == 1 else "leaks"
    return element(
        "section",
        element("p", element("b", f"Leakage: {len(leaks)} {many}."), " Trials were shown what they "
                "should have found by themselves; the numbers below prove nothing."),
        element("ul", joined(lines)),
        class_="note error",
        id="leaks",
        role="alert",
    )  # fmt: skip


def learning_view(summary: RunSummary) -> list[Html]:
    """Return the sections on streams, memory and its judges; nothing for a run without."""
    parts: list[Html] = []
    if summary.online:
        parts += _online(summary.online)
    if summary.memory:
        parts += _memory(summary.memory)
    return parts


def _online(online: Online) -> list[Html]:
    rows = [
        [
            arm.arm,
            str(arm.judged),
            str(arm.seeds),
            number(arm.mean.rate),
            f"{number(arm.mean.low)} to {number(arm.mean.high)}"
            if math.isfinite(arm.mean.low)
            else "none",
            *_quarters(online, arm.arm),
        ]
        for arm in online.arms
    ]
    head = ["arm", "trials", "orders", "mean", "95 % interval", "after ¼", "½", "¾", "all"]
    parts = [
        element("h2", "Learning streams"),
        element("p", "Practice: each task was met with a bank that was still growing. No "
                "comparison above rests on these trials.", class_="quiet"),
        table(head, rows),
    ]  # fmt: skip
    parts += [element("p", f"{found.sentence()}.") for found in online.comparisons]
    judges = [[name, *agreement_cells(found)] for name, found in online.judges.items()]
    if judges:
        parts += [
            element("h2", "Judges of the streams' attempts against execution"),
            table(["judge", *AGREEMENT], judges),
        ]
    return parts


def _memory(arms: Sequence[ArmMemory]) -> list[Html]:
    rows = [
        [
            arm.arm,
            arm.source or "–",
            where,
            str(use.trials),
            _pair(use.shown, 0),
            str(use.empty),
            str(use.demonstrated),
            str(use.withheld),
            _pair(use.tokens, 0),
            _pair(use.seconds, 2),
        ]
        for arm in arms
        for where, use in arm.uses
    ]
    head = ["arm", "memory", "over", "trials", "items shown", "shown none", "shown turns",
            "withheld", "tokens shown", "seconds retrieving"]  # fmt: skip
    parts = [
        element("h2", "Memory"),
        table(head, rows, left=3),
        element("p", "A trial's median, and in brackets the 95th percentile.", class_="quiet"),
    ]
    banks = [[arm.arm, *_bank(bank)] for arm in arms for bank in arm.banks]
    if banks:
        head = ["bank of", "order", "steps", "items at the end", "superseded", "retired", "stored",
                "merged", "rejected", "tokens a step", "seconds a step", "snapshot"]  # fmt: skip
        parts += [element("h2", "Banks at the end"), table(head, banks, wide=True)]
    refused = [[arm.arm, reason, str(n)] for arm in arms for reason, n in arm.rejected.items()]
    if refused:
        head = ["arm", "why it was not stored", "items"]
        parts += [element("h2", "Distilled and rejected"), table(head, refused, left=2)]
    return parts


def _bank(bank: StreamMemory) -> list[str]:
    total = sum(bank.active.values())
    kinds = ", ".join(f"{n} {kind}" for kind, n in bank.active.items())
    return [
        "–" if bank.order is None else str(bank.order),
        str(bank.steps),
        f"{total} ({kinds})" if total else "0",
        *map(str, (bank.superseded, bank.retired, bank.added, bank.merged)),
        str(sum(bank.rejected.values())),
        _pair(bank.tokens, 0),
        _pair(bank.seconds, 1),
        bank.snapshot or "–",
    ]


def _quarters(online: Online, arm: str) -> list[str]:
    # An arm whose trials all ended in infrastructure errors has no curve.
    curve = online.curves.get(arm)
    return [number(mean) for mean in curve.quarters] if curve else ["–"] * 4


def _pair(pair: tuple[float, float], digits: int) -> str:
    median, p95 = pair
    return f"{median:,.{digits}f} ({p95:,.{digits}f})" if math.isfinite(median) else "–"
