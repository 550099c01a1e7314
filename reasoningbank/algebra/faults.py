"""What goes wrong in a program: one line that begins with the JSON path of the place."""

from __future__ import annotations

import re
from collections.abc import Sequence

from reasoningbank.errors import QueryError, ReasoningBankError

__all__ = ["ProgramError", "at_path", "json_path", "located", "one_of"]

_PLAIN_KEY = re.compile(r"[A-Za-z_@][\w@-]*")


class ProgramError(QueryError):
    """A program is at fault: it is not well formed, or a value in it is not what it must be.

    `where` is the JSON path of the place, and `hint` says what the writer can do.

    Examples:
        >>> print(ProgramError("unknown operation 'GTE'", where="$.args.data", hint="use GET"))
        $.args.data: unknown operation 'GTE'; use GET
    """


def json_path(parent: str, step: str | int) -> str:
    """Return the path of a member of what stands at `parent`.

    Examples:
        >>> json_path("$", "args"), json_path("$.args", 0), json_path("$", "schema:name")
        ('$.args', '$.args[0]', '$["schema:name"]')
    """
    if isinstance(step, int):
        return f"{parent}[{step}]"
    if _PLAIN_KEY.fullmatch(step):
        return f"{parent}.{step}"
    escaped = step.replace("\\", "\\\\").replace('"', '\\"')
    return f'{parent}["{escaped}"]'


def at_path(parent: str, *steps: str | int) -> str:
    """Return the path of what lies several steps below `parent`.

    Examples:
        >>> at_path("$", "args", "graphs", 1)
        '$.args.graphs[1]'
    """
    for step in steps:
        parent = json_path(parent, step)
    return parent


def located(error: ReasoningBankError, path: str) -> ReasoningBankError:
    """Put a JSON path before where an error happened, unless it has one; returns the same error.

    What begins with ``args`` is a place below the path.

    Examples:
        >>> print(located(QueryError("the query is empty", where="line 1"), "$.args.query"))
        $.args.query: line 1: the query is empty
    """
    if not error.where.startswith("$"):
        sign = "." if error.where.startswith("args") else ": "
        error.at(f"{path}{sign}{error.where}" if error.where else path)
    return error


def one_of(words: Sequence[str], limit: int = 12) -> str:
    """Return a short list for a message.

    Examples:
        >>> one_of(["a", "b", "c"], 2), one_of([])
        ('a, b, …', 'none')
    """
    shown = ", ".join(words[:limit]) or "none"
    return shown + ", …" if len(words) > limit else shown
