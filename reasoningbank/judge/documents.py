"""What a SPARQL Update changes in documents, as an answer that can be compared.

The right answer to an instruction that writes is a state of documents. The gold is an update, run
on the pack's data with the documents as they were; the triples it adds to and removes from
documents are the answer. So it does not matter by which requests a program wrote.
"""

from __future__ import annotations

import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

from pyoxigraph import Literal

from reasoningbank.corpus import DocumentSpace, Pack
from reasoningbank.errors import EndpointError, QueryError, QueryTimeoutError
from reasoningbank.http import ExchangeError, TimedOut, send
from reasoningbank.judge.answer import Answer
from reasoningbank.ldp.exchange import Refused, expanded
from reasoningbank.sparql import EndpointConfig, OxigraphServer, SPARQLClient, TableResult
from reasoningbank.sparql.tokens import check_update_size, tokenize

#: Operations that reach another machine.
_REMOTE = ("LOAD", "SERVICE")
#: Most triples that all documents may hold together.
_MOST_TRIPLES = 1_000_000
_DOCUMENTS = """\
SELECT ?document ?p ?s ?o WHERE {{
  GRAPH ?document {{ ?s ?p ?o }} FILTER(STRSTARTS(STR(?document), {base}))
}}"""


@dataclass(frozen=True)
class DocumentChanges:
    """Runs updates on a fresh copy of a pack's data and documents, each in a process of its own.

    An engine that does not stop is killed with its process, so no update can block the judge. An
    update's WHERE reads the `data` as the default graph.
    """

    data: Sequence[Path]
    space: DocumentSpace

    @classmethod
    def of(cls, pack: Pack) -> DocumentChanges | None:
        """Return those of a pack; None if it has no documents."""
        return None if pack.documents is None else cls(pack.data, pack.documents)

    def answer(self, update: str, *, timeout_s: float) -> Answer:
        """Return what an update adds to documents and removes from them, as a graph.

        The predicate of each triple also names the document and whether the triple was added or
        removed.
        """
        update = _checked(update)
        files = [*self.data, *filter(None, [self.space.initial])]
        # The engine ends a long update by itself, a little later than it should.
        limit_s = timeout_s + 5
        with (
            OxigraphServer(files, union_default_graph=False, timeout_s=timeout_s) as engine,
            SPARQLClient(EndpointConfig(engine.url)) as client,
        ):
            # Both states are read back, since the engine normalizes literals.
            before = self._statements(client, limit_s)
            _run(f"{engine.url.removesuffix('query')}update", update, limit_s)
            after = self._statements(client, limit_s)
        added = (_row("added", *statement) for statement in after - before)
        removed = (_row("removed", *statement) for statement in before - after)
        return Answer.of_triples(sorted([*added, *removed]))

    def _statements(self, client: SPARQLClient, timeout_s: float) -> set[tuple[str, ...]]:
        """Return what the documents hold: document, predicate, subject, object."""
        query = _DOCUMENTS.format(base=Literal(self.space.base))
        result = client.query(query, timeout_s=timeout_s, max_rows=_MOST_TRIPLES)
        assert isinstance(result, TableResult)
        if result.truncated:
            what = f"the documents hold more than {_MOST_TRIPLES:,} triples"
            raise QueryError(what, where="update", hint="write less", code="documents-too-large")
        return set(zip(*(column.to_pylist() for column in result.table.columns), strict=True))


def _checked(update: str) -> str:
    """Return an update with its codepoint escapes expanded; raise if it reaches another machine."""
    try:
        update = expanded(update)
    except Refused as error:
        raise QueryError(error.why, where="update") from error
    tokens = tokenize(update)
    check_update_size(tokens)
    for token in tokens:
        if token.is_word(*_REMOTE):
            what, hint = f"{token.text.upper()} reaches another machine", "change documents only"
            raise QueryError(what, where="update", hint=hint, code="remote-update")
    return update


def _run(address: str, update: str, timeout_s: float) -> None:
    headers = {"Content-Type": "application/sparql-update"}
    request = urllib.request.Request(address, update.encode(), headers)
    try:
        reply = send(request, timeout_s=timeout_s, max_bytes=64 * 1024, proxies=False)
    except TimedOut:
        raise QueryTimeoutError(f"timed out after {timeout_s:g} s", where="update") from None
    except ExchangeError as error:
        raise EndpointError(f"the engine failed: {error}", where="update") from error
    if 400 <= reply.status < 500:
        raise QueryError(f"the update does not run: {reply.message}", where="update")
    if reply.status >= 300:
        raise EndpointError(f"the engine failed with status {reply.status}", where="update")


def _row(change: str, document: str, predicate: str, subject: str, object_: str) -> tuple[str, ...]:
    names = {"document": document[1:-1], "predicate": predicate[1:-1]}
    about = urlencode(names, safe="", quote_via=quote)
    return subject, f"<urn:reasoningbank:{change}?{about}>", object_
