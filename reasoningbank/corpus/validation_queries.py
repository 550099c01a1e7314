"""What can be said of a gold without an endpoint: whether it parses, and where it goes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reasoningbank.corpus.findings import Finding, FindingCode
from reasoningbank.corpus.prefixes import complete_prefixes, declared_prefixes
from reasoningbank.corpus.task import Task
from reasoningbank.errors import QueryError
from reasoningbank.sparql import STANDARD_PREFIXES, PreparedQuery, address_key, prepare
from reasoningbank.sparql.parsers import FAILS, parse_algebra, parse_update, parsed_alone
from reasoningbank.sparql.tokens import tokenize

__all__ = ["CheckedQuery", "check_query"]


@dataclass(frozen=True)
class CheckedQuery:
    """A task with what its gold is found to be.

    Attributes:
        task: The task.
        prepared: The gold as it would be sent; None where no parser reads it, and of an update.
        findings: What is wrong with it.
    """

    task: Task
    prepared: PreparedQuery | None
    findings: tuple[Finding, ...]


def check_query(task: Task, text: str) -> CheckedQuery:
    """Parse a gold with rdflib and with Oxigraph, and compare its SERVICEs with what it tells.

    A query is made ready as a client would do it, so that what clients mend (a local name with
    several dots, which Oxigraph rejects) is no finding.

    Args:
        task: The task.
        text: The gold as its file has it, for the lines that errors name.

    Returns:
        The task, the prepared gold and the findings.
    """
    if task.form == "UPDATE":
        return CheckedQuery(task, None, tuple(_update(task)))
    declared = declared_prefixes(tokenize(task.expected_sparql))
    # A prefix that nobody declares was found when loading; the rest is checked all the same.
    unknown = complete_prefixes(text, declared).unknown
    assumed = {name: f"urn:undeclared:{name}:" for name in unknown}
    try:
        prepared = prepare(text, prefixes={**STANDARD_PREFIXES, **assumed, **declared})
    except QueryError as error:
        return CheckedQuery(task, None, (_finding(task, "query-syntax", f"{error}"),))
    findings = [*_rdflib(task, prepared), *_oxigraph(task, prepared), *_services(task, prepared)]
    return CheckedQuery(task, prepared, tuple(findings))


def _update(task: Task) -> Iterator[Finding]:
    try:
        parse_update(task.expected_sparql)
    except Exception as error:
        told = " ".join(f"{error}".split())[:200]
        yield _finding(task, "rdflib-syntax", f"rdflib does not read the update: {told}")
    complaint = parsed_alone(f"{FAILS}{task.expected_sparql}")
    if complaint is not None:
        yield _finding(task, "query-syntax", f"Oxigraph does not read the update: {complaint}")


def _rdflib(task: Task, prepared: PreparedQuery) -> Iterator[Finding]:
    if prepared.parsed is not None:
        return
    complaint = "no reason given"
    try:
        parse_algebra(prepared.text)
    except Exception as error:  # rdflib raises bare Exceptions beside pyparsing's own
        complaint = " ".join(f"{error}".split())[:200]
    yield _finding(task, "rdflib-syntax", f"Oxigraph reads the query, rdflib does not: {complaint}")


def _oxigraph(task: Task, prepared: PreparedQuery) -> Iterator[Finding]:
    told = prepared.complaint() if prepared.parsed is not None else None
    if told is not None:
        message = f"rdflib reads the query, Oxigraph does not: {told}"
        yield _finding(task, "oxigraph-syntax", message)


def _services(task: Task, prepared: PreparedQuery) -> Iterator[Finding]:
    asked = {address_key(url): url for url in prepared.services if not url.startswith("?")}
    named = {address_key(url): url for url in task.federates_with}
    for key in asked.keys() - named.keys():
        message = f"asks <{asked[key]}>, which no spex:federatesWith names"
        yield _finding(task, "federates-mismatch", message)
    if any(url.startswith("?") for url in prepared.services):
        return  # a SERVICE with a variable may go to any of them
    for key in named.keys() - asked.keys():
        message = f"names <{named[key]}> as spex:federatesWith, and has no SERVICE there"
        yield _finding(task, "federates-mismatch", message)


def _finding(task: Task, code: FindingCode, message: str) -> Finding:
    return Finding(task.source_file, code, f"{task.id}: {' '.join(message.split())}")
