"""Experiments: files that say what to compare, the runner, and the records it leaves."""

from reasoningbank.experiment.config import Arm, Experiment, TaskSelection, load_experiment
from reasoningbank.experiment.plan import plan_trials, select_tasks
from reasoningbank.experiment.records import RunFolder, TrialKey, TrialRecord
from reasoningbank.experiment.runner import Progress, run_experiment
from reasoningbank.experiment.trial import World, run_trial

__all__ = [
    "Arm",
    "Experiment",
    "Progress",
    "RunFolder",
    "TaskSelection",
    "TrialKey",
    "TrialRecord",
    "World",
    "load_experiment",
    "plan_trials",
    "run_experiment",
    "run_trial",
    "select_tasks",
]
