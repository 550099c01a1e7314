"""One item of procedural memory: immutable, named by its content."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, astuple, dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Literal, get_args

from pydantic import ConfigDict, Field, SkipValidation, TypeAdapter, ValidationError

from reasoningbank.errors import UsageError, invalid_data

#: success: an attempt judged right. composed: two of these. failure: one judged wrong. contrast:
#: several attempts at one task. seed: written by people. gold: a training task's gold query.
ItemSource = Literal["success", "composed", "failure", "contrast", "seed", "gold"]
#: Only active items are retrieved; the others are kept so that every change can be undone.
ItemStatus = Literal["active", "superseded", "retired"]

Count = Annotated[int, Field(strict=True, ge=0)]

#: Version of `MemoryItem.dense_text`: stored vectors of another one are made anew.
DENSE_TEXT = "text 2"
SLOT = re.compile(r"<<(\w+)>>")
_QUOTED = re.compile(r"[\"“„«][^\"“”„«»]+[\"”»]")
#: A tag with this prefix names a class or property that was looked up and does not exist.
ABSENT = "absent:"


@dataclass(frozen=True)
class Provenance:
    """One experience that an item rests on."""

    #: Id of the task, empty for a seed; `group` (excluded by the leakage filter too) and `corpus`
    #: (pack or folder) are the task's
    task: str = ""
    group: str = ""
    corpus: str = ""
    trial: str = ""  #: The trial, as ``arm/task.seed``; empty for gold and seed
    judge: str = ""  #: Who judged it, e.g. ``execution`` or ``lm:local``.
    model: str = ""  #: Name of the model that made the attempt
    time: str = ""  #: ISO 8601 time in UTC
    author: str = ""  #: Who wrote the item, e.g. ``rules``, ``lm:local`` or a person.


@dataclass(frozen=True)
class Scope:
    """Where an item holds: a domain pack, the public address of an endpoint; empty for anywhere."""

    pack: str = ""
    endpoint: str = ""


@dataclass(frozen=True)
class Counters:
    """Outcomes of the trials that an item was shown to."""

    retrieved: Count = 0  #: Trials that it was shown to
    success: Count = 0  #: Of these, those judged right; an easy task succeeds with any item
    failure: Count = 0  #: Of these, those judged wrong
    helped: Count = 0  #: Tasks that failed without memory and succeeded with the item
    hurt: Count = 0  #: Tasks that succeeded without memory and failed with the item

    def __add__(self, other: Counters) -> Counters:
        """Return the sum of both."""
        return self._with(other, int.__add__)

    def __or__(self, other: Counters) -> Counters:
        """Return the smallest counts consistent with both, if they may share trials."""
        larger = self._with(other, max)
        judged = larger.success + larger.failure
        return replace(larger, retrieved=max(larger.retrieved, judged))

    def __sub__(self, other: Counters) -> Counters:
        """Return what is in excess of another, at least 0 each."""
        return self._with(other, lambda mine, its: max(0, mine - its))

    def _with(self, other: Counters, result: Callable[[int, int], int]) -> Counters:
        return Counters(*map(result, astuple(self), astuple(other)))


@dataclass(frozen=True)
class Turn:
    """One turn of a success, for demonstrations: reasoning, Python code, what that printed, cut."""

    reasoning: str
    code: str
    output: str = ""


@dataclass(frozen=True)
class MemoryItem:
    """One strategy, pitfall, contrast or few-shot example, with its evidence.

    Raises:
        UsageError: If source or status is unknown, or title or content is missing.

    Examples:
        >>> item = MemoryItem("Join by annotation", "Diseases", "Use up:annotation.", "success")
        >>> item.id == MemoryItem.from_json(item.to_json()).id
        True
        >>> len(item.id)
        16
    """

    # Of the JSON of its parts, too.
    __pydantic_config__ = ConfigDict(extra="forbid")

    title: str  #: A few words that distinguish it from other items
    description: str  #: When it applies, in one sentence. Retrieval reads this and the title.
    content: str  #: What to do, or what to avoid and how to recognize it
    src: SkipValidation[ItemSource]
    pattern: str = ""  #: A query or code skeleton with slots ``<<name>>``; may be empty
    #: Terms to find it by: names of classes and properties, features of the query
    tags: tuple[str, ...] = ()
    scope: Scope = Scope()
    #: The first experience it rests on; `evidence` are further ones
    provenance: Provenance = Provenance()
    evidence: tuple[Provenance, ...] = ()
    counters: Counters = Counters()  #: Outcomes of the trials it was shown to
    question: str = ""  #: The question of the first experience, for examples and demonstrations
    #: The query that answered it, for a success; a gold item's query is its pattern
    query: str = ""
    turns: tuple[Turn, ...] = ()  #: A success's own turns; empty for agents without turns
    #: Only active items are retrieved; `superseded_by` is the id of what replaced it
    status: SkipValidation[ItemStatus] = "active"
    superseded_by: str = ""

    def __post_init__(self) -> None:
        for name, value, known in (
            ("source", self.src, get_args(ItemSource)),
            ("status", self.status, get_args(ItemStatus)),
        ):
            if value not in known:
                what, hint = f"unknown {name} {value!r} of a memory item", f"use {', '.join(known)}"
                raise UsageError(what, hint=hint, code=f"unknown-{name}")
        if not self.title.strip() or not (self.content.strip() or self.pattern.strip()):
            what = "a memory item needs a title, and content or a pattern"
            raise UsageError(what, code="empty-item")

    @cached_property
    def id(self) -> str:
        """Hash of the item's content, 16 hexadecimal digits.

        Evidence, counters, tags and status are not part of it, so two experiences that teach the
        same make one item.
        """
        names = ("title", "description", "content", "src", "pattern", "question")
        says: dict[str, Any] = {name: getattr(self, name) for name in names}
        says |= {"scope": vars(self.scope), "turns": [vars(turn) for turn in self.turns]}
        if self.query:
            says["query"] = self.query
        text = json.dumps(says, sort_keys=True, ensure_ascii=False)
        # Models write lone surrogates, which strict UTF-8 rejects.
        return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]

    @property
    def origins(self) -> tuple[Provenance, ...]:
        """Every experience that the item rests on."""
        return (self.provenance, *self.evidence)

    @property
    def dense_text(self) -> str:
        """The text to embed: when the item applies, without what it says to do."""
        if not self.question:
            return "\n".join(filter(None, (self.title, self.description)))
        # A description is the question with its constants abstracted. It comes first, because the
        # embedding model weighs the beginning most, and the title only lists properties.
        when = SLOT.sub(lambda slot: slot[1].replace("_", " "), self.description or self.question)
        return f"{without_quoted(when)}\n{self.title}"

    @property
    def lexical_text(self) -> str:
        """The text of the full-text index."""
        texts = (self.title, self.description or self.question, *self.tags, self.content)
        return "\n".join(filter(None, texts))

    def to_json(self) -> dict[str, Any]:
        """Return the item as JSON-able data, including its id."""
        data = asdict(self)
        if not self.query:
            # The field is younger than the first banks, whose hashes must not change.
            del data["query"]
        return {"id": self.id, **data}

    def json_text(self, *, sort_keys: bool = False) -> str:
        """Return `to_json` as text that UTF-8 can encode."""
        data = self.to_json()
        text = json.dumps(data, ensure_ascii=False, sort_keys=sort_keys)
        # Models write lone surrogates.
        return text if encodable(text) == text else json.dumps(data, sort_keys=sort_keys)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> MemoryItem:
        """Read what `to_json` wrote.

        Raises:
            UsageError: If it is not a memory item, or the id does not match the content.
        """
        given = dict(data)
        written = given.pop("id", None)
        try:
            item = _ITEM.validate_python(given)
        except ValidationError as error:
            raise invalid_data(error, "not a memory item", "bad-item") from None
        if written not in (None, item.id):
            raise UsageError(
                f"the content of memory item {written} was changed: its id would be {item.id}",
                code="item-changed",
                item=str(written),
            )
        return item

    def merged_with(self, other: MemoryItem) -> MemoryItem:
        """Return this item with the evidence and counts of another that teaches the same."""
        seen = list(dict.fromkeys((*self.origins, *other.origins)))
        seen.remove(self.provenance)
        return replace(self, evidence=tuple(seen), counters=self.counters + other.counters)


def without_quoted(text: str) -> str:
    """Return a text without what it quotes: names, which draw a search to what has the same."""
    return " ".join(_QUOTED.sub(" ", text).split()) or text


def encodable(text: str) -> str:
    """Return a text with lone surrogates replaced, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode()


_ITEM = TypeAdapter(MemoryItem)
