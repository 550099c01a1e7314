"""All tools that a server offers, by name."""

from __future__ import annotations

import threading
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from reasoningbank.mcp.desk import Desk
from reasoningbank.mcp.desks import key_of
from reasoningbank.mcp.settings import Settings
from reasoningbank.mcp.tool import Tool, method_tool
from reasoningbank.tools import EndpointTools, MemoryTools, SPARQLTools
from reasoningbank.tools.endpoint_tools import TOOL_NAMES as ENDPOINT_TOOLS
from reasoningbank.tools.sparql import TOOL_NAMES as SPARQL_TOOLS

__all__ = ["toolbox"]

_GIVE_HANDLES = ("sparql_query", "federated_endpoints", "service_desc")
_MEMORY_TOOLS = ("memory_search", "memory_get")
_RUN = (
    'Run a Web Algebra program: one JSON object {"@op": NAME, "args": {...}}, or a list of them '
    "in order. Operations nest, ForEach goes through the rows of a SELECT, Value reads a column "
    "of the row. The resource ALGEBRA/operations describes them all, ALGEBRA/schema is their "
    "JSON Schema. It may ask the endpoint ENDPOINT and read WHERE. WRITES A long result comes as "
    "a handle with its first items; algebra_slice gives the others."
)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Program(_Strict):
    program: dict[str, Any] | list[Any] | str = Field(
        description="The program: a JSON object, a list of them, or the text of one"
    )
    variables: dict[str, Any] = Field(
        default_factory=dict, description="Values of the variables it is given, by name"
    )
    dry_run: bool = Field(False, description="Read, and list what would be written")


class _Slice(_Strict):
    ref: Annotated[str, BeforeValidator(lambda ref: key_of(ref) or ref)] = Field(
        description="The handle's key, as algebra_run gave it, e.g. program_0"
    )
    start: int = Field(0, description="The first item, from 0")
    limit: int = Field(50, description="How many at most; 50 is the most")


class _Question(_Strict):
    question: str = Field(description="A question in natural language")


def toolbox(settings: Settings, resources: str) -> dict[str, Tool]:
    """Return the tools of a server, in the order in which clients need them.

    Args:
        settings: What it serves and allows.
        resources: What the addresses of its resources begin with.
    """
    tools = [
        *(_sparql(name) for name in SPARQL_TOOLS),
        *(_endpoints(name) for name in ENDPOINT_TOOLS),
    ]
    if settings.bank is not None:
        tools += [
            method_tool(MemoryTools, name, lambda desk: desk.memory) for name in _MEMORY_TOOLS
        ]
    tools += [_run(settings, resources), _slice()]
    if settings.lm is not None:
        tools.append(_ask(settings))
    return {tool.name: tool for tool in tools}


def _sparql(name: str) -> Tool:
    gives = name in _GIVE_HANDLES
    return method_tool(SPARQLTools, name, lambda desk: desk.sparql, makes_handle=gives)


def _endpoints(name: str) -> Tool:
    gives = name in _GIVE_HANDLES
    return method_tool(EndpointTools, name, lambda desk: desk.endpoints, makes_handle=gives)


def _run(settings: Settings, resources: str) -> Tool:
    def call(desk: Desk, given: dict[str, Any], stop: threading.Event) -> dict[str, Any]:
        # The operations are many, and slow to load.
        from reasoningbank.mcp import programs

        return programs.run(desk, given, stop)

    below = ", ".join(settings.allow_write)
    reads = ", ".join([*settings.allow_write, *settings.allow_read])
    writes = f"It may write below {below}." if below else "It may write nothing."
    description = (
        _RUN.replace("ALGEBRA", f"{resources}algebra")
        .replace("ENDPOINT", settings.pack.endpoint or settings.url or "")
        .replace("WHERE", f"below {reads}" if reads else "no other address")
        .replace("WRITES", writes)
    )
    return Tool(
        "algebra_run",
        description,
        _Program,
        call,
        makes_handle=True,
        writes=bool(below),
        open_world=bool(reads),
    )


def _slice() -> Tool:
    def call(desk: Desk, given: dict[str, Any], stop: threading.Event) -> dict[str, Any]:
        from reasoningbank.mcp import programs

        return programs.show(desk, given, stop)

    return Tool("algebra_slice", "Return items of a program's long result.", _Slice, call)


def _ask(settings: Settings) -> Tool:
    def call(desk: Desk, given: dict[str, Any], stop: threading.Event) -> dict[str, Any]:
        return desk.shared.asker().ask(desk, given["question"], stop)

    description = (
        f"Let an agent with the model {settings.lm} answer a question: the query it wrote, a "
        "handle for its result, the first rows, and what it cost. Slow; explore with the other "
        "tools where you can."
    )
    return Tool("ask", description, _Question, call, makes_handle=True, open_world=True)
