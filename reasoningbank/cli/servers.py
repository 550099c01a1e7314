"""`reasoningbank ldp`, `mcp` and `serve`: serve documents, a pack's tools, or the web page."""

from __future__ import annotations

import logging
import os
import secrets
import signal
import sys
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from typer import Option, Typer

from reasoningbank.cli import options
from reasoningbank.cli.output import notice, say, serve_until, stop_event
from reasoningbank.corpus import load_pack
from reasoningbank.errors import UsageError, need_package
from reasoningbank.ldp import LDPServer
from reasoningbank.lm.names import check_model

app = Typer(help="Serve documents that can be read and written.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Serve documents that can be read and written over HTTP, and SPARQL over all of them."""


@app.command()
def serve(
    base: Annotated[str | None, Option(help="Base of addresses; default the server's.")] = None,
    port: options.Port = None,
    folder: Annotated[Path | None, Option(help="Keep them as Turtle files here.")] = None,
    store: Annotated[Path | None, Option(help="Keep them in an Oxigraph store here.")] = None,
) -> None:
    """Serve documents on loopback until Ctrl-C; without a folder they are lost at the end.

    SPARQL queries go to the base + sparql.

    Example: reasoningbank ldp serve --port 4443 --folder data
    """
    stop = stop_event()
    with LDPServer(base, port=port, folder=folder, store=store) as server:
        say(server.base)
        if server.base != server.address:
            notice(f"{server.base} is served at {server.address}")
        serve_until(stop)


def mcp(
    pack: options.PackName = "uniprot",
    url: options.Url = None,
    http: Annotated[str | None, Option(metavar="HOST:PORT", help="Serve over HTTP.")] = None,
    bank: Annotated[Path | None, Option(help="A memory bank (.sqlite) to search.")] = None,
    allow_write: options.AllowWrite = None,
    allow_read: Annotated[
        options.Many,
        Option(metavar="BASE", help="What programs may read besides the endpoint; repeatable."),
    ] = None,
    address: options.PublicAddress = None,
    credentials: options.Credentials = None,
    lm: Annotated[
        str | None, Option(help="A model that answers questions: local, or a LiteLLM name (costs).")
    ] = None,
    agent: Annotated[str | None, Option(help="The agent that answers (rlm).")] = None,
    requests: Annotated[int, Option(min=1, help="Request limit of a program.")] = 1_000,
    rows: Annotated[int, Option(min=1, help="Row limit of a program.")] = 100_000,
    seconds: Annotated[float, Option(min=0.1, help="Time limit of a program.")] = 300.0,
) -> None:
    """Serve a pack's tools over the Model Context Protocol, to desktop clients and agents.

    Example: reasoningbank mcp --pack uniprot
    """
    # The protocol's library is slow to load, and no other command needs it.
    need_package("mcp", "mcp")
    from reasoningbank.algebra import Limits
    from reasoningbank.algebra.web import checked, credentials_from
    from reasoningbank.mcp import server, sessions

    # Report mistakes now, not to a client later.
    if bank is not None:
        from reasoningbank.experiment.memory_sources import bank_file
        from reasoningbank.memory import MemoryBank

        # Opening refuses a damaged one.
        MemoryBank(bank_file(bank), readonly=True).close()
    if credentials is not None:
        credentials_from(credentials)
    chosen = sessions.Settings.agent if agent is None else agent
    if agent is not None and lm is None:
        hint = "name one with --lm, or leave --agent out"
        raise UsageError("an agent needs a model", where="--agent", hint=hint)
    if lm is not None:
        # Agents are slow to load as well, and a client waits for the first answer.
        from reasoningbank.agents.registry import check_blind

        check_model(lm)
        check_blind(chosen, "--agent")
    settings = sessions.Settings(
        pack=load_pack(pack),
        url=url,
        bank=bank,
        allow_write=tuple(checked(base) for base in allow_write or ()),
        allow_read=tuple(checked(base) for base in allow_read or ()),
        addresses=options.addresses_of(address),
        credentials=credentials,
        limits=Limits(requests, rows, seconds),
        lm=lm,
        agent=chosen,
    )
    # The library's log is for authors of clients.
    logging.getLogger("mcp").setLevel(logging.ERROR)
    if http is None:
        with sessions.Shared(settings) as shared:
            if sys.stdin.isatty():
                notice("serving over standard input and output; press Ctrl-C to stop")

            def end(number: int, _: object) -> None:
                # A thread that waits for input cannot be ended, and would keep the process alive.
                shared.close()
                os._exit(128 + number)

            _on_signals(end)
            server.serve_stdio(shared)
        return
    with server.listening(http) as bound, sessions.Shared(settings) as shared:
        host, port = bound.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        _begin_http(f"http://{shown}:{port}{server.PATH}")
        server.serve_http(shared, bound)


def _begin_http(address: str) -> None:
    say(address)
    notice("serving; press Ctrl-C to stop")
    # The HTTP server handles signals itself and then raises them once more.
    _on_signals(lambda *_: None)


def _on_signals(act: Callable[[int, object], None]) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, act)


def serve_web(
    pack: options.PackName = "uniprot",
    url: options.Url = None,
    agent: Annotated[str, Option(help="rlm, react, direct, rag, graph or algebra.")] = "rag",
    lm: options.Lm = "local",
    runs: Annotated[list[Path] | None, Option(help="A folder of runs (runs); repeatable.")] = None,
    bank: Annotated[list[Path] | None, Option(help="A memory bank to read; repeatable.")] = None,
    feedback: Annotated[Path, Option(help="Where verdicts on answers are kept.")] = Path(
        "feedback"
    ),
    host: Annotated[str, Option(help="Address; any but loopback asks for a token.")] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="Port; 0 for a free one.")] = 8765,
    token: Annotated[str, Option(help="Readers need it (REASONINGBANK_TOKEN, or random).")] = "",
    open_it: Annotated[bool, Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Serve one local page: ask questions, watch runs, read memory.

    Other chat clients may ask at /v1/chat/completions, as they ask OpenAI.

    Example: reasoningbank serve --pack uniprot --open
    """
    for package in ("starlette", "sse_starlette", "uvicorn"):
        need_package(package, "serve")
    # The server and the agents are slow to load, and no other command needs all of them.
    from reasoningbank.agents.registry import check_blind
    from reasoningbank.experiment.memory_sources import existing
    from reasoningbank.sparql import is_loopback
    from reasoningbank.web import PageSettings, serve_page
    from reasoningbank.web.answers import Asked

    load_pack(pack)
    check_model(lm)
    check_blind(agent, "--agent")
    if url and not url.startswith(("http://", "https://")):
        raise UsageError("not an address", where="--url", hint="give one of http or https")
    default = Asked(pack=pack, url=url or "", agent=agent, lm=lm)
    for path in bank or ():
        existing(path)
    token = token or os.environ.get("REASONINGBANK_TOKEN", "")
    if not token and not is_loopback(host):
        token = secrets.token_urlsafe(18)
    settings = PageSettings(
        default, tuple(runs or (Path("runs"),)), tuple(bank or ()), feedback, token
    )

    def ready(address: str) -> None:
        _begin_http(address)
        if open_it and not webbrowser.open(address):
            notice("no browser found; open the address yourself")

    serve_page(settings, host, port, ready)
