"""What a SPARQL Update changes in documents, as an answer that can be compared.

The right answer to an instruction that writes is a state of documents. It is told by an update
(SPARQL 1.1 Update), run on the data of a pack with the documents as they were; what it added to
documents and took from them is the answer. So it does not matter by which requests a program wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

import httpx
from pyoxigraph import DefaultGraph, Quad, RdfFormat, parse

from reasoningbank.corpus import DocumentSpace, Pack
from reasoningbank.errors import EndpointError, QueryError
from reasoningbank.judge.answer import Answer, term_text
from reasoningbank.ldp.faults import Refused
from reasoningbank.ldp.updates import expanded
from reasoningbank.sparql import OxigraphServer
from reasoningbank.sparql.nesting import check_nesting
from reasoningbank.sparql.tokens import tokenize

__all__ = ["DocumentChanges"]

#: What would reach another machine.
_BEYOND = ("LOAD", "SERVICE")


class DocumentChanges:
    """Runs updates on a fresh copy of a pack's data and documents, each in an engine of its own.

    An engine that goes on computing is ended with its process, so nothing that is submitted can
    take the judge along.

    Args:
        data: Files of the pack's data, the default graph that an update's WHERE reads.
        space: The documents.
    """

    def __init__(self, data: Sequence[Path], space: DocumentSpace) -> None:
        self._data = tuple(data)
        self._space = space

    @classmethod
    def of(cls, pack: Pack) -> DocumentChanges | None:
        """Return those of a pack; None where it has no documents."""
        return None if pack.documents is None else cls(pack.data, pack.documents)

    def answer(self, update: str, *, timeout_s: float) -> Answer:
        """Return what an update adds to documents and removes from them, as a graph.

        Its triples are those that differ. The predicate also tells the document and whether the
        triple came or went, so that a triple in another document is another one.

        Args:
            update: The update; the default graph holds the data, a graph each document.
            timeout_s: Seconds it may take.

        Raises:
            QueryError: It does not parse, reaches another machine, or takes too long.
            EndpointError: The engine cannot be asked.
        """
        update = _checked(update)
        initial = [] if self._space.initial is None else [self._space.initial]
        before = set(_documents(_quads(initial), self._space.base))
        with OxigraphServer(
            [*self._data, *initial], union_default_graph=False, timeout_s=timeout_s
        ) as engine:
            service = engine.url.removesuffix("query")
            after = set(_documents(_run(service, update, timeout_s), self._space.base))
        came = [_row("added", quad) for quad in after - before]
        went = [_row("removed", quad) for quad in before - after]
        return Answer.of_triples(sorted([*came, *went]))


def _checked(update: str) -> str:
    """Return an update that reaches no other machine, with its codepoint escapes expanded."""
    try:
        update = expanded(update)
    except Refused as error:
        raise QueryError(error.why, where="update") from error
    tokens = tokenize(update)
    check_nesting(tokens)
    for token in tokens:
        if token.is_word(*_BEYOND):
            what = f"{token.text.upper()} reaches another machine"
            raise QueryError(what, where="update", mend="change documents alone")
    return update


def _run(service: str, update: str, timeout_s: float) -> Iterable[Quad]:
    headers = {"Content-Type": "application/sparql-update"}
    try:
        with httpx.Client(timeout=timeout_s + 5, trust_env=False) as http:
            reply = http.post(f"{service}update", content=update.encode(), headers=headers)
            if 400 <= reply.status_code < 500:
                said = " ".join(reply.text.split())[:300]
                raise QueryError(f"the update does not run: {said}", where="update")
            reply.raise_for_status()
            # Every triple that is not in the default graph lies in a document.
            dump = http.get(f"{service}store", headers={"Accept": "application/n-quads"})
            dump.raise_for_status()
    except httpx.TimeoutException:
        raise QueryError(f"timed out after {timeout_s:g} s", where="update") from None
    except httpx.HTTPError as error:
        raise EndpointError(f"the engine failed: {error}", where="update") from error
    return parse(dump.content, format=RdfFormat.N_QUADS)


def _quads(files: Iterable[Path]) -> Iterator[Quad]:
    for file in files:
        yield from parse(path=str(file))


def _documents(quads: Iterable[Quad], base: str) -> Iterator[Quad]:
    for quad in quads:
        graph = quad.graph_name
        if not isinstance(graph, DefaultGraph) and graph.value.startswith(base):
            yield quad


def _row(change: str, quad: Quad) -> tuple[str, str, str]:
    names = (quad.graph_name.value, quad.predicate.value)  # type: ignore[union-attr]
    document, predicate = (quote(name, safe="") for name in names)
    told = f"<urn:reasoningbank:{change}?document={document}&predicate={predicate}>"
    return term_text(quad.subject), told, term_text(quad.object)
