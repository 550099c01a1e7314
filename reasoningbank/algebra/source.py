"""Programs as written: strict JSON, prefixes that it need not declare, JSON-LD with operations."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rdflib import BNode, Graph, Literal, URIRef

from reasoningbank.algebra import terms
from reasoningbank.algebra.operation import Kind, kind_of, operations
from reasoningbank.algebra.values import as_position, describe_value, flattened, kept
from reasoningbank.corpus.shacl import complete_prefixes
from reasoningbank.sparql.terms import absolute
from reasoningbank.sparql.tokens import Edit, apply_edits, tokenize


def parse_program(text: str) -> Any:
    """Parse the JSON of a program."""

    def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            names = [name for name, _ in pairs]
            name = next(one for at, one in enumerate(names) if one in names[:at])
            hint, what = "keep one of them, or make it a list", f"the key {name!r} occurs twice"
            more = {"hint": hint, "code": "duplicate-key", "key": name}
            raise terms.ProgramError(f"{what} in an object", where="$", **more)
        return made

    def constant(name: str) -> Any:
        hint = "write a number or a string"
        raise terms.ProgramError(f"{name} is not JSON", where="$", hint=hint, code="bad-json")

    plain = text.removeprefix("\ufeff")
    try:
        return json.loads(plain, object_pairs_hook=object_of, parse_constant=constant)
    except json.JSONDecodeError as error:
        what, where = f"not valid JSON: {error.msg}", f"line {error.lineno}, column {error.colno}"
        hint = "send JSON only, without comments or a code fence"
        raise terms.ProgramError(what, where=where, hint=hint, code="bad-json") from None
    except ValueError as error:  # a number of thousands of digits
        raise terms.ProgramError(f"not valid JSON: {error}", where="$", code="bad-json") from None
    except RecursionError:
        what = "the program is nested too deeply"
        raise terms.ProgramError(what, where="$", code="too-deep") from None


def with_prefixes(data: Any, known: Mapping[str, str]) -> Any:
    """Return a program whose queries, updates and JSON-LD declare the known prefixes they use.

    Models write ``dct:title`` without its declaration. What is not a program, or nested too deeply,
    is returned as it is: `mistakes` reports it.
    """
    try:
        return _declared(data, known)
    except RecursionError:
        return data


def _declared(data: Any, known: Mapping[str, str]) -> Any:
    if isinstance(data, list):
        return [_declared(item, known) for item in data]
    if not isinstance(data, Mapping):
        return data
    name, args = data.get("@op"), data.get("args")
    kind = operations().get(name) if isinstance(name, str) else None
    if kind is None or not isinstance(args, Mapping):
        return {key: _declared(value, known) for key, value in data.items()}
    made = dict(args)
    for name, field in kind.model_fields.items():
        if name in args:
            made[name] = _argument(kind_of(field), args[name], known)
    return {**data, "args": made}


def _argument(wanted: Kind, value: Any, known: Mapping[str, str]) -> Any:
    if isinstance(value, str) and wanted.name == "Query":
        return complete_prefixes(value, known).text
    if isinstance(value, str) and wanted.convert is as_position:
        return _in_full(value, known)
    made = _declared(value, known)
    graphs = wanted.of is not None and wanted.of.reading == "graph" and isinstance(made, list)
    return _with_context(made, known) if graphs or wanted.reading == "graph" else made


def _in_full(condition: str, known: Mapping[str, str]) -> str:
    """Return a condition, which can declare no prefix, with the known ones written in full."""
    edits = []
    for token in tokenize(condition):
        name = absolute(token.text, known) if token.kind == "name" else None
        if name is not None:
            edits.append(Edit(token.start, token.end, f"<{name}>"))
    return apply_edits(condition, edits)


def _with_context(data: Any, known: Mapping[str, str]) -> Any:
    """Return JSON-LD with a context for the prefixes that it uses."""
    if isinstance(data, list):
        return [_with_context(item, known) for item in data]
    if not isinstance(data, Mapping) or "@op" in data:
        return data
    context = data.get("@context", {})
    if not isinstance(context, Mapping):
        return data
    used = dict.fromkeys(_prefixes(data))
    added = {name: known[name] for name in used if name in known and name not in context}
    return {"@context": {}, **data} | {"@context": {**context, **added}} if added else data


def _prefixes(data: Any) -> Iterator[str]:
    """Yield the prefixes of keys, types and identifiers."""
    if isinstance(data, list):
        for item in data:
            yield from _prefixes(item)
    elif isinstance(data, Mapping) and "@op" not in data:
        for key, value in data.items():
            if key == "@context":
                continue
            names = [key]
            if key in ("@type", "@id"):
                names = value if isinstance(value, list) else [value]
            for name in names:
                prefix, colon, local = name.partition(":") if isinstance(name, str) else ("",) * 3
                if colon and not local.startswith("//"):
                    yield prefix
            yield from _prefixes(value)


_PLAIN_LABEL = re.compile(r"[A-Za-z0-9_]+")
#: Keys whose values are strings, not RDF values.
_STRINGS = frozenset(
    {"@id", "@type", "@language", "@direction", "@index", "@vocab", "@base", "@value"}
)
#: Keys whose values are nodes, so a whole graph fits.
_NODES = frozenset({"@graph", "@included"})


def fill_template(template: Any, path: str, evaluate: Callable[[Any, str], Any]) -> Any:
    """Return a JSON-LD document with each operation replaced by its value."""
    contexts = list(terms.contexts_of(template, path))
    filling = _Filling(
        evaluate,
        terms.terms_of(contexts, "@container", "@language"),
        terms.terms_of(contexts, "@type", "@json"),
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
                part = self.part(item, terms.json_path(path, at), key)
                several = isinstance(part, list) and not isinstance(item, list)
                found += part if several else [] if part is None else [part]
            return found
        if template is None or isinstance(template, str | bool | int | float):
            return template
        value = kept(self.evaluate(template, key))
        if key in self.json_terms:
            what = f"the context declares {key!r} as JSON, and {describe_value(value)} is not JSON"
            hint = "define the term without @json"
            raise terms.ProgramError(what, where=path, hint=hint, code="wrong-type")
        for uri in flattened([value]):
            scheme, _, rest = str(uri).partition(":") if isinstance(uri, URIRef) else ("", "", "")
            if scheme in self.defined and not rest.startswith("//"):
                what = f"the context would read {uri} with its prefix {scheme + ':'!r}"
                hint = "give the prefix another name"
                raise terms.ProgramError(what, where=path, hint=hint, code="prefix-clash")
        if key in _STRINGS or key in self.language_maps or key == "@context":
            return _string(value, path, key)
        return _json(value, path, key in _NODES)

    def _object(self, template: Mapping[str, Any], path: str, key: str) -> Any:
        if set(template) == {"@value"} and not isinstance(template["@value"], str):
            return self.part(template["@value"], terms.json_path(path, "@value"), "")
        made: dict[str, Any] = {}
        for name, member in template.items():
            # Below a context or a language map every key holds strings.
            strict = key == "@context" or (key in self.language_maps and name[:1] != "@")
            part = self.part(member, terms.json_path(path, name), key if strict else name)
            if part is None and member is not None and name != "@context":
                if name == "@value":
                    return None
                continue
            made[name] = part
        return made


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
        written = terms.graph_to_jsonld(value)
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
    raise terms.ProgramError(what, where=path, hint=hint, code="wrong-type")


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
    raise terms.ProgramError(what, where=path, code="wrong-type")
