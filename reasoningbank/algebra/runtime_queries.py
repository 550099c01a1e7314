"""The queries of a run: each endpoint's client, and its answers as values of the algebra.

A result is read whole, to disk where it is large, before its first row is used. So a loop that
writes for hours keeps no endpoint waiting, and a result that breaks off has led to no writes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from rdflib import Graph

from reasoningbank.algebra.jsonld import PREFIXES, graph_from_quads
from reasoningbank.algebra.runtime_limits import Limits, Spent
from reasoningbank.algebra.terms import BlankNodes, from_oxigraph
from reasoningbank.algebra.values import Row, Table
from reasoningbank.algebra.web_address import Addresses
from reasoningbank.algebra.web_credentials import Credential, tls_context
from reasoningbank.errors import BudgetError, EndpointError, QueryError
from reasoningbank.sparql import (
    BooleanResult,
    EndpointConfig,
    GraphResult,
    Result,
    SPARQLClient,
    TableResult,
)

__all__ = ["Queries"]

_BLOCK = 1_000
_UNLIMITED = 2**31 - 2


class Queries:
    """Asks the endpoints of a run; safe to share between threads.

    Args:
        limits: What one query may take.
        spent: Where requests are counted.
        addresses: Which addresses are asked elsewhere.
        credential: Returns what the run has to show at an address.
        record: Called with what happened, query by query.
        services: Where SERVICE may lead besides the endpoint; None leaves that to the endpoint.
    """

    def __init__(
        self,
        limits: Limits,
        spent: Spent,
        addresses: Addresses,
        credential: Callable[[str], Credential | None],
        record: Callable[[Mapping[str, object]], None],
        services: Sequence[str] | None = None,
    ) -> None:
        self._limits = limits
        self._spent = spent
        self._addresses = addresses
        self._credential = credential
        self._record = record
        self._services = None if services is None else tuple(services)
        self._lock = threading.Lock()
        self._clients: dict[str, SPARQLClient] = {}

    def close(self) -> None:
        """Let no further query out."""
        with self._lock:
            for client in self._clients.values():
                client.close()

    def select(self, endpoint: str, query: str) -> Table:
        """Return the rows of a SELECT; they are decoded as they are read, and can be read again."""
        result = self._ask(endpoint, query, ("SELECT",))
        assert isinstance(result, TableResult)
        return Table(result.variables, _Rows(result))

    def graph(self, endpoint: str, query: str) -> Graph:
        """Return the graph of a CONSTRUCT or DESCRIBE."""
        result = self._ask(endpoint, query, ("CONSTRUCT", "DESCRIBE"))
        assert isinstance(result, GraphResult)
        return graph_from_quads(result.triples())

    def ask(self, endpoint: str, query: str) -> bool:
        """Return the answer of an ASK."""
        result = self._ask(endpoint, query, ("ASK",))
        assert isinstance(result, BooleanResult)
        return result.value

    def _ask(self, endpoint: str, query: str, forms: tuple[str, ...]) -> Result:
        client = self._client(endpoint)
        prepared = client.prepare(query)
        if prepared.form not in forms:
            raise QueryError(
                f"expected a {' or '.join(forms)}, got a {prepared.form}",
                where=endpoint,
                hint=f"use the operation {prepared.form}",
            )
        self._spent.request(endpoint)
        event: dict[str, object] = {"event": "query", "endpoint": endpoint, "form": prepared.form}
        most = self._limits.rows or _UNLIMITED
        try:
            timeout = min(self._limits.request_seconds, self._spent.left_s)
            result = client.query(prepared, timeout_s=timeout, max_rows=most)
            event |= {"rows": result.n_rows, "seconds": result.seconds}
        except Exception as error:
            if isinstance(error, EndpointError) and error.where == client.config.address:
                # It is known by the address that the program has.
                error.at(endpoint)
            event["error"] = str(error)
            raise
        finally:
            self._record(event)
        if result.truncated:
            kind = "rows" if isinstance(result, TableResult) else "triples"
            if result.n_rows >= most:
                what = f"the result has more than the {most:,} {kind} that the run may take"
                raise BudgetError(what, where=endpoint, hint="add a LIMIT, or allow more rows")
            what = f"the answer was cut off after {result.n_rows:,} {kind}"
            raise EndpointError(what, where=endpoint, hint="ask for less at once, with LIMIT")
        return result

    def _client(self, endpoint: str) -> SPARQLClient:
        with self._lock:
            if endpoint not in self._clients:
                credential = self._credential(endpoint)
                config = EndpointConfig(
                    endpoint,
                    endpoint,
                    # Public endpoints know them too, so queries often do without declaring them.
                    prefixes=PREFIXES,
                    query_url=self._addresses.asked_at(endpoint),
                    aliases=self._addresses.real,
                    services=self._services,
                    max_rows=self._limits.rows or _UNLIMITED,
                    max_bytes=self._limits.result_bytes,
                    timeout_s=self._limits.request_seconds,
                    deadline_s=self._limits.wait_seconds,
                    retries=self._limits.tries - 1,
                    max_connections=16,
                )
                if credential is not None:
                    tls = tls_context(credential)
                    config = replace(config, headers=credential.headers, tls=tls)
                self._clients[endpoint] = SPARQLClient(config)
            return self._clients[endpoint]


class _Rows:
    """The rows of a result, decoded block by block each time they are gone through."""

    def __init__(self, result: TableResult) -> None:
        self._result = result

    def __iter__(self) -> Iterator[Row]:
        names = self._result.variables
        blanks = BlankNodes()
        for start in range(0, self._result.n_rows, _BLOCK):
            for cells in self._result.rows(start, start + _BLOCK):
                yield {
                    name: from_oxigraph(cell, blanks)
                    for name, cell in zip(names, cells, strict=True)
                    if cell is not None
                }
