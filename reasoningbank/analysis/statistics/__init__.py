"""Honest numbers for small n: pure functions over numbers, knowing nothing of records."""

from reasoningbank.analysis.statistics.bootstrap import (
    UnitMean,
    bootstrap_mean,
    sign_flip_p,
    t_mean,
    t_p,
)
from reasoningbank.analysis.statistics.learning import LearningCurve, learning_curve
from reasoningbank.analysis.statistics.multiple import holm
from reasoningbank.analysis.statistics.paired import McNemar, mcnemar_midp, tango
from reasoningbank.analysis.statistics.passes import pass_all_k, pass_at_k
from reasoningbank.analysis.statistics.power import (
    detectable_mcnemar,
    detectable_mean,
    mcnemar_power,
)
from reasoningbank.analysis.statistics.rates import Interval, clopper_pearson, wilson
from reasoningbank.analysis.statistics.spread import median_and_p95

__all__ = [
    "Interval",
    "LearningCurve",
    "McNemar",
    "UnitMean",
    "bootstrap_mean",
    "clopper_pearson",
    "detectable_mcnemar",
    "detectable_mean",
    "holm",
    "learning_curve",
    "mcnemar_midp",
    "mcnemar_power",
    "median_and_p95",
    "pass_all_k",
    "pass_at_k",
    "sign_flip_p",
    "t_mean",
    "t_p",
    "tango",
    "wilson",
]
