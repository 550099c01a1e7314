"""Operations inside JSON-LD: what each yields stands in the document as the term that it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rdflib import BNode, Graph, Literal, URIRef

from reasoningbank.algebra.coercion import told
from reasoningbank.algebra.contract import Node
from reasoningbank.algebra.faults import ProgramError, json_path
from reasoningbank.algebra.jsonld import graph_to_jsonld
from reasoningbank.algebra.jsonld_check import contexts_of, terms_of
from reasoningbank.algebra.terms import Term
from reasoningbank.algebra.values import Value, kept

__all__ = ["filled"]

#: Under these keys JSON-LD wants strings, not values.
_STRINGS = frozenset(
    {"@id", "@type", "@language", "@direction", "@index", "@vocab", "@base", "@value"}
)
_PLAIN_LABEL = re.compile(r"[A-Za-z0-9_]+")
#: Under these stand nodes, so a whole graph can.
_NODES = frozenset({"@graph", "@included"})


def filled(template: Any, path: str, evaluate: Callable[[Node, str], Value]) -> Any:
    """Return a JSON-LD document with the value of each operation in the operation's place.

    A URI becomes a node reference, a literal a value object with its language or datatype, a list
    several values, and nothing (an unbound variable) no value. A graph may stand where nodes do:
    in the outermost list and under ``@graph`` or ``@included``.

    Args:
        template: JSON in which nodes of a program stand for values.
        path: Where it stands, for errors.
        evaluate: What a node yields, given the key that it stands under.

    Raises:
        ProgramError: What an operation yields cannot stand in its place.
    """
    contexts = list(contexts_of(template))
    filling = _Filling(
        evaluate,
        terms_of(contexts, "@container", "@language"),
        terms_of(contexts, "@type", "@json"),
        frozenset(term for context in contexts for term in context),
    )
    return filling.part(template, path, "@graph")


class _Filling:
    def __init__(
        self,
        evaluate: Callable[[Node, str], Value],
        language_maps: frozenset[str],
        json_terms: frozenset[str],
        defined: frozenset[str],
    ) -> None:
        self._evaluate = evaluate
        self._language_maps = language_maps
        self._json_terms = json_terms
        self._defined = defined

    def part(self, template: Any, path: str, key: str) -> Any:
        if isinstance(template, Mapping):
            return self._object(template, path, key)
        if isinstance(template, list):
            found: list[Any] = []
            for at, item in enumerate(template):
                part = self.part(item, json_path(path, at), key)
                several = isinstance(part, list) and not isinstance(item, list)
                found += part if several else [] if part is None else [part]
            return found
        if template is None or isinstance(template, str | bool | int | float):
            return template
        value = kept(self._evaluate(template, key))
        if key in self._json_terms:
            what = (
                f"the context takes what stands under {key!r} for JSON, and {told(value)} is none"
            )
            raise ProgramError(what, where=path, hint="define the term without @json")
        for uri in _uris(value):
            scheme, _, rest = str(uri).partition(":")
            if scheme in self._defined and not rest.startswith("//"):
                what = f"the context would read {uri} with its prefix {scheme + ':'!r}"
                raise ProgramError(what, where=path, hint="give the prefix another name")
        if key in _STRINGS or key in self._language_maps or key == "@context":
            return _string(value, path, key)
        return _json(value, path, key in _NODES)

    def _object(self, template: Mapping[str, Any], path: str, key: str) -> Any:
        if set(template) == {"@value"} and not isinstance(template["@value"], str):
            return self.part(template["@value"], json_path(path, "@value"), "")
        made: dict[str, Any] = {}
        for name, member in template.items():
            # Below a context or a language map, whatever its key, stand strings.
            strict = key == "@context" or (key in self._language_maps and name[:1] != "@")
            part = self.part(member, json_path(path, name), key if strict else name)
            if part is None and member is not None and name != "@context":
                if name == "@value":
                    return None
                continue
            made[name] = part
        return made


def _uris(value: Value) -> Iterator[URIRef]:
    """Yield the URIs that a value is, or holds."""
    if isinstance(value, URIRef):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _uris(one)


def _json(value: Value, path: str, nodes: bool) -> Any:
    if isinstance(value, URIRef | Literal | BNode):
        return _term(value)
    if value is None:
        return None
    if isinstance(value, Graph) and nodes:
        # Without the contexts around it, which would change what its keys and strings mean.
        written = graph_to_jsonld(value)
        context = [None, written.pop("@context", {})]
        found = written["@graph"] if set(written) == {"@graph"} else [written]
        return [{"@context": context, **node} for node in found]
    if isinstance(value, Sequence) and not isinstance(value, str):
        parts = [_json(item, path, nodes) for item in value]
        return [
            one
            for part in parts
            for one in (part if isinstance(part, list) else [] if part is None else [part])
        ]
    hint = "put it under @graph, or Merge it" if isinstance(value, Graph) else "use Value or Str"
    raise ProgramError(f"{told(value)} cannot stand here", where=path, hint=hint)


def _term(term: Term) -> dict[str, str]:
    if isinstance(term, URIRef):
        return {"@id": str(term)}
    if isinstance(term, BNode):
        return {"@id": _label(term)}
    if term.language:
        return {"@value": str(term), "@language": term.language}
    if term.datatype is not None:
        return {"@value": str(term), "@type": str(term.datatype)}
    return {"@value": str(term)}


def _label(term: BNode) -> str:
    # Some endpoints name blank nodes in ways that JSON-LD does not take (`nodeID://b1`).
    plain = _PLAIN_LABEL.fullmatch(term) is not None
    return f"_:{term}" if plain else f"_:x{term.encode().hex()}"


def _string(value: Value, path: str, key: str) -> Any:
    if isinstance(value, BNode):
        return _label(value)
    if isinstance(value, URIRef | Literal):
        return str(value)
    if value is None and key != "@id":
        return None
    if isinstance(value, list) and key == "@type":
        return [_string(item, path, "") for item in value]
    raise ProgramError(f"expected a string for {key}, got {told(value)}", where=path)
