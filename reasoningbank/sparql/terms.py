"""RDF terms: lossless inside, compact where an agent reads them, escaped where queries are built.

Terms are pyoxigraph's. Text forms are those of N-Triples (RDF 1.2), which SPARQL also reads.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from reasoningbank.errors import QueryError

__all__ = [
    "RDF_TYPE",
    "STANDARD_PREFIXES",
    "Term",
    "absolute",
    "compact",
    "cut",
    "full",
    "iri",
    "string_literal",
    "to_iri",
    "values",
]

Term = NamedNode | BlankNode | Literal | Triple

XSD = "http://www.w3.org/2001/XMLSchema#"
STANDARD_PREFIXES: Mapping[str, str] = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "xsd": XSD,
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "dcterms": "http://purl.org/dc/terms/",
    "sh": "http://www.w3.org/ns/shacl#",
    "sd": "http://www.w3.org/ns/sparql-service-description#",
    "void": "http://rdfs.org/ns/void#",
}

RDF_TYPE = STANDARD_PREFIXES["rdf"] + "type"

_INTEGERS = frozenset(
    XSD + name
    for name in (
        "integer",
        *("long", "int", "short", "byte"),
        *("nonNegativeInteger", "positiveInteger", "nonPositiveInteger", "negativeInteger"),
        *("unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte"),
    )
)
_REALS = frozenset(XSD + name for name in ("decimal", "double", "float"))
# Longer lexical forms are shown as written: they would lose digits, or not fit JSON readers.
_MOST_DIGITS = 17
_INTEGER = re.compile(r"[+-]?\d+")
_NOT_IN_IRI = re.compile(r"[\x00-\x20<>\"{}|^`\\]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
# Narrower than the grammar on purpose: what it accepts can be written back without escapes
# by every engine, Oxigraph (which rejects two dots) included.
_PLAIN_LOCAL = re.compile(r"(?:[\w](?:[\w-]*(?:\.[\w-]+)?)?)?")
_IRI_CHARS = 2_000


def full(term: Term) -> str:
    r"""Return the lossless N-Triples form of a term.

    Examples:
        >>> full(Literal("a\nb", language="de"))
        '"a\\nb"@de'
    """
    return (
        f"<<( {' '.join(full(part) for part in term)} )>>"
        if isinstance(term, Triple)
        else str(term)
    )


def iri(value: str | NamedNode) -> str:
    """Return an absolute IRI as it stands in a query, refusing what no IRI may hold.

    Raises:
        QueryError: `value` is not an absolute IRI, so putting it into a query would be unsafe.

    Examples:
        >>> iri("http://example.org/a")
        '<http://example.org/a>'
        >>> iri("http://example.org/> . ?x ?y ?z")
        Traceback (most recent call last):
        ...
        reasoningbank.errors.QueryError: http://example.org/> . ?x ?y ?z: not an IRI...
    """
    text = value.value if isinstance(value, NamedNode) else value
    if not _SCHEME.match(text) or _NOT_IN_IRI.search(text):
        raise QueryError(
            "not an IRI",
            where=text[:200] or "''",
            hint="give an absolute IRI such as http://example.org/a, or a known prefixed name",
        )
    return f"<{text}>"


def to_iri(text: str, prefixes: Mapping[str, str] = STANDARD_PREFIXES) -> NamedNode:
    """Read an IRI as an agent writes it: bare, in angle brackets, or as a prefixed name.

    Raises:
        QueryError: It is none of these, or the prefix is unknown.

    Examples:
        >>> to_iri("rdfs:label").value
        'http://www.w3.org/2000/01/rdf-schema#label'
        >>> to_iri("<http://example.org/a>").value
        'http://example.org/a'
    """
    text = text.strip()
    if text.startswith("<") and text.endswith(">"):
        return NamedNode(iri(text[1:-1])[1:-1])
    prefix, colon, local = text.partition(":")
    if colon and prefix in prefixes and not local.startswith("//"):
        return NamedNode(iri(prefixes[prefix] + re.sub(r"\\(.)", r"\1", local))[1:-1])
    if colon and ("/" in local or prefix.lower() in ("urn", "mailto", "tag", "info", "doi")):
        return NamedNode(iri(text)[1:-1])
    known = ", ".join(sorted(prefixes)[:30])
    what = f"unknown prefix {prefix + ':'!r}" if colon else "not an IRI"
    raise QueryError(
        what, where=text[:200] or "''", hint=f"give a full IRI, or use a known prefix ({known})"
    )


def absolute(written: str, declared: Mapping[str, str]) -> str | None:
    """Return the IRI that ``<…>``, a prefixed name or ``a`` means; None for other terms.

    Examples:
        >>> absolute("e:a\\\\.b", {"e": "http://e/"}), absolute("?x", {})
        ('http://e/a.b', None)
    """
    if written == "a":
        return RDF_TYPE
    if written.startswith("<"):
        name = written[1:-1]
    elif written[:1] in "?$\"'_+-" or written[:1].isdigit():
        return None
    else:
        prefix, colon, local = written.partition(":")
        if not colon or prefix not in declared:
            return None
        name = declared[prefix] + unescape(local)
    try:
        return iri(name)[1:-1]
    except QueryError:
        return None  # relative, or with characters that no IRI contains


def unescape(local: str) -> str:
    """Return the local part of a prefixed name without its backslashes."""
    return re.sub(r"\\(.)", r"\1", local)


def string_literal(text: str, language: str | None = None) -> str:
    r"""Return text as a string literal for a query, escaped.

    Raises:
        QueryError: `language` is not a language tag.

    Examples:
        >>> string_literal('say "hi"\n')
        '"say \\"hi\\"\\n"'
    """
    try:
        return str(Literal(text, language=language))
    except ValueError as error:
        raise QueryError(str(error), where=f"language {language!r}") from error


def values(variable: str, terms: Iterable[Term]) -> str:
    """Return a VALUES clause that binds one variable to each of the terms.

    Raises:
        QueryError: A term is a blank node, which a query cannot name, or the name is no variable.

    Examples:
        >>> values("s", [NamedNode("http://e/a"), Literal(1)])
        'VALUES ?s { <http://e/a> "1"^^<http://www.w3.org/2001/XMLSchema#integer> }'
    """
    if not re.fullmatch(r"\w+", variable):
        raise QueryError("not a variable name", where=variable[:200])
    texts: list[str] = []
    for term in terms:
        if isinstance(term, BlankNode):
            raise QueryError("a blank node has no name a query could use", where=str(term))
        texts.append(iri(term) if isinstance(term, NamedNode) else full(term))
    return f"VALUES ?{variable} {{ {' '.join(texts)} }}"


def compact(
    term: Term | None, prefixes: Mapping[str, str] = STANDARD_PREFIXES, max_chars: int = 200
) -> str | int | float | bool | None:
    """Return a term as an agent reads it; `full` has what is left out.

    IRIs of known namespaces become prefixed names, numbers and booleans plain values, strings
    bare text, language-tagged strings ``"text"@tag``; text longer than `max_chars` characters is
    cut and followed by its length. An unbound value is None.

    Examples:
        >>> compact(NamedNode("http://www.w3.org/2000/01/rdf-schema#label"))
        'rdfs:label'
        >>> compact(NamedNode("http://example.org/a"))
        '<http://example.org/a>'
        >>> compact(Literal("Eiche", language="de")), compact(Literal(3)), compact(Literal(True))
        ('"Eiche"@de', 3, True)
        >>> compact(Literal("a" * 300), max_chars=5)
        'aaaaa… (300 characters)'
    """
    if term is None:
        return None
    if isinstance(term, NamedNode):
        return _compact_iri(term.value, prefixes, max_chars)
    if isinstance(term, Literal):
        return _compact_literal(term, prefixes, max_chars)
    if isinstance(term, Triple):
        inner = (compact(part, prefixes, max_chars) for part in term)
        return f"<<( {' '.join(str(part) for part in inner)} )>>"
    return str(term)


def _compact_iri(value: str, prefixes: Mapping[str, str], max_chars: int) -> str:
    best = ""
    name = ""
    for prefix, namespace in prefixes.items():
        if len(namespace) > len(best) and value.startswith(namespace):
            local = value[len(namespace) :]
            if len(local) <= _IRI_CHARS and _PLAIN_LOCAL.fullmatch(local):
                best, name = namespace, f"{prefix}:{local}"
    # A cut IRI is useless, so only absurd ones are cut.
    return name or f"<{cut(value, max(max_chars, _IRI_CHARS))}>"


def _compact_literal(
    term: Literal, prefixes: Mapping[str, str], max_chars: int
) -> str | int | float | bool:
    text = term.value
    if term.language is not None:
        tag = term.language if term.direction is None else f"{term.language}--{term.direction}"
        return f'"{cut(text, max_chars)}"@{tag}'
    datatype = term.datatype.value
    if datatype == XSD + "string":
        return cut(text, max_chars)
    if datatype == XSD + "boolean" and text in ("true", "false", "0", "1"):
        return text in ("true", "1")
    # A longer decimal would come out with other digits.
    if len(text) <= _MOST_DIGITS or datatype in _REALS - {XSD + "decimal"}:
        if datatype in _INTEGERS and _INTEGER.fullmatch(text):
            return int(text)
        if datatype in _REALS:
            number = _real(text)
            if number is not None:
                return number
    shown = _compact_iri(datatype, {**STANDARD_PREFIXES, **prefixes}, max_chars)
    return f'"{cut(text, max_chars)}"^^{shown}'


def _real(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in text else None


def cut(text: str, max_chars: int) -> str:
    """Return at most `max_chars` characters of a text and, where it is cut, how many it has.

    Examples:
        >>> cut("a long name", 6)
        'a long… (11 characters)'
    """
    if len(text) <= max_chars:
        return text
    return f"{text[:max_chars]}… ({len(text)} characters)"
