"""Programs as written: strict JSON, prefixes that it need not declare, and the values in it.

The validation of a program has replaced each operation in it by a call, which `evaluate` gives the
value of: in a run the real one, before it one that is like it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from rdflib import BNode, Graph, Literal, URIRef

from reasoningbank.algebra.operation import Kind, kind_of, operations
from reasoningbank.algebra.terms import (
    PREFIXES,
    ProgramError,
    Term,
    as_prefix,
    contexts_of,
    graph_from_jsonld,
    graph_to_jsonld,
    is_term_json,
    json_path,
    locating,
    names_of,
    refuse_prefixed,
    scalar,
    term_from_json,
    terms_of,
)
from reasoningbank.algebra.values import (
    Row,
    Table,
    Value,
    as_plain,
    as_position,
    as_uri,
    describe_value,
    flattened,
    kept,
    names_in,
)
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
            raise ProgramError(f"{what} in an object", where="$", **more)
        return made

    def constant(name: str) -> Any:
        hint = "write a number or a string"
        raise ProgramError(f"{name} is not JSON", where="$", hint=hint, code="bad-json")

    plain = text.removeprefix("\ufeff")
    try:
        return json.loads(plain, object_pairs_hook=object_of, parse_constant=constant)
    except json.JSONDecodeError as error:
        what, where = f"not valid JSON: {error.msg}", f"line {error.lineno}, column {error.colno}"
        hint = "send JSON only, without comments or a code fence"
        raise ProgramError(what, where=where, hint=hint, code="bad-json") from None
    except ValueError as error:  # a number of thousands of digits
        raise ProgramError(f"not valid JSON: {error}", where="$", code="bad-json") from None
    except RecursionError:
        raise ProgramError("the program is nested too deeply", where="$", code="too-deep") from None


def with_prefixes(data: Any, known: Mapping[str, str]) -> Any:
    """Return a program whose queries, updates and JSON-LD declare the known prefixes they use."""
    try:
        return _declared(data, known)
    except RecursionError:
        return data  # `mistakes` reports it


def _declared(data: Any, known: Mapping[str, str]) -> Any:
    if isinstance(data, list):
        return [_declared(item, known) for item in data]
    if not isinstance(data, Mapping):
        return data
    if is_term_json(data) and data["type"] == "uri" and isinstance(data["value"], str):
        return {**data, "value": _iri_in_full(data["value"], known)}
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
    if isinstance(value, str) and wanted.convert is as_uri:
        return _iri_in_full(value, known)
    made = _declared(value, known)
    graphs = wanted.of is not None and wanted.of.reading == "graph" and isinstance(made, list)
    return _with_context(made, known) if graphs or wanted.reading == "graph" else made


def _iri_in_full(name: str, known: Mapping[str, str]) -> str:
    return (absolute(name, known) if ":" in name else None) or name


def _in_full(condition: str, known: Mapping[str, str]) -> str:
    """Return a condition, which can declare no prefix, with the known ones written in full."""
    names = [token for token in tokenize(condition) if token.kind == "name"]
    edits = (Edit(t.start, t.end, f"<{iri}>") for t in names if (iri := absolute(t.text, known)))
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
    parts = (name.partition(":") for name, _, _ in names_of(data, "$"))
    used = dict.fromkeys(p for p, colon, rest in parts if colon and not rest.startswith("//"))
    added = {name: as_prefix(known[name]) for name in used if name in known and name not in context}
    return {"@context": {}, **data} | {"@context": {**context, **added}} if added else data


#: Returns the value of a call, given its place: a key of JSON-LD, ``bindings`` for a row of a
#: table, None elsewhere.
Evaluate: TypeAlias = Callable[[Any, str | None], Value]


def is_call(data: object) -> bool:
    """Return whether a call stands in the place of JSON data."""
    return data is not None and not isinstance(data, str | bool | int | float | list | Mapping)


def _no_call(data: Any, key: str | None) -> Value:
    raise ProgramError(f"{type(data).__name__} is not JSON", code="bad-json")


def _is_cell(name: str, member: Any) -> bool:
    """Return whether a member of an object can be one of a row."""
    return is_term_json(member) or (is_call(member) and name[:1] != "@" and ":" not in name)


@dataclass(frozen=True)
class Reader:
    """Reads values and documents; see `graph_from_jsonld` for `base` and `prefixes`."""

    evaluate: Evaluate = _no_call
    base: str | None = None
    prefixes: Mapping[str, str] | None = None

    def value(self, data: Any, path: str) -> Value:
        """Read a value: a term, table, row, graph or list."""
        if data is None:
            return None
        if isinstance(data, str | bool | int | float):
            return scalar(data)
        if isinstance(data, list):
            return [self.value(item, json_path(path, at)) for at, item in enumerate(data)]
        if is_call(data):
            with locating(path):
                return kept(self.evaluate(data, None))
        if is_term_json(data):
            return self._term(data, path)
        # SPARQL results, with or without `head`.
        if isinstance(data.get("results"), Mapping) and "bindings" in data["results"]:
            return self._table(data, path)
        if all(_is_cell(name, member) for name, member in data.items()):
            return self._row(data, path)
        return self.document(data, path)

    def document(self, data: Any, path: str) -> Graph:
        contexts = list(contexts_of(data, path))
        filling = _Filling(
            self.evaluate,
            terms_of(contexts, "@container", "@language"),
            terms_of(contexts, "@type", "@json"),
            frozenset(term for context in contexts for term in context),
        )
        filled = filling.part(data, path, "@graph")
        return graph_from_jsonld(filled, base=self.base, path=path, prefixes=self.prefixes)

    def _term(self, data: Mapping[str, Any], path: str) -> Term | None:
        """Read a term; one with a member that is unbound is unbound."""
        made = dict(data)
        for name, member in data.items():
            if is_call(member):
                text = self.evaluate(member, "@language" if name == "xml:lang" else None)
                if text is None:
                    return None
                with locating(json_path(path, name)):
                    made[name] = as_plain(text)
        term = term_from_json(made, path)
        if isinstance(term, URIRef):
            refuse_prefixed(term, path)
        return term

    def _row(self, data: Mapping[str, Any], path: str) -> dict[str, Term]:
        row: dict[str, Term] = {}
        for name, member in data.items():
            where = json_path(path, name)
            if is_call(member):
                term = self.evaluate(member, None)
                if term is not None and not isinstance(term, Term):
                    what = f"a row holds terms, not {describe_value(term)}"
                    raise ProgramError(what, where=where, code="wrong-type")
            elif isinstance(member, Mapping):
                term = self._term(member, where)
            else:
                hint = 'write {"type": "literal", "value": "…"}'
                raise ProgramError("expected an RDF term", where=where, hint=hint, code="bad-term")
            if term is not None:
                row[name] = term
        return row

    def _table(self, data: Mapping[str, Any], path: str) -> Table:
        """Read SPARQL results in JSON; without ``head`` the columns are the bound variables."""

        def bad(expected: str, *place: str | int) -> ProgramError:
            where = json_path(path, *place)
            return ProgramError(f"expected {expected}", where=where, code="bad-results")

        bindings = data["results"]["bindings"]
        if not isinstance(bindings, list):
            raise bad("a list of bindings", "results", "bindings")
        rows: list[Row] = []
        for at, binding in enumerate(bindings):
            row = self.evaluate(binding, "bindings") if is_call(binding) else binding
            if not isinstance(row, Mapping):
                raise bad("a binding: variable → term", "results", "bindings", at)
            where = json_path(path, "results", "bindings", at)
            rows.append(self._row(row, where) if row is binding else row)
        head = data.get("head", {})
        named = head.get("vars", []) if isinstance(head, Mapping) else None
        if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
            raise bad("a list of names", "head", "vars")
        return Table(names_in(rows, named), rows)


def from_json(data: Any, path: str = "$") -> Value:
    """Read a value without calls: a term, table, row, graph or list."""
    if data is None:
        raise ProgramError("expected a value, got null", where=path, code="wrong-type")
    return Reader(prefixes=PREFIXES).value(data, path)


_PLAIN_LABEL = re.compile(r"[A-Za-z0-9_]+")
#: Keys whose values are strings, not RDF values.
_STRINGS = frozenset(
    {"@id", "@type", "@language", "@direction", "@index", "@vocab", "@base", "@value"}
)
#: Keys whose values are nodes, so a whole graph fits.
_NODES = frozenset({"@graph", "@included"})


@dataclass(frozen=True)
class _Filling:
    """Replaces each call in a JSON-LD document by its value."""

    evaluate: Evaluate
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
        if not is_call(template):
            return template
        value = kept(self.evaluate(template, key))
        if key in self.json_terms:
            what = f"the context declares {key!r} as JSON, and {describe_value(value)} is not JSON"
            hint = "define the term without @json"
            raise ProgramError(what, where=path, hint=hint, code="wrong-type")
        for uri in flattened([value]):
            scheme, _, rest = str(uri).partition(":") if isinstance(uri, URIRef) else ("", "", "")
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
        if "@op" in template:
            hint = "put it into the program"
            what = "a value that is given cannot hold an operation"
            raise ProgramError(what, where=path, hint=hint, code="misplaced-operation")
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
