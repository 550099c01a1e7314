"""Exploring what the data contain around the names of a query that returned nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rdflib.term import URIRef

from reasoningbank.errors import QueryError
from reasoningbank.findings import Finding
from reasoningbank.schema import Schema, Statement, explain_empty, probe_run, read_statements
from reasoningbank.sparql import (
    STANDARD_PREFIXES,
    EndpointConfig,
    SPARQLClient,
    compact,
    string_literal,
)

_TYPE = STANDARD_PREFIXES["rdf"] + "type"
#: Names of each kind that are explored, and names that one probe may return.
MOST_ASKED, MOST_NAMES = 3, 30
#: Probes of one endpoint; they count against the tool calls of the attempt.
MOST_QUERIES = 10
#: Classes and properties that are passed on to the prompt.
MOST_KEPT = 40
TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Explored:
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
    """Explore the data around the names of a query, at each endpoint that it queries."""
    with open_client(config) as client:
        try:
            prepared = client.prepare(sparql)
        except QueryError:
            return Explored()
        if prepared.parsed is None:
            return Explored()
        classes: dict[str, None] = {}
        properties: dict[str, None] = {}
        for endpoint, own in _by_endpoint(read_statements(prepared.text).statements, config):
            if endpoint is config:
                _Probes(client, classes, properties).around(own)
            else:
                with open_client(endpoint) as other:
                    _Probes(other, classes, properties).around(own)
    known = Schema.of(config, schema)
    why = explain_empty(prepared, known, probe_run(config), namespaces=config.namespaces)
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


class _Probes:
    """Probes one endpoint for the names of a query, and adds what it finds."""

    def __init__(
        self, client: SPARQLClient, classes: dict[str, None], properties: dict[str, None]
    ) -> None:
        self._client = client
        self._classes, self._properties = classes, properties
        self._left = MOST_QUERIES

    def around(self, own: list[Statement]) -> None:
        used = {str(s.predicate) for s in own if isinstance(s.predicate, URIRef)} - {_TYPE}
        kinds = {
            str(s.object) for s in own if str(s.predicate) == _TYPE and isinstance(s.object, URIRef)
        }
        terms = {term for s in own for term in (s.subject, s.object) if isinstance(term, URIRef)}
        for name in sorted(kinds)[:MOST_ASKED]:
            self._add_properties(f"?s a <{name}> ; ?property ?o .")
        for name in sorted(set(map(str, terms)) - kinds)[:MOST_ASKED]:
            self._add_properties(f"<{name}> ?property ?o .")
            self._add_properties(f"?s ?property <{name}> .")
        found = [name for name in sorted(used)[:MOST_ASKED] if self._add_classes(name)]
        for name in found:
            self._add_properties(f"?s <{name}> ?v ; ?property ?o .")
        for namespace in sorted({_namespace(name) for name in used if name not in found}):
            starts = f"FILTER(STRSTARTS(STR(?property), {string_literal(namespace)}))"
            self._add_properties(f"?s ?property ?o . {starts}")

    def _add_classes(self, name: str) -> bool:
        """Add the classes of the subjects of a property; return whether it has any subject."""
        classes = self._names("class", f"?s <{name}> ?o ; a ?class .")
        self._classes.update(dict.fromkeys(classes))
        return bool(classes or self._names("s", f"?s <{name}> ?o .", most=1))

    def _add_properties(self, pattern: str) -> None:
        self._properties.update(dict.fromkeys(self._names("property", pattern)))

    def _names(self, variable: str, pattern: str, most: int = MOST_NAMES) -> list[str]:
        """Return the names that match a pattern; none if the probe fails or none is left."""
        if self._left == 0:
            return []
        self._left -= 1
        # A default graph need not contain the named graphs.
        either = f"{{ {pattern} }} UNION {{ GRAPH ?g {{ {pattern} }} }}"
        query = f"SELECT DISTINCT ?{variable} WHERE {{ {either} }} LIMIT {most}"
        try:
            result = self._client.query(query, timeout_s=TIMEOUT_S, max_rows=most)
        except QueryError:
            return []
        namespaces = self._client.config.namespaces
        terms = [row[0] for row in result.rows(0, most)]  # type: ignore[union-attr]
        return [str(compact(t, namespaces)) for t in terms if t is not None]


def _namespace(name: str) -> str:
    cut = max(name.rfind("#"), name.rfind("/"))
    return name[: cut + 1] if cut > 0 else name
