"""The runtime of a run: everything that a program reads or writes goes through this object."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from rdflib import BNode, Graph

from reasoningbank import sparql
from reasoningbank.algebra import web
from reasoningbank.algebra.evaluation import Limits, Method, QueryRequest, Sent
from reasoningbank.algebra.queries import query_outline
from reasoningbank.algebra.terms import PREFIXES, BlankNodes, from_oxigraph, graph_from_quads
from reasoningbank.algebra.values import Row, Table
from reasoningbank.algebra.writes import Journal, Unanswered, Write, Writer, body_of
from reasoningbank.errors import BudgetError, EndpointError, UsageError

_Kind = TypeVar("_Kind", bound=sparql.Result)
Compose = Callable[[QueryRequest], str]
_BLOCK = 1_000
_UNLIMITED = 2**31 - 2
_STATUS_HINTS = {
    401: "give a credential for it",
    403: "give a credential for it",
    404: "check the address",
    406: "it has no RDF there; query an endpoint instead",
    410: "check the address",
}


@dataclass(frozen=True)
class Planned:
    """A write that a dry run did not do."""

    method: str  #: PUT, POST or PATCH
    url: str  #: The document
    body: str  #: What would be sent: N-Triples, or a SPARQL Update
    allowed: bool  #: Whether the run may write there


class Runtime(contextlib.AbstractContextManager["Runtime"]):
    """Reaches the Web and endpoints for one run, within its limits; threads may share it.

    Args:
        allow_write: Addresses below which documents may be written; none by default.
        allow_read: Addresses below which documents may be read and endpoints queried; None is any.
        limits: The budgets of the run.
        addresses: Public prefix → real prefix, to which requests are sent.
        credentials: The identities of the run for servers.
        compose: Turns a question into a query, for SPARQLString.
        record: Called with an event for each request.
        dry_run: Whether writes are listed in `planned` instead of done; reading is not affected.
        journal: The file in which writes are recorded; without one they are kept in memory.
        resume: Whether to continue that journal: what it records as done is not done again.
        program: Identifies the program with its variables and options.
        unanswered: What to do with a write of the resumed run whose outcome is unknown and the
            server cannot tell: ``ask`` ends the run, ``done`` and ``again`` decide.
        pause: Waits so many seconds between tries.
    """

    def __init__(
        self,
        *,
        allow_write: Sequence[str] = (),
        allow_read: Sequence[str] | None = None,
        limits: Limits | None = None,
        addresses: Mapping[str, str] | None = None,
        credentials: Sequence[web.Credential] = (),
        compose: Compose | None = None,
        record: web.Record | None = None,
        dry_run: bool = False,
        journal: Path | None = None,
        resume: bool = False,
        program: str = "",
        unanswered: Unanswered = "ask",
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        if dry_run and resume:
            what = "a dry run resumes and records nothing"
            raise UsageError(what, hint="omit one of the two", code="exclusive-options")
        self.limits = limits or Limits()
        self.dry_run = dry_run
        self._allow_write = tuple(web.checked(base) for base in allow_write)
        self._allow_read = None if allow_read is None else tuple(map(web.checked, allow_read))
        self._compose = compose
        self._planned: list[Planned] = []
        self._lock = threading.Lock()
        given = (addresses or {}).items()
        self._addresses = {web.checked(public): web.checked(real) for public, real in given}
        self._record = record or (lambda _: None)
        self._clients: dict[str, sparql.SPARQLClient] = {}
        self._web = web.Web(
            self.limits, self._addresses, tuple(credentials), record=self._record, pause=pause
        )
        self._journal = Journal(None if dry_run else journal, program=program, resume=resume)
        self._writer = Writer(self._web, self._journal, unanswered, self._check_write)

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close connections and the journal; `writes` and `planned` stay available."""
        with self._lock:
            for client in self._clients.values():
                client.close()
        self._journal.close()

    @property
    def requests(self) -> int:
        """Requests sent so far."""
        return self._web.requests

    @property
    def planned(self) -> tuple[Planned, ...]:
        """The writes that a dry run would have done, in order."""
        return tuple(self._planned)

    @property
    def writes(self) -> tuple[Write, ...]:
        """The writes of the run, and of those that it resumes, in order, with their outcome."""
        return self._journal.writes()

    def get(self, url: str) -> Graph:
        """Return the graph of a document."""
        address, headers = self._readable(url), {"Accept": web.ACCEPT}
        reply = self._web.ask("GET", address, headers=headers, may_follow=self._check_read)
        status = reply.status
        if not 200 <= status < 300:
            hint = _STATUS_HINTS.get(status, "try again later")
            raise EndpointError(
                web.summary(reply), where=url, hint=hint, code="http", status=status
            )
        return web.graph_of(reply, self.limits.rows)

    def send(self, method: Method, url: str, body: Graph | str, *, only_new: bool = False) -> Sent:
        """Write a document: PUT creates or replaces it, POST adds to it, PATCH changes it.

        Args:
            method: The method.
            url: The document.
            body: A graph; for PATCH the text of a SPARQL Update.
            only_new: Whether PUT fails if the document exists (``If-None-Match: *``).
        """
        address = web.checked(url, exactly=True)
        if isinstance(body, str) and web.moved(self._addresses, address) != address:
            # Else the server would resolve relative IRIs against the address that it is reached at.
            body = f"BASE <{url}>\n{body}"
        if self.dry_run:
            text = body_of(method, body, url).decode()
            allowed = web.within(self._allow_write, address) is not None
            self._planned.append(Planned(method, url, text, allowed))
            return Sent(0, url)
        self._check_write(address)
        return self._writer.send(method, url, address, body, only_new)

    def select(self, endpoint: str, query: str) -> Table:
        """Return the rows of a SELECT, streamed from disk if there are many."""
        result = self._query(sparql.TableResult, endpoint, query, "SELECT")
        return Table(result.variables, _rows(result))

    def graph(self, endpoint: str, query: str) -> Graph:
        """Return the graph of a CONSTRUCT or DESCRIBE; raises as `select` does."""
        result = self._query(sparql.GraphResult, endpoint, query, "CONSTRUCT", "DESCRIBE")
        return graph_from_quads(result.triples())

    def ask(self, endpoint: str, query: str) -> bool:
        """Return the result of an ASK; raises as `select` does."""
        return self._query(sparql.BooleanResult, endpoint, query, "ASK").value

    def compose(self, request: QueryRequest) -> str:
        if self._compose is None:
            hint = "give the run a model, or write the query itself"
            raise UsageError("the run has no model to write a query", hint=hint, code="no-model")
        return self._compose(request)

    def uuid(self, place: str) -> str:
        """Return a random UUID; a resumed run gets the same ones at the same places."""
        return self._journal.draw(place)

    def _query(self, kind: type[_Kind], endpoint: str, query: str, *forms: str) -> _Kind:
        # The result is read as a whole, to disk if it is large, before its first row is used. So a
        # loop that writes for hours keeps no endpoint waiting, and an incomplete result writes
        # nothing.
        address = self._readable(endpoint)
        client = self._client(address)
        query_outline(query, *forms)
        prepared = client.prepare(query)
        self._web.count(address)
        event: dict[str, Any] = {"event": "query", "endpoint": address, "form": prepared.form}
        most = self.limits.rows or _UNLIMITED
        try:
            timeout = min(self.limits.request_seconds, self._web.left_s)
            result = client.query(prepared, timeout_s=timeout, max_rows=most)
            event |= {"rows": result.n_rows, "seconds": result.seconds}
        except Exception as error:
            if isinstance(error, EndpointError) and error.where == client.config.address:
                error.at(address)  # the program knows the public address
            event["error"] = str(error)
            raise
        finally:
            self._record(event)
        if result.truncated:
            rows = "rows" if isinstance(result, sparql.TableResult) else "triples"
            if result.n_rows >= most:
                what = f"the result has more than the {most:,} {rows} that the run may take"
                hint = "add a LIMIT, or allow more rows"
                raise BudgetError(what, where=address, hint=hint, budget="rows")
            what = f"the result was cut off after {result.n_rows:,} {rows}"
            hint = "ask for less at once, with LIMIT"
            raise EndpointError(what, where=address, hint=hint, code="cut-off")
        assert isinstance(result, kind)
        return result

    def _client(self, endpoint: str) -> sparql.SPARQLClient:
        with self._lock:
            if endpoint not in self._clients:
                limits, credential = self.limits, self._web.credential(endpoint)
                config = sparql.EndpointConfig(
                    endpoint,
                    endpoint,
                    # Public endpoints know them too, so queries often do not declare them.
                    prefixes=PREFIXES,
                    query_url=web.moved(self._addresses, endpoint),
                    aliases=self._addresses,
                    services=self._allow_read,
                    max_rows=limits.rows or _UNLIMITED,
                    max_bytes=limits.result_bytes,
                    timeout_s=limits.request_seconds,
                    deadline_s=limits.wait_seconds,
                    retries=limits.tries - 1,
                    max_connections=16,
                    headers=credential.headers if credential else {},
                    tls=web.tls_context(credential) if credential else None,
                )
                self._clients[endpoint] = sparql.SPARQLClient(config)
            return self._clients[endpoint]

    def _readable(self, url: str) -> str:
        address = web.checked(url)
        self._check_read(address)
        return address

    def _check_read(self, address: str) -> None:
        if self._allow_read is not None and web.within(self._allow_read, address) is None:
            hint = f"allowed: {', '.join(self._allow_read) or 'none'}"
            raise UsageError("may not be read", where=address, hint=hint, code="read-not-allowed")

    def _check_write(self, address: str) -> None:
        if web.within(self._allow_write, address) is None:
            known = ", ".join(self._allow_write)
            hint = f"allowed: {known}" if known else "allow its base with --allow-write"
            what, code = "may not be written", "write-not-allowed"
            raise UsageError(what, where=address, hint=hint, code=code)


def _rows(result: sparql.TableResult) -> Iterator[Row]:
    """Yield the rows of a result, decoded block by block."""
    blanks = BlankNodes(BNode)
    for start in range(0, result.n_rows, _BLOCK):
        for cells in result.rows(start, start + _BLOCK):
            yield {
                name: from_oxigraph(cell, blanks)
                for name, cell in zip(result.variables, cells, strict=True)
                if cell is not None
            }
