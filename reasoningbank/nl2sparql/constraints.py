"""A pack's rules for writing queries, from its ``hints/constraints.toml``.

They are used twice: put into prompts by the patterns of a question, and checked against queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field, model_validator

from reasoningbank.corpus import Pack, load_pack
from reasoningbank.errors import UsageError
from reasoningbank.nl2sparql.patterns import (
    DEFAULT_PACK,
    HintModel,
    Iri,
    PackKey,
    load_patterns,
    read_hints,
)

FILE = "constraints.toml"
#: About 900 tokens; a small model on a small machine reads some fifty a second.
MOST_CHARS = 3_600

_Text = Annotated[str, Field(min_length=1)]


class SourceRow(HintModel):
    """One source of facts: its name, how a query reaches it, what it holds."""

    name: _Text
    where: str = ""
    text: str = ""


class PropertyRow(HintModel):
    """A line of the property table."""

    name: _Text
    iri: Iri = ""
    use: _Text
    where: str = ""
    note: str = ""
    graph: str = ""
    service: str = ""
    entry: str = ""
    patterns: tuple[str, ...] = ()
    values: Annotated[
        Mapping[Iri, str],
        BeforeValidator(lambda given: {n: n for n in given} if isinstance(given, list) else given),
    ] = {}

    @model_validator(mode="before")
    @classmethod
    def _with_iri(cls, data: dict[str, Any]) -> dict[str, Any]:
        return {"iri": data.get("name", ""), **data}


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
    hint: str = ""
    apart: tuple[EntryKind, ...] = ()


class Direction(HintModel):
    """Which end of a relation is the resource that a question names."""

    pattern: _Text
    unless: tuple[str, ...] = ()
    property: Iri
    name: str = ""
    named: Literal["subject", "object"]
    hint: _Text

    @model_validator(mode="before")
    @classmethod
    def _with_name(cls, data: dict[str, Any]) -> dict[str, Any]:
        return {"name": data.get("property", ""), **data}


class _Base(HintModel):
    text: str = ""


class Constraints(HintModel):
    """All rules of a pack.

    Attributes:
        start: What every prompt begins with.
        sources: Where facts are found.
        properties: The property table.
        rules: Rules by pattern.
        entries: The rule for several entries.
        directions: What the ends of relations mean.
        prefixes: Namespaces by prefix, in the order in which a model sees them.
    """

    start: _Base = Field(_Base(), validation_alias="base")
    sources: tuple[SourceRow, ...] = Field((), validation_alias="source")
    properties: tuple[PropertyRow, ...] = Field((), validation_alias="property")
    rules: tuple[Rule, ...] = Field((), validation_alias="rule")
    entries: Entries = Entries()
    directions: tuple[Direction, ...] = Field((), validation_alias="direction")
    prefixes: Mapping[str, str] = {}

    def pattern_names(self) -> list[str]:
        """Return every pattern that a rule names."""
        shown = [name for row in self.properties for name in row.patterns]
        shown += [name for rule in self.rules for name in rule.patterns]
        ends = [name for one in self.directions for name in (one.pattern, *one.unless)]
        return [*shown, *ends, *self.entries.patterns]


def load_constraints(pack: Pack) -> Constraints:
    """Read the rules of a pack, once a process; a pack without the file has none.

    Raises:
        UsageError: If the file is invalid or names what does not exist.
    """
    return _load(PackKey.of(pack))


@lru_cache(maxsize=32)
def _load(key: PackKey) -> Constraints:
    found, file = read_hints(key.pack, FILE, Constraints)
    known = load_patterns(key.pack).names
    for name in found.pattern_names():
        if name not in known:
            hint = f"choose {', '.join(known)}"
            what = f"unknown pattern {name!r}"
            raise UsageError(what, where=str(file), hint=hint, code="unknown-pattern")
    return found.model_copy(update={"prefixes": dict(key.pack.prefixes)})


@dataclass(frozen=True)
class ConstraintPrompt:
    """Rules for a prompt.

    Attributes:
        text: The rules; the base first and always the same, so that a server caches it.
        left_out: Titles of what no longer fitted.
    """

    text: str
    left_out: tuple[str, ...] = ()


def get_constraints_for_patterns(
    patterns: Iterable[str], pack: Pack | str = DEFAULT_PACK
) -> tuple[Rule, ...]:
    """Return the rules of some patterns, in the order of the pack's file.

    The rule for several entries comes first, if the patterns need several.

    Args:
        patterns: Names of patterns; case and unknown names are ignored.
        pack: A pack or its name.

    Raises:
        UsageError: If there is no such pack, or its rules cannot be read.
    """
    found = _pack(pack)
    constraints = load_constraints(found)
    wanted = _wanted(patterns, found)
    rules = [rule for rule in constraints.rules if set(rule.patterns) & set(wanted)]
    text = constraints.entries.text.strip()
    if text and len(entry_kinds(wanted, constraints)) > 1:
        rules.insert(0, Rule(title="several entries", text=text, patterns=tuple(wanted)))
    return tuple(rules)


def build_constraints(
    patterns: Iterable[str], pack: Pack | str = DEFAULT_PACK, *, most_chars: int = MOST_CHARS
) -> str:
    """Return what a model should know to write a query of some patterns.

    Args:
        patterns: Names of patterns; case and unknown names are ignored.
        pack: A pack or its name.
        most_chars: Most characters; the base is given even if it alone is longer.

    Raises:
        UsageError: If there is no such pack, or its rules cannot be read.
    """
    return constraint_prompt(patterns, pack, most_chars=most_chars).text


def constraint_prompt(
    patterns: Iterable[str], pack: Pack | str = DEFAULT_PACK, *, most_chars: int = MOST_CHARS
) -> ConstraintPrompt:
    """Return what `build_constraints` returns, with what was left out: always whole parts."""
    found = _pack(pack)
    constraints = load_constraints(found)
    wanted = _wanted(patterns, found)
    head = _base(constraints)
    rules = get_constraints_for_patterns(wanted, found)
    table = [row for row in constraints.properties if set(row.patterns) & set(wanted)]
    # Rules say what goes wrong; the table is next.
    optional = [(rule.title, f"{rule.title}: {rule.text.strip()}") for rule in rules]
    optional[1:1] = [("property table", _table("For this question:", table))] if table else []
    parts = [head] if head else []
    left_out: list[str] = []
    room = most_chars - len(head)
    for title, text in optional:
        if len(text) + 2 > room:
            left_out.append(title)
            continue
        room -= len(text) + 2
        parts.append(text)
    return ConstraintPrompt("\n\n".join(parts), tuple(left_out))


def entry_kinds(patterns: Iterable[str], constraints: Constraints) -> tuple[str, ...]:
    """Return the kinds of entries that a question of some patterns needs."""
    kinds = [kind for name in patterns for kind in constraints.entries.patterns.get(name, ())]
    return tuple(dict.fromkeys(kinds))


def _pack(pack: Pack | str) -> Pack:
    return load_pack(pack) if isinstance(pack, str) else pack


def _wanted(patterns: Iterable[str], pack: Pack) -> list[str]:
    names = load_patterns(pack)
    return [known for name in patterns for known in names.known([name])]


def _base(constraints: Constraints) -> str:
    parts = [text] if (text := constraints.start.text.strip()) else []
    if constraints.prefixes:
        names = ", ".join(f"{prefix}:" for prefix in sorted(constraints.prefixes))
        parts.append(f"Prefixes that are declared for you: {names}")
    if constraints.sources:
        lines = [f"- {one.name} ({one.where}): {one.text}" for one in constraints.sources]
        parts.append("\n".join(("Sources:", *lines)))
    always = [row for row in constraints.properties if not row.patterns]
    if always:
        parts.append(_table("Properties:", always))
    return "\n".join(parts)


def _table(title: str, rows: Sequence[PropertyRow]) -> str:
    lines = [title]
    for row in rows:
        where = f" [{row.where}]" if row.where else ""
        values = f"one of {', '.join(row.values.values())}" if row.values else ""
        note = "; ".join(part for part in (values, row.note) if part)
        lines.append(f"- {row.use}{where}{f' — {note}' if note else ''}")
    return "\n".join(lines)
