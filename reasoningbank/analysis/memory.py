"""What memory did in a run, arm by arm: what was shown, what it cost, how the bank changed.

Also the levels of generalization along a stream, and why i.i.d. trials fail, from records alone.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from reasoningbank.analysis.statistics import median_and_p95
from reasoningbank.corpus.splits import Level, declared_in, level_of, schema_items
from reasoningbank.errors import RecordError
from reasoningbank.experiment import RunFolder, TrialRecord
from reasoningbank.experiment.records import Step
from reasoningbank.sparql.shape import shape_hash

if TYPE_CHECKING:
    from reasoningbank.analysis.scores import Score

#: Why a trial whose query shape was in the training tasks is wrong: memory showed no item of this
#: shape; it did and no query of this shape was submitted; or only constants differ.
CAUSES = ("template not shown", "form wrong", "slot wrong")


class Problem(NamedTuple):
    """A file of a run that cannot be read, and why; nothing of it is used."""

    path: Path
    reason: str


class Origin(NamedTuple):
    """One experience that an item is based on."""

    task: str
    group: str
    corpus: str


@dataclass(frozen=True)
class StreamMemory:
    """The bank of one arm in one task permutation, at the end of its stream."""

    snapshot: str  #: Name of the last snapshot
    active: Mapping[str, int] = field(default_factory=dict)  #: Retrievable items, by source
    superseded: int = 0  #: Items replaced by others
    retired: int = 0  #: Items removed because they hurt
    #: The task permutation; None for a bank built before the evaluation.
    permutation: int | None = None
    steps: int = 0  #: Recorded steps
    added: int = 0  #: Items stored over the stream, or built from gold queries
    merged: int = 0  #: Items merged into an existing one
    changes: Mapping[str, int] = field(default_factory=dict)  #: Changes by consolidation, by action
    #: Distilled items that were not stored, by code of the reason.
    rejected: Mapping[str, int] = field(default_factory=dict)
    #: Median and p95 of the tokens that learning took per step.
    tokens: tuple[float, float] = (math.nan, math.nan)
    #: Median and p95 of the seconds that it took.
    seconds: tuple[float, float] = (math.nan, math.nan)


class StreamRecord(NamedTuple):
    """The steps of one arm in one task permutation, from the first on."""

    arm: str
    permutation: int
    steps: tuple[Step, ...]

    @property
    def snapshots(self) -> tuple[str, ...]:
        """The snapshots of its bank in the order in which they were made, each once."""
        names = [self.steps[0].before, *(step.after for step in self.steps)]
        return tuple(dict.fromkeys(name for name in names if name))


@dataclass(frozen=True)
class MemoryRecords:
    """The memory of a run: the steps of its streams and the snapshots of its banks.

    Only counts and origins of the banks are kept, so that a run of many snapshots fits in memory.
    """

    streams: tuple[StreamRecord, ...] = ()  #: The learning streams, by arm and task permutation
    banks: Mapping[str, StreamMemory] = field(default_factory=dict)  #: Counts by snapshot
    #: The origins of each item, by snapshot and item: later evidence is not part of what was shown
    #: earlier.
    origins: Mapping[tuple[str, str], frozenset[Origin]] = field(default_factory=dict)
    #: For arms whose bank was built from gold queries: what was stored and rejected.
    few_shot: Mapping[str, StreamMemory] = field(default_factory=dict)
    #: Snapshots with composed items, by the snapshot that they are composed of.
    composed: Mapping[str, str] = field(default_factory=dict)
    #: The query of each item, or the skeleton of one, by its id.
    patterns: Mapping[str, str] = field(default_factory=dict)
    #: What optimizers compiled, for each arm and seed.
    programs: tuple[Mapping[str, Any], ...] = ()
    damaged: tuple[Problem, ...] = ()  #: Snapshots, steps and other files that cannot be read

    def bank(self, snapshot: str) -> StreamMemory:
        """Return what a snapshot holds."""
        return self.banks.get(snapshot) or StreamMemory(snapshot)

    def begun_with(self) -> list[str]:
        """Return the queries that banks held before their streams."""
        first = {stream.steps[0].before for stream in self.streams}
        items = dict.fromkeys(item for snapshot, item in self.origins if snapshot in first)
        return [query for item in items if (query := self.patterns.get(item))]

    @classmethod
    def read(cls, folder: RunFolder) -> MemoryRecords:
        """Read the steps, snapshots and programs of a run; unreadable ones are listed."""
        damaged: list[Problem] = []

        def readable(found: Iterable[tuple[Path, Any]]) -> Iterator[tuple[Path, Any]]:
            for path, one in found:
                if isinstance(one, RecordError):
                    damaged.append(Problem(path, one.what))
                else:
                    yield path, one

        steps: list[Step] = [step for _, step in readable(folder.read_steps())]
        steps.sort(key=lambda step: (step.arm, step.order, step.step))
        states: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
        origins: dict[tuple[str, str], frozenset[Origin]] = {}
        patterns: dict[str, str] = {}
        # Snapshots share most of their items: equal sets of origins are kept once.
        known: dict[frozenset[Origin], frozenset[Origin]] = {}
        for snapshot, item in folder.memory_items(
            lambda error: damaged.append(Problem(Path(error.where), error.what))
        ):
            name, status = str(item.get("id")), str(item.get("status") or "active")
            states[snapshot][status][str(item.get("src"))] += 1
            found = frozenset(
                Origin(*(str(source.get(key) or "") for key in Origin._fields))
                for source in (item.get("provenance"), *(item.get("evidence") or ()))
                if isinstance(source, Mapping)
            )
            origins[snapshot, name] = known.setdefault(found, found)
            patterns[name] = str(item.get("query") or item.get("pattern") or "")
        banks = {name: _bank(name, own) for name, own in states.items()}
        few_shot: dict[str, StreamMemory] = {}
        for path, note in readable(folder.bank_notes()):
            try:
                rejected, name = map(code_of, note.get("rejected") or ()), str(note["after"])
                bank = banks.get(name) or StreamMemory(name)
                few_shot[str(note["arm"])] = replace(
                    bank, added=len(note["added"]), rejected=_counted(rejected)
                )
            except (AttributeError, KeyError, TypeError):
                damaged.append(Problem(path, "is not a note of a bank: its fields are others"))
        return cls(
            streams=tuple(
                StreamRecord(arm, permutation, tuple(own))
                for (arm, permutation), own in groupby(steps, lambda one: (one.arm, one.order))
            ),
            banks=banks,
            origins=origins,
            few_shot=few_shot,
            composed=folder.composed(),
            patterns=patterns,
            programs=tuple(program for _, program in readable(folder.compiled())),
            damaged=tuple(damaged),
        )


def _bank(snapshot: str, states: Mapping[str, Counter[str]]) -> StreamMemory:
    active = dict(sorted(states["active"].items()))
    return StreamMemory(snapshot, active, states["superseded"].total(), states["retired"].total())


@dataclass(frozen=True)
class MemoryUse:
    """What memory showed to trials, and its cost."""

    trials: int = 0  #: The trials
    #: Median and p95 of the items shown per trial.
    shown: tuple[float, float] = (math.nan, math.nan)
    empty: int = 0  #: Trials without any item
    filtered_out: int = 0  #: Items removed by the leakage filter
    #: Median and p95 of the tokens shown per trial: items and demonstrations.
    tokens: tuple[float, float] = (math.nan, math.nan)
    demonstrated: int = 0  #: Trials with a demonstration
    #: Median and p95 of the seconds of retrieval per trial.
    seconds: tuple[float, float] = (math.nan, math.nan)

    @classmethod
    def of(cls, trials: Sequence[Score]) -> MemoryUse:
        """Summarise what trials were shown."""
        return cls(
            trials=len(trials),
            shown=median_and_p95([float(trial.items_shown) for trial in trials]),
            empty=sum(not trial.items_shown for trial in trials),
            filtered_out=sum(trial.filtered_out for trial in trials),
            tokens=median_and_p95([trial.tokens_shown for trial in trials]),
            demonstrated=sum(trial.demonstrated for trial in trials),
            seconds=median_and_p95([trial.retrieval_seconds for trial in trials]),
        )


@dataclass(frozen=True)
class ArmMemory:
    """The memory of one arm."""

    arm: str
    source: str  #: Where its memory comes from, by the manifest; may be empty
    held_out: MemoryUse  #: Its trials outside streams, which alone are compared
    streams: MemoryUse  #: Its trials in streams, whose bank was still growing
    banks: tuple[StreamMemory, ...]  #: Its bank at the end of each task permutation

    @property
    def uses(self) -> tuple[tuple[str, MemoryUse], ...]:
        """``held out``, and ``streams`` if there are trials in streams."""
        streams = (("streams", self.streams),) if self.streams.trials else ()
        return (("held out", self.held_out), *streams)

    @property
    def rejected(self) -> Mapping[str, int]:
        """Distilled items that were not stored, by code of the reason, over all its streams."""
        found = sum((Counter(bank.rejected) for bank in self.banks), Counter[str]())
        return dict(found.most_common())


def memory_of_arms(
    by_arm: Mapping[str, Sequence[Score]], arms: Mapping[str, Any], memory: MemoryRecords
) -> Iterator[ArmMemory]:
    """Yield what memory did in each arm that has one; `arms` are the settings of each."""
    learned: dict[str, list[StreamMemory]] = defaultdict(list)
    for stream in memory.streams:
        learned[stream.arm].append(_learned(stream, memory))
    for name in dict.fromkeys((*by_arm, *learned)):
        trials, source = by_arm.get(name, ()), _source(arms.get(name, {}).get("memory"))
        held_out = [t for t in trials if t.step is None]
        # Without streams the bank was built before the run, or belongs to another arm.
        made = memory.few_shot.get(name)
        given = [
            made if made is not None and made.snapshot == snapshot else memory.bank(snapshot)
            for snapshot in dict.fromkeys(t.memory for t in held_out if t.memory)
        ]
        used = any(t.items_shown or t.filtered_out for t in trials)
        if learned[name] or given or source or used:
            yield ArmMemory(
                arm=name,
                source=source,
                held_out=MemoryUse.of(held_out),
                streams=MemoryUse.of([t for t in trials if t.step is not None]),
                banks=tuple(learned[name] or given),
            )


def _source(memory: Any) -> str:
    """Return where the manifest says that an arm's memory comes from; nothing without one."""
    settings = memory if isinstance(memory, Mapping) else {"source": memory}
    source, of = str(settings.get("source") or "none"), settings.get("of")
    return "" if source == "none" else f"{source} of {of}" if of else source


def _learned(stream: StreamRecord, memory: MemoryRecords) -> StreamMemory:
    steps = stream.steps
    return replace(
        memory.bank(stream.snapshots[-1] if stream.snapshots else ""),
        permutation=stream.permutation,
        steps=len(steps),
        added=sum(len(step.added) for step in steps),
        merged=sum(len(step.merged) for step in steps),
        changes=_counted(c.get("action") for step in steps for c in step.changes),
        rejected=_counted(code_of(one) for step in steps for one in step.rejected),
        tokens=median_and_p95([float(step.usage.tokens) for step in steps]),
        seconds=median_and_p95([step.seconds for step in steps]),
    )


def _counted(words: Iterable[Any]) -> dict[str, int]:
    return dict(Counter(map(str, words)).most_common())


def shown_items(record: TrialRecord) -> frozenset[str]:
    """Return the memory items that a trial was shown."""
    return frozenset(
        str(item.get("id", ""))
        for event in record.trajectory.of("memory_retrieved")
        for item in record.trajectory.resolve(event.data).get("items") or ()
    )


def filtered_out(data: Mapping[str, Any]) -> Sequence[Any]:
    """Return the items that the leakage filter removed from a retrieval."""
    return data.get("filtered_out") or data.get("withheld") or ()  # old spelling


def code_of(data: Mapping[str, Any]) -> str:
    """Return the code of a recorded reason; `uncoded` in records from before reasons had codes."""
    finding = data.get("finding")
    code = finding.get("code") if isinstance(finding, Mapping) else data.get("code")
    return str(code or "uncoded")


def stream_levels(
    places: Iterable[tuple[int, int, str]], golds: Mapping[str, str], known: Sequence[str] = ()
) -> dict[tuple[int, str], Level]:
    """Return the level of each task of a stream relative to what the stream held before it."""
    declared = declared_in(golds.values())
    found: dict[tuple[int, str], Level] = {}
    for seed, stream in groupby(sorted(set(places)), lambda place: place[0]):
        shapes = {shape_hash(query, declared) for query in known} - {""}
        items = set[str]().union(*(schema_items(query, declared) for query in known))
        for _, _, task in stream:
            if gold := golds.get(task):
                found[seed, task] = level_of(gold, shapes, items, declared)
                shapes |= {shape_hash(gold, declared)} - {""}
                items |= schema_items(gold, declared)
    return found


def cause_of_failure(record: TrialRecord, patterns: Mapping[str, str]) -> str | None:
    """Return one of `CAUSES` for a wrong i.i.d. trial with a memory; None for any other."""
    retrieved = record.trajectory.of("memory_retrieved")
    if record.level != "iid" or record.outcome != "wrong" or not retrieved:
        return None
    declared = declared_in([record.gold])
    wanted = shape_hash(record.gold, declared)
    data = [record.trajectory.resolve(event.data) for event in retrieved]
    shown = {
        shape_hash(patterns.get(str(item.get("id")), ""), declared)
        for one in data
        for item in (*(one.get("items") or ()), *(one.get("demonstrations") or ()))
    }
    if wanted not in shown:
        return CAUSES[0]
    return CAUSES[1] if shape_hash(record.sparql or "", declared) != wanted else CAUSES[2]
