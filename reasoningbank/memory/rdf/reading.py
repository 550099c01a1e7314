"""Items read from RDF: all of a file or, at the first thing wrong with it, none."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import pyoxigraph as ox

from reasoningbank.errors import UsageError
from reasoningbank.memory.item import MemoryItem
from reasoningbank.memory.rdf import terms
from reasoningbank.memory.rdf.formats import RdfName, rdf_format
from reasoningbank.memory.rdf.shapes import objections
from reasoningbank.memory.rdf.terms import name_of

__all__ = ["from_rdf"]

#: Subject → property → its values.
Graph = Mapping[str, Mapping[str, list[str]]]


def from_rdf(data: bytes, format: RdfName = "turtle", *, where: str = "") -> list[MemoryItem]:
    """Read what `to_rdf` wrote, or another wrote by the same shapes.

    Graph names and statements of other vocabularies are passed over.

    Args:
        data: The document.
        format: Its format.
        where: How errors call it.

    Returns:
        The items, by their ids.

    Raises:
        UsageError: It does not parse, holds no item, breaks a shape, or holds an item whose text
            was changed after it got its id.

    Examples:
        >>> from reasoningbank.memory.rdf.writing import to_rdf
        >>> item = MemoryItem("Names", "", "Ask for rdfs:label.", "seed", tags=("rdfs:label",))
        >>> from_rdf(to_rdf([item])) == [item]
        True
    """
    try:
        triples = [quad.triple for quad in ox.parse(data, format=rdf_format(format))]
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"cannot be read as {format}: {error}", where=where) from error
    graph: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for subject, predicate, value in dict.fromkeys(triples):
        if not isinstance(subject, ox.Triple) and not isinstance(value, ox.Triple):
            graph[str(subject)][predicate.value].append(
                str(value) if isinstance(value, ox.BlankNode | ox.NamedNode) else value.value
            )
    found = sorted(
        subject
        for subject, values in graph.items()
        if f"<{terms.MEMORY_ITEM}>" in values.get(terms.TYPE, ())
    )
    if not found:
        raise UsageError("holds no memory item", where=where, hint="is it what `to_rdf` writes?")
    wrong = objections(triples)
    if wrong:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise UsageError(f"breaks the shapes of memory: {wrong[0]}{more}", where=where)
    try:
        return [_item(graph, subject) for subject in found]
    except UsageError as error:
        raise UsageError(error.what, where=where, hint=error.hint) from error


def _item(graph: Graph, subject: str) -> MemoryItem:
    me = graph[subject]
    superseded_by = _iri(_one(me, terms.SUPERSEDED_BY))
    return MemoryItem.from_json(
        {
            "id": name_of(_iri(subject), terms.ITEM),
            **_texts(me, terms.ITEM_TEXTS),
            "scope": _texts(me, terms.SCOPE_TEXTS),
            "counters": {f: int(_one(me, iri) or 0) for f, iri in terms.COUNTERS.items()},
            "superseded_by": name_of(superseded_by, terms.ITEM),
            "tags": [_one(graph[node], terms.VALUE) for node in _ordered(graph, me, terms.TAG)],
            "turns": [
                _texts(graph[node], terms.TURN_TEXTS) for node in _ordered(graph, me, terms.TURN)
            ],
            **_origins(graph, me),
        }
    )


def _origins(graph: Graph, me: Mapping[str, list[str]]) -> dict[str, Any]:
    first, *others = (
        _texts(graph[node], terms.ORIGIN_TEXTS) for node in _ordered(graph, me, terms.ORIGIN)
    )
    return {"provenance": first, "evidence": others}


def _ordered(graph: Graph, me: Mapping[str, list[str]], predicate: str) -> list[str]:
    """Return the nodes of a property in their order.

    Raises:
        UsageError: Two claim one place.
    """
    places: dict[int, str] = {}
    for node in me.get(predicate, ()):
        place = int(_one(graph[node], terms.POSITION))
        if place in places:
            what = f"{places[place]} and {node} have both rb:position {place}"
            raise UsageError(f"breaks the shapes of memory: {what}")
        places[place] = node
    return [places[place] for place in sorted(places)]


def _texts(node: Mapping[str, list[str]], fields: Mapping[str, str]) -> dict[str, str]:
    return {field: _one(node, predicate) for field, predicate in fields.items()}


def _one(node: Mapping[str, list[str]], predicate: str) -> str:
    return (node.get(predicate) or [""])[0]


def _iri(written: str) -> str:
    return written.removeprefix("<").removesuffix(">")
