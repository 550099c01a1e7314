"""Exploring what the data contain around the names of a query that returned nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pyoxigraph import NamedNode
from rdflib.term import URIRef

from reasoningbank.errors import QueryError
from reasoningbank.findings import Finding
from reasoningbank.schema import (
    Schema,
    Statement,
    explain_empty,
    namespace_of,
    probe_run,
    read_statements,
)
from reasoningbank.sparql import STANDARD_PREFIXES, EndpointConfig, SPARQLClient, compact

_TYPE = STANDARD_PREFIXES["rdf"] + "type"
#: Metered lookups at one endpoint, and names that a lookup or a namespace gives.
MOST_LOOKUPS, MOST_NAMES = 10, 30
#: Classes and properties that are passed on to the prompt.
MOST_KEPT = 40
TIMEOUT_S = 10.0


class Explored(NamedTuple):
    """Classes and properties as a prompt writes them, and why the query returned nothing."""

    classes: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


def explore(
    sparql: str,
    open_client: Callable[[EndpointConfig], SPARQLClient],
    config: EndpointConfig,
    schema: Path | None = None,
) -> Explored:
    """Find the classes and properties around the names of a query, at each endpoint it queries."""
    with open_client(config) as client:
        try:
            prepared = client.prepare(sparql)
            statements = read_statements(prepared.text).statements
        except QueryError:
            return Explored()
    own = Schema.of(config, schema)
    classes: dict[str, None] = {}
    properties: dict[str, None] = {}
    for endpoint, asked in _by_endpoint(statements, config):
        with open_client(endpoint) as client:
            look = _Look(client, own if endpoint is config else Schema.of(endpoint))
            near, found = look.around(asked)
            namespaces = client.config.namespaces
        classes.update({str(compact(NamedNode(iri), namespaces)): None for iri in near})
        properties.update({str(compact(NamedNode(iri), namespaces)): None for iri in found})
    why = explain_empty(prepared, own, probe_run(config), namespaces=config.namespaces)
    return Explored(tuple(classes)[:MOST_KEPT], tuple(properties)[:MOST_KEPT], tuple(why))


def _by_endpoint(
    statements: Iterable[Statement], config: EndpointConfig
) -> Iterator[tuple[EndpointConfig, list[Statement]]]:
    """Yield the known endpoints, each with the statements that it answers."""
    groups: dict[str, list[Statement]] = {}
    for one in statements:
        groups.setdefault(str(one.service or ""), []).append(one)
    for address, own in groups.items():
        known = [config, *config.federated] if address else [config]
        # A prepared query contains the local address of a public endpoint.
        endpoint = next((one for one in known if not address or one.is_at(address)), None)
        if endpoint is not None:
            yield endpoint, own


@dataclass
class _Look:
    """Names of one endpoint: from its schema, or from lookups of what the schema lacks."""

    client: SPARQLClient
    schema: Schema
    left: int = MOST_LOOKUPS

    def around(self, asked: list[Statement]) -> tuple[list[str], list[str]]:
        """Return classes with the query's properties, and properties around its names."""
        used = {str(s.predicate) for s in asked if isinstance(s.predicate, URIRef)} - {_TYPE}
        kinds = {str(s.object) for s in asked if str(s.predicate) == _TYPE}
        ends = {t for s in asked if str(s.predicate) != _TYPE for t in (s.subject, s.object)}
        classes = [one for name in sorted(used) for one in self._classes_with(name)]
        found = [p for one in (*sorted(kinds), *classes) for p in self._properties_of(one)]
        for name in sorted(str(end) for end in ends if isinstance(end, URIRef)):
            found += self._names(f"<{name}> ?name ?o .")
            found += self._names(f"?s ?name <{name}> .")
        known = self.schema.properties
        for namespace in sorted({namespace_of(name) for name in used if name not in known}):
            found += [p for p in known if namespace_of(p) == namespace][:MOST_NAMES]
        return classes, found

    def _classes_with(self, name: str) -> list[str]:
        subjects = sorted(self.schema.subjects_of(name))
        return subjects or self._names(f"?s <{name}> ?o ; a ?name .")

    def _properties_of(self, kind: str) -> list[str]:
        own = list(self.schema.properties_of(kind))
        return own or self._names(f"?s a <{kind}> ; ?name ?o .")

    def _names(self, pattern: str) -> list[str]:
        if self.left == 0:
            return []
        self.left -= 1
        # A default graph need not contain the named graphs.
        either = f"{{ {pattern} }} UNION {{ GRAPH ?g {{ {pattern} }} }}"
        query = f"SELECT DISTINCT ?name WHERE {{ {either} }} LIMIT {MOST_NAMES}"
        try:
            result = self.client.query(query, timeout_s=TIMEOUT_S, max_rows=MOST_NAMES)
        except QueryError:
            return []
        terms = [row[0] for row in result.rows(0, MOST_NAMES)]  # type: ignore[union-attr]
        return [term.value for term in terms if isinstance(term, NamedNode)]
