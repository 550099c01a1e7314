"""The client of one endpoint: prepares, sends, retries, reads, tells whose fault a failure is."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace
from email.message import Message
from urllib.parse import urljoin, urlsplit

import pyarrow as pa

from reasoningbank.errors import EndpointError, QueryError, UsageError
from reasoningbank.sparql.cache import open_cache
from reasoningbank.sparql.endpoint import EndpointConfig, is_loopback
from reasoningbank.sparql.faults import (
    broken_answer,
    compressed,
    cut_by_engine,
    is_html,
    is_partial,
    is_timeout,
    page_instead,
    refusal,
    timed_out,
)
from reasoningbank.sparql.gate import gate_for
from reasoningbank.sparql.ntriples import NTriplesReader
from reasoningbank.sparql.query import PreparedQuery, prepare
from reasoningbank.sparql.readers import (
    Broken,
    Unfaithful,
    read_boolean,
    read_graph,
    read_table,
)
from reasoningbank.sparql.results import BooleanResult, GraphResult, Result, TableResult
from reasoningbank.sparql.transport import (
    Dropped,
    Reply,
    Sink,
    TimedOut,
    Unreachable,
    get,
    media_type,
    retry_after,
    send_query,
)
from reasoningbank.sparql.tsv import TSVReader

__all__ = ["SPARQLClient"]

TSV = "text/tab-separated-values"
JSON = "application/sparql-results+json, application/sparql-results+xml;q=0.5"
GRAPH = (
    "application/n-triples, text/turtle;q=0.8, application/rdf+xml;q=0.5, application/ld+json;q=0.3"
)
_MOST_SORTED = 10_000
#: Of the time that one try was to have: with less of it, being late is not the query's fault.
_FAIR = 0.9
_TRY_AGAIN = frozenset({429, 502, 503, 504})


class SPARQLClient:
    """Talks to one endpoint; safe to share between threads.

    Only the endpoint's own address can be reached: redirects to another host are refused, and
    `fetch` takes addresses of the same origin alone.

    Args:
        config: The endpoint.

    Examples:
        >>> client = SPARQLClient(EndpointConfig("http://127.0.0.1:9/sparql", "Nobody"))
        >>> client.query("SELECT * { ?s ?p ")
        Traceback (most recent call last):
        ...
        reasoningbank.errors.QueryError: line 1, column 15: the query cannot be parsed ...
    """

    def __init__(self, config: EndpointConfig) -> None:
        self.config = config
        self._gate = gate_for(config.address, config.max_connections)
        self._tsv = config.tsv
        self._closed = False

    def __enter__(self) -> SPARQLClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let no further request out; connections are not kept between requests."""
        self._closed = True

    def prepare(self, query: str, *, limit: int | None = None) -> PreparedQuery:
        """Prepare a query with this endpoint's prefixes, aliases and allowed services."""
        return prepare(
            query,
            prefixes=self.config.namespaces,
            limit=limit,
            aliases=self.config.aliases,
            services=self.config.allowed_services,
        )

    def query(
        self,
        query: str | PreparedQuery,
        *,
        timeout_s: float | None = None,
        max_rows: int | None = None,
    ) -> Result:
        """Ask the endpoint.

        One row more than wanted is asked for, so that `truncated` is exact: where a prepared
        query's LIMIT was added or lowered, the rows beyond it are counted as cut off.

        Args:
            query: A query text, prepared here, or a prepared query.
            timeout_s: Seconds for one try; the endpoint's setting by default.
            max_rows: Most rows or triples; the endpoint's setting by default.

        Raises:
            QueryError: The query is wrong, refused by the engine, or took too long.
            EndpointError: The endpoint is down, refuses to serve, or answers with nonsense.
            UsageError: The client is closed.
        """
        began = time.monotonic()
        prepared = self.prepare(query) if isinstance(query, str) else query
        rows = self.config.max_rows if max_rows is None else max_rows
        if prepared.limit_changed and prepared.limit is not None:
            rows = min(rows, prepared.limit)
        prepared = prepared.limited(rows + 1)
        timeout = self.config.timeout_s if timeout_s is None else timeout_s
        if self.config.cache is None or is_loopback(self.config.address):
            return self._ask(prepared, rows, timeout, began)
        cache = open_cache(self.config.cache)
        bounds = (rows, self.config.max_bytes, self.config.headers)
        key = cache.key_of(self.config.address, prepared.text, prepared.form, *bounds)
        kept = cache.get(key, max_age_s=self.config.cache_age_s, source=self.config.source)
        if kept is not None:
            return kept
        result = self._ask(prepared, rows, timeout, began)
        # What the engine cut short before the wanted number may be whole the next time.
        if not result.truncated or result.n_rows >= rows:
            cache.put(key, result)
        return result

    def _ask(self, prepared: PreparedQuery, rows: int, timeout: float, began: float) -> Result:
        if prepared.form == "SELECT":
            try:
                return self._table(prepared, rows, timeout, began)
            except QueryError as error:
                if "SR353" not in error.what or prepared.limit != rows + 1:
                    raise
            # Virtuoso sorts no more than so many rows, and the LIMIT that it refused was ours.
            most = min(rows, _MOST_SORTED)
            result = self._table(prepared.limited(most), most, timeout, began)
            return replace(result, truncated=result.truncated or result.n_rows >= most)
        accept = JSON if prepared.form == "ASK" else GRAPH
        reply = self._send(
            prepared,
            accept,
            timeout,
            lambda headers: None if prepared.form == "ASK" else _graph_reader(headers, rows),
        )
        partial = is_partial(reply)
        try:
            if prepared.form == "ASK":
                value = read_boolean(reply.body)
                if partial and not value:
                    raise timed_out(self.config, "it looked at a part of the data, in vain")
                return BooleanResult(value, time.monotonic() - began, self.config.source)
            if isinstance(reply.sink, NTriplesReader):
                table, n, more = reply.sink.finish(cut=reply.cut)
                seconds = time.monotonic() - began
                source, n_chars = self.config.source, reply.sink.n_chars
                return GraphResult(table, n, more or partial, seconds, source, n_chars)
            triples, more = read_graph(reply.body, reply.media_type, cut=reply.cut, max_rows=rows)
        except Broken as error:
            raise broken_answer(self.config, prepared, str(error)) from None
        except Unfaithful as error:
            raise self._nonsense(str(error)) from None
        return GraphResult.of(
            triples,
            truncated=more or partial,
            seconds=time.monotonic() - began,
            source=self.config.source,
        )

    def fetch(self, path: str, accept: str, *, timeout_s: float | None = None) -> Reply:
        """GET a document of the endpoint's own origin, e.g. its service description.

        Args:
            path: Address, or path relative to the endpoint's address.
            accept: The Accept header.
            timeout_s: Seconds for one try; the endpoint's setting by default.

        Returns:
            The reply, whatever its status.

        Raises:
            UsageError: The address is of another origin.
            EndpointError: The endpoint cannot be reached.
        """
        url = urljoin(self.config.address, path)
        if urlsplit(url)[:2] != urlsplit(self.config.address)[:2]:
            raise UsageError(
                "not an address of this endpoint", where=url, hint=f"stay on {self.config.address}"
            )
        timeout = self.config.timeout_s if timeout_s is None else timeout_s
        try:
            return self._exchange(
                lambda left: get(self.config, url, accept, timeout_s=left), timeout
            )
        except TimedOut:
            raise EndpointError(
                f"no answer within {timeout:g} s", where=url, hint="try again later"
            ) from None

    def _table(
        self, prepared: PreparedQuery, rows: int, timeout: float, began: float
    ) -> TableResult:
        try:
            found, reply = self._read_table(prepared, rows, timeout)
        except Broken as error:
            raise broken_answer(self.config, prepared, str(error)) from None
        except Unfaithful as error:
            raise self._nonsense(str(error)) from None
        table, n_rows, more = found
        more = more or cut_by_engine(reply, n_rows, prepared.limit)
        n_chars = reply.sink.n_chars if isinstance(reply.sink, TSVReader) else None
        seconds = time.monotonic() - began
        return TableResult(table, n_rows, more, seconds, self.config.source, n_chars)

    def _read_table(
        self, prepared: PreparedQuery, rows: int, timeout: float
    ) -> tuple[tuple[pa.Table, int, bool], Reply]:
        failure: Exception | None = None
        if self._tsv:
            reply = self._send(prepared, TSV, timeout, lambda headers: _tsv_reader(headers, rows))
            engine = (reply.headers.get("Server") or "").lower()
            if isinstance(reply.sink, TSVReader):
                try:
                    return reply.sink.finish(cut=reply.cut), reply
                except Unfaithful as error:
                    failure = error
                except Broken as error:
                    # Oxigraph's cells are always well formed: this is its message.
                    if "oxigraph" in engine or is_timeout(str(error)):
                        raise
                    failure = error
            elif reply.media_type not in (TSV, ""):
                found = read_table(reply.body, reply.media_type, cut=reply.cut, max_rows=rows)
                return found, reply
            self._tsv = False
        reply = self._send(prepared, JSON, timeout)
        if failure is not None and reply.media_type == TSV:
            # It has nothing else.
            raise failure
        found = read_table(reply.body, reply.media_type, cut=reply.cut, max_rows=rows)
        return found, reply

    def _send(
        self,
        prepared: PreparedQuery,
        accept: str,
        timeout: float,
        sink_for: Callable[[Message], Sink | None] = lambda _: None,
    ) -> Reply:
        def checked(headers: Message) -> Sink | None:
            if problem := compressed(self.config, headers):
                raise problem
            return sink_for(headers)

        def send(left: float) -> Reply:
            return send_query(
                self.config,
                prepared.text,
                prepared.form,
                accept,
                timeout_s=left,
                sink_for=checked,
            )

        try:
            reply = self._exchange(send, timeout)
        except TimedOut:
            raise timed_out(self.config, f"no answer within {timeout:g} s") from None
        if reply.status == 406 and accept == TSV:
            self._tsv = False
            return self._send(prepared, JSON, timeout)
        if not 200 <= reply.status < 300:
            raise refusal(self.config, prepared, reply)
        if is_html(reply):
            raise page_instead(self.config, reply)
        return reply

    def _nonsense(self, detail: str) -> QueryError | EndpointError:
        return EndpointError(
            f"the answer cannot be read: {detail}",
            where=self.config.address,
            hint="check that this is a SPARQL endpoint",
        )

    def _exchange(self, send: Callable[[float], Reply], timeout: float) -> Reply:
        """Send until there is an answer worth reading, or the tries or the time are used up."""
        if self._closed:
            raise UsageError("the client is closed", where=self.config.source)
        deadline = time.monotonic() + max(self.config.deadline_s, timeout)
        for attempt in range(self.config.retries + 1):
            failure = ""
            reply: Reply | None = None
            left = deadline - time.monotonic()
            try:
                with self._gate.slot(self.config.min_interval_s, left):
                    given = min(timeout, max(0.1, deadline - time.monotonic()))
                    reply = send(given)
            except TimedOut:
                # Waiting in our own queue is not the query's fault.
                if given >= _FAIR * timeout:
                    raise
                failure = f"no answer in the {given:.2g} s that waiting for others had left"
                break
            except TimeoutError:
                failure = "too many requests are already waiting"
                break
            except Unreachable as error:
                raise EndpointError(
                    f"no connection: {error}",
                    where=self.config.address,
                    hint="check the address and that the endpoint is up",
                ) from None
            except Dropped as error:
                failure = f"the connection was dropped: {error}"
            if reply is not None and reply.status not in _TRY_AGAIN:
                return reply
            asked = None if reply is None else retry_after(reply.headers)
            pause = self.config.backoff_s * 2**attempt * random.uniform(0.75, 1.25)
            pause = max(pause, asked or 0.0)
            if attempt == self.config.retries or time.monotonic() + pause >= deadline:
                break
            time.sleep(pause)
        if reply is not None:
            return reply
        raise EndpointError(failure, where=self.config.address, hint="try again later")


def _tsv_reader(headers: Message, rows: int) -> TSVReader | None:
    # Virtuoso's TSV leaves out datatypes and language tags.
    if "virtuoso" in (headers.get("Server") or "").lower():
        return None
    return TSVReader(rows) if media_type(headers) in (TSV, "") else None


def _graph_reader(headers: Message, rows: int) -> NTriplesReader | None:
    lines = media_type(headers) in ("application/n-triples", "text/plain", "")
    return NTriplesReader(rows) if lines else None
