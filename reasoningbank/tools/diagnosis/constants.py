"""Why a pattern with a constant in it matches nothing: the constant as the data write it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from pyoxigraph import BlankNode, Literal, NamedNode

from reasoningbank.sparql import Term, full, iri
from reasoningbank.sparql.probing import Failure, as_written
from reasoningbank.sparql.tree import TriplePattern
from reasoningbank.tools.diagnosis.literals import Written, read_literal, variants
from reasoningbank.tools.diagnosis.lookups import Lookups
from reasoningbank.tools.diagnosis.names import local_name, namespace_of
from reasoningbank.tools.diagnosis.used_names import TYPE, absolute
from reasoningbank.tools.vocabulary import Vocabulary

__all__ = ["Constants"]

#: Values looked at: as examples, for one that holds a text, and for one with a like name.
_SAMPLE, _SEARCHED, _NAMED = 3, 20, 2_000
#: Likeness of two local names above which one was probably meant to be the other.
_LIKE = 0.75


@dataclass(frozen=True)
class Constants:
    """Explains patterns that match nothing by themselves, for the constant in them.

    Attributes:
        look: Looks texts and resources up.
        names: The endpoint's vocabulary.
        declared: Prefix → namespace of the query.
    """

    look: Lookups
    names: Vocabulary
    declared: Mapping[str, str]

    def explain(self, failure: Failure, pattern: TriplePattern) -> str:
        """Return a line on the pattern; empty where no constant is at fault."""
        literal = read_literal(pattern.object)
        if literal is not None:
            return self._literal(failure, pattern, literal)
        subject = absolute(pattern.subject, self.declared)
        if subject is not None:
            return self._subject(pattern, subject)
        object_ = absolute(pattern.object, self.declared)
        return "" if object_ is None else self._object(failure, pattern, object_)

    # -- a text ---------------------------------------------------------------------------

    def _literal(self, failure: Failure, pattern: TriplePattern, literal: Written) -> str:
        predicate = pattern.predicate
        values = self._values(failure, pattern)
        forms = variants(literal, values)
        body = f"VALUES ?value {{ {' '.join(forms)} }} {_open(pattern)}"
        exact = self.look.prober.rows(["value"], failure.body(body))
        if exact:
            written = f"{predicate} {self.look.literal(exact[0][0])}"
            return f"{predicate} {pattern.object} matches nothing: write {written}"
        what = f"no {predicate} is {pattern.object}"
        if pattern.subject[:1] not in "?$":
            what = f"{pattern.subject} has no {predicate} {pattern.object}"
        resources = _only_iris(values)
        if resources:
            step = self._step_to(failure, pattern, forms)
            if step:
                return f"{what}: write {step}"
        named = self._resource(pattern, literal, resources)
        if named:
            return f"{what}: {named}"
        if not literal.number:
            owner = self.look.owner(forms)
            if owner:
                return f"{what}: {owner}"
        if resources:
            like = self._like(failure, pattern, literal.text)
            such = f"try {like}" if like else f"such as {self.look.show(values[0])}"
            return f"{what}: its values are resources, {such}"
        near = self._nearest(failure, pattern, literal.text)
        if near is not None:
            return f"{what}; the nearest is {self.look.literal(near)}"
        if values:
            return f"{what}: its values are such as {self.look.literal(values[0])}"
        return what

    def _values(self, failure: Failure, pattern: TriplePattern) -> list[Term | None]:
        rows = self.look.prober.rows(["value"], failure.body(_open(pattern)), _SAMPLE)
        return [row[0] for row in rows or []]

    def _step_to(self, failure: Failure, pattern: TriplePattern, forms: Sequence[str]) -> str:
        """Return the pattern with the step from the resource that is its value to the text."""
        body = (
            f"VALUES ?value {{ {' '.join(forms)} }} "
            f"{pattern.subject} {pattern.predicate} ?between . ?between ?link ?value ."
        )
        rows = self.look.prober.rows(["link", "value"], failure.body(body))
        if not rows:
            return ""
        link, value = rows[0]
        path = f"{pattern.predicate}/{self.look.show(link)}"
        return as_written(f"{pattern.subject} {path} {self.look.literal(value)}")

    def _resource(self, pattern: TriplePattern, literal: Written, resources: bool) -> str:
        """Return the resource that a text such as an accession is the name of."""
        found = None if literal.spaced else self.look.resource(literal.text)
        if found is None or not isinstance(found.kind, NamedNode):
            return ""
        predicate = absolute(pattern.predicate, self.declared)
        term = None if predicate is None else self.names.properties.get(predicate)
        place = ""
        if predicate in self.names.properties_of(found.kind.value):
            place = pattern.subject if pattern.subject[:1] in "?$" else ""
        elif resources and (term is None or not term.range or found.kind.value in term.range):
            place = pattern.object
        if not place:
            return ""
        shown = self.look.show(found.value)
        return (
            f"{shown} is a {self.look.show(found.kind)}, write that in place of {as_written(place)}"
        )

    def _nearest(self, failure: Failure, pattern: TriplePattern, text: str) -> Term | None:
        lower = full(Literal(text.lower()))
        condition = f"FILTER(CONTAINS(LCASE(STR(?value)), {lower}))"
        body = failure.body(_open(pattern), condition)
        rows = self.look.prober.rows(["value"], body, _SEARCHED) or []
        found = [term for (term,) in rows if isinstance(term, Literal)]
        return min(found, key=lambda term: (len(term.value), term.value), default=None)

    def _like(self, failure: Failure, pattern: TriplePattern, text: str) -> str:
        """Return a value of the pattern whose local name is like a text."""
        wanted = text.lower()
        if not any(letter.isalpha() for letter in wanted):
            return ""
        some = f"{{ SELECT ?value {{ {failure.body(_open(pattern))} }} LIMIT {_NAMED} }}"
        rows = self.look.prober.rows(["value"], some, 200, distinct=True) or []
        found = {term.value for (term,) in rows if isinstance(term, NamedNode)}

        def likeness(name: str) -> float:
            local = local_name(name).lower()
            if wanted in local and len(wanted) > 2:
                return 1 + len(wanted) / len(local)
            return SequenceMatcher(None, wanted, local).ratio()

        best = max(sorted(found), key=likeness, default="")
        return self.look.show(best) if best and likeness(best) >= _LIKE else ""

    # -- a resource -----------------------------------------------------------------------

    def _subject(self, pattern: TriplePattern, subject: str) -> str:
        rows = self.look.prober.rows(["p"], f"{iri(subject)} ?p ?o", 200, distinct=True)
        if rows is None:
            return ""
        has = [row[0] for row in rows if isinstance(row[0], NamedNode)]
        if not has:
            return f"{pattern.subject} does not exist here{self._namesake(subject)}"
        predicate = absolute(pattern.predicate, self.declared)
        if any(p.value == predicate for p in has):
            body = f"{iri(subject)} {pattern.predicate} ?value"
            values = self.look.prober.rows(["value"], body, _SAMPLE) or []
            shown = ", ".join(self.look.show(value) for (value,) in values)
            return as_written(
                f"{pattern.subject} {pattern.predicate} is {shown}, not {pattern.object}"
            )
        what = as_written(f"{pattern.subject} has no {pattern.predicate}")
        body = f"{iri(subject)} ?link ?between . ?between {pattern.predicate} {pattern.object} ."
        links = self.look.prober.rows(["link"], body)
        if links:
            path = f"{self.look.show(links[0][0])}/{pattern.predicate}"
            return as_written(f"{what}: write {pattern.subject} {path} {pattern.object}")
        listed = ", ".join(self.look.show(p) for p in has if p.value != TYPE)
        return f"{what}; it has {listed}"

    def _object(self, failure: Failure, pattern: TriplePattern, object_: str) -> str:
        what = f"nothing has {pattern.predicate} {pattern.object}"
        rows = self.look.prober.rows(["x", "p"], f"?x ?p {iri(object_)}")
        if rows:
            resource, property_ = rows[0]
            other = f"it is the {self.look.show(property_)} of others"
            return f"{what}; {other}, such as {self.look.show(resource)}"
        there = self.look.prober.ask(f"{iri(object_)} ?p ?o") if rows is not None else None
        if there is None:
            return what
        if there is False:
            what = f"{pattern.object} does not exist here"
        like = self._cased(failure, pattern, object_)
        like = like or self._like(failure, pattern, local_name(object_))
        if like:
            return f"{what}: try {pattern.predicate} {like}"
        namesake = "" if there else self._namesake(object_)
        if namesake:
            return f"{what}{namesake}"
        values = self._values(failure, pattern)
        shown = [self.look.show(value) for value in values[:1]]
        return what + "".join(f"; values of {pattern.predicate} are such as {x}" for x in shown)

    def _cased(self, failure: Failure, pattern: TriplePattern, object_: str) -> str:
        """Return the value that differs from a resource in upper and lower case only."""
        local = local_name(object_)
        cases = {local.upper(), local.lower(), local.capitalize(), local.title()} - {local}
        if not cases:
            return ""
        listed = " ".join(iri(namespace_of(object_) + case) for case in sorted(cases))
        body = failure.body(f"VALUES ?value {{ {listed} }} {_open(pattern)}")
        rows = self.look.prober.rows(["value"], body)
        return self.look.show(rows[0][0]) if rows else ""

    def _namesake(self, missing: str) -> str:
        found = self.look.namesake(missing)
        return f"; {found}" if found else ""


def _open(pattern: TriplePattern) -> str:
    return f"{pattern.subject} {pattern.predicate} ?value ."


def _only_iris(values: Sequence[Term | None]) -> bool:
    return bool(values) and all(isinstance(value, NamedNode | BlankNode) for value in values)
