"""Programs as written: strict JSON, and prefixes that it need not declare."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from reasoningbank.algebra.operation import Kind, kind_of, operations
from reasoningbank.algebra.terms import ProgramError, names_of
from reasoningbank.algebra.values import as_position
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
        what = "the program is nested too deeply"
        raise ProgramError(what, where="$", code="too-deep") from None


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
    parts = (name.partition(":") for name, _, _ in names_of(data, "$"))
    used = dict.fromkeys(p for p, colon, rest in parts if colon and not rest.startswith("//"))
    added = {name: known[name] for name in used if name in known and name not in context}
    return {"@context": {}, **data} | {"@context": {**context, **added}} if added else data
