"""Experiments: files that say what to compare, the runner, and the records it leaves."""

from reasoningbank.experiment.config import (
    Arm,
    EndpointSettings,
    Executor,
    Experiment,
    LearningSettings,
    MemorySettings,
    Retries,
    SamplingSettings,
    TaskSelection,
    load_experiment,
    parse_experiment,
)
from reasoningbank.experiment.plan import Plan, plan_run, plan_trials, select_tasks
from reasoningbank.experiment.records import RunFolder, TrialKey, TrialRecord
from reasoningbank.experiment.rejudge import Rejudged, rejudge_run
from reasoningbank.experiment.runner import Observer, Progress, run_experiment
from reasoningbank.experiment.state import RunState, read_state
from reasoningbank.experiment.trial import run_trial
from reasoningbank.experiment.world import World, open_world

__all__ = [
    "Arm",
    "EndpointSettings",
    "Executor",
    "Experiment",
    "LearningSettings",
    "MemorySettings",
    "Observer",
    "Plan",
    "Progress",
    "Rejudged",
    "Retries",
    "RunFolder",
    "RunState",
    "SamplingSettings",
    "TaskSelection",
    "TrialKey",
    "TrialRecord",
    "World",
    "load_experiment",
    "open_world",
    "parse_experiment",
    "plan_run",
    "plan_trials",
    "read_state",
    "rejudge_run",
    "run_experiment",
    "run_trial",
    "select_tasks",
]
