"""What happened in the learning streams of a run: practice, apart from what is compared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from reasoningbank.analysis.arm_summary import ArmSummary, agreements, summarise_arm
from reasoningbank.analysis.averages import by_order, in_stream, longest
from reasoningbank.analysis.comparison import Comparison, adjust, compare_arms
from reasoningbank.analysis.finite import finite
from reasoningbank.analysis.learning import curves_of
from reasoningbank.analysis.scores import Metric, Score, Unit
from reasoningbank.analysis.statistics import LearningCurve
from reasoningbank.judge import Agreement

__all__ = ["Online", "summarise_streams"]


@dataclass(frozen=True)
class Online:
    """What happened in the learning streams of a run.

    Orders that ended before the longest of their arm are left out of all but `judges`: their means
    are of the beginning only.

    Attributes:
        arms: One line an arm that has a stream; the replicate is an order.
        curves: The metric along the stream, by arm: the mean of all tasks so far, with its band
            over orders.
        comparisons: Every arm that learns against the arm without memory that runs the stream and
            is alike in all else, by orders, with Holm's correction over them; an arm that has no
            such other is in none. Where that other did not run an order, its first one stands
            there: without memory nothing depends on what was met before. Then the difference is
            told and not tested, since one control in several orders has none of its own spread.
        judges: Every other judge and the plain rule against the execution judge, over all
            attempts of all streams.
        errors: Trials of all streams that the infrastructure ended; they count nowhere else.
        defective: Those whose gold is defective; likewise.
    """

    arms: tuple[ArmSummary, ...]
    curves: Mapping[str, LearningCurve]
    comparisons: tuple[Comparison, ...]
    judges: Mapping[str, Agreement]
    errors: int = 0
    defective: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-able data; what is not defined is None."""
        return {
            "arms": [arm.to_json() for arm in self.arms],
            "curves": {name: finite(asdict(curve)) for name, curve in self.curves.items()},
            "comparisons": [found.to_json() for found in self.comparisons],
            "judges": {name: found.to_json() for name, found in self.judges.items()},
            "errors": self.errors,
            "defective": self.defective,
        }


def summarise_streams(
    by_arm: Mapping[str, Sequence[Score]],
    metric: Metric,
    unit: Unit,
    controls: Mapping[str, str] | None,
    planned: Mapping[str, int] | None = None,
) -> Online | None:
    """Summarise the learning streams of a run.

    Args:
        by_arm: The trials of streams, by arm.
        metric: The primary metric.
        unit: What counts as one observation where something is drawn again.
        controls: For each arm the one that is alike in all but memory; where that is not known
            (None), the first arm without memory.
        planned: How many trials each arm is to have in its streams; those on disk by default.

    Returns:
        What happened; None where there is no stream.
    """
    everything = [trial for trials in by_arm.values() for trial in trials]
    streams = {name: _whole(trials) for name, trials in by_arm.items() if in_stream(trials)}
    if not streams:
        return None
    plain = [name for name, trials in streams.items() if not any(t.memory for t in trials)]
    if controls is None:
        controls = dict.fromkeys(streams, plain[0]) if plain else {}
    to_do = {
        name: max(0, (planned or {}).get(name, 0) - len(trials)) for name, trials in by_arm.items()
    }
    found = [
        _against(trials, streams[other], metric, unit, to_do[name] + to_do[other])
        for name, trials in streams.items()
        if name not in plain and (other := controls.get(name, "")) in streams
    ]
    return Online(
        arms=tuple(summarise_arm(name, trials, metric, unit) for name, trials in streams.items()),
        curves=curves_of((t for trials in streams.values() for t in trials), metric=metric),
        comparisons=adjust([one for one in found if one is not None]),
        judges=agreements(everything, rule_alone=True),
        errors=sum(trial.fate == "error" for trial in everything),
        defective=sum(trial.fate == "defective" for trial in everything),
    )


def _whole(trials: Sequence[Score]) -> list[Score]:
    """Return the trials of the orders that went as far as the longest one."""
    orders = by_order(trials)
    whole = longest({seed: len(order) for seed, order in orders.items()})
    return [trial for seed, order in orders.items() if seed in whole for trial in order]


def _against(
    learned: Sequence[Score], plain: Sequence[Score], metric: Metric, unit: Unit, to_do: int
) -> Comparison | None:
    """Compare an arm that learns with its control, in every order of the one that learns."""
    known = by_order(plain)
    missing = sorted({trial.seed for trial in learned} - set(known))
    stand_in = [replace(t, seed=order) for order in missing for t in known[min(known)]]
    found = compare_arms(learned, [*plain, *stand_in], metric=metric, unit=unit)
    if found is None:
        return None
    found = replace(found, missing=to_do)
    if not missing:
        return found
    alone = compare_arms(learned, plain, metric=metric, unit=unit)
    assert alone is not None
    return replace(
        found,
        runs=alone.runs,
        seeds=alone.seeds,
        errors=alone.errors,
        low=math.nan,
        high=math.nan,
        p=math.nan,
        p_holm=math.nan,
        detectable=None,
        method=f"not tested: {found.second} ran {len(known)} of these orders",
    )
