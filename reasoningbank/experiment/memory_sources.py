"""Where memory items come from: a bank, a file of items, a run, or people's feedback.

Feedback is a person's verdict on an answer, kept in files that memory learns from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from reasoningbank.corpus import Pack, Task, load_pack
from reasoningbank.errors import RecordError, UsageError
from reasoningbank.experiment.config import Arm
from reasoningbank.experiment.context import opened_endpoint
from reasoningbank.experiment.plan import named_bank
from reasoningbank.experiment.records import RunFolder, Step, snapshot_name
from reasoningbank.experiment.settings import EndpointSettings
from reasoningbank.experiment.storage import (
    RunStorage,
    plain,
    read_json,
    shipped,
    unpacked,
    write_atomically,
)
from reasoningbank.memory import MemoryBank, Snapshot, compose
from reasoningbank.memory.bank import import_items
from reasoningbank.memory.distill import Distiller
from reasoningbank.memory.experience import Experience, Rejected
from reasoningbank.memory.rdf import from_rdf, rdf_name
from reasoningbank.schema import Schema
from reasoningbank.sparql import EntityLinker, SPARQLClient

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
    """Return the file of a bank; refuse anything else."""
    existing(where)
    if is_bank(where):
        return where
    hint = "import its items with `reasoningbank memory import BANK FILE`"
    raise UsageError("not a memory bank", where=str(where), hint=hint, code="not-a-bank")


@contextmanager
def opened(where: Path, snapshot: str = "") -> Iterator[MemoryBank]:
    """Open a bank read-only, or an in-memory bank of the items of a file or of a run's snapshot."""
    if is_bank(file := shipped(where)) and not snapshot:
        bank = MemoryBank(file, readonly=True)
    else:
        bank = MemoryBank.from_snapshot(read_items(where, snapshot))
    with bank:
        yield bank


def read_items(where: Path, snapshot: str = "") -> Snapshot:
    """Return all items of a bank, a file (.jsonl, .ttl, .nq, gzipped or not) or a run."""
    where = shipped(where)
    existing(where)
    if where.is_dir():
        return read_snapshot(RunFolder(where), _chosen(where, snapshot))
    if snapshot:
        raise UsageError("only a run has snapshots", where=str(where), code="not-a-run")
    if is_bank(where):
        with MemoryBank(where, readonly=True) as bank:
            return bank.snapshot()
    format = rdf_name(where)
    if format is None:
        return Snapshot.read(where)
    return Snapshot.of(from_rdf(unpacked(where, ""), format, where=str(where)))


def read_snapshot(folder: RunStorage, name: str) -> Snapshot:
    """Return a bank's snapshot by its hash."""
    file = snapshot_name(name)
    where = str(folder.file(file))
    try:
        return Snapshot.parse(folder.content(file), name=f"{name}.jsonl", where=where)
    except UsageError as error:
        raise RecordError(f"is damaged ({error.what})", where=where) from error


def write_snapshot(folder: RunStorage, snapshot: Snapshot) -> None:
    """Write a bank's snapshot unless it exists."""
    if not folder.exists(snapshot_name(snapshot.hash)):
        snapshot.write(folder.path / "memory")


def read_bank(arm: Arm, seed: int) -> Snapshot:
    """Return the content of the bank that an arm's memory names."""
    stream = getattr(arm.memory, "stream", "")
    try:
        return read_items(Path(named_bank(arm)), f"{stream}.{seed}" if stream else "")
    except RecordError as error:
        raise UsageError(error.what, where=error.where, hint=error.hint, code=error.code) from error


def stream_of(where: Path, snapshot: str) -> Sequence[Step]:
    """Return the steps of a run's stream, named ``ARM.PERMUTATION`` if the run has several."""
    streams = RunFolder(where).streams()
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
    lasts = {name: steps[-1].after for name, steps in RunFolder(run).streams().items()}
    for path, note in RunFolder(run).bank_notes():
        if isinstance(note, RecordError):
            raise note
        lasts[path.name.split(".bank.json")[0]] = str(note.get("after", ""))
    return lasts


@dataclass(frozen=True)
class Feedback:
    """A person's verdict on one answer."""

    id: str  #: Identifies the answer; a later verdict on it replaces the file
    pack: str  #: Name or folder of the pack; empty for an endpoint without one
    url: str  #: The endpoint that was queried instead of the pack's own
    experience: Experience  #: Its `success` is the verdict, its `judge` is ``person``


class LearnedFeedback(NamedTuple):
    """Ids of new items and of items that were known, and the drafts that were rejected."""

    added: tuple[str, ...]
    known: tuple[str, ...]
    rejected: tuple[Rejected, ...]


def task_of_question(question: str, corpus: Iterable[Task]) -> Task:
    """Return the pack's task that asks the same, so that the leakage filter knows it, or a new one.

    Examples:
        >>> task_of_question("Which trees?", [Task("t1", "which trees? ", "", "")]).id
        't1'
        >>> task_of_question("Which trees?", []).id
        'ask-c6d691c0279f'
    """
    asked = " ".join(question.casefold().split())
    name = hashlib.sha256(asked.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    new = Task(f"ask-{name}", question, "", "", corpus="feedback")
    return next((t for t in corpus if " ".join(t.query.casefold().split()) == asked), new)


def write_feedback(folder: Path, feedback: Feedback) -> Path:
    """Write a verdict to its file in the folder, and return the file."""
    path = folder / f"{feedback.id}.json"
    write_atomically(path, plain(asdict(feedback)))
    return path


def read_feedback(folder: Path) -> list[Feedback]:
    """Return the verdicts of a folder, the oldest first."""
    found = []
    for path in folder.glob("*.json"):
        try:
            found.append(TypeAdapter(Feedback).validate_python(read_json(path)))
        except ValidationError as error:
            hint = "move the file away"
            raise RecordError("not a file of feedback", where=str(path), hint=hint) from error
    return sorted(found, key=lambda one: (one.experience.time, one.id))


def learn_feedback(bank: MemoryBank, found: Sequence[Feedback]) -> LearnedFeedback:
    """Distil verdicts into a bank by rules; verdicts that were learned before change nothing."""
    before = {item.id for item in bank.items(status=None)}
    ids: list[str] = []
    rejected: list[Rejected] = []
    for name, url in dict.fromkeys((one.pack, one.url) for one in found):
        here = [one.experience for one in found if (one.pack, one.url) == (name, url)]
        pack = load_pack(name) if name else None
        at = EndpointSettings(url=url) if url else None
        with opened_endpoint(pack or Pack("", Path(), Path()), at, ()) as config:
            vocabulary = Schema.of(config, pack.schema if pack else None)
            distiller = Distiller(vocabulary=vocabulary, endpoint=config, pack=pack)
            for task in dict.fromkeys(one.task for one in here):
                distilled = distiller.distil([one for one in here if one.task == task])
                rejected += distilled.rejected
                ids += bank.add(distilled.items, reason=f"feedback on {task}")
    every = dict.fromkeys(ids)
    known = tuple(one for one in every if one in before)
    return LearnedFeedback(tuple(i for i in every if i not in before), known, tuple(rejected))


def compose_items(bank: MemoryBank, pack: str) -> LearnedFeedback:
    """Add to a bank what its strategies make in pairs over a pack's endpoint."""
    found = load_pack(pack)
    with opened_endpoint(found, None, ()) as config, SPARQLClient(config) as client:
        linker = EntityLinker(client, config, found.languages)
        made = compose(bank.items(), client=client, linker=linker)
    imported = import_items(bank, made, reason="composed")
    return LearnedFeedback(imported.added, (*imported.merged, *imported.same), ())
