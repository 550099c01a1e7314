"""Validating a corpus: SHACL shapes, queries, questions and, with an endpoint, golds' answers.

A finding's `where` is the file, relative to the corpus; its code decides how severe it is.
"""

from __future__ import annotations

import contextlib
import re
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal, cast

import pyoxigraph as ox
from rdflib import RDF, BNode, Graph, URIRef
from rdflib import namespace as known
from rdflib.plugins.sparql.sparql import Query
from rdflib.term import Literal as Text
from rdflib.term import Node

from reasoningbank.corpus.pack import Pack, load_pack, pack_homes
from reasoningbank.corpus.questions import schema_names, unmentioned
from reasoningbank.corpus.shacl import (
    CLOSED,
    PROPERTIES,
    RB,
    RawExample,
    complete_prefixes,
    declared_prefixes,
    load_corpus,
    read_examples,
)
from reasoningbank.corpus.task import LoadedTask, Task
from reasoningbank.errors import EndpointError, QueryError, SetupError
from reasoningbank.findings import Finding
from reasoningbank.schema import local_name
from reasoningbank.sparql import (
    STANDARD_PREFIXES,
    BooleanResult,
    PreparedQuery,
    SPARQLClient,
    address_key,
    iri,
    prepare,
)
from reasoningbank.sparql.query import parse_algebra, parse_update, update_complaint
from reasoningbank.sparql.tokens import begins_update, tokenize

SLOW_S = 5.0
#: As many as the execution judge reads: a gold that is cut here cannot be judged.
MOST_ROWS = 5_000_000
#: After this many failures of the endpoint in a row, no further gold is run.
PATIENCE = 3
_IRIS_PER_QUERY = 50
_MOST_NAMED = 5
_MOST_CHARS = 60
_FINDING = URIRef(RB + "finding")

Severity = Literal["error", "warning", "info"]

#: Errors make an example unusable, unjudgeable, or read otherwise than it was meant; warnings
#: cost quality; infos are worth knowing.
_CODES: dict[Severity, str] = {
    "error": "unreadable syntax-error no-query empty-query several-queries no-question bad-target "
    "form-mismatch misspelt-property unknown-prefix duplicate-id no-examples bad-value "
    "query-syntax oxigraph-syntax gold-fails empty-gold cut-gold endpoint-fails",
    "warning": "several-questions no-target several-targets target-variant no-keywords no-class "
    "unknown-property id-mismatch odd-value rdflib-syntax federates-mismatch unmentioned-constant "
    "slow-gold",
    "info": "html-question no-language few-instances",
}
SEVERITIES: Mapping[str, Severity] = {
    code: severity for severity, codes in _CODES.items() for code in codes.split()
}

_Names = Mapping[URIRef, Sequence[str]]
#: A task and its parsed gold.
_Asked = tuple[Task, Query]


def severity_of(finding: Finding) -> Severity:
    """Return ``error``, ``warning`` or ``info``, by the finding's code."""
    return SEVERITIES[finding.code]


def finding_row(finding: Finding) -> dict[str, Any]:
    """Return a finding as a flat JSON object: file, severity, code, message, fields."""
    return {
        "file": finding.where,
        "severity": severity_of(finding),
        "code": finding.code,
        "message": f"{finding.what}; {finding.hint}" if finding.hint else finding.what,
        "fields": dict(finding.fields),
    }


def validate(
    path: str | Path | Pack,
    client: SPARQLClient | None = None,
    *,
    slow_s: float = SLOW_S,
) -> tuple[Finding, ...]:
    """Check a corpus and report everything odd about it, its questions in all languages.

    Nothing in a corpus makes this fail: a broken file is a finding, and the others are checked.
    Without an endpoint, constants whose IRI ends in a code (``…/taxonomy/9606``) are not compared
    with the question, since only data can say what people call them.

    Args:
        path: A pack, its name, its folder, or any folder of Turtle files.
        client: Client of the endpoint on which every gold is run; without one none is run.
        slow_s: Seconds after which a gold is called slow.

    Returns:
        The findings of `load_corpus` and those of the checks, sorted by file and code.
    """
    pack = path if isinstance(path, Pack) else load_pack(path)
    corpora = {name: load_corpus(pack, language=name) for name in ("en", *pack.languages)}
    corpus = corpora["en"]
    examples = [raw for file in read_examples(pack.examples) for raw in file.examples]
    loaded = {(f.where, f.code, f.fields.get("id")) for f in corpus.findings}
    found = list(corpus.findings)
    found += (
        f for f in _shape_findings(examples) if (f.where, f.code, f.fields["id"]) not in loaded
    )
    for example in examples:
        found += _unknown_properties(example)
    checked = {task.id: _check_query(task, found) for task in corpus.tasks}
    parsed = {name: one.parsed for name, one in checked.items() if one is not None and one.parsed}
    labels = schema_names(pack)
    for language, one in corpora.items():
        own = [t for t in one.tasks if t.id in parsed and language in ("en", t.language)]
        found += _unmentioned([(task, parsed[task.id]) for task in own], client, labels)
    if client is not None:
        golds = [task for task in corpus.tasks if checked[task.id] is not None]
        found += _gold_findings(golds, client, slow_s)
    unique = {(f.where, f.code, f.what): f for f in found}
    return tuple(unique[key] for key in sorted(unique))


def _unknown_properties(example: RawExample) -> Iterator[Finding]:
    for written in example.values:
        terms = _vocabulary_of(written)
        if terms is None or written in terms or written in PROPERTIES:
            continue
        by_name = {local_name(term): term for term in terms}
        close = get_close_matches(local_name(written.rstrip("/#:")), by_name, n=1, cutoff=0.7)
        near = [by_name[name] for name in close]
        what = f"uses <{written}>, which its vocabulary does not have"
        hint = f"did you mean <{near[0]}>?" if near else ""
        facts = {"property": written, "replacements": near}
        yield example.finding("unknown-property", what, hint, **facts)


@lru_cache(maxsize=1024)
def _vocabulary_of(written: str) -> tuple[str, ...] | None:
    """Return the terms of a property's vocabulary; None if they are not all known."""
    if written.startswith(RB):
        return tuple(p for p in PROPERTIES if p.startswith(RB))
    for space in CLOSED:
        if written.startswith(str(space)):
            # rdflib lists only the annotated terms, so membership is asked first.
            if URIRef(written) in space or re.fullmatch(r"_\d+", written[len(str(space)) :]):
                return (written,)
            return tuple(str(term) for term in dir(space) if isinstance(term, URIRef))
    return None


@cache
def shapes(name: str) -> Graph:
    """Return the SHACL shapes of a file, from the repository or from an installed package."""
    for home in pack_homes()[1:]:
        file = home / "shapes" / name
        if file.is_file():
            return Graph().parse(file, format="turtle")
    raise SetupError("the shapes are missing", where="ontology/shapes", hint="reinstall it")


def _shape_findings(examples: Sequence[RawExample]) -> Iterator[Finding]:
    """Check examples with the shapes, misspelled properties as they were meant."""
    nodes = {f"urn:example:{number}": one for number, one in enumerate(examples)}
    triples = (
        (ox.NamedNode(node), ox.NamedNode(property_), value)
        for node, example in nodes.items()
        for property_, values in example.values.items()
        for value in values
    )
    for node, code, what in shape_violations(triples, "examples.ttl"):
        yield nodes[node].finding(code, what)


def shape_violations(
    triples: Iterable[tuple[Any, Any, Any]], name: str
) -> Iterator[tuple[str, str, str]]:
    """Yield where triples violate the shapes of a file: the node, the shape's code, and what."""
    import pyshacl  # 0.3 s that only those who validate need

    graph, rules = Graph(), shapes(name)
    with warnings.catch_warnings():
        # rdflib warns of ill-typed literals, which are violations here.
        warnings.simplefilter("ignore")
        for triple in triples:
            graph.add(cast("Any", tuple(map(_node, triple))))
        report = cast("Graph", pyshacl.validate(graph, shacl_graph=rules, inplace=True)[1])
    for result in report.subjects(RDF.type, known.SH.ValidationResult):
        shape, value = (report.value(result, p) for p in (known.SH.sourceShape, known.SH.value))
        what = str(rules.value(shape, known.SH.message))
        what += "" if value is None else f": {_shown(value)}"
        yield str(report.value(result, known.SH.focusNode)), str(rules.value(shape, _FINDING)), what


def _node(value: ox.NamedNode | ox.BlankNode | ox.Literal) -> Node:
    if isinstance(value, ox.NamedNode):
        return URIRef(value.value)
    if isinstance(value, ox.BlankNode):
        return BNode(value.value)
    if value.language:
        try:
            return Text(value.value, lang=value.language)
        except ValueError:  # rdflib rejects the language tag
            return Text(value.value, lang="und")
    if value.datatype.value == str(known.XSD.string):
        return Text(value.value)
    return Text(value.value, datatype=URIRef(value.datatype.value), normalize=False)


def _check_query(task: LoadedTask, found: list[Finding]) -> PreparedQuery | None:
    """Parse a gold with rdflib and Oxigraph, and compare its SERVICEs with what it declares."""

    def note(code: str, what: str) -> None:
        found.append(_finding(task, code, what))

    if task.form == "UPDATE":
        if reason := _refused(parse_update, task.expected_sparql):
            note("rdflib-syntax", f"rdflib cannot parse the update: {reason}")
        begin = begins_update(tokenize(task.expected_sparql))
        at = 0 if begin is None else begin.start
        if (complaint := update_complaint(task.expected_sparql, at)) is not None:
            note("query-syntax", f"Oxigraph cannot parse the update: {complaint}")
        return None
    declared = declared_prefixes(task.expected_sparql)
    # Undeclared prefixes were found when loading; the rest is checked all the same.
    unknown = complete_prefixes(task.written, declared).unknown
    assumed = {name: f"urn:undeclared:{name}:" for name in unknown}
    try:
        prepared = prepare(task.written, prefixes={**STANDARD_PREFIXES, **assumed, **declared})
    except QueryError as error:
        note("query-syntax", f"{error}")
        return None
    if prepared.parsed is None:
        reason = _refused(parse_algebra, prepared.text) or "no reason given"
        note("rdflib-syntax", f"Oxigraph parses the query, rdflib does not: {reason}")
    elif (refusal := prepared.complaint()) is not None:
        note("oxigraph-syntax", f"rdflib parses the query, Oxigraph does not: {refusal}")
    asked = {address_key(url): url for url in prepared.services if not url.startswith("?")}
    named = {address_key(url): url for url in task.federates_with}
    for key in asked.keys() - named.keys():
        what = f"queries <{asked[key]}>, which no spex:federatesWith names"
        note("federates-mismatch", what)
    # A SERVICE with a variable may go to any of those that are named.
    if not any(url.startswith("?") for url in prepared.services):
        for key in named.keys() - asked.keys():
            what = f"names <{named[key]}> as spex:federatesWith, and has no SERVICE there"
            note("federates-mismatch", what)
    return prepared


def _finding(task: Task, code: str, what: str, **fields: Any) -> Finding:
    text = f"{task.id}: {' '.join(what.split())}"
    return Finding(code, text, task.source_file, fields={"id": task.id, **fields})


def _refused(parse: Callable[[str], object], text: str) -> str:
    """Return why rdflib does not parse a text; empty if it does."""
    try:
        parse(text)
    except Exception as error:  # rdflib raises bare Exceptions too
        return " ".join(f"{error}".split())[:200] or type(error).__name__
    return ""


def _unmentioned(
    asked: Sequence[_Asked], client: SPARQLClient | None, labels: _Names
) -> Iterator[Finding]:
    names = dict(labels)
    left = _left_out(asked, names)
    if client is not None:
        # An endpoint is asked only about IRIs that are not mentioned by their own name.
        for config in (client.config, *client.config.federated):
            wanted = {c for _, constants in left for c in constants if isinstance(c, URIRef)}
            if wanted:
                for node, found in _names_of(sorted(wanted), SPARQLClient(config)).items():
                    names[node] = [*names.get(node, ()), *found]
                left = _left_out([one for one, _ in left], names)
    for (task, _), constants in left:
        kept = [
            c
            for c in constants
            if client is not None
            or not (isinstance(c, URIRef) and re.search(r"\d", local_name(c.rstrip("/#"))))
        ]
        if kept:
            shown = ", ".join(map(_shown, kept[:_MOST_NAMED]))
            more = f" and {len(kept) - _MOST_NAMED} more" if len(kept) > _MOST_NAMED else ""
            language = task.language
            tongue = "" if language == "en" else f" in {language!r}"
            what = f"the question{tongue} does not mention {shown}{more}"
            facts = {"constants": [str(constant) for constant in kept], "language": language}
            yield _finding(task, "unmentioned-constant", what, **facts)


def _left_out(asked: Iterable[_Asked], names: _Names) -> list[tuple[_Asked, list[URIRef | Text]]]:
    found = []
    for task, gold in asked:
        language = task.language.split("-")[0]
        left = unmentioned(task.query, gold, lambda i: names.get(i, ()), language=language)
        if left:
            found.append(((task, gold), left))
    return found


def _shown(node: Node) -> str:
    text = " ".join(str(node).split())
    text = text if len(text) <= _MOST_CHARS else text[:_MOST_CHARS] + "…"
    return f"<{text}>" if isinstance(node, URIRef) else repr(text)


def _gold_findings(tasks: Sequence[Task], client: SPARQLClient, slow_s: float) -> Iterator[Finding]:
    """Run golds one after the other, which is polite and keeps times accurate."""
    down = 0
    for number, task in enumerate(tasks):
        if down >= PATIENCE:
            left = len(tasks) - number
            what = f"{client.config.address} failed {down} times; {left} golds were not run"
            yield Finding("endpoint-fails", what, ".", fields={"not_run": left})
            return
        began = time.monotonic()
        try:
            result = client.query(task.expected_sparql, max_rows=MOST_ROWS)
        except (QueryError, EndpointError) as error:
            down = down + 1 if isinstance(error, EndpointError) else 0
            yield _finding(task, "gold-fails", f"the gold fails: {error}", error=error.code)
            continue
        down = 0
        seconds = time.monotonic() - began
        if not isinstance(result, BooleanResult):
            if result.n_rows == 0:
                yield _finding(task, "empty-gold", "the gold returns nothing")
            if result.truncated:
                what = f"the answer of the gold was cut after {result.n_rows:,} rows"
                yield _finding(task, "cut-gold", what, rows=result.n_rows)
        if seconds > slow_s:
            what = f"the gold takes {seconds:.1f} s, more than {slow_s:g} s"
            yield _finding(task, "slow-gold", what, seconds=round(seconds, 1))


def _names_of(iris: Iterable[URIRef], client: SPARQLClient) -> dict[URIRef, list[str]]:
    """Return the literals of IRIs in the data: labels, symbols, codes."""
    found: dict[URIRef, list[str]] = defaultdict(list)
    wanted = []
    for wanted_iri in iris:
        with contextlib.suppress(QueryError):  # of an IRI that is not absolute
            wanted.append(iri(str(wanted_iri)))
    for start in range(0, len(wanted), _IRIS_PER_QUERY):
        listed = " ".join(wanted[start : start + _IRIS_PER_QUERY])
        query = f"SELECT ?iri ?name {{ VALUES ?iri {{ {listed} }} ?iri ?p ?name "
        try:
            rows = client.rows(query + "FILTER(isLiteral(?name)) }")
        except (QueryError, EndpointError):
            # That an endpoint is down is reported with the golds.
            return found
        for resource, name in rows:
            if isinstance(resource, ox.NamedNode) and isinstance(name, ox.Literal):
                found[URIRef(resource.value)].append(name.value)
    return found
