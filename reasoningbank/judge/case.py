"""What a judge without the gold may see of an attempt.

A `Case` has no field for a gold query, a verdict or an agent's own words, so neither can reach a
judge that is given one. An agent's words are in its replies, in comments of its code and queries,
in what its code prints, and in queries that do not run; none of these are included. Variable names
and strings in a query are part of the query and stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyoxigraph import NamedNode

from reasoningbank.errors import EndpointError, QueryError
from reasoningbank.judge.evidence import AnswerSample, Row
from reasoningbank.schema import NamedTerm, Schema, namespace_of
from reasoningbank.sparql import STANDARD_PREFIXES, Term, compact
from reasoningbank.sparql.terms import read_term
from reasoningbank.sparql.tokens import tokenize, without_comments
from reasoningbank.sparql.tree import outline
from reasoningbank.trajectory import Trajectory

#: Rows shown of another query that ran.
MAX_OTHER_ROWS = 2
#: Characters shown of one row.
MAX_ROW_CHARS = 240

#: Names that are described, and characters of a comment.
MAX_NAMES = 12
MAX_COMMENT_CHARS = 100

#: Namespaces that every reader of SPARQL knows.
_COMMON = frozenset(STANDARD_PREFIXES[name] for name in ("rdf", "rdfs", "owl", "xsd"))
_LONG_QUOTES = ('"""', "'''")


@dataclass(frozen=True)
class ExecutedQuery:
    """A query that the agent ran."""

    query: str
    n: int | float
    rows: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """An attempt as a judge without the gold sees it.

    Attributes:
        query: The submitted query, without comments; empty if there was no query.
        result: Rows of its result; None if it did not run, for the reason in `failure`.
        names: What is known of the names that the query uses, one line each.
        executed: Other queries that ran, in order.
        prefixes: Prefix → namespace for writing results.
    """

    question: str
    query: str
    result: AnswerSample | None = None
    failure: str = ""
    names: tuple[str, ...] = ()
    executed: tuple[ExecutedQuery, ...] = ()
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
        names=tuple(name_lines(text, known, prefixes)) if known is not None and text else (),
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
                rows = tuple(_peeked(row) for row in result[:MAX_OTHER_ROWS])
                found[ran.query] = replace(ran, rows=rows)
    return list(found.values())


def name_lines(query: str, known: Schema, prefixes: Mapping[str, str]) -> Iterator[str]:
    """Yield a line on each name of a query; an unknown one only if its namespace is known."""
    spaces = {namespace_of(iri) for iri in (*known.classes, *known.properties)} - _COMMON
    described = 0
    for iri in _iris(query, prefixes):
        if described == MAX_NAMES or namespace_of(iri) in _COMMON:
            continue
        name = str(compact(NamedNode(iri), prefixes))
        if iri in known.properties:
            yield _name_line(f"{name} (property)", known.properties[iri], prefixes)
        elif iri in known.classes:
            yield _name_line(f"{name} (class)", known.classes[iri], prefixes)
        elif namespace_of(iri) in spaces:
            yield f"{name}: no class or property of this name is known"
        else:
            continue
        described += 1


def _iris(query: str, prefixes: Mapping[str, str]) -> list[str]:
    try:
        tree = outline(query)
    except QueryError:
        return []
    declared = {**STANDARD_PREFIXES, **prefixes, **tree.declared}
    found: dict[str, None] = {}
    for token in tree.body:
        prefix, _, local = token.text.partition(":")
        if token.kind == "iri":
            found[token.text[1:-1]] = None
        elif token.kind == "name" and prefix in declared:
            found[declared[prefix] + local.replace("\\", "")] = None
    return list(found)


def _name_line(name: str, term: NamedTerm, prefixes: Mapping[str, str]) -> str:
    parts = []
    if term.domain or term.range:
        ends = [
            ", ".join(str(compact(NamedNode(iri), prefixes)) for iri in iris[:3]) or "anything"
            for iris in (term.domain, term.range)
        ]
        parts.append(f"from {ends[0]} to {ends[1]}")
    if said := " ".join((term.comment or term.label).split()):
        parts.append(said if len(said) <= MAX_COMMENT_CHARS else f"{said[:MAX_COMMENT_CHARS]}…")
    if term.count is not None:
        parts.append(f"{term.count} in the data")
    return f"{name}: {'; '.join(parts) or 'known'}"


def shown_row(row: Row, prefixes: Mapping[str, str]) -> str:
    """Return a row in one line, its terms as agents see them."""
    cells = ("-" if cell is None else str(_compact(cell, prefixes)) for cell in row)
    return _line(" | ".join(cells))


def _compact(text: str, prefixes: Mapping[str, str]) -> Any:
    try:
        term: Term = read_term(text)
    except EndpointError:
        # A term that was cut cannot be parsed.
        return text
    return compact(term, prefixes, 80)


def _peeked(row: Any) -> str:
    cells = row.values() if isinstance(row, Mapping) else [row]
    return _line(" | ".join("-" if cell is None else str(cell) for cell in cells))


def _line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MAX_ROW_CHARS else f"{text[:MAX_ROW_CHARS]}…"


def with_short_strings(query: str, most: int) -> str:
    """Return a query whose string literals keep at most `most` characters: no room for a speech."""
    parts = []
    end = 0
    for token in tokenize(query):
        quote = token.text[:3] if token.text[:3] in _LONG_QUOTES else token.text[:1]
        inner = token.text[len(quote) : -len(quote)]
        long = token.kind == "string" and len(inner) > most
        parts.append(query[end : token.start])
        parts.append(f"{quote}{inner[:most]}…{quote}" if long else token.text)
        end = token.end
    return "".join([*parts, query[end:]])
