"""What is wrong with a query: compared with a schema, and where it returned nothing.

`lint` compares a query with the schema of its endpoint. `explain_empty` reports the names that do
not exist, and the first part of the query that leaves no rows: it sends a bounded number of small
queries and never raises for an endpoint's trouble. `explain_error` is for what cannot be sent.
"""

from __future__ import annotations

import re
import textwrap
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from pyoxigraph import Literal, NamedNode
from rdflib.plugins.sparql.parserutils import CompValue

from reasoningbank.errors import EndpointError, QueryError, UsageError
from reasoningbank.findings import Finding
from reasoningbank.schema.causes import explain_failure, explain_rest
from reasoningbank.schema.lookups import Lookups, Prober, write
from reasoningbank.schema.names import (
    UsedName,
    local_name,
    namespace_of,
    namespaces_in,
    nearest_names,
    nearest_prefixes,
    spelling,
    used_names,
    words,
    wrong_prefixes,
)
from reasoningbank.schema.probing import find_failures
from reasoningbank.schema.sampling import side_client
from reasoningbank.schema.schema import NamedTerm, Schema
from reasoningbank.schema.statements import read_statements
from reasoningbank.schema.structure import DESCRIBING, Structure, is_datatype, terms_of
from reasoningbank.sparql import (
    BooleanResult,
    EndpointConfig,
    GraphResult,
    PreparedQuery,
    Result,
    SPARQLClient,
    iri,
)
from reasoningbank.sparql.syntax import MOST_CHARS as LONGEST_QUERY
from reasoningbank.sparql.terms import RDF_TYPE, absolute, full, written
from reasoningbank.sparql.tokens import Edit, apply_edits, prologue, tokenize, tokens_within
from reasoningbank.sparql.tree import outline, read_query

#: Properties of a class that are listed where no name is near.
_LISTED = 6


def _unknown_names(
    prepared: PreparedQuery, look: Lookups, *, look_up: bool = False, skip: Collection[str] = ()
) -> tuple[frozenset[str], list[Finding]]:
    """Return the classes and properties of a query that do not exist, and findings on them."""
    schema = look.schema
    findings = wrong_prefixes(prepared.original or prepared.text, look.namespaces)

    def meant(name: str) -> str:
        spaces = ((one.fields["declared"], one.fields["known"]) for one in findings)
        return next((to + name[len(of) :] for of, to in spaces if name.startswith(of)), name)

    used = [u for u in used_names(look.query) if u.role != "resource" and u.iri not in skip]
    unknown = [u for u in _missing(used, look) if u.iri != RDF_TYPE]
    resources = _resources(unknown, look) if look_up else {}
    # The classes that the query says its subjects have.
    classes: dict[str, tuple[str, ...]] = defaultdict(tuple)
    for name in used:
        if name.role == "class" and meant(name.iri) in schema.classes:
            classes[name.pattern.subject] += (meant(name.iri),)
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
    found = look.which(
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
        fields, subject = name.fields(), name.pattern.subject
        if (classified := look.classified(name.iri, name.written, subject)) is not None:
            found[name.iri] = classified
        elif name.iri in kinds:
            kind = look.show(kinds[name.iri])
            what = f"{name.written} is not a class but a {kind}"
            hint = f"write it in place of {subject}"
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
        foreign = namespace_of(name.iri) not in namespaces_in(schema)
        for address, service in schema.services.items():
            of_its_own = foreign and namespace_of(name.iri) in namespaces_in(service)
            if of_its_own or name.iri in terms_of(service, role):
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
    findings = _unbound_columns(prepared)
    try:
        tree, query = read_query(prepared.text), read_statements(prepared.text)
    except QueryError:
        return findings
    look = Lookups(tree, schema, namespaces, Prober(run, most=1))
    unknown, found = _unknown_names(prepared, look, skip=skip)
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
    return _in_own_words(findings, prepared)


def _unbound_columns(prepared: PreparedQuery) -> list[Finding]:
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


def _in_own_words(findings: Iterable[Finding], prepared: PreparedQuery) -> list[Finding]:
    """Return the findings with the author's text where the harness rewrote the query."""
    own = {
        edit.text: prepared.original[edit.start : edit.end]
        for edit in prepared.edits
        if edit.text.startswith("<") and edit.end > edit.start
    }

    def text(value: Any) -> Any:
        if isinstance(value, list):
            return [text(one) for one in value]
        if isinstance(value, str):
            value = _RENAMED.sub(r"\1", value)
            for sent, written in own.items():
                value = value.replace(sent, written)
        return value

    def restored(one: Finding) -> Finding:
        fields = {name: text(value) for name, value in one.fields.items()}
        return replace(one, what=text(one.what), hint=text(one.hint), fields=fields)

    return list(dict.fromkeys(map(restored, findings)))


#: Variables of the queries with which the data are looked at.
_OURS = ("part", "g", "class", "value", "between", "link")
_RENAMED = re.compile(rf"\b({'|'.join(_OURS)})__\b")


def _without_ours(query: str) -> str:
    """Return a query with other names for the variables that lookups use themselves."""
    ours = [t for t in tokenize(query) if t.kind == "variable" and t.text[1:] in _OURS]
    return apply_edits(query, [Edit(token.end, token.end, "__") for token in ours])


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


# -- a query that returned nothing, or cannot be sent -------------------------------------------

#: Seconds one probe may take.
PROBE_TIMEOUT_S = 3.0
#: What can follow the object of a triple.
_ENDS = (".", ";", ",", "}", "]", ")")


def probe_run(config: EndpointConfig) -> Callable[[str], Result]:
    """Return a function that sends probes to an endpoint: each within 3 s, without retries."""
    return side_client(config, PROBE_TIMEOUT_S).query


def is_empty(result: Result, prepared: PreparedQuery | None = None) -> bool:
    """Return whether a result holds nothing: no rows, no triples, ASK false, or only zero counts.

    Without its query, or if rdflib did not parse that, a lone 0 is a value and not a zero count.
    """
    if isinstance(result, BooleanResult):
        return not result.value
    if result.n_rows == 0:
        return True
    if isinstance(result, GraphResult) or result.n_rows > 1 or not _aggregates(prepared):
        return False
    return all(
        term is None or (isinstance(term, Literal) and term.value in ("0", "0.0", "0.0E0", ""))
        for term in result.rows(0, 1)[0]
    )


def _aggregates(prepared: PreparedQuery | None) -> bool:
    node = None if prepared is None or prepared.parsed is None else prepared.parsed.algebra
    while isinstance(node, CompValue):
        if node.name == "AggregateJoin":
            return True
        node = node.get("p")
    return False


def explain_empty(
    prepared: PreparedQuery,
    schema: Schema,
    run: Callable[[str], Result],
    *,
    namespaces: Mapping[str, str],
) -> list[Finding]:
    """Return why a query returned nothing, the most useful finding first; empty if unknown.

    `run` sends a query to the same endpoint (see `probe_run`): at most 16, and none after 8 s.
    `namespaces`, by prefix, are for the names in the findings.
    """
    findings = _unbound_columns(prepared)
    try:
        query = read_query(_without_ours(prepared.text))
    except QueryError:
        return findings
    look = Lookups(query, schema, namespaces, Prober(run))
    unknown, found = _unknown_names(prepared, look, look_up=True)
    findings += found
    if len(findings) < MOST_FINDINGS:
        failures = find_failures(look, unknown)
        if all(failure.alone for failure in failures) and _nothing_outside_graphs(look):
            what = "nothing is in the default graph here"
            hint = "put GRAPH ?g { } around the patterns"
            findings.append(Finding("default-graph-empty", what, hint=hint))
        else:
            most = MOST_FINDINGS - len(findings)
            findings += [explain_failure(failure) for failure in failures[:most]]
            findings = findings or explain_rest(look, prepared)
    return _in_own_words(findings, prepared)


def explain_error(
    query: str, error: QueryError, schema: Schema, namespaces: Mapping[str, str]
) -> list[Finding]:
    """Return what was probably meant where a query cannot be sent at all.

    That is the nearest names or prefixes of an undeclared prefix, else names that do not exist.
    """
    if len(query) > LONGEST_QUERY:
        return []
    every = tokenize(query)
    declared, start = prologue(every)
    # Other names exist at another endpoint.
    elsewhere = set(tokens_within(every[start:], ("SERVICE",), "{}"))
    tokens = [token for token in every[start:] if token not in elsewhere]
    names = [
        (before, token, after)
        for before, token, after in zip(tokens, tokens[1:], [*tokens[2:], None], strict=False)
        if token.kind == "name" and not token.text.endswith(":")
    ]
    if error.code == "unknown-prefix":
        prefix = error.fields["prefix"]
        for before, token, _ in names:
            leads_to = schema.objects_of(absolute(before.text, {**namespaces, **declared}) or "")
            texts = bool(leads_to) and all(map(is_datatype, leads_to))
            if texts and token.text.startswith(prefix + ":"):
                fields = {"pattern": f"{before.text} {token.text}", "predicate": before.text}
                what = f"{before.text} leads to texts"
                instead = full(Literal(token.text))
                return [write("resource-for-text", what, f"{before.text} {instead}", fields)]
        return _for_prefix(prefix, [token.text for _, token, _ in names], schema, namespaces)
    found = wrong_prefixes(query, namespaces)
    if schema.complete:
        # At the places of properties and classes, as far as tokens show.
        used = [
            token.text
            for before, token, after in names
            if before.text == "a" or (after is not None and after.text not in _ENDS)
        ]
        found += _unknown_in_text(used, {**declared, **namespaces}, schema, namespaces)
    return found


def _for_prefix(
    prefix: str, used: Sequence[str], schema: Schema, namespaces: Mapping[str, str]
) -> list[Finding]:
    """Return the name that has an undeclared prefix, else the nearest prefixes."""
    local = next((t.partition(":")[2] for t in used if t.startswith(prefix + ":")), "")
    near = nearest_names(f"urn:/{local}", schema) if local else ()
    meant = [written(t.iri, namespaces) for t in near if local_name(t.iri).lower() == local.lower()]
    meant = meant or [f"{name}:" for name in nearest_prefixes(prefix, namespaces)]
    if not meant:
        return []
    what = f"did you mean {' or '.join(meant)}?"
    return [Finding("unknown-prefix", what, fields={"prefix": prefix, "replacements": meant})]


def _unknown_in_text(
    used: Sequence[str], declared: Mapping[str, str], schema: Schema, namespaces: Mapping[str, str]
) -> list[Finding]:
    """Return the names of a text that does not parse which are neither class nor property."""
    homes = namespaces_in(schema)
    found = []
    for text in dict.fromkeys(used):
        name = absolute(text, declared)
        if name is None or namespace_of(name) not in homes or schema.term(name) is not None:
            continue
        near = [written(t.iri, namespaces) for t in nearest_names(name, schema, most=2)]
        counting = "count" in words(local_name(name))
        other = f" (nearest: {', '.join(near)})" if near else ""
        other = " (count with COUNT)" if counting else other
        fields = {"name": text, "iri": name, "replacements": near, "counting": counting}
        found.append(Finding("unknown-name", f"there is no {text}{other}", fields=fields))
    return found


def _nothing_outside_graphs(look: Lookups) -> bool:
    where = look.query.where
    if where is None or look.query.dataset or any(c.kind == "graph" for c in where.clauses):
        return False
    return look.ask("?s ?p ?o") is False and look.ask("GRAPH ?g { ?s ?p ?o }") is True


def explain_query(
    query: str, client: SPARQLClient, schema: Schema | None, *, empty: bool
) -> list[Finding]:
    """Return what is known to be wrong with a query; empty if nothing is.

    No gold is read: names are compared with the schema, and the client's endpoint is asked which
    pattern of a query that ran and was `empty` fails first.
    """
    if schema is None:
        return []
    namespaces = client.config.namespaces
    try:
        prepared = client.prepare(query)
    except QueryError as error:
        return explain_error(query, error, schema, namespaces)
    find = explain_empty if empty else lint
    try:
        return find(prepared, schema, probe_run(client.config), namespaces=namespaces)
    except (QueryError, EndpointError, UsageError):
        # A diagnosis is help, not a result: without it the caller still has the error itself.
        return []


def explainer(
    client: SPARQLClient, schema: Schema | None
) -> Callable[[str, bool], tuple[str, ...]]:
    """Return a function of a query, and whether it returned nothing, that explains it in lines."""
    return lambda query, empty: as_lines(explain_query(query, client, schema, empty=empty))
