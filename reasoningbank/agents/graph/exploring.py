"""Looking at what the data really have, where a query gave nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rdflib.term import URIRef

from reasoningbank.errors import QueryError
from reasoningbank.schema import (
    Schema,
    Statement,
    as_lines,
    explain_empty,
    probe_run,
    read_statements,
)
from reasoningbank.sparql import (
    STANDARD_PREFIXES,
    EndpointConfig,
    SPARQLClient,
    compact,
    string_literal,
)

__all__ = ["Explored", "explore"]

_TYPE = STANDARD_PREFIXES["rdf"] + "type"
#: Names that are asked about, of each kind; and names that one answer may give.
MOST_ASKED, MOST_NAMES = 3, 30
#: Queries to one endpoint: they count against the tool calls of the attempt.
MOST_QUERIES = 10
#: Classes and properties that are handed on: a prompt holds no more.
MOST_KEPT = 40
TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Explored:
    """What was found.

    Attributes:
        classes: Classes of what the query is about, as a prompt writes them.
        properties: Properties that it has.
        findings: Why the query gave nothing, as far as probes tell.
    """

    classes: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()


def explore(
    sparql: str,
    open_client: Callable[[EndpointConfig], SPARQLClient],
    config: EndpointConfig,
    schema: Path | None = None,
) -> Explored:
    """Find out what there is around the names of a query, at each endpoint that it asks.

    Instances of its classes, and what has its properties, are asked for the properties that they
    have; a namespace of which no property is in use, for those that are.

    Args:
        sparql: The query that gave nothing.
        open_client: Opens a connection; every query of it is metered and recorded. The probes of a
            diagnosis are not: they are bounded by themselves, as those of tools are.
        config: The endpoint.
        schema: The pack's schema, for the vocabulary.

    Returns:
        What was found; nothing where the query does not parse.

    Raises:
        EndpointError: The endpoint fails.
        BudgetError: The tool calls are used up.
    """
    with open_client(config) as client:
        try:
            prepared = client.prepare(sparql)
        except QueryError:
            return Explored()
        if prepared.parsed is None:
            return Explored()
        statements = read_statements(prepared.text).statements
        classes: dict[str, None] = {}
        properties: dict[str, None] = {}
        for endpoint, own in _by_endpoint(statements, config):
            if endpoint is config:
                found = _Look(client).around(own)
            else:
                with open_client(endpoint) as other:
                    found = _Look(other).around(own)
            classes.update(dict.fromkeys(found.classes))
            properties.update(dict.fromkeys(found.properties))
    names = Schema.of(config, schema)
    told = explain_empty(prepared, names, probe_run(config), namespaces=config.namespaces)
    kept = tuple(classes)[:MOST_KEPT], tuple(properties)[:MOST_KEPT]
    return Explored(*kept, as_lines(told))


def _by_endpoint(
    statements: Iterable[Statement], config: EndpointConfig
) -> Iterator[tuple[EndpointConfig, list[Statement]]]:
    """Yield the endpoints that can be asked, each with the statements that it answers."""
    groups: dict[str, list[Statement]] = {}
    for one in statements:
        groups.setdefault(str(one.service or ""), []).append(one)
    for address, own in groups.items():
        known = [config, *config.federated] if address else [config]
        # A prepared query names where a public address is really asked.
        endpoint = next((one for one in known if not address or one.is_at(address)), None)
        if endpoint is not None:
            yield endpoint, own


class _Look:
    """Asks one endpoint about the names of a query."""

    def __init__(self, client: SPARQLClient) -> None:
        self._client = client
        self._left = MOST_QUERIES
        self._classes: dict[str, None] = {}
        self._properties: dict[str, None] = {}

    def around(self, statements: Iterable[Statement]) -> Explored:
        own = list(statements)
        asked = {str(s.predicate) for s in own if isinstance(s.predicate, URIRef)} - {_TYPE}
        kinds = {
            str(s.object) for s in own if str(s.predicate) == _TYPE and isinstance(s.object, URIRef)
        }
        things = {
            str(term)
            for s in own
            for term in (s.subject, s.object)
            if isinstance(term, URIRef) and str(term) not in kinds
        }
        for name in sorted(kinds)[:MOST_ASKED]:
            self._properties_of(f"?s a <{name}> ; ?property ?o .")
        for name in sorted(things)[:MOST_ASKED]:
            self._properties_of(f"<{name}> ?property ?o .")
            self._properties_of(f"?s ?property <{name}> .")
        used = [name for name in sorted(asked)[:MOST_ASKED] if self._classes_of(name)]
        for name in used:
            self._properties_of(f"?s <{name}> ?v ; ?property ?o .")
        for namespace in sorted({_namespace(name) for name in asked if name not in used}):
            self._properties_in(namespace)
        return Explored(tuple(self._classes), tuple(self._properties))

    def _classes_of(self, name: str) -> bool:
        """Keep the classes of what has a property; say whether anything has it."""
        classes = self._names("class", f"?s <{name}> ?o ; a ?class .")
        self._classes.update(dict.fromkeys(classes))
        return bool(classes or self._names("s", f"?s <{name}> ?o .", most=1))

    def _properties_of(self, pattern: str) -> None:
        self._properties.update(dict.fromkeys(self._names("property", pattern)))

    def _properties_in(self, namespace: str) -> None:
        starts = f"FILTER(STRSTARTS(STR(?property), {string_literal(namespace)}))"
        self._properties_of(f"?s ?property ?o . {starts}")

    def _names(self, variable: str, pattern: str, most: int = MOST_NAMES) -> list[str]:
        """Return the names that a pattern gives; none where it takes too long, or is too much."""
        if self._left == 0:
            return []
        self._left -= 1
        # A default graph need not hold what the named graphs do.
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
