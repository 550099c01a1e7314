"""Two runs against each other, on the tasks that are the same in both."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reasoningbank.agents import asks_model
from reasoningbank.analysis.comparison import Comparison, adjust, compare_arms
from reasoningbank.analysis.leakage import LeakageAudit
from reasoningbank.analysis.memory_records import MemoryRecords
from reasoningbank.analysis.planned import planned_tasks
from reasoningbank.analysis.scores import METRICS, Metric, Score, Unit
from reasoningbank.errors import RecordError, UsageError
from reasoningbank.experiment import RunFolder, TrialRecord, parse_experiment

__all__ = ["RunComparison", "compare_runs"]

#: What a manifest's experiment says of all arms that can make a difference.
_SHARED_SETTINGS = ("budget", "mode", "endpoint")
#: Names of task ids that an error message gives.
_NAMED = 3


@dataclass(frozen=True)
class RunComparison:
    """What two runs say against each other.

    Attributes:
        first: The first run's folder.
        second: The second run's folder: the base line.
        metric: What is compared.
        unit: What counts as one observation.
        shared: Tasks that both runs have.
        only_first: Tasks that only the first run has; not compared.
        only_second: Tasks that only the second run has; not compared.
        comparisons: One for each pair of arms, with Holm's correction over them.
        unpaired: Arms without a partner, as ``run:arm``.
        notes: What else differs between the runs, one line each.
    """

    first: str
    second: str
    metric: str
    unit: str
    shared: int
    only_first: int
    only_second: int
    comparisons: tuple[Comparison, ...]
    unpaired: tuple[str, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-able data."""
        return {**self.__dict__, "comparisons": [c.to_json() for c in self.comparisons]}


@dataclass(frozen=True)
class _Task:
    """What tells whether two tasks of one id are the same; empty or None where not on record."""

    question: str
    gold: str
    n_gold: int | None

    def differs(self, other: _Task, *, translated: bool = False) -> str:
        """Return what differs, or nothing.

        Args:
            translated: Whether the questions are asked in different languages: then it is the
                gold query that has to be the same.
        """
        known = bool(self.gold and other.gold)
        if self.question != other.question and not (translated and known):
            return "question"
        if known and self.gold != other.gold:
            return "gold query"
        if None not in (self.n_gold, other.n_gold) and self.n_gold != other.n_gold:
            return "size of the gold result"
        return ""


@dataclass(frozen=True)
class _Run:
    name: str
    manifest: Mapping[str, Any]
    scores: Mapping[str, Sequence[Score]]
    tasks: Mapping[str, _Task]
    damaged: int
    streamed: int
    leaks: int

    @property
    def experiment(self) -> Mapping[str, Any]:
        said = dict(self.manifest.get("experiment") or {})
        try:
            # What an older file leaves out has its default.
            return parse_experiment(said).model_dump(mode="json")
        except UsageError:
            return said

    @property
    def hashes(self) -> Mapping[str, Any]:
        return dict(self.manifest.get("hashes") or {})

    def arm(self, name: str) -> Mapping[str, Any]:
        """Return what the manifest says of an arm."""
        arms = self.experiment.get("arms") or ()
        return next((arm for arm in arms if arm.get("name") == name), {})


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
    if every task that they share has the same question, gold query and size of gold result, as
    far as that is on record. Runs whose experiments ask in different languages may differ in the
    question where the gold query is on record and the same.

    Args:
        first: The first run.
        second: The second run: the base line. The same folder compares two arms of one run.
        arm: An arm of the first run; by default each arm that both runs have.
        against: The arm of the second run to compare `arm` with; by default that of its name.
        metric: What to compare; by default the first run's primary metric.
        unit: What counts as one observation; by default what the first run's file says.

    Raises:
        UsageError: If there is no such run or arm, the runs share no task, or a task that they
            share is not the same.
    """
    one = _read(first)
    two = one if second.path.resolve() == first.path.resolve() else _read(second)
    if one.name == two.name and one is not two:
        one, two = replace(one, name=str(first.path)), replace(two, name=str(second.path))
    metric = metric or _stated_metric(one)
    unit = unit or ("group" if one.experiment.get("unit") == "group" else "task")
    pairs, unpaired = _pairs(one, two, arm, against)
    shared = sorted(one.tasks.keys() & two.tasks.keys())
    if not shared:
        where, hint = f"{first.path}, {second.path}", "compare runs of one corpus"
        raise UsageError("the runs share no task", where=where, hint=hint)
    notes = _check_tasks(one, two, shared)
    for run in (one,) if one is two else (one, two):
        if run.damaged:
            notes.append(f"{run.name}: {_files(run.damaged)} left out")
        if run.leaks:
            notes.append(f"LEAKAGE: {run.name} has {run.leaks}; its numbers prove nothing")
        if run.streamed:
            notes.append(f"{run.name}: {run.streamed} trials of learning streams are not compared")
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
            late = _missing(one, two, name, other)
            found.append(replace(compared, missing=late))
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


def _missing(one: _Run, two: _Run, name: str, other: str) -> int:
    """Return how many trials on the tasks that both arms are to have are not on disk yet."""
    plans = [planned_tasks(run.manifest).get(arm) for run, arm in ((one, name), (two, other))]
    if None in plans:
        return 0
    (first, seeds), (second, others) = (plan for plan in plans if plan is not None)
    both = set(first) & set(second)
    there = [
        sum(s.task in both for s in run.scores[arm]) for run, arm in ((one, name), (two, other))
    ]
    return sum(max(0, len(both) * n - m) for n, m in zip((seeds, others), there, strict=True))


def _read(folder: RunFolder) -> _Run:
    manifest = folder.manifest
    if manifest is None:
        hint = "give a folder with manifest.json"
        raise UsageError("holds no run", where=str(folder.path), hint=hint)
    scores: dict[str, list[Score]] = defaultdict(list)
    tasks: dict[str, _Task] = {}
    damaged = streamed = 0
    audit = LeakageAudit(manifest, MemoryRecords.read(folder))
    for _, record in folder.read_all():
        if isinstance(record, RecordError):
            damaged += 1
            continue
        audit.add(record)
        if record.step is not None:
            # Practice: its task was met with a bank that was still growing.
            streamed += 1
            continue
        scores[record.key.arm].append(Score.of(record))
        known = tasks.get(record.key.task)
        if known is None or known.n_gold is None:
            tasks[record.key.task] = _task(record)
    name = folder.path.resolve().name
    return _Run(name, manifest, scores, tasks, damaged, streamed, len(audit.finish().leaks))


def _task(record: TrialRecord) -> _Task:
    verdict = record.verdict or {}
    # Where nothing was compared, repeated rows of the gold are counted as well.
    n_gold = verdict.get("n_gold") if verdict.get("status") == "judged" else None
    return _Task(record.question, record.gold, n_gold)


def _stated_metric(run: _Run) -> Metric:
    said = run.experiment.get("metric")
    return next((metric for metric in METRICS if metric == said), "strict")


def _pairs(
    one: _Run, two: _Run, arm: str | None, against: str | None
) -> tuple[list[tuple[str, str]], tuple[str, ...]]:
    if arm is None:
        if against is not None:
            raise UsageError("needs --arm", where="--with", hint="name the first run's arm, too")
        if one is two:
            raise UsageError(
                "a run is compared with itself", where=one.name, hint="name --arm and --with"
            )
        both = [name for name in one.scores if name in two.scores]
        if not both:
            theirs, others = ", ".join(one.scores), ", ".join(two.scores)
            raise UsageError(
                f"no arm has the same name in both runs ({theirs or 'none'}; {others or 'none'})",
                hint="name --arm and --with",
            )
        alone = [f"{r.name}:{n}" for r in (one, two) for n in r.scores if n not in both]
        return [(name, name) for name in both], tuple(alone)
    against = arm if against is None else against
    for run, name, option in ((one, arm, "--arm"), (two, against, "--with")):
        if name not in run.scores:
            arms = ", ".join(run.scores) or "none"
            raise UsageError(f"{run.name} has no arm {name!r}; it has {arms}", where=option)
    if one is two and arm == against:
        raise UsageError("an arm is compared with itself", where=arm, hint="name another --with")
    return [(arm, against)], ()


def _check_tasks(one: _Run, two: _Run, shared: Sequence[str]) -> list[str]:
    differing = [p for p in ("corpus", "store") if one.hashes.get(p) != two.hashes.get(p)]
    if not differing:
        return []
    spoken = [str(run.experiment.get("language", "en")) for run in (one, two)]
    translated = spoken[0] != spoken[1]
    found = {
        task: one.tasks[task].differs(two.tasks[task], translated=translated) for task in shared
    }
    changed = [f"{task} ({what})" for task, what in found.items() if what]
    if changed:
        more = "" if len(changed) <= _NAMED else f" and {len(changed) - _NAMED} more"
        raise UsageError(
            f"the runs differ in {' and '.join(differing)}, and {len(changed)} of the "
            f"{len(shared)} tasks that they share are not the same: "
            f"{', '.join(changed[:_NAMED])}{more}",
            hint="compare runs on the same corpus and store",
        )
    notes = []
    if "corpus" in differing:
        unknown = sum(not (one.tasks[t].gold and two.tasks[t].gold) for t in shared)
        by = "question and size of gold result" if unknown else "question and gold query"
        if translated:
            notes.append(f"questions in {spoken[0]} against {spoken[1]}, of the same gold queries")
        else:
            notes.append(f"the selections of tasks differ; the shared tasks have the same {by}")
    if "store" in differing:
        notes.append("the stores differ; the shared tasks' gold results have the same sizes")
    return notes


def _differences(one: _Run, two: _Run, arm: str, against: str) -> list[str]:
    notes = []
    pair = arm if arm == against else f"{arm} and {against}"
    mine, theirs = one.arm(arm), two.arm(against)
    settings = sorted((mine.keys() & theirs.keys()) - {"name"})
    changed = [key for key in settings if mine[key] != theirs[key]]
    changed += [
        key
        for key in _SHARED_SETTINGS
        if one is not two and one.experiment.get(key) != two.experiment.get(key)
    ]
    if changed:
        notes.append(f"{pair}: settings differ: {', '.join(dict.fromkeys(changed))}")
    models = [
        (run.hashes.get("models") or {}).get(said.get("lm"))
        for run, said in ((one, mine), (two, theirs))
        if asks_model(str(said.get("agent")))
    ]
    if len(models) == 2 and models[0] != models[1]:
        notes.append(f"{pair}: models differ ({_model(models[0])}; {_model(models[1])})")
    if one is two:
        return notes
    if one.hashes.get("prompts") != two.hashes.get("prompts"):
        notes.append("demonstrations or other prompts differ")
    versions = [run.manifest.get("versions") or {} for run in (one, two)]
    packages = [
        f"{name} {versions[0].get(name, '?')} / {versions[1].get(name, '?')}"
        for name in sorted(versions[0].keys() | versions[1].keys())
        if versions[0].get(name) != versions[1].get(name)
    ]
    if packages:
        ours = versions[0].get("reasoningbank") != versions[1].get("reasoningbank")
        judge = ", and with reasoningbank the judge" if ours else ""
        notes.append(f"versions differ: {', '.join(packages)}{judge}")
    return notes


def _model(fingerprint: Mapping[str, Any] | None) -> str:
    return str((fingerprint or {}).get("model", "unknown"))


def _files(n: int) -> str:
    return "1 file cannot be read and is" if n == 1 else f"{n} files cannot be read and are"
