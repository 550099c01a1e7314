"""Where `reasoningbank memory` reads items from: a bank, a file of items, or a run."""

from __future__ import annotations

import gzip
import itertools
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from reasoningbank.errors import RecordError, UsageError
from reasoningbank.experiment import RunFolder
from reasoningbank.experiment.learning import Snapshots
from reasoningbank.experiment.records import Step
from reasoningbank.memory import MemoryBank, Snapshot
from reasoningbank.memory.rdf import from_rdf, rdf_name

__all__ = ["bank_file", "existing", "is_bank", "opened", "read_items", "stream_of"]

_SQLITE = b"SQLite format 3\0"
_NOTHING = f"{Snapshot.of([]).hash}.jsonl"


def is_bank(where: Path) -> bool:
    """Tell whether a file is a database, by its content."""
    try:
        with where.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


def bank_file(where: Path) -> Path:
    """Return a bank that can be changed.

    Raises:
        UsageError: It is missing, or something that is never changed.
    """
    existing(where)
    if is_bank(where):
        return where
    raise UsageError(
        "is no memory bank, and only a bank can be changed",
        where=str(where),
        hint="put its items into one with `reasoningbank memory import BANK FILE`",
    )


@contextmanager
def opened(where: Path, snapshot: str = "") -> Iterator[MemoryBank]:
    """Open a bank as it is on disk, or make one in memory of what else there is.

    The file is not written to, whatever is done with the bank.

    Args:
        where: A bank, a file of items, or the folder of a run.
        snapshot: Which snapshot of a run.

    Raises:
        UsageError: There is none, or several and none is named.
        RecordError: It is damaged.
    """
    existing(where)
    if is_bank(where):
        _no_snapshots(where, snapshot)
        with MemoryBank(where, readonly=True) as bank:
            yield bank
    else:
        with MemoryBank.from_snapshot(read_items(where, snapshot)) as bank:
            yield bank


def read_items(where: Path, snapshot: str = "") -> Snapshot:
    """Return all items of a bank, a file or a run, whatever their status.

    Args:
        where: A bank, a file of items (.jsonl, .ttl, .nq, gzipped or not), or a run's folder.
        snapshot: Which snapshot of a run.

    Raises:
        UsageError: There is none, several and none is named, or a bad file.
        RecordError: It is damaged.
    """
    existing(where)
    if where.is_dir():
        return Snapshots(where).read(_chosen(where, snapshot))
    _no_snapshots(where, snapshot)
    if is_bank(where):
        with MemoryBank(where, readonly=True) as bank:
            return bank.snapshot()
    format = rdf_name(where)
    if format is not None:
        return Snapshot.of(from_rdf(_bytes(where), format, where=str(where)))
    return Snapshot.read(where)


def stream_of(where: Path, snapshot: str) -> Sequence[Step]:
    """Return the steps of a stream of a run.

    Args:
        where: Folder of the run.
        snapshot: The stream, as ``ARM.ORDER``; not needed where there is one only.

    Raises:
        UsageError: There is no such stream, or several and none is named.
    """
    streams = _streams(where)
    name = snapshot or (next(iter(streams)) if len(streams) == 1 else "")
    if name in streams:
        return streams[name]
    what = f"has no stream {name!r}" if name else "holds several streams, or none"
    named = ", ".join(streams)
    hint = f"choose one with --snapshot: {named}" if named else "streams are of mode = 'learn'"
    raise UsageError(what, where=str(where), hint=hint)


def existing(where: Path) -> None:
    """Refuse what is not there, and a file with nothing in it.

    Raises:
        UsageError: It is so.
    """
    hint = "give a bank (.sqlite), a file of items (.jsonl, .ttl, .nq) or the folder of a run"
    if not where.exists():
        raise UsageError("there is no such bank, file or folder", where=str(where), hint=hint)
    # A run keeps the bank that it began with, which may hold nothing, by the hash of nothing.
    if where.is_file() and not where.stat().st_size and where.name != _NOTHING:
        raise UsageError("is empty", where=str(where), hint=hint)


def _no_snapshots(where: Path, snapshot: str) -> None:
    if snapshot:
        raise UsageError("is no run, so it has no snapshots", where=str(where))


def _bytes(where: Path) -> bytes:
    try:
        raw = where.read_bytes()
        return gzip.decompress(raw) if where.suffix == ".gz" else raw
    except (OSError, EOFError, zlib.error) as error:
        raise RecordError(f"cannot be read ({error})", where=str(where)) from error


def _chosen(run: Path, wanted: str) -> str:
    """Return the hash of a snapshot: by its beginning, or by the stream or step it is of."""
    hashes = RunFolder(run).snapshots()
    lasts = {name: one for name, one in _lasts(run).items() if one in hashes}
    if not hashes:
        raise UsageError("holds no snapshot of a memory bank", where=str(run))
    if not wanted:
        candidates = sorted(set(lasts.values())) or hashes
        if len(candidates) == 1:
            return candidates[0]
        named = [f"{name} ({one})" for name, one in lasts.items()] or hashes
        some = ", ".join(named[:6]) + (" …" if len(named) > 6 else "")
        hint = f"choose one with --snapshot: {some}"
        raise UsageError(f"holds {len(hashes)} snapshots", where=str(run), hint=hint)
    if wanted in lasts:
        return lasts[wanted]
    name, _, number = wanted.partition("/")
    if number:
        step = next((one for one in stream_of(run, name) if str(one.step) == number), None)
        if step is None:
            there = ", ".join(_runs(one.step for one in stream_of(run, name)))
            what = f"stream {name!r} has no step {number!r}"
            raise UsageError(what, where=str(run), hint=f"it has {there}")
        if step.after not in hashes:
            raise RecordError(f"lacks the snapshot {step.after}", where=str(run))
        return step.after
    found = [one for one in hashes if one.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    what = f"{len(found)} snapshots begin with" if found else "has no snapshot"
    some = ", ".join([*lasts, *(found or hashes)][:6])
    raise UsageError(f"{what} {wanted!r}", where=str(run), hint=f"choose one of {some}")


def _runs(numbers: Iterable[int]) -> Iterator[str]:
    """Yield ascending numbers, those that follow each other as one: 0-3, 5."""
    for _, group in itertools.groupby(enumerate(numbers), lambda one: one[1] - one[0]):
        first, *others = (number for _, number in group)
        yield f"{first}-{others[-1]}" if others else str(first)


def _lasts(run: Path) -> dict[str, str]:
    """Return the last snapshot of each stream, and each bank made of gold queries."""
    lasts = {name: steps[-1].after for name, steps in _streams(run).items()}
    for path, note in RunFolder(run).bank_notes():
        if isinstance(note, RecordError):
            raise note
        lasts[path.name.split(".bank.json")[0]] = str(note.get("after", ""))
    return lasts


def _streams(run: Path) -> dict[str, Sequence[Step]]:
    return {f"{arm}.{order}": steps for (arm, order), steps in RunFolder(run).streams().items()}
