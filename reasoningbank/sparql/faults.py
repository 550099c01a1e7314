"""Whose fault a failure is: the query's (`QueryError`) or the endpoint's (`EndpointError`)."""

from __future__ import annotations

import re
from email.message import Message
from html import unescape

from reasoningbank.errors import EndpointError, QueryError, QueryTimeoutError
from reasoningbank.sparql.endpoint import EndpointConfig
from reasoningbank.sparql.query import PreparedQuery
from reasoningbank.sparql.transport import Reply

__all__ = [
    "broken_answer",
    "compressed",
    "cut_by_engine",
    "is_html",
    "is_timeout",
    "page_instead",
    "refusal",
    "timed_out",
]

_TIMEOUT = re.compile(
    r"cancell?ed|timed?[ -]?out|time limit|execution time|too long to (?:run|execute)", re.I
)
#: How engines that answer 500 for it say that a query is at fault: Virtuoso by any of its SQL
#: states, Java's by the exception's name or by speaking of syntax.
_OF_THE_QUERY = re.compile(
    r"^Virtuoso \w{5} Error|\b(?:37000|SP0\d\d)|syntax|pars(?:e|ing)|MalformedQuery|"
    r"QueryEvaluation|ExprEval|function .*(?:not supported|unknown)|unknown function",
    re.I,
)
_TOO_COSTLY = re.compile(r"estimated execution time", re.I)
#: Virtuoso repeats the query, with additions of its own and ours.
_ECHO = re.compile(r"\bSPARQL query:\s.*", re.S)
_SELECTIVE = "make it more selective: name more terms, put the rarest pattern first, add a LIMIT"
_MESSAGE_CHARS = 300


def timed_out(config: EndpointConfig, detail: str) -> QueryTimeoutError:
    """Return the error for a query that took too long."""
    return QueryTimeoutError(
        f"the query timed out ({detail})", where=config.source, hint=_SELECTIVE
    )


def broken_answer(config: EndpointConfig, query: PreparedQuery, message: str) -> QueryError:
    """Return the error for an answer that the engine broke off with a message."""
    for public, real in config.aliases.items():
        message = message.replace(real, public)
    message = _brief(message)
    if is_timeout(message):
        return timed_out(config, f"the engine says: {message}")
    if query.services:
        return QueryError(
            f"the query failed while it was answered, perhaps in its SERVICE: {message}",
            where=config.source,
            hint="query that endpoint directly, or use SERVICE SILENT",
        )
    return QueryError(
        f"the query failed while it was answered: {message}",
        where=config.source,
        hint="ask for less at once, and check functions and their arguments",
    )


def compressed(config: EndpointConfig, headers: Message) -> EndpointError | None:
    """Return the error for a body that is compressed, which no request asks for.

    A few kilobytes of it can unpack to any size.
    """
    coding = (headers.get("Content-Encoding") or "identity").strip().lower()
    if coding in ("", "identity"):
        return None
    return EndpointError(
        f"the answer is compressed ({coding[:40]}), which was not asked for",
        where=config.address,
        hint="take the compression off there, or ask whoever runs it",
    )


def is_partial(reply: Reply) -> bool:
    """Say whether an engine marks its answer as one that it had no time to finish (Virtuoso)."""
    return reply.status == 206 or "X-SQL-State" in reply.headers


def cut_by_engine(reply: Reply, n_rows: int, asked: int | None) -> bool:
    """Say whether an engine's own limits cut a result short, as Virtuoso marks it.

    Args:
        reply: The response.
        n_rows: How many rows came.
        asked: The query's LIMIT, None where it has none.
    """
    if is_partial(reply):
        return True
    # Sent with every result that reaches it, also where the LIMIT is the same number.
    most = reply.headers.get("X-SPARQL-MaxRows") or ""
    return most.isdigit() and n_rows >= int(most) and (asked is None or asked > n_rows)


def is_timeout(message: str) -> bool:
    """Say whether an engine's message is about running out of time.

    Examples:
        >>> is_timeout("The SPARQL operation has been cancelled")
        True
    """
    return _TIMEOUT.search(message) is not None


def is_html(reply: Reply) -> bool:
    """Say whether a page for people came instead of data."""
    start = reply.body[:200].lstrip().lower()
    return start.startswith((b"<!doctype html", b"<html")) or (
        reply.media_type == "text/html" and not start.startswith(b"<?xml")
    )


def refusal(
    config: EndpointConfig, query: PreparedQuery, reply: Reply
) -> QueryError | EndpointError:
    """Return the error for a response whose status is not 2xx, after any retries."""
    message = _message(reply)
    html = is_html(reply)
    if reply.status == 400:
        return query.explain(message) or QueryError(
            f"the endpoint rejects the query: {message or 'HTTP 400'}",
            where=config.source,
            hint="correct the query",
        )
    if reply.status in (413, 414):
        return QueryError(
            f"the endpoint says that the query is too long (HTTP {reply.status})",
            where=config.source,
            hint="shorten it, or put fewer VALUES into it",
        )
    if reply.status == 500 and _TOO_COSTLY.search(message):
        return QueryError(
            f"the endpoint estimates the query as too costly: {message}",
            where=config.source,
            hint=_SELECTIVE,
        )
    if reply.status == 408 or (reply.status == 500 and not html and is_timeout(message)):
        return timed_out(config, f"the engine says: {message or 'HTTP 408'}")
    if reply.status == 500 and not html and _OF_THE_QUERY.search(message):
        unbound = "transitive start" in message
        return QueryError(
            f"the endpoint rejects the query: {message}",
            where=config.source,
            hint="name the start or the end of the path" if unbound else "correct the query",
        )
    hint = {
        401: "give credentials in EndpointConfig.headers",
        403: "check that the endpoint allows this use",
        404: "check the endpoint's address",
        429: "wait, and set EndpointConfig.min_interval_s",
    }.get(reply.status, "try again later")
    if 300 <= reply.status < 400:
        to = reply.headers.get("Location") or "another address"
        hint = f"it redirects to {to}; if that is right, make it the endpoint's address"
    what = f"HTTP {reply.status}" + (f": {message}" if message else "")
    return EndpointError(what, where=config.address, hint=hint)


def page_instead(config: EndpointConfig, reply: Reply) -> EndpointError:
    """Return the error for a web page, or other nonsense, that came with status 200."""
    return EndpointError(
        f"a web page came instead of results: {_message(reply)}",
        where=config.address,
        hint="check the endpoint's address; it may be down for maintenance",
    )


def _message(reply: Reply) -> str:
    text = reply.body.decode("utf-8", "replace")
    if is_html(reply):
        title = re.search(r"<title[^>]*>(.*?)</title>|<h1[^>]*>(.*?)</h1>", text, re.I | re.S)
        text = unescape(title[1] or title[2] or "") if title else ""
    return _brief(_ECHO.sub("", text))


def _brief(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MESSAGE_CHARS else text[:_MESSAGE_CHARS] + "…"
