"""Why a pattern with a constant matches nothing: how the data write the constant."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, cast

from pyoxigraph import BlankNode, Literal, NamedNode

from reasoningbank.findings import Finding
from reasoningbank.schema.lookups import NUMBER, Lookups, read_literal, variants, write
from reasoningbank.schema.names import local_name, namespace_of
from reasoningbank.sparql import Term, full, iri
from reasoningbank.sparql.probing import Failure
from reasoningbank.sparql.probing import as_written as written_text
from reasoningbank.sparql.terms import RDF_TYPE
from reasoningbank.sparql.tree import TriplePattern

#: Values looked at: as examples, for one that holds a text, and for one with a similar name.
_SAMPLE, _SEARCHED, _NAMED = 3, 20, 2_000
#: Similarity of two local names above which one probably means the other.
_SIMILAR = 0.75


@dataclass(frozen=True)
class Constants:
    """Explains a pattern that matches nothing by itself because of a constant in it."""

    look: Lookups
    failure: Failure
    pattern: TriplePattern

    def explain(self) -> Finding | None:
        """Return a finding on the pattern; None if no constant is at fault."""
        subject, predicate, object_ = self.pattern
        text, resource = read_literal(object_), self.look.name(subject)
        if text is None and resource is not None:
            return self._subject(resource)
        fields = {"pattern": str(self.pattern), "predicate": predicate, "value": object_}
        if text is not None:
            return self._literal(text, fields)
        value = self.look.name(object_)
        return None if value is None else self._object(value, fields)

    def text(self) -> Finding | None:
        """Return what to write for a resource where the values of the pattern are literals."""
        predicate, written = self.pattern.predicate, self.pattern.object
        resource, look = self.look.name(written), self.look
        if resource is None or look.name(predicate) == RDF_TYPE:
            return None
        values = self._values(self._open, _SAMPLE)
        if not values or not all(isinstance(value, Literal) for value in values):
            return None
        fields = {"pattern": str(self.pattern), "predicate": predicate, "value": written}
        fields["sample"] = look.show(values[0])
        what = f"nothing has {predicate} {written}: its values are literals"
        meant = look.meant("value", self._open, NamedNode(resource), values[0])
        if meant is None:
            hint = f"such as {fields['sample']}"
            return Finding("resource-for-text", what, hint=hint, fields=fields)
        return write(meant[0], what, f"{predicate} {meant[1]}", fields)

    @property
    def _open(self) -> str:
        return f"{self.pattern.subject} {self.pattern.predicate} ?value ."

    def _values(self, body: str, limit: int = 1) -> list[Term | None]:
        return self.look.column("value", body, limit)

    # -- a text ---------------------------------------------------------------------------

    def _literal(self, text: str, fields: dict[str, Any]) -> Finding:
        subject, predicate, object_ = self.pattern
        look = self.look
        values = self._values(self._open, _SAMPLE)
        forms = variants(text, values)
        given = f"VALUES ?value {{ {' '.join(forms)} }}"
        exact = self._values(f"{given} {self._open}")
        if exact:
            instead = f"{predicate} {look.show(exact[0])}"
            what = f"{predicate} {object_} matches nothing"
            return write("value-form", what, instead, fields)
        what = f"no {predicate} is {object_}"
        if subject[:1] not in "?$":
            what = f"{subject} has no {predicate} {object_}"
        resources = bool(values) and all(isinstance(v, NamedNode | BlankNode) for v in values)
        if resources:
            body = f"{given} {subject} {predicate} ?between . ?between ?link ?value ."
            rows = look.rows(["link", "value"], body)
            if rows:
                link, value = rows[0]
                step = f"{subject} {predicate}/{look.show(link)} {look.show(value)}"
                return write("missing-step", what, written_text(step), fields)
        named = None if " " in text.strip() else self._resource(text, resources, what, fields)
        if named is not None:
            return named
        owner = None if NUMBER.fullmatch(text) else look.there.owner(forms)
        hint = ""
        if owner is not None:
            fields |= owner.fields()
            hint = str(owner)
        elif resources:
            fields["sample"] = look.show(values[0])
            similar = self._similar(text)
            fields["replacements"] = [similar] if similar else []
            offer = f"try {similar}" if similar else f"such as {fields['sample']}"
            hint = f"its values are resources, {offer}"
        elif (near := self._nearest(text)) is not None:
            fields["replacements"] = [look.show(near)]
            hint = f"the nearest is {look.show(near)}"
        elif values:
            fields["sample"] = look.show(values[0])
            hint = f"its values are such as {fields['sample']}"
        return Finding("unknown-value", what, hint=hint, fields=fields)

    def _resource(
        self, text: str, resources: bool, what: str, fields: dict[str, Any]
    ) -> Finding | None:
        """Return that a text, such as an accession, is the local name of a resource."""
        look, schema, place = self.look.there, self.look.schema, ""
        listed = look.resources(text)
        values = f"VALUES ?value {{ {listed} }}"
        if listed and resources and (exact := self._values(f"{values} {self._open}")):
            found, place = exact[0], self.pattern.object
            kind = next(iter(look.column("class", f"{iri(cast(NamedNode, found))} a ?class")), None)
        elif rows := listed and look.rows(["value", "class"], f"{values} ?value a ?class"):
            found, kind = rows[0]
            predicate = self.look.name(self.pattern.predicate) or ""
            term = schema.properties.get(predicate)
            name = getattr(kind, "value", "")
            ranges = term.range if term is not None else ()
            if predicate in schema.properties_of(name) and name not in ranges:
                place = self.pattern.subject if self.pattern.subject[:1] in "?$" else ""
            elif resources and (not ranges or name in ranges):
                place = self.pattern.object
        if not place:
            return None
        resource, place = look.show(found), written_text(place)
        hint = f"write {resource} in place of {place}"
        fields = {**fields, "resource": resource, "place": place}
        if kind is not None:
            fields["class"] = look.show(kind)
            hint = f"{resource} is a {fields['class']}, write that in place of {place}"
        return Finding("text-for-resource", what, hint=hint, fields=fields)

    def _nearest(self, text: str) -> Term | None:
        condition = f"FILTER(CONTAINS(LCASE(STR(?value)), {full(Literal(text.lower()))}))"
        values = self._values(f"{self._open} {condition}", _SEARCHED)
        found = [term for term in values if isinstance(term, Literal)]
        return min(found, key=lambda term: (len(term.value), term.value), default=None)

    def _similar(self, text: str) -> str:
        """Return a value of the pattern whose local name is similar to a text."""
        wanted = text.lower()
        if not any(letter.isalpha() for letter in wanted):
            return ""
        some = f"{{ SELECT ?value {{ {self._open} }} LIMIT {_NAMED} }}"
        values = self.look.column("value", some, 200, distinct=True)

        def similarity(name: str) -> float:
            local = local_name(name).lower()
            if wanted in local and len(wanted) > 2:
                return 1 + len(wanted) / len(local)
            return SequenceMatcher(None, wanted, local).ratio()

        found = sorted({term.value for term in values if isinstance(term, NamedNode)})
        best = max(found, key=similarity, default="")
        return self.look.show(best) if best and similarity(best) >= _SIMILAR else ""

    # -- a resource -----------------------------------------------------------------------

    def _subject(self, resource: str) -> Finding | None:
        subject, predicate, object_ = self.pattern
        look = self.look.there
        rows = look.rows(["p"], f"{iri(resource)} ?p ?o", 200, distinct=True)
        if rows is None:
            return None
        has = [term for (term,) in rows if isinstance(term, NamedNode)]
        if not has:
            return look.missing(subject)
        fields = {"pattern": str(self.pattern), "subject": subject, "predicate": predicate}
        if any(p.value == look.name(predicate) for p in has):
            values = look.column("value", f"{iri(resource)} {predicate} ?value", _SAMPLE)
            shown = [look.show(value) for value in values]
            what = written_text(f"{subject} {predicate} is {', '.join(shown)}, not {object_}")
            return Finding("other-value", what, fields={**fields, "values": shown})
        what = written_text(f"{subject} has no {predicate}")
        body = f"{iri(resource)} ?link ?between . ?between {predicate} {object_} ."
        links = look.column("link", body)
        if links:
            instead = written_text(f"{subject} {look.show(links[0])}/{predicate} {object_}")
            return write("missing-step", what, instead, fields)
        listed = [look.show(p) for p in has if p.value != RDF_TYPE]
        hint = f"it has {', '.join(listed)}"
        return Finding("no-property", what, hint=hint, fields={**fields, "has": listed})

    def _object(self, resource: str, fields: dict[str, Any]) -> Finding:
        predicate, look = self.pattern.predicate, self.look.there
        code, what = "unknown-value", f"nothing has {predicate} {self.pattern.object}"
        if look.name(predicate) == RDF_TYPE:
            classified = look.classified(self.pattern.object, self.pattern.subject)
            if classified is not None:
                return classified
        rows = look.rows(["x", "p"], f"?x ?p {iri(resource)}")
        if rows:
            example, property_ = map(look.show, rows[0])
            hint = f"it is the {property_} of others, such as {example}"
            fields |= {"property": property_, "sample": example}
            return Finding("other-property", what, hint=hint, fields=fields)
        there = look.ask(f"{iri(resource)} ?p ?o") if rows is not None else None
        if there is None:
            return Finding(code, what, fields=fields)
        if not there:
            code, what = "unknown-resource", f"{self.pattern.object} does not exist {look.place}"
            fields["name"] = self.pattern.object
        hint = ""
        similar = self._cased(resource) or self._similar(local_name(resource))
        if similar:
            fields["replacements"] = [similar]
            hint = f"try {predicate} {similar}"
        elif (owner := None if there else look.namesake(resource)) is not None:
            fields |= owner.fields()
            hint = str(owner)
        elif values := self._values(self._open, _SAMPLE):
            fields["sample"] = look.show(values[0])
            hint = f"values of {predicate} are such as {fields['sample']}"
        return Finding(code, what, hint=hint, fields=fields)

    def _cased(self, resource: str) -> str:
        """Return the value that differs from a resource only in upper and lower case."""
        local = local_name(resource)
        cases = {local.upper(), local.lower(), local.capitalize(), local.title()} - {local}
        listed = " ".join(iri(namespace_of(resource) + case) for case in sorted(cases))
        found = self._values(f"VALUES ?value {{ {listed} }} {self._open}") if cases else []
        return self.look.show(found[0]) if found else ""
