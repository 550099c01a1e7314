"""Classifies failures: the query's fault (`QueryError`) or the endpoint's (`EndpointError`)."""

from __future__ import annotations

import re
from email.message import Message

from reasoningbank.errors import EndpointError, QueryError, QueryTimeoutError
from reasoningbank.http import MESSAGE_CHARS, Reply
from reasoningbank.sparql.endpoint import EndpointConfig
from reasoningbank.sparql.query import PreparedQuery

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
_HINTS = {
    401: "give credentials in EndpointConfig.headers",
    403: "check that the endpoint allows this use",
    404: "check the endpoint's address",
    429: "wait, and set EndpointConfig.min_interval_s",
}


def timed_out(config: EndpointConfig, detail: str) -> QueryTimeoutError:
    """Return the error for a query that took too long."""
    return QueryTimeoutError(
        f"the query timed out ({detail})", where=config.source, hint=_SELECTIVE
    )


def _rejected(config: EndpointConfig, what: str, hint: str, code: str, message: str) -> QueryError:
    """Return the error for a query that the engine refuses or fails on."""
    engine = _ENGINE_CODE.search(message)
    fields = {"engine_code": engine[0]} if engine else {}
    said = f"{what}: {message}" if message else what
    return QueryError(said, where=config.source, hint=hint, code=code, **fields)


def broken_answer(config: EndpointConfig, query: PreparedQuery, message: str) -> QueryError:
    """Return the error for an answer that the engine broke off with a message."""
    for public, real in config.aliases.items():
        message = message.replace(real, public)
    message = _brief(message)
    if is_timeout(message):
        return timed_out(config, f"the engine says: {message}")
    what = "the query failed during its evaluation"
    hint = "ask for less at once, and check functions and their arguments"
    if query.services:
        what += ", perhaps in its SERVICE"
        hint = "query that endpoint directly, or use SERVICE SILENT"
    return _rejected(config, what, hint, "query-failed", message)


def compressed(config: EndpointConfig, headers: Message) -> EndpointError | None:
    """Return the error for a compressed body, which no request asks for."""
    coding = (headers.get("Content-Encoding") or "identity").strip().lower()
    if coding in ("", "identity"):
        return None
    return EndpointError(
        f"the answer is compressed ({coding[:40]}), which was not asked for",
        where=config.address,
        hint="switch compression off there, or ask the operator to do so",
        code="compressed",
    )


def is_partial(reply: Reply) -> bool:
    """Return whether an engine marks its answer as unfinished for lack of time (Virtuoso)."""
    return reply.status == 206 or "X-SQL-State" in reply.headers


def cut_by_engine(reply: Reply, n_rows: int, asked: int | None) -> bool:
    """Return whether an engine's own limits cut a result short, as Virtuoso marks it."""
    if is_partial(reply):
        return True
    # Sent with every result that reaches it, also if the LIMIT is the same number.
    most = reply.headers.get("X-SPARQL-MaxRows") or ""
    return most.isdigit() and n_rows >= int(most) and (asked is None or asked > n_rows)


def is_timeout(message: str) -> bool:
    """Return whether an engine's message is about running out of time."""
    return _TIMEOUT.search(message) is not None


def refusal(
    config: EndpointConfig, query: PreparedQuery, reply: Reply
) -> QueryError | EndpointError:
    """Return the error for a response whose status is not 2xx, after any retries."""
    message = reply.message if reply.is_html else _brief(_ECHO.sub("", reply.message))
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
    if status == 408 or (is_500 and is_timeout(message)):
        return timed_out(config, f"the engine says: {message or 'HTTP 408'}")
    if is_500 and _OF_THE_QUERY.search(message):
        unbound = "transitive start" in message
        hint = "name the start or the end of the path" if unbound else "correct the query"
        return _rejected(config, rejects, hint, "query-rejected", message)
    hint = _HINTS.get(status, "try again later")
    if 300 <= status < 400:
        to = reply.headers.get("Location") or "another address"
        hint = f"it redirects to {to}; if that is right, make it the endpoint's address"
    what = f"HTTP {status}" + (f": {message}" if message else "")
    return EndpointError(what, where=config.address, hint=hint, code="http-status", status=status)


def page_instead(config: EndpointConfig, reply: Reply) -> EndpointError:
    """Return the error for a web page that came with status 200."""
    return EndpointError(
        f"a web page came instead of results: {reply.message}",
        where=config.address,
        hint="check the endpoint's address; it may be down for maintenance",
        code="web-page",
    )


def unreadable(config: EndpointConfig, detail: str) -> EndpointError:
    """Return the error for an answer that is not the format it claims to be."""
    return EndpointError(
        f"the answer cannot be read: {detail}",
        where=config.address,
        hint="check that this is a SPARQL endpoint",
        code="unreadable",
    )


def _brief(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MESSAGE_CHARS else text[:MESSAGE_CHARS] + "…"
