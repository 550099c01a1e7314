"""What a judge without the gold may see of an attempt.

A `Case` has no place for a gold query, a verdict or an agent's own words: neither can reach a
judge that is given one. What an agent says is in its replies, in the comments of its code and
queries, in what its code prints and in queries that do not run; none of it is taken over. The
names of variables and the strings in a query are part of the query, and stay.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reasoningbank.errors import EndpointError
from reasoningbank.judge.known_names import KnownNames, lines_on
from reasoningbank.judge.prose import without_comments
from reasoningbank.judge.sample import Row, Sample
from reasoningbank.sparql import Term, compact
from reasoningbank.sparql.termtext import read_term
from reasoningbank.trajectory import Trajectory

__all__ = ["Case", "ExecutedQuery", "case_of", "executed_queries", "shown_row"]

#: Rows shown of a query that ran on the way.
MAX_ROWS_ON_THE_WAY = 2
#: Characters shown of one row.
MAX_ROW_CHARS = 240

_HANDLE = re.compile(r"Ref\('([^']*)', '[^']*', (\d+) items from ")


@dataclass(frozen=True)
class ExecutedQuery:
    """A query that ran on the way, and what came of it.

    Attributes:
        query: Its text, without comments.
        n: Rows that it returned, or the number that it counted.
        rows: The first of the rows that the agent looked at, each in a line.
    """

    query: str
    n: int | float
    rows: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """An attempt as a judge without the gold sees it.

    Attributes:
        question: The question.
        query: The submitted query, without comments; empty where there was none.
        result: Rows of its result; None where it did not run.
        failure: Why there is no result, in a line; empty where there is one.
        names: What is known of the names that the query uses, a line each.
        on_the_way: Other queries that ran, in their order.
        prefixes: Prefix and namespace by which results are written.
    """

    question: str
    query: str
    result: Sample | None = None
    failure: str = ""
    names: tuple[str, ...] = ()
    on_the_way: tuple[ExecutedQuery, ...] = ()
    prefixes: Mapping[str, str] = field(default_factory=dict)


def case_of(
    question: str,
    query: str | None,
    trajectory: Trajectory,
    *,
    result: Sample | None,
    failure: str = "",
    known: KnownNames | None = None,
    prefixes: Mapping[str, str] | None = None,
) -> Case:
    """Collect what a judge without the gold may see.

    Args:
        question: The task's question.
        query: The submitted query; None where there was none.
        trajectory: What the agent did; only queries that ran are taken from it.
        result: Rows of the submitted query's result; None where it did not run.
        failure: Why it did not run.
        known: The classes and properties of the endpoint; None where they are not known.
        prefixes: The endpoint's prefixes.
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
        names=tuple(lines_on(text, known, prefixes)) if known is not None and text else (),
        on_the_way=tuple(ran for ran in executed_queries(trajectory) if ran.query != text),
        prefixes=prefixes,
    )


def executed_queries(trajectory: Trajectory) -> list[ExecutedQuery]:
    """Return the queries that ran, with rows that the agent looked at; one that ran twice, once.

    Queries that failed are left out: what does not parse as a query can be any text.
    """
    results = {e.parent: trajectory.resolve(e.data) for e in trajectory.of("tool_result")}
    found: dict[str, ExecutedQuery] = {}
    handles: dict[str, str] = {}
    for call in trajectory.of("tool_call"):
        data = trajectory.resolve(call.data)
        outcome = results.get(call.index, {})
        arguments, result = data.get("arguments"), outcome.get("result")
        if not isinstance(arguments, Mapping) or "error" in outcome:
            continue
        if data["tool"] == "sparql_query" and (handle := _HANDLE.match(str(result))):
            query = without_comments(str(arguments.get("query") or ""))
            handles[handle[1]] = query
            found.setdefault(query, ExecutedQuery(query, int(handle[2])))
        elif data["tool"] == "sparql_count" and isinstance(result, Mapping):
            query = without_comments(str(arguments.get("query") or ""))
            if isinstance(count := result.get("count"), (int, float)):
                found.setdefault(query, ExecutedQuery(query, count))
        elif data["tool"] in ("sparql_peek", "sparql_slice") and isinstance(result, list):
            ref = arguments.get("ref")
            key = ref.get("key") if isinstance(ref, Mapping) else ref
            ran = found.get(handles.get(str(key), ""))
            if ran is not None and not ran.rows:
                rows = tuple(_peeked(row) for row in result[:MAX_ROWS_ON_THE_WAY])
                found[ran.query] = ExecutedQuery(ran.query, ran.n, rows)
    return list(found.values())


def shown_row(row: Row, prefixes: Mapping[str, str]) -> str:
    """Return a row in a line, its terms as agents see them too.

    Examples:
        >>> shown_row(("<http://e/a>", '"Eiche"@de', None, "3"), {"e": "http://e/"})
        'e:a | "Eiche"@de | - | 3'
    """
    cells = ("-" if cell is None else str(_compact(cell, prefixes)) for cell in row)
    return _line(" | ".join(cells))


def _compact(text: str, prefixes: Mapping[str, str]) -> Any:
    try:
        term: Term = read_term(text)
    except EndpointError:
        # A term that was cut for its length is none any more.
        return text
    return compact(term, prefixes, 80)


def _peeked(row: Any) -> str:
    cells = row.values() if isinstance(row, Mapping) else [row]
    return _line(" | ".join("-" if cell is None else str(cell) for cell in cells))


def _line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MAX_ROW_CHARS else f"{text[:MAX_ROW_CHARS]}…"
