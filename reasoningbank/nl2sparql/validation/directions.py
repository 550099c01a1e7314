"""Relations between things of one class, whose direction only the question tells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rdflib.term import Identifier, Literal, URIRef, Variable

from reasoningbank.nl2sparql.constraints import Direction
from reasoningbank.nl2sparql.problems import Problem
from reasoningbank.nl2sparql.validation.facts import Facts
from reasoningbank.nl2sparql.walking import Statement

__all__ = ["wrong_ends"]


def wrong_ends(facts: Facts) -> Iterator[Problem]:
    """Yield relations that have the thing that the question names at their other end."""
    rules = [
        rule
        for rule in facts.constraints.directions
        if rule.pattern in facts.patterns and not facts.patterns & set(rule.unless)
    ]
    relations = {rule.property for rule in facts.constraints.directions}
    links = [s for s in facts.walked.statements if str(s.predicate) not in relations]
    for one in facts.walked.statements:
        for rule in rules:
            if str(one.predicate) == rule.property and _other_end(facts, one, rule, links):
                yield Problem(
                    "semantic",
                    "reversed-direction",
                    f"{rule.name} stands the wrong way round for this question",
                    rule.hint,
                )


def _other_end(facts: Facts, one: Statement, rule: Direction, links: Sequence[Statement]) -> bool:
    subject = _named(facts, one.subject, links)
    named = _named(facts, one.object, links)
    if subject == named:
        return False
    return subject if rule.named == "object" else named


def _named(facts: Facts, term: Identifier, links: Sequence[Statement]) -> bool:
    """Say whether a term is, or is joined to, something that the question names."""
    if isinstance(term, URIRef):
        return True
    seen = {term}
    left = [term]
    while left:
        here = left.pop()
        if here in facts.walked.texts:
            return True
        for link in links:
            if here not in (link.subject, link.object):
                continue
            other = link.object if here == link.subject else link.subject
            if isinstance(other, Literal):
                return True
            if isinstance(other, Variable) and other not in seen:
                seen.add(other)
                left.append(other)
    return False
