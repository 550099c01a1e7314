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
from typing import Any, Literal, NamedTuple, get_args

from reasoningbank.agents import make_agent
from reasoningbank.errors import RecordError, UsageError
from reasoningbank.experiment.config import Arm, Experiment, parse_experiment, seeds_of
from reasoningbank.experiment.plan import Job
from reasoningbank.experiment.records import RunFolder, TrialKey, TrialRecord
from reasoningbank.experiment.storage import shipped
from reasoningbank.imports import is_import_path
from reasoningbank.lm import parse_name, price_of, takes_temperature
from reasoningbank.trajectory import Usage

#: own: the arm's trials in this run. same: trials of another run with the same agent, model and
#: settings. similar: with the same agent and model. model: with the same agent. none: none.
MatchLevel = Literal["own", "same", "similar", "model", "none"]

_Amounts = Mapping[str, float | None]
AMOUNTS = ("lm_calls", "prompt_tokens", "completion_tokens", "seconds", "dollars", "requests")
#: What one judgement takes: a call after the attempt.
_JUDGEMENT: _Amounts = {**dict.fromkeys(AMOUNTS), "lm_calls": 1.0, "requests": 0.0}
#: What trials or judgements took, how alike they are, and the run that they are of.
_Measured = tuple[Sequence[_Amounts], MatchLevel, tuple[str, ...]]
_NOTHING: _Measured = ((), "none", ())
#: At most this many trials of one arm are read, evenly spaced.
_MOST = 60
#: Settings of an arm that do not decide what a trial takes.
_NOT_COMPARED = {"name", "tasks", "first", "judge_lm", "seeds", "stream"}
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


class _PastRun(NamedTuple):
    folder: RunFolder
    experiment: Experiment
    tasks: tuple[str, ...]
    created: str

    def trials(self, arm: Arm) -> list[TrialRecord]:
        """Return trials of an arm, evenly spaced, without failed and damaged ones."""
        seeds = seeds_of(self.experiment, arm)
        keys = [TrialKey(arm.name, task, seed) for task in self.tasks for seed in seeds]
        there = frozenset(self.folder.trial_names())
        keys = [key for key in keys if key.path in there]
        found = []
        for key in keys[:: max(1, -(-len(keys) // _MOST))]:
            with contextlib.suppress(RecordError):
                found.append(self.folder.read(key))
        return [trial for trial in found if not trial.failed]


def estimate_run(
    experiment: Experiment,
    folder: RunFolder,
    planned: Sequence[Job],
    *,
    sources: Iterable[Path] | None = None,
) -> RunEstimate:
    """Estimate what the trials that are not on disk yet will take."""
    if sources is None:
        places = (folder.path.parent, Path("runs"), shipped(Path("experiments/results")))
        files = (file for place in places for file in place.glob("*/manifest.json"))
        sources = {file.parent.resolve() for file in files}
    runs = _read_runs((folder.path, *sources))
    notes: tuple[str, ...] = ()
    own = [run.experiment.fingerprint() for run in runs if run.folder.path == folder.path]
    if folder.manifest and experiment.fingerprint() not in own:
        notes = (f"{folder.path} holds another run and would be refused; use another with --out",)
    there = frozenset(folder.trial_names())
    left = Counter(job.arm.name for job in planned if notes or job.key.path not in there)
    arms = []
    for name, number in Counter(job.arm.name for job in planned).items():
        arm, counts = experiment.arms_by_name[name], (number, left[name])
        uses_lm = make_agent(arm.agent, **arm.options).uses_lm
        bounds = _bounds(experiment, arm, uses_lm=uses_lm)
        names = (name, arm.agent, arm.lm if uses_lm else "")
        found = _alike(experiment, arm, folder, runs, uses_lm=uses_lm)
        arms.append(_estimate(experiment, names, counts, found, bounds))
        if arm.judge_lm and not is_import_path(arm.judge_lm):
            names, found = (name, "judge", arm.judge_lm), _judgements(arm.judge_lm, runs)
            arms.append(_estimate(experiment, names, counts, found, _JUDGEMENT))
    total = _combined(math.fsum, [arm.amounts for arm in arms])
    polite = None
    if experiment.endpoint is not None:
        requests = total["requests"] or left.total()
        polite = max(0.0, requests - 1) * experiment.endpoint.min_interval_s
    compiled = (arm.name for arm in experiment.arms if arm.compile)
    notes += tuple(f"{name}: compiling is not included" for name in compiled)
    executor = experiment.executor
    where = (experiment.name, str(folder.path), executor.kind, executor.workers)
    return RunEstimate(*where, tuple(arms), total, polite, notes)


def _combined(combine: Any, found: Sequence[_Amounts]) -> dict[str, float | None]:
    """Return each amount of several combined; None if one is unknown."""
    values = {name: [one[name] for one in found] for name in AMOUNTS}
    return {name: None if None in of else combine(of) for name, of in values.items()}


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


def _alike(
    experiment: Experiment, arm: Arm, folder: RunFolder, runs: Sequence[_PastRun], *, uses_lm: bool
) -> _Measured:
    """Return what the trials of the most similar arm that has some took."""
    ranks: tuple[MatchLevel, ...] = get_args(MatchLevel)
    mine, pack = arm.model_dump(exclude=_NOT_COMPARED), experiment.pack

    def rank(run: _PastRun, other: Arm) -> tuple[int, bool, int]:
        """Return how unlike an arm of a run is: by level, by pack, by its settings."""
        theirs = other.model_dump(exclude=_NOT_COMPARED)
        unlike = sum(theirs[name] != value for name, value in mine.items())
        other_pack = run.experiment.pack != pack
        other_way = uses_lm and (unlike or run.experiment.budget != experiment.budget)
        level = int(run.folder.path != folder.path or other.name != arm.name)
        level = 2 if other_pack or other_way else level
        return 3 if uses_lm and other.lm != arm.lm else level, other_pack, unlike

    found = [(run, one) for run in runs for one in run.experiment.arms if one.agent == arm.agent]
    ranked = sorted(((rank(*one), *one) for one in found), key=lambda one: one[0])
    for (level, *_), run, other in ranked:
        if trials := run.trials(other):
            # Old verdicts hold the seconds of judging themselves.
            judging = [t.judge_seconds or (t.verdict or {}).get("seconds") or 0.0 for t in trials]
            measured = [
                _amounts(one.usage, one.usage.seconds + seconds, one.usage.tool_calls + 1)
                for one, seconds in zip(trials, judging, strict=True)
            ]
            return measured, ranks[level], (run.experiment.name,)
    return _NOTHING


def _judgements(lm: str, runs: Sequence[_PastRun]) -> _Measured:
    """Return what the judgements of a model took in the newest run that has some."""
    for run in runs:
        judged = (t for a in run.experiment.arms if a.judge_lm == lm for t in run.trials(a))
        said = (trial.judgements.get(f"lm:{lm}") for trial in judged)
        measured = [
            _amounts(Usage(**(one.get("usage") or {})), float(one.get("seconds") or 0.0), 0)
            for one in said
            if one
        ]
        if measured:
            return measured, "same", (run.experiment.name,)
    return _NOTHING


def _estimate(
    experiment: Experiment,
    names: tuple[str, str, str],
    counts: tuple[int, int],
    found: _Measured,
    bounds: _Amounts,
) -> ArmEstimate:
    """Return the estimate of an arm or its judge, called by arm, agent and model."""
    (arm, _, lm), todo, (measured, match, runs) = names, counts[1], found
    means = _combined(fmean, measured) if measured else {**bounds}
    if match == "model":
        # Another model is faster or slower, and its price does not apply.
        means |= {"seconds": None, "dollars": None}
    if means["dollars"] is None:
        means["dollars"] = _price(lm, means)
    amounts: dict[str, float | None] = dict.fromkeys(AMOUNTS, 0.0)
    if todo:
        amounts = {name: None if mean is None else mean * todo for name, mean in means.items()}
    if amounts["seconds"] is not None and not (lm and parse_name(lm).is_local):
        # Trials of a local model share this machine's cores and gain nothing side by side.
        amounts["seconds"] /= max(1, min(experiment.executor.workers, todo))
    notes = () if amounts["dollars"] is not None else (f"{arm}: no price is known for {lm}",)
    return ArmEstimate(*names, *counts, amounts, not measured, match, len(measured), runs, notes)


def _amounts(usage: Usage, seconds: float, requests: float) -> _Amounts:
    """Return what a trial or judgement took; at least one request per tool call and query."""
    calls = usage.lm_calls + usage.cached_calls
    used = (calls, usage.prompt_tokens, usage.completion_tokens, seconds, usage.dollars, requests)
    return dict(zip(AMOUNTS, used, strict=True))


def _bounds(experiment: Experiment, arm: Arm, *, uses_lm: bool) -> _Amounts:
    """Return the most that one trial can take by its budget; None where nothing limits it."""
    budget = arm.budget or experiment.budget
    attempts = max(arm.sampling.k if arm.sampling else 1, experiment.learning.attempts * arm.learns)
    one_call = arm.agent in {"direct", "oracle"}
    # Budgets are checked before a turn; the step that extracts an answer may follow.
    turns = 1 if one_call else min(budget.iterations, budget.lm_calls or math.inf) + 1
    if is_import_path(arm.agent):
        # They are checked before each call of a module of the user's own.
        turns = budget.lm_calls or math.inf
    calls = float(attempts * turns) if uses_lm else 0.0
    known = math.isfinite(calls)
    # A reasoning model thinks as long as it likes.
    capped = known and takes_temperature(arm.lm)
    local = not uses_lm or parse_name(arm.lm).is_local
    return {
        "lm_calls": calls if known else None,
        "prompt_tokens": calls * _LOCAL_CONTEXT if local and known else None,
        "completion_tokens": calls * arm.max_tokens if capped else None,
        "seconds": budget.seconds * attempts if budget.seconds else None,
        "dollars": None,
        "requests": float(attempts) if one_call else None,
    }


def _price(lm: str, means: _Amounts) -> float | None:
    price = price_of(lm) if lm else None
    if not lm or (price is not None and price.prompt == price.completion == 0):
        return 0.0
    prompt, completion = means["prompt_tokens"], means["completion_tokens"]
    if price is None or prompt is None or completion is None:
        return None
    return prompt * price.prompt + completion * price.completion
