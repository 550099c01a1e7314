"""Tools as a prompt lists them: one line each, since a small model reads 50 tokens a second."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["tool_line", "tool_lines"]


def tool_lines(tools: Mapping[str, Callable[..., Any]]) -> str:
    """Return all tools, a line each, in the order given."""
    return "\n".join(tool_line(name, tool) for name, tool in tools.items())


def tool_line(name: str, tool: Callable[..., Any]) -> str:
    """Return a tool as one line of the prompt: its parameters with defaults, and what it does.

    Examples:
        >>> def look(ref: str, n: int = 5) -> list[str]:
        ...     \"\"\"Return the first n rows.\"\"\"
        ...     return []
        >>> tool_line("look", look)
        '- `look(ref, n=5)`: Return the first n rows.'
    """
    shown = [
        p.name if p.default is p.empty else f"{p.name}={p.default!r}"
        for p in inspect.signature(tool).parameters.values()
    ]
    summary = (inspect.getdoc(tool) or "").split("\n\n")[0].replace("\n", " ")
    return f"- `{name}({', '.join(shown)})`: {summary}"
