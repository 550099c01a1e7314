"""Operations told to people and to agents: signatures, a reference page, a prompt."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterable
from typing import Any

from reasoningbank.algebra.arguments import Yield
from reasoningbank.algebra.operation import Example, Operation, kind_of, operation, operations

__all__ = ["agent_prompt", "reference", "signature", "summary", "with_reference"]

_YIELDS: dict[Yield, str] = {
    "text": "str",
    "uri": "URI",
    "term": "Term",
    "row": "Row",
    "table": "Table",
    "graph": "Graph",
    "list": "List",
    "nothing": "None",
    "any": "any",
}
#: JSON that is shorter stands in one line.
_LINE = 96
_BEGIN, _END = "<!-- operations -->", "<!-- end of operations -->"
_RULES = """\
Translate the instruction into a program: one JSON object (or a list of them, executed in order).
{"@op": NAME, "args": {...}} calls an operation. Arguments are values or other operations, whose
results they take. Answer with JSON alone.

Rules
1. Names of operations and arguments are exact; none may be added.
2. Nest an operation where its result is needed; use Variable only for what is needed twice.
3. ForEach goes through the rows of a SELECT. Inside, {"@op": "Value", "args": {"name": "city"}} is
   the value of ?city in the current row. Write the query so that it selects every variable used.
4. A list in ForEach's operation is executed in order for each row.
5. Build addresses with ResolveURI: the base ends with a slash, names go through EncodeForURI.
6. Where a graph is wanted, give JSON-LD, or GET, CONSTRUCT, DESCRIBE or Merge. A URI is no graph.
7. Where the question is known but the query is not, use SPARQLString.
"""


def signature(kind: type[Operation]) -> str:
    """Return an operation's signature.

    Examples:
        >>> signature(operation("Replace"))
        'Replace(input: str, pattern: str, replacement: str, flags?: str) → str'
    """
    arguments = ", ".join(
        f"{name}{'' if field.is_required() else '?'}: {kind_of(field).name}"
        for name, field in kind.model_fields.items()
    )
    return f"{kind.op}({arguments}) → {_YIELDS[kind.yields]}"


def summary(kind: type[Operation]) -> str:
    """Return the first sentence of what an operation does.

    Examples:
        >>> summary(operation("STRUUID"))
        'Generates a random UUID as a string.'
    """
    return _text(kind).partition("\n")[0]


def reference(names: Iterable[str] | None = None, *, level: int = 3) -> str:
    """Return the reference of operations in Markdown, made of their classes alone.

    Args:
        names: Which; None is all, under a heading for each group.
        level: The headings' level.

    Raises:
        ProgramError: There is no such operation.
    """
    if names is not None:
        return "\n".join(_section(operation(name), level) for name in names)
    parts: list[str] = []
    group = ""
    for kind in operations().values():
        title = (sys.modules[kind.__module__].__doc__ or "").partition(".")[0].partition(":")[0]
        if title != group:
            group = title
            parts.append(f"{'#' * level} {group.strip()}\n")
        parts.append(_section(kind, level + 1))
    return "\n".join(parts)


def with_reference(page: str) -> str:
    """Return a page with the reference put between its two marks.

    Examples:
        >>> page = with_reference("a <!-- operations --> xyz <!-- end of operations --> b")
        >>> page.startswith("a <!-- operations -->"), "xyz" in page, page.endswith("> b")
        (True, False, True)
    """
    before, _, rest = page.partition(_BEGIN)
    after = rest.partition(_END)[2]
    return f"{before}{_BEGIN}\n\n{reference()}\n{_END}{after}"


def agent_prompt(names: Iterable[str] | None = None) -> str:
    """Return what an agent is told before it writes a program.

    Args:
        names: The operations that it may use; None is all.

    Raises:
        ProgramError: There is no such operation.

    Examples:
        >>> print(agent_prompt(["STRUUID"]).partition("Operations")[2].strip())
        STRUUID() → str
          Generates a random UUID as a string.
          {"@op": "STRUUID"}
    """
    kinds = [operation(name) for name in names] if names is not None else [*operations().values()]
    told = []
    for kind in kinds:
        lines = [signature(kind), *(f"  {line}" for line in _text(kind).splitlines() if line)]
        lines += [
            f"  {json.dumps(_call(kind, one), ensure_ascii=False)}" for one in kind.examples[:1]
        ]
        told.append("\n".join(lines))
    return f"{_RULES}\nOperations\n" + "\n".join(told) + "\n"


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
        lines += _example(kind, example)
    return "\n".join(lines)


def _example(kind: type[Operation], example: Example) -> list[str]:
    lines: list[str] = []
    if example.row is not None:
        lines += ["With the current row", "", *_fenced(example.row), ""]
    lines += [*_fenced(_call(kind, example)), ""]
    if example.result is not None:
        lines += ["yields", "", *_fenced(example.result), ""]
    return lines


def _fenced(data: Any) -> list[str]:
    short = json.dumps(data, ensure_ascii=False)
    text = short if len(short) <= _LINE else json.dumps(data, ensure_ascii=False, indent=2)
    return ["```json", text, "```"]


def _call(kind: type[Operation], example: Example) -> dict[str, Any]:
    return {"@op": kind.op, **({"args": dict(example.args)} if example.args else {})}


def _text(kind: type[Operation]) -> str:
    return inspect.cleandoc(kind.__doc__ or "")
