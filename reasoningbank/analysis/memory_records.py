"""What a run holds of its memory besides the trials: the steps of its streams, and its banks.

`learning/<arm>.<order>/<step>.json` tells what one step of a stream did; `memory/<hash>.jsonl`
holds a bank as it was. Only counts and origins of the banks are kept, so that a run of many
snapshots fits into memory.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from reasoningbank.errors import RecordError
from reasoningbank.experiment import RunFolder
from reasoningbank.experiment.records import Step

__all__ = ["BankCounts", "Exemplars", "MemoryRecords", "Origin", "Stream"]


class Origin(NamedTuple):
    """One experience that an item rests on.

    Attributes:
        task: Id of the task; empty for what people wrote.
        group: The task's group.
        corpus: The pack that the task is of; empty where it is not told.
    """

    task: str
    group: str
    corpus: str


class BankCounts(NamedTuple):
    """What a bank held.

    Attributes:
        active: Items that can be retrieved, by source.
        superseded: Items that others took the place of.
        retired: Items that were taken out because they hurt.
    """

    active: Mapping[str, int]
    superseded: int
    retired: int


class Exemplars(NamedTuple):
    """What was made of golds before the first trial.

    Attributes:
        snapshot: The bank of them.
        added: Items that were stored.
        rejected: Items that were not, each with its reason.
    """

    snapshot: str
    added: int
    rejected: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Stream:
    """The steps of one arm in one order, from the first on."""

    arm: str
    order: int
    steps: tuple[Step, ...]

    @property
    def snapshots(self) -> tuple[str, ...]:
        """The snapshots of its bank in the order of their making, each once."""
        names = [self.steps[0].before, *(step.after for step in self.steps)]
        return tuple(dict.fromkeys(name for name in names if name))


@dataclass(frozen=True)
class MemoryRecords:
    """The memory of a run as its records tell it.

    Attributes:
        streams: The learning streams, by arm and order.
        banks: Counts by snapshot.
        origins: What each item rests on, by snapshot and item: evidence that came later is no
            part of what was shown earlier.
        exemplars: For arms whose bank was made of golds: what was stored and what was not.
        damaged: Snapshots that could not be read, and why.
        damaged_steps: Files of steps that could not be read, and why.
    """

    streams: tuple[Stream, ...] = ()
    banks: Mapping[str, BankCounts] = field(default_factory=dict)
    origins: Mapping[tuple[str, str], frozenset[Origin]] = field(default_factory=dict)
    exemplars: Mapping[str, Exemplars] = field(default_factory=dict)
    damaged: tuple[tuple[Path, str], ...] = ()
    damaged_steps: tuple[tuple[Path, str], ...] = ()

    @classmethod
    def read(cls, folder: RunFolder) -> MemoryRecords:
        """Read the steps and snapshots of a run; what is damaged is told."""
        damaged: list[tuple[Path, str]] = []
        lost: list[tuple[Path, str]] = []
        steps: dict[tuple[str, int], dict[int, Step]] = defaultdict(dict)
        for path, step in folder.read_steps():
            if isinstance(step, Step):
                steps[step.arm, step.order][step.step] = step
            else:
                lost.append((path, step.what))
        streams = tuple(
            Stream(arm, order, tuple(made[at] for at in sorted(made)))
            for (arm, order), made in sorted(steps.items())
        )
        active: dict[str, Counter[str]] = defaultdict(Counter)
        others: dict[str, Counter[str]] = defaultdict(Counter)
        origins: dict[tuple[str, str], frozenset[Origin]] = {}
        # Snapshots hold mostly the same items: what these rest on is kept once.
        known: dict[frozenset[Origin], frozenset[Origin]] = {}
        for snapshot, item in folder.memory_items(
            lambda error: damaged.append((Path(error.where), error.what))
        ):
            status = item.get("status") or "active"
            if status == "active":
                active[snapshot][str(item.get("src"))] += 1
            else:
                others[snapshot][str(status)] += 1
            found = frozenset(_origins(item))
            origins[snapshot, str(item.get("id"))] = known.setdefault(found, found)
        banks = {
            name: BankCounts(
                dict(sorted(active[name].items())),
                others[name]["superseded"],
                others[name]["retired"],
            )
            for name in {*active, *others}
        }
        made: dict[str, Exemplars] = {}
        for path, note in folder.bank_notes():
            try:
                if isinstance(note, RecordError):
                    raise note
                arm, exemplars = _exemplars(path, note)
                made[arm] = exemplars
            except RecordError as error:
                lost.append((path, error.what))
        return cls(streams, banks, origins, made, tuple(damaged), tuple(lost))


def _exemplars(path: Path, data: Mapping[str, Any]) -> tuple[str, Exemplars]:
    try:
        rejected = tuple(dict(one) for one in data.get("rejected") or ())
        return str(data["arm"]), Exemplars(str(data["after"]), len(data["added"]), rejected)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RecordError(f"is no note of exemplars ({error!r})", where=str(path)) from error


def _origins(item: Mapping[str, Any]) -> Iterable[Origin]:
    for source in (item.get("provenance"), *(item.get("evidence") or ())):
        if isinstance(source, Mapping):
            yield Origin(*(str(source.get(key) or "") for key in Origin._fields))
