"""Graphs as JSON-LD 1.1, both ways and without loss.

pyoxigraph reads it: it keeps lexical forms and fetches nothing, so a remote ``@context`` is an
error. Graphs are written as node objects without nesting or lists, so every triple occurs once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyoxigraph
from rdflib import RDF, XSD, BNode, Graph, Literal, URIRef

from reasoningbank.algebra.terms import BlankNodes, ProgramError, from_oxigraph, json_path
from reasoningbank.sparql import STANDARD_PREFIXES

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
_PLACEHOLDER = "http://document.invalid/"


def graph_from_quads(quads: Iterable[pyoxigraph.Quad | pyoxigraph.Triple]) -> Graph:
    """Return the statements of one document, its named graphs included, as one graph.

    Blank nodes get fresh names, so graphs of different documents share none.
    """
    blanks, graph = BlankNodes(), Graph()
    for quad in quads:
        subject, predicate = from_oxigraph(quad.subject, blanks), URIRef(quad.predicate.value)
        graph.add((subject, predicate, from_oxigraph(quad.object, blanks)))
    return graph


def graph_from_jsonld(
    data: Mapping[str, Any] | list[Any], *, base: str | None = None, path: str = "$"
) -> Graph:
    """Read a JSON-LD document."""
    check_jsonld(data, path, base)
    try:
        terms = {name: term for one in contexts_of(data, path) for name, term in one.items()}
        types = {
            n: str(t["@type"]) for n, t in terms.items() if isinstance(t, dict) and "@type" in t
        }
        text = json.dumps(_exact(data, types))
        return graph_from_quads(pyoxigraph.parse(text, pyoxigraph.RdfFormat.JSON_LD, base_iri=base))
    except (SyntaxError, ValueError) as error:
        hint = "write keys as full IRIs, or give an @context"
        what = f"not valid JSON-LD: {error}"
        raise ProgramError(what, where=path, hint=hint, code="bad-jsonld") from None
    except ProgramError as error:
        raise error.at(path) from None


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


def contexts_of(data: Any, path: str) -> Iterator[Mapping[str, Any]]:
    """Yield the contexts in a document, at any depth; a remote one is an error."""
    if isinstance(data, list):
        for at, item in enumerate(data):
            yield from contexts_of(item, json_path(path, at))
    elif isinstance(data, Mapping):
        for key, member in data.items():
            where = json_path(path, key)
            if key in ("@context", "@import"):
                several = isinstance(member, list)
                for at, context in enumerate(member if several else [member]):
                    if isinstance(context, str):
                        hint = 'write the context itself, e.g. {"schema": "http://schema.org/"}'
                        what = f"the remote context {context!r} is not fetched"
                        place = json_path(where, at) if several else where
                        raise ProgramError(what, where=place, hint=hint, code="remote-context")
                    if isinstance(context, Mapping):
                        yield context
            if key != "@value":
                yield from contexts_of(member, where)


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


def check_jsonld(
    data: Any, path: str, base: str | None, prefixes: Mapping[str, str] | None = None
) -> None:
    """Reject remote contexts, keys that are not mapped to an IRI, and invalid IRIs."""
    contexts = list(contexts_of(data, path))
    written = json.dumps(contexts)
    vague = any(mapper in written for mapper in _MAPPERS)
    known = frozenset(term for context in contexts for term in context)
    _Check(
        None if vague else known,
        base is not None or "@base" in written,
        prefixes or {},
        references=terms_of(contexts, "@type", "@id"),
        maps=terms_of(contexts, "@container", *_MAPS),
        json=terms_of(contexts, "@type", "@json"),
    ).part(data, path)


@dataclass(frozen=True)
class _Check:
    known: frozenset[str] | None
    based: bool
    prefixes: Mapping[str, str]
    references: frozenset[str]
    maps: frozenset[str]
    json: frozenset[str]

    def part(self, data: Any, path: str) -> None:
        if isinstance(data, list):
            for at, item in enumerate(data):
                self.part(item, json_path(path, at))
            return
        if not isinstance(data, Mapping):
            return
        for key, member in data.items():
            where = json_path(path, key)
            if key in ("@context", "@value") or key in self.json:
                continue
            if not key.startswith("@"):
                self._key(key, where)
            if key in ("@id", "@type") or key in self.references:
                for name in member if isinstance(member, list) else [member]:
                    if isinstance(name, str):
                        self._name(name, where)
            if key in self.maps and isinstance(member, Mapping):
                for name, value in member.items():
                    self.part(value, json_path(where, name))
            else:
                self.part(member, where)

    def _key(self, key: str, where: str) -> None:
        if self.known is None or key in self.known:
            return
        if ":" not in key:
            hint = "write it as a full IRI, or map it in @context"
            what = f"the key {key!r} is not mapped to an IRI"
            raise ProgramError(what, where=where, hint=hint, code="unmapped-key", key=key)
        if key.startswith("_:"):
            hint = "write it as a full IRI"
            what = "a property cannot be a blank node"
            raise ProgramError(what, where=where, hint=hint, code="blank-property")
        self._name(key, where)

    def _name(self, name: str, where: str) -> None:
        if name.startswith(("_:", "@")):
            return
        if self.known is not None and name not in self.known:
            prefix, colon, local = name.partition(":")
            if prefix in self.prefixes and prefix not in self.known and local[:2] != "//":
                what, code = f"the prefix {prefix + ':'!r} is not declared", "undeclared-prefix"
                hint = f'add {{"{prefix}": "{self.prefixes[prefix]}"}} to @context'
                raise ProgramError(what, where=where, hint=hint, code=code, prefix=prefix)
            if not self.based and not colon:
                what = f"{name!r} is relative, and the document has no address"
                raise ProgramError(what, where=where, hint="write it in full", code="relative-iri")
        if not is_iri(name):
            hint = "percent-encode it (EncodeForURI)"
            raise ProgramError(f"{name!r} is not an IRI", where=where, hint=hint, code="bad-iri")


def is_iri(name: str) -> bool:
    """Return whether a name is an IRI, full or relative, by RFC 3987."""
    if any(sign in name for sign in "<>\\"):
        return False
    document = f"<{name}> <urn:p> <urn:o> ."
    try:
        next(iter(pyoxigraph.parse(document, pyoxigraph.RdfFormat.TURTLE, base_iri=_PLACEHOLDER)))
    except (SyntaxError, ValueError):
        return False
    return True
