"""Feedback: a person's verdict on an answer, kept in files that memory learns from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from reasoningbank.corpus import Pack, Task, load_pack
from reasoningbank.errors import RecordError
from reasoningbank.experiment.context import opened_endpoint
from reasoningbank.experiment.settings import EndpointSettings
from reasoningbank.experiment.storage import plain, read_json, write_atomically
from reasoningbank.memory import MemoryBank
from reasoningbank.memory.distill import Distiller
from reasoningbank.memory.experience import Experience, Rejected
from reasoningbank.schema import Schema


@dataclass(frozen=True)
class Feedback:
    """A person's verdict on one answer.

    Attributes:
        id: Identifies the answer; a later verdict on it replaces the file.
        pack: Name or folder of the pack; empty for an endpoint without one.
        url: The endpoint that was queried instead of the pack's own.
        experience: The attempt; its `success` is the verdict, its `judge` is ``person``.
    """

    id: str
    pack: str
    url: str
    experience: Experience


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
    """Return the verdicts of a folder, the oldest first.

    Raises:
        RecordError: If a file cannot be read, or holds no feedback.
    """
    found = []
    for path in folder.glob("*.json"):
        try:
            found.append(TypeAdapter(Feedback).validate_python(read_json(path)))
        except ValidationError as error:
            hint = "move the file away"
            raise RecordError("not a file of feedback", where=str(path), hint=hint) from error
    return sorted(found, key=lambda one: (one.experience.time, one.id))


def learn_feedback(bank: MemoryBank, found: Sequence[Feedback]) -> LearnedFeedback:
    """Distil verdicts into a bank by rules; verdicts that were learned before change nothing.

    Raises:
        UsageError: If a pack is unknown.
        SetupError: If its endpoint cannot be opened.
    """
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
