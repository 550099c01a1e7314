"""Two runs against each other, on the tasks that are the same in both."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import fmean
from typing import Any, NamedTuple

from reasoningbank.agents import asks_model
from reasoningbank.analysis.comparison import ArmComparison, adjust, compare_arms
from reasoningbank.analysis.leakage import LeakageAudit
from reasoningbank.analysis.memory import MemoryRecords
from reasoningbank.analysis.scores import Metric, RunPlan, Score, Unit
from reasoningbank.analysis.tables import jsonable
from reasoningbank.errors import RecordError, UsageError
from reasoningbank.experiment import RunFolder, TrialKey, parse_experiment
from reasoningbank.findings import counted

#: Settings of a whole experiment that can make a difference.
_SHARED_SETTINGS = (
    "budget", "mode", "endpoint", "learning", "leave_out", "metric", "unit", "level",
)  # fmt: skip
#: What of a run is known by its hash, and may differ.
_HASHED = {"prompts": "demonstrations or other prompts", "memory": "banks, stream or hints"}
#: Task ids that an error message names.
_NAMED = 3


@dataclass(frozen=True)
class DifferingTask:
    """A task on which one of two compared arms is better."""

    task: str
    question: str
    first: float  #: Mean of the first arm over its judged runs of the task
    second: float  #: Mean of the second arm
    #: A trial of each arm to read: the best of the better arm, the worst of the other.
    trials: tuple[TrialKey, TrialKey]


@dataclass(frozen=True)
class RunComparison:
    """The comparison of two runs."""

    first: str  #: The first run's folder
    second: str  #: The second run's folder: the baseline
    metric: str
    unit: str  #: What counts as one observation
    shared: int  #: Tasks that both runs have
    only_first: int  #: Tasks that only the first run has; not compared
    only_second: int  #: Tasks that only the second run has; not compared
    #: One per pair of arms, with Holm's correction over them.
    comparisons: tuple[ArmComparison, ...]
    #: For each comparison, the tasks on which its arms differ, the first arm's losses first.
    differing: tuple[tuple[DifferingTask, ...], ...]
    unpaired: tuple[str, ...]  #: Arms without a counterpart, as ``run:arm``
    notes: tuple[str, ...]  #: Other differences between the runs, one line each

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-able data."""
        return dict(jsonable(vars(self)))


class _Task(NamedTuple):
    """What identifies a task; empty or None where it is not on record."""

    question: str
    gold: str
    n_gold: int | None


class _ComparedRun:
    """The held-out trials of a run, by arm, with what is needed to compare it."""

    def __init__(self, folder: RunFolder) -> None:
        manifest = folder.require_manifest()
        self.name = folder.path.resolve().name
        self.manifest = manifest
        self.hashes: Mapping[str, Any] = manifest.get("hashes") or {}
        with suppress(UsageError):
            # Fills in the defaults that an older manifest leaves out.
            experiment = parse_experiment(manifest.get("experiment") or {})
            manifest = manifest | {"experiment": experiment.model_dump(mode="json")}
        self.plan = RunPlan(manifest)
        self.scores: dict[str, list[Score]] = defaultdict(list)
        self.tasks: dict[str, _Task] = {}
        self.damaged = self.streamed = 0
        audit = LeakageAudit(manifest, MemoryRecords.read(folder))
        for _, record in folder.read_all():
            if isinstance(record, RecordError):
                self.damaged += 1
                continue
            audit.add(record)
            if record.step is not None:
                self.streamed += 1
                continue
            key, verdict = record.key, record.verdict or {}
            self.scores[key.arm].append(Score.of(record))
            if key.task not in self.tasks or self.tasks[key.task].n_gold is None:
                # Where nothing was compared, repeated gold rows are counted too.
                n_gold = verdict.get("n_gold") if verdict.get("status") == "judged" else None
                self.tasks[key.task] = _Task(record.question, record.gold, n_gold)
        self.leaks = len(audit.finish().leaks)

    def notes(self) -> list[str]:
        leaks = f"LEAKAGE: {self.name} has {self.leaks}; its numbers prove nothing"
        streams = f"{self.name}: {self.streamed} trials of learning streams are not compared"
        damaged = f"{self.name}: {counted(self.damaged, 'unreadable file')} left out"
        found = {damaged: self.damaged, leaks: self.leaks, streams: self.streamed}
        return [note for note, n in found.items() if n]


def compare_runs(
    first: RunFolder,
    second: RunFolder,
    *,
    arm: str | None = None,
    against: str | None = None,
    metric: Metric | None = None,
    unit: Unit | None = None,
) -> RunComparison:
    """Compare the arms of two runs on the held-out tasks that both have.

    Trials of learning streams are left out. Runs on different corpora or stores are compared only
    if every shared task has the same question, gold query and size of gold result, as far as that
    is on record. Runs in different languages may differ in the question if the gold query is on
    record and the same.

    Args:
        first: The first run.
        second: The second run: the baseline. The same folder compares two arms of one run.
        arm: An arm of the first run; by default each arm that both runs have.
        against: The arm of the second run to compare `arm` with; by default that of its name.
        metric: The metric; by default the first run's primary metric.
        unit: What counts as one observation; by default as in the first run's experiment.

    Raises:
        UsageError: If a run or arm is missing, the runs share no task, or a shared task differs.
    """
    one = _ComparedRun(first)
    two = one if second.path.resolve() == first.path.resolve() else _ComparedRun(second)
    if one.name == two.name and one is not two:
        one.name, two.name = str(first.path), str(second.path)
    metric, unit = metric or one.plan.metric, unit or one.plan.unit
    pairs = _pairs(one, two, arm, against)
    every = [] if arm else [(run, name) for run in (one, two) for name in run.scores]
    unpaired = tuple(f"{run.name}:{n}" for run, n in every if (n, n) not in pairs)
    shared = sorted(one.tasks.keys() & two.tasks.keys())
    if not shared:
        where, hint = f"{first.path}, {second.path}", "compare runs of one corpus"
        raise UsageError("the runs share no task", where=where, hint=hint, code="no-shared-task")
    notes = _check_tasks(one, two, shared) + one.notes() + ([] if one is two else two.notes())
    if level := one.plan.settings.get("level"):
        notes.append(f"tasks of all levels are compared, and in the experiment those of {level}")
    found, differing = [], []
    for name, other in pairs:
        mine = [s for s in one.scores[name] if s.task in two.tasks]
        theirs = [s for s in two.scores[other] if s.task in one.tasks]
        compared = compare_arms(mine, theirs, metric=metric, unit=unit)
        if compared is None:
            notes.append(f"{name} and {other} have no task that both have judged")
        else:
            if one is not two:
                first_name, second_name = f"{one.name}:{name}", f"{two.name}:{other}"
                compared = replace(compared, first=first_name, second=second_name)
            found.append(replace(compared, missing=_missing((one, name), (two, other))))
            differing.append(_differing(mine, theirs, one.tasks, metric))
            notes += _differences(one, two, name, other)
    return RunComparison(
        first=str(first.path),
        second=str(second.path),
        metric=metric,
        unit=unit,
        shared=len(shared),
        only_first=len(one.tasks) - len(shared),
        only_second=len(two.tasks) - len(shared),
        comparisons=adjust(found),
        differing=tuple(differing),
        unpaired=unpaired,
        notes=tuple(dict.fromkeys(notes)),
    )


def _differing(
    first: Sequence[Score], second: Sequence[Score], tasks: Mapping[str, _Task], metric: Metric
) -> tuple[DifferingTask, ...]:
    ranked: list[dict[str, list[Score]]] = []
    for arm in (first, second):
        judged = [score for score in arm if score.fate == "judged"]
        judged.sort(key=lambda score: (score.task, score.value(metric)))
        ranked.append({task: list(own) for task, own in groupby(judged, lambda one: one.task)})
    found = []
    for task in sorted(ranked[0].keys() & ranked[1].keys()):
        a, b = (fmean(score.value(metric) for score in arm[task]) for arm in ranked)
        if a != b:
            shown = (ranked[0][task][-1 if a > b else 0], ranked[1][task][0 if a > b else -1])
            mine, theirs = (TrialKey(s.arm, s.task, s.seed) for s in shown)
            found.append(DifferingTask(task, tasks[task].question, a, b, (mine, theirs)))
    return tuple(sorted(found, key=lambda one: one.first - one.second))


def _missing(*arms: tuple[_ComparedRun, str]) -> int:
    """Return how many planned trials of two arms on their shared tasks are not on disk yet."""
    plans = [run.plan.tasks.get(name, ((), 0)) for run, name in arms]
    both = set(plans[0][0]) & set(plans[1][0])
    return sum(
        max(0, len(both) * seeds - sum(score.task in both for score in run.scores[name]))
        for (run, name), (_, seeds) in zip(arms, plans, strict=True)
    )


def _pairs(
    one: _ComparedRun, two: _ComparedRun, arm: str | None, against: str | None
) -> list[tuple[str, str]]:
    if arm is None:
        hint = "name an arm of each"
        if against is not None:
            raise UsageError("only the second arm is named", hint=hint, code="no-first-arm")
        if one is two:
            what = "a run cannot be compared with itself"
            raise UsageError(what, where=one.name, hint=hint, code="same-run")
        both = [(name, name) for name in one.scores if name in two.scores]
        if not both:
            arms = "; ".join(", ".join(run.scores) or "none" for run in (one, two))
            what = f"no arm has the same name in both runs ({arms})"
            raise UsageError(what, hint=hint, code="no-shared-arm")
        return both
    against = arm if against is None else against
    for run, name in ((one, arm), (two, against)):
        if name not in run.scores:
            what = f"{run.name} has no arm {name!r}; it has {', '.join(run.scores) or 'none'}"
            raise UsageError(what, code="unknown-arm", arm=name)
    if one is two and arm == against:
        what = "an arm cannot be compared with itself"
        raise UsageError(what, where=arm, hint="name another arm", code="same-arm")
    return [(arm, against)]


def _check_tasks(one: _ComparedRun, two: _ComparedRun, shared: Sequence[str]) -> list[str]:
    differing = [p for p in ("corpus", "store") if one.hashes.get(p) != two.hashes.get(p)]
    languages = [str(run.plan.settings.get("language", "en")) for run in (one, two)]
    translated, changed, unknown = languages[0] != languages[1], {}, False
    for name in shared:
        a, b = one.tasks[name], two.tasks[name]
        known = bool(a.gold and b.gold)
        unknown = unknown or not known
        # Translated questions need the same gold query.
        if a.question != b.question and not (translated and known):
            changed[name] = "question"
        elif known and a.gold != b.gold:
            changed[name] = "gold query"
        elif None not in (a.n_gold, b.n_gold) and a.n_gold != b.n_gold:
            changed[name] = "size of the gold result"
    if changed:
        named = ", ".join(f"{task} ({what})" for task, what in [*changed.items()][:_NAMED])
        more = "" if len(changed) <= _NAMED else f" and {len(changed) - _NAMED} more"
        raise UsageError(
            f"the runs differ in {' and '.join(differing) or 'their tasks'}, and {len(changed)} of "
            f"the {len(shared)} tasks that they share are not the same: {named}{more}",
            hint="compare runs on the same corpus and store",
            code="different-tasks",
            tasks=changed,
        )
    by = "question and size of gold result" if unknown else "question and gold query"
    said = {
        "corpus": f"questions in {languages[0]} against {languages[1]}, of the same gold queries"
        if translated
        else f"the selections of tasks differ; the shared tasks have the same {by}",
        "store": "the stores differ; the shared tasks' gold results have the same sizes",
    }
    return [said[part] for part in differing]


def _differences(one: _ComparedRun, two: _ComparedRun, arm: str, against: str) -> list[str]:
    notes = []
    pair = arm if arm == against else f"{arm} and {against}"
    mine, theirs = one.plan.arms.get(arm, {}), two.plan.arms.get(against, {})
    settings = sorted((mine.keys() & theirs.keys()) - {"name"})
    changed = [key for key in settings if mine[key] != theirs[key]]
    if one is not two:
        a, b = one.plan.settings, two.plan.settings
        changed += [k for k in _SHARED_SETTINGS if a.get(k) != b.get(k)]
    if changed:
        notes.append(f"{pair}: settings differ: {', '.join(dict.fromkeys(changed))}")
    models = [
        (run.hashes.get("models") or {}).get(settings.get("lm")) or {}
        for run, settings in ((one, mine), (two, theirs))
        if asks_model(str(settings.get("agent")))
    ]
    if len(models) == 2 and models[0] != models[1]:
        names = "; ".join(str(model.get("model", "unknown")) for model in models)
        notes.append(f"{pair}: models differ ({names})")
    if one is two:
        return notes
    for part, what in _HASHED.items():
        if one.hashes.get(part) != two.hashes.get(part):
            notes.append(f"{what} differ")
    of = (one.manifest, two.manifest)
    if not any(said.get("code") for said in of):
        notes.append("the commits are not on record and may differ")
    a, b = ({**(said.get("code") or {}), **(said.get("versions") or {})} for said in of)
    packages = {n: f"{n} {a.get(n, '?')} / {b.get(n, '?')}" for n in sorted(a.keys() | b.keys())
                if a.get(n) != b.get(n)}  # fmt: skip
    if packages:
        judge = ", including the judge of reasoningbank" if "reasoningbank" in packages else ""
        notes.append(f"versions differ: {', '.join(packages.values())}{judge}")
    return notes
