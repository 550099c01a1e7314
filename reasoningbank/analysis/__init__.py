"""Analysis of records: frames, statistics, summaries, figures, the report and exports.

This room reads records and runs nothing. `load` gives pandas frames, `summarise_run` a run in
numbers, `compare_runs` two runs against each other; `figures`, `report` and `inspect_log` are
sub-packages of their own.
"""

from typing import TYPE_CHECKING, Any

from reasoningbank.analysis.comparison import (
    ArmComparison,
    adjust,
    changed_answers,
    compare_arms,
)
from reasoningbank.analysis.leakage import Leak, Leakage, LeakageAudit
from reasoningbank.analysis.memory import ArmMemory, MemoryRecords, MemoryUse, StreamMemory
from reasoningbank.analysis.run_comparison import DifferingTask, RunComparison, compare_runs
from reasoningbank.analysis.scores import Metric, Score, Unit
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
)  # fmt: skip
from reasoningbank.analysis.summary import (
    ArmSummary,
    Online,
    RunSummary,
    summarise,
    summarise_run,
)  # fmt: skip
from reasoningbank.analysis.translators import (
    ArmRows,
    TranslationRow,
    calibration_figures,
    read_translations,
    translation_figures,
    translation_metrics,
)  # fmt: skip

if TYPE_CHECKING:
    from reasoningbank.analysis.frames import Frames, load, write_parquet

__all__ = [
    "ArmComparison", "ArmMemory", "ArmRows", "ArmSummary",
    "DifferingTask", "Frames",
    "Interval", "Leak", "Leakage", "LeakageAudit", "LearningCurve", "McNemar", "MemoryRecords",
    "MemoryUse", "Metric", "Online", "RunComparison", "RunSummary", "Score", "StreamMemory",
    "TranslationRow", "Unit", "adjust", "bootstrap_mean", "calibration_figures", "changed_answers",
    "clopper_pearson", "compare_arms", "compare_runs", "holm", "learning_curve",
    "load", "mcnemar_midp", "median_and_p95", "read_translations", "summarise",
    "summarise_run", "translation_figures", "translation_metrics", "wilson", "write_parquet",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    # pandas takes half a second to import, which summaries do not need.
    if name in {"Frames", "load", "write_parquet"}:
        from reasoningbank.analysis import frames

        return getattr(frames, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
