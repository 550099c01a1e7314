"""The SHACL shapes for examples, and what pySHACL says of a corpus by them.

pySHACL takes about 0.1 s to start on any graph, however small, so all examples are checked
in one: each under an IRI of its own, since two files may describe the same one.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple, cast

import pyoxigraph as ox
from rdflib import RDF, BNode, Graph, Literal, URIRef
from rdflib.namespace import SH as SHACL
from rdflib.term import Node

from reasoningbank.corpus.findings import Finding, FindingCode
from reasoningbank.corpus.turtle import RawExample
from reasoningbank.corpus.vocabulary import RB
from reasoningbank.errors import SetupError

__all__ = ["NamedExample", "shape_findings", "shapes_file"]

_FINDING = URIRef(RB + "finding")
_XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"
_MOST_CHARS = 80


class NamedExample(NamedTuple):
    """An example, the id that its task has or would have, and its file."""

    file: str
    id: str
    raw: RawExample


def shapes_file() -> Path:
    """Return where the shapes are, in the repository or in an installed package.

    Raises:
        SetupError: They are missing.

    Examples:
        >>> shapes_file().name
        'examples.ttl'
    """
    package = Path(__file__).resolve().parent.parent
    for home in (package, package.parent):
        file = home / "ontology" / "shapes" / "examples.ttl"
        if file.is_file():
            return file
    raise SetupError("the shapes are missing", where="ontology/shapes", hint="install it again")


def shape_findings(examples: Sequence[NamedExample]) -> list[Finding]:
    """Check examples with the shapes.

    Properties that loading mends (``schema:keyword``) are checked as they were meant, since
    the misspelling is a finding of its own.

    Args:
        examples: The examples of a corpus.

    Raises:
        SetupError: pySHACL is not installed, or the shapes are missing.
    """
    try:
        import pyshacl
    except ImportError:
        raise SetupError(
            "pySHACL is not installed", where="validate", hint="pip install pyshacl"
        ) from None
    if not examples:
        return []
    nodes = {URIRef(f"urn:example:{number}"): one for number, one in enumerate(examples)}
    graph = Graph()
    with warnings.catch_warnings():
        # rdflib warns of ill-typed literals, which are findings here.
        warnings.simplefilter("ignore")
        for node, example in nodes.items():
            for triple in _triples(node, example.raw):
                graph.add(triple)
        _, results, _ = pyshacl.validate(graph, shacl_graph=_shapes(), inplace=True)
    return list(_findings(cast("Graph", results), _shapes(), nodes))


@cache
def _shapes() -> Graph:
    return Graph().parse(shapes_file(), format="turtle")


def _findings(
    results: Graph, shapes: Graph, nodes: dict[URIRef, NamedExample]
) -> Iterator[Finding]:
    for result in results.subjects(RDF.type, SHACL.ValidationResult):
        example = nodes[cast("URIRef", results.value(result, SHACL.focusNode))]
        shape = results.value(result, SHACL.sourceShape)
        code = cast("FindingCode", str(shapes.value(shape, _FINDING)))
        message = f"{example.id} {shapes.value(shape, SHACL.message)}"
        value = results.value(result, SHACL.value)
        if value is not None:
            message += f": {_shown(value)}"
        yield Finding(example.file, code, message)


def _shown(value: Node) -> str:
    text = " ".join(str(value).split())
    text = text if len(text) <= _MOST_CHARS else text[:_MOST_CHARS] + "…"
    return f"<{text}>" if isinstance(value, URIRef) else repr(text)


def _triples(node: URIRef, raw: RawExample) -> Iterable[tuple[URIRef, URIRef, Node]]:
    for iri, values in raw.values.items():
        for value in values:
            yield node, URIRef(iri), _node(value)


def _node(value: ox.NamedNode | ox.BlankNode | ox.Literal) -> Node:
    if isinstance(value, ox.NamedNode):
        return URIRef(value.value)
    if isinstance(value, ox.BlankNode):
        return BNode(value.value)
    if value.language:
        try:
            return Literal(value.value, lang=value.language)
        except ValueError:  # no language tag, which is rdflib's to judge and not ours
            return Literal(value.value, lang="und")
    if value.datatype.value == _XSD_STRING:
        return Literal(value.value)
    return Literal(value.value, datatype=URIRef(value.datatype.value), normalize=False)
