"""The server: tools and resources over standard streams or HTTP, errors in one line."""

from __future__ import annotations

import json
import logging
import socket
import threading
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from reasoningbank import http
from reasoningbank.errors import ReasoningBankError, ToolError, UsageError
from reasoningbank.mcp.sessions import Session, Sessions, Shared
from reasoningbank.mcp.toolbox import TEXTS, Tool, pages, read_page, root_of, toolbox
from reasoningbank.sparql.terms import cut
from reasoningbank.version import __version__

if TYPE_CHECKING:
    import uvicorn


logger = logging.getLogger(__name__)

#: Characters of an error.
MAX_ERROR = 4_000


def make_server(shared: Shared, sessions: Sessions) -> Server[Any]:
    """Return a server of the Model Context Protocol; its sessions keep their handles."""
    pack, root = shared.settings.pack, root_of(shared.settings)
    tools = toolbox(shared.settings, root)

    async def list_tools(_: object, __: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[tool.about for tool in tools.values()])

    async def call_tool(
        context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        given = params.arguments or {}
        try:
            if params.name not in tools:
                hint = f"choose one of {', '.join(tools)}"
                raise ToolError(f"no tool {params.name[:60]!r}", hint=hint)
            with sessions.at(context, given) as session:
                answer = await _in_thread(tools[params.name], session, given)
        except ReasoningBankError as error:
            return _failed(str(error))
        except Exception as error:
            logger.exception("the tool %s failed", params.name)
            kind = type(error).__name__
            return _failed(f"{params.name} failed because of a server error ({kind})")
        text = json.dumps(answer, ensure_ascii=False)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=text)], structured_content=answer
        )

    async def list_resources(_: object, __: object) -> types.ListResourcesResult:
        fixed = [about for about, *_ in pages(shared) if isinstance(about, types.Resource)]
        return types.ListResourcesResult(resources=fixed)

    async def list_templates(_: object, __: object) -> types.ListResourceTemplatesResult:
        found = [about for about, *_ in pages(shared) if not isinstance(about, types.Resource)]
        return types.ListResourceTemplatesResult(resource_templates=found)

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
        version=__version__,
        title=f"ReasoningBank: {pack.name}",
        instructions=TEXTS["instructions"].format(name=pack.title or pack.name, root=root),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        get_tool_input_schema=lambda name: (
            tools[name].about.input_schema if name in tools else None
        ),
    )


async def _in_thread(tool: Tool, session: Session, given: dict[str, Any]) -> dict[str, Any]:
    """Answer a call in a thread; if the client cancels it, set the tool's stop event."""
    stop = threading.Event()
    answered: Future[dict[str, Any]] = Future()

    def answer() -> None:
        # A task group would wrap exceptions.
        try:
            answered.set_result(tool.answer(session, given, stop))
        except Exception as error:
            answered.set_exception(error)

    async def wait() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            stop.set()

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        await anyio.to_thread.run_sync(answer)
        group.cancel_scope.cancel()
    return answered.result()


def _failed(line: str) -> types.CallToolResult:
    text = cut(" ".join(line.split()), MAX_ERROR)
    content = types.TextContent(type="text", text=text)
    return types.CallToolResult(content=[content], is_error=True)


#: Where HTTP clients find the server.
PATH = "/mcp"
#: Where it listens.
HOSTS = ("127.0.0.1", "localhost", "::1")
#: Seconds for open requests when the server stops.
GRACE_S = 2


def serve_stdio(shared: Shared) -> None:
    """Serve one session over standard input and output, until its client closes them."""
    sessions = Sessions(shared, one_session=True)
    server = make_server(shared, sessions)

    async def serve() -> None:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    try:
        anyio.run(serve)
    finally:
        sessions.close()


def listening(address: str) -> AbstractContextManager[socket.socket]:
    """Listen on a loopback address, ``HOST:PORT`` or a port; port 0 takes a free one.

    Raises:
        UsageError: If it is not such an address, or not loopback.
        SetupError: If the port is not free.
    """
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not (port.isascii() and port.isdigit() and int(port) < 65_536):
        raise UsageError("not HOST:PORT", where=address, hint="give e.g. 127.0.0.1:8000")
    # The protocol's library answers only under these names, against DNS rebinding.
    if host not in HOSTS:
        hint = "listen on 127.0.0.1 or ::1 behind an authenticating proxy"
        what = "the server has no authentication, so it listens only on this machine"
        raise UsageError(what, where=address, hint=hint)
    return http.listening(host, int(port), address, "choose another port")


def serve_http(shared: Shared, bound: socket.socket) -> None:
    """Serve sessions over HTTP until a signal."""
    sessions = Sessions(shared)
    try:
        http_server(shared, sessions).run([bound])
    finally:
        sessions.close()


def http_server(shared: Shared, sessions: Sessions) -> uvicorn.Server:
    import uvicorn

    settings = shared.settings
    app = make_server(shared, sessions).streamable_http_app(
        streamable_http_path=PATH,
        session_idle_timeout=settings.idle_s,
        max_sessions=settings.most_sessions,
    )
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=GRACE_S)
    return uvicorn.Server(config)
