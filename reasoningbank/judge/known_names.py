"""What a schema says of the names that a query uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from pyoxigraph import NamedNode

from reasoningbank.errors import QueryError
from reasoningbank.sparql import STANDARD_PREFIXES, compact
from reasoningbank.sparql.tree import outline

__all__ = ["KnownName", "KnownNames", "lines_on"]

#: Names that are told of, and characters of a comment.
MAX_NAMES = 12
MAX_COMMENT_CHARS = 100

#: Namespaces that every reader of SPARQL knows.
_COMMON = frozenset(STANDARD_PREFIXES[name] for name in ("rdf", "rdfs", "owl", "xsd"))


class KnownName(Protocol):
    """What is known of a class or property."""

    @property
    def label(self) -> str:
        """Its name for people."""

    @property
    def comment(self) -> str:
        """A line on it."""

    @property
    def domain(self) -> tuple[str, ...]:
        """IRIs of the classes that have it."""

    @property
    def range(self) -> tuple[str, ...]:
        """IRIs of the classes or datatypes of its values."""

    @property
    def count(self) -> int | None:
        """Instances, or triples with it; None where untold."""


class KnownNames(Protocol):
    """The classes and properties of an endpoint."""

    @property
    def classes(self) -> Mapping[str, KnownName]:
        """The classes by IRI."""

    @property
    def properties(self) -> Mapping[str, KnownName]:
        """The properties by IRI."""


def lines_on(query: str, known: KnownNames, prefixes: Mapping[str, str]) -> Iterator[str]:
    """Say in a line each what is known of the names that a query uses.

    A name that is not known is told of where others of its namespace are.

    Args:
        query: SPARQL text; one that cannot be read uses no names.
        known: The classes and properties of the endpoint.
        prefixes: Prefixes that are declared without being written.
    """
    classes, properties = known.classes, known.properties
    spaces = {_namespace(iri) for iri in (*classes, *properties)} - _COMMON
    told = 0
    for iri in _iris(query, prefixes):
        if told == MAX_NAMES or _namespace(iri) in _COMMON:
            continue
        name = str(compact(NamedNode(iri), prefixes))
        if iri in properties:
            yield _line(f"{name} (property)", properties[iri], prefixes)
        elif iri in classes:
            yield _line(f"{name} (class)", classes[iri], prefixes)
        elif _namespace(iri) in spaces:
            yield f"{name}: no class or property of this name is known"
        else:
            continue
        told += 1


def _iris(query: str, prefixes: Mapping[str, str]) -> list[str]:
    """Return the IRIs that a query names, each once, in their order."""
    try:
        shape = outline(query)
    except QueryError:
        return []
    declared = {**STANDARD_PREFIXES, **prefixes, **shape.declared}
    found: dict[str, None] = {}
    for token in shape.body:
        if token.kind == "iri":
            found[token.text[1:-1]] = None
        elif token.kind == "name":
            prefix, _, local = token.text.partition(":")
            if prefix in declared:
                found[declared[prefix] + local.replace("\\", "")] = None
    return list(found)


def _line(name: str, term: KnownName, prefixes: Mapping[str, str]) -> str:
    parts = []
    if term.domain or term.range:
        ends = [
            ", ".join(str(compact(NamedNode(iri), prefixes)) for iri in iris[:3]) or "anything"
            for iris in (term.domain, term.range)
        ]
        parts.append(f"from {ends[0]} to {ends[1]}")
    said = " ".join((term.comment or term.label).split())
    if said:
        parts.append(said if len(said) <= MAX_COMMENT_CHARS else f"{said[:MAX_COMMENT_CHARS]}…")
    if term.count is not None:
        parts.append(f"{term.count} in the data")
    return f"{name}: {'; '.join(parts) or 'known'}"


def _namespace(iri: str) -> str:
    return iri[: max(iri.rfind("#"), iri.rfind("/")) + 1]
