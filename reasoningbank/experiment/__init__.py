"""Experiments: files that say what to compare, one runner, and the records it writes."""

from reasoningbank.experiment.config import Arm, Experiment, load_experiment, parse_experiment
from reasoningbank.experiment.context import RunContext
from reasoningbank.experiment.executors import Observer, Progress
from reasoningbank.experiment.plan import plan_run, plan_trials, select_tasks
from reasoningbank.experiment.records import RunFolder, TrialKey, TrialRecord
from reasoningbank.experiment.rejudge import rejudge_run
from reasoningbank.experiment.runner import run_experiment
from reasoningbank.experiment.settings import Executor, Retries, SamplingSettings, TaskSelection
from reasoningbank.experiment.state import RunState, read_state
from reasoningbank.experiment.trial import run_trial

__all__ = [
    "Arm",
    "Executor",
    "Experiment",
    "Observer",
    "Progress",
    "Retries",
    "RunContext",
    "RunFolder",
    "RunState",
    "SamplingSettings",
    "TaskSelection",
    "TrialKey",
    "TrialRecord",
    "load_experiment",
    "parse_experiment",
    "plan_run",
    "plan_trials",
    "read_state",
    "rejudge_run",
    "run_experiment",
    "run_trial",
    "select_tasks",
]
