"""One variable that stands for two entries: each resource has an entry of its own for a thing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations

from rdflib.term import Identifier, URIRef, Variable

from reasoningbank.nl2sparql.problems import Problem
from reasoningbank.nl2sparql.validation.facts import Facts
from reasoningbank.nl2sparql.walking import Statement

__all__ = ["shared_entries"]


def shared_entries(facts: Facts) -> Iterator[Problem]:
    """Yield a problem for each variable that a query uses for two entries."""
    kinds = {row.iri: row.entry for row in facts.constraints.properties if row.entry}
    used: dict[Identifier, list[tuple[str, Statement]]] = defaultdict(list)
    for one in facts.walked.statements:
        kind = kinds.get(str(one.predicate))
        if kind and isinstance(one.subject, Variable):
            used[one.subject].append((kind, one))
    for variable, found in used.items():
        for (kind, one), (other_kind, other) in combinations(found, 2):
            if kind != other_kind and one.meets(other):
                names = " and ".join(facts.short(str(s.predicate)) for s in (one, other))
                yield Problem(
                    "semantic",
                    "one-variable-two-entries",
                    f"?{variable} stands for two entries, {kind} and {other_kind} ({names})",
                    facts.constraints.entries.hint or "use a variable of its own for each",
                )

    for name, by in facts.constraints.entries.apart:
        yield from _apart(facts, name, by)


def _apart(facts: Facts, name: str, by: str) -> Iterator[Problem]:
    """Find one entry that leads, by one property, to things of two kinds."""
    used = [s for s in facts.walked.statements if str(s.predicate) == name]
    for one, other in combinations(used, 2):
        if one.subject != other.subject or not one.meets(other):
            continue
        links = [s for s in facts.walked.statements if one.subject not in (s.subject, s.object)]
        kinds = _reached(facts, one.object, by, links), _reached(facts, other.object, by, links)
        if all(kinds) and not kinds[0] & kinds[1]:
            yield Problem(
                "semantic",
                "one-variable-two-entries",
                f"{facts.show(one.subject)} stands for two entries: its two "
                f"{facts.short(name)} lead to {' and '.join(sorted(kinds[0] | kinds[1]))}",
                facts.constraints.entries.hint or "use a variable of its own for each",
            )


def _reached(facts: Facts, start: Identifier, by: str, links: Sequence[Statement]) -> set[str]:
    """Return the IRIs behind a property of what a term is joined to, forwards."""
    seen = {start}
    left = [start]
    found: set[str] = set()
    while left:
        here = left.pop()
        for link in links:
            if link.subject != here:
                continue
            if str(link.predicate) == by and isinstance(link.object, URIRef):
                found.add(str(link.object))
            elif isinstance(link.object, Variable) and link.object not in seen:
                seen.add(link.object)
                left.append(link.object)
    return found
