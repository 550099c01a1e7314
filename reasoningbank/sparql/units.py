"""The parts of a group that can lose rows: patterns, steps of paths, conditions, blocks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from reasoningbank.sparql.clauses import Clause, Group, TriplePattern
from reasoningbank.sparql.tokens import Token, tokenize

__all__ = [
    "Unit",
    "is_fresh",
    "joined",
    "ordered_variables",
    "steps_of",
    "told",
    "unit_of",
    "units_of",
    "variables_in",
]

_FRESH = re.compile(r"\?(?:path\d+_step\d+|blank_\w+)")


@dataclass(frozen=True)
class Unit:
    """A part of a group that can lose rows, or that others need.

    Attributes:
        text: The part as SPARQL, blank nodes turned into variables.
        shown: The part as the writer wrote it.
        kind: The kind of its clause.
        pattern: The triple pattern, or one step of its path.
        clause: The clause it comes from.
        variables: The variables in it, without question marks.
        whole: The pattern with the whole path, where `pattern` is one step of it.
    """

    text: str
    shown: str
    kind: str
    clause: Clause = field(repr=False)
    pattern: TriplePattern | None = None
    variables: frozenset[str] = frozenset()
    whole: TriplePattern | None = None

    @property
    def passive(self) -> bool:
        """Whether it can lose no rows."""
        return self.kind in ("optional", "bind")


def joined(units: Iterable[Unit | str]) -> str:
    """Return parts as the inside of a group."""
    return " ".join(unit if isinstance(unit, str) else unit.text for unit in units)


def units_of(text: str, group: Group) -> list[Unit]:
    """Return the parts of a group in written order, paths split into their steps."""
    found: list[Unit] = []
    fresh = 0
    for clause in group.clauses:
        for pattern in clause.patterns:
            steps = steps_of(pattern, fresh)
            whole = None
            if len(steps) > 1:
                whole = TriplePattern(steps[0].subject, pattern.predicate, steps[-1].object)
            fresh += 1
            found += (
                Unit(
                    f"{plain} .",
                    str(pattern),
                    "triples",
                    clause,
                    plain,
                    _names_in(str(plain)),
                    whole,
                )
                for plain in steps
            )
        if not clause.patterns:
            found.append(unit_of(text, clause))
    return found


def unit_of(text: str, clause: Clause) -> Unit:
    """Return a clause as one part."""
    written = text[clause.start : clause.end]
    sparql = f"{{ {written} }}" if clause.kind == "subselect" else written
    return Unit(sparql, written, clause.kind, clause, None, _names_in(written))


def steps_of(pattern: TriplePattern, number: int = 0) -> list[TriplePattern]:
    """Split the path of a pattern into its steps, and turn blank nodes into variables.

    Examples:
        >>> for step in steps_of(TriplePattern("_:b", "e:a/^e:b*/(e:c|e:d)", "?x")):
        ...     print(step)
        ?blank_b e:a ?path0_step1
        ?path0_step1 ^e:b* ?path0_step2
        ?path0_step2 (e:c|e:d) ?x
    """
    steps: list[list[Token]] = [[]]
    depth = 0
    for token in tokenize(pattern.predicate):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.text == "|":
            steps = [list(tokenize(pattern.predicate))]
            break
        if depth == 0 and token.text == "/":
            steps.append([])
        else:
            steps[-1].append(token)
    texts = [pattern.predicate[s[0].start : s[-1].end] for s in steps]
    ends = [
        pattern.subject,
        *(f"?path{number}_step{at}" for at in range(1, len(texts))),
        pattern.object,
    ]
    named = [f"?blank_{end[2:]}" if end.startswith("_:") else end for end in ends]
    return [TriplePattern(named[at], text, named[at + 1]) for at, text in enumerate(texts)]


def ordered_variables(text: str) -> list[str]:
    """Return the variables in a piece of a query, without question marks, each once.

    Examples:
        >>> ordered_variables('?b e:p "?c", ?a , ?b . # ?d')
        ['b', 'a']
    """
    found = (token.text[1:] for token in tokenize(text) if token.kind == "variable")
    return list(dict.fromkeys(found))


def _names_in(text: str) -> frozenset[str]:
    return frozenset(ordered_variables(text))


def is_fresh(name: str) -> bool:
    """Say whether a variable was made for the step of a path or for a blank node."""
    return _FRESH.fullmatch(f"?{name}") is not None


def told(text: str) -> str:
    """Return a part of a query without the variables that its writer does not know.

    Examples:
        >>> told("?path0_step1 e:c ?x"), told("?x e:a ?path0_step1")
        ('… e:c ?x', '?x e:a …')
    """
    return _FRESH.sub("…", text)


def variables_in(units: Iterable[Unit]) -> frozenset[str]:
    """Return all variables of some parts."""
    return frozenset(name for unit in units for name in unit.variables)
