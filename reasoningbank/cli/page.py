"""`reasoningbank serve`: one local page to ask, to watch runs, and to read memory."""

from __future__ import annotations

import os
import secrets
import webbrowser
from pathlib import Path
from typing import Annotated

from typer import Option

from reasoningbank.cli.options import Lm, PackName, Url
from reasoningbank.cli.output import notice, say
from reasoningbank.cli.servers import on_signals
from reasoningbank.corpus import load_pack
from reasoningbank.errors import UsageError, need_package
from reasoningbank.experiment.memory_sources import existing
from reasoningbank.lm.names import check_model


def serve(
    pack: PackName = "uniprot",
    url: Url = None,
    agent: Annotated[str, Option(help="rlm, react, direct, rag, graph or algebra.")] = "rag",
    lm: Lm = "local",
    runs: Annotated[
        list[Path] | None, Option(help="A folder of runs (runs); may be repeated.")
    ] = None,
    bank: Annotated[
        list[Path] | None, Option(help="A memory bank to read; may be repeated.")
    ] = None,
    feedback: Annotated[Path, Option(help="Where verdicts on answers are kept.")] = Path(
        "feedback"
    ),
    host: Annotated[
        str, Option(help="Address to listen on; any but loopback asks for a token.")
    ] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="Port; 0 for a free one.")] = 8765,
    token: Annotated[
        str, Option(help="What readers must know (REASONINGBANK_TOKEN, or a random one).")
    ] = "",
    open_it: Annotated[bool, Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Serve one local page: ask questions, watch runs, read memory.

    Other chat clients may ask at /v1/chat/completions, as they ask OpenAI.

    Example: reasoningbank serve --pack uniprot --open
    """
    for package in ("starlette", "sse_starlette", "uvicorn"):
        need_package(package, "serve")
    # The server and the agents are slow to load, and no other command needs all of them.
    from reasoningbank.agents import make_agent
    from reasoningbank.web import PageSettings, serve_page
    from reasoningbank.web.answers import Asked
    from reasoningbank.web.guard import is_loopback

    load_pack(pack)
    check_model(lm)
    if make_agent(agent).sees_gold:
        what = f"{agent} answers only tasks that have a gold query"
        raise UsageError(what, where="--agent", hint="choose rag, rlm or react", code="needs-gold")
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
        say(address)
        notice("serving; press Ctrl-C to stop")
        if open_it and not webbrowser.open(address):
            notice("no browser found; open the address yourself")

    # The HTTP server handles signals itself and then raises them once more.
    on_signals(lambda *_: None)
    serve_page(settings, host, port, ready)
