"""Names that do not exist, or not where a query uses them: at that endpoint, in that graph."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from rdflib.term import Literal, URIRef, Variable

from reasoningbank.nl2sparql.knowledge import Source
from reasoningbank.nl2sparql.problems import Problem
from reasoningbank.nl2sparql.validation.facts import DESCRIBING, RDF_TYPE, Facts
from reasoningbank.nl2sparql.walking import Statement
from reasoningbank.sparql import same_address

__all__ = ["misnamed"]


def misnamed(facts: Facts, one: Statement) -> Iterator[Problem]:
    """Yield what is wrong with the names of one statement."""
    if not isinstance(one.predicate, URIRef):
        return
    name = str(one.predicate)
    if name.startswith(DESCRIBING):
        return
    ruled = _by_rule(facts, one, name)
    if ruled is not None:
        yield ruled
        return
    source = _source(facts, one)
    if source is None or not source.properties:
        return
    if name == RDF_TYPE:
        yield from _class(facts, one, source)
        return
    if name not in source.properties:
        yield _misplaced(facts, name, source)
        return
    yield from _graph(facts, one, name, source)


def _by_rule(facts: Facts, one: Statement, name: str) -> Problem | None:
    """Check a property against the pack's table, which holds where statistics lack, too."""
    row = facts.rows.get(name)
    if row is None or isinstance(one.service, Variable):
        return None
    inside = str(one.service or "")
    if row.service and not (inside and same_address(inside, row.service)):
        return Problem(
            "semantic",
            "wrong-service" if inside else "missing-service",
            f"{row.name} is only known at SERVICE <{row.service}>",
            f"put its pattern inside SERVICE <{row.service}> {{ … }}",
        )
    if row.graph and isinstance(one.graph, URIRef) and str(one.graph) != row.graph:
        return Problem(
            "semantic",
            "wrong-graph",
            f"the graph <{one.graph}> has no {row.name}",
            f"put its pattern inside GRAPH <{row.graph}> {{ … }}",
        )
    if row.values and not isinstance(one.object, Variable) and str(one.object) not in row.values:
        kind = "text" if isinstance(one.object, Literal) else facts.show(one.object)
        names = ", ".join(row.values.values())
        return Problem(
            "semantic",
            "unknown-value",
            f"{row.name} never leads to {kind}",
            f"write one of {names}, or a variable with its rdfs:label",
        )
    return None


def _source(facts: Facts, one: Statement) -> Source | None:
    """Return what answers a statement; None where that is not known."""
    if one.service is None:
        return facts.knowledge.sources[0]
    if not isinstance(one.service, URIRef):
        return None
    address = str(one.service)
    if facts.pack.endpoint and same_address(address, facts.pack.endpoint):
        return facts.knowledge.sources[0]
    return facts.knowledge.source_at(address)


def _misplaced(facts: Facts, name: str, source: Source) -> Problem:
    others = [s for s in facts.knowledge.sources if s is not source and name in s.properties]
    if others and others[0].address:
        where = f" inside SERVICE <{source.address}>" if source.address else ""
        code = "wrong-service" if source.address else "missing-service"
        return Problem(
            "semantic",
            code,
            f"{facts.short(name)} does not exist at {source.name or 'the endpoint'}{where}",
            f"put its pattern inside SERVICE <{others[0].address}> {{ … }}",
        )
    if others:
        return Problem(
            "semantic",
            "wrong-service",
            f"{facts.short(name)} does not exist inside SERVICE <{source.address}>",
            "put its pattern outside of SERVICE; variables bound inside can be used there",
        )
    known = facts.knowledge.sources
    near = facts.near(name, [n for s in (source, *known) for n in s.properties])
    return Problem(
        "semantic", "unknown-property", f"there is no property {facts.short(name)}", near
    )


def _class(facts: Facts, one: Statement, source: Source) -> Iterator[Problem]:
    if not isinstance(one.object, URIRef) or not source.classes:
        return
    name = str(one.object)
    if name in source.classes or name.startswith(DESCRIBING):
        return
    elsewhere = next((s for s in facts.knowledge.sources if name in s.classes), None)
    # An abstract class has no instances in the statistics, and may be asked for all the same.
    if elsewhere is None and name in facts.knowledge.names:
        return
    if elsewhere is not None and elsewhere.address:
        hint = f"put its pattern inside SERVICE <{elsewhere.address}> {{ … }}"
        code = "missing-service"
    elif elsewhere is not None:
        hint, code = "put its pattern outside of SERVICE", "wrong-service"
    else:
        known = [*source.classes, *facts.knowledge.names]
        hint, code = facts.near(name, known), "unknown-class"
    yield Problem("semantic", code, f"there is no class {facts.short(name)} here", hint)


def _graph(facts: Facts, one: Statement, name: str, source: Source) -> Iterator[Problem]:
    homes = source.graphs_of(name)
    if isinstance(one.graph, URIRef):
        named = [str(one.graph)]
    elif one.graph is None and one.service is None and facts.walked.dataset:
        named = list(facts.walked.dataset)
    elif one.graph is None and not source.union and homes:
        yield Problem(
            "semantic",
            "missing-graph",
            f"{facts.short(name)} is only found inside of its named graph",
            f"write GRAPH <{homes[0]}> {{ … }} around its pattern",
        )
        return
    else:
        return
    if not homes or any(graph in homes for graph in named):
        return
    if not any(graph in source.graphs for graph in named):
        near = next(iter(difflib.get_close_matches(named[0], source.graphs, n=1, cutoff=0.6)), "")
        hint = f"did you mean GRAPH <{near}>?" if near else f"use GRAPH <{homes[0]}>"
        yield Problem("semantic", "unknown-graph", f"there is no graph <{named[0]}>", hint)
        return
    outside = " or leave GRAPH out" if source.union else ""
    yield Problem(
        "semantic",
        "wrong-graph",
        f"the graph <{named[0]}> has no {facts.short(name)}",
        f"put its pattern inside GRAPH <{homes[0]}> {{ … }}{outside}",
    )
