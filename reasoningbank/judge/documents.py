"""What a SPARQL Update changes in documents, as an answer that can be compared.

The right answer to an instruction that writes is a state of documents. The gold is an update, run
on the pack's data with the documents as they were; the triples it adds to and removes from
documents are the answer. So it does not matter by which requests a program wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

import httpx
from pyoxigraph import Literal, NamedNode, QueryResultsFormat, QuerySolutions, parse_query_results

from reasoningbank.corpus import DocumentSpace, Pack
from reasoningbank.errors import EndpointError, QueryError, QueryTimeoutError
from reasoningbank.judge.answer import Answer, term_text
from reasoningbank.ldp.exchange import Refused, expanded
from reasoningbank.sparql import OxigraphServer
from reasoningbank.sparql.tokens import check_nesting, tokenize

__all__ = ["DocumentChanges"]

#: A document, and a triple in it: subject, predicate, object.
_Statement: TypeAlias = tuple[str, str, str, str]

#: Operations that reach another machine.
_BEYOND = ("LOAD", "SERVICE")
#: Most triples that all documents may hold together.
_MOST_TRIPLES = 1_000_000
_DOCUMENTS = """\
SELECT ?document ?s ?p ?o WHERE {{
  GRAPH ?document {{ ?s ?p ?o }} FILTER(STRSTARTS(STR(?document), {base}))
}} LIMIT {most}"""


class DocumentChanges:
    """Runs updates on a fresh copy of a pack's data and documents, each in a process of its own.

    An engine that does not stop is killed with its process, so no update can block the judge.

    Args:
        data: Files of the pack's data, the default graph that an update's WHERE reads.
        space: The documents.
    """

    def __init__(self, data: Sequence[Path], space: DocumentSpace) -> None:
        self._data = tuple(data)
        self._space = space

    @classmethod
    def of(cls, pack: Pack) -> DocumentChanges | None:
        """Return those of a pack; None if it has no documents."""
        return None if pack.documents is None else cls(pack.data, pack.documents)

    def answer(self, update: str, *, timeout_s: float) -> Answer:
        """Return what an update adds to documents and removes from them, as a graph.

        The predicate of each triple also names the document and whether the triple was added or
        removed, so that the same triple in another document is a different one.

        Args:
            update: The update; the default graph holds the data, a graph each document.
            timeout_s: Seconds it may take.

        Raises:
            QueryError: If it does not parse, reaches another machine, takes too long, or writes
                more than can be compared.
            EndpointError: If the engine fails.
        """
        update = _checked(update)
        initial = [] if self._space.initial is None else [self._space.initial]
        with (
            OxigraphServer(
                [*self._data, *initial], union_default_graph=False, timeout_s=timeout_s
            ) as engine,
            # The engine ends a long update by itself, a little later than it should.
            httpx.Client(timeout=timeout_s + 5, trust_env=False) as http,
        ):
            service = engine.url.removesuffix("query")
            # Read back both states: the engine normalizes literals.
            before = _held(http, service, self._space.base)
            _run(http, service, update, timeout_s)
            after = _held(http, service, self._space.base)
        added = [_row("added", *stated) for stated in after - before]
        removed = [_row("removed", *stated) for stated in before - after]
        return Answer.of_triples(sorted([*added, *removed]))


def _checked(update: str) -> str:
    """Return an update with its codepoint escapes expanded; raise if it reaches another machine."""
    try:
        update = expanded(update)
    except Refused as error:
        raise QueryError(error.why, where="update") from error
    tokens = tokenize(update)
    check_nesting(tokens)
    for token in tokens:
        if token.is_word(*_BEYOND):
            what = f"{token.text.upper()} reaches another machine"
            raise QueryError(
                what, where="update", hint="change documents only", code="remote-update"
            )
    return update


def _run(http: httpx.Client, service: str, update: str, timeout_s: float) -> None:
    try:
        headers = {"Content-Type": "application/sparql-update"}
        reply = http.post(f"{service}update", content=update.encode(), headers=headers)
        if 400 <= reply.status_code < 500:
            said = " ".join(reply.text.split())[:300]
            raise QueryError(f"the update does not run: {said}", where="update")
        reply.raise_for_status()
    except httpx.TimeoutException:
        raise QueryTimeoutError(f"timed out after {timeout_s:g} s", where="update") from None
    except httpx.HTTPError as error:
        raise EndpointError(f"the engine failed: {error}", where="update") from error


def _held(http: httpx.Client, service: str, base: str) -> set[_Statement]:
    """Return what the documents below a base hold."""
    query = _DOCUMENTS.format(base=Literal(base), most=_MOST_TRIPLES + 1)
    headers = {
        "Content-Type": "application/sparql-query",
        "Accept": QueryResultsFormat.JSON.media_type,
    }
    try:
        reply = http.post(f"{service}query", content=query.encode(), headers=headers)
        reply.raise_for_status()
    except httpx.TimeoutException:
        raise QueryError("the documents became too large to be read", where="update") from None
    except httpx.HTTPError as error:
        raise EndpointError(f"the engine failed: {error}", where="update") from error
    rows = parse_query_results(reply.content, format=QueryResultsFormat.JSON)
    assert isinstance(rows, QuerySolutions)
    held = {_statement(row[0], row[1], row[2], row[3]) for row in rows}
    if len(held) > _MOST_TRIPLES:
        what = f"the documents hold more than {_MOST_TRIPLES:,} triples"
        raise QueryError(what, where="update", hint="write less")
    return held


def _statement(document: Any, subject: Any, predicate: NamedNode, object_: Any) -> _Statement:
    return document.value, term_text(subject), predicate.value, term_text(object_)


def _row(
    change: str, document: str, subject: str, predicate: str, object_: str
) -> tuple[str, str, str]:
    query = f"document={quote(document, safe='')}&predicate={quote(predicate, safe='')}"
    return subject, f"<urn:reasoningbank:{change}?{query}>", object_
