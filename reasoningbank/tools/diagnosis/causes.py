"""Why a part of a query leaves no rows, told in one line with what to write instead."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from pyoxigraph import Literal, NamedNode

from reasoningbank.sparql import PreparedQuery, compact, full, iri
from reasoningbank.sparql.probing import Failure, Prober, Unit, as_written
from reasoningbank.sparql.tokens import tokenize, variables_in
from reasoningbank.sparql.tree import QueryTree, TriplePattern
from reasoningbank.tools.diagnosis.constants import Constants
from reasoningbank.tools.diagnosis.filters import Condition, read_condition
from reasoningbank.tools.diagnosis.joins import Joins, short
from reasoningbank.tools.diagnosis.lookups import Lookups
from reasoningbank.tools.diagnosis.names import nearest_names
from reasoningbank.tools.diagnosis.used_names import absolute
from reasoningbank.tools.vocabulary import Vocabulary

__all__ = ["Explainer"]


_SERVICE = re.compile(r"SERVICE\s+(?:SILENT\s+)?\S+", re.IGNORECASE)
#: Triples of another service that are looked at for its properties; how many are kept and told.
_SERVICE_TRIPLES, _PROPERTIES, _PROPERTIES_TOLD = 5_000, 200, 5


class Explainer:
    """Explains the failures of one query.

    Args:
        prober: Sends the probes.
        names: The endpoint's vocabulary.
        namespaces: Prefix → namespace of the endpoint.
        declared: Prefix → namespace of the query.
    """

    def __init__(
        self,
        prober: Prober,
        names: Vocabulary,
        namespaces: Mapping[str, str],
        declared: Mapping[str, str],
    ) -> None:
        self._prober = prober
        self._declared = declared
        self._namespaces = namespaces
        self._names = names
        self._look = Lookups.of(prober, names, namespaces)
        self._constants = Constants(self._look, names, declared)
        self._joins = Joins(self._look, names, declared)

    def explain(self, failure: Failure) -> str:
        """Return a line on one failure."""
        unit = failure.unit
        if unit.kind == "filter":
            return self._filter(failure)
        if unit.kind == "minus":
            return f"{short(unit.shown)} takes every row away"
        if failure.alone:
            return self._joins.explain(failure)
        if unit.pattern is not None:
            return self._pattern(failure, unit.pattern)
        return f"nothing matches {short(unit.shown)}, even by itself"

    def elsewhere(self, prepared: PreparedQuery, query: QueryTree) -> list[str]:
        """Return what is wrong where all patterns together have rows."""
        if prepared.form == "DESCRIBE" and query.where is None:
            return self._described(query)
        if prepared.limit == 0:
            return ["LIMIT 0 lets no row through"]
        if query.where is None:
            return []
        inside = query.text[query.where.start + 1 : query.where.end - 1]
        if prepared.form == "CONSTRUCT" and self._prober.ask(inside):
            return ["the patterns match, but the template makes no triples of their values"]
        words = {token.text.upper() for token in tokenize(query.text[query.where.end :])}
        behind = next((word for word in ("HAVING", "OFFSET") if word in words), "")
        if not behind or not self._prober.ask(inside):
            return []
        if behind == "HAVING":
            return ["the patterns match; it is HAVING that leaves no group"]
        return ["the patterns match; OFFSET skips all the rows there are"]

    def _pattern(self, failure: Failure, pattern: TriplePattern) -> str:
        given = self._bound(failure)
        pattern = given.pattern or pattern
        head = f"nothing matches {as_written(str(pattern))}"
        if pattern.subject == pattern.object:
            return f"{head}: its subject and its object are the same variable"
        turned = self._joins.turned(Failure(given, context=failure.context), ())
        if turned:
            return f"{head}; the other way round it matches: write {turned}"
        where = self._outside(failure, pattern)
        if where:
            return f"{head} {where}"
        if _SERVICE.search(failure.context):
            elsewhere = self._of_service(failure, pattern)
            if elsewhere:
                return f"{head} in {_target(failure)}: {elsewhere}"
        return self._constants.explain(failure, pattern) or f"{head}, even by itself"

    def _of_service(self, failure: Failure, pattern: TriplePattern) -> str:
        """Say that another service lacks a property, and which ones of its own are near."""
        predicate = absolute(pattern.predicate, self._declared)
        if predicate is None or self._prober.ask(failure.body(f"?s {iri(predicate)} ?o")):
            return ""
        some = f"{{ SELECT ?link {{ ?s ?link ?o }} LIMIT {_SERVICE_TRIPLES} }}"
        rows = self._prober.rows(["link"], failure.body(some), _PROPERTIES, distinct=True) or []
        has = [term.value for (term,) in rows if isinstance(term, NamedNode)]
        near = nearest_names(predicate, Vocabulary.of_terms((), has), role="property")
        offered = [term.iri for term in near] or has[:_PROPERTIES_TOLD]
        if not offered:
            return ""
        verb = "try" if near else "it has"
        return f"it has no {pattern.predicate}, {verb} {', '.join(map(self._look.show, offered))}"

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

    def _outside(self, failure: Failure, pattern: TriplePattern) -> str:
        """Say where a pattern matches that does not match in the graph the query names."""
        graph = re.match(r"GRAPH\s+([^?$\s]\S*)", failure.context, re.IGNORECASE)
        named = graph is not None or self._prober.has_dataset
        if not named and (failure.context != "%s" or not self._known(pattern)):
            return ""
        rows = self._prober.rows(["g"], f"GRAPH ?g {{ {pattern} }}", anywhere=True)
        if not rows:
            return ""
        found = self._look.show(rows[0][0])
        if not named:
            return f"outside of graphs: write GRAPH {found} {{ {as_written(str(pattern))} }}"
        place = f"GRAPH {graph[1]}" if graph is not None else "the graphs of FROM"
        return f"in {place}: it is in {found}"

    def _known(self, pattern: TriplePattern) -> bool:
        """Say whether the data are known to hold the pattern's property."""
        predicate = absolute(pattern.predicate, self._declared)
        return predicate is not None and predicate in self._names.properties

    # -- conditions -----------------------------------------------------------------------

    def _filter(self, failure: Failure) -> str:
        text = short(failure.unit.shown)
        bound = {name for unit in failure.before for name in unit.variables}
        used = variables_in(failure.unit.text)
        if failure.unit.clause.groups:  # EXISTS
            return f"the patterns match, but {text} takes every row away"
        unbound = [name for name in used if name not in bound]
        if unbound:
            return f"{text} uses ?{unbound[0]}, which no pattern binds"
        what = f"the patterns match, but {text} takes every row away"
        if not used:
            return what
        body = failure.body(*failure.before)
        condition = read_condition(failure.unit.shown)
        hint = "" if condition is None else self._mended(condition, body)
        if hint:
            return f"{text} takes every row away; {hint}"
        name = used[0]
        rows = self._prober.rows([name], body)
        value = rows[0][0] if rows else None
        such = f"; ?{name} is such as {self._look.literal(value)}" if value is not None else ""
        if condition is not None and isinstance(value, NamedNode):
            such += self._unquoted(condition)
        return f"{what}{such}"

    def _unquoted(self, condition: Condition) -> str:
        """Return that a text is the name of a resource, if it is written like one."""
        # The prefix of a name in a text is not declared for it.
        if absolute(condition.text, {**self._namespaces, **self._declared}) is None:
            return ""
        return f", a resource and no text: write {condition.text} without quotation marks"

    def _mended(self, condition: Condition, body: str) -> str:
        """Return the condition that does let rows through, or where the text is found."""
        name = condition.variable
        text = full(Literal(condition.text))
        lower = full(Literal(condition.text.lower()))
        function = condition.function
        plain = f"{function}(STR(?{name}), {text})" if function else f"STR(?{name}) = {text}"
        cased = f"{function or 'CONTAINS'}(LCASE(STR(?{name})), {lower})"
        anywhere = f"CONTAINS(LCASE(STR(?{name})), {lower})"
        for mended in dict.fromkeys((plain, cased, anywhere)):
            rows = self._prober.rows([name], f"{body} FILTER({mended})")
            if rows:
                return f"write FILTER({mended}), which finds {self._look.literal(rows[0][0])}"
            if rows is None:
                return ""
        return self._look.owner([text, full(Literal(condition.text, language="en"))])

    def _described(self, query: QueryTree) -> list[str]:
        names = [t.text for t in tokenize(query.text) if t.kind in ("iri", "name")]
        written = names[-1:]
        lines = []
        for text in written:
            name = absolute(text, self._declared)
            namesake = "" if name is None else self._look.namesake(name)
            lines.append(f"{text} does not exist here{'; ' * bool(namesake)}{namesake}")
        return lines


def _target(failure: Failure) -> str:
    """Return SERVICE and its address out of the context of a part."""
    found = _SERVICE.search(failure.context)
    return found[0] if found is not None else "SERVICE"
