"""Program errors with their JSON paths; RDF terms and graphs, with their JSON forms.

Terms are rdflib's. A literal keeps its lexical form (``"01"^^xsd:integer`` is never normalised),
and ``xsd:string`` equals no datatype (RDF 1.1 Concepts, section 3.3). rdflib has no triple terms
(RDF 1.2), so they are an error. Graphs are read from JSON-LD 1.1 and written as it without loss:
pyoxigraph, which keeps lexical forms and fetches nothing, reads it, so a remote ``@context`` is an
error; they are written as node objects without nesting or lists, so every triple occurs once.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyoxigraph
from rdflib import RDF, XSD, BNode, Graph, Literal, URIRef

from reasoningbank.errors import QueryError, ReasoningBankError
from reasoningbank.sparql import STANDARD_PREFIXES

Term = URIRef | Literal | BNode
BlankNodes = defaultdict[str, BNode]

_PLAIN_KEY = re.compile(r"[A-Za-z_@][\w@-]*")
_NOT_IN_IRI = re.compile(r"[\x00-\x20<>\"{}|^`\\\ud800-\udfff]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_SCALARS = {bool: XSD.boolean, int: XSD.integer, float: XSD.double}
_MEMBERS = {
    "uri": {"type", "value"},
    "literal": {"type", "value", "xml:lang", "datatype"},
    "typed-literal": {"type", "value", "datatype"},
    "bnode": {"type", "value"},
}


class ProgramError(QueryError, code="program"):
    """A program is wrong: it is malformed, or a value in it has the wrong type.

    `where` is the JSON path of the place, `code` names the kind of mistake.
    """

    def to_json(self) -> dict[str, str]:
        """Return the mistake as a JSON object."""
        return {"path": self.where, "code": self.code, "what": self.what, "hint": self.hint}


def json_path(parent: str, *steps: str | int) -> str:
    """Return the path of the value that is one or several steps below the one at `parent`."""
    for step in steps:
        if isinstance(step, str) and _PLAIN_KEY.fullmatch(step):
            parent += f".{step}"
        else:
            parent += f"[{json.dumps(step, ensure_ascii=False)}]"
    return parent


@contextlib.contextmanager
def locating(place: str) -> Iterator[None]:
    """Prefix the place of an error with a JSON path, or that of an argument, unless it has one."""
    try:
        yield
    except ReasoningBankError as error:
        if not error.where.startswith("$"):
            separator = "." if error.where.startswith("args") else ": "
            error.at(f"{place}{separator}{error.where}" if error.where else place)
        raise


def one_of(words: Sequence[str], limit: int = 12) -> str:
    shown = ", ".join(words[:limit]) or "none"
    return shown + ", …" if len(words) > limit else shown


def literal(value: str, *, lang: str | None = None, datatype: str | None = None) -> Literal:
    """Return a literal that keeps its lexical form."""
    kind = None if lang or not datatype or datatype == str(XSD.string) else URIRef(datatype)
    return Literal(value, lang=lang or None, datatype=kind, normalize=False)


def scalar(value: str | bool | int | float) -> Literal:
    """Return the literal of a JSON string, boolean or number."""
    if isinstance(value, str):
        return Literal(value)
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    # XML Schema writes infinity in capitals.
    text = text.upper() if text.endswith("inf") else text
    return literal(text, datatype=str(_SCALARS[type(value)]))


def fits_iri(text: str) -> bool:
    return _NOT_IN_IRI.search(text) is None


def is_absolute(text: str) -> bool:
    return _SCHEME.match(text) is not None and fits_iri(text)


def refuse_prefixed(text: str, where: str = "") -> None:
    """Refuse a name such as ``schema:name`` as an IRI: its prefix would be taken for a scheme."""
    prefix, _, local = text.partition(":")
    if prefix in PREFIXES and _LOCAL.fullmatch(local) and not local[0].isdigit():
        hint = f"write {PREFIXES[prefix]}{local}"
        what = f"{text!r} is a prefixed name, not an IRI"
        raise ProgramError(what, where=where, hint=hint, code="prefixed-name", prefix=prefix)


def is_term_json(data: object) -> bool:
    """Return whether JSON data has the form of a term in SPARQL results."""
    return (
        isinstance(data, Mapping)
        and "value" in data
        and isinstance(kind := data.get("type"), str)
        and kind in (*_MEMBERS, "triple")
        and not any(isinstance(key, str) and key.startswith("@") for key in data)
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
        raise ProgramError("xml:lang and datatype must be strings", where=path, code="bad-term")
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


def from_oxigraph(
    term: pyoxigraph.NamedNode | pyoxigraph.BlankNode | pyoxigraph.Literal | pyoxigraph.Triple,
    blanks: BlankNodes,
) -> Term:
    """Convert a pyoxigraph term to rdflib without loss; `blanks` names those of one document."""
    if isinstance(term, pyoxigraph.NamedNode):
        return URIRef(term.value)
    if isinstance(term, pyoxigraph.BlankNode):
        return blanks[term.value]
    if not isinstance(term, pyoxigraph.Literal):
        raise ProgramError("triple terms are not supported", code="unsupported-term")
    if term.direction is not None:
        raise ProgramError("texts with a base direction are not supported", code="unsupported-term")
    try:
        return literal(term.value, lang=term.language, datatype=term.datatype.value)
    except ValueError:
        what = f"the language tag {term.language!r} is not supported"
        raise ProgramError(what, code="bad-language-tag") from None


def to_oxigraph(term: Term) -> pyoxigraph.NamedNode | pyoxigraph.BlankNode | pyoxigraph.Literal:
    try:
        if isinstance(term, BNode):
            return pyoxigraph.BlankNode(str(term))
        if isinstance(term, URIRef):
            return pyoxigraph.NamedNode(str(term))
        typed = not term.language and term.datatype is not None
        datatype = pyoxigraph.NamedNode(str(term.datatype)) if typed else None
        return pyoxigraph.Literal(str(term), language=term.language, datatype=datatype)
    except ValueError as error:
        raise ProgramError(f"{term!r} is not an RDF term: {error}", code="bad-term") from None


def to_sparql(term: URIRef | Literal) -> str:
    r"""Write a term as it appears in a query, escaped."""
    name = term if isinstance(term, URIRef) else term.datatype
    if name is not None and not is_absolute(name):
        what = f"{str(name)!r} is not an absolute IRI"
        raise ProgramError(what, hint="resolve it with ResolveURI", code="relative-iri")
    return f"<{term}>" if isinstance(term, URIRef) else str(to_oxigraph(term))


# -- graphs --------------------------------------------------------------------------------------

#: A language tag, as RDF takes it (BCP 47).
_LANGUAGE = re.compile(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*")
#: Well-known prefixes: queries need not declare them, and JSON-LD is written with them.
PREFIXES: Mapping[str, str] = {
    **STANDARD_PREFIXES,
    **json.loads(Path(__file__).with_name("prefixes.json").read_text("utf-8")),
}
_NAMES = {space: name for name, space in PREFIXES.items()}
_LOCAL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
#: Keywords that give keys a meaning which only a full processor can resolve.
_MAPPERS = ("@vocab", "@nest", "@import", "@propagate")
#: Terms with these containers hold objects whose keys are languages, names or numbers.
_MAPS = ("@language", "@index", "@id", "@type", "@graph")
#: Replaces a document's address while relative IRIs are checked.
_DOCUMENT = "http://document.invalid/"


def graph_from_quads(quads: Iterable[pyoxigraph.Quad | pyoxigraph.Triple]) -> Graph:
    """Return the statements of one document, its named graphs included, as one graph.

    Blank nodes get fresh names, so graphs of different documents share none.
    """
    graph, blanks = Graph(), BlankNodes(BNode)
    for quad in quads:
        subject, predicate = from_oxigraph(quad.subject, blanks), URIRef(quad.predicate.value)
        graph.add((subject, predicate, from_oxigraph(quad.object, blanks)))
    return graph


def graph_from_jsonld(
    data: Mapping[str, Any] | list[Any],
    *,
    base: str | None = None,
    path: str = "$",
    prefixes: Mapping[str, str] | None = None,
) -> Graph:
    """Read a JSON-LD document; those of the `prefixes` that it uses must be declared in it."""
    nodes = enumerate(data) if isinstance(data, list) else ()
    # A context holds for its own node only.
    parts = [(node, json_path(path, at)) for at, node in nodes] or [(data, path)]
    contexts: list[Mapping[str, Any]] = []
    for part, where in parts:
        own = list(contexts_of(part, where))
        contexts += own
        _check_jsonld(part, where, own, base is not None, prefixes or {})
        _check_languages(part, where, terms_of(own, "@container", "@language"))
    terms = {name: term for context in contexts for name, term in context.items()}
    types = {n: str(t["@type"]) for n, t in terms.items() if isinstance(t, dict) and "@type" in t}
    try:
        text = json.dumps(_exact(data, types))
        quads = pyoxigraph.parse(text, pyoxigraph.RdfFormat.JSON_LD, base_iri=base)
        with locating(path):
            return graph_from_quads(quads)
    except (SyntaxError, ValueError) as error:
        hint = "write keys as full IRIs, or give an @context"
        what = f"not valid JSON-LD: {error}"
        raise ProgramError(what, where=path, hint=hint, code="bad-jsonld") from None


def _exact(data: Any, types: Mapping[str, str], key: str = "") -> Any:
    """Write integers as typed strings where the parser would make them inexact doubles."""
    kind = types.get(key, "@none")
    if kind == "@json":
        return data
    if isinstance(data, list):
        return [_exact(item, types, key) for item in data]
    if isinstance(data, Mapping):
        if _is_inexact(number := data.get("@value")):
            return {"@type": str(XSD.integer), **data, "@value": str(number)}
        return {k: v if k == "@context" else _exact(v, types, k) for k, v in data.items()}
    if not _is_inexact(data):
        return data
    return str(data) if kind[:1] != "@" else {"@value": str(data), "@type": str(XSD.integer)}


def _is_inexact(data: Any) -> bool:
    return isinstance(data, int) and abs(data) >= 2**53


def graph_to_jsonld(graph: Graph) -> dict[str, Any]:
    """Write a graph as a JSON-LD document that reads back as the same graph.

    Well-known namespaces become prefixes of its ``@context``. A single subject is the document
    itself, several are listed under ``@graph``. Subjects and values are sorted, so equal graphs
    without blank nodes give equal documents.
    """
    names = _Names(graph)
    nodes: dict[str, dict[str, Any]] = {}
    for subject, predicate, object_ in sorted(graph, key=_order):
        node = nodes.setdefault(names.of(subject), {"@id": names.of(subject)})
        if predicate == RDF.type and isinstance(object_, URIRef):
            key, value = "@type", names.of(object_)
        else:
            key, value = names.of(predicate), names.value(object_)
        node.setdefault(key, []).append(value)
    written = [
        {key: found[0] if len(found) == 1 and key != "@id" else found for key, found in n.items()}
        for n in nodes.values()
    ]
    context = {"@context": names.used} if names.used else {}
    return {**context, **written[0]} if len(written) == 1 else {**context, "@graph": written}


def _order(triple: tuple[Any, Any, Any]) -> tuple[str, ...]:
    subject, predicate, object_ = triple
    more = (str(object_.language), str(object_.datatype)) if isinstance(object_, Literal) else ()
    return (str(subject), str(predicate), str(object_), *more)


class _Names:
    """Writes IRIs with prefixes that cannot be confused with the scheme of another IRI."""

    def __init__(self, graph: Graph) -> None:
        self.used: dict[str, str] = {}
        parts = {part for triple in graph for part in triple}
        iris = {str(part) for part in parts if isinstance(part, URIRef)}
        iris |= {str(part.datatype) for part in parts if isinstance(part, Literal)}
        self._schemes = {iri.partition(":")[0] for iri in iris}

    def of(self, term: Any) -> str:
        if isinstance(term, BNode):
            return f"_:{term}"
        text = str(term)
        cut = max(text.rfind("#"), text.rfind("/")) + 1
        name = _NAMES.get(text[:cut])
        if name is None or name in self._schemes or not _LOCAL.fullmatch(text[cut:]):
            return text
        self.used[name] = text[:cut]
        return f"{name}:{text[cut:]}"

    def value(self, term: Any) -> Any:
        if not isinstance(term, Literal):
            return {"@id": self.of(term)}
        if term.language:
            return {"@value": str(term), "@language": term.language}
        if term.datatype is None or term.datatype == XSD.string:
            return str(term)
        # JSON-LD writes rdf:JSON as the JSON itself, which need not keep its spelling.
        datatype = str(RDF.JSON) if term.datatype == RDF.JSON else self.of(term.datatype)
        return {"@value": str(term), "@type": datatype}


def _members(data: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield the place, key and value of each member of a document, at any depth."""
    several = data.items() if isinstance(data, Mapping) else ()
    for key, member in enumerate(data) if isinstance(data, list) else several:
        where = json_path(path, key)
        yield where, key, member
        if key != "@value":
            yield from _members(member, where)


def contexts_of(data: Any, path: str) -> Iterator[Mapping[str, Any]]:
    """Yield the contexts in a document, at any depth; a remote one is an error."""
    for where, key, member in _members(data, path):
        if key not in ("@context", "@import"):
            continue
        several = isinstance(member, list)
        for at, context in enumerate(member if several else [member]):
            if isinstance(context, str):
                hint = 'write the context itself, e.g. {"schema": "http://schema.org/"}'
                what = f"the remote context {context!r} is not fetched"
                place = json_path(where, at) if several else where
                raise ProgramError(what, where=place, hint=hint, code="remote-context")
            if isinstance(context, Mapping):
                yield context


def terms_of(contexts: Iterable[Mapping[str, Any]], keyword: str, *values: str) -> frozenset[str]:
    """Return the terms that contexts define with one of the values of a keyword."""
    return frozenset(
        term
        for context in contexts
        for term, meaning in context.items()
        if isinstance(meaning, Mapping)
        for given in [meaning.get(keyword)]
        if set(given if isinstance(given, list) else [given]) & set(values)
    )


def names_of(
    data: Any, path: str, contexts: Sequence[Mapping[str, Any]] = ()
) -> Iterator[tuple[str, str, bool]]:
    """Yield the keys, types and identifiers of a document: name, place, whether it is a key."""
    references = terms_of(contexts, "@type", "@id")
    maps = terms_of(contexts, "@container", *_MAPS)
    unread = terms_of(contexts, "@type", "@json") | {"@context", "@value"}

    def names(data: Any, path: str) -> Iterator[tuple[str, str, bool]]:
        if isinstance(data, list):
            for at, item in enumerate(data):
                yield from names(item, json_path(path, at))
        elif isinstance(data, Mapping) and "@op" not in data:
            for key, member in data.items():
                where = json_path(path, key)
                if key in unread:
                    continue
                if not key.startswith("@"):
                    yield key, where, True
                if key in ("@id", "@type") or key in references:
                    several = member if isinstance(member, list) else [member]
                    yield from ((name, where, False) for name in several if isinstance(name, str))
                if key in maps and isinstance(member, Mapping):
                    for name, value in member.items():
                        yield from names(value, json_path(where, name))
                else:
                    yield from names(member, where)

    return names(data, path)


def _check_jsonld(
    data: Any,
    path: str,
    contexts: Sequence[Mapping[str, Any]],
    based: bool,
    prefixes: Mapping[str, str],
) -> None:
    """Reject keys that are not mapped to an IRI, undeclared prefixes, and invalid IRIs."""
    written = json.dumps(contexts)
    vague = any(mapper in written for mapper in _MAPPERS)
    known = frozenset(term for context in contexts for term in context)
    unusable = {
        term: meaning[-1:]
        for context in contexts
        for term, meaning in context.items()
        if isinstance(meaning, str) and as_prefix(meaning) != meaning and ":" in meaning
    }
    for name, where, is_key in names_of(data, path, contexts):
        mapped = vague or name in known
        prefix, colon, local = name.partition(":")
        if colon and prefix in unusable and local[:2] != "//":
            what = f"the term {prefix!r} is no prefix, since its IRI ends in {unusable[prefix]!r}"
            hint = 'write {"@id": "…", "@prefix": true} as its meaning in @context'
            raise ProgramError(what, where=where, hint=hint, code="no-prefix", prefix=prefix)
        if is_key and mapped:
            continue
        if is_key and not colon:
            hint = "write it as a full IRI, or map it in @context"
            what = f"the key {name!r} is not mapped to an IRI"
            raise ProgramError(what, where=where, hint=hint, code="unmapped-key", key=name)
        if is_key and prefix == "_":
            hint = "write it as a full IRI"
            what = "a property cannot be a blank node"
            raise ProgramError(what, where=where, hint=hint, code="blank-property")
        if name.startswith(("_:", "@")):
            continue
        if not mapped and prefix in prefixes and prefix not in known and local[:2] != "//":
            what, code = f"the prefix {prefix + ':'!r} is not declared", "undeclared-prefix"
            hint = f'add {{"{prefix}": "{prefixes[prefix]}"}} to @context'
            raise ProgramError(what, where=where, hint=hint, code=code, prefix=prefix)
        if not (mapped or colon or based or "@base" in written):
            what = f"{name!r} is relative, and the document has no address"
            raise ProgramError(what, where=where, hint="write it in full", code="relative-iri")
        if not is_iri(name):
            hint = "percent-encode it (EncodeForURI)"
            raise ProgramError(f"{name!r} is not an IRI", where=where, hint=hint, code="bad-iri")


def as_prefix(namespace: str) -> str | dict[str, Any]:
    """Return what makes a term of a context a prefix (JSON-LD 1.1, section 4.1.5)."""
    ends = namespace.endswith((":", "/", "?", "#", "[", "]", "@"))
    return namespace if ends else {"@id": namespace, "@prefix": True}


def _check_languages(data: Any, path: str, maps: frozenset[str]) -> None:
    """Reject language tags of values and contexts with which a processor drops the text."""
    for where, key, member in _members(data, path):
        tags = list(member) if key in maps and isinstance(member, Mapping) else []
        for tag in [member] if key == "@language" else tags:
            if isinstance(tag, str) and tag[:1] != "@" and not _LANGUAGE.fullmatch(tag):
                what = f"{tag!r} is not a language tag"
                raise ProgramError(what, where=where, code="bad-language-tag")


def is_iri(name: str) -> bool:
    """Return whether a name is an IRI, full or relative, by RFC 3987."""
    with contextlib.suppress(SyntaxError, ValueError):
        return not any(sign in name for sign in "<>\\") and bool(resolved(name, _DOCUMENT))
    return False


def resolved(name: str, base: str) -> str:
    """Resolve a reference against a base as Turtle does; raises SyntaxError or ValueError."""
    document = f"<{name}> <urn:p> <urn:o> ."
    triples = pyoxigraph.parse(document, pyoxigraph.RdfFormat.TURTLE, base_iri=base)
    return str(getattr(next(iter(triples)).subject, "value", ""))
