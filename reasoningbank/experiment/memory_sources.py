"""Reading memory items from a bank, a file of items, or a run."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from reasoningbank.errors import RecordError, UsageError
from reasoningbank.experiment.records import RunFolder, Step
from reasoningbank.experiment.storage import shipped
from reasoningbank.experiment.streams import Snapshots
from reasoningbank.memory import MemoryBank, Snapshot
from reasoningbank.memory.rdf import from_rdf, rdf_name

_SQLITE = b"SQLite format 3\0"
_EMPTY_SNAPSHOT = f"{Snapshot.of([]).hash}.jsonl"


def is_bank(where: Path) -> bool:
    """Return whether a file is an SQLite database, by its content."""
    try:
        with where.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


def bank_file(where: Path) -> Path:
    """Return a bank that can be changed; refuse anything else."""
    existing(where)
    if is_bank(where):
        return where
    what = "not a memory bank; only a bank can be changed"
    hint = "import its items with `reasoningbank memory import BANK FILE`"
    raise UsageError(what, where=str(where), hint=hint, code="not-a-bank")


@contextmanager
def opened(where: Path, snapshot: str = "") -> Iterator[MemoryBank]:
    """Open a bank read-only, or an in-memory bank of the items of a file or of a run's snapshot."""
    where = shipped(where)
    existing(where)
    if is_bank(where) and not snapshot:
        bank = MemoryBank(where, readonly=True)
    else:
        bank = MemoryBank.from_snapshot(read_items(where, snapshot))
    with bank:
        yield bank


def read_items(where: Path, snapshot: str = "") -> Snapshot:
    """Return all items of a bank, a file (.jsonl, .ttl, .nq, gzipped or not) or a run."""
    where = shipped(where)
    existing(where)
    if where.is_dir():
        return Snapshots(where).read(_chosen(where, snapshot))
    if snapshot:
        raise UsageError("only a run has snapshots", where=str(where), code="not-a-run")
    if is_bank(where):
        with MemoryBank(where, readonly=True) as bank:
            return bank.snapshot()
    format = rdf_name(where)
    if format is None:
        return Snapshot.read(where)
    try:
        raw = where.read_bytes()
        raw = gzip.decompress(raw) if where.suffix == ".gz" else raw
    except (OSError, EOFError, zlib.error) as error:
        raise RecordError(f"cannot read ({error})", where=str(where)) from error
    return Snapshot.of(from_rdf(raw, format, where=str(where)))


def stream_of(where: Path, snapshot: str) -> Sequence[Step]:
    """Return the steps of a run's stream, named ``ARM.PERMUTATION`` if the run has several."""
    streams = _streams(where)
    name = snapshot or (next(iter(streams)) if len(streams) == 1 else "")
    if name in streams:
        return streams[name]
    what = f"no stream {name!r}" if name else "several streams, or no stream"
    named = ", ".join(streams)
    hint = f"choose one with --snapshot: {named}" if named else "streams need mode = 'learn'"
    raise UsageError(what, where=str(where), hint=hint)


def existing(where: Path) -> None:
    """Refuse a missing path and an empty file."""
    hint = "give a bank (.sqlite), a file of items (.jsonl, .ttl, .nq) or the folder of a run"
    if not where.exists():
        what = "no such bank, file or folder"
        raise UsageError(what, where=str(where), hint=hint, code="no-such-source")
    # The empty bank that a run began with is an empty snapshot, named by its hash.
    if where.is_file() and not where.stat().st_size and where.name != _EMPTY_SNAPSHOT:
        raise UsageError("the file is empty", where=str(where), hint=hint, code="empty-file")


def _chosen(run: Path, wanted: str) -> str:
    """Return the hash of a snapshot, given its beginning or its stream and step."""
    hashes, where = RunFolder(run).snapshots(), str(run)
    lasts = {name: one for name, one in last_snapshots(run).items() if one in hashes}
    if not hashes:
        raise UsageError("the run has no snapshot of a memory bank", where=where)
    if not wanted:
        candidates = sorted(set(lasts.values())) or hashes
        if len(candidates) == 1:
            return candidates[0]
        named = [f"{name} ({one})" for name, one in lasts.items()] or hashes
        hint = f"choose one with --snapshot: {', '.join(named[:6])}{' …' * (len(named) > 6)}"
        what = f"the run has {len(hashes)} snapshots"
        raise UsageError(what, where=where, hint=hint, code="several-snapshots")
    if wanted in lasts:
        return lasts[wanted]
    name, _, number = wanted.partition("/")
    if number:
        steps = stream_of(run, name)
        step = next((one for one in steps if str(one.step) == number), None)
        if step is None:
            hint = f"choose one of {steps[0].step} to {steps[-1].step}"
            what = f"stream {name!r} has no step {number!r}"
            raise UsageError(what, where=where, hint=hint, code="no-such-step")
        if step.after not in hashes:
            raise RecordError(f"the snapshot {step.after} is missing", where=where)
        return step.after
    found = [one for one in hashes if one.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    what = f"{len(found)} snapshots begin with" if found else "no snapshot"
    hint = f"choose one of {', '.join([*lasts, *(found or hashes)][:6])}"
    raise UsageError(f"{what} {wanted!r}", where=where, hint=hint)


def last_snapshots(run: Path) -> dict[str, str]:
    """Return the last snapshot of each stream, and each bank made of gold queries."""
    lasts = {name: steps[-1].after for name, steps in _streams(run).items()}
    for path, note in RunFolder(run).bank_notes():
        if isinstance(note, RecordError):
            raise note
        lasts[path.name.split(".bank.json")[0]] = str(note.get("after", ""))
    return lasts


def _streams(run: Path) -> dict[str, Sequence[Step]]:
    streams = RunFolder(run).streams()
    return {f"{arm}.{permutation}": steps for (arm, permutation), steps in streams.items()}
