"""A pack's rules for writing queries, from its ``hints/constraints.toml``.

They are used twice: put into prompts by the patterns of a question, and checked against queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field

from reasoningbank.corpus import Pack
from reasoningbank.nl2sparql.patterns import (
    DEFAULT_PACK,
    HintModel,
    Iri,
    as_pack,
    load_patterns,
    once_a_pack,
    read_hints,
)

#: About 900 tokens; a small model on a small machine reads some fifty a second.
MOST_CHARS = 3_600

_Text = Annotated[str, Field(min_length=1)]


class SourceRow(HintModel):
    """One source of facts: its name, how a query reaches it, what it holds."""

    name: _Text
    where: str = ""
    text: str = ""


def _as_mapping(values: Any) -> Any:
    return {name: name for name in values} if isinstance(values, list) else values


class PropertyRow(HintModel):
    """A line of the property table."""

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
    hint: str = ""
    apart: tuple[EntryKind, ...] = ()


class Direction(HintModel):
    """Which end of a relation is the resource that a question names."""

    pattern: _Text
    unless: tuple[str, ...] = ()
    name: str = ""
    property: Iri
    named: Literal["subject", "object"]
    hint: _Text


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
        lists = [one.patterns for one in self.properties] + [one.patterns for one in self.rules]
        ends = [name for one in self.directions for name in (one.pattern, *one.unless)]
        return [*sum(lists, ()), *ends, *self.entries.patterns]


@once_a_pack
def load_constraints(pack: Pack) -> Constraints:
    """Read the rules of a pack, once a process; a pack without the file has none.

    Raises:
        UsageError: If the file is invalid or names what does not exist.
    """
    found, where = read_hints(pack, "constraints.toml", Constraints)
    patterns = load_patterns(pack)
    for name in found.pattern_names():
        patterns.named(name, where)
    return found.model_copy(update={"prefixes": dict(pack.prefixes)})


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
    constraints = load_constraints(as_pack(pack))
    wanted = _wanted(patterns, pack)
    rules = get_constraints_for_patterns(wanted, pack)
    table = [row for row in constraints.properties if set(row.patterns) & set(wanted)]
    # Rules say what goes wrong; the table is next.
    optional = [(rule.title, f"{rule.title}: {rule.text.strip()}") for rule in rules]
    optional[1:1] = [("property table", _table("For this question:", table))] if table else []
    head = _base(constraints)
    parts = [head] if head else []
    left_out: list[str] = []
    room = most_chars - len(head)
    for title, text in optional:
        if len(text) + 2 > room:
            left_out.append(title)
        else:
            room -= len(text) + 2
            parts.append(text)
    return ConstraintPrompt("\n\n".join(parts), tuple(left_out))


def _wanted(patterns: Iterable[str], pack: Pack | str) -> list[str]:
    names = load_patterns(pack)
    return [known for name in patterns for known in names.known([name])]


def _base(constraints: Constraints) -> str:
    parts = [constraints.start.text.strip()]
    if constraints.prefixes:
        names = ", ".join(f"{prefix}:" for prefix in sorted(constraints.prefixes))
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
