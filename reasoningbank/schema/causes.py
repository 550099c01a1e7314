"""Why a part of a query leaves no rows, with what to write instead."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from pyoxigraph import Literal, NamedNode

from reasoningbank.findings import Finding
from reasoningbank.schema.constants import Constants
from reasoningbank.schema.joins import Joins, short
from reasoningbank.schema.lookups import Lookups, TextCondition, read_condition
from reasoningbank.schema.names import nearest_names
from reasoningbank.schema.schema import Schema
from reasoningbank.sparql import PreparedQuery, compact, full, iri
from reasoningbank.sparql.probing import Failure, Prober, Unit
from reasoningbank.sparql.probing import as_written as written_text
from reasoningbank.sparql.terms import absolute
from reasoningbank.sparql.tokens import tokenize, variables_in
from reasoningbank.sparql.tree import QueryTree, TriplePattern

_SERVICE = re.compile(r"SERVICE\s+(?:SILENT\s+)?\S+", re.IGNORECASE)
#: Triples of another service that are searched for its properties; how many are kept and listed.
_SERVICE_TRIPLES, _PROPERTIES, _LISTED = 5_000, 200, 5


class Causes:
    """Explains the failures of one query."""

    def __init__(
        self,
        prober: Prober,
        schema: Schema,
        namespaces: Mapping[str, str],
        declared: Mapping[str, str],
    ) -> None:
        self._prober = prober
        self._declared = declared
        self._namespaces = namespaces
        self._schema = schema
        self._look = Lookups.of(prober, schema, namespaces)
        self._constants = Constants(self._look, schema, declared)
        self._joins = Joins(self._look, schema, declared)

    def explain(self, failure: Failure) -> Finding:
        """Return a finding on one failure."""
        unit = failure.unit
        if unit.kind == "filter":
            return self._filter(failure)
        text = short(unit.shown)
        if unit.kind == "minus":
            return Finding("minus-removes-all", f"{text} removes all rows", fields={"minus": text})
        if failure.alone:
            return self._joins.explain(failure)
        if unit.pattern is not None:
            return self._pattern(failure, unit.pattern)
        what = f"nothing matches {text}, even by itself"
        return Finding("no-match", what, fields={"pattern": text})

    def elsewhere(self, prepared: PreparedQuery, query: QueryTree) -> list[Finding]:
        """Return what is wrong where all patterns together have rows."""
        if prepared.form == "DESCRIBE" and query.where is None:
            names = [t.text for t in tokenize(query.text) if t.kind in ("iri", "name")]
            return [
                self._constants.missing(text, absolute(text, self._declared)) for text in names[-1:]
            ]
        if prepared.limit == 0:
            return [Finding("limit-zero", "LIMIT 0 lets no row through")]
        if query.where is None:
            return []
        inside = query.text[query.where.start + 1 : query.where.end - 1]
        if prepared.form == "CONSTRUCT" and self._prober.ask(inside):
            what = "the patterns match, but the template makes no triples of their values"
            return [Finding("empty-template", what)]
        words = {token.text.upper() for token in tokenize(query.text[query.where.end :])}
        behind = next((word for word in ("HAVING", "OFFSET") if word in words), "")
        if not behind or not self._prober.ask(inside):
            return []
        if behind == "HAVING":
            return [Finding("having-removes-all", "the patterns match, but HAVING keeps no group")]
        return [Finding("offset-skips-all", "the patterns match, but OFFSET skips all rows")]

    def _pattern(self, failure: Failure, pattern: TriplePattern) -> Finding:
        given = self._bound(failure)
        pattern = given.pattern or pattern
        text = written_text(str(pattern))
        head, fields = f"nothing matches {text}", {"pattern": text}
        if pattern.subject == pattern.object:
            what = f"{head}: its subject and its object are the same variable"
            return Finding("same-variable", what, fields=fields)
        turned = self._joins.turned(Failure(given, context=failure.context), ())
        if turned:
            hint = f"the other way round it matches: write {turned}"
            return Finding(
                "reversed-direction", head, hint=hint, fields={**fields, "instead": turned}
            )
        return (
            self._outside(failure, pattern, text)
            or self._of_service(failure, pattern, head)
            or self._constants.explain(failure, pattern)
            or Finding("no-match", f"{head}, even by itself", fields=fields)
        )

    def _of_service(self, failure: Failure, pattern: TriplePattern, head: str) -> Finding | None:
        """Return that another service lacks a property, and which of its own are near."""
        service = _SERVICE.search(failure.context)
        predicate = absolute(pattern.predicate, self._declared)
        if service is None or predicate is None:
            return None
        if self._prober.ask(failure.body(f"?s {iri(predicate)} ?o")):
            return None
        some = f"{{ SELECT ?link {{ ?s ?link ?o }} LIMIT {_SERVICE_TRIPLES} }}"
        rows = self._prober.rows(["link"], failure.body(some), _PROPERTIES, distinct=True) or []
        has = [term.value for (term,) in rows if isinstance(term, NamedNode)]
        near = nearest_names(predicate, Schema.of_terms((), has), role="property")
        offered = [self._look.show(name) for name in [t.iri for t in near] or has[:_LISTED]]
        if not offered:
            return None
        verb = "try" if near else "it has"
        return Finding(
            "unknown-property",
            f"{head} in {service[0]}: it has no {pattern.predicate}",
            hint=f"{verb} {', '.join(offered)}",
            fields={
                "name": pattern.predicate,
                "role": "property",
                "service": service[0].split()[-1],
                "replacements": offered if near else [],
            },
        )

    def _bound(self, failure: Failure) -> Unit:
        """Return the part with what VALUES or BIND give the variables of its pattern."""
        unit = failure.unit
        ends = [end for p in (unit.pattern, unit.whole) if p is not None for end in (p[0], p[2])]
        names = [
            end[1:]
            for end in dict.fromkeys(ends)
            if end[:1] in "?$" and any(end[1:] in other.variables for other in failure.before)
        ]
        if not names:
            return unit
        rows = self._prober.rows(names, " ".join(other.text for other in failure.before))
        values = dict(zip(names, rows[0], strict=True)) if rows else {}

        def filled(pattern: TriplePattern | None) -> TriplePattern | None:
            if pattern is None:
                return None
            return TriplePattern(given(pattern.subject), pattern.predicate, given(pattern.object))

        def given(end: str) -> str:
            term = values.get(end[1:]) if end[:1] in "?$" else None
            if isinstance(term, NamedNode):
                return str(compact(term, self._declared))
            return end if term is None else full(term)

        return replace(unit, pattern=filled(unit.pattern), whole=filled(unit.whole))

    def _outside(self, failure: Failure, pattern: TriplePattern, text: str) -> Finding | None:
        """Return that a pattern matches in another graph than the one that the query names."""
        graph = re.match(r"GRAPH\s+([^?$\s]\S*)", failure.context, re.IGNORECASE)
        named = graph is not None or self._prober.has_dataset
        if not named and (failure.context != "%s" or not self._known(pattern)):
            return None
        rows = self._prober.rows(["g"], f"GRAPH ?g {{ {pattern} }}", anywhere=True)
        if not rows:
            return None
        found = self._look.show(rows[0][0])
        fields = {"pattern": text, "graph": found}
        if not named:
            instead = f"GRAPH {found} {{ {text} }}"
            what = f"nothing matches {text} outside of graphs"
            fields["instead"] = instead
            return Finding("missing-graph", what, hint=f"write {instead}", fields=fields)
        place = f"GRAPH {graph[1]}" if graph is not None else "the graphs of FROM"
        what = f"nothing matches {text} in {place}: it is in {found}"
        return Finding("wrong-graph", what, fields=fields)

    def _known(self, pattern: TriplePattern) -> bool:
        predicate = absolute(pattern.predicate, self._declared)
        return predicate is not None and predicate in self._schema.properties

    # -- conditions -----------------------------------------------------------------------

    def _filter(self, failure: Failure) -> Finding:
        text = short(failure.unit.shown)
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
        body = failure.body(*failure.before)
        condition = read_condition(failure.unit.shown)
        fields["variable"] = used[0]
        fixed = None if condition is None else self._fixed(condition, body, text, fields)
        if fixed is not None:
            return fixed
        rows = self._prober.rows([used[0]], body)
        value = rows[0][0] if rows else None
        if value is None:
            return Finding(code, removes, fields=fields)
        fields["sample"] = self._look.literal(value)
        hint = f"?{used[0]} is such as {fields['sample']}"
        # The query need not declare the prefix of a name that it writes as a text.
        known = {**self._namespaces, **self._declared}
        is_name = condition is not None and absolute(condition.text, known) is not None
        if condition is not None and is_name and isinstance(value, NamedNode):
            code, fields["instead"] = "text-for-resource", condition.text
            hint += f", a resource, not a text: write {condition.text} without quotation marks"
        return Finding(code, removes, hint=hint, fields=fields)

    def _fixed(
        self, condition: TextCondition, body: str, text: str, fields: dict[str, str]
    ) -> Finding | None:
        """Return the condition that does let rows through, or where the text is found."""
        name = condition.variable
        string = full(Literal(condition.text))
        lower = full(Literal(condition.text.lower()))
        function = condition.function
        plain = f"{function}(STR(?{name}), {string})" if function else f"STR(?{name}) = {string}"
        cased = f"{function or 'CONTAINS'}(LCASE(STR(?{name})), {lower})"
        anywhere = f"CONTAINS(LCASE(STR(?{name})), {lower})"
        what = f"{text} removes all rows"
        for fixed in dict.fromkeys((plain, cased, anywhere)):
            rows = self._prober.rows([name], f"{body} FILTER({fixed})")
            if rows is None:
                return None
            if rows:
                instead = f"FILTER({fixed})"
                sample = self._look.literal(rows[0][0])
                return Finding(
                    "filter-removes-all",
                    what,
                    hint=f"write {instead}, which finds {sample}",
                    fields={**fields, "instead": instead, "sample": sample},
                )
        owner = self._look.owner([string, full(Literal(condition.text, language="en"))])
        if owner is None:
            return None
        found = {**fields, **owner.fields()}
        return Finding("filter-removes-all", what, hint=str(owner), fields=found)
