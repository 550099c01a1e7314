"""Experiments: files that say what to compare, the runner, and the records it leaves."""

from reasoningbank.experiment.config import (
    Arm,
    EndpointSettings,
    Experiment,
    TaskSelection,
    load_experiment,
)
from reasoningbank.experiment.plan import plan_trials, select_tasks
from reasoningbank.experiment.records import RunFolder, TrialKey, TrialRecord
from reasoningbank.experiment.runner import Progress, run_experiment
from reasoningbank.experiment.trial import run_trial
from reasoningbank.experiment.world import World, open_world

__all__ = [
    "Arm",
    "EndpointSettings",
    "Experiment",
    "Progress",
    "RunFolder",
    "TaskSelection",
    "TrialKey",
    "TrialRecord",
    "World",
    "load_experiment",
    "open_world",
    "plan_trials",
    "run_experiment",
    "run_trial",
    "select_tasks",
]
