"""Program errors with their JSON paths, and the RDF terms of programs with their JSON forms.

Terms are rdflib's. A literal keeps its lexical form (``"01"^^xsd:integer`` is never normalised),
and ``xsd:string`` equals no datatype (RDF 1.1 Concepts, section 3.3). rdflib has no triple terms
(RDF 1.2), so they are an error.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import pyoxigraph
from rdflib import XSD, BNode, Literal, URIRef

from reasoningbank.errors import QueryError, ReasoningBankError

Term = URIRef | Literal | BNode

_PLAIN_KEY = re.compile(r"[A-Za-z_@][\w@-]*")
_NOT_IN_IRI = re.compile(r"[\x00-\x20<>\"{}|^`\\\ud800-\udfff]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_MEMBERS = {
    "uri": {"type", "value"},
    "literal": {"type", "value", "xml:lang", "datatype"},
    "typed-literal": {"type", "value", "datatype"},
    "bnode": {"type", "value"},
}


class ProgramError(QueryError):
    """A program is wrong: it is malformed, or a value in it has the wrong type.

    `where` is the JSON path of the place, `code` names the kind of mistake.
    """

    default_code: ClassVar[str] = "program"


def json_path(parent: str, step: str | int) -> str:
    """Return the path of a member of the value at `parent`."""
    if isinstance(step, int):
        return f"{parent}[{step}]"
    if _PLAIN_KEY.fullmatch(step):
        return f"{parent}.{step}"
    escaped = step.replace("\\", "\\\\").replace('"', '\\"')
    return f'{parent}["{escaped}"]'


def at_path(parent: str, *steps: str | int) -> str:
    """Return the path several steps below `parent`."""
    for step in steps:
        parent = json_path(parent, step)
    return parent


def located(error: ReasoningBankError, path: str) -> ReasoningBankError:
    """Prefix the error's place with a JSON path unless it has one; return the same error."""
    if not error.where.startswith("$"):
        separator = "." if error.where.startswith("args") else ": "
        error.at(f"{path}{separator}{error.where}" if error.where else path)
    return error


def located_at(
    place: str, check: Callable[[Mapping[str, Any], Any], None]
) -> Callable[[Mapping[str, Any], Any], None]:
    """Return a check of arguments whose errors name the place of an argument."""

    def checked(given: Mapping[str, Any], visible: Any) -> None:
        try:
            check(given, visible)
        except ReasoningBankError as error:
            raise located(error, place) from None

    return checked


def one_of(words: Sequence[str], limit: int = 12) -> str:
    """Return a short list of words for a message."""
    shown = ", ".join(words[:limit]) or "none"
    return shown + ", …" if len(words) > limit else shown


def literal(value: str, *, lang: str | None = None, datatype: str | None = None) -> Literal:
    """Return a literal that keeps its lexical form."""
    if lang:
        return Literal(value, lang=lang)
    if datatype is None or datatype == str(XSD.string):
        return Literal(value)
    return Literal(value, datatype=URIRef(datatype), normalize=False)


def scalar(value: str | bool | int | float) -> Literal:
    """Return the literal of a JSON string, boolean or number."""
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
    """Return whether a text has only characters that an IRI may hold."""
    return _NOT_IN_IRI.search(text) is None


def is_absolute(text: str) -> bool:
    """Return whether a text is an absolute IRI."""
    return _SCHEME.match(text) is not None and fits_iri(text)


def is_term_json(data: object) -> bool:
    """Return whether JSON data has the form of a term in SPARQL results."""
    return (
        isinstance(data, Mapping)
        and "value" in data
        and isinstance(kind := data.get("type"), str)
        and kind in (*_MEMBERS, "triple")
        and not any(isinstance(key, str) and key.startswith("@") for key in data)
    )


def is_term_template(data: Any) -> bool:
    """Return whether an object is a term one of whose members is an operation."""
    return (
        is_term_json(data)
        and set(data) <= _MEMBERS.get(data["type"], set())
        and any(isinstance(member, Mapping) and "@op" in member for member in data.values())
    )


def term_from_json(data: Mapping[str, Any], path: str = "$") -> Term:
    """Read a term of the SPARQL 1.1 Query Results JSON Format (section 3.2.2)."""
    kind, value = data.get("type"), data.get("value")
    if kind == "triple":
        raise ProgramError("triple terms are not supported", where=path, code="unsupported-term")
    if not isinstance(kind, str) or kind not in _MEMBERS:
        hint = f"use {one_of(list(_MEMBERS))}"
        what = f"a term cannot have the type {kind!r}"
        raise ProgramError(what, where=f"{path}.type", hint=hint, code="bad-term")
    if not isinstance(value, str):
        what = "a term's value must be a string"
        raise ProgramError(what, where=f"{path}.value", code="bad-term")
    odd = sorted(key for key in data if key not in _MEMBERS[kind])
    if odd:
        what = f"a term of type {kind} has no member {odd[0]!r}"
        raise ProgramError(what, where=path, code="bad-term", member=odd[0])
    if kind == "uri":
        if not fits_iri(value):
            what = f"{value!r} has characters that no IRI may hold"
            raise ProgramError(what, where=path, hint="percent-encode it", code="bad-iri")
        return URIRef(value)
    if kind == "bnode":
        return BNode(value)
    lang, datatype = data.get("xml:lang"), data.get("datatype")
    if not isinstance(lang, str | None) or not isinstance(datatype, str | None):
        what = "xml:lang and datatype must be strings"
        raise ProgramError(what, where=path, code="bad-term")
    try:
        return literal(value, lang=lang, datatype=datatype)
    except ValueError:  # rdflib checks the form of language tags
        what = f"{lang!r} is not a language tag"
        raise ProgramError(what, where=path, code="bad-language-tag") from None


def term_to_json(term: Term) -> dict[str, str]:
    """Write a term in the SPARQL 1.1 Query Results JSON Format."""
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


class BlankNodes(defaultdict[str, BNode]):
    """Fresh names for the blank nodes of one document, so that documents never share one."""

    def __init__(self) -> None:
        super().__init__(BNode)


def from_oxigraph(
    term: pyoxigraph.NamedNode | pyoxigraph.BlankNode | pyoxigraph.Literal | pyoxigraph.Triple,
    blanks: BlankNodes,
) -> Term:
    """Convert a pyoxigraph term to rdflib without loss."""
    if isinstance(term, pyoxigraph.NamedNode):
        return URIRef(term.value)
    if isinstance(term, pyoxigraph.BlankNode):
        return blanks[term.value]
    if not isinstance(term, pyoxigraph.Literal):
        raise ProgramError("triple terms are not supported", code="unsupported-term")
    if term.direction is not None:
        what = "texts with a base direction are not supported"
        raise ProgramError(what, code="unsupported-term")
    try:
        return literal(term.value, lang=term.language, datatype=term.datatype.value)
    except ValueError:
        what = f"the language tag {term.language!r} is not supported"
        raise ProgramError(what, code="bad-language-tag") from None


def to_oxigraph(term: Term) -> pyoxigraph.NamedNode | pyoxigraph.BlankNode | pyoxigraph.Literal:
    """Convert an rdflib term to pyoxigraph."""
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
        raise ProgramError(f"{term!r} is not an RDF term: {error}", code="bad-term") from None


def to_sparql(term: URIRef | Literal) -> str:
    r"""Write a term as it appears in a query, escaped."""
    name = term if isinstance(term, URIRef) else term.datatype
    if name is not None and not is_absolute(name):
        what = f"{str(name)!r} is not an absolute IRI"
        raise ProgramError(what, hint="resolve it with ResolveURI", code="relative-iri")
    return f"<{term}>" if isinstance(term, URIRef) else str(to_oxigraph(term))
