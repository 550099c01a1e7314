"""RDF terms of the algebra: rdflib's, kept as they were written, and their JSON forms.

A literal's lexical form is never normalised (``"01"^^xsd:integer`` stays so), and
``xsd:string`` is the same as no datatype (RDF 1.1 Concepts, section 3.3). rdflib knows no triple
terms (RDF 1.2): whoever meets one is told so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import pyoxigraph
from rdflib import XSD, BNode, Literal, URIRef

from reasoningbank.algebra.faults import ProgramError, one_of

__all__ = [
    "BlankNodes",
    "Term",
    "fits_iri",
    "from_oxigraph",
    "is_absolute",
    "is_term_json",
    "literal",
    "scalar",
    "term_from_json",
    "term_to_json",
    "to_oxigraph",
    "to_sparql",
]

Term = URIRef | Literal | BNode

_NOT_IN_IRI = re.compile(r"[\x00-\x20<>\"{}|^`\\\ud800-\udfff]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_KINDS = ("uri", "literal", "typed-literal", "bnode")
_MEMBERS = {
    "uri": {"type", "value"},
    "bnode": {"type", "value"},
    "literal": {"type", "value", "xml:lang", "datatype"},
    "typed-literal": {"type", "value", "datatype"},
}


def literal(value: str, *, lang: str | None = None, datatype: str | None = None) -> Literal:
    """Return a literal whose lexical form stays as it is given.

    Examples:
        >>> literal("01", datatype="http://www.w3.org/2001/XMLSchema#integer").n3()
        '"01"^^<http://www.w3.org/2001/XMLSchema#integer>'
        >>> literal("x", datatype="http://www.w3.org/2001/XMLSchema#string") == literal("x")
        True
    """
    if lang:
        return Literal(value, lang=lang)
    if datatype is None or datatype == str(XSD.string):
        return Literal(value)
    return Literal(value, datatype=URIRef(datatype), normalize=False)


def scalar(value: str | bool | int | float) -> Literal:
    """Return the literal that a JSON string, boolean or number stands for.

    Examples:
        >>> scalar(True).n3(), scalar(5).n3(), scalar("5").n3()
        ('"true"^^<http://www.w3.org/2001/XMLSchema#boolean>', \
'"5"^^<http://www.w3.org/2001/XMLSchema#integer>', '"5"')
    """
    if isinstance(value, bool):
        return literal("true" if value else "false", datatype=str(XSD.boolean))
    if isinstance(value, int):
        return literal(str(value), datatype=str(XSD.integer))
    if isinstance(value, float):
        # XML Schema writes infinity in capitals.
        text = repr(value).upper() if math.isinf(value) else repr(value)
        return literal(text, datatype=str(XSD.double))
    return Literal(value)


def fits_iri(text: str) -> bool:
    """Say whether a text holds only characters that an IRI may hold."""
    return _NOT_IN_IRI.search(text) is None


def is_absolute(text: str) -> bool:
    """Say whether a text is an absolute IRI.

    Examples:
        >>> is_absolute("http://example.org/ø"), is_absolute("a/b"), is_absolute("http://e/a b")
        (True, False, False)
    """
    return _SCHEME.match(text) is not None and fits_iri(text)


def is_term_json(data: object) -> bool:
    """Say whether JSON data is meant as a term: it has ``type`` and ``value`` as bindings have.

    Examples:
        >>> is_term_json({"type": "uri", "value": "http://e/"}), is_term_json({"type": "City"})
        (True, False)
    """
    return (
        isinstance(data, Mapping)
        and "value" in data
        and data.get("type") in (*_KINDS, "triple")
        and not any(isinstance(key, str) and key.startswith("@") for key in data)
    )


def term_from_json(data: Mapping[str, Any], path: str = "$") -> Term:
    """Read a term as the SPARQL 1.1 Query Results JSON Format writes it (section 3.2.2).

    Raises:
        ProgramError: It is no such term; the error's place is `path`.

    Examples:
        >>> term_from_json({"type": "literal", "value": "København", "xml:lang": "da"}).n3()
        '"København"@da'
    """
    kind, value = data.get("type"), data.get("value")
    if kind == "triple":
        raise ProgramError("triple terms are not supported", where=path)
    if kind not in _KINDS:
        hint = f"use {one_of(_KINDS)}"
        raise ProgramError(f"a term has no type {kind!r}", where=f"{path}.type", hint=hint)
    if not isinstance(value, str):
        raise ProgramError("a term's value is a string", where=f"{path}.value")
    odd = sorted(key for key in data if key not in _MEMBERS[kind])
    if odd:
        raise ProgramError(f"a term of type {kind} has no {odd[0]!r}", where=path)
    if kind == "uri":
        if not fits_iri(value):
            hint = "percent-encode it"
            raise ProgramError(f"{value!r} holds what no IRI may hold", where=path, hint=hint)
        return URIRef(value)
    if kind == "bnode":
        return BNode(value)
    lang, datatype = data.get("xml:lang"), data.get("datatype")
    if not isinstance(lang, str | None) or not isinstance(datatype, str | None):
        raise ProgramError("xml:lang and datatype are strings", where=path)
    try:
        return literal(value, lang=lang, datatype=datatype)
    except ValueError:  # rdflib checks the form of language tags
        raise ProgramError(f"{lang!r} is no language tag", where=path) from None


def term_to_json(term: Term) -> dict[str, str]:
    """Write a term as the SPARQL 1.1 Query Results JSON Format does.

    Examples:
        >>> term_to_json(URIRef("http://example.org/a"))
        {'type': 'uri', 'value': 'http://example.org/a'}
    """
    if isinstance(term, URIRef):
        return {"type": "uri", "value": str(term)}
    if isinstance(term, BNode):
        return {"type": "bnode", "value": str(term)}
    written = {"type": "literal", "value": str(term)}
    if term.language:
        written["xml:lang"] = term.language
    elif term.datatype is not None and term.datatype != XSD.string:
        written["datatype"] = str(term.datatype)
    return written


class BlankNodes:
    """Gives the blank nodes of one document fresh names, so that documents never share any.

    Examples:
        >>> one, other = BlankNodes(), BlankNodes()
        >>> one["b0"] == one["b0"], one["b0"] == other["b0"]
        (True, False)
    """

    def __init__(self) -> None:
        self._fresh: dict[str, BNode] = {}

    def __getitem__(self, label: str) -> BNode:
        return self._fresh.setdefault(label, BNode())


def from_oxigraph(
    term: pyoxigraph.NamedNode | pyoxigraph.BlankNode | pyoxigraph.Literal | pyoxigraph.Triple,
    blanks: BlankNodes,
) -> Term:
    """Turn a term of pyoxigraph's into one of rdflib's, without loss.

    Raises:
        ProgramError: It is a triple term, or a text with a base direction (RDF 1.2).
    """
    if isinstance(term, pyoxigraph.NamedNode):
        return URIRef(term.value)
    if isinstance(term, pyoxigraph.BlankNode):
        return blanks[term.value]
    if not isinstance(term, pyoxigraph.Literal):
        raise ProgramError("triple terms are not supported")
    if term.direction is not None:
        raise ProgramError("texts with a base direction are not supported")
    try:
        return literal(term.value, lang=term.language, datatype=term.datatype.value)
    except ValueError:
        raise ProgramError(f"the language tag {term.language!r} is not supported") from None


def to_oxigraph(
    term: Term,
) -> pyoxigraph.NamedNode | pyoxigraph.BlankNode | pyoxigraph.Literal:
    """Turn a term of rdflib's into one of pyoxigraph's.

    Raises:
        ProgramError: It is a name or tag that pyoxigraph does not take.
    """
    try:
        if isinstance(term, BNode):
            return pyoxigraph.BlankNode(str(term))
        if isinstance(term, URIRef):
            return pyoxigraph.NamedNode(str(term))
        if term.language:
            return pyoxigraph.Literal(str(term), language=term.language)
        if term.datatype is None:
            return pyoxigraph.Literal(str(term))
        return pyoxigraph.Literal(str(term), datatype=pyoxigraph.NamedNode(str(term.datatype)))
    except ValueError as error:
        raise ProgramError(f"{term!r} is no RDF term: {error}") from None


def to_sparql(term: URIRef | Literal) -> str:
    r"""Write a term as it stands in a query, escaped.

    Raises:
        ProgramError: It is no absolute IRI, or a literal with a datatype that is none.

    Examples:
        >>> to_sparql(Literal('a "b"\n', lang="en"))
        '"a \\"b\\"\\n"@en'
    """
    name = term if isinstance(term, URIRef) else term.datatype
    if name is not None and not is_absolute(name):
        raise ProgramError(f"{str(name)!r} is no absolute IRI", hint="resolve it with ResolveURI")
    if isinstance(term, URIRef):
        return f"<{term}>"
    return str(to_oxigraph(term))
