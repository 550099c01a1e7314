"""Changes of documents as SPARQL Updates, which keep the default graph the union of them all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pyoxigraph import DefaultGraph, NamedNode, Quad, Triple

from reasoningbank.ldp.membership import links
from reasoningbank.sparql.terms import full

__all__ = ["added", "gone", "quads", "unlinked"]


def quads(graphs: Iterable[tuple[str, Sequence[Triple]]]) -> Iterator[Quad]:
    """Return the statements of documents, each in its document and in the default graph."""
    for url, triples in graphs:
        for triple in triples:
            yield Quad(triple.subject, triple.predicate, triple.object, NamedNode(url))
            yield Quad(triple.subject, triple.predicate, triple.object, DefaultGraph())


def _lines(triples: Iterable[Triple]) -> str:
    return "".join(f"{' '.join(full(part) for part in triple)} .\n" for triple in triples)


def added(url: str, triples: Sequence[Triple]) -> str:
    """Put triples into a document and into the default graph."""
    if not triples:
        return ""
    # Within one INSERT DATA a label is one blank node, in both graphs.
    lines = _lines(triples)
    return f"INSERT DATA {{\n{lines}GRAPH <{url}> {{\n{lines}}} }} ;\n"


def gone(url: str) -> str:
    """Remove a document, and from the default graph what no other document says."""
    return (
        f"DELETE {{ ?s ?p ?o }} WHERE {{ GRAPH <{url}> {{ ?s ?p ?o }}\n"
        f"FILTER NOT EXISTS {{ GRAPH ?g {{ ?s ?p ?o }} FILTER(?g != <{url}>) }} }} ;\n"
        f"DROP SILENT GRAPH <{url}> ;\n"
    )


def unlinked(container: str, member: str) -> str:
    """Remove a member's links from its container's document."""
    lines = _lines([*links(container, member, item=True), *links(container, member, item=False)])
    return f"DELETE DATA {{\n{lines}GRAPH <{container}> {{\n{lines}}} }} ;\n"
