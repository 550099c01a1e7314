"""What a property leads to in the data, where a schema leaves it open; asked of loopback only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from pyoxigraph import NamedNode

from reasoningbank.errors import QueryError
from reasoningbank.schema import Schema
from reasoningbank.sparql import STANDARD_PREFIXES, SPARQLClient, TableResult, iri

__all__ = ["Seen", "look", "unsure"]

#: Triples of one property that are looked at, and properties.
MOST_TRIPLES = 200_000
MOST_PROPERTIES = 150

#: By property and class: the classes and datatypes of the values.
Seen = Mapping[str, Mapping[str, tuple[str, ...]]]

_TYPE = STANDARD_PREFIXES["rdf"] + "type"


def unsure(vocabulary: Schema) -> tuple[str, ...]:
    """Return the properties of which the vocabulary does not say what exactly they lead to.

    These have no range, or a class with classes below it, of which only some may occur.
    """
    return tuple(
        name
        for name, term in vocabulary.properties.items()
        if name != _TYPE
        and (term.in_data or not vocabulary.complete)
        and (not term.range or any(vocabulary.below(of) for of in term.range))
    )[:MOST_PROPERTIES]


def look(client: SPARQLClient, properties: Iterable[str]) -> Seen:
    """Ask which classes the subjects of some properties have, and what their values are.

    A property that the endpoint cannot answer for, or none of whose subjects has a class, is left
    out: about it, nothing is known.

    Raises:
        EndpointError: The endpoint cannot be reached.
    """
    seen: dict[str, Mapping[str, tuple[str, ...]]] = {}
    for name in properties:
        query = f"""SELECT DISTINCT ?class ?value WHERE {{
            {{ SELECT ?s ?o WHERE {{ ?s {iri(name)} ?o }} LIMIT {MOST_TRIPLES} }}
            ?s a ?class . OPTIONAL {{ ?o a ?type }}
            BIND(COALESCE(?type, DATATYPE(?o)) AS ?value) }}"""
        try:
            result = client.query(query)
        except QueryError:
            continue
        assert isinstance(result, TableResult), "a SELECT has a table"
        found: dict[str, set[str]] = defaultdict(set)
        for of, value in result.rows():
            if isinstance(of, NamedNode):
                found[of.value] |= {value.value} if isinstance(value, NamedNode) else set()
        if found:
            seen[name] = {of: tuple(sorted(values)) for of, values in sorted(found.items())}
    return seen
