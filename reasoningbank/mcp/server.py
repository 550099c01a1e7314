"""The server: what the protocol asks is answered by tools and resources, errors in one line."""

from __future__ import annotations

import json
import logging
import threading
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import anyio
import anyio.to_thread
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from reasoningbank.errors import ReasoningBankError, ToolError, UsageError
from reasoningbank.mcp.desk import Desk
from reasoningbank.mcp.desks import Desks
from reasoningbank.mcp.resources import pages, read_page, root_of, templates
from reasoningbank.mcp.shared import Shared
from reasoningbank.mcp.tool import Tool
from reasoningbank.mcp.toolbox import toolbox
from reasoningbank.sparql.terms import cut

__all__ = ["make_server"]

logger = logging.getLogger(__name__)

#: Characters of an error's line.
MOST_ERROR = 4_000

_INSTRUCTIONS = """\
{name}: an RDF knowledge graph behind a SPARQL endpoint.
Read the resource {root}sense-card first; {root}schema/{{question}} tells the classes and \
properties near a question.
Find names with sparql_find, sparql_classes, sparql_properties, sparql_describe. sparql_query \
returns a handle, not rows: look at them with sparql_peek or sparql_slice. Prefixes that \
endpoint_info lists need no declaration.
A note in an answer says what was cut or lowered and how to get the rest; an error says what to \
try next.
algebra_run runs a whole program of queries, loops and documents in one call."""


def make_server(shared: Shared, desks: Desks) -> Server[Any]:
    """Return a server of the Model Context Protocol.

    Args:
        shared: What it serves.
        desks: Where its sessions keep their handles.
    """
    pack, root = shared.settings.pack, root_of(shared.settings)
    tools = toolbox(shared.settings, root)

    async def list_tools(_: object, __: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(tool) for tool in tools.values()])

    async def call_tool(
        context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        given = params.arguments or {}
        try:
            if params.name not in tools:
                raise ToolError(
                    f"no tool {params.name[:60]!r}", hint=f"there are {', '.join(tools)}"
                )
            with desks.at(context, given) as desk:
                answer = await _in_thread(tools[params.name], desk, given)
        except ReasoningBankError as error:
            return _failed(str(error))
        except Exception as error:
            logger.exception("the tool %s failed", params.name)
            return _failed(
                f"{params.name} failed by a fault of the server ({type(error).__name__})"
            )
        text = json.dumps(answer, ensure_ascii=False)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=text)], structured_content=answer
        )

    async def list_resources(_: object, __: object) -> types.ListResourcesResult:
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    uri=page.uri,
                    name=page.name,
                    description=page.description,
                    mime_type=page.kind,
                )
                for page in pages(shared)
            ]
        )

    async def list_templates(_: object, __: object) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    uri_template=f"{one.start}{{{one.variable}}}",
                    name=one.name,
                    description=one.description,
                    mime_type=one.kind,
                )
                for one in templates(shared)
            ]
        )

    async def read_resource(
        _: object, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        try:
            text, kind = await anyio.to_thread.run_sync(read_page, shared, uri)
        except ReasoningBankError as error:
            wrong = isinstance(error, UsageError)
            code = types.INVALID_PARAMS if wrong else types.INTERNAL_ERROR
            raise MCPError(code=code, message=str(error), data={"uri": uri}) from error
        content = types.TextResourceContents(uri=uri, text=text, mime_type=kind)
        return types.ReadResourceResult(contents=[content])

    return Server(
        "reasoningbank",
        version=_version(),
        title=f"ReasoningBank: {pack.name}",
        instructions=_INSTRUCTIONS.format(name=pack.title or pack.name, root=root),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        get_tool_input_schema=lambda name: _schema(tools[name]) if name in tools else None,
    )


async def _in_thread(tool: Tool, desk: Desk, given: dict[str, Any]) -> dict[str, Any]:
    """Answer a call in a thread; where the client calls it off, the tool is told."""
    stop = threading.Event()
    answers: list[dict[str, Any]] = []
    faults: list[Exception] = []

    def answer() -> None:
        # A task group would wrap what is raised.
        try:
            answers.append(tool.answer(desk, given, stop))
        except Exception as error:
            faults.append(error)

    async def tell() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            stop.set()

    async with anyio.create_task_group() as group:
        group.start_soon(tell)
        await anyio.to_thread.run_sync(answer)
        group.cancel_scope.cancel()
    if faults:
        raise faults[0]
    return answers[0]


def _described(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=_schema(tool),
        annotations=types.ToolAnnotations(
            read_only_hint=not tool.writes,
            destructive_hint=tool.writes,
            open_world_hint=tool.open_world,
        ),
    )


def _schema(tool: Tool) -> dict[str, Any]:
    return tool.arguments.model_json_schema()


def _failed(line: str) -> types.CallToolResult:
    text = cut(" ".join(line.split()), MOST_ERROR)
    content = types.TextContent(type="text", text=text)
    return types.CallToolResult(content=[content], is_error=True)


def _version() -> str:
    try:
        return version("reasoningbank")
    except PackageNotFoundError:
        return ""
