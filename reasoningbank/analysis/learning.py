"""Learning curves of a run's arms, from its records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from reasoningbank.analysis.scores import Metric, Score, scores
from reasoningbank.analysis.statistics import LearningCurve, learning_curve
from reasoningbank.experiment import TrialRecord

__all__ = ["curves_of", "learning_curves"]


def learning_curves(
    records: Iterable[TrialRecord], *, metric: Metric = "strict", window: int | None = None
) -> dict[str, LearningCurve]:
    """Return the learning curve of each arm whose trials have a place in a stream.

    Args:
        records: The trials of a run; those outside a stream, and those that are not judged, are
            left out.
        metric: What is averaged.
        window: How many of the last tasks are averaged at each step; None for all so far.
    """
    return curves_of(scores(records), metric=metric, window=window)


def curves_of(
    trials: Iterable[Score], *, metric: Metric = "strict", window: int | None = None
) -> dict[str, LearningCurve]:
    """Return the learning curves of trials as statistics see them; see `learning_curves`."""
    values: dict[str, dict[int, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for score in trials:
        if score.step is not None and score.fate == "judged":
            values[score.arm][score.seed][score.step] = score.value(metric)
    return {arm: learning_curve(orders, window=window) for arm, orders in values.items()}
