"""An embedded endpoint: the `oxigraph` program serving RDF files on loopback."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Literal
from urllib.parse import quote

from pyoxigraph import RdfFormat

from reasoningbank.errors import SetupError, UsageError
from reasoningbank.sparql import keeper
from reasoningbank.sparql.datafiles import MERGE, open_data, stored

__all__ = ["OxigraphServer", "oxigraph_program"]

_BACKLOG = 128
_PORT_TRIES = 20
_PORT_WAIT_S = 0.05


def oxigraph_program() -> str:
    """Return the path of the `oxigraph` program.

    Raises:
        SetupError: It is not installed.
    """
    beside = Path(sys.executable).parent / "oxigraph"
    found = str(beside) if beside.exists() else shutil.which("oxigraph")
    if found is None:
        raise SetupError("the oxigraph program is not installed", hint="pip install oxigraph")
    return found


class OxigraphServer:
    """Serves RDF files over real HTTP on loopback, for as long as this process lives.

    The server ends with `stop`, with the context, and also when this process is killed. Until
    then it is kept up at the same address: a process of its own (`keeper`) relays connections to
    the engine, and starts it again with the same data when it has ended, or goes on computing
    what nobody waits for. Requests meanwhile wait up to 10 s, and then get a 503, which clients
    try again; no answer comes from data that are loaded in part.

    Args:
        data: RDF files (N-Quads, TriG, N-Triples, Turtle, RDF/XML, JSON-LD; gzipped or not).
            A pair of a file and a graph's IRI puts the file's triples into that graph.
        union_default_graph: Whether patterns outside GRAPH see all graphs, as at UniProt. The
            triples are merged into the default graph (a third more memory); Oxigraph's own
            option for it yields a triple once for each graph that holds it, and ignores FROM.
        timeout_s: Seconds after which the engine ends a query; rounded up to whole seconds. It
            looks at the clock only where it reads its store, so a product of many patterns, or an
            aggregate over one, is not ended by it. What is still computed when its client has hung
            up ends with the engine: after as many seconds as a start takes (2 at least) while
            nobody else waits, and in any case so long after this limit.
        port: Port to listen on; a free one by default.
        storage: ``memory`` loads the files at each start (420,000 quads: 1.4 s, merging 3 s)
            and answers two to five times faster than ``disk``, which loads them once into a
            cache keyed by their contents (15 s), starts in 0.1 s, and refuses updates with
            403. In memory, the program's own update address stays open to this machine's
            processes; the harness's client never goes there, and what is written there is lost
            when the engine is started again.
        start_timeout_s: Seconds the program may take to start, loading not counted.

    Raises:
        UsageError: A file is missing, of unknown format, or does not parse.
        SetupError: The port is in use, or the program is not there or does not start.

    Examples:
        >>> from reasoningbank.sparql.client import SPARQLClient
        >>> from reasoningbank.sparql.endpoint import EndpointConfig
        >>> with OxigraphServer([]) as server:
        ...     with SPARQLClient(EndpointConfig(server.url)) as client:
        ...         client.query("ASK { ?s ?p ?o }").value
        False
    """

    def __init__(
        self,
        data: Sequence[Path | str | tuple[Path, str]] = (),
        *,
        union_default_graph: bool = True,
        timeout_s: float = 30.0,
        port: int | None = None,
        storage: Literal["memory", "disk"] = "memory",
        start_timeout_s: float = 30.0,
    ) -> None:
        named = [item if isinstance(item, tuple) else (item, None) for item in data]
        self._data = [Path(file) for file, _ in named]
        self._graphs = [graph for _, graph in named]
        self._union = union_default_graph
        self._timeout = max(1, math.ceil(timeout_s))
        self._wanted_port = port
        self._storage = storage
        self._start_timeout = start_timeout_s
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self._port = 0

    def __enter__(self) -> OxigraphServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def port(self) -> int:
        """The port it listens on.

        Raises:
            UsageError: It is not running.
        """
        if self._process is None:
            raise UsageError("the server is not running", hint="start it, or use it in a with")
        return self._port

    @property
    def url(self) -> str:
        """The address of its query service."""
        return f"http://127.0.0.1:{self.port}/query"

    @property
    def running(self) -> bool:
        """Whether it is up, or about to be again."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> OxigraphServer:
        """Start the program and load the data; no effect on a running server.

        A server that was stopped is started again at the same port.
        """
        if self.running:
            return self
        plan = self._plan()
        self.stop()
        # A server that died comes back under its address, which clients know.
        with self._listening(self._wanted_port or self._port) as listener:
            self._port = listener.getsockname()[1]
            self._log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the server
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", keeper.__file__, str(listener.fileno())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                pass_fds=[listener.fileno()],
                # Ctrl-C in a terminal goes to the whole group; the server must outlive our cleanup.
                start_new_session=True,
            )
        try:
            self._await_data(self._process, plan)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End the program; no effect where it does not run."""
        process, self._process = self._process, None
        if process is not None:
            for pipe in (process.stdin, process.stdout):
                # What was not read before it ended is written once more here.
                with contextlib.suppress(BrokenPipeError):
                    if pipe is not None:
                        pipe.close()
            try:
                process.wait(6)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self._log is not None:
            self._log.close()
            self._log = None

    def _plan(self) -> keeper.Plan:
        serve, loads = ["serve"], []
        if self._storage == "disk":
            location = stored(self._data, self._union, graphs=self._graphs)
            serve = ["serve-read-only", "--location", str(location)]
        else:
            loads = [_load(*item) for item in zip(self._data, self._graphs, strict=True)]
        return {
            "command": [oxigraph_program(), *serve, "--timeout-s", str(self._timeout)],
            "loads": loads,
            "update": MERGE if self._union and loads else "",
            "timeout_s": self._timeout,
            "start_timeout_s": self._start_timeout,
        }

    def _listening(self, port: int) -> socket.socket:
        # The system frees a port some moments after its process was killed.
        tries = _PORT_TRIES if port and port == self._port else 1
        while True:
            tries -= 1
            listener = socket.socket()
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind(("127.0.0.1", port))
                listener.listen(_BACKLOG)
                return listener
            except OSError as error:
                listener.close()
                if tries and error.errno == errno.EADDRINUSE:
                    time.sleep(_PORT_WAIT_S)
                    continue
                used = error.errno == errno.EADDRINUSE
                raise SetupError(
                    f"port {port} {'is in use' if used else f'cannot be had: {error.strerror}'}",
                    where="OxigraphServer",
                    hint="choose another port, or none to get a free one",
                ) from error

    def _await_data(self, process: subprocess.Popen[bytes], plan: keeper.Plan) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(plan).encode() + b"\n")
            process.stdin.flush()
        answer = process.stdout.readline()
        if not answer:
            said = "" if self._log is None else os.pread(self._log.fileno(), 4_000, 0).decode()
            why = (said.splitlines() or ["no reason given"])[-1]
            raise SetupError(f"what keeps the engine ended at once: {why}", where="OxigraphServer")
        failed = json.loads(answer)
        if failed.get("where"):
            raise UsageError(failed["what"], where=failed["where"], hint=failed["hint"])
        if failed:
            what = f"the oxigraph program: {failed['what']}"
            raise SetupError(what, where="OxigraphServer", hint=failed["hint"])


def _load(file: Path, graph: str | None) -> keeper.Load:
    with open_data(file) as (media_type, _):
        into = _graph_parameter(media_type, graph)
    return {"file": str(file), "path": f"/store?no_transaction{into}", "media_type": media_type}


def _graph_parameter(media_type: str, graph: str | None) -> str:
    if graph is not None:
        return f"&graph={quote(graph, safe='')}"
    # Without a graph the engine would invent one for a format that holds triples alone.
    format_ = RdfFormat.from_media_type(media_type)
    return "" if format_ is not None and format_.supports_datasets else "&default"
