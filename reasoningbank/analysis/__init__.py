"""What the records say: summaries and statistics. This room reads records and runs nothing."""

from typing import TYPE_CHECKING, Any

from reasoningbank.analysis.arm_summary import ArmSummary
from reasoningbank.analysis.comparison import Comparison, adjust, compare_arms
from reasoningbank.analysis.leak import Leak, Leakage
from reasoningbank.analysis.leakage import LeakageAudit
from reasoningbank.analysis.learning import learning_curves
from reasoningbank.analysis.matching import RunComparison, compare_runs
from reasoningbank.analysis.memory_records import MemoryRecords
from reasoningbank.analysis.memory_summary import ArmMemory, MemoryUse, StreamMemory
from reasoningbank.analysis.nl2sparql_figures import (
    calibration_figures,
    translation_figures,
    translation_metrics,
)
from reasoningbank.analysis.nl2sparql_rows import ArmRows, TranslationRow, read_translations
from reasoningbank.analysis.online import Online
from reasoningbank.analysis.scores import Metric, Score, Unit, scores
from reasoningbank.analysis.statistics import (
    Interval,
    LearningCurve,
    McNemar,
    bootstrap_mean,
    clopper_pearson,
    holm,
    learning_curve,
    mcnemar_midp,
    median_and_p95,
    wilson,
)
from reasoningbank.analysis.summary import RunSummary, summarise, summarise_run

if TYPE_CHECKING:
    from reasoningbank.analysis.frames import Frames, load

__all__ = [
    "ArmMemory",
    "ArmRows",
    "ArmSummary",
    "Comparison",
    "Frames",
    "Interval",
    "Leak",
    "Leakage",
    "LeakageAudit",
    "LearningCurve",
    "McNemar",
    "MemoryRecords",
    "MemoryUse",
    "Metric",
    "Online",
    "RunComparison",
    "RunSummary",
    "Score",
    "StreamMemory",
    "TranslationRow",
    "Unit",
    "adjust",
    "bootstrap_mean",
    "calibration_figures",
    "clopper_pearson",
    "compare_arms",
    "compare_runs",
    "holm",
    "learning_curve",
    "learning_curves",
    "load",
    "mcnemar_midp",
    "median_and_p95",
    "read_translations",
    "scores",
    "summarise",
    "summarise_run",
    "translation_figures",
    "translation_metrics",
    "wilson",
]


def __getattr__(name: str) -> Any:
    # pandas takes half a second to import; summaries need not wait for it.
    if name in {"Frames", "load"}:
        from reasoningbank.analysis import frames

        return getattr(frames, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
