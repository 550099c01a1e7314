"""Worked turns that show a small model how to use the tools.

A pack keeps them in `hints/demonstrations.json`. Their outputs are what the tools really
returned on the pack's data; a test runs them again and compares.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from reasoningbank.errors import UsageError

_Item = TypeVar("_Item", bound=BaseModel)


class CodeTurn(BaseModel):
    """One turn: the reason, the code, and what it printed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    reasoning: str
    code: str
    output: str = ""


class ToolCall(BaseModel):
    """One tool call: the reason, the tool with its arguments, and what it returned."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    thought: str
    tool: str
    arguments: dict[str, Any] = {}
    observation: str = ""


class Demonstration(BaseModel):
    """A question that belongs to no corpus, answered by turns of code and by tool calls."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    question: str
    turns: tuple[CodeTurn, ...]
    calls: tuple[ToolCall, ...] = ()


def load_demonstrations(path: Path) -> tuple[Demonstration, ...]:
    """Read demonstrations from a JSON file; a missing file holds none.

    Raises:
        UsageError: If the file is not a list of demonstrations.
    """
    return load_listed(path, Demonstration)


def load_listed(path: Path, kind: type[_Item]) -> tuple[_Item, ...]:
    """Read a JSON file that is a list of items of a kind; a missing file holds none."""
    if not path.exists():
        return ()
    try:
        return TypeAdapter(tuple[kind, ...]).validate_json(path.read_bytes())  # type: ignore[valid-type]
    except ValidationError as error:
        first = error.errors()[0]
        where = "/".join(map(str, first["loc"]))
        raise UsageError(f"{first['msg']} at {where or 'the top'}", where=str(path)) from error
