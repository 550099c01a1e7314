"""JSON-LD documents of a program: operations take the place of values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rdflib import BNode, Graph, Literal, URIRef

from reasoningbank.algebra.jsonld import contexts_of, graph_to_jsonld, terms_of
from reasoningbank.algebra.terms import ProgramError, json_path
from reasoningbank.algebra.values import describe_value, kept

_PLAIN_LABEL = re.compile(r"[A-Za-z0-9_]+")
#: Keys whose values are strings, not RDF values.
_STRINGS = frozenset(
    {"@id", "@type", "@language", "@direction", "@index", "@vocab", "@base", "@value"}
)
#: Keys whose values are nodes, so a whole graph fits.
_NODES = frozenset({"@graph", "@included"})


def fill_template(template: Any, path: str, evaluate: Callable[[Any, str], Any]) -> Any:
    """Return a JSON-LD document with each operation replaced by its value."""
    contexts = list(contexts_of(template, path))
    filling = _Filling(
        evaluate,
        terms_of(contexts, "@container", "@language"),
        terms_of(contexts, "@type", "@json"),
        frozenset(term for context in contexts for term in context),
    )
    return filling.part(template, path, "@graph")


@dataclass(frozen=True)
class _Filling:
    evaluate: Callable[[Any, str], Any]
    language_maps: frozenset[str]
    json_terms: frozenset[str]
    defined: frozenset[str]

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
        value = kept(self.evaluate(template, key))
        if key in self.json_terms:
            what = f"the context declares {key!r} as JSON, and {describe_value(value)} is not JSON"
            hint = "define the term without @json"
            raise ProgramError(what, where=path, hint=hint, code="wrong-type")
        for uri in _uris(value):
            scheme, _, rest = str(uri).partition(":")
            if scheme in self.defined and not rest.startswith("//"):
                what = f"the context would read {uri} with its prefix {scheme + ':'!r}"
                hint = "give the prefix another name"
                raise ProgramError(what, where=path, hint=hint, code="prefix-clash")
        if key in _STRINGS or key in self.language_maps or key == "@context":
            return _string(value, path, key)
        return _json(value, path, key in _NODES)

    def _object(self, template: Mapping[str, Any], path: str, key: str) -> Any:
        if set(template) == {"@value"} and not isinstance(template["@value"], str):
            return self.part(template["@value"], json_path(path, "@value"), "")
        made: dict[str, Any] = {}
        for name, member in template.items():
            # Below a context or a language map every key holds strings.
            strict = key == "@context" or (key in self.language_maps and name[:1] != "@")
            part = self.part(member, json_path(path, name), key if strict else name)
            if part is None and member is not None and name != "@context":
                if name == "@value":
                    return None
                continue
            made[name] = part
        return made


def _uris(value: Any) -> Iterator[URIRef]:
    if isinstance(value, URIRef):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _uris(one)


def _json(value: Any, path: str, nodes: bool) -> Any:
    """Write a value where RDF values stand, or `nodes`."""
    if value is None:
        return None
    if isinstance(value, URIRef | BNode):
        return {"@id": _string(value, path, "@id")}
    if isinstance(value, Literal):
        made = {"@value": str(value)}
        if value.language:
            made["@language"] = value.language
        elif value.datatype is not None:
            made["@type"] = str(value.datatype)
        return made
    if isinstance(value, Graph) and nodes:
        # Without the contexts around it, which would change the meaning of its keys and strings.
        written = graph_to_jsonld(value)
        context = [None, written.pop("@context", {})]
        found = written["@graph"] if set(written) == {"@graph"} else [written]
        return [{"@context": context, **node} for node in found]
    if isinstance(value, Sequence):
        found = []
        for item in value:
            part = _json(item, path, nodes)
            found += part if isinstance(part, list) else [] if part is None else [part]
        return found
    hint = "put it under @graph, or Merge it" if isinstance(value, Graph) else "use Value or Str"
    what = f"{describe_value(value)} does not fit here"
    raise ProgramError(what, where=path, hint=hint, code="wrong-type")


def _string(value: Any, path: str, key: str) -> Any:
    """Write a value where strings stand."""
    if isinstance(value, BNode):
        # Some endpoints name blank nodes in ways that JSON-LD rejects (`nodeID://b1`).
        plain = _PLAIN_LABEL.fullmatch(value) is not None
        return f"_:{value}" if plain else f"_:x{value.encode().hex()}"
    if isinstance(value, URIRef | Literal):
        return str(value)
    if value is None and key != "@id":
        return None
    if isinstance(value, list) and key == "@type":
        return [_string(item, path, "") for item in value]
    what = f"expected a string for {key}, got {describe_value(value)}"
    raise ProgramError(what, where=path, code="wrong-type")
