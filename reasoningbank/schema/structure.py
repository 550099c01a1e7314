"""What a schema says against the statements of a query: places, classes, directions, joins."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

from rdflib.term import Identifier, Literal, URIRef, Variable

from reasoningbank.findings import Finding
from reasoningbank.schema.lookups import write
from reasoningbank.schema.names import Role, nearest_names
from reasoningbank.schema.schema import NamedTerm, Schema
from reasoningbank.schema.statements import Statement, Statements
from reasoningbank.sparql import STANDARD_PREFIXES
from reasoningbank.sparql.terms import written

#: Vocabularies that describe endpoints: they are not in a schema, and statistics omit them.
DESCRIBING = (STANDARD_PREFIXES["void"], STANDARD_PREFIXES["sd"])
_RDFS = STANDARD_PREFIXES["rdfs"]
#: Their domains and ranges say nothing: anything can be a class or a restriction.
_GENERAL = (
    STANDARD_PREFIXES["rdf"],
    STANDARD_PREFIXES["owl"],
    *(_RDFS + name for name in ("subClassOf", "subPropertyOf", "domain", "range")),
)
#: One name for all datatypes, since a text may be of several.
_TEXT = _RDFS + "Literal"
#: Variables of a part that are named, and more statements than are compared with one another.
_SHOWN, _MOST = 2, 100


@dataclass(frozen=True)
class Structure:
    """The statements of a query beside a schema."""

    query: Statements
    schema: Schema
    namespaces: Mapping[str, str]

    def short(self, name: str) -> str:
        return written(name, self.namespaces)

    def show(self, term: Identifier) -> str:
        """Return a term as its author wrote it."""
        if isinstance(term, Variable):
            return f"?{str(term).partition('~')[0]}"
        return self.short(str(term)) if isinstance(term, URIRef) else term.n3()

    def misplaced(self, one: Statement) -> Finding | None:
        """Return what is wrong with the SERVICE or GRAPH of one statement."""
        role: Role = "class" if one.is_type else "property"
        term = one.object if one.is_type else one.predicate
        name = str(term)
        if not isinstance(term, URIRef) or name.startswith(DESCRIBING):
            return None
        schema = self._asked(one)
        # Only if it is known which names the data have.
        if schema is None or not any(known.in_data for known in terms_of(schema, role).values()):
            return None
        if schema is not self.schema and not _has(schema, role, name):
            return self._not_there(role, name, schema, str(one.service))
        return self._graph(one, name, schema) if role == "property" else None

    def _asked(self, one: Statement) -> Schema | None:
        """Return the schema of the endpoint that answers a statement; None if unknown."""
        if one.service is None:
            return self.schema
        if not isinstance(one.service, URIRef):
            return None
        address = str(one.service)
        return self.schema if self.schema.is_at(address) else self.schema.service(address)

    def _not_there(self, role: Role, name: str, schema: Schema, address: str) -> Finding:
        fields: dict[str, Any] = {"name": self.short(name), "iri": name, "role": role}
        fields["service"] = address
        code, what = "wrong-service", f"{self.short(name)} does not exist inside SERVICE"
        others = (o for o, there in self.schema.services.items() if _has(there, role, name))
        if _has(self.schema, role, name):
            hint = "put its pattern outside SERVICE; variables bound inside can be used there"
        elif other := next(others, ""):
            hint = f"put its pattern inside SERVICE <{other}> {{ … }}"
            fields["instead"] = other
        else:
            near = nearest_names(name, schema, role=role)
            offered = [self.short(term.iri) for term in near]
            hint = "use only names that are known there"
            hint = f"try {', or '.join(offered)}" if offered else hint
            fields["replacements"] = offered
            code, what = f"unknown-{role}", f"there is no {role} {self.short(name)} inside SERVICE"
        return Finding(code, f"{what} <{address}>", hint=hint, fields=fields)

    def _graph(self, one: Statement, name: str, schema: Schema) -> Finding | None:
        homes, short = schema.graphs_of(name), self.short(name)
        if not homes:
            return None
        fields = {"name": short, "iri": name, "graph": homes[0]}
        inside = f"GRAPH <{homes[0]}> {{ … }}"
        if isinstance(one.graph, URIRef):
            named = [str(one.graph)]
        elif one.graph is None and one.service is None and self.query.dataset:
            named = list(self.query.dataset)
        elif one.graph is None and not schema.union:
            what = f"{short} is only found inside its named graph"
            hint = f"write {inside} around its pattern"
            return Finding("missing-graph", what, hint=hint, fields=fields)
        else:
            return None
        if any(graph in homes for graph in named):
            return None
        fields["named"] = named[0]
        if any(graph in schema.graphs for graph in named):
            what = f"the graph <{named[0]}> has no {short}"
            hint = f"put its pattern inside {inside}{' or leave GRAPH out' if schema.union else ''}"
            return Finding("wrong-graph", what, hint=hint, fields=fields)
        close = difflib.get_close_matches(named[0], schema.graphs, n=1, cutoff=0.6)
        hint = f"did you mean GRAPH <{close[0]}>?" if close else f"use GRAPH <{homes[0]}>"
        fields["graph"] = close[0] if close else homes[0]
        what = f"there is no graph <{named[0]}>"
        return Finding("unknown-graph", what, hint=hint, fields=fields)

    def contradictions(self, statements: Sequence[Statement]) -> Iterator[Finding]:
        """Yield statements that need another class of a variable than others do."""
        claims = [c for one in statements[:_MOST] if (c := self._claim(one)) is not None]
        while True:
            against = [[o for o in claims if self._contradicts(claims, c, o)] for c in claims]

            def blame(number: int, against: list[list[_Claim]] = against) -> tuple[int, bool, int]:
                claim = claims[number]
                if claim.statement.is_type:
                    return 0, False, -number
                return len(against[number]), self._fits_turned(claim, claims), -number

            blamed = max((n for n, others in enumerate(against) if others), key=blame, default=None)
            if blamed is None:
                return
            yield self._contradiction(claims[blamed], claims, against[blamed][0])
            del claims[blamed]

    def _claim(self, one: Statement) -> _Claim | None:
        name = str(one.predicate)
        if one.skippable or not isinstance(one.predicate, URIRef):
            return None
        if one.is_type:
            typed = isinstance(one.object, URIRef) and one.service is None
            return _Claim(one, frozenset((str(one.object),)), frozenset()) if typed else None
        # A federated endpoint may use a property otherwise than the schema says.
        foreign = one.service is not None and _has(self.schema, "property", name)
        if name.startswith(_GENERAL) or foreign:
            return None
        # No schema says all that a general property such as rdfs:seeAlso leads to; counts say
        # what has it.
        general = name.startswith(_RDFS)
        ranges = () if general else self.schema.objects_of(name)
        objects = frozenset(_TEXT if is_datatype(of) else of for of in ranges)
        uncounted = general and not self.schema.counts_by_class
        return _Claim(one, frozenset() if uncounted else self.schema.subjects_of(name), objects)

    def _contradicts(self, claims: Sequence[_Claim], one: _Claim, other: _Claim) -> bool:
        # A resource may have two classes, and other ones at another endpoint.
        both_types = one.statement.is_type and other.statement.is_type
        if one is other or both_types or self._clash(one, other) is None:
            return False
        first, second = one.statement.negated, other.statement.negated
        if first == second:
            return True
        # "proteins that are not enzymes" is no contradiction; a reversed pattern in MINUS is one.
        return self._fits_turned(one if len(first) > len(second) else other, claims)

    def _clash(self, one: _Claim, other: _Claim) -> Identifier | None:
        """Return a variable of which two statements need incompatible classes."""
        if not one.statement.meets(other.statement):
            return None
        for (term, classes), (same, others) in product(one.ends(), other.ends()):
            if same == term and not self.schema.compatible(classes, others):
                return term
        return None

    def _fits_turned(self, claim: _Claim, claims: Sequence[_Claim]) -> bool:
        one = claim.statement
        if isinstance(one.object, Literal) or not claim.subject or one.is_type:
            return False
        turned = replace(claim, statement=replace(one, subject=one.object, object=one.subject))
        others = [other for other in claims if other is not claim]
        # What leads to texts alone has no other way; and another statement must ask for it.
        known = dict(end for other in others for end in other.ends())
        return (
            not all(map(is_datatype, self.schema.objects_of(str(one.predicate)) or ("",)))
            and any(term in known for term, _ in turned.ends())
            and not any(self._clash(turned, other) for other in others)
        )

    def _contradiction(self, claim: _Claim, claims: Sequence[_Claim], other: _Claim) -> Finding:
        one = claim.statement
        name = self.short(str(one.predicate))
        subject, object_ = self.show(one.subject), self.show(one.object)
        fields = {"property": name, "pattern": f"{subject} {name} {object_}"}
        if self._fits_turned(claim, claims):
            what, instead = f"{name} leads the other way", f"{object_} {name} {subject}"
            return write("reversed-direction", what, instead, fields)
        because = self.short(str(other.statement.predicate))
        if other.statement.is_type:
            because = f"a {self.show(other.statement.object)}"
        fields["because"] = because
        if self._clash(claim, other) == one.subject:
            is_or_has = "is" if other.statement.is_type else "has"
            what = f"no {name} is known of {subject}, which {is_or_has} {because}"
            code = "wrong-subject"
            of = self._named(claim.subject)
            hint = f"{name} is a property of {of}: take the step that leads there"
        else:
            code, what = "wrong-object", f"{name} does not lead to {object_}, which has or is of "
            what, hint = what + because, f"{name} leads to {self._named(claim.object)}"
        return Finding(code, what, hint=hint, fields=fields)

    def _named(self, classes: frozenset[str]) -> str:
        names = sorted("text" if name == _TEXT else self.short(name) for name in classes)
        return " or ".join(names[:3])

    def disconnected(self) -> Iterator[Finding]:
        """Yield a finding if two parts of the query share no variable, resource or text."""
        for one, other in combinations(self._parts(), 2):
            if not _combined(one, other):
                continue
            names = [self._variables(part) for part in (one, other)]
            shown = " and ".join(", ".join(part) for part in names)
            bridges = [*self._bridges(one, other), *self._bridges(other, one)][:_SHOWN]
            yield Finding(
                "disconnected",
                f"nothing joins {shown}, so each is combined with each",
                hint=f"add {' or '.join(bridges) or 'the pattern that leads there'}",
                fields={"parts": names, "bridges": bridges},
            )
            return

    def _parts(self) -> list[list[Statement]]:
        merged: list[tuple[set[Identifier | str], list[Statement]]] = []
        groups: list[tuple[set[Identifier | str], list[Statement]]]
        groups = [({*together}, []) for together in self.query.related]
        groups += [(_ends(one), [one]) for one in dict.fromkeys(self.query.statements)]
        for ends, statements in groups:
            separate = []
            for group in merged:
                if group[0] & ends:
                    ends, statements = ends | group[0], group[1] + statements
                else:
                    separate.append(group)
            merged = [*separate, (ends, statements)]
        return [statements for _, statements in merged if any(map(_variables, statements))]

    def _variables(self, part: Sequence[Statement]) -> list[str]:
        names = list(dict.fromkeys(self.show(name) for one in part for name in _variables(one)))
        # The inner variables of paths have no name in the query.
        own = [name for name in names if not name.startswith(("?step", "?_"))]
        return (own or names)[:_SHOWN]

    def _bridges(self, one: Sequence[Statement], other: Sequence[Statement]) -> Iterator[str]:
        """Yield the patterns that would lead from one part to the other."""
        starts, ends = self._classes(one), self._classes(other)
        for (start, first), (end, second) in product(starts.items(), ends.items()):
            for name, term in sorted(self.schema.properties.items()):
                there = self.schema.objects_of(name) & second
                leads = bool(set(term.domain) & first) and not all(map(is_datatype, there))
                if leads and not name.startswith(_GENERAL):
                    yield f"{self.show(start)} {self.short(name)} {self.show(end)}"

    def _classes(self, part: Sequence[Statement]) -> dict[Identifier, frozenset[str]]:
        """Return the classes of a part's variables, as far as its properties imply them."""
        found: dict[Identifier, frozenset[str]] = {}
        for one in part:
            name = str(one.predicate)
            claim = _Claim(one, self.schema.subjects_of(name), self.schema.objects_of(name))
            if one.is_type and isinstance(one.object, URIRef):
                claim = _Claim(one, frozenset((str(one.object),)), frozenset())
            for term, classes in claim.ends():
                found[term] = found.get(term, classes) & classes or classes
        return found


@dataclass(frozen=True, eq=False)
class _Claim:
    """The classes of a statement's subject, and the classes and datatypes of its object."""

    statement: Statement
    subject: frozenset[str]
    object: frozenset[str]

    def ends(self) -> Iterator[tuple[Identifier, frozenset[str]]]:
        one = self.statement
        for term, classes in ((one.subject, self.subject), (one.object, self.object)):
            if classes and isinstance(term, Variable):
                yield term, classes


def terms_of(schema: Schema, role: str) -> Mapping[str, NamedTerm]:
    return schema.classes if role == "class" else schema.properties


def _has(schema: Schema, role: str, name: str) -> bool:
    term = terms_of(schema, role).get(name)
    return term is not None and term.in_data


def is_datatype(name: str) -> bool:
    return name.startswith(STANDARD_PREFIXES["xsd"]) or name.endswith(("#Literal", "#langString"))


def _combined(one: Sequence[Statement], other: Sequence[Statement]) -> bool:
    """Return whether rows of two parts are multiplied, with several rows in at least one."""
    first, second = ({statement.alone for statement in part} for part in (one, other))
    if 0 not in first | second and not first & second:
        return False
    return any(a.meets(b) for a in one for b in other)


def _ends(one: Statement) -> set[Identifier | str]:
    """Return what a statement may share with another; a class or a named graph joins nothing."""
    terms: set[Identifier | str] = {one.subject}
    if not one.is_type or isinstance(one.object, Variable):
        terms.add(one.object if isinstance(one.object, (Variable, URIRef)) else str(one.object))
    return terms | {t for t in (one.predicate, one.graph, one.service) if isinstance(t, Variable)}


def _variables(one: Statement) -> list[Identifier]:
    return [term for term in (one.subject, one.object) if isinstance(term, Variable)]
