"""Prefixes that a program uses and nobody declares, declared from those that are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reasoningbank.algebra.operation import Operation, kind_of, operation
from reasoningbank.corpus.prefixes import complete_prefixes
from reasoningbank.errors import QueryError

__all__ = ["with_prefixes"]


def with_prefixes(data: Any, known: Mapping[str, str]) -> Any:
    """Return a program whose queries, updates and JSON-LD declare the known prefixes they use.

    Models write ``dct:title`` as people speak, without its declaration. What is declared stays as
    it is; so does what is no program, or nested too deeply, which `mistakes` tells better.

    Args:
        data: A program as JSON data.
        known: Namespace by prefix.

    Examples:
        >>> call = {"@op": "PUT", "args": {"url": "http://e/", "data": {"@id": "", "ex:p": 1}}}
        >>> with_prefixes(call, {"ex": "http://example.org/"})["args"]["data"]["@context"]
        {'ex': 'http://example.org/'}
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
    kind = _kind(data)
    args = data.get("args")
    if kind is None or not isinstance(args, Mapping):
        return {key: _declared(value, known) for key, value in data.items()}
    made = {name: _argument(kind, name, value, known) for name, value in args.items()}
    return {**data, "args": made}


def _kind(data: Mapping[str, Any]) -> type[Operation] | None:
    if not isinstance(data.get("@op"), str):
        return None
    try:
        return operation(data["@op"])
    except QueryError:
        return None


def _argument(kind: type[Operation], name: str, value: Any, known: Mapping[str, str]) -> Any:
    field = kind.model_fields.get(name)
    wanted = kind_of(field) if field is not None else None
    if wanted is None:
        return value
    if isinstance(value, str) and wanted.name == "Query":
        return complete_prefixes(value, known).text
    made = _declared(value, known)
    if wanted.reading == "graph":
        return _described(made, known)
    if wanted.of is not None and wanted.of.reading == "graph" and isinstance(made, list):
        return [_described(item, known) for item in made]
    return made


def _described(data: Any, known: Mapping[str, str]) -> Any:
    """Return JSON-LD with a context for the prefixes that it uses."""
    if isinstance(data, list):
        return [_described(item, known) for item in data]
    if not isinstance(data, Mapping) or "@op" in data:
        return data
    context = data.get("@context", {})
    if not isinstance(context, Mapping):
        return data
    used = dict.fromkeys(_prefixes(data))
    added = {name: known[name] for name in used if name in known and name not in context}
    if not added:
        return data
    rest = {key: value for key, value in data.items() if key != "@context"}
    return {"@context": {**context, **added}, **rest}


def _prefixes(data: Any) -> Iterator[str]:
    """Yield what stands before the colons of names: of keys, types and identifiers."""
    if isinstance(data, list):
        for item in data:
            yield from _prefixes(item)
    elif isinstance(data, Mapping) and "@op" not in data:
        for key, value in data.items():
            if key == "@context":
                continue
            named = [key]
            if key in ("@type", "@id"):
                named = [text for text in _listed(value) if isinstance(text, str)]
            yield from (text.partition(":")[0] for text in named if _is_short(text))
            yield from _prefixes(value)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _is_short(text: str) -> bool:
    return ":" in text and not text.partition(":")[2].startswith("//")
