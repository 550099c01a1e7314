"""What a fault is, and where it is acted out: a real endpoint, misbehaving ones, a terminal."""

from __future__ import annotations

import contextlib
import io
import re
import shutil
import ssl
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from sparql.faulty import Answer, FaultyServer

from reasoningbank.cli import main
from reasoningbank.errors import ReasoningBankError
from reasoningbank.refs import Ref
from reasoningbank.sparql import EndpointConfig
from reasoningbank.tools import SPARQLTools

QUERY = "SELECT ?x { ?x ?y ?z }"
#: Addresses and folders that differ from run to run.
_PASSING = (
    (re.compile(r"(127\.0\.0\.1|localhost):\d+"), r"\1:…"),
    (re.compile(r"(/[\w.+-]+)+/scene/"), "…/"),
    (re.compile(r" \(_ssl\.c:\d+\)"), ""),
    # What a system says of a name depends on whether it can ask anybody.
    (re.compile(r"\[Errno -\d+\] [^;]+"), "the name is not known"),
    (re.compile(r"[\0-\x1f]+"), " "),
)
_SHOWN = 240


@dataclass(frozen=True)
class Fault:
    """A bad input or a fault, and what must come of it.

    Attributes:
        name: What is wrong, in a few words.
        through: The tool, function or command that meets it.
        act: Makes it happen; returns what came, or raises.
        said: Regular expression that what comes must match.
        kind: Whose fault it is: the error's class, the cause's where a tool passes one on;
            `result` where a result with a note comes, `exit 1` for a command.
    """

    name: str
    through: str
    act: Callable[[Scene], object] = field(repr=False)
    said: str
    kind: str = "ToolError"


@dataclass(frozen=True)
class Seen:
    """What came of a fault."""

    kind: str
    text: str
    recoverable: bool

    @property
    def shown(self) -> str:
        """The text without what differs from run to run, cut for a table."""
        text = self.text
        for pattern, instead in _PASSING:
            text = pattern.sub(instead, text)
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


class CommandError(Exception):
    """A command ended with status 1, with what it wrote to standard error."""


class Scene:
    """Everything the faults need; `close` ends the servers and tools that they made.

    Args:
        trees: The real endpoint.
        folder: A folder named `scene`, for files.
    """

    def __init__(self, trees: EndpointConfig, folder: Path) -> None:
        self.trees = trees
        self.folder = folder
        self._ending = contextlib.ExitStack()
        self.renew()

    def close(self) -> None:
        self._ending.close()

    def renew(self) -> None:
        """Begin a trial of its own, with no handles yet."""
        self.real = self.tools(self.trees)

    def tools(self, config: EndpointConfig) -> SPARQLTools:
        made = SPARQLTools(config)
        self._ending.callback(made.close)
        return made

    def faulty(self, *answers: Answer) -> FaultyServer:
        server = FaultyServer()
        self._ending.callback(server.close)
        server.script(*answers)
        return server

    def at(self, url: str, **settings: Any) -> SPARQLTools:
        settings = {"backoff_s": 0.01, "timeout_s": 5.0, "retries": 1, **settings}
        return self.tools(EndpointConfig(url, "Faulty", **settings))

    def ask(
        self, *answers: Answer, query: str = QUERY, limit: int = 100, **settings: Any
    ) -> tuple[SPARQLTools, Ref]:
        """Ask a server that answers so; return the tools and the handle."""
        tools = self.at(self.faulty(*answers).url, **settings)
        return tools, tools.sparql_query(query, limit)

    def look(self, *answers: Answer, query: str = QUERY, **settings: Any) -> str:
        """Ask, and return what an agent sees of the handle."""
        tools, ref = self.ask(*answers, query=query, **settings)
        return f"{ref!r}: {tools.sparql_peek(ref, 3)!r}"

    def file(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def command(self, *words: object) -> str:
        """Run a command of `reasoningbank` in the folder; return what it printed."""
        out, err = io.StringIO(), io.StringIO()
        status = 0
        with (
            contextlib.chdir(self.folder),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            mock.patch.object(sys, "argv", ["reasoningbank", *map(str, words)]),
        ):
            try:
                main()
            except SystemExit as ended:
                status = int(ended.code or 0)
        if status:
            assert status == 1, err.getvalue()
            raise CommandError(err.getvalue().strip())
        return out.getvalue()

    def self_signed(self) -> str:
        """Return the address of a server whose certificate nobody vouches for."""
        key, certificate = self.folder / "key.pem", self.folder / "certificate.pem"
        openssl = shutil.which("openssl")
        if openssl is None:
            raise FileNotFoundError("openssl")
        wanted = "-newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
        subprocess.run(
            [openssl, "req", "-x509", *wanted.split(), "-keyout", key, "-out", certificate],
            check=True,
            capture_output=True,
        )
        server = self.faulty(Answer())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server.wrap(context)
        return server.url.replace("http://127.0.0.1", "https://localhost")


def observe(fault: Fault, scene: Scene) -> Seen:
    """Act a fault out and return what came of it."""
    scene.renew()
    try:
        came = fault.act(scene)
        kind, text, recoverable = "result", str(came), True
    except ReasoningBankError as error:
        cause = error.__cause__
        of = cause if isinstance(cause, ReasoningBankError) else error
        kind, text, recoverable = type(of).__name__, str(error), of.recoverable
    except CommandError as error:
        kind, text, recoverable = "exit 1", str(error), False
    return Seen(kind, text, recoverable)
