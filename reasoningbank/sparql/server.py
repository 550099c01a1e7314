"""An embedded endpoint: the `oxigraph` program serving RDF files on loopback."""

from __future__ import annotations

import contextlib
import http.client
import math
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Literal
from urllib.parse import quote

from pyoxigraph import RdfFormat

from reasoningbank.errors import SetupError, UsageError
from reasoningbank.sparql import watch
from reasoningbank.sparql.datafiles import MERGE, open_data, stored

__all__ = ["OxigraphServer", "oxigraph_program"]

_PORT_TRIES = 5
_POLL_S = 0.02


def oxigraph_program() -> str:
    """Return the path of the `oxigraph` program.

    Raises:
        SetupError: It is not installed.
    """
    beside = Path(sys.executable).parent / "oxigraph"
    found = str(beside) if beside.exists() else shutil.which("oxigraph")
    if found is None:
        raise SetupError("the oxigraph program is not installed", mend="pip install oxigraph")
    return found


class OxigraphServer:
    """Serves RDF files over real HTTP on loopback, for as long as this process lives.

    The server ends with `stop`, with the context, and also when this process is killed.

    Args:
        data: RDF files (N-Quads, TriG, N-Triples, Turtle, RDF/XML, JSON-LD; gzipped or not).
            A pair of a file and a graph's IRI puts the file's triples into that graph.
        union_default_graph: Whether patterns outside GRAPH see all graphs, as at UniProt. The
            triples are merged into the default graph (a third more memory); Oxigraph's own
            option for it yields a triple once for each graph that holds it, and ignores FROM.
        timeout_s: Seconds after which the server ends a query; rounded up to whole seconds.
        port: Port to listen on; a free one by default.
        storage: ``memory`` loads the files at each start (420,000 quads: 1.4 s, merging 3 s)
            and answers two to five times faster than ``disk``, which loads them once into a
            cache keyed by their contents (15 s), starts in 0.1 s, and refuses updates with
            403. In memory, the program's own update address stays open to this machine's
            processes; the harness's client never goes there.
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
            raise UsageError("the server is not running", mend="start it, or use it in a with")
        return self._port

    @property
    def url(self) -> str:
        """The address of its query service."""
        return f"http://127.0.0.1:{self.port}/query"

    @property
    def running(self) -> bool:
        """Whether the program is up."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> OxigraphServer:
        """Start the program and load the data; no effect on a running server.

        A server that ended is started again at the same port.
        """
        if self.running:
            return self
        location = (
            stored(self._data, self._union, graphs=self._graphs)
            if self._storage == "disk"
            else None
        )
        # A server that died comes back under its address, which clients know.
        known = self._wanted_port or self._port
        self.stop()
        tries = 1 if known else _PORT_TRIES
        for attempt in range(tries):
            try:
                self._launch(location, known or _free_port())
                break
            except SetupError as error:
                if "in use" not in error.what or attempt == tries - 1:
                    raise
        if location is None:
            try:
                for file, graph in zip(self._data, self._graphs, strict=True):
                    self._load(file, graph)
                if self._union:
                    self._merge()
            except BaseException:
                self.stop()
                raise
        return self

    def stop(self) -> None:
        """End the program; no effect where it does not run."""
        process, self._process = self._process, None
        if process is not None:
            if process.stdin is not None:
                process.stdin.close()
            try:
                process.wait(6)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self._log is not None:
            self._log.close()
            self._log = None

    def _launch(self, location: Path | None, port: int) -> None:
        self._port = port
        command = [oxigraph_program(), "serve" if location is None else "serve-read-only"]
        command += [] if location is None else ["--location", str(location)]
        command += ["--bind", f"127.0.0.1:{self._port}", "--timeout-s", str(self._timeout)]
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the server
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", watch.__file__, *command],
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=self._log,
            # Ctrl-C in a terminal goes to the whole group; the server must outlive our cleanup.
            start_new_session=True,
        )
        end = time.monotonic() + self._start_timeout
        while time.monotonic() < end:
            if self._process.poll() is not None:
                said = self._said()
                self.stop()
                raise self._not_started(said)
            # Only our own program writes to the log: another server on the port cannot pass.
            if "Listening" in self._said() and _answers(self._port):
                return
            time.sleep(_POLL_S)
        said = self._said()
        self.stop()
        raise SetupError(
            f"the oxigraph program did not start within {self._start_timeout:g} s: {said[:200]}",
            mend="try again on a less busy machine",
        )

    def _not_started(self, said: str) -> SetupError:
        if "in use" in said:
            return SetupError(
                f"port {self._port} is in use",
                where="OxigraphServer",
                mend="choose another port, or none to get a free one",
            )
        first = next((line for line in said.splitlines() if line.strip()), "no reason given")
        return SetupError(f"the oxigraph program ended at once: {first}", where="OxigraphServer")

    def _said(self) -> str:
        if self._log is None:
            return ""
        # Not by seek and read: the program shares the place, and would write over its own message.
        return os.pread(self._log.fileno(), 4_000, 0).decode("utf-8", "replace")

    def _merge(self) -> None:
        problem = self._post("/update", "application/sparql-update", iter([MERGE.encode()]))
        if problem:
            raise SetupError(f"the graphs cannot be merged: {problem}", where="OxigraphServer")

    def _load(self, file: Path, graph: str | None) -> None:
        with open_data(file) as (media_type, stream):
            into = _graph_parameter(media_type, graph)
            chunks = iter(lambda: stream.read(1 << 20), b"")
            problem = self._post(f"/store?no_transaction{into}", media_type, chunks)
        if problem:
            raise UsageError(f"cannot be loaded: {problem}", where=str(file), mend="correct it")

    def _post(self, path: str, media_type: str, chunks: Iterator[bytes]) -> str:
        """Send a body to the program; return its complaint, empty where there is none."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=600)
        headers = {"Content-Type": media_type, "Transfer-Encoding": "chunked"}
        with contextlib.closing(connection):
            connection.request("POST", path, chunks, headers, encode_chunked=True)
            answer = connection.getresponse()
            said = answer.read().decode("utf-8", "replace")
        return "" if 200 <= answer.status < 300 else said[:300] or f"HTTP {answer.status}"


def _graph_parameter(media_type: str, graph: str | None) -> str:
    if graph is not None:
        return f"&graph={quote(graph, safe='')}"
    # Without a graph the engine would invent one for a format that holds triples alone.
    format_ = RdfFormat.from_media_type(media_type)
    return "" if format_ is not None and format_.supports_datasets else "&default"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    with contextlib.closing(connection):
        try:
            connection.request("GET", "/query", headers={"Accept": "text/turtle"})
            return connection.getresponse().status == 200
        except OSError:
            return False
