"""Namespaces, and the dataset that every source writes its facts into."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pyoxigraph import Literal, NamedNode

__all__ = [
    "CORE",
    "FALDO",
    "GO",
    "GRAPHS",
    "OWL",
    "RDF",
    "RDFS",
    "SKOS",
    "UNIPROT",
    "XSD",
    "Dataset",
    "Fact",
    "Graph",
    "Namespace",
    "boolean",
    "date",
    "digest",
    "integer",
    "text",
    "write_gzip",
]


class Namespace(str):
    """An IRI prefix whose items are IRIs.

    Examples:
        >>> Namespace("http://purl.uniprot.org/core/")["Protein"]
        <NamedNode value=http://purl.uniprot.org/core/Protein>
    """

    __slots__ = ()

    def __getitem__(self, name: object) -> NamedNode:  # type: ignore[override]
        return NamedNode(f"{self}{name}")


RDF = Namespace("http://www.w3.org/1999/02/22-rdf-syntax-ns#")
RDFS = Namespace("http://www.w3.org/2000/01/rdf-schema#")
XSD = Namespace("http://www.w3.org/2001/XMLSchema#")
SKOS = Namespace("http://www.w3.org/2004/02/skos/core#")
OWL = Namespace("http://www.w3.org/2002/07/owl#")
FALDO = Namespace("http://biohackathon.org/resource/faldo#")
UNIPROT = Namespace("http://purl.uniprot.org/")
CORE = Namespace("http://purl.uniprot.org/core/")
GO = Namespace("http://purl.obolibrary.org/obo/")
GRAPHS = Namespace("http://sparql.uniprot.org/")


def text(value: str) -> Literal:
    """A plain string."""
    return Literal(value)


def integer(value: int) -> Literal:
    """An `xsd:int`, the integer type that UniProt writes."""
    return Literal(str(value), datatype=XSD["int"])


def boolean(value: bool) -> Literal:
    """An `xsd:boolean`."""
    return Literal("true" if value else "false", datatype=XSD["boolean"])


def date(value: str) -> Literal:
    """An `xsd:date` from `YYYY-MM-DD`."""
    return Literal(value, datatype=XSD["date"])


def digest(*parts: object) -> str:
    """A short stable name for a node that the sources do not name.

    Examples:
        >>> digest("P05067", "Function_Annotation")
        '7FA9873FC92888FA'
    """
    joined = "\x1f".join(map(str, parts))
    return hashlib.md5(joined.encode(), usedforsecurity=False).hexdigest()[:16].upper()


class Fact(NamedTuple):
    """One quad; the sample has no blank nodes and nothing outside named graphs.

    Examples:
        >>> n = Namespace("x:")
        >>> str(Fact(n["a"], n["b"], text("c"), n["g"]))
        '<x:a> <x:b> "c" <x:g> .'
    """

    subject: NamedNode
    predicate: NamedNode
    value: NamedNode | Literal
    graph: NamedNode

    def __str__(self) -> str:
        return f"{self.subject} {self.predicate} {self.value} {self.graph} ."


@dataclass
class Graph:
    """One named graph that is being filled."""

    name: NamedNode
    quads: set[Fact]

    def add(self, subject: NamedNode, predicate: NamedNode, value: NamedNode | Literal) -> None:
        """Adds one triple; adding it twice is adding it once."""
        self.quads.add(Fact(subject, predicate, value, self.name))

    def type(self, subject: NamedNode, *classes: NamedNode) -> None:
        """Says what classes a node belongs to."""
        for each in classes:
            self.add(subject, RDF["type"], each)


@dataclass
class Dataset:
    """All facts, and the vocabulary items that they mention and that need describing.

    Args:
        quads: The facts.
        taxa: NCBI taxonomy ids.
        go: GO ids, as `GO:0016301`.
        enzymes: EC numbers.
        keywords: Keyword names.
        locations: Subcellular location numbers.
        diseases: Disease accessions, as `DI-03832`.
        databases: Database abbreviations.
        tally: What was counted or dropped while building, by a short description.
    """

    quads: set[Fact] = field(default_factory=set)
    taxa: set[int] = field(default_factory=set)
    go: set[str] = field(default_factory=set)
    enzymes: set[str] = field(default_factory=set)
    keywords: set[str] = field(default_factory=set)
    locations: set[int] = field(default_factory=set)
    diseases: set[str] = field(default_factory=set)
    databases: set[str] = field(default_factory=set)
    tally: dict[str, int] = field(default_factory=dict)

    def graph(self, name: str) -> Graph:
        """The named graph of UniProt's endpoint, by its short name, as `taxonomy`."""
        return Graph(GRAPHS[name], self.quads)

    def count(self, what: str, number: int = 1) -> None:
        """Adds to a tally."""
        self.tally[what] = self.tally.get(what, 0) + number


def write_gzip(path: Path, lines: Iterable[str]) -> int:
    """Writes lines compressed, the same bytes for the same lines; returns the file's size."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
        for line in lines:
            packed.write(line.encode() + b"\n")
    return path.stat().st_size
