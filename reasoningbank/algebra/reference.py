"""The operations described: signatures, the reference, the agent's prompt, and the JSON Schema.

The schema is for editors and constrained decoding. It uses only what llama.cpp can convert to a
grammar: `$ref`, `anyOf`, `const`, `enum`, and plain object, array and scalar schemas.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

from reasoningbank.algebra.operation import (
    YIELDED,
    Example,
    Form,
    Kind,
    Operation,
    kind_of,
    operation,
    operations,
)
from reasoningbank.algebra.values import MOST_WORKERS

#: Shorter JSON is written on one line.
_LINE = 96
_BEGIN, _END = "<!-- operations -->", "<!-- end of operations -->"
_RULES = Path(__file__).with_name("rules.txt").read_text("utf-8")


def _kinds(names: Iterable[str] | None) -> list[type[Operation]]:
    return [*operations().values()] if names is None else [operation(name) for name in names]


def signature(kind: type[Operation]) -> str:
    """Return an operation's signature."""
    arguments = ", ".join(
        f"{name}{'' if field.is_required() else '?'}: {kind_of(field).name}"
        for name, field in kind.model_fields.items()
    )
    return f"{kind.op}({arguments}) → {YIELDED[kind.yields][1]}"


def summary(kind: type[Operation]) -> str:
    """Return the first sentence of an operation's description."""
    return _text(kind).partition("\n")[0]


def _text(kind: type[Operation]) -> str:
    return inspect.cleandoc(kind.__doc__ or "")


def reference(names: Iterable[str] | None = None, *, level: int = 3) -> str:
    """Return the reference of operations (all by default) in Markdown, made from their classes."""
    if names is not None:
        return "\n".join(_section(kind, level) for kind in _kinds(names))
    parts: list[str] = []
    for group, kinds in groupby(_kinds(None), lambda kind: kind.group):
        parts.append(f"{'#' * level} {group}\n")
        parts += [_section(kind, level + 1) for kind in kinds]
    return "\n".join(parts)


def with_reference(page: str) -> str:
    """Return a page with the reference inserted between its two markers."""
    before, _, rest = page.partition(_BEGIN)
    after = rest.partition(_END)[2]
    return f"{before}{_BEGIN}\n\n{reference()}\n{_END}{after}"


def agent_prompt(names: Iterable[str] | None = None) -> str:
    """Return the instructions by which an agent writes a program of these operations, or of all."""
    lines = [_RULES, "Operations"]
    for kind in _kinds(names):
        lines += [signature(kind), *(f"  {line}" for line in _text(kind).splitlines() if line)]
        lines += [f"  {_short(_call(kind, one))}" for one in kind.examples[:1]]
    return "\n".join(lines) + "\n"


def _section(kind: type[Operation], level: int) -> str:
    lines = [f"{'#' * level} {kind.op}", "", f"`{signature(kind)}`", "", _text(kind), ""]
    if kind.model_fields:
        lines += ["| argument | kind | meaning |", "|---|---|---|"]
        for name, field in kind.model_fields.items():
            needed = "" if field.is_required() else " (optional)"
            wanted = kind_of(field).name.replace("|", "\\|")
            lines.append(f"| `{name}`{needed} | {wanted} | {field.description} |")
        lines.append("")
    for example in kind.examples:
        if example.row is not None:
            lines += ["With the current row", "", *_fenced(example.row), ""]
        lines += [*_fenced(_call(kind, example)), ""]
        if example.result is not None:
            lines += ["yields", "", *_fenced(example.result), ""]
    return "\n".join(lines)


def _fenced(data: Any) -> list[str]:
    short = _short(data)
    text = short if len(short) <= _LINE else json.dumps(data, ensure_ascii=False, indent=2)
    return ["```json", text, "```"]


def _short(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False)


def _call(kind: type[Operation], example: Example) -> dict[str, Any]:
    return {"@op": kind.op, **({"args": example.args} if example.args else {})}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def _any_of(*forms: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": list(forms)}


def _list_of(items: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


def _object(members: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": members,
        "required": required,
        "additionalProperties": False,
    }


_FORMS: dict[Form, dict[str, Any]] = {
    "string": {"type": "string"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "count": {"type": "integer", "minimum": 1},
    "term": _ref("term"),
    "row": _ref("row"),
    "results": _ref("results"),
    "graph": _ref("jsonld"),
    "list": _list_of(_ref("any")),
}
#: Terms, rows, results and JSON-LD. An operation is not JSON-LD; not every engine can forbid a key,
#: so ``@op`` is allowed there only as null.
_SHARED = json.loads(Path(__file__).with_name("shared_schema.json").read_text(encoding="utf-8"))


def program_schema(names: Iterable[str] | None = None) -> dict[str, Any]:
    """Return the JSON Schema of a program that may hold these operations, or all."""
    kinds = _kinds(names)
    defs: dict[str, Any] = {"operation": _any_of(*(_ref(kind.op) for kind in kinds))}
    for kind in kinds:
        members: dict[str, Any] = {"@op": {"const": kind.op}}
        args = {
            name: {"description": field.description, **_argument(kind_of(field), kinds, defs)}
            for name, field in kind.model_fields.items()
        }
        needed = [name for name, field in kind.model_fields.items() if field.is_required()]
        members["args"] = _object(args, needed)
        needed = list(members) if args else ["@op"]
        defs[kind.op] = {"description": summary(kind), **_object(members, needed)}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Web Algebra program",
        **_any_of(_ref("operation"), _ref("operations")),
        "$defs": {**defs, **_SHARED},
    }


def _argument(wanted: Kind, kinds: list[type[Operation]], defs: dict[str, Any]) -> dict[str, Any]:
    if wanted.reading == "block":
        return _any_of(_ref("operation"), _ref("operations"))
    forms = [_FORMS[form] for form in wanted.forms]
    if wanted.forms == ("count",):
        forms = [{**_FORMS["count"], "maximum": MOST_WORKERS}]
    if wanted.of is not None:
        forms = [_list_of(_argument(wanted.of, kinds, defs))]
    if fitting := [_ref(kind.op) for kind in kinds if kind.yields in wanted.takes]:
        name = "-or-".join(["yields", *sorted(wanted.takes - {"any"})])
        defs[name] = _any_of(*fitting)
        forms.append(_ref(name))
    return forms[0] if len(forms) == 1 else _any_of(*forms)
