"""Validation of a query at three levels: syntax, what a pack knows, and its endpoint.

`validate_syntax` uses two parsers, `validate_semantic` the pack's schema, statistics and rules,
`validate_endpoint` executes. Each problem is a `Finding` that says what to do; its field ``level``
names the level.
"""

from __future__ import annotations

import itertools
import re
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

from rdflib.term import Identifier, URIRef, Variable
from rdflib.term import Literal as Text

from reasoningbank.corpus import FederatedEndpoint, Pack, open_endpoint
from reasoningbank.corpus.pack import namespaces_of
from reasoningbank.errors import QueryError
from reasoningbank.findings import Finding
from reasoningbank.nl2sparql.detection import (
    detector_of,
    is_named,
    is_shown,
    seen_in,
    value_detector_of,
    walk_links,
)
from reasoningbank.nl2sparql.hints import (
    DEFAULT_PACK,
    Constraints,
    Direction,
    PropertyRow,
    as_pack,
    load_constraints,
    load_patterns,
)
from reasoningbank.nl2sparql.words import (
    FUNCTION_WORDS,
    LANGUAGES,
    QuestionToken,
    folded,
    read_tokens,
    stem,
)
from reasoningbank.schema import Schema, Statement, lint, read_statements
from reasoningbank.schema.lookups import read_literal
from reasoningbank.schema.names import local_name
from reasoningbank.schema.structure import Structure, is_datatype
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
from reasoningbank.sparql.query import PreparedQuery
from reasoningbank.sparql.tokens import tokenize
from reasoningbank.sparql.tree import read_query

Level = Literal["syntax", "semantic", "endpoint"]
LEVELS: tuple[Level, ...] = ("syntax", "semantic", "endpoint")
#: Given a query, and whether it ran and returned nothing: what is wrong with it, a line each.
Explain = Callable[[str, bool], Sequence[str]]

#: Semantic problems of one query that are reported; the first ones often explain the others.
MOST = 5
#: Rows shown of a result, and rows requested.
SHOWN, MOST_ROWS = 10, 10_000
#: Codes that identify one thing: not *20th*, *CO2*, *B12*, *1,000aa* or *top100*.
_IDENTIFIER = re.compile(r"(?![a-z]{3,}\d+$)[^\W\d_](?=(?:.*\d){3}).{5,}")


@dataclass(frozen=True)
class Validation:
    """What was found at one level."""

    problems: tuple[Finding, ...] = ()  #: What is wrong, the most serious first
    notes: tuple[str, ...] = ()  #: What could not be checked, and why

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
    """

    executed: bool = False  #: Whether the endpoint answered; an empty answer counts
    rows: int = 0  #: Number of rows, or of triples; 1 for an ASK
    truncated: bool = False  #: Whether there were more
    #: The first rows, by column, terms as a prompt writes them
    results: tuple[dict[str, Any], ...] = ()
    seconds: float = 0.0  #: How long it took

    def __iter__(self) -> Iterator[Any]:
        error = None if self.executed else "; ".join(map(str, self.problems))
        return iter((self.executed, error, self.rows, list(self.results)))


def _of_error(level: Level, code: str, error: QueryError) -> tuple[Finding]:
    fields = {**error.fields, "level": level, "cause": error.code}
    return (Finding(code, error.what, error.where, error.hint, fields),)


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
    with rows shows it. Without `endpoint` none is executed.
    """
    if "syntax" in levels and not (syntax := validate_syntax(sparql, pack)):
        return syntax.problems, None
    problems: list[Finding] = []
    if "semantic" in levels:
        problems += validate_semantic(sparql, pack, patterns, question=question).problems
    if endpoint is None or "endpoint" not in levels:
        return tuple(problems), None
    checked = validate_endpoint(sparql, endpoint, timeout)
    for one in checked.problems:
        lines = explain(sparql, one.code == "empty") if explain is not None else ()
        problems.append(replace(one, hint="; ".join(lines)) if lines else one)
    return tuple(problems), checked


def validate_syntax(sparql: str, pack: Pack | str | None = DEFAULT_PACK) -> Validation:
    """Check that a query parses and uses no unknown prefix.

    Args:
        sparql: A query; an update is not one.
        pack: The pack whose prefixes need not be declared; None for only the standard ones.

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
    namespaces = namespaces_of(as_pack(pack)) if pack else STANDARD_PREFIXES
    try:
        prepared = prepare(sparql, prefixes=namespaces)
    except QueryError as error:
        return Validation(_of_error("syntax", "syntax-error", error))
    if prepared.parsed is None:
        # Oxigraph parses it, or `prepare` would have raised.
        return Validation(notes=("only Oxigraph parses it: it goes beyond SPARQL 1.1",))
    complaint = prepared.complaint()
    return Validation(_of_error("syntax", "rejected", complaint) if complaint else ())


def validate_endpoint(
    sparql: str,
    endpoint: EndpointConfig | SPARQLClient | None = None,
    timeout: float = 30.0,
    shown: int = SHOWN,
) -> EndpointValidation:
    """Execute a query; the endpoint's prefixes need not be declared.

    An empty SELECT, CONSTRUCT or DESCRIBE is a problem (``empty``), since a question rarely asks
    for nothing; an ASK is right either way. A query that fails is ``not-executed``.

    Args:
        sparql: The query.
        endpoint: The endpoint, or a client of it. Without one that of the pack `liita` is opened,
            which takes a second or two: for many queries open it once.
        timeout: Seconds it may take.
        shown: Most rows among the results.

    Raises:
        EndpointError: If the endpoint fails, which is not the query's fault.

    Examples:
        >>> nobody = EndpointConfig("http://127.0.0.1:9/sparql", "Nobody")
        >>> success, error, count, results = validate_endpoint("SELECT * {", nobody)
        >>> success, error
        (False, "line 1, column 10: the query cannot be parsed near ...")
    """
    if endpoint is None:
        with open_endpoint(as_pack(DEFAULT_PACK)) as opened:
            return validate_endpoint(sparql, opened, timeout, shown)
    if isinstance(endpoint, EndpointConfig):
        with SPARQLClient(endpoint) as client:
            return validate_endpoint(sparql, client, timeout, shown)
    began = time.monotonic()
    try:
        result = endpoint.query(sparql, timeout_s=timeout, max_rows=MOST_ROWS)
    except QueryError as error:
        seconds = time.monotonic() - began
        return EndpointValidation(_of_error("endpoint", "not-executed", error), seconds=seconds)
    problems: tuple[Finding, ...] = ()
    if result.n_rows == 0:
        rows = "triples" if isinstance(result, GraphResult) else "rows"
        what = f"the query runs but returns no {rows}"
        hint = "check names, graphs and directions, or loosen the narrowest condition"
        problems = (Finding("empty", what, hint=hint, fields={"level": "endpoint"}),)
    return EndpointValidation(
        problems,
        executed=True,
        rows=result.n_rows,
        truncated=result.truncated,
        results=tuple(_rows(result, endpoint.config.namespaces, shown)),
        seconds=result.seconds,
    )


def _rows(result: Result, namespaces: Mapping[str, str], shown: int) -> Iterator[dict[str, Any]]:
    if isinstance(result, BooleanResult):
        yield {"answer": result.value}
        return
    for row in result.rows(0, shown):
        cells = zip(result.variables, row, strict=True)
        yield {name: compact(term, namespaces) for name, term in cells if term is not None}


def validate_semantic(
    sparql: str,
    pack: Pack | str = DEFAULT_PACK,
    patterns: Iterable[str] = (),
    *,
    question: str = "",
) -> Validation:
    """Check a query against a pack's schema, statistics and rules, and against its question.

    The codes are those of `reasoningbank.schema`, and of the rules: ``not-named`` (the question
    quotes a word or a code that the query lacks), ``missing-pattern`` and ``missing-value`` (it
    asks for something that the query has no sign of), ``unknown-value``, ``missing-service``,
    ``wrong-service``, ``wrong-graph``, ``one-variable-two-entries``, ``reversed-direction``.

    Args:
        sparql: A query; the pack's prefixes need not be declared.
        pack: The pack or its name.
        patterns: What the question needs, for rules that depend on it.
        question: The question itself.

    Returns:
        At most five problems. A query that does not parse is noted: `validate_syntax` reports it.
    """
    pack = as_pack(pack)
    namespaces = namespaces_of(pack)
    try:
        prepared = prepare(sparql, prefixes=namespaces)
        statements = read_statements(prepared.text)
    except QueryError as error:
        return Validation(notes=(f"not checked, since it does not parse: {error.what}",))
    if prepared.parsed is None:
        return Validation(notes=("not checked: the query goes beyond SPARQL 1.1",))
    schema = _schema(pack)
    structure = Structure(statements, schema, namespaces)
    constraints = load_constraints(pack)
    ruled = list(_misused(constraints.properties, structure))
    skip = {one.fields["iri"] for one in ruled}
    problems = [
        *_unnamed(question, prepared.text, pack, structure),
        *_missing(question, prepared, pack, structure),
        *ruled,
        *filter(_counts, lint(prepared, schema, namespaces=namespaces, skip=skip)),
        *_two_entries(constraints, structure),
        *_turned(constraints.directions, frozenset(patterns), structure),
    ]
    leveled = (replace(f, fields={**f.fields, "level": "semantic"}) for f in problems)
    return Validation(tuple(dict.fromkeys(leveled))[:MOST])


def _counts(finding: Finding) -> bool:
    # Classes may be abstract, with instances of their subclasses only.
    abstract = finding.code in ("only-subclasses", "not-in-data")
    is_class = finding.fields.get("role") == "class"
    return finding.code != "unbound-column" and not (abstract and is_class)


@lru_cache(maxsize=32)
def _schema(pack: Pack) -> Schema:
    """Return the schema of a pack's endpoint, from the pack's files alone."""

    def read(one: Pack | FederatedEndpoint, address: str, **declared: Any) -> Schema:
        union = one.union_default_graph
        return Schema.of_files(
            void=one.void, name=one.name, address=address, union=union, **declared
        )

    services = {other.url: read(other, other.url, schema=None) for other in pack.federated}
    return read(pack, pack.endpoint, schema=pack.schema, services=services)


# -- the rules of a pack --------------------------------------------------------------------


def _misused(rows: Iterable[PropertyRow], structure: Structure) -> Iterator[Finding]:
    """Yield violations of the property table, which holds where statistics lack, too."""
    by_iri = {row.iri: row for row in rows}
    for one in structure.query.statements:
        row = by_iri.get(str(one.predicate))
        if row is None or isinstance(one.service, Variable):
            continue
        inside = str(one.service or "")
        code = what = hint = ""
        fields: dict[str, Any] = {"iri": row.iri, "name": row.name}
        if row.service and not (inside and same_address(inside, row.service)):
            code = "wrong-service" if inside else "missing-service"
            what = f"{row.name} is only known at SERVICE <{row.service}>"
            hint = f"put its pattern inside SERVICE <{row.service}> {{ … }}"
            fields["service"] = row.service
        elif row.graph and isinstance(one.graph, URIRef) and str(one.graph) != row.graph:
            code, what = "wrong-graph", f"the graph <{one.graph}> has no {row.name}"
            hint = f"put its pattern inside GRAPH <{row.graph}> {{ … }}"
            fields["graph"] = row.graph
        elif row.values and not isinstance(one.object, Variable):
            if str(one.object) in row.values:
                continue
            kind = "text" if isinstance(one.object, Text) else structure.show(one.object)
            names = list(row.values.values())
            code, what = "unknown-value", f"{row.name} never leads to {kind}"
            hint = f"write one of {', '.join(names)}, or a variable with its rdfs:label"
            fields |= {"value": kind, "replacements": names}
        if code:
            yield Finding(code, what, hint=hint, fields=fields)


def _two_entries(constraints: Constraints, structure: Structure) -> Iterator[Finding]:
    """Yield a finding for each variable that a query uses for two entries."""
    short, statements = structure.short, structure.query.statements

    def finding(term: Identifier, uses: str) -> Finding:
        name = structure.show(term)
        what = f"{name} is used for two entries{uses}"
        hint = constraints.entries.hint or "use a separate variable for each"
        return Finding("one-variable-two-entries", what, hint=hint, fields={"variable": name})

    kinds = {row.iri: row.entry for row in constraints.properties if row.entry}
    used: dict[Identifier, list[Statement]] = defaultdict(list)
    for one in statements:
        if str(one.predicate) in kinds and isinstance(one.subject, Variable):
            used[one.subject].append(one)
    for variable, found in used.items():
        for one, other in itertools.combinations(found, 2):
            names = [str(one.predicate), str(other.predicate)]
            kind, other_kind = (kinds[name] for name in names)
            if kind != other_kind and one.meets(other):
                listed = " and ".join(map(short, names))
                yield finding(variable, f", {kind} and {other_kind} ({listed})")
    for name, by in constraints.entries.apart:
        for one, other in itertools.combinations(
            [s for s in statements if str(s.predicate) == name], 2
        ):
            if one.subject != other.subject or not one.meets(other):
                continue
            links = [s for s in statements if one.subject not in (s.subject, s.object)]
            ends, other_ends = (
                {
                    str(end)
                    for link, end in walk_links(start.object, links)
                    if str(link.predicate) == by and isinstance(end, URIRef)
                }
                for start in (one, other)
            )
            if ends and other_ends and not ends & other_ends:
                listed = " and ".join(sorted(ends | other_ends))
                yield finding(one.subject, f": its two {short(name)} lead to {listed}")


def _turned(
    rules: Sequence[Direction], patterns: frozenset[str], structure: Structure
) -> Iterator[Finding]:
    """Yield relations that have what the question names at the wrong end."""
    relations = {rule.property for rule in rules}
    texts, statements = structure.query.texts.keys(), structure.query.statements
    links = [s for s in statements if str(s.predicate) not in relations]
    for rule in rules:
        if rule.pattern not in patterns or patterns & set(rule.unless):
            continue
        ends = [
            {end: is_named(getattr(s, end), links, texts) for end in ("subject", "object")}
            for s in statements
            if str(s.predicate) == rule.property
        ]
        wrong = "subject" if rule.named == "object" else "object"
        # With a step between two unnamed things the query goes on from what it found.
        if ends and all(one[wrong] and not one[rule.named] for one in ends):
            name = rule.name or structure.short(rule.property)
            what = f"{name} is the wrong way round for this question"
            yield Finding("reversed-direction", what, hint=rule.hint, fields={"property": name})


def _missing(
    question: str, prepared: PreparedQuery, pack: Pack, structure: Structure
) -> Iterator[Finding]:
    """Yield what the pack's rules find in a question and the query has no sign of."""
    seen = seen_in(prepared.text) if question else None
    if seen is None:
        return
    patterns = load_patterns(pack)
    found = (*detector_of(pack).detect(question), *value_detector_of(pack).detect(question))
    because = {one.pattern: one.because for one in found}
    for one in (*patterns.patterns, *patterns.values):
        words = list(because.get(one.name, ()))
        if not words:
            continue
        is_value = one in patterns.values
        # A pattern that follows from others is less certain; a description is about everything.
        implied = not set(words).isdisjoint(patterns.names)
        certain = one.checked and not implied and prepared.form != "DESCRIBE"
        if not (is_value or certain) or is_shown(one, seen, loosely=True):
            continue
        iris = (sign.names if is_value else sign.properties for sign in one.signs)
        use = dict.fromkeys(structure.short(iri) for iri in itertools.chain(*map(sorted, iris)))
        yield Finding(
            "missing-value" if is_value else "missing-pattern",
            f"the query lacks {one.title or one.name}, asked for by {', '.join(words)}",
            hint=f"write {' or '.join(use)}" if use else "",
            fields={"name": one.name, "words": words},
        )


def _unnamed(question: str, sparql: str, pack: Pack, structure: Structure) -> Iterator[Finding]:
    """Yield a finding if quoted words, affixes or codes of a question are nowhere in the query."""
    shapes = load_patterns(pack).shapes
    named = [
        one
        for one in read_tokens(question, shapes)
        if one.kind in ("quoted", "affix", *shapes)
        or (one.kind == "code" and _IDENTIFIER.fullmatch(one.text))
    ]
    if not named:
        return
    kinds = ("string", "iri", "name")
    text = " ".join(_plain(token.text) for token in tokenize(sparql) if token.kind in kinds)
    missing = [one for one in named if not _is_named(one, text, sparql, pack)]
    # The pack's files do not say which words are the names of an IRI.
    things = _things(sparql, pack, structure) if missing else set()
    by_iri = [one for one in missing if any(_may_be(thing, one) for thing in things)]
    if len(by_iri) <= len(things):
        missing = [one for one in missing if one not in by_iri]
    if missing:
        shown = _shown(missing)
        texts = [one.text.strip() for one in missing]
        values = [d.pattern for text in texts for d in value_detector_of(pack).detect(text)]
        ends = [
            "^" * (not text.startswith("-")) + text.strip("-") + "$" * (not text.endswith("-"))
            for text in texts
            if text.startswith("-") or text.endswith("-")
        ]
        quoted = _shown(one for one in named if one.kind == "quoted")
        hint = "name it, as the examples name theirs"
        if ends:
            hint = f'compare the spelling: FILTER(REGEX(?word, "{"|".join(ends)}"))'
        elif values:
            hint = f"write {' or '.join(dict.fromkeys(values))}"
        elif len(quoted) > 1:
            hint = f"write it, where there are several: VALUES ?name {{ {' '.join(quoted)} }}"
        what = f"the question names {', '.join(shown)}, but the query does not"
        yield Finding("not-named", what, hint=hint, fields={"missing": shown})


def _is_named(said: QuestionToken, text: str, sparql: str, pack: Pack) -> bool:
    """Return whether a query names something: as it is, in another form, or as a known value."""
    plain = _plain(said.text.strip(" -…."))
    # Prefixed names and IRIs write a code's colon in two ways.
    if said.kind != "quoted" and plain.replace(":", "_") in text.replace(":", "_"):
        return True
    # A quoted word is a whole one: a query with "gattopardo" does not name 'gatto'.
    if plain in text and (
        said.kind != "quoted" or re.search(rf"(?<!\w){re.escape(plain)}(?!\w)", text)
    ):
        return True
    for language in LANGUAGES:
        written = {stem(word, language) for word in re.findall(r"[^\W\d_]+", text)}
        words = [word for word in plain.split() if word not in FUNCTION_WORDS[language]]
        if words and all(word.isalpha() and stem(word, language) in written for word in words):
            return True
    if any(_spells(token.text, plain) for token in tokenize(sparql) if token.kind == "string"):
        return True
    seen = seen_in(sparql)
    detected = value_detector_of(pack).detect(plain)
    if said.kind == "quoted" and not detected:
        # It may be the word of a pattern: 'emotion'.
        detected = detector_of(pack).detect(plain)
    names, known = {one.pattern for one in detected}, load_patterns(pack)
    return seen is not None and any(
        one.name in names and is_shown(one, seen) for one in (*known.values, *known.patterns)
    )


def _spells(literal: str, word: str) -> bool:
    """Return whether a regular expression, such as ``os[oa]$``, stands for a word, not for any."""
    # Most texts are no pattern, and a repeated group can take very long.
    written = _plain(read_literal(literal) or "") if re.search(r"[\[|?(]", literal) else ""
    if not written or re.search(r"[*+}]\)*[*+{]|\)[*+{]", written):
        return False
    try:
        form = re.compile(written)
    except re.error:
        return False
    return bool(form.fullmatch(word)) and not form.fullmatch("q" * len(word))


def _may_be(iri: str, said: QuestionToken) -> bool:
    """Return whether an IRI may be what a quoted word or a code of another form stands for."""
    if said.kind == "quoted":
        return said.text == said.text.strip("-")
    form, other = (
        re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "9", text))
        for text in (said.text, local_name(iri))
    )
    return said.kind == "code" and form != other


def _things(sparql: str, pack: Pack, structure: Structure) -> set[str]:
    """Return the IRIs of a query that are neither vocabulary nor values of the pack's rules."""
    seen, patterns = seen_in(sparql), load_patterns(pack)
    if seen is None:
        return set()
    known = {name for row in load_constraints(pack).properties for name in row.values}
    for one in (*patterns.patterns, *patterns.values):
        known.update(*(sign.names | sign.along for sign in one.signs))
    roles = ("properties", "classes", "graphs", "services")
    known.update(read_query(sparql).declared.values(), *(seen.names[role] for role in roles))
    known.update(structure.query.dataset, structure.schema.classes, structure.schema.properties)
    return {name for name in seen.names["names"] - known if not is_datatype(name)}


def _plain(text: str) -> str:
    # Regular expressions escape signs.
    return folded(text).replace("\\", "")


def _shown(tokens: Iterable[QuestionToken]) -> list[str]:
    texts = (f'"{one.text}"' if one.kind == "quoted" else one.text for one in tokens)
    return list(dict.fromkeys(texts))
