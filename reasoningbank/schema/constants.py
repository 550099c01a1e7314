"""Why a pattern with a constant matches nothing: how the data write the constant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from pyoxigraph import BlankNode, Literal, NamedNode

from reasoningbank.findings import Finding
from reasoningbank.schema.lookups import Lookups, Written, read_literal, variants
from reasoningbank.schema.names import local_name, namespace_of
from reasoningbank.schema.schema import Schema
from reasoningbank.sparql import Term, full, iri
from reasoningbank.sparql.probing import Failure
from reasoningbank.sparql.probing import as_written as written_text
from reasoningbank.sparql.terms import RDF_TYPE, absolute
from reasoningbank.sparql.tree import TriplePattern

#: Values looked at: as examples, for one that holds a text, and for one with a similar name.
_SAMPLE, _SEARCHED, _NAMED = 3, 20, 2_000
#: Similarity of two local names above which one probably means the other.
_SIMILAR = 0.75


@dataclass(frozen=True)
class Constants:
    """Explains patterns that match nothing by themselves because of a constant in them."""

    look: Lookups
    schema: Schema
    declared: Mapping[str, str]

    def explain(self, failure: Failure, pattern: TriplePattern) -> Finding | None:
        """Return a finding on the pattern; None if no constant is at fault."""
        literal = read_literal(pattern.object)
        if literal is not None:
            return self._literal(failure, pattern, literal)
        subject = absolute(pattern.subject, self.declared)
        if subject is not None:
            return self._subject(pattern, subject)
        object_ = absolute(pattern.object, self.declared)
        return None if object_ is None else self._object(failure, pattern, object_)

    # -- a text ---------------------------------------------------------------------------

    def _literal(self, failure: Failure, pattern: TriplePattern, literal: Written) -> Finding:
        predicate = pattern.predicate
        fields: dict[str, Any] = {
            "pattern": str(pattern),
            "predicate": predicate,
            "value": pattern.object,
        }
        values = self._values(failure, pattern)
        forms = variants(literal, values)
        body = f"VALUES ?value {{ {' '.join(forms)} }} {_open(pattern)}"
        exact = self.look.prober.rows(["value"], failure.body(body))
        if exact:
            instead = f"{predicate} {self.look.literal(exact[0][0])}"
            what = f"{predicate} {pattern.object} matches nothing"
            return _write("value-form", what, instead, fields)
        what = f"no {predicate} is {pattern.object}"
        if pattern.subject[:1] not in "?$":
            what = f"{pattern.subject} has no {predicate} {pattern.object}"
        resources = _only_iris(values)
        if resources:
            step = self._step_to(failure, pattern, forms)
            if step:
                return _write("missing-step", what, step, fields)
        named = self._resource(pattern, literal, resources, what, fields)
        if named is not None:
            return named
        owner = None if literal.number else self.look.owner(forms)
        if owner is not None:
            fields |= owner.fields()
            return Finding("unknown-value", what, hint=str(owner), fields=fields)
        if resources:
            fields["sample"] = self.look.show(values[0])
            similar = self._similar(failure, pattern, literal.text)
            fields["replacements"] = [similar] if similar else []
            offer = f"try {similar}" if similar else f"such as {fields['sample']}"
            hint = f"its values are resources, {offer}"
            return Finding("unknown-value", what, hint=hint, fields=fields)
        near = self._nearest(failure, pattern, literal.text)
        if near is not None:
            fields["replacements"] = [self.look.literal(near)]
            hint = f"the nearest is {self.look.literal(near)}"
            return Finding("unknown-value", what, hint=hint, fields=fields)
        if values:
            fields["sample"] = self.look.literal(values[0])
            hint = f"its values are such as {fields['sample']}"
            return Finding("unknown-value", what, hint=hint, fields=fields)
        return Finding("unknown-value", what, fields=fields)

    def _values(self, failure: Failure, pattern: TriplePattern) -> list[Term | None]:
        rows = self.look.prober.rows(["value"], failure.body(_open(pattern)), _SAMPLE)
        return [row[0] for row in rows or []]

    def _step_to(self, failure: Failure, pattern: TriplePattern, forms: Sequence[str]) -> str:
        """Return the pattern with the step from its value, a resource, to the text."""
        body = (
            f"VALUES ?value {{ {' '.join(forms)} }} "
            f"{pattern.subject} {pattern.predicate} ?between . ?between ?link ?value ."
        )
        rows = self.look.prober.rows(["link", "value"], failure.body(body))
        if not rows:
            return ""
        link, value = rows[0]
        path = f"{pattern.predicate}/{self.look.show(link)}"
        return written_text(f"{pattern.subject} {path} {self.look.literal(value)}")

    def _resource(
        self,
        pattern: TriplePattern,
        literal: Written,
        resources: bool,
        what: str,
        fields: dict[str, Any],
    ) -> Finding | None:
        """Return that a text, such as an accession, is the local name of a resource."""
        found = None if literal.spaced else self.look.resource(literal.text)
        if found is None or not isinstance(found.kind, NamedNode):
            return None
        predicate = absolute(pattern.predicate, self.declared)
        term = None if predicate is None else self.schema.properties.get(predicate)
        place = ""
        if predicate in self.schema.properties_of(found.kind.value):
            place = pattern.subject if pattern.subject[:1] in "?$" else ""
        elif resources and (term is None or not term.range or found.kind.value in term.range):
            place = pattern.object
        if not place:
            return None
        resource, kind = self.look.show(found.value), self.look.show(found.kind)
        place = written_text(place)
        hint = f"{resource} is a {kind}, write that in place of {place}"
        fields = {**fields, "resource": resource, "class": kind, "place": place}
        return Finding("text-for-resource", what, hint=hint, fields=fields)

    def _nearest(self, failure: Failure, pattern: TriplePattern, text: str) -> Term | None:
        lower = full(Literal(text.lower()))
        condition = f"FILTER(CONTAINS(LCASE(STR(?value)), {lower}))"
        body = failure.body(_open(pattern), condition)
        rows = self.look.prober.rows(["value"], body, _SEARCHED) or []
        found = [term for (term,) in rows if isinstance(term, Literal)]
        return min(found, key=lambda term: (len(term.value), term.value), default=None)

    def _similar(self, failure: Failure, pattern: TriplePattern, text: str) -> str:
        """Return a value of the pattern whose local name is similar to a text."""
        wanted = text.lower()
        if not any(letter.isalpha() for letter in wanted):
            return ""
        some = f"{{ SELECT ?value {{ {failure.body(_open(pattern))} }} LIMIT {_NAMED} }}"
        rows = self.look.prober.rows(["value"], some, 200, distinct=True) or []
        found = {term.value for (term,) in rows if isinstance(term, NamedNode)}

        def similarity(name: str) -> float:
            local = local_name(name).lower()
            if wanted in local and len(wanted) > 2:
                return 1 + len(wanted) / len(local)
            return SequenceMatcher(None, wanted, local).ratio()

        best = max(sorted(found), key=similarity, default="")
        return self.look.show(best) if best and similarity(best) >= _SIMILAR else ""

    # -- a resource -----------------------------------------------------------------------

    def _subject(self, pattern: TriplePattern, subject: str) -> Finding | None:
        rows = self.look.prober.rows(["p"], f"{iri(subject)} ?p ?o", 200, distinct=True)
        if rows is None:
            return None
        has = [row[0] for row in rows if isinstance(row[0], NamedNode)]
        if not has:
            return self.missing(pattern.subject, subject)
        predicate = absolute(pattern.predicate, self.declared)
        fields: dict[str, Any] = {
            "pattern": str(pattern),
            "subject": pattern.subject,
            "predicate": pattern.predicate,
        }
        if any(p.value == predicate for p in has):
            body = f"{iri(subject)} {pattern.predicate} ?value"
            values = self.look.prober.rows(["value"], body, _SAMPLE) or []
            shown = [self.look.show(value) for (value,) in values]
            what = f"{pattern.subject} {pattern.predicate} is {', '.join(shown)}"
            what = written_text(f"{what}, not {pattern.object}")
            return Finding("other-value", what, fields={**fields, "values": shown})
        what = written_text(f"{pattern.subject} has no {pattern.predicate}")
        body = f"{iri(subject)} ?link ?between . ?between {pattern.predicate} {pattern.object} ."
        links = self.look.prober.rows(["link"], body)
        if links:
            path = f"{self.look.show(links[0][0])}/{pattern.predicate}"
            instead = written_text(f"{pattern.subject} {path} {pattern.object}")
            return _write("missing-step", what, instead, fields)
        listed = [self.look.show(p) for p in has if p.value != RDF_TYPE]
        fields["has"] = listed
        return Finding("no-property", what, hint=f"it has {', '.join(listed)}", fields=fields)

    def _object(self, failure: Failure, pattern: TriplePattern, object_: str) -> Finding:
        predicate = pattern.predicate
        what = f"nothing has {predicate} {pattern.object}"
        fields: dict[str, Any] = {
            "pattern": str(pattern),
            "predicate": predicate,
            "value": pattern.object,
        }
        rows = self.look.prober.rows(["x", "p"], f"?x ?p {iri(object_)}")
        if rows:
            example, property_ = (self.look.show(term) for term in rows[0])
            hint = f"it is the {property_} of others, such as {example}"
            fields |= {"property": property_, "sample": example}
            return Finding("other-property", what, hint=hint, fields=fields)
        there = self.look.prober.ask(f"{iri(object_)} ?p ?o") if rows is not None else None
        if there is None:
            return Finding("unknown-value", what, fields=fields)
        code = "unknown-value"
        if there is False:
            code, what = "unknown-resource", f"{pattern.object} does not exist here"
            fields["name"] = pattern.object
        similar = self._cased(failure, pattern, object_)
        similar = similar or self._similar(failure, pattern, local_name(object_))
        if similar:
            fields["replacements"] = [similar]
            return Finding(code, what, hint=f"try {predicate} {similar}", fields=fields)
        owner = None if there else self.look.namesake(object_)
        if owner is not None:
            return Finding(code, what, hint=str(owner), fields={**fields, **owner.fields()})
        values = self._values(failure, pattern)
        hint = ""
        if values:
            fields["sample"] = self.look.show(values[0])
            hint = f"values of {predicate} are such as {fields['sample']}"
        return Finding(code, what, hint=hint, fields=fields)

    def _cased(self, failure: Failure, pattern: TriplePattern, object_: str) -> str:
        """Return the value that differs from a resource only in upper and lower case."""
        local = local_name(object_)
        cases = {local.upper(), local.lower(), local.capitalize(), local.title()} - {local}
        if not cases:
            return ""
        listed = " ".join(iri(namespace_of(object_) + case) for case in sorted(cases))
        body = failure.body(f"VALUES ?value {{ {listed} }} {_open(pattern)}")
        rows = self.look.prober.rows(["value"], body)
        return self.look.show(rows[0][0]) if rows else ""

    def missing(self, written: str, name: str | None) -> Finding:
        """Return that a resource does not exist, and what has its local name as a text."""
        owner = None if name is None else self.look.namesake(name)
        return Finding(
            "unknown-resource",
            f"{written} does not exist here",
            hint=str(owner or ""),
            fields={"name": written, **(owner.fields() if owner is not None else {})},
        )


def _write(code: str, what: str, instead: str, fields: dict[str, Any]) -> Finding:
    fields = {**fields, "instead": instead}
    return Finding(code, what, hint=f"write {instead}", fields=fields)


def _open(pattern: TriplePattern) -> str:
    return f"{pattern.subject} {pattern.predicate} ?value ."


def _only_iris(values: Sequence[Term | None]) -> bool:
    return bool(values) and all(isinstance(value, NamedNode | BlankNode) for value in values)
