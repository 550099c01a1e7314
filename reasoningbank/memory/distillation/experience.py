"""What distillation is given, and what it gives: judged attempts in, checked items out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from reasoningbank.findings import Finding
from reasoningbank.memory.item import ABSENT, ItemSource, MemoryItem, Provenance, Scope, Turn
from reasoningbank.trajectory import Trajectory, Usage

__all__ = ["Distilled", "Draft", "Experience", "Rejected"]


@dataclass(frozen=True)
class Experience:
    """One judged attempt at a task, as distillation may see it.

    Attributes:
        task: Id of the task.
        group: The task's group.
        corpus: Name of the pack or folder that the task is of.
        question: The question.
        sparql: The submitted query; None where there was none.
        success: Whether the judge in use holds it for right.
        judge: That judge, e.g. ``execution`` or ``lm:local``.
        ran: Whether the submitted query was executed without an error.
        rows: Rows, or triples, that it returned; 1 for a yes or no; None where it did not run.
        error: What went wrong with the attempt, in a line; empty where nothing did.
        trajectory: What the agent did.
        trial: The trial, as ``arm/task.seed``.
        model: Name of the model whose attempt it was.
        reason: What decided, in the judge's words; never text of a gold query.
        findings: What the execution judge found, by code; empty where its verdict is not used.
        time: When, ISO 8601 in UTC.
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
    error: str = ""
    trajectory: Trajectory = field(default_factory=Trajectory)
    trial: str = ""
    model: str = ""
    reason: str = ""
    findings: tuple[Finding, ...] = ()
    time: str = ""

    def finding(self, code: str) -> Finding | None:
        """Return the execution judge's finding with this code; None if there is none."""
        return next((one for one in self.findings if one.code == code), None)

    def provenance(self, author: str) -> Provenance:
        """Return where an item of this attempt comes from.

        Args:
            author: Who words the item: ``rules``, or the model's name.
        """
        return Provenance(
            task=self.task,
            group=self.group,
            corpus=self.corpus,
            trial=self.trial,
            judge=self.judge,
            model=self.model,
            time=self.time,
            author=author,
        )


@dataclass(frozen=True)
class Draft:
    """An item before it is checked.

    Attributes:
        title: A few words that tell it from others.
        description: When it applies.
        content: What to do or to avoid.
        src: What kind of experience it comes from.
        experience: The attempt it comes from.
        pattern: Skeleton of a query, where there is one.
        tags: Terms to find it by.
        denied: Names, as the text writes them, of which the text says that they do not exist.
            Only these may be missing from schema and data, and they must be.
        constants: Resources and texts, as the text writes them, that are the question's or the
            query's own; of no other may a text speak, since it could be an answer.
        question: The question, for what is used as an example.
        query: The query that answered it, with the endpoint's short names.
        turns: Turns of the attempt, for demonstrations.
        author: Who worded it.
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
    author: str = "rules"

    @property
    def prose(self) -> str:
        """Title, description and content, a line or more each."""
        return "\n".join((self.title, self.description, self.content))

    def worded(self, author: str, **texts: str) -> Draft:
        """Return the draft with some of its texts put differently by `author`."""
        return replace(self, author=author, **texts)  # type: ignore[arg-type]

    def item(self, scope: Scope) -> MemoryItem:
        """Return the item that the draft becomes once it is checked."""
        return MemoryItem(
            title=self.title,
            description=self.description,
            content=self.content,
            src=self.src,
            pattern=self.pattern,
            # Consolidation holds them against advice to use these names.
            tags=(*self.tags, *(ABSENT + name for name in sorted(self.denied))),
            scope=scope,
            provenance=self.experience.provenance(self.author),
            question=self.question,
            query=self.query,
            turns=self.turns,
        )

    def rejected(self, reason: str) -> Rejected:
        """Return the draft as what is not stored, with the reason."""
        text = "\n".join(part for part in (self.description, self.content, self.pattern) if part)
        return Rejected(self.title, reason, self.src, text)


@dataclass(frozen=True)
class Rejected:
    """What was distilled and is not stored.

    Attributes:
        title: Its title.
        reason: Why not, in a line.
        kind: What kind of item it would have been.
        text: What it would have said.
    """

    title: str
    reason: str
    kind: ItemSource
    text: str


@dataclass(frozen=True)
class Distilled:
    """What came of one task's experiences.

    Attributes:
        items: What may be stored.
        rejected: What may not, with the reasons.
        usage: What a language model consumed for it.
    """

    items: tuple[MemoryItem, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    usage: Usage = field(default_factory=Usage)

    @classmethod
    def of(
        cls,
        items: Iterable[MemoryItem],
        rejected: Iterable[Rejected] = (),
        usage: Usage | None = None,
    ) -> Distilled:
        """Return what came of it, equal items once."""
        once = {item.id: item for item in items}
        return cls(tuple(once.values()), tuple(rejected), usage or Usage())
