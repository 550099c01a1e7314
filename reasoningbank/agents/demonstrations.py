"""Worked turns that show a small model how to use the tools.

A pack keeps them in `hints/demonstrations.json`. Their outputs are what the tools really
returned on the pack's data; a test runs them again and compares.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from reasoningbank.errors import UsageError

_T = TypeVar("_T")


class _Shown(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CodeTurn(_Shown):
    """One turn: the reason, the code, and what it printed."""

    reasoning: str
    code: str
    output: str = ""


class ToolCall(_Shown):
    """One tool call: the reason, the tool with its arguments, and what it returned."""

    thought: str
    tool: str
    arguments: dict[str, Any] = {}
    observation: str = ""


class Demonstration(_Shown):
    """A question that belongs to no corpus, answered by turns of code and by tool calls."""

    question: str
    turns: tuple[CodeTurn, ...]
    calls: tuple[ToolCall, ...] = ()


def load_demonstrations(path: Path) -> tuple[Demonstration, ...]:
    """Read demonstrations from a JSON file; a missing file holds none.

    Raises:
        UsageError: If the file is not a list of demonstrations.
    """
    return read_json(path, tuple[Demonstration, ...]) or ()


def read_json(path: Path, kind: type[_T]) -> _T | None:
    """Read a JSON file of a kind that pydantic validates; None if it is missing."""
    if not path.is_file():
        return None
    try:
        return TypeAdapter(kind).validate_json(path.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot be read: {error}", where=str(path)) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = "/".join(map(str, first["loc"]))
        raise UsageError(f"{first['msg']} at {where or 'the top'}", where=str(path)) from error
