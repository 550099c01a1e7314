"""What trials like those of an arm consumed so far, found in the records at hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Literal

import reasoningbank
from reasoningbank.agents import make_agent
from reasoningbank.errors import RecordError, UsageError
from reasoningbank.experiment.config import Arm, Experiment, parse_experiment
from reasoningbank.experiment.memory_config import seeds_of
from reasoningbank.experiment.records import RunFolder, TrialKey, TrialRecord

__all__ = [
    "Basis",
    "Kinship",
    "Measured",
    "PastRun",
    "find_basis",
    "find_judge_basis",
    "known_runs",
    "read_runs",
]

#: own: the arm's trials in this run. same: trials of other runs with the same agent, model and
#: settings. settings: the same agent and model, other settings. model: the same agent with another
#: model. none: nothing was found.
Kinship = Literal["own", "same", "settings", "model", "none"]

#: So many trials are enough not to look at more distant ones.
_ENOUGH = 5
#: At most so many trials of one run are read, evenly chosen: a run may have a million.
_MOST = 60


@dataclass(frozen=True)
class Measured:
    """What one trial consumed.

    Attributes:
        lm_calls: Calls answered by the model or by a cache.
        prompt_tokens: Tokens sent.
        completion_tokens: Tokens generated.
        tool_calls: Tool calls.
        seconds: Wall time of attempt and judging.
        dollars: Its price as recorded; None where no price was.
    """

    lm_calls: int
    prompt_tokens: int
    completion_tokens: int
    tool_calls: int
    seconds: float
    dollars: float | None

    @classmethod
    def of(cls, trial: TrialRecord) -> Measured:
        """Read it from a trial's record."""
        usage = trial.usage
        # Verdicts once held the seconds of judging themselves.
        judging = trial.judge_seconds or float((trial.verdict or {}).get("seconds") or 0.0)
        return cls(
            lm_calls=usage.lm_calls + usage.cached_calls,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            tool_calls=usage.tool_calls,
            seconds=usage.seconds + judging,
            dollars=usage.dollars,
        )

    def times(self, factor: int) -> Measured:
        """Return what so many like it consume together."""
        if factor == 1:
            return self
        return Measured(
            *(None if v is None else v * factor for v in astuple(self))  # type: ignore[arg-type]
        )

    @classmethod
    def of_judgement(cls, judgement: Mapping[str, Any]) -> Measured:
        """Read it from what an LM judge said of a trial."""
        usage = judgement.get("usage") or {}
        calls, cached, prompt, completion = (
            int(usage.get(name) or 0)
            for name in ("lm_calls", "cached_calls", "prompt_tokens", "completion_tokens")
        )
        seconds = float(judgement.get("seconds") or 0.0)
        return cls(calls + cached, prompt, completion, 0, seconds, usage.get("dollars"))


@dataclass(frozen=True)
class Basis:
    """Measured trials that an estimate rests on.

    Attributes:
        kinship: How close the most distant of them are to the arm.
        trials: What each consumed.
        runs: The runs that they are of, by name.
        models: The models that they asked.
    """

    kinship: Kinship = "none"
    trials: tuple[Measured, ...] = ()
    runs: tuple[str, ...] = ()
    models: tuple[str, ...] = ()


@dataclass(frozen=True)
class PastRun:
    """A run on disk that may tell what trials consume.

    Attributes:
        folder: Where its records are.
        experiment: What was run.
        tasks: Ids of its tasks.
        created: When it began, ISO 8601 in UTC.
    """

    folder: RunFolder
    experiment: Experiment
    tasks: tuple[str, ...]
    created: str


def known_runs(folder: RunFolder) -> list[Path]:
    """Return the folders of other runs at hand.

    They lie beside `folder`, in `runs/` and `experiments/results/` of the working folder, and in
    the results that the harness itself comes with.
    """
    package = Path(reasoningbank.__file__).parent
    places = [
        folder.path.parent,
        Path("runs"),
        Path("experiments/results"),
        package / "results",
        package.parent / "experiments" / "results",
    ]
    found = {
        manifest.parent.resolve()
        for place in places
        if place.is_dir()
        for manifest in place.glob("*/manifest.json")
    }
    return sorted(found - {folder.path.resolve()})


def read_runs(paths: Iterable[Path]) -> list[PastRun]:
    """Return the runs in these folders, newest first; folders that hold none are left out.

    A copy of a run, as `archive` makes it, is the same run.
    """
    runs: dict[tuple[str, str], PastRun] = {}
    for path in paths:
        folder = RunFolder(path)
        try:
            manifest = folder.manifest or {}
            experiment = parse_experiment(manifest.get("experiment", {}))
        except (RecordError, UsageError):
            continue
        created = str(manifest.get("created", ""))
        tasks = (*manifest.get("tasks", ()), *manifest.get("stream", ()))
        run = PastRun(folder, experiment, tasks, created)
        runs.setdefault((experiment.fingerprint(), created), run)
    return sorted(runs.values(), key=lambda run: run.created, reverse=True)


def find_basis(
    experiment: Experiment, arm: Arm, folder: RunFolder, runs: Sequence[PastRun]
) -> Basis:
    """Return the measured trials that are closest to an arm's: its own, or those of other runs.

    Trials that ended in an infrastructure error are left out, and so is what cannot be read.
    Closer trials are taken first, and more distant ones only while there are fewer than five;
    of those with other settings the most alike first; those of another model only where there are
    no others.

    Args:
        experiment: The experiment that the arm is of.
        arm: The arm.
        folder: Where the arm's own trials are, or will be.
        runs: The runs to look in, newest first.
    """
    near: dict[Kinship, list[tuple[PastRun, Arm, tuple[str, ...]]]] = {
        "own": [], "same": [], "settings": [], "model": [],
    }  # fmt: skip
    for run in runs:
        for theirs in run.experiment.arms:
            kinship, others = _kinship(experiment, arm, run.experiment, theirs)
            if run.folder.path == folder.path and theirs.name == arm.name and kinship == "same":
                kinship = "own"
            if kinship != "none":
                near[kinship].append((run, theirs, others))
    # Of those that are only alike, the most alike come first: on the same pack, then with the
    # fewest other settings, then the newest.
    near["settings"].sort(key=lambda one: ("pack" in one[2], len(one[2])))
    trials: list[Measured] = []
    found: list[tuple[PastRun, Arm]] = []
    reached: Kinship = "none"
    for kinship, arms in near.items():
        if trials and kinship == "model":
            break
        for run, theirs, _ in arms:
            # The first stands for those that are only alike.
            if len(trials) >= (_MOST if kinship in {"own", "same"} else _ENOUGH):
                break
            new = [Measured.of(trial) for trial in _trials(run, theirs)]
            if new:
                reached = kinship
                trials += new
                found.append((run, theirs))
        if len(trials) >= _ENOUGH:
            break
    return Basis(
        reached,
        tuple(trials),
        runs=tuple(dict.fromkeys(run.experiment.name for run, _ in found)),
        models=tuple(dict.fromkeys(theirs.lm for _, theirs in found)),
    )


def find_judge_basis(judge_lm: str, runs: Sequence[PastRun]) -> Basis:
    """Return what judging by a model took, of the newest run whose arms it judged.

    Args:
        judge_lm: Name of the model.
        runs: The runs to look in, newest first.
    """
    for run in runs:
        judged = [
            Measured.of_judgement(trial.judgements[f"lm:{judge_lm}"])
            for arm in run.experiment.arms
            if arm.judge_lm == judge_lm
            for trial in _trials(run, arm)
            if f"lm:{judge_lm}" in trial.judgements
        ]
        if judged:
            return Basis("same", tuple(judged), (run.experiment.name,), (judge_lm,))
    return Basis()


def _kinship(
    experiment: Experiment, arm: Arm, other: Experiment, theirs: Arm
) -> tuple[Kinship, tuple[str, ...]]:
    """Return how close two arms are, and the names of the settings in which they differ."""
    if theirs.agent != arm.agent:
        return "none", ()
    uses_lm = make_agent(arm.agent).uses_lm
    if uses_lm and theirs.lm != arm.lm:
        return "model", ()
    indifferent = {"name", "tasks", "first", "budget", "judge_lm", "seeds", "stream"}
    if not uses_lm:
        indifferent |= {"lm", "temperature", "max_tokens", "demonstrations"}
    mine, them = (
        {
            **a.model_dump(exclude=indifferent),
            # Seconds guard against hanging alone.
            "budget": (a.budget or e.budget).model_dump(exclude={"seconds"}) if uses_lm else None,
            "pack": e.pack,
            "endpoint": e.endpoint,
        }
        for e, a in ((experiment, arm), (other, theirs))
    )
    others = tuple(name for name in mine if mine[name] != them[name])
    return ("settings" if others else "same"), others


def _trials(run: PastRun, arm: Arm) -> Iterator[TrialRecord]:
    seeds = seeds_of(run.experiment, arm)
    keys = [TrialKey(arm.name, task, seed) for task in run.tasks for seed in seeds]
    keys = [key for key in keys if run.folder.done(key)]
    for key in keys[:: max(1, -(-len(keys) // _MOST))]:
        try:
            trial = run.folder.read(key)
        except RecordError:
            continue
        if trial.status != "error":
            yield trial
