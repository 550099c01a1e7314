"""What a judge without the gold may see of an attempt.

A `Case` has no field for a gold query, a verdict or an agent's own words, so neither can reach a
judge that is given one. An agent's words are in its replies, in comments of its code and queries,
in what its code prints, and in queries that do not run; none of these are included. Variable names
and strings in a query are part of the query and stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from reasoningbank.errors import EndpointError
from reasoningbank.judge.evidence import AnswerSample, Row
from reasoningbank.schema import Schema, describe_names
from reasoningbank.sparql import compact
from reasoningbank.sparql.terms import read_term
from reasoningbank.sparql.tokens import Edit, apply_edits, tokenize, without_comments
from reasoningbank.trajectory import Trajectory

#: Rows shown of another query that ran.
MAX_OTHER_ROWS = 2
#: Characters shown of one row.
MAX_ROW_CHARS = 240

_LONG_QUOTES = ('"""', "'''")


@dataclass(frozen=True)
class ExecutedQuery:
    """A query that the agent ran."""

    query: str
    n: int | float
    rows: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """An attempt as a judge without the gold sees it."""

    question: str
    query: str  #: The submitted query, without comments; empty if there was no query
    #: Rows of its result; None if it did not run, for the reason in `failure`
    result: AnswerSample | None = None
    failure: str = ""
    names: tuple[str, ...] = ()  #: What is known of the names that the query uses, one line each
    executed: tuple[ExecutedQuery, ...] = ()  #: Other queries that ran, in order
    #: Prefix → namespace for writing results
    prefixes: Mapping[str, str] = field(default_factory=dict)


def case_of(
    question: str,
    query: str | None,
    trajectory: Trajectory,
    *,
    result: AnswerSample | None,
    failure: str = "",
    known: Schema | None = None,
    prefixes: Mapping[str, str] | None = None,
) -> Case:
    """Collect what a judge without the gold may see.

    Only queries that ran are taken from the trajectory. `result` holds rows of the submitted
    query's result, or None with the `failure`; `known` are the classes and properties of the
    endpoint.
    """
    prefixes = prefixes or {}
    text = without_comments(query or "")
    if not text:
        result, failure = None, "no query was submitted"
    return Case(
        question=question,
        query=text,
        result=result,
        failure="" if result is not None else failure or "the query did not run",
        names=tuple(describe_names(text, known, prefixes)) if known is not None and text else (),
        executed=tuple(ran for ran in executed_queries(trajectory) if ran.query != text),
        prefixes=prefixes,
    )


def executed_queries(trajectory: Trajectory) -> list[ExecutedQuery]:
    """Return the distinct queries that ran, with rows that the agent looked at."""
    results = {e.parent: trajectory.resolve(e.data) for e in trajectory.of("tool_result")}
    found: dict[str, ExecutedQuery] = {}
    handles: dict[str, str] = {}
    for call in trajectory.of("tool_call"):
        data = trajectory.resolve(call.data)
        outcome = results.get(call.index, {})
        arguments, result = data.get("arguments"), outcome.get("result")
        if not isinstance(arguments, Mapping) or "error" in outcome:
            continue
        query = without_comments(str(arguments.get("query") or ""))
        if data["tool"] == "sparql_query" and (ref := outcome.get("ref")):
            handles[ref["key"]] = query
            found.setdefault(query, ExecutedQuery(query, int(ref["rows"])))
        elif data["tool"] == "sparql_count" and isinstance(result, Mapping):
            if isinstance(count := result.get("count"), (int, float)):
                found.setdefault(query, ExecutedQuery(query, count))
        elif data["tool"] in ("sparql_peek", "sparql_slice") and isinstance(result, list):
            given = arguments.get("ref")
            key = given.get("key") if isinstance(given, Mapping) else given
            ran = found.get(handles.get(str(key), ""))
            if ran is not None and not ran.rows:
                rows = [r.values() if isinstance(r, Mapping) else [r] for r in result]
                shown = tuple(_line(row) for row in rows[:MAX_OTHER_ROWS])
                found[ran.query] = replace(ran, rows=shown)
    return list(found.values())


def shown_row(row: Row, prefixes: Mapping[str, str]) -> str:
    """Return a row in one line, its terms as agents see them."""
    cells = []
    for cell in row:
        try:
            cells.append(None if cell is None else compact(read_term(cell), prefixes, 80))
        except EndpointError:
            # A term that was cut cannot be parsed.
            cells.append(cell)
    return _line(cells)


def _line(cells: Iterable[Any]) -> str:
    text = " | ".join("-" if cell is None else str(cell) for cell in cells)
    text = " ".join(text.split())
    return text if len(text) <= MAX_ROW_CHARS else f"{text[:MAX_ROW_CHARS]}…"


def with_short_strings(query: str, most: int) -> str:
    """Return a query whose string literals keep at most `most` characters: no room for a speech."""
    edits = []
    for token in tokenize(query):
        quote = token.text[:3] if token.text[:3] in _LONG_QUOTES else token.text[:1]
        inner = token.text[len(quote) : -len(quote)]
        if token.kind == "string" and len(inner) > most:
            edits.append(Edit(token.start, token.end, f"{quote}{inner[:most]}…{quote}"))
    return apply_edits(query, edits)
