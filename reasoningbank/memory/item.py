"""What is remembered: one item of procedural memory, immutable, named by its content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from typing import Any, Literal, TypeVar, get_args

from reasoningbank.errors import UsageError

__all__ = [
    "ABSENT",
    "Counters",
    "ItemSource",
    "ItemStatus",
    "MemoryItem",
    "Provenance",
    "Scope",
    "Turn",
]

#: success: from an attempt that was judged right. failure: from one that was not. contrast: from
#: several attempts at one task. seed: written by people. gold: from a training task's gold query.
ItemSource = Literal["success", "failure", "contrast", "seed", "gold"]
#: Only active items are retrieved; the others are kept, so that every change can be undone.
ItemStatus = Literal["active", "superseded", "retired"]

#: A tag that begins so names a class or property that was looked for and is not there.
ABSENT = "absent:"

_Part = TypeVar("_Part", "Scope", "Provenance", "Counters", "Turn")


@dataclass(frozen=True)
class Provenance:
    """One experience that an item rests on.

    Attributes:
        task: Id of the task; empty for a seed.
        group: The task's group, which the leakage guard keeps apart as well.
        corpus: Name of the pack or folder that the task is of.
        trial: The trial, as ``arm/task.seed``; empty for gold and seed.
        judge: Who judged it, e.g. ``execution`` or ``lm:local``.
        model: Name of the model whose attempt it was.
        time: When, ISO 8601 in UTC.
        author: Who wrote the item, e.g. ``rules``, ``lm:local`` or a person.
    """

    task: str = ""
    group: str = ""
    corpus: str = ""
    trial: str = ""
    judge: str = ""
    model: str = ""
    time: str = ""
    author: str = ""


@dataclass(frozen=True)
class Scope:
    """Where an item holds; what is empty does not restrict it.

    Attributes:
        pack: Name of the domain pack.
        endpoint: Public address of the endpoint.
    """

    pack: str = ""
    endpoint: str = ""


@dataclass(frozen=True)
class Counters:
    """What came after an item was shown.

    Attributes:
        retrieved: Trials that it was shown to.
        success: Of these, those that were judged right. That alone proves nothing: an easy task
            succeeds with any item.
        failure: Of these, those that were not.
        helped: Tasks that failed without memory and succeeded with the item among what was shown.
        hurt: Tasks that succeeded without memory and failed with the item among what was shown.
    """

    retrieved: int = 0
    success: int = 0
    failure: int = 0
    helped: int = 0
    hurt: int = 0

    def __add__(self, other: Counters) -> Counters:
        """Return the counts of both together."""
        return Counters(
            **{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        )

    def __or__(self, other: Counters) -> Counters:
        """Return the least that both together may be, if trials of one may be trials of the other.

        Examples:
            >>> Counters(retrieved=4, success=4) | Counters(retrieved=3, failure=3, hurt=2)
            Counters(retrieved=7, success=4, failure=3, helped=0, hurt=2)
            >>> Counters(retrieved=4, hurt=3) | Counters(retrieved=3, hurt=3)
            Counters(retrieved=4, success=0, failure=0, helped=0, hurt=3)
        """
        larger = {f.name: max(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)}
        judged = larger["success"] + larger["failure"]
        return Counters(**{**larger, "retrieved": max(larger["retrieved"], judged)})


@dataclass(frozen=True)
class Turn:
    """One turn of a successful attempt, compressed, as a demonstration shows it.

    Attributes:
        reasoning: Why.
        code: The Python that was run.
        output: What it printed, cut.
    """

    reasoning: str
    code: str
    output: str = ""


@dataclass(frozen=True)
class MemoryItem:
    """One strategy, pitfall, contrast or exemplar, with what it rests on.

    Attributes:
        title: A few words that tell it from others.
        description: When it applies, in one sentence; with the title, what retrieval reads.
        content: What to do, or what to avoid and how it shows: whole sentences or steps.
        src: What kind of experience it was distilled from.
        pattern: A query or code skeleton with slots ``<<name>>``; empty where there is none.
        tags: Terms to find it by: names of classes and properties, features of the query.
        scope: Where it holds.
        provenance: The first experience it rests on.
        evidence: Further experiences, of items that were merged into it.
        counters: What came after it was shown.
        question: The question of the first experience, for examples and demonstrations.
        query: The query that answered it, of a success; that of a gold is the pattern.
        turns: A success's own turns, for demonstrations; empty for agents without turns.
        status: Whether it is retrieved.
        superseded_by: Id of the item that took its place, where one did.

    Examples:
        >>> item = MemoryItem("Join by annotation", "Diseases", "Use up:annotation.", "success")
        >>> item.id == MemoryItem.from_json(item.to_json()).id
        True
        >>> len(item.id)
        16
    """

    title: str
    description: str
    content: str
    src: ItemSource
    pattern: str = ""
    tags: tuple[str, ...] = ()
    scope: Scope = Scope()
    provenance: Provenance = Provenance()
    evidence: tuple[Provenance, ...] = ()
    counters: Counters = Counters()
    question: str = ""
    query: str = ""
    turns: tuple[Turn, ...] = ()
    status: ItemStatus = "active"
    superseded_by: str = ""
    _id: str = field(default="", init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.src not in get_args(ItemSource):
            allowed = ", ".join(get_args(ItemSource))
            raise UsageError(f"unknown source {self.src!r} of a memory item", hint=f"use {allowed}")
        if self.status not in get_args(ItemStatus):
            allowed = ", ".join(get_args(ItemStatus))
            raise UsageError(
                f"unknown status {self.status!r} of a memory item", hint=f"use {allowed}"
            )
        if not self.title.strip() or not (self.content.strip() or self.pattern.strip()):
            raise UsageError("a memory item needs a title, and content or a pattern")
        object.__setattr__(self, "_id", _hash(self))

    @property
    def id(self) -> str:
        """Hash of what the item says, 16 hexadecimal digits.

        Evidence, counters and status are no part of it: two experiences that teach the same are
        one item.
        """
        return self._id

    @property
    def origins(self) -> tuple[Provenance, ...]:
        """Every experience that the item rests on."""
        return (self.provenance, *self.evidence)

    def to_json(self) -> dict[str, Any]:
        """Return the item as JSON-able data, its id included; a query only where it has one."""
        data = asdict(self)
        del data["_id"]
        if not self.query:
            # Items without are written as they were before there were queries: a bank of them
            # keeps its name.
            del data["query"]
        return {"id": self.id, **data}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> MemoryItem:
        """Read what `to_json` wrote.

        Raises:
            UsageError: If it is no item, or its id is not that of its content.
        """
        try:
            required, known = _KEYS[cls]
            lacking = [name for name in required if name not in data]
            if lacking:
                raise ValueError(f"it lacks {', '.join(lacking)}")
            rest = {name: value for name, value in data.items() if name in known}
            for name in ("tags", "evidence", "turns"):
                if not isinstance(rest.get(name, ()), list | tuple):
                    raise TypeError(f"{name} are a list")
            for name in ("title", "content", "pattern"):
                if not isinstance(rest.get(name, ""), str):
                    raise TypeError(f"{rest[name]!r:.40} is no text")
            item = cls(
                **{
                    **rest,
                    "tags": tuple(rest.get("tags", ())),
                    "scope": _part(Scope, rest.get("scope", {})),
                    "provenance": _part(Provenance, rest.get("provenance", {})),
                    "evidence": tuple(_part(Provenance, one) for one in rest.get("evidence", ())),
                    "counters": _part(Counters, rest.get("counters", {})),
                    "turns": tuple(_part(Turn, one) for one in rest.get("turns", ())),
                }
            )
            _check_types(item)
        except (TypeError, ValueError, AttributeError) as error:
            raise UsageError(f"is no memory item ({error})") from error
        unknown = sorted(set(data) - {*known, "id"})
        if unknown:
            raise UsageError(f"unknown key {unknown[0]!r} of a memory item")
        if data.get("id", item.id) != item.id:
            raise UsageError(f"the memory item {data['id']} was changed: its content is {item.id}")
        return item

    def merged_with(self, other: MemoryItem) -> MemoryItem:
        """Return this item with the experiences and counts of another that teaches the same."""
        seen = list(dict.fromkeys((*self.origins, *other.origins)))
        seen.remove(self.provenance)
        return replace(self, evidence=tuple(seen), counters=self.counters + other.counters)


def _keys(kind: type[Any]) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the names of a class's fields: those that must be given, and all."""
    given = [f for f in fields(kind) if f.init]
    required = [f.name for f in given if f.default is MISSING]
    return tuple(required), frozenset(f.name for f in given)


_KEYS = {kind: _keys(kind) for kind in (MemoryItem, Scope, Provenance, Counters, Turn)}


def _part(kind: type[_Part], data: object) -> _Part:
    name = kind.__name__.lower()
    if not isinstance(data, Mapping):
        raise TypeError(f"{data!r:.40} is no {name}")
    required, known = _KEYS[kind]
    lacking = [one for one in required if one not in data]
    unknown = [one for one in data if one not in known]
    if lacking:
        raise ValueError(f"a {name} lacks {', '.join(lacking)}")
    if unknown:
        raise ValueError(f"unknown key {unknown[0]!r} of a {name}")
    return kind(**data)


def _check_types(item: MemoryItem) -> None:
    texts = [getattr(item, f.name) for f in fields(item) if isinstance(f.default, str)]
    texts += [item.title, item.description, item.content, *item.tags]
    parts: list[Scope | Provenance | Turn] = [item.scope, *item.origins, *item.turns]
    for part in parts:
        texts += [getattr(part, f.name) for f in fields(part)]
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"{text!r:.40} is no text")
    for f in fields(item.counters):
        count = getattr(item.counters, f.name)
        if type(count) is not int or count < 0:
            raise TypeError(f"{count!r:.40} is no count of {f.name}")


def _hash(item: MemoryItem) -> str:
    says = {
        "title": item.title,
        "description": item.description,
        "content": item.content,
        "src": item.src,
        "pattern": item.pattern,
        "scope": asdict(item.scope),
        "question": item.question,
        "turns": [asdict(turn) for turn in item.turns],
    }
    if item.query:
        says["query"] = item.query
    text = json.dumps(says, sort_keys=True, ensure_ascii=False)
    # Models write lone surrogates, which strict UTF-8 has no form for.
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]
