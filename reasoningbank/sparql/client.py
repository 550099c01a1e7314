"""The client of one endpoint: prepares, sends, retries, reads, and classifies failures."""

from __future__ import annotations

import math
import re
import time
import urllib.request
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from email.message import Message
from typing import Any
from urllib.parse import urljoin, urlsplit

from SPARQLWrapper import POST, SPARQLWrapper

import reasoningbank.http as http
from reasoningbank.cache import DiskCache
from reasoningbank.errors import EndpointError, QueryError, QueryTimeoutError, UsageError
from reasoningbank.http import MESSAGE_CHARS, Reply, SinkFor, TimedOut, gate_for, media_type
from reasoningbank.sparql import formats
from reasoningbank.sparql.endpoint import EndpointConfig, is_loopback
from reasoningbank.sparql.formats import Broken, Unfaithful
from reasoningbank.sparql.query import PreparedQuery, prepare
from reasoningbank.sparql.results import (
    AnswerCache,
    BooleanResult,
    GraphResult,
    Result,
    TableResult,
)
from reasoningbank.sparql.terms import Term, short
from reasoningbank.spill import Spool

TSV = "text/tab-separated-values"
JSON = "application/sparql-results+json, application/sparql-results+xml;q=0.5"
GRAPH = (
    "application/n-triples, text/turtle;q=0.8, application/rdf+xml;q=0.5, application/ld+json;q=0.3"
)
#: Queries longer than this are sent by POST; servers limit the length of an address.
MOST_GET_CHARS = 1_500
_MOST_SORTED = 10_000
#: A try that had less than this share of its time does not count as the query's timeout.
_FAIR = 0.9

_TIMEOUT = re.compile(
    r"cancell?ed|timed?[ -]?out|time limit|execution time|too long to (?:run|execute)", re.I
)
#: How engines that answer 500 say that a query is at fault: Virtuoso by any of its SQL states,
#: Java's by the exception's name or by mentioning syntax.
_OF_THE_QUERY = re.compile(
    r"^Virtuoso \w{5} Error|\b(?:37000|SP0\d\d)|syntax|pars(?:e|ing)|MalformedQuery|"
    r"QueryEvaluation|ExprEval|function .*(?:not supported|unknown)|unknown function",
    re.I,
)
_TOO_COSTLY = re.compile(r"estimated execution time", re.I)
_ENGINE_CODE = re.compile(r"\bS[PR]\d{3}\b")
#: Virtuoso repeats the query, with additions of its own and ours.
_ECHO = re.compile(r"\bSPARQL query:\s.*", re.S)
_SELECTIVE = "make it more selective: name more terms, put the rarest pattern first, add a LIMIT"
_LATER = "try again later"
_HINTS = {
    401: "give credentials in EndpointConfig.headers",
    403: "check that the endpoint allows this use",
    404: "check the endpoint's address",
    429: "wait, and set EndpointConfig.min_interval_s",
}


class SPARQLClient(AbstractContextManager["SPARQLClient"]):
    """Talks to one endpoint; thread-safe.

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
        self._gate = gate_for(config.address)
        self._tsv = config.tsv
        self._closed = False

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Refuse further requests; connections are not kept between requests."""
        self._closed = True

    def prepare(self, query: str, *, limit: int | None = None) -> PreparedQuery:
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
        """Send a query and read its result.

        The endpoint's settings apply where `timeout_s` (of one try) or `max_rows` are None. One row
        more than wanted is requested, so that `truncated` is exact.

        Raises:
            QueryError: If the query is wrong or refused by the engine.
            QueryTimeoutError: If it took too long.
            EndpointError: If the endpoint is down, refuses to serve, or its answer is unreadable.
            UsageError: If the client is closed.
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
        cache = AnswerCache(DiskCache.shared(self.config.cache, required=True))
        bounds = (rows, self.config.max_bytes, sorted(self.config.headers.items()))
        key = cache.key_of(self.config.address, prepared.text, prepared.form, *bounds)
        kept = cache.get(key, max_age_s=self.config.cache_age_s, source=self.config.source)
        if kept is not None:
            return kept
        result = self._ask(prepared, rows, timeout, began)
        # A result that the engine cut short may be whole the next time.
        if not result.truncated or result.n_rows >= rows:
            cache.put(key, result)
        return result

    def rows(self, query: str | PreparedQuery, **bounds: Any) -> list[tuple[Term | None, ...]]:
        """Return all rows of a SELECT; otherwise as `query`."""
        result = self.query(query, **bounds)
        assert isinstance(result, TableResult), "a SELECT has a table"
        return result.rows()

    def fetch(self, path: str, accept: str, *, timeout_s: float | None = None) -> Reply:
        """GET a document of the endpoint's own origin; the reply may have any status.

        Raises:
            UsageError: If the address is of another origin.
            EndpointError: If the endpoint cannot be reached.
        """
        url = urljoin(self.config.address, path)
        if urlsplit(url)[:2] != urlsplit(self.config.address)[:2]:
            hint = f"stay on {self.config.address}"
            raise UsageError("not an address of this endpoint", where=url, hint=hint)
        timeout = self.config.timeout_s if timeout_s is None else timeout_s
        headers = {"User-Agent": self.config.user_agent, **self.config.headers, "Accept": accept}
        request = urllib.request.Request(url, headers=headers)
        try:
            return self._exchange(request, timeout)
        except TimedOut:
            what = f"no answer within {timeout:g} s"
            raise _failed(self.config, what, _LATER, "timed-out") from None

    def _ask(self, prepared: PreparedQuery, rows: int, timeout: float, began: float) -> Result:
        found: Result
        try:
            if prepared.form == "SELECT":
                found = self._table(prepared, rows, timeout)
            elif prepared.form == "ASK":
                found = self._boolean(prepared, timeout)
            else:
                found = self._graph(prepared, rows, timeout)
        except Broken as error:
            raise _broken_answer(self.config, prepared, str(error)) from None
        except Unfaithful as error:
            what = f"the answer cannot be read: {error}"
            hint = "check that this is a SPARQL endpoint"
            raise _failed(self.config, what, hint, "unreadable") from None
        return replace(found, seconds=time.monotonic() - began, source=self.config.source)

    def _boolean(self, prepared: PreparedQuery, timeout: float) -> BooleanResult:
        reply = self._send(prepared, JSON, timeout)
        value = formats.read_boolean(reply.body)
        if _is_partial(reply) and not value:
            raise _timed_out(self.config, "it searched only a part of the data")
        return BooleanResult(value)

    def _graph(self, prepared: PreparedQuery, rows: int, timeout: float) -> GraphResult:
        def spool(headers: Message) -> Spool:
            in_lines = media_type(headers) in ("application/n-triples", "text/plain", "")
            return Spool(rows, distinct=True) if in_lines else Spool(math.inf)

        reply = self._send(prepared, GRAPH, timeout, spool)
        assert reply.sink is not None, "every answer goes there"
        with closing(reply.sink) as body:
            found = formats.read_graph(body, reply.media_type, cut=reply.cut, max_rows=rows)
        return replace(found, truncated=found.truncated or _is_partial(reply))

    def _table(self, prepared: PreparedQuery, rows: int, timeout: float) -> TableResult:
        try:
            result, reply = self._read_table(prepared, rows, timeout)
        except QueryError as error:
            if error.fields.get("engine_code") != "SR353" or prepared.limit != rows + 1:
                raise
            # Virtuoso sorts at most this many rows, and the LIMIT that it refused was ours.
            most = min(rows, _MOST_SORTED)
            result = self._table(prepared.limited(most), most, timeout)
            return replace(result, truncated=result.truncated or result.n_rows >= most)
        # Virtuoso sends its own limit with every result that reaches it, also if LIMIT is the same.
        engine_most, asked = reply.headers.get("X-SPARQL-MaxRows") or "", prepared.limit
        cut = engine_most.isdigit() and result.n_rows >= int(engine_most)
        cut = _is_partial(reply) or (cut and (asked is None or asked > result.n_rows))
        return replace(result, truncated=result.truncated or cut)

    def _read_table(
        self, prepared: PreparedQuery, rows: int, timeout: float
    ) -> tuple[TableResult, Reply]:
        def spool(headers: Message) -> Spool | None:
            # Virtuoso's TSV lacks datatypes and language tags.
            virtuoso = "virtuoso" in (headers.get("Server") or "").lower()
            return None if virtuoso or media_type(headers) not in (TSV, "") else Spool(rows + 1)

        def whole(reply: Reply) -> tuple[TableResult, Reply]:
            kind = reply.media_type
            return formats.read_table(reply.body, kind, cut=reply.cut, max_rows=rows), reply

        failure: Exception | None = None
        if self._tsv:
            reply = self._send(prepared, TSV, timeout, spool)
            if reply.sink is not None:
                try:
                    with closing(reply.sink) as body:
                        return formats.read_tsv(body, cut=reply.cut, max_rows=rows), reply
                except (Unfaithful, Broken) as error:
                    # Oxigraph's cells are always well-formed: this is its message.
                    oxigraph = "oxigraph" in (reply.headers.get("Server") or "").lower()
                    if isinstance(error, Broken) and (oxigraph or _is_timeout(str(error))):
                        raise
                    failure = error
            elif reply.media_type not in (TSV, ""):
                return whole(reply)
            self._tsv = False
        reply = self._send(prepared, JSON, timeout)
        if failure is not None and reply.media_type == TSV:
            raise failure
        return whole(reply)

    def _send(
        self,
        prepared: PreparedQuery,
        accept: str,
        timeout: float,
        sink_for: SinkFor = lambda _: None,
    ) -> Reply:
        def checked(headers: Message) -> Spool | None:
            coding = (headers.get("Content-Encoding") or "identity").strip().lower()
            if coding not in ("", "identity"):
                what = f"the answer is compressed ({coding[:40]}), which was not asked for"
                hint = "switch compression off there, or ask the operator to do so"
                raise _failed(self.config, what, hint, "compressed")
            return sink_for(headers)

        wrapper = SPARQLWrapper(self.config.address, agent=self.config.user_agent)
        # Not by setQuery: its regular expression for the form stalls on long queries.
        wrapper.queryString, wrapper.queryType = prepared.text, prepared.form
        wrapper.setOnlyConneg(True)
        if len(prepared.text) > MOST_GET_CHARS:
            wrapper.setMethod(POST)
        for name, value in {**self.config.headers, "Accept": accept}.items():
            wrapper.addCustomHttpHeader(name, value)
        try:
            reply = self._exchange(wrapper._createRequest(), timeout, checked)
        except TimedOut:
            raise _timed_out(self.config, f"no answer within {timeout:g} s") from None
        if reply.status == 406 and accept == TSV:
            self._tsv = False
            return self._send(prepared, JSON, timeout)
        if not 200 <= reply.status < 300:
            raise _refusal(self.config, prepared, reply)
        if reply.is_html:
            what = f"a web page came instead of results: {reply.message}"
            hint = "check the endpoint's address; it may be down for maintenance"
            raise _failed(self.config, what, hint, "web-page")
        return reply

    def _exchange(
        self, request: urllib.request.Request, timeout: float, sink_for: SinkFor = lambda _: None
    ) -> Reply:
        """Send until there is an answer worth reading, or the tries or the time are used up."""
        config = self.config
        if self._closed:
            raise UsageError("the client is closed", where=config.source, code="closed")
        deadline = time.monotonic() + max(config.deadline_s, timeout)

        def attempt() -> Reply:
            given = timeout
            try:
                limits = config.max_connections, config.min_interval_s
                with self._gate.slot(*limits, deadline - time.monotonic()):
                    given = min(timeout, max(0.1, deadline - time.monotonic()))
                    return http.send(
                        request,
                        timeout_s=given,
                        max_bytes=config.max_bytes,
                        tls=config.tls,
                        proxies=not is_loopback(config.address),
                        follow=http.same_origin,
                        sink_for=sink_for,
                    )
            except TimedOut:
                # Waiting in our own queue is not the query's fault.
                if given >= _FAIR * timeout:
                    raise
                what = f"no answer in the {given:.2g} s left after waiting for other requests"
                raise _failed(config, what, _LATER, "busy") from None
            except TimeoutError:
                what = "too many requests are already waiting"
                raise _failed(config, what, _LATER, "busy") from None
            except http.Unreachable as error:
                hint = "check the address and that the endpoint is up"
                raise _failed(config, f"no connection: {error}", hint, "no-connection") from None

        try:
            return http.retrying(
                attempt, retries=config.retries, until=deadline, backoff_s=config.backoff_s
            )
        except http.Dropped as error:
            what = f"the connection was dropped: {error}"
            raise _failed(config, what, _LATER, "dropped") from None


# -- failures: the query's fault (`QueryError`) or the endpoint's (`EndpointError`) --------


def _failed(config: EndpointConfig, what: str, hint: str, code: str) -> EndpointError:
    return EndpointError(what, where=config.address, hint=hint, code=code)


def _timed_out(config: EndpointConfig, detail: str) -> QueryTimeoutError:
    what = f"the query timed out ({detail})"
    return QueryTimeoutError(what, where=config.source, hint=_SELECTIVE)


def _rejected(config: EndpointConfig, what: str, hint: str, code: str, message: str) -> QueryError:
    engine = _ENGINE_CODE.search(message)
    fields = {"engine_code": engine[0]} if engine else {}
    said = f"{what}: {message}" if message else what
    return QueryError(said, where=config.source, hint=hint, code=code, **fields)


def _broken_answer(config: EndpointConfig, query: PreparedQuery, message: str) -> QueryError:
    """Return the error for an answer that the engine broke off with a message."""
    for public, real in config.aliases.items():
        message = message.replace(real, public)
    message = short(message, MESSAGE_CHARS)
    if _is_timeout(message):
        return _timed_out(config, f"the engine says: {message}")
    what = "the query failed during its evaluation"
    hint = "ask for less at once, and check functions and their arguments"
    if query.services:
        what += ", perhaps in its SERVICE"
        hint = "query that endpoint directly, or use SERVICE SILENT"
    return _rejected(config, what, hint, "query-failed", message)


def _is_partial(reply: Reply) -> bool:
    """Return whether an engine marks its answer as unfinished for lack of time (Virtuoso)."""
    return reply.status == 206 or "X-SQL-State" in reply.headers


def _is_timeout(message: str) -> bool:
    return _TIMEOUT.search(message) is not None


def _refusal(
    config: EndpointConfig, query: PreparedQuery, reply: Reply
) -> QueryError | EndpointError:
    """Return the error for a response whose status is not 2xx, after any retries."""
    message = reply.message if reply.is_html else short(_ECHO.sub("", reply.message), MESSAGE_CHARS)
    status, is_500 = reply.status, reply.status == 500 and not reply.is_html
    rejects = "the endpoint rejects the query"
    if status == 400:
        return query.explain(message) or _rejected(
            config, rejects, "correct the query", "query-rejected", message or "HTTP 400"
        )
    if status in (413, 414):
        what = f"the endpoint rejects the query as too long (HTTP {status})"
        return _rejected(config, what, "shorten it, or put fewer VALUES into it", "too-long", "")
    if status == 500 and _TOO_COSTLY.search(message):
        what = "the endpoint estimates the query as too costly"
        return _rejected(config, what, _SELECTIVE, "too-costly", message)
    if status == 408 or (is_500 and _is_timeout(message)):
        return _timed_out(config, f"the engine says: {message or 'HTTP 408'}")
    if is_500 and _OF_THE_QUERY.search(message):
        unbound = "transitive start" in message
        hint = "name the start or the end of the path" if unbound else "correct the query"
        return _rejected(config, rejects, hint, "query-rejected", message)
    hint = _HINTS.get(status, _LATER)
    if 300 <= status < 400:
        to = reply.headers.get("Location") or "another address"
        hint = f"it redirects to {to}; if that is right, make it the endpoint's address"
    what = f"HTTP {status}" + (f": {message}" if message else "")
    return EndpointError(what, where=config.address, hint=hint, code="http-status", status=status)
