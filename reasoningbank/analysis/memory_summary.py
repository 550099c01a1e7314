"""What memory did in a run, arm by arm: what was shown, what it cost, what the bank became."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from reasoningbank.analysis.cell_text import error_form
from reasoningbank.analysis.memory_records import BankCounts, MemoryRecords, Stream
from reasoningbank.analysis.memory_rows import shown_items
from reasoningbank.analysis.statistics import median_and_p95
from reasoningbank.experiment import TrialRecord

__all__ = ["ArmMemory", "MemoryTally", "MemoryUse", "StreamMemory"]


@dataclass(frozen=True)
class StreamMemory:
    """The bank of one arm in one order, at the end of its stream.

    Attributes:
        snapshot: Name of the last snapshot.
        active: Items that can be retrieved, by source.
        superseded: Items that others took the place of.
        retired: Items that were taken out because they hurt.
        order: The order of the stream; None for a bank that was there before the evaluation.
        steps: Steps that are on record.
        added: Items that were stored over the stream, or made of golds.
        merged: Items that were merged into one that was there.
        changes: What consolidation did, by action.
        rejected: What was distilled and not stored, by reason; what varies in a reason (names,
            values) is left out.
        tokens: Median and p95 of the tokens that learning took a step.
        seconds: Median and p95 of the seconds that it took.
    """

    snapshot: str
    active: Mapping[str, int]
    superseded: int
    retired: int
    order: int | None = None
    steps: int = 0
    added: int = 0
    merged: int = 0
    changes: Mapping[str, int] = field(default_factory=dict)
    rejected: Mapping[str, int] = field(default_factory=dict)
    tokens: tuple[float, float] = (math.nan, math.nan)
    seconds: tuple[float, float] = (math.nan, math.nan)


@dataclass(frozen=True)
class MemoryUse:
    """What trials were shown of memory, and what it cost.

    Attributes:
        trials: The trials.
        shown: Median and p95 of the items that a trial was shown.
        empty: Trials that were shown no item.
        withheld: Items that the guard withheld.
        tokens: Median and p95 of the tokens that a trial was shown: items, and demonstrations.
        demonstrated: Trials that were shown a demonstration.
        seconds: Median and p95 of the seconds that retrieving took a trial.
    """

    trials: int = 0
    shown: tuple[float, float] = (math.nan, math.nan)
    empty: int = 0
    withheld: int = 0
    tokens: tuple[float, float] = (math.nan, math.nan)
    demonstrated: int = 0
    seconds: tuple[float, float] = (math.nan, math.nan)


@dataclass(frozen=True)
class ArmMemory:
    """The memory of one arm.

    Attributes:
        arm: Its name.
        source: Where its memory comes from, as the manifest says; may be empty.
        held_out: Its trials outside of streams, which alone are compared.
        streams: Its trials in streams, which met a bank that was still growing.
        banks: What its bank was at the end, for each order.
    """

    arm: str
    source: str
    held_out: MemoryUse
    streams: MemoryUse
    banks: tuple[StreamMemory, ...]

    @property
    def uses(self) -> tuple[tuple[str, MemoryUse], ...]:
        """Where there are trials: ``held out`` and ``streams``, the first in any case."""
        streams = (("streams", self.streams),) if self.streams.trials else ()
        return (("held out", self.held_out), *streams)

    @property
    def rejected(self) -> Mapping[str, int]:
        """What was distilled and not stored, by reason, over all its streams."""
        found: Counter[str] = Counter()
        for bank in self.banks:
            found.update(bank.rejected)
        return dict(found.most_common())


class _Use:
    """What some trials of one arm were shown."""

    def __init__(self) -> None:
        self.shown: list[float] = []
        self.tokens: list[float] = []
        self.seconds: list[float] = []
        self.withheld = self.demonstrated = 0

    def add(self, record: TrialRecord) -> None:
        events = record.trajectory.of("memory_retrieved")
        self.shown.append(len(shown_items(record)))
        self.tokens.append(sum(event.data.get("tokens") or 0 for event in events))
        self.seconds.append(sum(event.seconds for event in events))
        self.withheld += sum(len(event.data.get("withheld") or ()) for event in events)
        self.demonstrated += any(event.data.get("demonstrations") for event in events)

    def told(self) -> MemoryUse:
        return MemoryUse(
            trials=len(self.shown),
            shown=median_and_p95(self.shown),
            empty=self.shown.count(0),
            withheld=self.withheld,
            tokens=median_and_p95(self.tokens),
            demonstrated=self.demonstrated,
            seconds=median_and_p95(self.seconds),
        )


class _Trials:
    """What the trials of one arm were shown, those of streams apart."""

    def __init__(self) -> None:
        self.held_out, self.streams = _Use(), _Use()
        self.banks: dict[str, None] = {}

    @property
    def has_memory(self) -> bool:
        uses = (self.held_out, self.streams)
        return bool(self.banks) or any(any(use.shown) or use.withheld > 0 for use in uses)

    def add(self, record: TrialRecord) -> None:
        (self.held_out if record.step is None else self.streams).add(record)
        if record.step is None and record.memory:
            self.banks[record.memory] = None


class MemoryTally:
    """Takes the trials of a run one at a time, and tells at the end what memory did.

    Args:
        manifest: The run's manifest.
        memory: The run's banks and streams.
    """

    def __init__(
        self, manifest: Mapping[str, Any] | None = None, memory: MemoryRecords | None = None
    ) -> None:
        self._memory = memory or MemoryRecords()
        self._sources = _sources(manifest or {})
        self._trials: dict[str, _Trials] = defaultdict(_Trials)

    def add(self, record: TrialRecord) -> None:
        """Take what is needed of a trial; the record itself is not kept."""
        self._trials[record.key.arm].add(record)

    def finish(self, arms: Iterable[str] = ()) -> tuple[ArmMemory, ...]:
        """Return the arms that have a memory.

        Args:
            arms: Their order; others follow.
        """
        streams: dict[str, list[Stream]] = defaultdict(list)
        for stream in self._memory.streams:
            streams[stream.arm].append(stream)
        names = dict.fromkeys((*arms, *self._trials, *streams))
        return tuple(
            self._arm(name, self._trials[name], streams[name])
            for name in names
            if streams[name] or self._trials[name].has_memory or self._sources.get(name)
        )

    def _arm(self, name: str, trials: _Trials, streams: Sequence[Stream]) -> ArmMemory:
        banks = [self._learned(stream) for stream in streams]
        if not streams:
            # The bank was filled before the run, or is another arm's.
            banks = [self._given(name, bank) for bank in trials.banks]
        return ArmMemory(
            arm=name,
            source=self._sources.get(name, ""),
            held_out=trials.held_out.told(),
            streams=trials.streams.told(),
            banks=tuple(banks),
        )

    def _learned(self, stream: Stream) -> StreamMemory:
        steps = stream.steps
        return replace(
            self._bank(stream.snapshots[-1] if stream.snapshots else ""),
            order=stream.order,
            steps=len(steps),
            added=sum(len(step.added) for step in steps),
            merged=sum(len(step.merged) for step in steps),
            changes=_counted(c.get("action") for step in steps for c in step.changes),
            rejected=_reasons(one for step in steps for one in step.rejected),
            tokens=median_and_p95([float(step.usage.tokens) for step in steps]),
            seconds=median_and_p95([step.seconds for step in steps]),
        )

    def _given(self, arm: str, snapshot: str) -> StreamMemory:
        made = self._memory.exemplars.get(arm)
        bank = self._bank(snapshot)
        if made is None or made.snapshot != snapshot:
            return bank
        return replace(bank, added=made.added, rejected=_reasons(made.rejected))

    def _bank(self, snapshot: str) -> StreamMemory:
        held = self._memory.banks.get(snapshot, BankCounts({}, 0, 0))
        return StreamMemory(snapshot, held.active, held.superseded, held.retired)


def _reasons(rejected: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    told = (str(one.get("reason") or "no reason is told") for one in rejected)
    return _counted(error_form(reason) for reason in told)


def _counted(words: Iterable[Any]) -> dict[str, int]:
    """Count words, the most frequent first."""
    return dict(Counter(map(str, words)).most_common())


def _sources(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return where the manifest says that each arm's memory comes from; arms without have none."""
    found = {}
    for arm in (manifest.get("experiment") or {}).get("arms") or ():
        said = arm.get("memory")
        source = str((said.get("source") if isinstance(said, Mapping) else said) or "none")
        if source != "none":
            of = said.get("of") if isinstance(said, Mapping) else ""
            found[str(arm.get("name"))] = f"{source} of {of}" if of else source
    return found
