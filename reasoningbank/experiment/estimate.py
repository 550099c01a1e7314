"""What a run would take: the mean of measured trials times the trials that are left to run.

Trials of a pilot, of the run itself or of earlier runs are used, the most similar first. Without
any, the budget gives an upper bound where it limits an amount.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, NamedTuple

import reasoningbank
from reasoningbank.agents import make_agent
from reasoningbank.errors import RecordError, UsageError
from reasoningbank.experiment.config import Arm, Experiment, parse_experiment, seeds_of
from reasoningbank.experiment.plan import Job
from reasoningbank.experiment.records import RunFolder, TrialKey, TrialRecord
from reasoningbank.lm import parse_name, price_of

__all__ = ["ArmEstimate", "MatchLevel", "RunEstimate", "estimate_run"]

#: own: the arm's trials in this run. same: trials of other runs with the same agent, model and
#: settings. similar: the same agent and model with other settings. model: the same agent with
#: another model. none: nothing was measured.
MatchLevel = Literal["own", "same", "similar", "model", "none"]

AMOUNTS = ("lm_calls", "prompt_tokens", "completion_tokens", "seconds", "dollars", "requests")
#: At most this many trials of one arm are read, evenly spaced.
_MOST = 60
#: This many trials suffice; less similar ones are then left out.
_ENOUGH = 5
#: Tokens of prompt and answer of one call to a local model.
_LOCAL_CONTEXT = 8192


@dataclass(frozen=True)
class ArmEstimate:
    """What the trials of one arm that are not on disk yet will take."""

    arm: str
    agent: str
    lm: str
    planned: int
    todo: int
    amounts: Mapping[str, float | None]
    is_bound: bool = False
    match: MatchLevel = "none"
    measured: int = 0
    runs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunEstimate:
    """What a run would take from its present state."""

    name: str
    folder: str
    executor: str
    workers: int
    arms: tuple[ArmEstimate, ...]
    total: Mapping[str, float | None]
    polite_seconds: float | None
    notes: tuple[str, ...] = ()

    @property
    def todo(self) -> int:
        """Trials to run."""
        return sum(arm.todo for arm in self.arms if arm.agent != "judge")

    def to_json(self) -> dict[str, Any]:
        """Return the estimate as JSON-able data."""
        return {**asdict(self), "todo": self.todo}


def estimate_run(
    experiment: Experiment,
    folder: RunFolder,
    planned: Sequence[Job],
    *,
    sources: Iterable[Path] | None = None,
) -> RunEstimate:
    """Estimate what the trials that are not on disk yet will take."""
    runs = _read_runs((folder.path, *(_known_runs(folder) if sources is None else sources)))
    notes: tuple[str, ...] = ()
    if (manifest := folder.manifest) is not None and not _is_run_of(manifest, experiment):
        notes = (f"{folder.path} holds another run and would be refused; use another with --out",)
    todo = [job for job in planned if notes or not folder.done(job.key)]
    all_trials, left = (Counter(job.arm.name for job in jobs) for jobs in (planned, todo))
    arms = []
    for arm in experiment.arms:
        if arm.name in all_trials:
            counts = all_trials[arm.name], left[arm.name]
            arms.append(_estimate_arm(experiment, arm, folder, counts, runs))
            if arm.judge_lm:
                arms.append(_estimate_judge(experiment, arm, counts, runs))
    total = {
        name: math.fsum(x for x in found if x is not None) if None not in found else None
        for name in AMOUNTS
        for found in ([arm.amounts[name] for arm in arms],)
    }
    polite = None
    if experiment.endpoint is not None:
        polite = max(0.0, (total["requests"] or len(todo)) - 1) * experiment.endpoint.min_interval_s
    return RunEstimate(
        name=experiment.name,
        folder=str(folder.path),
        executor=experiment.executor.kind,
        workers=experiment.executor.workers,
        arms=tuple(arms),
        total=total,
        polite_seconds=polite,
        notes=notes,
    )


class _PastRun(NamedTuple):
    folder: RunFolder
    experiment: Experiment
    tasks: tuple[str, ...]
    created: str


def _known_runs(folder: RunFolder) -> list[Path]:
    root = Path(reasoningbank.__file__).parent
    results = [Path("experiments/results"), root / "results", root.parent / "experiments/results"]
    found = {
        manifest.parent.resolve()
        for place in (folder.path.parent, Path("runs"), *results)
        if place.is_dir()
        for manifest in place.glob("*/manifest.json")
    }
    return sorted(found - {folder.path.resolve()})


def _read_runs(paths: Iterable[Path]) -> list[_PastRun]:
    """Return the readable runs, newest first; an archived copy is the same run."""
    runs: dict[tuple[str, str], _PastRun] = {}
    for path in paths:
        with contextlib.suppress(RecordError, UsageError):
            manifest = RunFolder(path).manifest or {}
            experiment = parse_experiment(manifest.get("experiment", {}))
            tasks = (*manifest.get("tasks", ()), *manifest.get("stream", ()))
            run = _PastRun(RunFolder(path), experiment, tasks, str(manifest.get("created", "")))
            runs.setdefault((experiment.fingerprint(), run.created), run)
    return sorted(runs.values(), key=lambda run: run.created, reverse=True)


def _is_run_of(manifest: Mapping[str, Any], experiment: Experiment) -> bool:
    with contextlib.suppress(UsageError):
        past = parse_experiment(manifest["experiment"])
        return past.fingerprint() == experiment.fingerprint()
    return False


def _estimate_arm(
    experiment: Experiment,
    arm: Arm,
    folder: RunFolder,
    counts: tuple[int, int],
    runs: Sequence[_PastRun],
) -> ArmEstimate:
    uses_lm = make_agent(arm.agent).uses_lm
    match, trials, names = _measured(experiment, arm, folder, runs)
    lm = arm.lm if uses_lm else ""
    notes = []
    if trials:
        means = _means([_amounts(trial) for trial in trials])
        if match == "model":
            # Another model is faster or slower, and its price does not apply.
            means |= {"seconds": None, "dollars": None}
    else:
        means = _bounds(experiment, arm, uses_lm=uses_lm)
    if means["dollars"] is None:
        means["dollars"] = _price(lm, means)
        if means["dollars"] is None and counts[1]:
            notes.append(f"{arm.name}: no price is known for {lm}")
    amounts = _times(means, counts[1], _at_once(experiment, lm, counts[1]))
    return ArmEstimate(
        arm.name, arm.agent, lm, *counts, amounts, not trials, match, len(trials), names,
        tuple(notes) if counts[1] else (),
    )  # fmt: skip


def _estimate_judge(
    experiment: Experiment, arm: Arm, counts: tuple[int, int], runs: Sequence[_PastRun]
) -> ArmEstimate:
    """Return what the LM judge of an arm will take: one call per trial, after the attempt."""
    lm = arm.judge_lm
    names: tuple[str, ...] = ()
    measured: list[dict[str, float | None]] = []
    for run in runs:
        for other in run.experiment.arms:
            if other.judge_lm == lm and not measured:
                said = (t.judgements.get(f"lm:{lm}") for t in _trials(run, other))
                measured = [_judge_amounts(one) for one in said if one]
                names = (run.experiment.name,)
    means = _means(measured) if measured else {**dict.fromkeys(AMOUNTS), "lm_calls": 1.0}
    means["requests"] = 0.0
    if means["dollars"] is None:
        means["dollars"] = _price(lm, means)
    amounts = _times(means, counts[1], _at_once(experiment, lm, counts[1]))
    match: MatchLevel = "same" if measured else "none"
    bound = not measured
    runs_used = names if measured else ()
    return ArmEstimate(
        arm.name, "judge", lm, *counts, amounts, bound, match, len(measured), runs_used
    )


def _measured(
    experiment: Experiment, arm: Arm, folder: RunFolder, runs: Sequence[_PastRun]
) -> tuple[MatchLevel, list[TrialRecord], tuple[str, ...]]:
    """Return the most similar measured trials, at what level, and their runs."""
    found: dict[MatchLevel, list[tuple[_PastRun, Arm]]] = {
        "own": [], "same": [], "similar": [], "model": [],
    }  # fmt: skip
    for run in runs:
        for other in run.experiment.arms:
            level = _match_level(experiment, arm, run.experiment, other)
            if level == "same" and run.folder.path == folder.path and other.name == arm.name:
                level = "own"
            if level != "none":
                found[level].append((run, other))
    # Of those with other settings, trials on the same pack are the most similar.
    found["similar"].sort(key=lambda one: one[0].experiment.pack != experiment.pack)
    trials: list[TrialRecord] = []
    names: dict[str, None] = {}
    reached: MatchLevel = "none"
    for level, arms in found.items():
        for run, other in arms:
            if len(trials) >= _ENOUGH or (trials and level == "model"):
                break
            if new := list(_trials(run, other)):
                reached, trials = level, trials + new
                names[run.experiment.name] = None
    return reached, trials, tuple(names)


def _match_level(experiment: Experiment, arm: Arm, other: Experiment, theirs: Arm) -> MatchLevel:
    uses_lm = make_agent(arm.agent).uses_lm
    if theirs.agent != arm.agent:
        return "none"
    if uses_lm and theirs.lm != arm.lm:
        return "model"
    ignored = {"name", "tasks", "first", "budget", "judge_lm", "seeds", "stream"}
    if not uses_lm:
        ignored |= {"lm", "temperature", "max_tokens", "demonstrations"}
    mine, them = (
        (
            a.model_dump(exclude=ignored),
            # Seconds only guard against hanging.
            (a.budget or e.budget).model_dump(exclude={"seconds"}) if uses_lm else None,
            (e.pack, e.endpoint),
        )
        for e, a in ((experiment, arm), (other, theirs))
    )
    return "same" if mine == them else "similar"


def _trials(run: _PastRun, arm: Arm) -> Iterable[TrialRecord]:
    """Yield trials of an arm, evenly spaced, without errors and damaged files."""
    seeds = seeds_of(run.experiment, arm)
    keys = [TrialKey(arm.name, task, seed) for task in run.tasks for seed in seeds]
    keys = [key for key in keys if run.folder.done(key)]
    for key in keys[:: max(1, -(-len(keys) // _MOST))]:
        with contextlib.suppress(RecordError):
            trial = run.folder.read(key)
            if trial.status != "error":
                yield trial


def _amounts(trial: TrialRecord) -> dict[str, float | None]:
    usage = trial.usage
    # Old verdicts hold the seconds of judging themselves.
    judging = trial.judge_seconds or float((trial.verdict or {}).get("seconds") or 0.0)
    return {
        "lm_calls": usage.lm_calls + usage.cached_calls,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "seconds": usage.seconds + judging,
        "dollars": usage.dollars,
        # At least one per tool call and one for the submitted query.
        "requests": usage.tool_calls + 1,
    }


def _judge_amounts(judgement: Mapping[str, Any]) -> dict[str, float | None]:
    usage = judgement.get("usage") or {}
    calls = int(usage.get("lm_calls") or 0) + int(usage.get("cached_calls") or 0)
    return {
        "lm_calls": calls,
        "prompt_tokens": int(usage.get("prompt_tokens") or 0),
        "completion_tokens": int(usage.get("completion_tokens") or 0),
        "seconds": float(judgement.get("seconds") or 0.0),
        "dollars": usage.get("dollars"),
        "requests": 0.0,
    }


def _bounds(experiment: Experiment, arm: Arm, *, uses_lm: bool) -> dict[str, float | None]:
    """Return the most that one trial can take by its budget; None where nothing limits it."""
    budget = arm.budget or experiment.budget
    attempts = arm.sampling.k if arm.sampling else 1
    one_call = arm.agent in {"direct", "oracle"}
    # Budgets are checked before a turn; the step that extracts an answer may follow.
    turns = 1.0 if one_call else min(budget.iterations, budget.lm_calls or math.inf) + 1
    calls = attempts * turns * uses_lm
    local = uses_lm and parse_name(arm.lm).is_local
    return {
        "lm_calls": calls,
        "prompt_tokens": calls * _LOCAL_CONTEXT if local or not uses_lm else None,
        "completion_tokens": calls * arm.max_tokens,
        "seconds": budget.seconds * attempts if budget.seconds else None,
        "dollars": None,
        "requests": float(attempts) if one_call else None,
    }


def _means(measured: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for name in AMOUNTS:
        values = [one[name] for one in measured]
        known = [value for value in values if value is not None]
        found[name] = fmean(known) if known and len(known) == len(values) else None
    return found


def _times(means: Mapping[str, float | None], trials: int, at_once: int) -> dict[str, float | None]:
    found = {
        name: 0.0 if not trials else None if mean is None else mean * trials
        for name, mean in means.items()
    }
    if found["seconds"] is not None:
        found["seconds"] /= at_once
    return found


def _at_once(experiment: Experiment, lm: str, todo: int) -> int:
    """Return how many trials gain time by running side by side."""
    # A local model uses this machine's cores, so its trials gain nothing.
    if lm and parse_name(lm).is_local:
        return 1
    return max(1, min(experiment.executor.workers, todo))


def _price(lm: str, means: Mapping[str, float | None]) -> float | None:
    price = price_of(lm) if lm else None
    if not lm or (price is not None and price.prompt == price.completion == 0):
        return 0.0
    prompt, completion = means["prompt_tokens"], means["completion_tokens"]
    if price is None or prompt is None or completion is None:
        return None
    return prompt * price.prompt + completion * price.completion
