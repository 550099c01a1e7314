"""Tools for plain DSPy, as text that a model reads; and tools of the user's own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import dspy
from dspy.primitives.repl_types import REPLEntry

from reasoningbank.errors import EndpointError, ToolError
from reasoningbank.imports import imported, one_line, wrong_type
from reasoningbank.refs import Ref
from reasoningbank.tools.sparql import SPARQLTools

#: Characters of one result that a model reads.
MAX_OUTPUT_CHARS = 1_500


class Observation(str):
    """What a model reads of a tool's result; another text tool takes it for the handle in it."""

    value: Any = None  #: The result itself


def text_tools(
    tools: Iterable[Callable[..., Any]], max_chars: int = MAX_OUTPUT_CHARS
) -> list[dspy.Tool]:
    """Return tools for `dspy.ReAct` and function calling: each returns what a model should read.

    Handles, rows and their notes are written out, long results are cut in the middle, and an error
    is one line that begins with ``[Error]``.

    Args:
        tools: Tools, e.g. ``SPARQLTools(config).as_dspy_tools().values()``.
        max_chars: Characters of one result.
    """
    made = (tool if isinstance(tool, dspy.Tool) else dspy.Tool(tool) for tool in tools)
    return [_TextTool(tool, max_chars) for tool in made]


def observed(tool: dspy.Tool, arguments: dict[str, Any], max_chars: int) -> tuple[str, bool]:
    """Call a tool; return what a model reads of its result, and whether the endpoint failed."""
    handles = {
        name: one.value
        for name, one in arguments.items()
        if isinstance(one, Observation) and isinstance(one.value, Ref)
    }
    try:
        result = tool(**{**arguments, **handles})
        read = Observation(REPLEntry.format_output(str(result), max_chars))
        read.value = result
        return read, False
    except (ToolError, ValueError, TypeError) as failure:
        # DSPy's Tool raises ValueError for a wrong argument.
        text = " ".join(str(failure).split())
        return f"[Error] {text}", isinstance(failure.__cause__, EndpointError)
    except Exception as failure:  # a user's tool can raise anything
        return f"[Error] {one_line(failure)}", False


class _TextTool(dspy.Tool):  # type: ignore[misc]
    """A tool that returns text and never fails; the tool itself is what callbacks see."""

    def __init__(self, tool: dspy.Tool, max_chars: int) -> None:
        @functools.wraps(tool.func)
        def call(**arguments: Any) -> str:
            return observed(tool, arguments, max_chars)[0]

        super().__init__(call, name=tool.name, desc=tool.desc, args=tool.args)

    def __call__(self, *values: Any, **arguments: Any) -> str:
        # DSPy would check the arguments, and raise what is wrong with them.
        read: str = self.func(**dict(zip(self.args, values, strict=False)), **arguments)
        return read

    async def acall(self, **arguments: Any) -> str:
        return self(**arguments)


def own_tool(path: str, tools: SPARQLTools | None = None, where: str = "") -> Callable[..., Any]:
    """Return a user's tool by its import path: a function with typed parameters and a docstring.

    A first parameter named `tools` is given the `SPARQLTools` of the trial; the model does not
    see it.

    Raises:
        UsageError: If it cannot be imported, or is not such a function.
    """
    function = imported(path, where)
    if not inspect.isfunction(function) or not function.__doc__:
        raise wrong_type(path, "a function with a docstring", where)
    if inspect.iscoroutinefunction(function):
        raise wrong_type(path, "a function that is not async", where)
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    bound = parameters[:1] if parameters and parameters[0].name == "tools" else []
    for one in parameters[len(bound) :]:
        if one.annotation is one.empty:
            hint = f"give {one.name} a type"
            raise wrong_type(path, "a function with typed parameters", where, hint)
    if not bound:
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(tools, *args, **kwargs)

    vars(call)["__signature__"] = signature.replace(parameters=parameters[1:])
    call.__annotations__ = {k: v for k, v in function.__annotations__.items() if k != "tools"}
    return call
