"""How clients reach a server: the standard streams of this process, or HTTP on loopback."""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING

import anyio
from mcp.server.stdio import stdio_server

from reasoningbank.errors import SetupError, UsageError
from reasoningbank.mcp.desks import Desks
from reasoningbank.mcp.server import make_server
from reasoningbank.mcp.shared import Shared

if TYPE_CHECKING:
    import uvicorn

__all__ = ["PATH", "http_server", "listening", "serve_http", "serve_stdio"]

#: Where HTTP clients find the server.
PATH = "/mcp"
#: Where it listens.
HOSTS = ("127.0.0.1", "localhost", "::1")
#: Seconds that open requests have left when the server is ended.
GRACE_S = 2


def serve_stdio(shared: Shared) -> None:
    """Serve one session over standard input and output, until its client closes them."""
    desks = Desks(shared, one_session=True)
    server = make_server(shared, desks)

    async def serve() -> None:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    try:
        anyio.run(serve)
    finally:
        desks.close()


@contextlib.contextmanager
def listening(address: str) -> Iterator[socket.socket]:
    """Listen at an address of this machine.

    Args:
        address: ``HOST:PORT``, or a port alone; port 0 is a free one.

    Raises:
        UsageError: It is no such address, or not of this machine.
        SetupError: The port cannot be had.

    Examples:
        >>> with listening("127.0.0.1:0") as bound:
        ...     bound.getsockname()[0]
        '127.0.0.1'
    """
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not (port.isascii() and port.isdigit() and int(port) < 65_536):
        raise UsageError("is no HOST:PORT", where=address, hint="give e.g. 127.0.0.1:8000")
    # The protocol's library answers under these names alone, against rebinding.
    if host not in HOSTS:
        hint = "listen on 127.0.0.1 or ::1, behind a proxy that asks who a client is"
        what = "the server has no authentication, so it listens to this machine alone"
        raise UsageError(what, where=address, hint=hint)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        bound = socket.create_server((host, int(port)), family=family)
    except OSError as error:
        used = error.errno == errno.EADDRINUSE
        what = "is in use" if used else f"cannot be had: {error.strerror}"
        raise SetupError(what, where=address, hint="choose another port") from None
    with bound:
        yield bound


def serve_http(shared: Shared, bound: socket.socket) -> None:
    """Serve sessions over HTTP until a signal ends it."""
    desks = Desks(shared)
    try:
        http_server(shared, desks).run([bound])
    finally:
        desks.close()


def http_server(shared: Shared, desks: Desks) -> uvicorn.Server:
    """Return what serves sessions over HTTP.

    Args:
        shared: What it serves.
        desks: Where its sessions keep their handles.
    """
    import uvicorn

    settings = shared.settings
    app = make_server(shared, desks).streamable_http_app(
        streamable_http_path=PATH,
        session_idle_timeout=settings.idle_s,
        max_sessions=settings.most_sessions,
    )
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=GRACE_S)
    return uvicorn.Server(config)
