"""The rules of a pack for writing queries, as its ``hints/constraints.toml`` says them.

They serve twice: put into a prompt by the patterns of a question (`prompting`), and checked against
a query (`semantic`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from reasoningbank.corpus import Pack
from reasoningbank.errors import UsageError
from reasoningbank.nl2sparql.hints import PackKey, full_name, namespaces_of, read_hints
from reasoningbank.nl2sparql.patterns import load_patterns

__all__ = [
    "Constraints",
    "Direction",
    "Entries",
    "PropertyRow",
    "Rule",
    "SourceRow",
    "load_constraints",
]

FILE = "constraints.toml"


@dataclass(frozen=True)
class SourceRow:
    """One source of facts, as a prompt tells of it.

    Attributes:
        name: What people call it.
        where: How a query reaches it.
        text: What it holds.
    """

    name: str
    where: str
    text: str


@dataclass(frozen=True)
class PropertyRow:
    """A line of the property table.

    Attributes:
        name: The property as the pack's prefixes write it.
        iri: Its IRI.
        use: A pattern with it, as a query has it.
        where: Where it is used: a GRAPH, a SERVICE, or nothing special.
        note: What to mind.
        graph: A query must name this graph for it, if it names any; ``''`` for any.
        service: It is used inside of this SERVICE alone; ``''`` for none.
        entry: Kind of entry that its subject is; one thing is never of two kinds.
        patterns: The patterns it is shown for; in every prompt where empty.
        values: The IRIs it may lead to, with their names; any where empty.
    """

    name: str
    iri: str
    use: str
    where: str = ""
    note: str = ""
    graph: str = ""
    service: str = ""
    entry: str = ""
    patterns: tuple[str, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Rule:
    """What to do and not to do for some patterns.

    Attributes:
        title: What it is about.
        text: The rule, a line or a few.
        patterns: It is shown where one of these is detected.
    """

    title: str
    text: str
    patterns: tuple[str, ...]


@dataclass(frozen=True)
class Entries:
    """The rule for questions that need several entries of one thing.

    Attributes:
        text: The rule.
        patterns: Kinds of entries by pattern; a question that needs two of them needs the rule.
        hint: How to join a second entry, for a query that used one variable for two.
        apart: Properties of one entry alone, by what tells its kind: a property, and the property
            that leads from its objects to the IRI that differs.
    """

    text: str = ""
    patterns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    hint: str = ""
    apart: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Direction:
    """Which end of a relation is the thing that a question names.

    Attributes:
        pattern: A question of this pattern …
        unless: … and of none of these …
        property: … with this relation …
        name: … as the pack's prefixes write it …
        named: … has the thing that it names at this end.
        hint: What to write instead where it stands at the other.
    """

    pattern: str
    unless: tuple[str, ...]
    property: str
    name: str
    named: Literal["subject", "object"]
    hint: str


@dataclass(frozen=True)
class Constraints:
    """All rules of a pack.

    Attributes:
        base: What every prompt begins with.
        sources: Where facts are found.
        properties: The property table.
        rules: Rules by pattern.
        entries: The rule for several entries.
        directions: What ends of relations mean.
        prefixes: Prefix and namespace, in the order they are listed to a model.
    """

    base: str = ""
    sources: tuple[SourceRow, ...] = ()
    properties: tuple[PropertyRow, ...] = ()
    rules: tuple[Rule, ...] = ()
    entries: Entries = Entries()
    directions: tuple[Direction, ...] = ()
    prefixes: Mapping[str, str] = field(default_factory=dict)


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Base(_Model):
    text: str = ""


class _Source(_Model):
    name: str = Field(min_length=1)
    where: str = ""
    text: str = ""


class _Property(_Model):
    name: str = Field(min_length=1)
    use: str = Field(min_length=1)
    where: str = ""
    note: str = ""
    graph: str = ""
    service: str = ""
    entry: str = ""
    patterns: list[str] = []
    values: list[str] = []


class _Rule(_Model):
    title: str = Field(min_length=1)
    text: str = Field(min_length=1)
    patterns: list[str] = Field(min_length=1)


class _Apart(_Model):
    property: str = Field(min_length=1)
    by: str = Field(min_length=1)


class _Entries(_Model):
    text: str = ""
    hint: str = ""
    patterns: dict[str, list[str]] = {}
    apart: list[_Apart] = []


class _Direction(_Model):
    pattern: str = Field(min_length=1)
    unless: list[str] = []
    property: str = Field(min_length=1)
    named: Literal["subject", "object"]
    hint: str = Field(min_length=1)


class _File(_Model):
    base: _Base = _Base()
    source: list[_Source] = []
    property: list[_Property] = []
    rule: list[_Rule] = []
    entries: _Entries = _Entries()
    direction: list[_Direction] = []

    def patterns(self) -> list[str]:
        named = [name for row in self.property for name in row.patterns]
        named += [name for rule in self.rule for name in rule.patterns]
        named += [name for one in self.direction for name in (one.pattern, *one.unless)]
        return [*named, *self.entries.patterns]


def load_constraints(pack: Pack) -> Constraints:
    """Read the rules of a pack, once a process; a pack without the file has none.

    Raises:
        UsageError: The file is of another form, or names what does not exist.
    """
    return _load(PackKey.of(pack))


@lru_cache(maxsize=32)
def _load(key: PackKey) -> Constraints:
    pack = key.pack
    read, file = read_hints(pack, FILE, _File)
    where = str(file)
    namespaces = namespaces_of(pack)
    known = load_patterns(pack).names
    for name in read.patterns():
        if name not in known:
            raise UsageError(
                f"unknown pattern {name!r}", where=where, hint=f"choose {', '.join(known)}"
            )
    return Constraints(
        base=read.base.text.strip(),
        sources=tuple(SourceRow(one.name, one.where, one.text) for one in read.source),
        properties=tuple(
            PropertyRow(
                row.name,
                full_name(row.name, namespaces, where),
                row.use,
                row.where,
                row.note,
                row.graph,
                row.service,
                row.entry,
                tuple(row.patterns),
                {full_name(value, namespaces, where): value for value in row.values},
            )
            for row in read.property
        ),
        rules=tuple(Rule(one.title, one.text.strip(), tuple(one.patterns)) for one in read.rule),
        entries=Entries(
            read.entries.text.strip(),
            {name: tuple(kinds) for name, kinds in read.entries.patterns.items()},
            read.entries.hint,
            tuple(
                (full_name(one.property, namespaces, where), full_name(one.by, namespaces, where))
                for one in read.entries.apart
            ),
        ),
        directions=tuple(
            Direction(
                one.pattern,
                tuple(one.unless),
                full_name(one.property, namespaces, where),
                one.property,
                one.named,
                one.hint,
            )
            for one in read.direction
        ),
        prefixes=dict(pack.prefixes),
    )
