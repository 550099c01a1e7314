"""The JSON Schema of programs, for editors and for constrained decoding.

Only what llama.cpp turns into a grammar is used: `$ref`, `anyOf`, `const`, `enum`, and plain
object, array and scalar schemas.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reasoningbank.algebra.arguments import Form, Kind, Yield
from reasoningbank.algebra.coercion import MOST_WORKERS
from reasoningbank.algebra.operation import Operation, kind_of, operation, operations

__all__ = ["program_schema"]

_ANY: dict[str, Any] = {"$ref": "#/$defs/any"}
_FORMS: dict[Form, dict[str, Any]] = {
    "string": {"type": "string"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "count": {"type": "integer", "minimum": 1},
    "term": {"$ref": "#/$defs/term"},
    "row": {"$ref": "#/$defs/row"},
    "results": {"$ref": "#/$defs/results"},
    "graph": {"$ref": "#/$defs/jsonld"},
    "list": {"type": "array", "items": _ANY},
}
_BINDING = {"anyOf": [{"$ref": "#/$defs/term"}, {"$ref": "#/$defs/operation"}]}
_JSONLD = {"anyOf": [{"$ref": "#/$defs/jsonld-object"}, {"$ref": "#/$defs/jsonld-list"}]}
_SHARED: dict[str, dict[str, Any]] = {
    "term": {
        "type": "object",
        "properties": {
            "type": {"enum": ["uri", "literal", "bnode"]},
            "value": {"type": "string"},
            "xml:lang": {"type": "string"},
            "datatype": {"type": "string"},
        },
        "required": ["type", "value"],
        "additionalProperties": False,
    },
    "row": {"type": "object", "additionalProperties": _BINDING},
    "results": {
        "type": "object",
        "properties": {
            "head": {
                "type": "object",
                "properties": {"vars": {"type": "array", "items": {"type": "string"}}},
            },
            "results": {
                "type": "object",
                "properties": {
                    "bindings": {"type": "array", "items": {"$ref": "#/$defs/row"}},
                },
                "required": ["bindings"],
            },
        },
        "required": ["results"],
    },
    "jsonld": _JSONLD,
    # An operation is no JSON-LD. Not every engine knows how to forbid a key; all can spoil it.
    "jsonld-object": {
        "type": "object",
        "properties": {"@op": {"type": "null"}},
        "additionalProperties": {"$ref": "#/$defs/jsonld-value"},
    },
    "jsonld-list": {"type": "array", "items": {"$ref": "#/$defs/jsonld-value"}},
    "jsonld-value": {
        "anyOf": [
            {"type": "string"},
            {"type": "number"},
            {"type": "boolean"},
            {"$ref": "#/$defs/operation"},
            {"$ref": "#/$defs/jsonld-object"},
            {"$ref": "#/$defs/jsonld-list"},
        ]
    },
    "any": {
        "anyOf": [
            {"type": "string"},
            {"type": "number"},
            {"type": "boolean"},
            {"$ref": "#/$defs/operation"},
            {"$ref": "#/$defs/term"},
            {"$ref": "#/$defs/jsonld-object"},
            {"type": "array", "items": _ANY},
        ]
    },
    "operations": {"type": "array", "items": {"$ref": "#/$defs/operation"}, "minItems": 1},
}


def program_schema(names: Iterable[str] | None = None) -> dict[str, Any]:
    """Return the JSON Schema of a program: an operation, or a list of them.

    Args:
        names: The operations that may stand in it; None is all.

    Raises:
        ProgramError: There is no such operation.

    Examples:
        >>> schema = program_schema(["Str", "Value"])
        >>> schema["$defs"]["Value"]["properties"]["@op"]
        {'const': 'Value'}
    """
    kinds = [operation(name) for name in names] if names is not None else [*operations().values()]
    defs: dict[str, Any] = {
        "operation": {"anyOf": [{"$ref": f"#/$defs/{kind.op}"} for kind in kinds]}
    }
    for kind in kinds:
        defs[kind.op] = _call(kind, kinds, defs)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Web Algebra program",
        "anyOf": [{"$ref": "#/$defs/operation"}, {"$ref": "#/$defs/operations"}],
        "$defs": {**defs, **_SHARED},
    }


def _call(
    kind: type[Operation], kinds: list[type[Operation]], defs: dict[str, Any]
) -> dict[str, Any]:
    members: dict[str, Any] = {"@op": {"const": kind.op}}
    required = ["@op"]
    args = {
        name: {"description": field.description, **_argument(kind_of(field), kinds, defs)}
        for name, field in kind.model_fields.items()
    }
    if args:
        needed = [name for name, field in kind.model_fields.items() if field.is_required()]
        members["args"] = _object(args, needed)
        required.append("args")
    return {"description": _summary(kind), **_object(members, required)}


def _object(members: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": members,
        "required": required,
        "additionalProperties": False,
    }


def _argument(wanted: Kind, kinds: list[type[Operation]], defs: dict[str, Any]) -> dict[str, Any]:
    if wanted.reading == "block":
        return {"anyOf": [{"$ref": "#/$defs/operation"}, {"$ref": "#/$defs/operations"}]}
    forms = [_FORMS[form] for form in wanted.forms]
    if wanted.forms == ("count",):
        forms = [{"type": "integer", "minimum": 1, "maximum": MOST_WORKERS}]
    if wanted.of is not None:
        forms = [{"type": "array", "items": _argument(wanted.of, kinds, defs)}]
    if fitting := _yielding(wanted.takes, kinds, defs):
        forms.append(fitting)
    return forms[0] if len(forms) == 1 else {"anyOf": forms}


def _yielding(
    takes: frozenset[Yield], kinds: list[type[Operation]], defs: dict[str, Any]
) -> dict[str, Any] | None:
    """Return a reference to the operations that yield what fits, defined once for each choice."""
    fitting = [{"$ref": f"#/$defs/{kind.op}"} for kind in kinds if kind.yields in takes]
    if not fitting:
        return None
    name = "-or-".join(["yields", *sorted(takes - {"any"})])
    defs[name] = {"anyOf": fitting}
    return {"$ref": f"#/$defs/{name}"}


def _summary(kind: type[Operation]) -> str:
    return (kind.__doc__ or "").strip().partition("\n")[0]
