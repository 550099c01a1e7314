"""Subjects and objects of another class than their property has, and so reversed directions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rdflib.term import Identifier, Literal, URIRef, Variable

from reasoningbank.nl2sparql.problems import Problem
from reasoningbank.nl2sparql.validation.facts import GENERAL, RDF_TYPE, Facts, is_datatype
from reasoningbank.nl2sparql.walking import Statement
from reasoningbank.sparql import STANDARD_PREFIXES

__all__ = ["misplaced_classes"]

#: Stands for every datatype.
_TEXT = STANDARD_PREFIXES["rdfs"] + "Literal"


@dataclass(frozen=True)
class _Claim:
    """What one statement says of the classes of its ends.

    Attributes:
        statement: The statement.
        subject: Classes of its subject; empty where any.
        object: Classes and datatypes of its object.
    """

    statement: Statement
    subject: frozenset[str]
    object: frozenset[str]

    def ends(self) -> Iterator[tuple[Identifier, frozenset[str]]]:
        """Yield the variables that it says something of."""
        for term, classes in (
            (self.statement.subject, self.subject),
            (self.statement.object, self.object),
        ):
            if classes and isinstance(term, Variable):
                yield term, classes

    def turned(self) -> _Claim | None:
        """Return what it would say the other way round; None where it cannot stand so."""
        one = self.statement
        if isinstance(one.object, Literal) or not self.subject or _is_type(one):
            return None
        around = replace(one, subject=one.object, object=one.subject)
        return _Claim(around, self.subject, self.object)


def misplaced_classes(facts: Facts, statements: Sequence[Statement]) -> Iterator[Problem]:
    """Yield statements that need another class of a variable than others do.

    Of statements that contradict one another the one with the most contradictions is at fault; of
    equals the one that would fit the other way round, and an ``rdf:type`` last.

    Args:
        facts: The query.
        statements: Those whose names are sound.
    """
    claims = [claim for one in statements if (claim := _claim(facts, one)) is not None]
    while True:
        against = {
            number: [
                other
                for other in claims
                if other is not claim
                and _clash(facts, claim, other)
                and not _denied(facts, claims, claim, other)
            ]
            for number, claim in enumerate(claims)
        }
        blamed = max(
            (number for number, others in against.items() if others),
            key=lambda n: (
                (len(against[n]), _fits_turned(facts, n, claims), -n)
                if not _is_type(claims[n].statement)
                else (0, False, -n)
            ),
            default=None,
        )
        if blamed is None:
            return
        yield _problem(facts, blamed, claims, against[blamed][0])
        del claims[blamed]


def _claim(facts: Facts, one: Statement) -> _Claim | None:
    name = str(one.predicate)
    if one.skippable or not isinstance(one.predicate, URIRef):
        return None
    if _is_type(one):
        told = isinstance(one.object, URIRef)
        return _Claim(one, frozenset((str(one.object),)), frozenset()) if told else None
    if name.startswith(GENERAL) or _told_of_elsewhere(facts, one, name):
        return None
    # What a general property such as rdfs:seeAlso leads to, no schema says in full.
    general = name.startswith(STANDARD_PREFIXES["rdfs"])
    objects = frozenset() if general else _values(facts.knowledge.objects_of(name))
    return _Claim(one, facts.knowledge.subjects_of(name), objects)


def _is_type(one: Statement) -> bool:
    return str(one.predicate) == RDF_TYPE


def _told_of_elsewhere(facts: Facts, one: Statement, name: str) -> bool:
    """Say whether a federated endpoint may use a property otherwise than the schema says."""
    return one.service is not None and name in facts.knowledge.sources[0].properties


def _clash(facts: Facts, one: _Claim, other: _Claim) -> Identifier | None:
    """Return a variable of which two statements need classes that exclude one another."""
    if not one.statement.meets(other.statement):
        return None
    for term, classes in one.ends():
        for same, others in other.ends():
            if same == term and not facts.knowledge.fit(classes, others):
                return term
    return None


def _denied(facts: Facts, claims: Sequence[_Claim], one: _Claim, other: _Claim) -> bool:
    """Say whether one of two is only denied, as in "proteins that are no enzymes".

    A pattern behind MINUS that would agree the other way round is reversed all the same.
    """
    first, second = one.statement.negated, other.statement.negated
    if first == second:
        return False
    inner = one if len(first) > len(second) else other
    return not _fits_turned(facts, claims.index(inner), claims)


def _fits_turned(facts: Facts, number: int, claims: Sequence[_Claim]) -> bool:
    turned = claims[number].turned()
    others = (claim for n, claim in enumerate(claims) if n != number)
    return turned is not None and not any(_clash(facts, turned, other) for other in others)


def _problem(facts: Facts, number: int, claims: Sequence[_Claim], other: _Claim) -> Problem:
    claim = claims[number]
    one = claim.statement
    name = facts.short(str(one.predicate))
    if _fits_turned(facts, number, claims):
        return Problem(
            "semantic",
            "reversed-direction",
            f"{name} leads the other way",
            f"write {facts.show(one.object)} {name} {facts.show(one.subject)}",
        )
    because = facts.short(str(other.statement.predicate))
    if _is_type(other.statement):
        because = f"a {facts.show(other.statement.object)}"
    if _clash(facts, claim, other) == one.subject:
        return Problem(
            "semantic",
            "wrong-subject",
            f"{facts.show(one.subject)} cannot have {name}, since it has {because}",
            f"{name} is a property of {_named(facts, claim.subject)}: take the step that leads "
            "there",
        )
    return Problem(
        "semantic",
        "wrong-object",
        f"{name} does not lead to {facts.show(one.object)}, which has or is of {because}",
        f"{name} leads to {_named(facts, claim.object)}",
    )


def _named(facts: Facts, classes: frozenset[str]) -> str:
    names = sorted("text" if name == _TEXT else facts.short(name) for name in classes)
    return " or ".join(names[:3])


def _values(ranges: frozenset[str]) -> frozenset[str]:
    """Return what a property leads to, all datatypes as one: a text may be of several."""
    return frozenset(_TEXT if is_datatype(name) else name for name in ranges)
