"""What an agent learns from a query that gave nothing: a few short lines, the most useful first.

An empty answer says nothing by itself. `diagnose` says which names do not exist and what they
are called here, and which part of the query is the first to leave no rows, and why. It sends a
bounded number of small queries, never raises for an endpoint's trouble, and is cheap enough to
be asked for whenever a result is empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType

from pyoxigraph import Literal
from rdflib.plugins.sparql.parserutils import CompValue

from reasoningbank.errors import QueryError
from reasoningbank.sparql import (
    BooleanResult,
    EndpointConfig,
    GraphResult,
    PreparedQuery,
    Result,
)
from reasoningbank.sparql.probing import MOST_PROBES, MOST_SECONDS, Prober, Unit, find_failures
from reasoningbank.sparql.syntax import MOST_CHARS as LONGEST_QUERY
from reasoningbank.sparql.tokens import Token, tokenize
from reasoningbank.sparql.tree import QueryTree, TriplePattern, outline, read_query
from reasoningbank.tools.diagnosis.causes import Explainer
from reasoningbank.tools.diagnosis.columns import unbound_columns
from reasoningbank.tools.diagnosis.names import (
    local_name,
    namespace_of,
    nearest_names,
    nearest_prefixes,
    words,
)
from reasoningbank.tools.diagnosis.unknown import NameFindings, find_unknown, shown
from reasoningbank.tools.diagnosis.used_names import TYPE, absolute
from reasoningbank.tools.side_client import bounded_client
from reasoningbank.tools.vocabulary import Vocabulary

__all__ = [
    "MOST_CHARS",
    "MOST_LINES",
    "diagnose",
    "is_empty",
    "probe_run",
    "suggest_for_error",
    "unknown_names",
]

#: Lines of one diagnosis, and characters of one line.
MOST_LINES = 3
MOST_CHARS = 200
#: Seconds one probe may take.
PROBE_TIMEOUT_S = 3.0
_PREFIX_ERROR = re.compile(r"the prefix '([^']*):' is not declared")


def probe_run(config: EndpointConfig) -> Callable[[str], Result]:
    """Return what sends probes to an endpoint: each within 3 s, none tried twice."""
    return bounded_client(config, PROBE_TIMEOUT_S).query


def is_empty(result: Result, prepared: PreparedQuery | None = None) -> bool:
    """Say whether a result tells nothing: no rows, no triples, ASK false, or only zero counts.

    Args:
        result: The result.
        prepared: Its query. Without it, or where it could not be parsed, a lone 0 is no zero
            count but a value.
    """
    if isinstance(result, BooleanResult):
        return not result.value
    if result.n_rows == 0:
        return True
    if isinstance(result, GraphResult) or result.n_rows > 1 or not _aggregates(prepared):
        return False
    return all(
        term is None or (isinstance(term, Literal) and term.value in ("0", "0.0", "0.0E0", ""))
        for term in result.rows(0, 1)[0]
    )


def _aggregates(prepared: PreparedQuery | None) -> bool:
    node = None if prepared is None or prepared.parsed is None else prepared.parsed.algebra
    while isinstance(node, CompValue):
        if node.name == "AggregateJoin":
            return True
        node = node.get("p")
    return False


def diagnose(
    prepared: PreparedQuery,
    run: Callable[[str], Result],
    names: Vocabulary,
    *,
    namespaces: Mapping[str, str],
) -> tuple[str, ...]:
    """Say why a query gave nothing.

    Args:
        prepared: The query.
        run: Sends a query to the endpoint it was sent to; see `probe_run`. At most 16 are sent,
            and none after 8 s.
        names: The endpoint's vocabulary.
        namespaces: Prefix → namespace, for what is shown and to be corrected to.

    Returns:
        At most three lines of at most 200 characters, the most useful first; none where
        nothing was found out.
    """
    lines = list(unbound_columns(prepared))
    try:
        query = read_query(prepared.text)
    except QueryError:
        return tuple(lines)
    prober = Prober(query, run, most=MOST_PROBES, seconds=MOST_SECONDS)
    found = find_unknown(prepared, query, names, prober, namespaces, look_up=True)
    lines += found.lines
    if len(lines) < MOST_LINES:
        declared = outline(prepared.text).declared
        explainer = Explainer(prober, names, namespaces, declared)
        failures = find_failures(
            query,
            prober,
            vouched=lambda pattern: _vouched(pattern, names, declared),
            hopeless=lambda unit: _hopeless(unit, found, declared),
        )
        if all(failure.alone for failure in failures) and _nothing_outside_graphs(query, prober):
            lines.append(
                "nothing is in the default graph here: put GRAPH ?g { } round the patterns"
            )
        else:
            lines += [explainer.explain(f) for f in failures[: MOST_LINES - len(lines)]]
            lines += [] if lines else explainer.elsewhere(prepared, query)
    own = _own_words(prepared)
    return tuple(dict.fromkeys(_cut(line, own) for line in lines if line))[:MOST_LINES]


def unknown_names(
    prepared: PreparedQuery,
    names: Vocabulary,
    run: Callable[[str], Result],
    *,
    namespaces: Mapping[str, str],
) -> tuple[str, ...]:
    """Say which names and columns of a query do not exist, though it may have rows.

    A name in an OPTIONAL or a UNION branch takes no rows away, and is wrong all the same.
    Nothing is asked where the vocabulary is complete; else one request checks what it lacks.
    """
    lines = list(unbound_columns(prepared))
    try:
        query = read_query(prepared.text)
    except QueryError:
        return tuple(lines)
    prober = Prober(query, run, most=1)
    lines += find_unknown(prepared, query, names, prober, namespaces).lines
    own = _own_words(prepared)
    return tuple(_cut(line, own) for line in lines)[:MOST_LINES]


def suggest_for_error(
    query: str, error: QueryError, names: Vocabulary, namespaces: Mapping[str, str]
) -> str:
    """Say what was probably meant where a query cannot be sent at all; empty where unknown.

    An undeclared prefix gets the nearest known ones, and the class or property that the name
    was to be; a query that does not parse gets the names in it that do not exist.
    """
    if len(query) > LONGEST_QUERY:
        return ""
    tokens = tokenize(query)
    declared = {
        name.text[:-1]: space.text[1:-1]
        for word, name, space in zip(tokens, tokens[1:], tokens[2:], strict=False)
        if word.is_word("PREFIX") and name.kind == "name" and space.kind == "iri"
    }
    written = [
        token.text
        for before, token in pairwise(tokens)
        if token.kind == "name" and not token.text.endswith(":") and not before.is_word("PREFIX")
    ]
    missing = _PREFIX_ERROR.search(error.what)
    if missing is not None:
        return _cut(_for_prefix(missing[1], written, names, namespaces))
    found = [
        f"PREFIX {prefix}: is <{namespaces[prefix]}> here; leave that line out"
        for prefix, space in declared.items()
        if namespaces.get(prefix, space) != space and space not in namespaces.values()
    ]
    if names.complete:
        told = _properties_and_classes(tokens)
        found += _unknown_in_text(told, {**declared, **namespaces}, names, namespaces)
    return _cut(f"besides, {'; '.join(found)}") if found else ""


def _properties_and_classes(tokens: Sequence[Token]) -> list[str]:
    """Return the names that stand where properties and classes do, as far as tokens tell.

    What ends a triple is an object: a value such as ``marl:Positive`` is in no vocabulary.
    """
    found = []
    for before, token, after in zip(tokens, tokens[1:], [*tokens[2:], None], strict=False):
        if token.kind != "name" or token.text.endswith(":") or before.is_word("PREFIX"):
            continue
        is_object = after is None or after.text in (".", ";", ",", "}", "]", ")")
        if before.text == "a" or not is_object:
            found.append(token.text)
    return found


def _for_prefix(
    prefix: str, written: Sequence[str], names: Vocabulary, namespaces: Mapping[str, str]
) -> str:
    """Return the name that an undeclared prefix was to begin, else the nearest prefixes."""
    local = next((t.partition(":")[2] for t in written if t.startswith(prefix + ":")), "")
    near = nearest_names(f"urn:/{local}", names) if local else ()
    meant = [shown(t.iri, namespaces) for t in near if local_name(t.iri).lower() == local.lower()]
    meant = meant or [f"{name}:" for name in nearest_prefixes(prefix, namespaces)]
    return f"did you mean {' or '.join(meant)}?" if meant else ""


def _unknown_in_text(
    written: Sequence[str],
    declared: Mapping[str, str],
    names: Vocabulary,
    namespaces: Mapping[str, str],
) -> list[str]:
    """Return the names of a text that does not parse which are no class and no property.

    Only namespaces that classes and properties share are looked at: elsewhere a name may be a
    resource.
    """
    homes = {namespace_of(name) for name in (*names.classes, *names.properties)}
    found: dict[str, str] = {}
    for text in written:
        name = absolute(text, declared)
        if name is None or namespace_of(name) not in homes or names.term(name) is not None:
            continue
        near = [shown(t.iri, namespaces) for t in nearest_names(name, names, most=2)]
        other = f" (nearest: {', '.join(near)})" if near else ""
        if "count" in words(local_name(name)):
            other = " (count with COUNT)"
        found[text] = f"there is no {text}{other}"
    return list(found.values())


def _nothing_outside_graphs(query: QueryTree, prober: Prober) -> bool:
    if query.where is None or query.dataset:
        return False
    if any(clause.kind == "graph" for clause in query.where.clauses):
        return False
    return prober.ask("?s ?p ?o") is False and prober.ask("GRAPH ?g { ?s ?p ?o }") is True


def _vouched(pattern: TriplePattern, names: Vocabulary, declared: Mapping[str, str]) -> bool:
    """Say whether the vocabulary knows that a pattern matches."""
    predicate = absolute(pattern.predicate, declared)
    variables = pattern.subject[:1] in "?$" and pattern.subject != pattern.object
    if predicate == TYPE and variables:
        kind = absolute(pattern.object, declared)
        term = None if kind is None else names.classes.get(kind)
        return pattern.object[:1] in "?$" or (term is not None and term.in_data)
    known = None if predicate is None else names.properties.get(predicate)
    return variables and pattern.object[:1] in "?$" and known is not None and known.in_data


def _hopeless(unit: Unit, found: NameFindings, declared: Mapping[str, str]) -> bool:
    """Say whether a part was already told to match nothing, for a name in it."""
    if unit.pattern is None:
        return False
    if any(token.text in ("|", "*", "?", "!") for token in tokenize(unit.pattern.predicate)):
        return False  # it can match without the name
    terms = [t.text for t in tokenize(str(unit.pattern)) if t.kind in ("iri", "name")]
    return any(absolute(text, declared) in found.unknown for text in terms)


def _own_words(prepared: PreparedQuery) -> dict[str, str]:
    """Return what the harness wrote into a query → what its writer wrote there."""
    return {
        edit.text: prepared.original[edit.start : edit.end]
        for edit in prepared.edits
        if edit.text.startswith("<") and edit.end > edit.start
    }


def _cut(line: str, own: Mapping[str, str] = MappingProxyType({})) -> str:
    for sent, written in own.items():
        line = line.replace(sent, written)
    line = " ".join(line.split())
    if len(line) <= MOST_CHARS:
        return line
    return line[: MOST_CHARS - 1].rsplit(" ", 1)[0].rstrip(",;:( ") + "…"
