"""The query patterns of a pack: how questions name them, and what queries of them hold.

A pack's ``hints/patterns.toml`` lists them. Each rule is a word or a phrase of one language:

- a word stands for all of its inflected forms, ``=word`` for this form alone, ``word*`` for all
  words that begin so, ``a|b`` for either;
- ``<quoted>``, ``<affix>`` (``-oso``), ``<number>``, ``<code>`` and the pack's own shapes stand
  for a token of that kind, ``<word>`` for a content word that no rule and no vocabulary of the
  pack knows;
- ``...`` stands for up to four tokens without a negation;
- a part in parentheses must be there, and may be claimed by another rule as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from pydantic import BaseModel, ConfigDict, Field

from reasoningbank.corpus import Pack, load_pack
from reasoningbank.errors import UsageError
from reasoningbank.nl2sparql.hints import PackKey, full_name, namespaces_of, read_hints

__all__ = ["Pattern", "PatternSet", "QuerySign", "load_patterns"]

FILE = "patterns.toml"


@dataclass(frozen=True)
class QuerySign:
    """What shows that a query is of a pattern: one name of each part that is not empty.

    Attributes:
        properties: IRIs of properties.
        along: IRIs of properties, one of which there must be as well.
        namespaces: Beginnings of IRIs that stand as subject or object.
        classes: IRIs of classes.
        graphs: IRIs behind GRAPH or FROM.
        services: Addresses behind SERVICE.
        features: Names of `corpus.features.FEATURES`.
    """

    properties: frozenset[str] = frozenset()
    along: frozenset[str] = frozenset()
    namespaces: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()
    graphs: frozenset[str] = frozenset()
    services: frozenset[str] = frozenset()
    features: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Pattern:
    """One kind of thing that a question may need.

    Attributes:
        name: Its name, e.g. ``EMOTION``.
        title: What it is, in a few words.
        family: Patterns of one family are answered by one specialised generator.
        strong: Rules by language, each of which suffices.
        weak: Rules by language, of which two are needed.
        implies: Patterns that are given with it.
        unless: Where the question's own words give one of these, this one is not given.
        beside: Where one of these is given and a content word of the question is left that the
            file does not know, this one is given too: it says more of what is asked for.
        joins: Where a pattern out of each list is given, so is this one.
        signs: What queries of it hold; one sign suffices.
    """

    name: str
    title: str = ""
    family: str = ""
    strong: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    weak: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    implies: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    joins: tuple[tuple[str, ...], ...] = ()
    signs: tuple[QuerySign, ...] = ()


@dataclass(frozen=True)
class PatternSet:
    """All patterns of a pack.

    Attributes:
        patterns: In the order of the file.
        shapes: Kinds of codes by name.
        idle: Phrases by language that show nothing, though a rule has a word of theirs.
        vocabulary: Words by language that are no things asked about, though no rule has them.
    """

    patterns: tuple[Pattern, ...] = ()
    shapes: Mapping[str, re.Pattern[str]] = field(default_factory=dict)
    vocabulary: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    idle: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The patterns' names, in the order of the file."""
        return tuple(pattern.name for pattern in self.patterns)

    def named(self, name: str) -> Pattern:
        """Return a pattern; case does not matter.

        Raises:
            UsageError: There is none of that name.
        """
        found = next((p for p in self.patterns if p.name.lower() == name.strip().lower()), None)
        if found is None:
            raise UsageError(
                f"unknown pattern {name!r}", hint=f"choose {', '.join(self.names) or 'none'}"
            )
        return found

    def known(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return those of some words that are names of patterns, as the file writes them."""
        wanted = {word.strip().lower() for word in words}
        return tuple(name for name in self.names if name.lower() in wanted)


class _Rules(BaseModel):
    model_config = ConfigDict(extra="forbid")
    it: list[str] = []
    en: list[str] = []

    def by_language(self) -> dict[str, tuple[str, ...]]:
        return {"it": tuple(self.it), "en": tuple(self.en)}


class _Sign(BaseModel):
    model_config = ConfigDict(extra="forbid")
    properties: list[str] = []
    along: list[str] = []
    namespaces: list[str] = []
    classes: list[str] = []
    graphs: list[str] = []
    services: list[str] = []
    features: list[str] = []


class _Pattern(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str = Field(min_length=1)
    title: str = ""
    family: str = ""
    strong: _Rules = _Rules()
    weak: _Rules = _Rules()
    implies: list[str] = []
    unless: list[str] = []
    beside: list[str] = []
    joins: list[list[str]] = []
    query: list[_Sign] = []

    def others(self) -> list[str]:
        joined = [name for group in self.joins for name in group]
        return [*self.implies, *self.unless, *self.beside, *joined]


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")
    shapes: dict[str, str] = {}
    vocabulary: _Rules = _Rules()
    idle: _Rules = _Rules()
    pattern: list[_Pattern] = []


@lru_cache(maxsize=32)
def _load(key: PackKey) -> PatternSet:
    read, file = read_hints(key.pack, FILE, _File)
    where = str(file)
    namespaces = namespaces_of(key.pack)

    def names(written: list[str]) -> frozenset[str]:
        return frozenset(full_name(name, namespaces, where) for name in written)

    found = tuple(
        Pattern(
            one.name,
            one.title,
            one.family,
            one.strong.by_language(),
            one.weak.by_language(),
            tuple(one.implies),
            tuple(one.unless),
            tuple(one.beside),
            tuple(tuple(group) for group in one.joins),
            tuple(
                QuerySign(
                    names(sign.properties),
                    names(sign.along),
                    names([f"{prefix}:" for prefix in sign.namespaces]),
                    names(sign.classes),
                    frozenset(sign.graphs),
                    frozenset(sign.services),
                    frozenset(sign.features),
                )
                for sign in one.query
            ),
        )
        for one in read.pattern
    )
    known = {one.name for one in found}
    for written in read.pattern:
        for name in written.others():
            if name not in known:
                raise UsageError(f"{written.name} names an unknown pattern {name!r}", where=where)
    shapes = _shapes(read.shapes, where)
    return PatternSet(found, shapes, read.vocabulary.by_language(), read.idle.by_language())


def _shapes(written: Mapping[str, str], where: str) -> dict[str, re.Pattern[str]]:
    try:
        return {name: re.compile(form) for name, form in written.items()}
    except re.error as error:
        raise UsageError(f"a shape is no regular expression: {error}", where=where) from None


def load_patterns(pack: Pack | str) -> PatternSet:
    """Read the patterns of a pack, once a process; a pack without the file has none.

    Args:
        pack: A pack or its name.

    Raises:
        UsageError: No such pack; the file is of another form, or names what does not exist.
    """
    found = load_pack(pack) if isinstance(pack, str) else pack
    return _load(PackKey.of(found))
