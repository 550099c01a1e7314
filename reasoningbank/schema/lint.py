"""`lint`: what is wrong with a query, compared with the schema of its endpoint."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from pyoxigraph import NamedNode

from reasoningbank.errors import QueryError
from reasoningbank.findings import Finding
from reasoningbank.schema.lookups import Lookups, write
from reasoningbank.schema.names import (
    UsedName,
    local_name,
    namespace_of,
    nearest_names,
    spelling,
    used_names,
    words,
    wrong_prefixes,
)
from reasoningbank.schema.schema import NamedTerm, Schema
from reasoningbank.schema.statements import read_statements
from reasoningbank.schema.structure import DESCRIBING, Structure, terms_of
from reasoningbank.sparql import PreparedQuery, Result, iri
from reasoningbank.sparql.probing import Prober
from reasoningbank.sparql.terms import RDF_TYPE
from reasoningbank.sparql.tree import QueryTree, outline, read_query

#: Properties of a class that are listed where no name is near.
_LISTED = 6


def find_unknown(
    prepared: PreparedQuery,
    query: QueryTree,
    look: Lookups,
    *,
    look_up: bool = False,
    skip: Collection[str] = (),
) -> tuple[frozenset[str], list[Finding]]:
    """Return the classes and properties of a query that do not exist, and findings on them."""
    schema = look.schema
    findings = wrong_prefixes(prepared.original or prepared.text, look.namespaces)

    def meant(name: str) -> str:
        spaces = ((one.fields["declared"], one.fields["known"]) for one in findings)
        return next((to + name[len(of) :] for of, to in spaces if name.startswith(of)), name)

    used = [u for u in used_names(query) if u.role != "resource" and u.iri not in skip]
    unknown = [u for u in _missing(used, look) if u.iri != RDF_TYPE]
    resources = _resources(unknown, look) if look_up else {}
    # The classes that the query says its subjects have.
    classes: dict[str, tuple[str, ...]] = {}
    for name in used:
        if name.role == "class" and meant(name.iri) in schema.classes:
            subject = name.pattern.subject
            classes[subject] = (*classes.get(subject, ()), meant(name.iri))
    if look_up:
        subjects = [u.pattern.subject for u in unknown if u.role == "property"]
        asked = {resource: subject for subject in subjects if (resource := look.name(subject))}
        for resource, kind in look.kinds(asked).items():
            if isinstance(kind, NamedNode):
                classes[asked[resource]] = (kind.value,)
    judge = _Judge(look, classes)
    by_iri: dict[str, Finding] = {}
    for name in unknown:
        near = meant(name.iri)
        if near == name.iri or schema.term(near) is None:
            by_iri[name.iri] = resources.get(name.iri) or judge.finding(name, near)
    return frozenset(u.iri for u in unknown), [*findings, *by_iri.values()]


def _missing(used: Sequence[UsedName], look: Lookups) -> list[UsedName]:
    """Return the names that are not in the schema, and not in the data either."""
    schema = look.schema
    doubtful = []
    for name in used:
        term = terms_of(schema, name.role).get(name.iri)
        known = term is not None and (term.in_data or not schema.complete)
        if not known and not name.iri.startswith(DESCRIBING):
            doubtful.append(name)
    if schema.complete or not doubtful:
        return doubtful
    found = look.prober.which(
        [f"?s a {iri(u.iri)}" if u.role == "class" else f"?s {iri(u.iri)} ?o" for u in doubtful]
    )
    if found is None:
        return []
    return [name for name, there in zip(doubtful, found, strict=True) if not there]


def _resources(unknown: Sequence[UsedName], look: Lookups) -> dict[str, Finding]:
    """Return findings on unknown classes that are resources, or texts of resources."""
    homes = {namespace_of(known) for known in look.schema.classes}
    asked = [u for u in unknown if u.role == "class" and namespace_of(u.iri) not in homes]
    kinds = look.kinds([name.iri for name in asked])
    found: dict[str, Finding] = {}
    for name in asked:
        fields = name.fields()
        if (classified := look.classified(name.written, name.pattern.subject)) is not None:
            found[name.iri] = classified
        elif name.iri in kinds:
            kind = look.show(kinds[name.iri])
            what = f"{name.written} is not a class but a {kind}"
            hint = f"write it in place of {name.pattern.subject}"
            fields["class"] = kind
            found[name.iri] = Finding("resource-as-class", what, hint=hint, fields=fields)
        elif (owner := look.namesake(name.iri)) is not None:
            what = f"there is no class {name.written}"
            fields |= {"replacements": [], **owner.fields()}
            found[name.iri] = Finding("unknown-class", what, hint=str(owner), fields=fields)
    return found


@dataclass(frozen=True)
class _Judge:
    look: Lookups
    classes: Mapping[str, tuple[str, ...]]

    def finding(self, name: UsedName, meant: str) -> Finding:
        role, written, schema = name.role, name.written, self.look.schema
        fields, declared = name.fields(), schema.term(name.iri)
        if name.iri in terms_of(schema, "property" if role == "class" else "class"):
            return self._wrong_role(name, fields)
        for address, service in schema.services.items():
            if name.iri in terms_of(service, role):
                what = f"{written} does not exist at {schema.name or 'the endpoint'}"
                hint = f"put its pattern inside SERVICE <{address}> {{ … }}"
                fields["service"] = address
                return Finding("missing-service", what, hint=hint, fields=fields)
        if declared is None:
            return self._unknown(name, meant, fields)
        below = schema.below(declared.iri) if role == "class" else ()
        if below:
            listed = [self.look.show(lower) for lower in below[:4]]
            what = f"nothing is a {written} itself, only of its subclasses"
            hint = f"write one of {', '.join(listed)}"
            fields["subclasses"] = listed
            return Finding("only-subclasses", what, hint=hint, fields=fields)
        what = f"{written} is in the schema, but nothing in the data has it"
        return Finding("not-in-data", what, fields=fields)

    def _wrong_role(self, name: UsedName, fields: dict[str, Any]) -> Finding:
        role, written, subject = name.role, name.written, name.pattern.subject
        known = terms_of(self.look.schema, role)
        namesake = next((other for other in known if spelling(name.iri, other)), "")
        if namesake and name.iri not in known:
            what = f"{written} is not a {role}"
            return write("wrong-role", what, self.look.show(namesake), fields)
        if role == "class":
            what = f"{written} is a property, not a class"
            return write("wrong-role", what, f"{subject} {written} ?value", fields)
        what, instead = f"{written} is a class, not a property", f"{subject} a {written}"
        leading = self.look.schema.leading_to(name.iri)
        other = f", or a property such as {self.look.show(leading)}" if leading else ""
        fields["instead"] = instead
        return Finding("wrong-role", what, hint=f"write {instead}{other}", fields=fields)

    def _unknown(self, name: UsedName, meant: str, fields: dict[str, Any]) -> Finding:
        role, kinds = name.role, self.classes.get(name.pattern.subject, ())
        schema = self.look.schema
        near: dict[str, str] = {}
        for term in nearest_names(meant, schema, role=role, classes=kinds):
            usable: NamedTerm | None = term
            if role == "property" and term.iri not in schema.properties:
                # For a class used as a property, the property that leads there.
                leading = schema.leading_to(term.iri, kinds)
                usable = schema.properties.get(leading)
            if usable is not None:
                text = self._reached(usable, kinds, near)
                if usable is not term:
                    near[text] = near[text] or f"to a {self.look.show(term.iri)}"
                elif role == "class" and term.iri not in schema.classes:
                    near[text] = "a property"
        has = [p for kind in kinds[:1] for p in schema.properties_of(kind) if p != RDF_TYPE]
        if role == "property" and "count" in words(local_name(name.iri)):
            near = {}
            hint = "count with (COUNT(?x) AS ?n) and GROUP BY"
            fields["counting"] = True
        elif near:
            offers = (f"{text} ({note})" if note else text for text, note in near.items())
            hint = f"try {', or '.join(offers)}"
        elif role == "property" and has:
            listed = [self.look.show(p) for p in has[:_LISTED]]
            fields |= {"class": self.look.show(kinds[0]), "has": listed}
            hint = f"a {fields['class']} has {', '.join(listed)}, …"
        else:
            plural = "classes" if role == "class" else "properties"
            hint = f"sparql_{plural}() lists the existing ones"
        fields |= {"replacements": list(near), "notes": near}
        what = f"there is no {role} {name.written}"
        return Finding(f"unknown-{role}", what, hint=hint, fields=fields)

    def _reached(self, term: NamedTerm, kinds: Sequence[str], near: dict[str, str]) -> str:
        """Add a near name, with the step that leads there from its subject; return its text."""
        text, note = self.look.show(term.iri), ""
        for kind in kinds if term.iri in self.look.schema.properties else ():
            has = self.look.schema.properties_of(kind)
            if has and term.iri not in has:
                step = self.look.schema.link(kind, term.iri)
                if step:
                    text = f"{self.look.show(step)}/{text}"
                elif term.domain:
                    note = f"of {', '.join(self.look.show(c) for c in term.domain[:2])}"
                break
        near.setdefault(text, note)
        return text


# -- the whole query ---------------------------------------------------------------------------

#: Findings that an agent is shown of one query, and characters of one line.
MOST_FINDINGS = 3
MOST_CHARS = 200
_OF_NAMES = frozenset(("unknown-class", "unknown-property", "wrong-role", "not-in-data",
                       "only-subclasses", "resource-as-class"))  # fmt: skip


def lint(
    prepared: PreparedQuery,
    schema: Schema,
    run: Callable[[str], Result] | None = None,
    *,
    namespaces: Mapping[str, str],
    skip: Collection[str] = (),
) -> list[Finding]:
    """Return what is wrong with a query, compared with a schema; the query may have rows.

    Found are columns that nothing binds, names that do not exist, names in the wrong SERVICE or
    GRAPH, wrong directions, properties of another class, and disconnected patterns.

    Args:
        prepared: The query.
        schema: The endpoint's schema.
        run: Sends a query to the endpoint; one request checks what an incomplete schema lacks.
            Without it, such names count as known.
        namespaces: Prefix → namespace, for the names in the findings.
        skip: IRIs that are not checked.
    """
    findings = unbound_columns(prepared)
    try:
        tree, query = read_query(prepared.text), read_statements(prepared.text)
    except QueryError:
        return findings
    prober = Prober(tree, run, most=1)
    look = Lookups(prober, schema, namespaces, tree.declared)
    unknown, found = find_unknown(prepared, tree, look, skip=skip)
    findings += found
    structure = Structure(query, schema, namespaces)
    wrong = {*skip, *(name for name in unknown if schema.term(name) is None)}
    sound = []
    for one in query.statements:
        if str(one.predicate) in wrong or (str(one.object) in wrong and one.is_type):
            continue
        misplaced = structure.misplaced(one)
        if misplaced is None:
            sound.append(one)
        else:
            findings.append(misplaced)
    findings += structure.contradictions(sound)
    findings += structure.disconnected()
    return in_own_words(findings, prepared)


def unbound_columns(prepared: PreparedQuery) -> list[Finding]:
    """Return a finding for each column that is always empty."""
    shape = outline(prepared.text)
    opening = next((at for at, t in enumerate(shape.body) if t.text == "{"), len(shape.body))
    head, where = shape.body[:opening], shape.body[opening:]
    given = list(dict.fromkeys(t.text[1:] for t in where if t.kind == "variable"))
    named = {after.text[1:] for before, after in pairwise(head) if before.is_word("AS")}
    used = {t.text[1:] for t in head if t.kind == "variable"}
    rest = [f"?{name}" for name in given if name not in used]
    return [
        Finding(
            "unbound-column",
            f"?{name} is selected, but no pattern binds it",
            hint=f"not selected are {', '.join(rest)}" if rest else "",
            fields={"column": name, "unselected": rest},
        )
        for name in shape.projected
        if name not in given and name not in named
    ]


def in_own_words(findings: Iterable[Finding], prepared: PreparedQuery) -> list[Finding]:
    """Return the findings with the author's text where the harness rewrote the query."""
    own = {
        edit.text: prepared.original[edit.start : edit.end]
        for edit in prepared.edits
        if edit.text.startswith("<") and edit.end > edit.start
    }

    def text(value: Any) -> Any:
        if isinstance(value, str):
            for sent, written in own.items():
                value = value.replace(sent, written)
        return value

    def restored(one: Finding) -> Finding:
        fields = {name: text(value) for name, value in one.fields.items()}
        return replace(one, what=text(one.what), hint=text(one.hint), fields=fields)

    return list(dict.fromkeys(map(restored, findings) if own else findings))


def as_lines(findings: Sequence[Finding], most: int = MOST_FINDINGS) -> tuple[str, ...]:
    """Return findings as short lines for an agent; short ones on names share a line."""
    lines: list[str] = []
    before = ""
    for finding in findings:
        text = textwrap.shorten(str(finding), MOST_CHARS, placeholder=" …")
        of_names = finding.code in _OF_NAMES and before in _OF_NAMES
        if of_names and len(lines[-1]) + len(text) + 2 <= MOST_CHARS:
            lines[-1] += f"; {text}"
        else:
            lines.append(text)
        before = finding.code
    return tuple(lines[:most])
