"""Validation of a query at three levels: syntax, what a pack knows, and its endpoint.

`validate_syntax` uses two parsers, `validate_semantic` the pack's schema, statistics and rules,
`validate_endpoint` executes. Each problem is a `Finding` that says what to do; its field ``level``
names the level.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

from rdflib.term import Identifier, URIRef, Variable
from rdflib.term import Literal as Text

from reasoningbank.corpus import Pack, load_pack, open_endpoint
from reasoningbank.errors import QueryError
from reasoningbank.findings import Finding
from reasoningbank.nl2sparql.constraints import (
    Constraints,
    Direction,
    PropertyRow,
    load_constraints,
)
from reasoningbank.nl2sparql.patterns import DEFAULT_PACK, load_patterns, namespaces_of
from reasoningbank.nl2sparql.words import QuestionToken, folded, read_tokens
from reasoningbank.schema import Schema, Statement, Statements, lint, read_statements
from reasoningbank.schema.structure import Structure
from reasoningbank.sparql import (
    STANDARD_PREFIXES,
    BooleanResult,
    EndpointConfig,
    GraphResult,
    Result,
    SPARQLClient,
    compact,
    prepare,
    same_address,
)
from reasoningbank.sparql.tokens import tokenize

Level = Literal["syntax", "semantic", "endpoint"]
LEVELS: tuple[Level, ...] = ("syntax", "semantic", "endpoint")
#: Given a query, and whether it ran and returned nothing: what is wrong with it, a line each.
Explain = Callable[[str, bool], Sequence[str]]

#: Semantic problems of one query that are reported; the first ones often explain the others.
MOST = 5
#: Rows shown of a result, and rows requested.
SHOWN, MOST_ROWS = 10, 10_000
#: Classes may be abstract, with instances of their subclasses only.
_ABSTRACT = ("only-subclasses", "not-in-data")
#: Codes that identify one thing: not *20th*, *CO2*, *B12*, *1,000aa* or *top100*.
_IDENTIFIER = re.compile(r"(?![a-z]{3,}\d+$)[^\W\d_](?=(?:.*\d){3}).{5,}")


@dataclass(frozen=True)
class Validation:
    """What was found at one level.

    Attributes:
        problems: What is wrong, the most serious first.
        notes: What could not be checked, and why.
    """

    problems: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def __bool__(self) -> bool:
        return self.ok


@dataclass(frozen=True)
class EndpointValidation(Validation):
    """What a query returned.

    It unpacks into four: whether it was executed, the error (None if there is none), the number of
    rows, and the first rows.

    Attributes:
        executed: Whether the endpoint answered; an empty answer counts.
        rows: Number of rows, or of triples; 1 for an ASK.
        truncated: Whether there were more.
        results: The first rows, by column, terms as a prompt writes them.
        seconds: How long it took.
    """

    executed: bool = False
    rows: int = 0
    truncated: bool = False
    results: tuple[dict[str, Any], ...] = ()
    seconds: float = 0.0

    def __iter__(self) -> Iterator[Any]:
        error = None if self.executed else "; ".join(map(str, self.problems))
        return iter((self.executed, error, self.rows, list(self.results)))


def _problem(level: Level, code: str, what: str, hint: str = "", **fields: Any) -> Finding:
    return Finding(code, what, hint=hint, fields={"level": level, **fields})


def _of_error(level: Level, code: str, error: QueryError) -> Finding:
    fields = {**error.fields, "level": level, "cause": error.code}
    return Finding(code, error.what, error.where, error.hint, fields)


def validate(
    sparql: str,
    pack: Pack,
    *,
    patterns: Collection[str] = (),
    endpoint: EndpointConfig | SPARQLClient | None = None,
    levels: Collection[Level] = LEVELS,
    timeout: float = 30.0,
    question: str = "",
    explain: Explain | None = None,
) -> tuple[tuple[Finding, ...], EndpointValidation | None]:
    """Check a query at several levels; a syntax error ends the check.

    Semantic problems do not keep a query from its endpoint: rules may be too strict, and a query
    with rows shows it.

    Args:
        sparql: The query.
        pack: The pack.
        patterns: What the question needs.
        endpoint: Where it is executed; None to skip that.
        levels: The levels to check at.
        timeout: Seconds it may take.
        question: The question, whose names the query must contain.
        explain: Says why a query failed or returned nothing, better than its endpoint does.

    Returns:
        The problems, and what the endpoint returned.

    Raises:
        EndpointError: If the endpoint fails.
    """
    problems: list[Finding] = []
    if "syntax" in levels:
        problems += validate_syntax(sparql, pack).problems
        if problems:
            return tuple(problems), None
    if "semantic" in levels:
        problems += validate_semantic(sparql, pack, patterns, question=question).problems
    checked = None
    if "endpoint" in levels and endpoint is not None:
        checked = validate_endpoint(sparql, endpoint, timeout)
        for one in checked.problems:
            lines = explain(sparql, one.code == "empty") if explain is not None else ()
            problems.append(replace(one, hint="; ".join(lines)) if lines else one)
    return tuple(problems), checked


def validate_syntax(sparql: str, pack: Pack | str | None = DEFAULT_PACK) -> Validation:
    """Check that a query parses and uses no unknown prefix.

    Args:
        sparql: A query; an update is not one.
        pack: The pack or its name, whose prefixes need not be declared; None for only the
            standard ones.

    Returns:
        The first problem, with line, column and the likely fix: ``syntax-error``, or ``rejected``
        where only Oxigraph rejects the query. What only Oxigraph accepts is noted.

    Raises:
        UsageError: If there is no such pack.

    Examples:
        >>> validate_syntax("SELECT ?s { ?s ?p ?o }").ok
        True
        >>> print(validate_syntax("SELECT ?s { ?s ?p ?o").problems[0])
        line 1, column 19: the query cannot be parsed near ... add the '}' that closes ...
    """
    found = load_pack(pack) if isinstance(pack, str) else pack
    namespaces = namespaces_of(found) if found else STANDARD_PREFIXES
    try:
        prepared = prepare(sparql, prefixes=namespaces)
    except QueryError as error:
        return Validation((_of_error("syntax", "syntax-error", error),))
    if prepared.parsed is None:
        # Oxigraph parses it, or `prepare` would have raised.
        return Validation(notes=("only Oxigraph parses it: it goes beyond SPARQL 1.1",))
    complaint = prepared.complaint()
    if complaint is None:
        return Validation()
    return Validation((_of_error("syntax", "rejected", complaint),))


def validate_endpoint(
    sparql: str, endpoint: EndpointConfig | SPARQLClient | None = None, timeout: float = 30.0
) -> EndpointValidation:
    """Execute a query.

    An empty SELECT, CONSTRUCT or DESCRIBE is a problem (``empty``), since a question rarely asks
    for nothing; an ASK is right either way. A query that fails is ``not-executed``.

    Args:
        sparql: A query; the endpoint's prefixes need not be declared.
        endpoint: The endpoint, or a client of it. Without one that of the pack `liita` is opened,
            which takes a second or two: for many queries open it once.
        timeout: Seconds it may take.

    Raises:
        EndpointError: If the endpoint fails, which is not the query's fault.

    Examples:
        >>> nobody = EndpointConfig("http://127.0.0.1:9/sparql", "Nobody")
        >>> success, error, count, results = validate_endpoint("SELECT * {", nobody)
        >>> success, error
        (False, "line 1, column 10: the query cannot be parsed near ...")
    """
    if endpoint is None:
        with open_endpoint(load_pack(DEFAULT_PACK)) as opened:
            return validate_endpoint(sparql, opened, timeout)
    client = endpoint if isinstance(endpoint, SPARQLClient) else SPARQLClient(endpoint)
    began = time.monotonic()
    try:
        result = client.query(sparql, timeout_s=timeout, max_rows=MOST_ROWS)
    except QueryError as error:
        problem = _of_error("endpoint", "not-executed", error)
        return EndpointValidation((problem,), seconds=time.monotonic() - began)
    finally:
        if client is not endpoint:
            client.close()
    problems: tuple[Finding, ...] = ()
    if result.n_rows == 0:
        rows = "triples" if isinstance(result, GraphResult) else "rows"
        what = f"the query runs but returns no {rows}"
        hint = "check names, graphs and directions, or loosen the narrowest condition"
        problems = (_problem("endpoint", "empty", what, hint),)
    return EndpointValidation(
        problems,
        executed=True,
        rows=result.n_rows,
        truncated=result.truncated,
        results=tuple(_rows(result, client.config.namespaces)),
        seconds=result.seconds,
    )


def _rows(result: Result, namespaces: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    if isinstance(result, BooleanResult):
        yield {"answer": result.value}
        return
    for row in result.rows(0, SHOWN):
        cells = zip(result.variables, row, strict=True)
        yield {name: compact(term, namespaces) for name, term in cells if term is not None}


def validate_semantic(
    sparql: str,
    pack: Pack | str = DEFAULT_PACK,
    patterns: Iterable[str] = (),
    *,
    question: str = "",
) -> Validation:
    """Check a query against a pack's schema, statistics and rules.

    The codes are those of `reasoningbank.schema`, and of the rules: ``not-named`` (the question
    quotes a word or a code that the query lacks), ``unknown-value``, ``missing-service``,
    ``wrong-service``, ``wrong-graph``, ``one-variable-two-entries``, ``reversed-direction``.

    Args:
        sparql: A query; the pack's prefixes need not be declared.
        pack: The pack or its name, whose schema, statistics and ``hints/constraints.toml`` are
            used.
        patterns: What the question needs, for rules that depend on it.
        question: The question itself.

    Returns:
        At most five problems. A query that does not parse is noted: `validate_syntax` reports it.

    Raises:
        UsageError: If the pack's files cannot be read.

    Examples:
        >>> found = validate_semantic("ASK { ?lemma lila:hasPos lila:noun }")
        >>> print(found.problems[0])
        there is no property lila:hasPos; try lila:hasPOS
    """
    found = load_pack(pack) if isinstance(pack, str) else pack
    try:
        prepared = prepare(sparql, prefixes=namespaces_of(found))
        statements = read_statements(prepared.text)
    except QueryError as error:
        return Validation(notes=(f"not checked, since it does not parse: {error.what}",))
    if prepared.parsed is None:
        return Validation(notes=("not checked: the query goes beyond SPARQL 1.1",))
    namespaces, schema = namespaces_of(found), pack_schema(found)
    rules = _Rules.of(found, statements, schema, frozenset(patterns), namespaces)
    ruled = list(rules.properties())
    known = lint(prepared, schema, namespaces=namespaces, skip={one.fields["iri"] for one in ruled})
    problems = [
        *_unnamed(question, sparql, load_patterns(found).shapes),
        *ruled,
        *(f for f in known if f.code != "unbound-column" and not _is_abstract(f)),
        *rules.entries(),
        *rules.directions(),
    ]
    leveled = (replace(f, fields={**f.fields, "level": "semantic"}) for f in problems)
    return Validation(tuple(dict.fromkeys(leveled))[:MOST])


def _is_abstract(finding: Finding) -> bool:
    return finding.code in _ABSTRACT and finding.fields.get("role") == "class"


def pack_schema(pack: Pack) -> Schema:
    """Return the schema of a pack's endpoint, from the pack's files alone."""
    others = tuple((o.url, o.name, o.union_default_graph, o.void) for o in pack.federated)
    main = (pack.endpoint, pack.name, pack.union_default_graph, pack.void)
    return _pack_schema(pack.schema, main, others)


_Files = tuple[str | None, str, bool, Path | None]


@lru_cache(maxsize=16)
def _pack_schema(schema: Path | None, main: _Files, others: tuple[_Files, ...]) -> Schema:
    def read(declared: Path | None, files: _Files, services: Mapping[str, Schema]) -> Schema:
        address, name, union, void = files
        return Schema.of_files(
            declared, void, name=name, address=address or "", union=union, services=services
        )

    return read(schema, main, {str(other[0]): read(None, other, {}) for other in others})


# -- the rules of a pack --------------------------------------------------------------------


@dataclass(frozen=True)
class _Rules:
    """One query beside the rules of a pack."""

    statements: tuple[Statement, ...]
    texts: Mapping[Identifier, frozenset[str]]
    constraints: Constraints
    rows: Mapping[str, PropertyRow]
    patterns: frozenset[str]
    structure: Structure

    @classmethod
    def of(
        cls,
        pack: Pack,
        query: Statements,
        schema: Schema,
        patterns: frozenset[str],
        namespaces: Mapping[str, str],
    ) -> _Rules:
        constraints = load_constraints(pack)
        rows = {row.iri: row for row in constraints.properties}
        structure = Structure(query, schema, namespaces)
        return cls(query.statements, query.texts, constraints, rows, patterns, structure)

    def properties(self) -> Iterator[Finding]:
        """Yield violations of the property table, which holds where statistics lack, too."""
        for one in self.statements:
            row = self.rows.get(str(one.predicate))
            if row is not None and not isinstance(one.service, Variable):
                yield from self._property(one, row)

    def _property(self, one: Statement, row: PropertyRow) -> Iterator[Finding]:
        inside = str(one.service or "")
        fields = {"iri": row.iri, "name": row.name}
        if row.service and not (inside and same_address(inside, row.service)):
            yield Finding(
                "wrong-service" if inside else "missing-service",
                f"{row.name} is only known at SERVICE <{row.service}>",
                hint=f"put its pattern inside SERVICE <{row.service}> {{ … }}",
                fields={**fields, "service": row.service},
            )
        elif row.graph and isinstance(one.graph, URIRef) and str(one.graph) != row.graph:
            yield Finding(
                "wrong-graph",
                f"the graph <{one.graph}> has no {row.name}",
                hint=f"put its pattern inside GRAPH <{row.graph}> {{ … }}",
                fields={**fields, "graph": row.graph},
            )
        elif (
            row.values
            and not isinstance(one.object, Variable)
            and (str(one.object) not in row.values)
        ):
            kind = "text" if isinstance(one.object, Text) else self.structure.show(one.object)
            names = list(row.values.values())
            yield Finding(
                "unknown-value",
                f"{row.name} never leads to {kind}",
                hint=f"write one of {', '.join(names)}, or a variable with its rdfs:label",
                fields={**fields, "value": kind, "replacements": names},
            )

    def entries(self) -> Iterator[Finding]:
        """Yield a finding for each variable that a query uses for two entries."""
        kinds = {row.iri: row.entry for row in self.constraints.properties if row.entry}
        used: dict[Identifier, list[tuple[str, Statement]]] = defaultdict(list)
        for one in self.statements:
            kind = kinds.get(str(one.predicate))
            if kind and isinstance(one.subject, Variable):
                used[one.subject].append((kind, one))
        for variable, found in used.items():
            for (kind, one), (other_kind, other) in combinations(found, 2):
                if kind != other_kind and one.meets(other):
                    short = self.structure.short
                    names = " and ".join(short(str(s.predicate)) for s in (one, other))
                    yield self._two(variable, f", {kind} and {other_kind} ({names})")
        for name, by in self.constraints.entries.apart:
            statements = [s for s in self.statements if str(s.predicate) == name]
            for one, other in combinations(statements, 2):
                if one.subject != other.subject or not one.meets(other):
                    continue
                ends = self._reached(one, by), self._reached(other, by)
                if all(ends) and not ends[0] & ends[1]:
                    listed = " and ".join(sorted(ends[0] | ends[1]))
                    uses = f": its two {self.structure.short(name)} lead to {listed}"
                    yield self._two(one.subject, uses)

    def _two(self, term: Identifier, uses: str) -> Finding:
        name = self.structure.show(term)
        return Finding(
            "one-variable-two-entries",
            f"{name} is used for two entries{uses}",
            hint=self.constraints.entries.hint or "use a separate variable for each",
            fields={"variable": name},
        )

    def _reached(self, one: Statement, by: str) -> set[str]:
        """Return the IRIs behind a property of what a statement's object is joined to, forwards."""
        links = [s for s in self.statements if one.subject not in (s.subject, s.object)]
        found: set[str] = set()
        seen, left = {one.object}, [one.object]
        while left:
            here = left.pop()
            for link in (link for link in links if link.subject == here):
                if str(link.predicate) == by and isinstance(link.object, URIRef):
                    found.add(str(link.object))
                elif isinstance(link.object, Variable) and link.object not in seen:
                    seen.add(link.object)
                    left.append(link.object)
        return found

    def directions(self) -> Iterator[Finding]:
        """Yield relations that have what the question names at the wrong end."""
        every = self.constraints.directions
        relations = {rule.property for rule in every}
        links = [s for s in self.statements if str(s.predicate) not in relations]
        for one in self.statements:
            for rule in every:
                applies = rule.pattern in self.patterns and not self.patterns & set(rule.unless)
                if (
                    applies
                    and str(one.predicate) == rule.property
                    and self._turned(one, rule, links)
                ):
                    what = f"{rule.name} is the wrong way round for this question"
                    fields = {"property": rule.name}
                    yield Finding("reversed-direction", what, hint=rule.hint, fields=fields)

    def _turned(self, one: Statement, rule: Direction, links: Sequence[Statement]) -> bool:
        subject, object_ = self._named(one.subject, links), self._named(one.object, links)
        if subject == object_:
            return False
        return subject if rule.named == "object" else object_

    def _named(self, term: Identifier, links: Sequence[Statement]) -> bool:
        """Return whether a term is, or is joined to, something that the question names."""
        if isinstance(term, URIRef):
            return True
        seen, left = {term}, [term]
        while left:
            here = left.pop()
            if here in self.texts:
                return True
            for link in links:
                if here not in (link.subject, link.object):
                    continue
                other = link.object if here == link.subject else link.subject
                if isinstance(other, Text):
                    return True
                if isinstance(other, Variable) and other not in seen:
                    seen.add(other)
                    left.append(other)
        return False


def _unnamed(
    question: str, sparql: str, shapes: Mapping[str, re.Pattern[str]]
) -> Iterator[Finding]:
    """Yield a finding if quoted words or codes of a question are nowhere in the query."""
    named = [
        one
        for one in read_tokens(question)
        if one.kind == "quoted"
        or (one.kind == "code" and _IDENTIFIER.fullmatch(one.text))
        or (one.kind == "code" and any(form.fullmatch(one.text) for form in shapes.values()))
    ]
    if not named:
        return
    kinds = ("string", "iri", "name")
    text = " ".join(_plain(token.text) for token in tokenize(sparql) if token.kind in kinds)
    missing = _shown(one for one in named if _plain(one.text.strip().strip("-")) not in text)
    if missing:
        quoted = _shown(one for one in named if one.kind == "quoted")
        hint = "name it, as the examples name theirs"
        if len(quoted) > 1:
            hint = f"write it, where there are several: VALUES ?name {{ {' '.join(quoted)} }}"
        what = f"the question names {', '.join(missing)}, but the query does not"
        yield Finding("not-named", what, hint=hint, fields={"missing": missing})


def _plain(text: str) -> str:
    # Regular expressions escape signs.
    return folded(text).replace("\\", "")


def _shown(tokens: Iterable[QuestionToken]) -> list[str]:
    texts = (f'"{one.text}"' if one.kind == "quoted" else one.text for one in tokens)
    return list(dict.fromkeys(texts))
