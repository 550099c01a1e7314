"""Why a part of a query leaves no rows, with what to write instead."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import dropwhile, pairwise, takewhile
from typing import Any, cast

from pyoxigraph import BlankNode, Literal, NamedNode

from reasoningbank.findings import Finding
from reasoningbank.schema.joins import Joins
from reasoningbank.schema.lookups import (
    NUMBER,
    Lookups,
    TextCondition,
    plain_and_english,
    read_condition,
    read_literal,
    variants,
    write,
)
from reasoningbank.schema.names import is_label, local_name, namespace_of, nearest_names
from reasoningbank.schema.probing import Failure, Unit, joined, written_text
from reasoningbank.schema.schema import Schema
from reasoningbank.schema.statements import parentheses
from reasoningbank.sparql import PreparedQuery, Term, full, iri
from reasoningbank.sparql.terms import RDF_TYPE, XSD, absolute, short, written
from reasoningbank.sparql.tokens import Edit, apply_edits, tokenize, variables_in
from reasoningbank.sparql.tree import QueryTree, TriplePattern

#: Values whose language tags are listed.
_TAGGED = 50
_STRING, _LANG_STRING = Literal("").datatype, Literal("", language="en").datatype
_INTEGER, _YEAR, _DATE = (NamedNode(XSD + name) for name in ("integer", "gYear", "date"))
#: The language or datatype of a literal.
_TAG = re.compile(r"@[\w-]+|\^\^\s*(?:<[^>]*>|[\w:.-]+)")
_GRAPH = re.compile(r"GRAPH\s+([^?$\s]\S*)", re.IGNORECASE)
#: Triples of another service that are searched for its properties; how many are kept and listed.
_SERVICE_TRIPLES, _PROPERTIES, _LISTED = 5_000, 200, 5


def explain_failure(failure: Failure) -> Finding:
    unit, text = failure.unit, short(failure.unit.shown)
    if unit.kind == "filter":
        return _filter(failure)
    if unit.kind == "minus":
        return Finding("minus-removes-all", f"{text} removes all rows", fields={"minus": text})
    if failure.alone:
        return Joins(unit, failure.look, failure.before).explain()
    if unit.pattern is not None:
        return _pattern(failure, unit.pattern)
    what = f"nothing matches {text}, even by itself"
    return Finding("no-match", what, fields={"pattern": text})


def explain_rest(look: Lookups, prepared: PreparedQuery) -> list[Finding]:
    """Return what is wrong where all patterns together have rows."""
    query = look.query
    if prepared.form == "DESCRIBE" and query.where is None:
        names = [t.text for t in tokenize(query.text) if t.kind in ("iri", "name")]
        return [look.missing(text) for text in names[-1:]]
    if prepared.limit == 0:
        return [Finding("limit-zero", "LIMIT 0 lets no row through")]
    if query.where is None:
        return []
    inside = query.text[query.where.start + 1 : query.where.end - 1]
    if prepared.form == "CONSTRUCT" and look.ask(inside):
        what = "the patterns match, but the template makes no triples of their values"
        return [Finding("empty-template", what)]
    if (unseen := _unseen_alias(query)) is not None:
        return [unseen]
    words = {token.text.upper() for token in tokenize(query.text[query.where.end :])}
    behind = (
        ("HAVING", "having-removes-all", "HAVING keeps no group"),
        ("OFFSET", "offset-skips-all", "OFFSET skips all rows"),
    )
    for word, code, what in behind:
        if word in words:
            finding = Finding(code, f"the patterns match, but {what}")
            return [finding] if look.ask(inside) else []
    return []


def _unseen_alias(query: QueryTree) -> Finding | None:
    """Return that HAVING uses what SELECT names, which is bound after it (SPARQL 1.1, 18.2.4)."""
    if query.where is None:
        return None
    named = {
        part[-2].text: query.text[part[0].end : part[-3].start].strip()
        for part in parentheses(query.body)
        if len(part) > 3 and part[-3].is_word("AS")
    }
    behind = [token for token in query.body if token.start >= query.where.end]
    begin = dropwhile(lambda t: not t.is_word("HAVING"), behind)
    having = list(takewhile(lambda t: not t.is_word("ORDER", "LIMIT", "OFFSET", "VALUES"), begin))
    used = [token for token in having if token.text in named]
    if not used:
        return None
    start, text = having[0].start, query.text[having[0].start : having[-1].end]
    edits = [Edit(t.start - start, t.end - start, named[t.text]) for t in used]
    what = f"HAVING cannot use {used[0].text}, which SELECT names after it"
    return write("having-alias", what, apply_edits(text, edits), {"variable": used[0].text[1:]})


# -- a pattern that matches nothing by itself -------------------------------------------------


def _pattern(failure: Failure, pattern: TriplePattern) -> Finding:
    look, given = failure.look, _bound(failure)
    pattern = given.pattern or pattern
    text = written_text(str(pattern))
    head, fields = f"nothing matches {text}", {"pattern": text}
    if pattern.subject == pattern.object:
        what = f"{head}: its subject and its object are the same variable"
        return Finding("same-variable", what, fields=fields)
    if (text_for := Constants(look, pattern).text()) is not None:
        return text_for
    turned = Joins(given, look).turned()
    if turned:
        hint = f"the other way round it matches: write {turned}"
        fields["instead"] = turned
        return Finding("reversed-direction", head, hint=hint, fields=fields)
    return (
        _outside(look, pattern, text)
        or _of_service(look, pattern, head)
        or Constants(look, pattern).explain()
        or Finding("no-match", f"{head}, even by itself", fields=fields)
    )


def _bound(failure: Failure) -> Unit:
    """Return the part with what VALUES or BIND give the variables of its pattern."""
    unit, look = failure.unit, failure.look
    ends = [end for p in (unit.pattern, unit.whole) if p is not None for end in (p[0], p[2])]
    names = [
        end[1:]
        for end in dict.fromkeys(ends)
        if end[:1] in "?$" and any(end[1:] in other.variables for other in failure.before)
    ]
    if not names:
        return unit
    rows = look.rows(names, joined(failure.before))
    values = dict(zip(names, rows[0], strict=True)) if rows else {}

    def given(end: str) -> str:
        term = values.get(end[1:]) if end[:1] in "?$" else None
        if isinstance(term, NamedNode):
            return written(term, look.query.declared)
        return end if term is None else full(term)

    filled = [
        p and TriplePattern(given(p.subject), p.predicate, given(p.object))
        for p in (unit.pattern, unit.whole)
    ]
    return replace(unit, pattern=filled[0], whole=filled[1])


def _outside(look: Lookups, pattern: TriplePattern, text: str) -> Finding | None:
    """Return that a pattern matches in another graph than the one that the query names."""
    graph = _GRAPH.match(look.context)
    named = graph is not None or bool(look.query.dataset)
    known = look.name(pattern.predicate) in look.schema.properties
    if not named and (look.context != "%s" or not known):
        return None
    rows = look.rows(["g"], f"GRAPH ?g {{ {pattern} }}", anywhere=True)
    if not rows:
        return None
    found = look.show(rows[0][0])
    fields = {"pattern": text, "graph": found}
    if not named:
        what = f"nothing matches {text} outside of graphs"
        return write("missing-graph", what, f"GRAPH {found} {{ {text} }}", fields)
    place = f"GRAPH {graph[1]}" if graph is not None else "the graphs of FROM"
    what = f"nothing matches {text} in {place}: it is in {found}"
    return Finding("wrong-graph", what, fields=fields)


def _of_service(look: Lookups, pattern: TriplePattern, head: str) -> Finding | None:
    """Return that another service lacks a property, and which of its own are near."""
    predicate = look.name(pattern.predicate)
    if not look.service or predicate is None or look.ask(f"?s {iri(predicate)} ?o"):
        return None
    some = f"{{ SELECT ?link {{ ?s ?link ?o }} LIMIT {_SERVICE_TRIPLES} }}"
    links = look.column("link", some, _PROPERTIES, distinct=True)
    has = [term.value for term in links if isinstance(term, NamedNode)]
    near = [t.iri for t in nearest_names(predicate, Schema.of_terms((), has), role="property")]
    offered = [look.show(name) for name in near or has[:_LISTED]]
    if not offered:
        return None
    what = f"{head} {look.place}: it has no {pattern.predicate}"
    hint = f"{'try' if near else 'it has'} {', '.join(offered)}"
    fields = {
        "name": pattern.predicate,
        "role": "property",
        "service": look.service.split()[-1],
        "replacements": offered if near else [],
    }
    return Finding("unknown-property", what, hint=hint, fields=fields)


# -- a condition that removes all rows ----------------------------------------------------------


def _filter(failure: Failure) -> Finding:
    look, text = failure.look, short(failure.unit.shown)
    bound = {name for unit in failure.before for name in unit.variables}
    used = variables_in(failure.unit.text)
    removes = f"the patterns match, but {text} removes all rows"
    code, fields = "filter-removes-all", {"filter": text}
    exists = bool(failure.unit.clause.groups)
    unbound = [name for name in used if name not in bound]
    if unbound and not exists:
        what = f"{text} uses ?{unbound[0]}, which no pattern binds"
        return Finding("filter-unbound", what, fields={**fields, "variable": unbound[0]})
    if exists or not used:
        return Finding(code, removes, fields=fields)
    body = joined(failure.before)
    condition = read_condition(failure.unit.shown)
    fields["variable"] = used[0]
    tokens = tokenize(failure.unit.shown)
    if any(token.is_word("LANG") for token in tokens):
        return _language(look, used[0], body, removes, fields)
    several = sum(token.kind == "string" for token in tokens) > 1
    values = look.column(used[0], body)
    if values and values[0] is not None:
        fields["sample"] = look.show(values[0])
        for term in _compared(look, failure.unit.shown, condition):
            if meant := look.meant(used[0], body, term, values[0]):
                wanted = f"{meant[1]} in place of {look.show(term)}"
                # The text of a resource, STR(?x), equals no resource.
                calls = (a for a, b in pairwise(tokens[1:]) if b.text == "(" and a.kind == "word")
                if any(not call.is_word("IN", "NOT") for call in calls):
                    value = f"IN ({meant[1]}, ...)" if several else f"= {meant[1]}"
                    wanted = f"FILTER(?{used[0]} {value})"
                return write(meant[0], removes, wanted, fields, meant[1])
    if values and (typed := _typed(look, failure.unit, body, values[0])):
        return write("untyped-value", removes, typed, fields)
    # What is found for one text of several would leave the others out.
    fixed = None
    if condition is not None and (condition.function or not several):
        fixed = _fixed(look, condition, body, text, fields)
    if fixed is not None or "sample" not in fields:
        return fixed or Finding(code, removes, fields=fields)
    hint = f"?{used[0]} is such as {fields['sample']}"
    # The query need not declare the prefix of a name that it writes as a text.
    known = {**look.namespaces, **look.query.declared}
    name = None if condition is None else absolute(condition.text, known)
    if condition is not None and name is not None and isinstance(values[0], NamedNode):
        code, fields["instead"] = "text-for-resource", condition.text
        hint += ", a resource, not a text"
        if condition.text.endswith(":"):
            hint += f": write FILTER(STRSTARTS(STR(?{used[0]}), STR({condition.text})))"
        elif look.ask(f"{body} FILTER(?{used[0]} = {iri(name)})"):
            hint += f": write FILTER(?{used[0]} = {condition.text})"
    return Finding(code, removes, hint=hint, fields=fields)


def _language(look: Lookups, name: str, body: str, what: str, fields: dict[str, Any]) -> Finding:
    values = look.column(name, body, _TAGGED, distinct=True)
    tags = sorted({v.language or "" for v in values if isinstance(v, Literal)})
    fields["tags"] = tags
    hint = f"the language tags of ?{name} are such as {', '.join(filter(None, tags))}"
    if tags == [""]:
        hint = f"the values of ?{name} have no language tag: leave this FILTER out"
    return Finding("language-tag", what, hint=hint if tags else "", fields=fields)


def _compared(
    look: Lookups, written: str, condition: TextCondition | None
) -> Iterator[Literal | NamedNode]:
    """Yield the text, or the names, that a FILTER compares its variable with."""
    if condition is not None:
        yield from () if condition.function else (Literal(condition.text),)
        return
    tokens = tokenize(written)
    if not any(token.text == "=" or token.is_word("IN") for token in tokens):
        return
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        name = look.name(token.text) if token.kind in ("iri", "name") else None
        if name is not None and before.text != "^^" and after.text != "(":
            yield NamedNode(name)


def _typed(look: Lookups, unit: Unit, body: str, value: Term | None) -> str:
    """Return a comparison with its constants written like the values, if it lets rows through."""
    if not isinstance(value, Literal) or value.datatype in (_STRING, _LANG_STRING):
        return ""
    constants = [token for token in tokenize(unit.shown) if token.kind in ("string", "number")]
    for datatype in (value.datatype, _INTEGER):
        typed: list[tuple[int, int, Literal]] = []
        for token in constants:
            text = read_literal(token.text) or ""
            if re.fullmatch(r"\d{4}(-\d\d-\d\d)?", text):
                text = {_YEAR: text[:4], _DATE: f"{text}-01-01"[:10]}.get(datatype, text)
            tag = _TAG.match(unit.shown, token.end)
            end = token.end if tag is None else tag.end()
            typed.append((token.start, end, Literal(text, datatype=datatype)))
        fixed, shown = (
            apply_edits(unit.shown, [Edit(start, end, form(term)) for start, end, term in typed])
            for form in (full, look.show)
        )
        if shown != unit.shown and look.ask(f"{body} {fixed}"):
            return shown
    return ""


def _fixed(
    look: Lookups, condition: TextCondition, body: str, text: str, fields: dict[str, Any]
) -> Finding | None:
    """Return the condition that does let rows through, or where the text is found."""
    name, wanted, function = condition
    string, lower = full(Literal(wanted)), full(Literal(wanted.lower()))
    plain = f"{function}(STR(?{name}), {string})" if function else f"STR(?{name}) = {string}"
    cased = f"{function or 'CONTAINS'}(LCASE(STR(?{name})), {lower})"
    anywhere = f"CONTAINS(LCASE(STR(?{name})), {lower})"
    code, what = "filter-removes-all", f"{text} removes all rows"
    for fixed in dict.fromkeys((plain, cased, anywhere)):
        rows = look.rows([name], f"{body} FILTER({fixed})")
        if rows is None:
            return None
        if rows:
            instead, sample = f"FILTER({fixed})", look.show(rows[0][0])
            hint = f"write {instead}, which finds {sample}"
            found = {**fields, "instead": instead, "sample": sample}
            return Finding(code, what, hint=hint, fields=found)
    owner = look.there.owner(plain_and_english(wanted))
    if owner is None:
        return None
    return Finding(code, what, hint=str(owner), fields={**fields, **owner.fields()})


# -- a constant that the data write otherwise -------------------------------------------------

#: Values looked at: as examples, for one that holds a text, and for one with a similar name.
_SAMPLE, _SEARCHED, _NAMED = 3, 20, 2_000
#: Similarity of two local names above which one probably means the other.
_SIMILAR = 0.75


@dataclass(frozen=True)
class Constants:
    """Explains a pattern that matches nothing by itself because of a constant in it."""

    look: Lookups
    pattern: TriplePattern

    def explain(self) -> Finding | None:
        subject, predicate, object_ = self.pattern
        text, resource = read_literal(object_), self.look.name(subject)
        if (said := read_literal(subject)) is not None:
            return self._text_subject(said)
        if text is None and resource is not None:
            return self._subject(resource)
        fields = {"pattern": str(self.pattern), "predicate": predicate, "value": object_}
        if text is not None:
            return self._literal(text, fields)
        value = self.look.name(object_)
        return None if value is None else self._object(value, fields)

    def _text_subject(self, text: str) -> Finding:
        body = f"?value {self.pattern.predicate} {self.pattern.object} ."
        value = next(iter(self._values(body)), None)
        code, what = "text-for-resource", f"{self.pattern.subject} is a text and has no properties"
        fields = {"pattern": str(self.pattern), "place": self.pattern.subject}
        meant = self.look.meant("value", body, Literal(text), value)
        return write(code, what, meant[1], fields) if meant else Finding(code, what, fields=fields)

    def text(self) -> Finding | None:
        """Return what to write for a resource where the values of the pattern are literals."""
        predicate, written = self.pattern.predicate, self.pattern.object
        resource, look = self.look.name(written), self.look
        if resource is None or predicate[:1] in "?$" or look.name(predicate) == RDF_TYPE:
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
        found = (term for term in values if isinstance(term, Literal))
        return min(found, key=lambda term: (len(term.value), term.value), default=None)

    def _similar(self, text: str, resource: str = "") -> str:
        """Return a value of the pattern whose local name is similar to a text or a resource's."""
        wanted = text.lower()
        if not any(letter.isalpha() for letter in wanted):
            return ""
        some = f"{{ SELECT ?value {{ {self._open} }} LIMIT {_NAMED} }}"
        values = self.look.column("value", some, 200, distinct=True)

        def similarity(name: str) -> float:
            local = local_name(name).lower()
            if re.findall(r"\d+", wanted) != re.findall(r"\d+", local):
                return 0.0
            if wanted in local and len(wanted) > 2:
                return 1 + len(wanted) / len(local)
            return SequenceMatcher(None, wanted, local).ratio()

        found = sorted({term.value for term in values if isinstance(term, NamedNode)})
        ranked = {
            name: (similarity(name), SequenceMatcher(None, resource, name).ratio())
            for name in found
        }
        best = max(found, key=lambda name: ranked[name], default="")
        return self.look.show(best) if best and ranked[best][0] >= _SIMILAR else ""

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
        # A resource next to this one has a label too: it need not be the one that is meant.
        guess = is_label(look.name(predicate) or "") and object_[:1] in "?$"
        links = [] if guess else look.column("link", body)
        if links:
            instead = written_text(f"{subject} {look.show(links[0])}/{predicate} {object_}")
            return write("missing-step", what, instead, fields)
        names = sorted(has, key=lambda p: not is_label(p.value)) if guess else has
        listed = [look.show(p) for p in names if p.value != RDF_TYPE]
        hint = f"it has {', '.join(listed)}"
        return Finding("no-property", what, hint=hint, fields={**fields, "has": listed})

    def _object(self, resource: str, fields: dict[str, Any]) -> Finding:
        (subject, predicate, value), look = self.pattern, self.look.there
        code, what = "unknown-value", f"nothing has {predicate} {value}"
        if look.name(predicate) == RDF_TYPE:
            classified = look.classified(resource, value, subject)
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
            code, what = "unknown-resource", f"{value} does not exist {look.place}"
            fields["name"] = value
        hint = ""
        similar = self._cased(resource) or self._similar(local_name(resource), resource)
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
