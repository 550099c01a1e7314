"""Two runs against each other, on the tasks that are the same in both."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from reasoningbank.agents import asks_model
from reasoningbank.analysis.comparison import ArmComparison, adjust, compare_arms
from reasoningbank.analysis.leakage import LeakageAudit
from reasoningbank.analysis.memory import MemoryRecords
from reasoningbank.analysis.scores import Metric, RunPlan, Score, Unit, metric_of, unit_of
from reasoningbank.analysis.tables import jsonable
from reasoningbank.errors import RecordError, UsageError
from reasoningbank.experiment import RunFolder, TrialRecord, parse_experiment

#: Settings of a whole experiment that can make a difference.
_SHARED_SETTINGS = ("budget", "mode", "endpoint")
#: Task ids that an error message names.
_NAMED = 3


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
    unpaired: tuple[str, ...]  #: Arms without a counterpart, as ``run:arm``
    notes: tuple[str, ...]  #: Other differences between the runs, one line each

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-able data."""
        return {name: jsonable(value) for name, value in vars(self).items()}


class _Task(NamedTuple):
    """What identifies a task; empty or None where it is not on record."""

    question: str
    gold: str
    n_gold: int | None

    def differs(self, other: _Task, *, translated: bool) -> str:
        """Return what differs, or nothing; translated questions need the same gold query."""
        known = bool(self.gold and other.gold)
        if self.question != other.question and not (translated and known):
            return "question"
        if known and self.gold != other.gold:
            return "gold query"
        if None not in (self.n_gold, other.n_gold) and self.n_gold != other.n_gold:
            return "size of the gold result"
        return ""


class _ComparedRun:
    """The held-out trials of a run, by arm, with what is needed to compare it."""

    def __init__(self, folder: RunFolder) -> None:
        manifest = folder.manifest
        if manifest is None:
            hint = "give a folder with manifest.json"
            raise UsageError("holds no run", where=str(folder.path), hint=hint)
        self.name = folder.path.resolve().name
        self.manifest = manifest
        self.hashes: Mapping[str, Any] = manifest.get("hashes") or {}
        self.experiment: Mapping[str, Any] = manifest.get("experiment") or {}
        with suppress(UsageError):
            # Fills in the defaults that an older manifest leaves out.
            self.experiment = parse_experiment(self.experiment).model_dump(mode="json")
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
            self._add(record)
        self.leaks = len(audit.finish().leaks)

    def _add(self, record: TrialRecord) -> None:
        self.scores[record.key.arm].append(Score.of(record))
        known = self.tasks.get(record.key.task)
        if known is None or known.n_gold is None:
            verdict = record.verdict or {}
            # Where nothing was compared, repeated gold rows are counted too.
            n_gold = verdict.get("n_gold") if verdict.get("status") == "judged" else None
            self.tasks[record.key.task] = _Task(record.question, record.gold, n_gold)

    def arm(self, name: str) -> Mapping[str, Any]:
        arms = self.experiment.get("arms") or ()
        return next((arm for arm in arms if arm.get("name") == name), {})

    def notes(self) -> list[str]:
        found = []
        if self.damaged:
            files = "1 unreadable file" if self.damaged == 1 else f"{self.damaged} unreadable files"
            found.append(f"{self.name}: {files} left out")
        if self.leaks:
            found.append(f"LEAKAGE: {self.name} has {self.leaks}; its numbers prove nothing")
        if self.streamed:
            found.append(
                f"{self.name}: {self.streamed} trials of learning streams are not compared"
            )
        return found


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
    metric, unit = metric or metric_of(one.manifest), unit or unit_of(one.manifest)
    pairs, unpaired = _pairs(one, two, arm, against)
    shared = sorted(one.tasks.keys() & two.tasks.keys())
    if not shared:
        where, hint = f"{first.path}, {second.path}", "compare runs of one corpus"
        raise UsageError("the runs share no task", where=where, hint=hint, code="no-shared-task")
    notes = _check_tasks(one, two, shared) + one.notes() + ([] if one is two else two.notes())
    found = []
    for name, other in pairs:
        compared = compare_arms(
            [s for s in one.scores[name] if s.task in two.tasks],
            [s for s in two.scores[other] if s.task in one.tasks],
            metric=metric,
            unit=unit,
            names=(name, other) if one is two else (f"{one.name}:{name}", f"{two.name}:{other}"),
        )
        if compared is None:
            notes.append(f"{name} and {other} have no task that both have judged")
        else:
            found.append(replace(compared, missing=_missing(one, two, name, other)))
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
        unpaired=unpaired,
        notes=tuple(dict.fromkeys(notes)),
    )


def _missing(one: _ComparedRun, two: _ComparedRun, name: str, other: str) -> int:
    """Return how many planned trials on the shared tasks are not on disk yet."""
    if name not in one.plan.tasks or other not in two.plan.tasks:
        return 0
    (first, _), (second, _) = one.plan.tasks[name], two.plan.tasks[other]
    both = set(first) & set(second)
    missing = 0
    for run, arm in ((one, name), (two, other)):
        there = sum(score.task in both for score in run.scores[arm])
        missing += max(0, len(both) * run.plan.tasks[arm][1] - there)
    return missing


def _pairs(
    one: _ComparedRun, two: _ComparedRun, arm: str | None, against: str | None
) -> tuple[list[tuple[str, str]], tuple[str, ...]]:
    if arm is None:
        if against is not None:
            raise UsageError("needs --arm", where="--with", hint="name the first run's arm, too")
        if one is two:
            hint = "name --arm and --with"
            what = "a run cannot be compared with itself"
            raise UsageError(what, where=one.name, hint=hint, code="same-run")
        both = [name for name in one.scores if name in two.scores]
        if not both:
            arms = [", ".join(run.scores) or "none" for run in (one, two)]
            raise UsageError(
                f"no arm has the same name in both runs ({arms[0]}; {arms[1]})",
                hint="name --arm and --with",
                code="no-shared-arm",
            )
        alone = [f"{r.name}:{n}" for r in (one, two) for n in r.scores if n not in both]
        return [(name, name) for name in both], tuple(alone)
    against = arm if against is None else against
    for run, name, option in ((one, arm, "--arm"), (two, against, "--with")):
        if name not in run.scores:
            what = f"{run.name} has no arm {name!r}; it has {', '.join(run.scores) or 'none'}"
            raise UsageError(what, where=option, code="unknown-arm", arm=name)
    if one is two and arm == against:
        what = "an arm cannot be compared with itself"
        raise UsageError(what, where=arm, hint="name another --with", code="same-arm")
    return [(arm, against)], ()


def _check_tasks(one: _ComparedRun, two: _ComparedRun, shared: Sequence[str]) -> list[str]:
    differing = [p for p in ("corpus", "store") if one.hashes.get(p) != two.hashes.get(p)]
    if not differing:
        return []
    languages = [str(run.experiment.get("language", "en")) for run in (one, two)]
    translated = languages[0] != languages[1]
    found = {t: one.tasks[t].differs(two.tasks[t], translated=translated) for t in shared}
    changed = {task: what for task, what in found.items() if what}
    if changed:
        named = ", ".join(f"{task} ({what})" for task, what in [*changed.items()][:_NAMED])
        more = "" if len(changed) <= _NAMED else f" and {len(changed) - _NAMED} more"
        raise UsageError(
            f"the runs differ in {' and '.join(differing)}, and {len(changed)} of the "
            f"{len(shared)} tasks that they share are not the same: {named}{more}",
            hint="compare runs on the same corpus and store",
            code="different-tasks",
            tasks=changed,
        )
    notes = []
    if "corpus" in differing and translated:
        notes.append(
            f"questions in {languages[0]} against {languages[1]}, of the same gold queries"
        )
    elif "corpus" in differing:
        unknown = any(not (one.tasks[t].gold and two.tasks[t].gold) for t in shared)
        by = "question and size of gold result" if unknown else "question and gold query"
        notes.append(f"the selections of tasks differ; the shared tasks have the same {by}")
    if "store" in differing:
        notes.append("the stores differ; the shared tasks' gold results have the same sizes")
    return notes


def _differences(one: _ComparedRun, two: _ComparedRun, arm: str, against: str) -> list[str]:
    notes = []
    pair = arm if arm == against else f"{arm} and {against}"
    mine, theirs = one.arm(arm), two.arm(against)
    settings = sorted((mine.keys() & theirs.keys()) - {"name"})
    changed = [key for key in settings if mine[key] != theirs[key]]
    if one is not two:
        shared = (one.experiment, two.experiment)
        changed += [k for k in _SHARED_SETTINGS if shared[0].get(k) != shared[1].get(k)]
    if changed:
        notes.append(f"{pair}: settings differ: {', '.join(dict.fromkeys(changed))}")
    models = [
        (run.hashes.get("models") or {}).get(settings.get("lm"))
        for run, settings in ((one, mine), (two, theirs))
        if asks_model(str(settings.get("agent")))
    ]
    if len(models) == 2 and models[0] != models[1]:
        names = [str((model or {}).get("model", "unknown")) for model in models]
        notes.append(f"{pair}: models differ ({names[0]}; {names[1]})")
    if one is two:
        return notes
    if one.hashes.get("prompts") != two.hashes.get("prompts"):
        notes.append("demonstrations or other prompts differ")
    a, b = (run.manifest.get("versions") or {} for run in (one, two))
    packages = [
        f"{name} {a.get(name, '?')} / {b.get(name, '?')}"
        for name in sorted(a.keys() | b.keys())
        if a.get(name) != b.get(name)
    ]
    if packages:
        ours = a.get("reasoningbank") != b.get("reasoningbank")
        judge = ", including the judge of reasoningbank" if ours else ""
        notes.append(f"versions differ: {', '.join(packages)}{judge}")
    return notes
