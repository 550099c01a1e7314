"""`reasoningbank mcp`: a pack's endpoint, memory and programs for clients of the protocol."""

from __future__ import annotations

import logging
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reasoningbank.cli.output import console, progress_console
from reasoningbank.corpus import load_pack
from reasoningbank.errors import UsageError, need_package
from reasoningbank.lm.names import parse_name

if TYPE_CHECKING:
    import socket

    from reasoningbank.mcp import Shared

__all__ = ["mcp"]


def mcp(
    pack: Annotated[str, typer.Option(help="A pack's name or folder.")] = "uniprot",
    url: Annotated[str | None, typer.Option(help="A running endpoint to ask instead.")] = None,
    http: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Serve over HTTP, not standard input and output."),
    ] = None,
    bank: Annotated[Path | None, typer.Option(help="A memory bank (.sqlite) to search.")] = None,
    allow_write: Annotated[
        list[str] | None,
        typer.Option(metavar="BASE", help="Where programs may write; may be repeated."),
    ] = None,
    allow_read: Annotated[
        list[str] | None,
        typer.Option(
            metavar="BASE", help="What programs may read besides the endpoint; may be repeated."
        ),
    ] = None,
    address: Annotated[
        list[str] | None,
        typer.Option(metavar="PUBLIC=REAL", help="Where an address is really asked."),
    ] = None,
    credentials: Annotated[
        Path | None, typer.Option(help="A TOML file of [[credential]] tables, one a server.")
    ] = None,
    lm: Annotated[
        str | None,
        typer.Option(help="A model that answers questions: local, or a LiteLLM name; it costs."),
    ] = None,
    agent: Annotated[
        str | None, typer.Option(help="The agent that asks it: rlm (as by default), react…")
    ] = None,
    requests: Annotated[int, typer.Option(min=1, help="Requests of a program.")] = 1_000,
    rows: Annotated[int, typer.Option(min=1, help="Rows of a program.")] = 100_000,
    seconds: Annotated[float, typer.Option(min=0.1, help="Seconds of a program.")] = 300.0,
) -> None:
    """Serve a pack's tools over the Model Context Protocol, to desktop clients and agents.

    Example: reasoningbank mcp --pack uniprot
    """
    # The protocol's library is slow to load, and no other command needs it.
    need_package("mcp", "mcp")
    from reasoningbank.algebra.addresses import checked
    from reasoningbank.algebra.addresses import credentials_from
    from reasoningbank.mcp import ProgramLimits, Settings, Shared, listening

    # Mistakes are told now, and not to a client.
    if bank is not None:
        from reasoningbank.cli.memory_sources import is_bank

        if not is_bank(bank):
            hint = "give a file (.sqlite); import others with `reasoningbank memory import`"
            what = "is no memory bank" if bank.exists() else "there is no such bank"
            raise UsageError(what, where=str(bank), hint=hint)
        # A damaged one is refused.
        from reasoningbank.memory import MemoryBank

        MemoryBank(bank, readonly=True).close()
    if credentials is not None:
        credentials_from(credentials)
    asked = Settings.agent if agent is None else agent
    if agent is not None and lm is None:
        hint = "name one with --lm, or leave --agent out"
        raise UsageError("an agent needs a model", where="--agent", hint=hint)
    if lm is not None:
        # Agents are slow to load as well, and a client waits for the first answer.
        from reasoningbank.agents import make_agent

        parse_name(lm)
        if make_agent(asked).sees_gold:
            what = f"{asked} answers only tasks that have a gold"
            raise UsageError(what, where="--agent", hint="choose rlm, react or direct")
    settings = Settings(
        pack=load_pack(pack),
        url=url,
        bank=bank,
        allow_write=tuple(checked(base) for base in allow_write or ()),
        allow_read=tuple(checked(base) for base in allow_read or ()),
        addresses=dict(_pair(one) for one in address or ()),
        credentials=credentials,
        limits=ProgramLimits(requests, rows, seconds),
        lm=lm,
        agent=asked,
    )
    # What the protocol's library logs is for those who write clients.
    logging.getLogger("mcp").setLevel(logging.ERROR)
    if http is None:
        with Shared(settings) as shared:
            _over_stdio(shared)
        return
    with listening(http) as bound, Shared(settings) as shared:
        _over_http(shared, bound)


def _over_stdio(shared: Shared) -> None:
    from reasoningbank.mcp import serve_stdio

    def end(number: int, _: object) -> None:
        # A thread that waits for input cannot be ended, and would keep the process.
        shared.close()
        os._exit(128 + number)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    if sys.stdin.isatty():
        progress_console.print("serving over standard input and output; Ctrl-C ends it")
    serve_stdio(shared)


def _over_http(shared: Shared, bound: socket.socket) -> None:
    from reasoningbank.mcp import serve_http
    from reasoningbank.mcp.transports import PATH

    host, port = bound.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    console.print(f"http://{shown}:{port}{PATH}", soft_wrap=True)
    progress_console.print("serving; Ctrl-C ends it")
    # The HTTP server ends on signals by itself, and then raises them once more.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    serve_http(shared, bound)


def _pair(text: str) -> tuple[str, str]:
    public, sign, real = text.partition("=")
    if not sign or not public or not real:
        raise UsageError(f"{text!r} has no PUBLIC=REAL form", where="--address")
    return public, real
