"""What the records say: summaries and statistics. This room reads records and runs nothing."""

from reasoningbank.analysis.statistics import (
    Interval,
    McNemar,
    mcnemar_midp,
    median_and_p95,
    wilson,
)
from reasoningbank.analysis.summary import ArmSummary, RunSummary, summarise

__all__ = [
    "ArmSummary",
    "Interval",
    "McNemar",
    "RunSummary",
    "mcnemar_midp",
    "median_and_p95",
    "summarise",
    "wilson",
]
