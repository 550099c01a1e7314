"""The episode's tools as DSPy's, with the schemas of their parameters made once a process."""

from __future__ import annotations

import inspect
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import dspy

__all__ = ["tool_objects"]

_lock = threading.Lock()
#: By the function behind a tool and the tool's name. Functions go when nobody has them any more.
_known: weakref.WeakKeyDictionary[Any, dict[str, dspy.Tool]] = weakref.WeakKeyDictionary()


def tool_objects(tools: Mapping[str, Callable[..., Any]]) -> list[dspy.Tool]:
    """Return the tools for `dspy.RLM` and `dspy.ReAct`.

    Each trial has tools of its own, but of the same functions: making their schemas again takes
    30 ms of processor time a trial.

    Args:
        tools: Tools by name; a wrapper that names what it wraps has the same parameters.

    Examples:
        >>> def look(ref: str, n: int = 5) -> list[str]:
        ...     return [ref] * n
        >>> (tool,) = tool_objects({"peek": look})
        >>> tool.name, sorted(tool.args), tool(ref="a", n=2)
        ('peek', ['n', 'ref'], ['a', 'a'])
    """
    return [_tool(name, tool) for name, tool in tools.items()]


def _tool(name: str, tool: Callable[..., Any]) -> dspy.Tool:
    behind = inspect.unwrap(tool)
    function = getattr(behind, "__func__", behind)
    if not inspect.isfunction(function):
        return dspy.Tool(tool, name=name)
    with _lock:
        made = _known.setdefault(function, {})
        if name not in made:
            # The template must not hold the function, nor the trial whose tool it is.
            made[name] = dspy.Tool(tool, name=name).model_copy(update={"func": _nobody})
        return made[name].model_copy(update={"func": tool})


def _nobody() -> None:
    raise AssertionError("a template is not called")
