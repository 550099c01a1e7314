"""Experiments: files that say what to compare, one runner, and the records it writes."""

from reasoningbank.experiment.config import Arm, Experiment, load_experiment, parse_experiment
from reasoningbank.experiment.context import RunContext, open_context
from reasoningbank.experiment.executors import Observer, Progress
from reasoningbank.experiment.plan import Job, Plan, plan_run, plan_trials, select_tasks
from reasoningbank.experiment.records import RunFolder, TrialKey, TrialRecord
from reasoningbank.experiment.rejudge import Rejudged, rejudge_run
from reasoningbank.experiment.runner import run_experiment
from reasoningbank.experiment.settings import (
    BankMemory,
    EndpointSettings,
    Executor,
    GoldMemory,
    LearnedMemory,
    LearningSettings,
    MemorySettings,
    NoMemory,
    RandomMemory,
    Retries,
    SamplingSettings,
    SharedMemory,
    TaskSelection,
)
from reasoningbank.experiment.state import RunState, read_state
from reasoningbank.experiment.trial import Trial

__all__ = [
    "Arm",
    "BankMemory",
    "EndpointSettings",
    "Executor",
    "Experiment",
    "GoldMemory",
    "Job",
    "LearnedMemory",
    "LearningSettings",
    "MemorySettings",
    "NoMemory",
    "Observer",
    "Plan",
    "Progress",
    "RandomMemory",
    "Rejudged",
    "Retries",
    "RunContext",
    "RunFolder",
    "RunState",
    "SamplingSettings",
    "SharedMemory",
    "TaskSelection",
    "Trial",
    "TrialKey",
    "TrialRecord",
    "load_experiment",
    "open_context",
    "parse_experiment",
    "plan_run",
    "plan_trials",
    "read_state",
    "rejudge_run",
    "run_experiment",
    "select_tasks",
]
