"""The hint files of a pack: the patterns of its questions, and its rules for writing queries.

A pack's ``hints/patterns.toml`` lists them. Each rule is a word or a phrase of one language:

- a word matches all of its inflected forms, ``=word`` this form alone, ``word*`` all words that
  begin so, ``a|b`` either;
- ``<quoted>``, ``<affix>`` (``-oso``), ``<number>``, ``<code>`` and the pack's own shapes match a
  token of that kind, ``<word>`` a content word that no rule and no vocabulary of the pack knows;
- ``...`` matches up to four tokens without a negation;
- a part in parentheses must be present, and another rule may match it too.

The rules of ``hints/constraints.toml`` are put into prompts by the patterns of a question, and
checked against queries.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from reasoningbank.corpus.pack import Iri, Pack, load_pack, read_hints
from reasoningbank.errors import UsageError
from reasoningbank.nl2sparql.words import Language

#: The pack that is used if none is named.
DEFAULT_PACK = "liita"


def as_pack(pack: Pack | str) -> Pack:
    return load_pack(pack) if isinstance(pack, str) else pack


class HintModel(BaseModel):
    """Part of a hint file; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_by_name=True)


#: Rules by language.
Rules = Mapping[Language, tuple[str, ...]]
Names = frozenset[Iri]


def _as_names(prefixes: Any) -> Any:
    return [f"{prefix}:" for prefix in prefixes] if isinstance(prefixes, list) else prefixes


class QuerySign(HintModel):
    """What identifies a query of a pattern: one entry of each list that is not empty.

    `along` and `names` are IRIs anywhere in the query, `filtered` properties whose objects a
    function such as REGEX reads, `texts` strings in lower case, and ``"?"`` among properties or
    graphs a variable. `named` is the end of one of the properties that the query names, while it
    asks for the other.
    """

    properties: Names = frozenset()
    along: Names = frozenset()
    namespaces: Annotated[Names, BeforeValidator(_as_names)] = frozenset()
    classes: Names = frozenset()
    names: Names = frozenset()
    graphs: frozenset[str] = frozenset()
    services: frozenset[str] = frozenset()
    features: frozenset[str] = frozenset()
    filtered: Names = frozenset()
    texts: frozenset[str] = frozenset()
    named: Literal["", "subject", "object"] = ""


class Pattern(HintModel):
    """One kind of thing that a question may need."""

    name: str = Field(min_length=1)  #: Its name, e.g. ``EMOTION``.
    title: str = ""  #: A description in a few words
    family: str = ""  #: Patterns of one family are answered by one specialised generator
    strong: Rules = {}  #: Rules by language, each of which is enough
    weak: Rules = {}  #: Rules by language, two of which are needed
    implies: tuple[str, ...] = ()  #: Patterns that are detected with it
    #: If the question's own words show one of these, this one is not detected
    unless: tuple[str, ...] = ()
    #: If one of these is detected and a content word of the question is unknown to the file, this
    #: one is detected too: the word says more about what is asked
    beside: tuple[str, ...] = ()
    #: If a pattern out of each list is detected, so is this one
    joins: tuple[tuple[str, ...], ...] = ()
    #: What its queries contain; one sign is enough
    signs: tuple[QuerySign, ...] = Field((), validation_alias="query")
    #: Whether a query must contain one of its signs if the question's own words show it; a value's
    #: always must
    checked: bool = False
    of: str = ""  #: For a value, the pattern that its words show


class PatternSet(HintModel):
    """All patterns of a pack."""

    #: In the order of the file
    patterns: tuple[Pattern, ...] = Field((), validation_alias="pattern")
    #: Single things that a question may name, such as one emotion, with the same rules and signs;
    #: the name of each is how a query writes it
    values: tuple[Pattern, ...] = Field((), validation_alias="value")
    #: Further names of patterns, each for one or several of them
    aliases: Mapping[str, tuple[str, ...]] = {}
    shapes: Mapping[str, re.Pattern[str]] = {}  #: Kinds of codes by name
    #: Words by language that are not entities although no rule contains them
    vocabulary: Rules = {}
    #: Phrases by language that show nothing although a rule contains a word of theirs
    idle: Rules = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The patterns' names, in the order of the file."""
        return tuple(pattern.name for pattern in self.patterns)

    def named(self, name: str, where: str = "") -> Pattern:
        """Return a pattern; case is ignored."""
        for pattern in self.patterns:
            if pattern.name.lower() == name.strip().lower():
                return pattern
        hint = f"choose {', '.join(self.names) or 'none'}"
        raise UsageError(
            f"unknown pattern {name!r}", where=where, hint=hint, code="unknown-pattern"
        )

    def known(self, words: Iterable[str]) -> tuple[str, ...]:
        """Return the patterns that some words name, aliases included, as the file writes them."""
        wanted = {word.strip().lower() for word in words}
        for alias, names in self.aliases.items():
            if alias.lower() in wanted:
                wanted.update(map(str.lower, names))
        return tuple(name for name in self.names if name.lower() in wanted)


@lru_cache(maxsize=32)
def load_patterns(pack: Pack | str) -> PatternSet:
    """Read the patterns of a pack, once a process; a pack without the file has none."""
    found, where = read_hints(as_pack(pack), "patterns.toml", PatternSet)
    for one in found.patterns:
        for name in (*one.implies, *one.unless, *one.beside, *sum(one.joins, ())):
            found.named(name, where)
    for name in (*sum(found.aliases.values(), ()), *(one.of for one in found.values if one.of)):
        found.named(name, where)
    return found


#: About 900 tokens; a small model on a small machine reads some fifty a second.
MOST_CHARS = 3_600

_Text = Annotated[str, Field(min_length=1)]
_HINT = AliasChoices("hint", "mend")  # old spelling


class SourceRow(HintModel):
    """One source of facts: its name, how a query reaches it, what it holds."""

    name: _Text
    where: str = ""
    text: str = ""


def _as_mapping(values: Any) -> Any:
    return {name: name for name in values} if isinstance(values, list) else values


class PropertyRow(HintModel):
    name: _Text
    iri: Iri = Field(default_factory=lambda row: row["name"], validate_default=True)
    use: _Text
    where: str = ""
    note: str = ""
    graph: str = ""
    service: str = ""
    entry: str = ""
    patterns: tuple[str, ...] = ()
    values: Annotated[Mapping[Iri, str], BeforeValidator(_as_mapping)] = {}


class Rule(HintModel):
    """What to do and what to avoid, shown if one of its patterns is detected."""

    title: _Text
    text: _Text
    patterns: tuple[str, ...] = Field(min_length=1)


class EntryKind(NamedTuple):
    """A property of one kind of entry only, and the property from its objects to its kind."""

    property: Iri
    by: Iri


class Entries(HintModel):
    """The rule for questions that need several entries of one resource."""

    text: str = ""
    patterns: Mapping[str, tuple[str, ...]] = {}
    hint: str = Field(default="", validation_alias=_HINT)
    apart: tuple[EntryKind, ...] = ()


class Direction(HintModel):
    """Which end of a relation is the resource that a question names."""

    pattern: _Text
    unless: tuple[str, ...] = ()
    name: str = ""
    property: Iri
    named: Literal["subject", "object"]
    hint: _Text = Field(validation_alias=_HINT)


class _Base(HintModel):
    text: str = ""


class Constraints(HintModel):
    start: _Base = Field(_Base(), validation_alias="base")  #: What every prompt begins with
    sources: tuple[SourceRow, ...] = Field((), validation_alias="source")  #: Where facts are found
    #: The property table
    properties: tuple[PropertyRow, ...] = Field((), validation_alias="property")
    rules: tuple[Rule, ...] = Field((), validation_alias="rule")  #: Rules by pattern
    entries: Entries = Entries()  #: The rule for several entries
    #: What the ends of relations mean
    directions: tuple[Direction, ...] = Field((), validation_alias="direction")


@lru_cache(maxsize=32)
def load_constraints(pack: Pack) -> Constraints:
    """Read the rules of a pack, once a process; a pack without the file has none."""
    found, where = read_hints(pack, "constraints.toml", Constraints)
    lists = [one.patterns for one in found.properties] + [one.patterns for one in found.rules]
    lists += [(one.pattern, *one.unless) for one in found.directions]
    for name in (*sum(lists, ()), *found.entries.patterns):
        load_patterns(pack).named(name, where)
    return found


def get_constraints_for_patterns(
    patterns: Iterable[str], pack: Pack | str = DEFAULT_PACK
) -> tuple[Rule, ...]:
    """Return the rules of some patterns, in the order of the pack's file.

    The rule for several entries comes first, if the patterns need several. Arguments and errors
    are those of `build_constraints`.
    """
    constraints = load_constraints(as_pack(pack))
    wanted = _wanted(patterns, pack)
    rules = [rule for rule in constraints.rules if set(rule.patterns) & set(wanted)]
    entries, text = constraints.entries, constraints.entries.text.strip()
    if text and len({kind for name in wanted for kind in entries.patterns.get(name, ())}) > 1:
        rules.insert(0, Rule(title="several entries", text=text, patterns=tuple(wanted)))
    return tuple(rules)


def build_constraints(
    patterns: Iterable[str], pack: Pack | str = DEFAULT_PACK, *, most_chars: int = MOST_CHARS
) -> str:
    """Return what a model should know to write a query of some patterns, in whole parts.

    The base comes first and is always the same, so that a server caches it.

    Args:
        patterns: Names of patterns, or aliases such as ``SEMANTIC_RELATION``; case is ignored.
        pack: A pack or its name.
        most_chars: Most characters; the base is given even if it alone is longer.

    Raises:
        UsageError: If there is no such pack or pattern, or its rules cannot be read.
    """
    pack = as_pack(pack)
    constraints, wanted = load_constraints(pack), _wanted(patterns, pack)
    rules = get_constraints_for_patterns(wanted, pack)
    table = [row for row in constraints.properties if set(row.patterns) & set(wanted)]
    # Rules say what goes wrong; the table is next.
    optional = [f"{rule.title}: {rule.text.strip()}" for rule in rules]
    optional[1:1] = [_table("For this question:", table)] if table else []
    head = _base(constraints, pack.prefixes)
    parts = [head] if head else []
    room = most_chars - len(head)
    for text in optional:
        if len(text) + 2 <= room:
            room -= len(text) + 2
            parts.append(text)
    return "\n\n".join(parts)


def _wanted(patterns: Iterable[str], pack: Pack | str) -> list[str]:
    names = load_patterns(pack)
    found = {name: names.known([name]) or (names.named(name).name,) for name in patterns}
    return list(dict.fromkeys(known for those in found.values() for known in those))


def _base(constraints: Constraints, prefixes: Iterable[str]) -> str:
    parts = [constraints.start.text.strip()]
    if names := ", ".join(f"{prefix}:" for prefix in sorted(prefixes)):
        parts.append(f"Prefixes that are declared for you: {names}")
    if constraints.sources:
        lines = [f"- {one.name} ({one.where}): {one.text}" for one in constraints.sources]
        parts.append("\n".join(("Sources:", *lines)))
    always = [row for row in constraints.properties if not row.patterns]
    if always:
        parts.append(_table("Properties:", always))
    return "\n".join(filter(None, parts))


def _table(title: str, rows: Sequence[PropertyRow]) -> str:
    lines = [title]
    for row in rows:
        where = f" [{row.where}]" if row.where else ""
        values = f"one of {', '.join(row.values.values())}" if row.values else ""
        note = "; ".join(filter(None, (values, row.note)))
        lines.append(f"- {row.use}{where}{f' — {note}' if note else ''}")
    return "\n".join(lines)
