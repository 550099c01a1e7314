"""The names of a query that do not exist, and what to write instead."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyoxigraph import NamedNode

from reasoningbank.findings import Finding
from reasoningbank.schema.lookups import Lookups
from reasoningbank.schema.names import (
    UsedName,
    local_name,
    namespace_of,
    nearest_names,
    shown,
    spelling,
    used_names,
    words,
    wrong_prefixes,
)
from reasoningbank.schema.schema import NamedTerm, Schema
from reasoningbank.schema.structure import DESCRIBING
from reasoningbank.sparql import PreparedQuery, iri
from reasoningbank.sparql.probing import Prober
from reasoningbank.sparql.terms import RDF_TYPE, absolute
from reasoningbank.sparql.tree import QueryTree, outline

#: Properties of a class that are listed where no name is near.
_LISTED = 6


@dataclass(frozen=True)
class NameFindings:
    """What is wrong with a query's names."""

    findings: tuple[Finding, ...] = ()
    unknown: frozenset[str] = frozenset()


def find_unknown(
    prepared: PreparedQuery,
    query: QueryTree,
    schema: Schema,
    prober: Prober,
    namespaces: Mapping[str, str],
    *,
    look_up: bool = False,
    skip: Collection[str] = (),
) -> NameFindings:
    """Find the classes and properties of a query that do not exist."""
    wrong = wrong_prefixes(prepared, namespaces)
    findings = [
        Finding(
            "wrong-prefix",
            f"PREFIX {p.prefix}: <{p.declared}> is wrong here, {p.prefix}: is <{p.known}>",
            hint="leave that line out",
            fields={"prefix": p.prefix, "declared": p.declared, "known": p.known},
        )
        for p in wrong
    ]
    bases = {p.declared: p.known for p in wrong}
    used = [u for u in used_names(query) if u.role != "resource" and u.iri not in skip]
    doubtful = [u for u in used if not _known(u, schema) and not u.iri.startswith(DESCRIBING)]
    unknown = [u for u in _checked(doubtful, schema, prober) if u.iri != RDF_TYPE]
    look = Lookups.of(prober, schema, namespaces)
    resources = _resources(unknown, schema, look) if look_up else {}
    classes = _classes(used, schema, bases)
    if look_up:
        classes |= _classes_of_resources(unknown, query, look)
    judge = _Judge(schema, namespaces, classes, resources)
    by_iri: dict[str, Finding] = {}
    for name in unknown:
        meant = _rebased(name.iri, bases)
        if meant == name.iri or schema.term(meant) is None:
            by_iri[name.iri] = judge.finding(name, meant)
    return NameFindings((*findings, *by_iri.values()), frozenset(u.iri for u in unknown))


def _classes(
    used: Sequence[UsedName], schema: Schema, bases: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    """Return the classes that the query says its subjects have."""
    found: dict[str, tuple[str, ...]] = {}
    for name in used:
        if name.role == "class":
            near = _rebased(name.iri, bases)
            if near in schema.classes:
                subject = name.pattern.subject
                found[subject] = (*found.get(subject, ()), near)
    return found


def _classes_of_resources(
    unknown: Sequence[UsedName], query: QueryTree, look: Lookups
) -> dict[str, tuple[str, ...]]:
    """Look up the classes of the resources that an unknown property is asked of."""
    declared = outline(query.text).declared
    asked = {
        name: u.pattern.subject
        for u in unknown
        if u.role == "property" and (name := absolute(u.pattern.subject, declared))
    }
    return {
        asked[x]: (kind.value,)
        for x, kind in _kinds(asked, look).items()
        if isinstance(kind, NamedNode)
    }


def _kinds(names: Mapping[str, object] | Sequence[str], look: Lookups) -> dict[str, Any]:
    """Look up a class of each of some resources."""
    if not names:
        return {}
    values = " ".join(iri(name) for name in names)
    rows = look.prober.rows(["x", "class"], f"VALUES ?x {{ {values} }} ?x a ?class", 5) or []
    return {x.value: kind for x, kind in rows if isinstance(x, NamedNode)}


def _known(name: UsedName, schema: Schema) -> bool:
    terms = schema.classes if name.role == "class" else schema.properties
    term = terms.get(name.iri)
    return term is not None and (term.in_data or not schema.complete)


def _checked(doubtful: Sequence[UsedName], schema: Schema, prober: Prober) -> list[UsedName]:
    """Return the names that are not in the data either."""
    if schema.complete or not doubtful:
        return list(doubtful)
    bodies = [
        f"?s a {iri(u.iri)}" if u.role == "class" else f"?s {iri(u.iri)} ?o" for u in doubtful
    ]
    found = prober.which(bodies)
    if found is None:
        return []
    return [name for name, there in zip(doubtful, found, strict=True) if not there]


def _resources(unknown: Sequence[UsedName], schema: Schema, look: Lookups) -> dict[str, Finding]:
    """Return findings on unknown classes that are resources, or texts of resources."""
    homes = {namespace_of(known) for known in schema.classes}
    asked = [u for u in unknown if u.role == "class" and namespace_of(u.iri) not in homes]
    kinds = _kinds([name.iri for name in asked], look)
    found: dict[str, Finding] = {}
    for name in asked:
        subject = name.pattern.subject
        fields = {"name": name.written, "iri": name.iri, "role": "class", "subject": subject}
        if name.iri in kinds:
            kind = look.show(kinds[name.iri])
            found[name.iri] = Finding(
                "resource-as-class",
                f"{name.written} is not a class but a {kind}",
                hint=f"write it in place of {subject}",
                fields={**fields, "class": kind},
            )
        elif (owner := look.namesake(name.iri)) is not None:
            found[name.iri] = Finding(
                "unknown-class",
                f"there is no class {name.written}",
                hint=str(owner),
                fields={**fields, "replacements": [], **owner.fields()},
            )
    return found


def _rebased(name: str, bases: Mapping[str, str]) -> str:
    for declared, known in bases.items():
        if name.startswith(declared):
            return known + name[len(declared) :]
    return name


@dataclass(frozen=True)
class _Judge:
    """Says what is wrong with one unknown name."""

    schema: Schema
    namespaces: Mapping[str, str]
    classes: Mapping[str, tuple[str, ...]]
    resources: Mapping[str, Finding]

    def finding(self, name: UsedName, meant: str) -> Finding:
        if name.iri in self.resources:
            return self.resources[name.iri]
        role, written, subject = name.role, name.written, name.pattern.subject
        schema = self.schema
        fields = {"name": written, "iri": name.iri, "role": role, "subject": subject}
        of_role = schema.classes if role == "class" else schema.properties
        namesake = next((known for known in of_role if spelling(name.iri, known)), "")
        if namesake and schema.term(name.iri) is not None and name.iri not in of_role:
            instead = self._shown(namesake)
            what, hint = f"{written} is not a {role}", f"write {instead}"
            return Finding("wrong-role", what, hint=hint, fields={**fields, "instead": instead})
        if role == "class" and name.iri in schema.properties:
            what, instead = "a property, not a class", f"{subject} {written} ?value"
            return self._wrong_role(written, what, instead, fields)
        if role == "property" and name.iri in schema.classes:
            leading = schema.leading_to(name.iri)
            other = f", or a property such as {self._shown(leading)}" if leading else ""
            what, instead = "a class, not a property", f"{subject} a {written}"
            return self._wrong_role(written, what, instead, fields, other)
        for address, service in schema.services.items():
            if name.iri in (service.classes if role == "class" else service.properties):
                what = f"{written} does not exist at {schema.name or 'the endpoint'}"
                hint = f"put its pattern inside SERVICE <{address}> {{ … }}"
                fields["service"] = address
                return Finding("missing-service", what, hint=hint, fields=fields)
        declared = schema.term(name.iri)
        if declared is not None:
            return self._without_data(name, declared, fields)
        return self._unknown(name, meant, fields)

    def _wrong_role(
        self, written: str, what: str, instead: str, fields: dict[str, Any], other: str = ""
    ) -> Finding:
        fields = {**fields, "instead": instead}
        return Finding("wrong-role", f"{written} is {what}", "", f"write {instead}{other}", fields)

    def _unknown(self, name: UsedName, meant: str, fields: dict[str, Any]) -> Finding:
        role, kinds = name.role, self.classes.get(name.pattern.subject, ())
        near: dict[str, str] = {}
        for term in nearest_names(meant, self.schema, role=role, classes=kinds):
            usable = self._usable(term, role, kinds)
            if usable is not None:
                text = self._reached(usable, kinds, near)
                if usable is not term:
                    near[text] = near[text] or f"to a {self._shown(term.iri)}"
                elif role == "class" and term.iri not in self.schema.classes:
                    near[text] = "a property"
        counting = role == "property" and "count" in words(local_name(name.iri))
        has = [p for kind in kinds[:1] for p in self.schema.properties_of(kind) if p != RDF_TYPE]
        if counting:
            near = {}
            hint = "count with (COUNT(?x) AS ?n) and GROUP BY"
            fields = {**fields, "counting": True}
        elif near:
            offers = (f"{text} ({note})" if note else text for text, note in near.items())
            hint = f"try {', or '.join(offers)}"
        elif role == "property" and has:
            listed = [self._shown(p) for p in has[:_LISTED]]
            fields = {**fields, "class": self._shown(kinds[0]), "has": listed}
            hint = f"a {fields['class']} has {', '.join(listed)}, …"
        else:
            hint = f"sparql_{'classes' if role == 'class' else 'properties'}() lists the existing"
            hint += " ones"
        fields = {**fields, "replacements": list(near), "notes": near}
        return Finding(f"unknown-{role}", f"there is no {role} {name.written}", "", hint, fields)

    def _usable(self, term: NamedTerm, role: str, kinds: Sequence[str]) -> NamedTerm | None:
        """Return a near name; for a class used as a property, the property that leads there."""
        if role == "class" or term.iri in self.schema.properties:
            return term
        return self.schema.properties.get(self.schema.leading_to(term.iri, kinds))

    def _reached(self, term: NamedTerm, kinds: Sequence[str], near: dict[str, str]) -> str:
        """Add a near name, with the step that leads there from its subject; return its text."""
        text, note = self._shown(term.iri), ""
        for kind in kinds if term.iri in self.schema.properties else ():
            has = self.schema.properties_of(kind)
            if has and term.iri not in has:
                step = self.schema.link(kind, term.iri)
                holders = ", ".join(self._shown(c) for c in term.domain[:2])
                if step:
                    text = f"{self._shown(step)}/{text}"
                elif holders:
                    note = f"of {holders}"
                break
        near.setdefault(text, note)
        return text

    def _without_data(self, name: UsedName, declared: NamedTerm, fields: dict[str, Any]) -> Finding:
        below = self.schema.below(declared.iri)
        if name.role == "class" and below:
            listed = [self._shown(lower) for lower in below[:4]]
            return Finding(
                "only-subclasses",
                f"nothing is a {name.written} itself, only of its subclasses",
                hint=f"write one of {', '.join(listed)}",
                fields={**fields, "subclasses": listed},
            )
        what = f"{name.written} is in the schema, but nothing in the data has it"
        return Finding("not-in-data", what, fields=fields)

    def _shown(self, name: str) -> str:
        return shown(name, self.namespaces)
