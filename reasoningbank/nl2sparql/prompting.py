"""The rules that a question needs, as one text of bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reasoningbank.corpus import Pack, load_pack
from reasoningbank.nl2sparql.constraints import Constraints, PropertyRow, Rule, load_constraints
from reasoningbank.nl2sparql.hints import DEFAULT_PACK
from reasoningbank.nl2sparql.patterns import load_patterns

__all__ = [
    "MOST_CHARS",
    "ConstraintPrompt",
    "build_constraints",
    "constraint_prompt",
    "get_constraints_for_patterns",
]

#: About 900 tokens, of which a small model on a small machine reads some fifty a second.
MOST_CHARS = 3_600


@dataclass(frozen=True)
class ConstraintPrompt:
    """Rules for a prompt.

    Attributes:
        text: The rules; the base first, always the same, so that a server can keep it.
        left_out: Titles of what no longer fitted.
    """

    text: str
    left_out: tuple[str, ...] = ()


def get_constraints_for_patterns(
    patterns: Iterable[str], pack: Pack | str = DEFAULT_PACK
) -> tuple[Rule, ...]:
    """Return the rules that hold for some patterns, in the order of the pack's file.

    The rule for several entries comes first, where the patterns need several.

    Args:
        patterns: Names of patterns; case and unknown names don't matter.
        pack: A pack or its name.

    Raises:
        UsageError: No such pack, or its rules cannot be read.
    """
    found = _pack(pack)
    constraints = load_constraints(found)
    wanted = _wanted(patterns, found)
    rules = [rule for rule in constraints.rules if set(rule.patterns) & set(wanted)]
    if constraints.entries.text and len(entry_kinds(wanted, constraints)) > 1:
        several = Rule("several entries", constraints.entries.text, tuple(wanted))
        rules.insert(0, several)
    return tuple(rules)


def build_constraints(
    patterns: Iterable[str], pack: Pack | str = DEFAULT_PACK, *, most_chars: int = MOST_CHARS
) -> str:
    """Return what a model should know to write a query of some patterns.

    Args:
        patterns: Names of patterns; case and unknown names don't matter.
        pack: A pack or its name.
        most_chars: Most characters; the base is given even if it alone is longer.

    Raises:
        UsageError: No such pack, or its rules cannot be read.
    """
    return constraint_prompt(patterns, pack, most_chars=most_chars).text


def constraint_prompt(
    patterns: Iterable[str], pack: Pack | str = DEFAULT_PACK, *, most_chars: int = MOST_CHARS
) -> ConstraintPrompt:
    """Return the same with what was left out: whole parts, never a part of one.

    Arguments and errors are those of `build_constraints`.
    """
    found = _pack(pack)
    constraints = load_constraints(found)
    wanted = _wanted(patterns, found)
    head = _base(constraints)
    rules = get_constraints_for_patterns(wanted, found)
    table = [row for row in constraints.properties if set(row.patterns) & set(wanted)]
    # Rules say what goes wrong; the table is next.
    optional = [(rule.title, f"{rule.title}: {rule.text}") for rule in rules]
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
    parts = [constraints.base] if constraints.base else []
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
