"""What distillation reads and gives: judged attempts, drafts of items, and rejected drafts."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from reasoningbank.findings import Finding
from reasoningbank.memory.item import ABSENT, ItemSource, MemoryItem, Provenance, Scope, Turn
from reasoningbank.trajectory import Trajectory, Usage

TITLE_CHARS = 110


@dataclass(frozen=True)
class Experience:
    """One judged attempt at a task, without the gold.

    `success` is what `judge` (``execution``, ``lm:local``) decided; `ran` whether the submitted
    query was executed without an error, with so many `rows` (1 for ASK); `trial` is
    ``arm/task.seed``; `findings` are the execution judge's, empty if its verdict is not used.
    """

    task: str
    group: str
    corpus: str
    question: str
    sparql: str | None
    success: bool
    judge: str
    ran: bool = False
    rows: int | None = None
    trajectory: Trajectory = field(default_factory=Trajectory)
    trial: str = ""
    model: str = ""
    findings: tuple[Finding, ...] = ()
    time: str = ""

    def finding(self, code: str) -> Finding | None:
        """Return the execution judge's finding with this code, if any."""
        return next((one for one in self.findings if one.code == code), None)

    def uncertain(self, kind: ItemSource, code: str, reason: str) -> Rejected:
        """Return the attempt as one that teaches nothing certain."""
        return Rejected(self.question[:TITLE_CHARS], reason, kind, self.sparql or "", code)


@dataclass(frozen=True)
class Draft:
    """An item before it is checked.

    It says that the names in `denied` do not exist; `constants` are values of its own question,
    which are no answers; `slots` is a line with the values of its slots; `probe` is its pattern
    with values in them; `unproven`: any query that matches nothing gives the same answer.
    """

    title: str
    description: str
    content: str
    src: ItemSource
    experience: Experience
    pattern: str = ""
    tags: tuple[str, ...] = ()
    denied: frozenset[str] = frozenset()
    constants: frozenset[str] = frozenset()
    question: str = ""
    query: str = ""
    turns: tuple[Turn, ...] = ()
    slots: str = ""
    probe: str = ""
    author: str = "rules"
    unproven: bool = False

    def item(self, scope: Scope) -> MemoryItem:
        of = self.experience
        return MemoryItem(
            self.title,
            self.description,
            self.content,
            self.src,
            self.pattern,
            # Consolidation uses them against advice to use these names.
            tags=(*self.tags, *(ABSENT + name for name in sorted(self.denied))),
            scope=scope,
            provenance=Provenance(
                of.task, of.group, of.corpus, of.trial, of.judge, of.model, of.time, self.author
            ),
            question=self.question,
            query=self.query,
            turns=self.turns,
        )

    def rejected(self, findings: Sequence[Finding]) -> Rejected:
        """Return the draft as one that is not stored, with the first reasons."""
        text = "\n".join(filter(None, (self.description, self.content, self.pattern)))
        reason = "; ".join(map(str, findings[:2]))
        return Rejected(self.title, reason, self.src, text, findings[0].code)


@dataclass(frozen=True)
class Rejected:
    """A draft that is not stored."""

    title: str
    reason: str
    kind: ItemSource
    text: str
    code: str = ""


@dataclass(frozen=True)
class Distilled:
    items: tuple[MemoryItem, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    usage: Usage = field(default_factory=Usage)


def shortened_title(title: str) -> str:
    return title if len(title) <= TITLE_CHARS else f"{title[: TITLE_CHARS - 1]}…"


@cache
def lesson_texts() -> Mapping[str, Any]:
    return tomllib.loads(Path(__file__).with_name("lessons.toml").read_text(encoding="utf-8"))
