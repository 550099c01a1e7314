"""RDF terms: lossless inside, compact for agents, escaped for queries, read from any store.

Terms are pyoxigraph's. Text forms are those of N-Triples (RDF 1.2), which SPARQL also reads.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, cast

from pyoxigraph import (
    BlankNode,
    Literal,
    NamedNode,
    Quad,
    QueryResultsFormat,
    RdfFormat,
    Triple,
    parse,
    parse_query_results,
)

from reasoningbank.errors import QueryError

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

_INTEGER_NAMES = """
integer long int short byte nonNegativeInteger positiveInteger nonPositiveInteger negativeInteger
unsignedLong unsignedInt unsignedShort unsignedByte
"""
INTEGERS = frozenset(XSD + name for name in _INTEGER_NAMES.split())
_REALS = frozenset(XSD + name for name in ("decimal", "double", "float"))
_INTEGER = re.compile(r"[+-]?\d{1,300}")
#: By datatype: the texts that a query may write without quotation marks.
_BARE: Mapping[str, str] = {
    XSD + "boolean": "true|false",
    XSD + "integer": r"[+-]?\d{1,300}",
    XSD + "decimal": r"[+-]?\d{0,300}\.\d{1,300}",
    XSD + "double": r"[+-]?(?:\d{1,300}(?:\.\d{0,300})?|\.\d{1,300})[eE][+-]?\d{1,9}",
}
#: Namespaces of schemas: their classes type everything in some data and say nothing about it.
SCHEMA_NAMESPACES = tuple(STANDARD_PREFIXES[name] for name in ("rdf", "rdfs", "owl"))
#: A text that alone would read as an IRI, a prefixed name, a blank node or a quoted literal.
_LIKE_A_TERM = re.compile(r'".*|<\S*>|<<.*|_:\S+|(?:[^\W\d_][\w.-]*)?:\S*', re.DOTALL)
_NOT_IN_IRI = re.compile(r"[\x00-\x20<>\"{}|^`\\]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
# Narrower than the grammar: every engine reads these names without escapes, including Oxigraph,
# which rejects two dots.
_PLAIN_LOCAL = re.compile(r"(?:[\w](?:[\w-]*(?:\.[\w-]+)?)?)?")
_IRI_CHARS = 2_000


def full(term: Term) -> str:
    r"""Return the lossless N-Triples form of a term."""
    return f"<<( {' '.join(map(full, term))} )>>" if isinstance(term, Triple) else str(term)


def iri(value: str | NamedNode) -> str:
    """Return an absolute IRI as written in a query, checked for forbidden characters."""
    text = value.value if isinstance(value, NamedNode) else value
    if not _SCHEME.match(text) or _NOT_IN_IRI.search(text):
        hint = "give an absolute IRI such as http://example.org/a, or a known prefixed name"
        raise QueryError("not an IRI", where=text[:200] or "''", hint=hint)
    return f"<{text}>"


def to_iri(text: str, prefixes: Mapping[str, str] = STANDARD_PREFIXES) -> NamedNode:
    """Read an IRI as an agent writes it: bare, in angle brackets, or as a prefixed name."""
    text = text.strip()
    if text.startswith("<") and text.endswith(">"):
        return NamedNode(iri(text[1:-1])[1:-1])
    prefix, colon, local = text.partition(":")
    if colon and prefix in prefixes and not local.startswith("//"):
        return NamedNode(iri(prefixes[prefix] + unescape(local))[1:-1])
    if colon and ("/" in local or prefix.lower() in ("urn", "mailto", "tag", "info", "doi")):
        return NamedNode(iri(text)[1:-1])
    known = ", ".join(sorted(prefixes)[:30])
    raise QueryError(
        f"unknown prefix {prefix + ':'!r}" if colon else "not an IRI",
        where=text[:200] or "''",
        hint=f"give a full IRI, or use a known prefix ({known})",
        code="unknown-prefix" if colon else "not-an-iri",
    )


def absolute(written: str, declared: Mapping[str, str]) -> str | None:
    """Return the IRI that ``<…>``, a prefixed name or ``a`` means; None for other terms."""
    if written == "a":
        return RDF_TYPE
    prefix, colon, _ = written.partition(":")
    if not written.startswith("<") and (not colon or prefix not in declared):
        return None
    try:
        return iri(expanded(written, declared))[1:-1]
    except QueryError:
        return None  # relative, or with characters that no IRI contains


def expanded(text: str, known: Mapping[str, str]) -> str:
    """Return the IRI of ``<…>`` or of a prefixed name; as it is if the prefix is unknown."""
    if text.startswith("<"):
        return text[1:-1]
    prefix, _, local = text.partition(":")
    return known[prefix] + unescape(local) if prefix in known else text


def unescape(local: str) -> str:
    """Return the local part of a prefixed name without its backslashes."""
    return re.sub(r"\\(.)", r"\1", local)


def string_literal(text: str, language: str | None = None) -> str:
    r"""Return text as a string literal for a query, escaped."""
    try:
        return str(Literal(text, language=language))
    except ValueError as error:
        raise QueryError(str(error), where=f"language {language!r}") from error


def values(variable: str, terms: Iterable[Term]) -> str:
    """Return a VALUES clause that binds one variable to each of the terms."""
    if not re.fullmatch(r"\w+", variable):
        raise QueryError("not a variable name", where=variable[:200])
    texts: list[str] = []
    for term in terms:
        if isinstance(term, BlankNode):
            raise QueryError("a query cannot name a blank node", where=str(term))
        texts.append(iri(term) if isinstance(term, NamedNode) else full(term))
    return f"VALUES ?{variable} {{ {' '.join(texts)} }}"


def compact(
    term: Term | None, prefixes: Mapping[str, str] = STANDARD_PREFIXES, max_chars: int = 200
) -> str | int | float | bool | None:
    r"""Return a term as an agent reads it; `full` is the lossless form.

    IRIs of known namespaces become prefixed names, numbers and booleans plain values (a decimal
    with many digits is rounded), strings bare text, language-tagged strings ``"text"@tag``. A
    string that would read as another term, such as ``CHEBI:57353``, is in quotation marks.
    Text longer than `max_chars` characters is cut and followed by its length. An unbound value is
    None.
    """
    if term is None:
        return None
    if isinstance(term, Literal):
        if term.datatype.value == XSD + "string" and not _LIKE_A_TERM.fullmatch(term.value):
            return cut(term.value, max_chars)
        if (value := _plain(term)) is not None:
            return value
    return written(term, prefixes, max_chars)


def written(
    term: Term | str, prefixes: Mapping[str, str] = STANDARD_PREFIXES, max_chars: int = 200
) -> str:
    """Return a term, or an IRI given as text, as a query writes it; long text is cut."""
    if isinstance(term, NamedNode | str):
        text = term if isinstance(term, str) else term.value
        return _compact_iri(text, prefixes, max_chars)
    if isinstance(term, Triple):
        return f"<<( {' '.join(written(part, prefixes, max_chars) for part in term)} )>>"
    if isinstance(term, BlankNode):
        return str(term)
    datatype = term.datatype.value
    if datatype == XSD + "boolean" and (value := _plain(term)) is not None:
        # Virtuoso spells booleans 0 and 1.
        return str(value).lower()
    if (bare := _BARE.get(datatype)) and re.fullmatch(bare, term.value):
        return term.value
    text = str(Literal(cut(term.value, max_chars)))
    if term.language is not None:
        return f"{text}@{term.language}{f'--{term.direction}' if term.direction else ''}"
    if datatype == XSD + "string":
        return text
    return f"{text}^^{_compact_iri(datatype, {**STANDARD_PREFIXES, **prefixes}, max_chars)}"


def _compact_iri(value: str, prefixes: Mapping[str, str], max_chars: int) -> str:
    best = name = ""
    for prefix, namespace in prefixes.items():
        if len(namespace) > len(best) and value.startswith(namespace):
            local = value[len(namespace) :]
            if len(local) <= _IRI_CHARS and _PLAIN_LOCAL.fullmatch(local):
                best, name = namespace, f"{prefix}:{local}"
    # A cut IRI is useless, so only absurd ones are cut.
    return name or f"<{cut(value, max(max_chars, _IRI_CHARS))}>"


def _plain(term: Literal) -> int | float | bool | None:
    """Return the value of a number or boolean; None for other literals and for odd spellings."""
    text, datatype = term.value, term.datatype.value
    if datatype == XSD + "boolean" and text in ("true", "false", "0", "1"):
        return text in ("true", "1")
    if datatype in INTEGERS and _INTEGER.fullmatch(text):
        return int(text)
    if datatype in _REALS and "_" not in text:
        with suppress(ValueError):
            number = float(text)
            return number if math.isfinite(number) else None
    return None


def cut(text: str, max_chars: int) -> str:
    """Return at most `max_chars` characters of a text, with its length if it is cut."""
    if len(text) <= max_chars:
        return text
    return f"{text[:max_chars]}… ({len(text)} characters)"


def last_part(name: str) -> str:
    """Return what follows the last ``/``, ``#`` or ``:`` of an IRI or a name with a prefix."""
    return re.split(r"[/#:]", name)[-1]


def short(text: str, most: int = 80) -> str:
    """Return a text on one line, cut."""
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


# -- terms that real stores hold although RDF does not allow them --------------------------

_TAG = re.compile(r"\"@([A-Za-z0-9_-]+)$")
#: Beyond this many characters, the parser's time grows with their square; it refuses 16 MiB.
LONG = 1024 * 1024
_LITERAL = re.compile(r"\"(.*)\"(?:@([A-Za-z0-9-]+)|\^\^<([^<>]*)>)?$", re.S)
_TAGGED = re.compile(r"\"(.*)\"@[A-Za-z0-9-]*", re.S)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.S)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f"}


def read_term(text: str) -> Term:
    """Read the text of one term, leniently if it must be."""
    if len(text) > LONG and (found := _LITERAL.match(text)):
        value = _ESCAPE.sub(_unescaped, found[1])
        datatype = NamedNode(found[3]) if found[3] else None
        return Literal(value, language=found[2], datatype=datatype)
    try:
        # The solutions get no name: an error would keep it, and only this thread may drop them.
        lines = f"?x\n{text}\n".encode()
        term: Term = next(iter(cast("Any", parse_query_results(lines, QueryResultsFormat.TSV))))[0]
        return term
    except SyntaxError:
        pass
    if text.startswith("_:"):
        text = "_:" + re.sub(r"[^A-Za-z0-9]", lambda m: f"x{ord(m[0]):x}", text[2:])
    text = _TAG.sub(lambda m: '"@' + m[1].replace("_", "-"), text)
    try:
        line = f"<r:b> <r:b> {text} .".encode()
        quad: Quad = next(iter(parse(line, RdfFormat.N_TRIPLES, lenient=True)))
        return quad.object
    except (SyntaxError, StopIteration):
        found = _TAGGED.fullmatch(text)
        # A text that was cut has no second quotation mark.
        return Literal(_ESCAPE.sub(_unescaped, found[1] if found else text.removeprefix('"')))


def _unescaped(found: re.Match[str]) -> str:
    code = found[1] or found[2]
    return chr(int(code, 16)) if code else _ESCAPED.get(found[3], found[3])


def term_text(term: Mapping[str, Any]) -> str:
    """Return the text of a term of SPARQL JSON results, whether RDF allows it or not."""
    kind, value = term["type"], term["value"]
    if kind == "uri":
        return f"<{_escaped(value)}>"
    if kind == "bnode":
        return "_:" + re.sub(r"\s", "_", value)
    if kind == "triple":
        parts = (term_text(value[part]) for part in ("subject", "predicate", "object"))
        return f"<<( {' '.join(parts)} )>>"
    if kind not in ("literal", "typed-literal"):
        raise ValueError(kind)
    text = str(Literal(str(value)))
    if term.get("xml:lang"):
        direction = f"--{term['its:dir']}" if term.get("its:dir") else ""
        return f"{text}@{term['xml:lang']}{direction}"
    return f"{text}^^<{_escaped(term['datatype'])}>" if term.get("datatype") else text


def _escaped(value: str) -> str:
    # Only characters that would end the IRI or the cell; the rest stays as stored.
    return re.sub(r"[<>\x00-\x1f\\]", lambda m: f"%{ord(m[0]):02X}", value)
