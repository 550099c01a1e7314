"""Why a query returned nothing, and what was meant where it cannot be sent.

`explain_empty` reports the names that do not exist, and the first part of the query that leaves no
rows. It sends a bounded number of small queries and never raises for an endpoint's trouble.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from pyoxigraph import Literal
from rdflib.plugins.sparql.parserutils import CompValue

from reasoningbank.errors import EndpointError, QueryError, UsageError
from reasoningbank.findings import Finding
from reasoningbank.schema.causes import explain_failure, explain_rest
from reasoningbank.schema.lint import (
    MOST_FINDINGS,
    as_lines,
    find_unknown,
    in_own_words,
    lint,
    unbound_columns,
)
from reasoningbank.schema.lookups import Lookups, write
from reasoningbank.schema.names import (
    local_name,
    namespace_of,
    nearest_names,
    nearest_prefixes,
    shown,
    words,
    wrong_prefixes,
)
from reasoningbank.schema.sampling import side_client
from reasoningbank.schema.schema import Schema
from reasoningbank.schema.structure import is_datatype
from reasoningbank.sparql import (
    BooleanResult,
    EndpointConfig,
    GraphResult,
    PreparedQuery,
    Result,
    SPARQLClient,
)
from reasoningbank.sparql.probing import Prober, Unit, find_failures
from reasoningbank.sparql.syntax import MOST_CHARS as LONGEST_QUERY
from reasoningbank.sparql.terms import RDF_TYPE, absolute, full
from reasoningbank.sparql.tokens import prologue, tokenize, tokens_within
from reasoningbank.sparql.tree import QueryTree, TriplePattern, read_query

#: Seconds one probe may take.
PROBE_TIMEOUT_S = 3.0
#: What can follow the object of a triple.
_ENDS = (".", ";", ",", "}", "]", ")")


def probe_run(config: EndpointConfig) -> Callable[[str], Result]:
    """Return a function that sends probes to an endpoint: each within 3 s, without retries."""
    return side_client(config, PROBE_TIMEOUT_S).query


def is_empty(result: Result, prepared: PreparedQuery | None = None) -> bool:
    """Return whether a result holds nothing: no rows, no triples, ASK false, or only zero counts.

    Without its query, or if rdflib did not parse that, a lone 0 is a value and not a zero count.
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


def explain_empty(
    prepared: PreparedQuery,
    schema: Schema,
    run: Callable[[str], Result],
    *,
    namespaces: Mapping[str, str],
) -> list[Finding]:
    """Return why a query returned nothing, the most useful finding first; empty if unknown.

    `run` sends a query to the same endpoint (see `probe_run`): at most 16, and none after 8 s.
    `namespaces`, by prefix, are for the names in the findings.
    """
    findings = unbound_columns(prepared)
    try:
        query = read_query(prepared.text)
    except QueryError:
        return findings
    prober = Prober(query, run)
    look = Lookups(prober, schema, namespaces, query.declared)
    unknown, found = find_unknown(prepared, query, look, look_up=True)
    findings += found
    if len(findings) < MOST_FINDINGS:
        failures = find_failures(
            query,
            prober,
            vouched=lambda pattern: _vouched(pattern, look),
            hopeless=lambda unit: _hopeless(unit, unknown, look),
        )
        if all(failure.alone for failure in failures) and _nothing_outside_graphs(query, prober):
            what = "nothing is in the default graph here"
            hint = "put GRAPH ?g { } around the patterns"
            findings.append(Finding("default-graph-empty", what, hint=hint))
        else:
            most = MOST_FINDINGS - len(findings)
            findings += [explain_failure(look, failure) for failure in failures[:most]]
            findings = findings or explain_rest(look, prepared, query)
    return in_own_words(findings, prepared)


def explain_error(
    query: str, error: QueryError, schema: Schema, namespaces: Mapping[str, str]
) -> list[Finding]:
    """Return what was probably meant where a query cannot be sent at all.

    That is the nearest names or prefixes of an undeclared prefix, else names that do not exist.
    """
    if len(query) > LONGEST_QUERY:
        return []
    every = tokenize(query)
    declared, start = prologue(every)
    # Other names exist at another endpoint.
    elsewhere = set(tokens_within(every[start:], ("SERVICE",), "{}"))
    tokens = [token for token in every[start:] if token not in elsewhere]
    names = [
        (before, token, after)
        for before, token, after in zip(tokens, tokens[1:], [*tokens[2:], None], strict=False)
        if token.kind == "name" and not token.text.endswith(":")
    ]
    if error.code == "unknown-prefix":
        prefix = error.fields["prefix"]
        for before, token, _ in names:
            leads_to = schema.objects_of(absolute(before.text, {**namespaces, **declared}) or "")
            texts = bool(leads_to) and all(map(is_datatype, leads_to))
            if texts and token.text.startswith(prefix + ":"):
                fields = {"pattern": f"{before.text} {token.text}", "predicate": before.text}
                what = f"{before.text} leads to texts"
                instead = full(Literal(token.text))
                return [write("resource-for-text", what, f"{before.text} {instead}", fields)]
        return _for_prefix(prefix, [token.text for _, token, _ in names], schema, namespaces)
    found = wrong_prefixes(query, namespaces)
    if schema.complete:
        # At the places of properties and classes, as far as tokens show.
        written = [
            token.text
            for before, token, after in names
            if before.text == "a" or (after is not None and after.text not in _ENDS)
        ]
        found += _unknown_in_text(written, {**declared, **namespaces}, schema, namespaces)
    return found


def _for_prefix(
    prefix: str, written: Sequence[str], schema: Schema, namespaces: Mapping[str, str]
) -> list[Finding]:
    """Return the name that has an undeclared prefix, else the nearest prefixes."""
    local = next((t.partition(":")[2] for t in written if t.startswith(prefix + ":")), "")
    near = nearest_names(f"urn:/{local}", schema) if local else ()
    meant = [shown(t.iri, namespaces) for t in near if local_name(t.iri).lower() == local.lower()]
    meant = meant or [f"{name}:" for name in nearest_prefixes(prefix, namespaces)]
    if not meant:
        return []
    what = f"did you mean {' or '.join(meant)}?"
    return [Finding("unknown-prefix", what, fields={"prefix": prefix, "replacements": meant})]


def _unknown_in_text(
    written: Sequence[str],
    declared: Mapping[str, str],
    schema: Schema,
    namespaces: Mapping[str, str],
) -> list[Finding]:
    """Return the names of a text that does not parse which are neither class nor property."""
    homes = {namespace_of(name) for name in (*schema.classes, *schema.properties)}
    found = []
    for text in dict.fromkeys(written):
        name = absolute(text, declared)
        if name is None or namespace_of(name) not in homes or schema.term(name) is not None:
            continue
        near = [shown(t.iri, namespaces) for t in nearest_names(name, schema, most=2)]
        counting = "count" in words(local_name(name))
        other = f" (nearest: {', '.join(near)})" if near else ""
        other = " (count with COUNT)" if counting else other
        fields = {"name": text, "iri": name, "replacements": near, "counting": counting}
        found.append(Finding("unknown-name", f"there is no {text}{other}", fields=fields))
    return found


def _nothing_outside_graphs(query: QueryTree, prober: Prober) -> bool:
    if query.where is None or query.dataset:
        return False
    if any(clause.kind == "graph" for clause in query.where.clauses):
        return False
    return prober.ask("?s ?p ?o") is False and prober.ask("GRAPH ?g { ?s ?p ?o }") is True


def _vouched(pattern: TriplePattern, look: Lookups) -> bool:
    """Return whether the schema knows that a pattern matches."""
    if pattern.subject[:1] not in "?$" or pattern.subject == pattern.object:
        return False
    predicate, is_open = look.name(pattern.predicate), pattern.object[:1] in "?$"
    known = look.schema.properties.get(predicate or "") if is_open else None
    if predicate == RDF_TYPE:
        if is_open:
            return True
        known = look.schema.classes.get(look.name(pattern.object) or "")
    return known is not None and known.in_data


def _hopeless(unit: Unit, unknown: Collection[str], look: Lookups) -> bool:
    """Return whether a part matches nothing because of an unknown name in it."""
    if unit.pattern is None:
        return False
    if any(token.text in ("|", "*", "?", "!") for token in tokenize(unit.pattern.predicate)):
        return False  # it can match without the name
    terms = [t.text for t in tokenize(str(unit.pattern)) if t.kind in ("iri", "name")]
    return any(look.name(text) in unknown for text in terms)


def explain_query(
    query: str, client: SPARQLClient, schema: Schema | None, *, empty: bool
) -> list[Finding]:
    """Return what is known to be wrong with a query; empty if nothing is.

    No gold is read: names are compared with the schema, and the client's endpoint is asked which
    pattern of a query that ran and was `empty` fails first.
    """
    if schema is None:
        return []
    namespaces = client.config.namespaces
    try:
        prepared = client.prepare(query)
    except QueryError as error:
        return explain_error(query, error, schema, namespaces)
    run = probe_run(client.config)
    try:
        find = explain_empty if empty else lint
        return find(prepared, schema, run, namespaces=namespaces)
    except (QueryError, EndpointError, UsageError):
        # A diagnosis is help, not a result: without it the caller still has the error itself.
        return []


def explainer(
    client: SPARQLClient, schema: Schema | None
) -> Callable[[str, bool], tuple[str, ...]]:
    """Return a function of a query, and whether it returned nothing, that explains it in lines."""
    return lambda query, empty: as_lines(explain_query(query, client, schema, empty=empty))
