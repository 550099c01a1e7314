"""Parts of a query that nothing joins: each row of one then stands beside each of the other."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

from rdflib.term import Identifier, URIRef, Variable

from reasoningbank.nl2sparql.problems import Problem
from reasoningbank.nl2sparql.validation.facts import GENERAL, RDF_TYPE, Facts, is_datatype
from reasoningbank.nl2sparql.walking import Statement

__all__ = ["unjoined"]

#: Variables of a part that are named.
_SHOWN = 2


def unjoined(facts: Facts) -> Iterator[Problem]:
    """Yield a problem where two parts of a query share no variable, resource or text.

    Parts are joined by triple patterns, by expressions that hold variables of both, and by VALUES.
    The sides of a UNION need no join, nor do two subqueries of one row each.
    """
    parts = _parts(facts)
    for one, other in combinations(parts, 2):
        if _combined(one, other):
            shown = " and ".join(_told(facts, part) for part in (one, other))
            what = f"nothing joins {shown}, so each is combined with each"
            found = [*_bridges(facts, one, other), *_bridges(facts, other, one)][:_SHOWN]
            hint = f"add {' or '.join(found)}" if found else "add the pattern that leads there"
            yield Problem("semantic", "not-joined", what, hint)
            return


def _combined(one: list[Statement], other: list[Statement]) -> bool:
    """Say whether rows of two parts stand beside one another, several of at least one of them."""
    counted, beside = ({statement.alone for statement in part} for part in (one, other))
    if 0 not in counted | beside and not counted & beside:
        return False
    return any(first.meets(second) for first in one for second in other)


def _bridges(facts: Facts, one: list[Statement], other: list[Statement]) -> Iterator[str]:
    """Yield the patterns that would lead from one part to the other, as the schema tells."""
    knowledge = facts.knowledge
    starts, ends = _classes(facts, one), _classes(facts, other)
    for (start, first), (end, second) in product(starts.items(), ends.items()):
        for name in sorted(knowledge.domains):
            there = knowledge.ranges.get(name, frozenset()) & second
            leads = bool(knowledge.domains[name] & first) and not all(map(is_datatype, there))
            if leads and not name.startswith(GENERAL):
                yield f"{facts.show(start)} {facts.short(name)} {facts.show(end)}"


def _classes(facts: Facts, part: list[Statement]) -> dict[Identifier, frozenset[str]]:
    """Return the classes of a part's variables, as far as its properties tell them."""
    found: dict[Identifier, frozenset[str]] = {}
    for one in part:
        name = str(one.predicate)
        if name == RDF_TYPE and isinstance(one.object, URIRef):
            told = [(one.subject, frozenset((str(one.object),)))]
        else:
            told = [
                (one.subject, facts.knowledge.subjects_of(name)),
                (one.object, facts.knowledge.objects_of(name)),
            ]
        for term, classes in told:
            if isinstance(term, Variable) and classes:
                found[term] = found.get(term, classes) & classes or classes
    return found


def _parts(facts: Facts) -> list[list[Statement]]:
    groups: list[tuple[set[Identifier | str], list[Statement]]] = [
        (set(together), []) for together in facts.walked.related
    ]
    groups += [(_ends(one), [one]) for one in facts.walked.statements]
    merged: list[tuple[set[Identifier | str], list[Statement]]] = []
    for ends, statements in groups:
        apart = []
        for group in merged:
            if group[0] & ends:
                ends, statements = ends | group[0], group[1] + statements
            else:
                apart.append(group)
        merged = [*apart, (ends, statements)]
    return [statements for _, statements in merged if any(map(_variables, statements))]


def _ends(one: Statement) -> set[Identifier | str]:
    """Return what a statement may share with another; a class or a graph joins nothing."""
    terms: set[Identifier | str] = {one.subject}
    if str(one.predicate) != RDF_TYPE or isinstance(one.object, Variable):
        terms.add(one.object if isinstance(one.object, (Variable, URIRef)) else str(one.object))
    terms |= {t for t in (one.predicate, one.graph, one.service) if isinstance(t, Variable)}
    return terms


def _variables(one: Statement) -> list[Identifier]:
    return [term for term in (one.subject, one.object) if isinstance(term, Variable)]


def _told(facts: Facts, part: list[Statement]) -> str:
    names = [facts.show(name) for one in part for name in _variables(one)]
    # Steps of a path have no name of their own.
    own = [name for name in dict.fromkeys(names) if not name.startswith(("?step", "?_"))]
    return ", ".join((own or names)[:_SHOWN])
