"""Worked turns that show a small model how to use the tools.

A pack keeps them in `hints/demonstrations.json`. Their outputs are what the tools really
returned on the pack's data; a test runs them again and compares.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from reasoningbank.agents.listed import load_listed

__all__ = ["Call", "Demonstration", "Turn", "load_demonstrations"]


class Turn(BaseModel):
    """One turn: why, the code, and what it printed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    reasoning: str
    code: str
    output: str = ""


class Call(BaseModel):
    """One tool call: why, which tool with which arguments, and what it returned."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    thought: str
    tool: str
    arguments: dict[str, Any] = {}
    observation: str = ""


class Demonstration(BaseModel):
    """A question that belongs to no corpus, answered by turns of code and by tool calls."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    question: str
    turns: tuple[Turn, ...]
    calls: tuple[Call, ...] = ()


def load_demonstrations(path: Path) -> tuple[Demonstration, ...]:
    """Read demonstrations from a JSON file; a file that does not exist holds none.

    Raises:
        UsageError: If the file is not a list of demonstrations.
    """
    return load_listed(path, Demonstration)
