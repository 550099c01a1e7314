"""An embedded endpoint: the `oxigraph` program serving RDF files on loopback."""

from __future__ import annotations

import contextlib
import errno
import gzip
import hashlib
import json
import math
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import IO, Any, Literal, cast
from urllib.parse import quote

import pyoxigraph

from reasoningbank.cache import cache_dir
from reasoningbank.errors import SetupError, UsageError

#: Puts every triple into the default graph, once.
MERGE = "INSERT { ?s ?p ?o } WHERE { GRAPH ?g { ?s ?p ?o } }"
_SUPERVISOR = Path(__file__).with_name("supervisor.py")
_BACKLOG = 128
_PORT_TRIES = 20
_PORT_WAIT_S = 0.05


def oxigraph_program() -> str:
    """Return the path of the `oxigraph` program."""
    beside = Path(sys.executable).parent / "oxigraph"
    found = str(beside) if beside.exists() else shutil.which("oxigraph")
    if found is None:
        raise SetupError("the oxigraph program is not installed", hint="pip install oxigraph")
    return found


class OxigraphServer:
    """Serves RDF files over real HTTP on loopback, for as long as this process lives.

    The server ends with `stop`, with the context, and also when this process is killed. Until
    then it stays up at the same address: a supervisor process relays connections to the engine,
    and starts it again with the same data when it has ended, or computes what no client waits
    for. Requests meanwhile wait up to 10 s, and then get a 503, which clients retry; partly
    loaded data are never served.

    Args:
        data: RDF files (N-Quads, TriG, N-Triples, Turtle, RDF/XML, JSON-LD; gzipped or not).
            A pair of a file and a graph's IRI puts the file's triples into that graph.
        union_default_graph: Whether patterns outside GRAPH see all graphs, as at UniProt. The
            triples are merged into the default graph (a third more memory); Oxigraph's own
            option for it yields a triple once for each graph that holds it, and ignores FROM.
        timeout_s: Seconds after which the engine ends a query; rounded up to whole seconds. It
            checks the clock only when it reads its store, so a product of many patterns, or an
            aggregate over one, can go on. If its client has hung up, it ends with the engine:
            after as many seconds as a start takes (at least 2) if no other client waits, and in
            any case this long after the limit.
        port: Port to listen on; a free one by default.
        storage: ``memory`` loads the files at each start (420,000 quads: 1.4 s, merging 3 s)
            and answers two to five times faster than ``disk``, which loads them once into a
            cache keyed by their contents (15 s), starts in 0.1 s, and refuses updates with
            403. In memory, the program's own update address stays open to this machine's
            processes; the harness's client never goes there, and what is written there is lost
            when the engine is started again.
        start_timeout_s: Seconds the program may take to start, without loading.

    Raises:
        UsageError: If a file is missing, of unknown format, or does not parse.
        SetupError: If the port is in use, or the program is missing or does not start.

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
        """The port it listens on."""
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

        A server that was stopped starts again at the same port.
        """
        if self.running:
            return self
        plan = self._plan()
        self.stop()
        with self._listening(self._wanted_port or self._port) as listener:
            self._port = listener.getsockname()[1]
            self._log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the server
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_SUPERVISOR), str(listener.fileno())],
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
        """End the program; no effect if it is not running."""
        process, self._process = self._process, None
        if process is not None:
            for pipe in (process.stdin, process.stdout):
                # Closing writes what is still buffered, to a process that may have ended.
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

    def _plan(self) -> dict[str, Any]:
        """Return the plan for the supervisor, see `EnginePlan`."""
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
                used = error.errno == errno.EADDRINUSE
                if tries and used:
                    time.sleep(_PORT_WAIT_S)
                    continue
                raise SetupError(
                    f"port {port} {'is in use' if used else f'is unavailable: {error.strerror}'}",
                    where="OxigraphServer",
                    hint="choose another port, or none to get a free one",
                    code="port-in-use" if used else "no-port",
                ) from error

    def _await_data(self, process: subprocess.Popen[bytes], plan: dict[str, Any]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(plan).encode() + b"\n")
            process.stdin.flush()
        answer = process.stdout.readline()
        if not answer:
            text = "" if self._log is None else os.pread(self._log.fileno(), 4_000, 0).decode()
            why = (text.splitlines() or ["no reason given"])[-1]
            raise SetupError(f"the supervisor ended at once: {why}", where="OxigraphServer")
        failed = json.loads(answer)
        if failed.get("where"):
            raise UsageError(failed["what"], where=failed["where"], hint=failed["hint"])
        if failed:
            what = f"the oxigraph program: {failed['what']}"
            raise SetupError(what, where="OxigraphServer", hint=failed["hint"])


def _load(file: Path, graph: str | None) -> dict[str, str]:
    with open_data(file) as (media_type, _):
        into = f"&graph={quote(graph, safe='')}" if graph is not None else ""
    if not into and not _format(file).supports_datasets:
        # Otherwise the engine invents a graph for a format that has triples only.
        into = "&default"
    return {"file": str(file), "path": f"/store?no_transaction{into}", "media_type": media_type}


def _format(file: Path) -> pyoxigraph.RdfFormat:
    name = file.name.removesuffix(".gz")
    found = pyoxigraph.RdfFormat.from_extension(Path(name).suffix.lstrip("."))
    if found is None:
        raise UsageError(
            "not an RDF file by its name",
            where=str(file),
            hint="use .nq, .trig, .nt, .ttl, .rdf or .jsonld, gzipped (.gz) or not",
        )
    return found


@contextmanager
def open_data(file: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Open an RDF file: yields its media type and its decompressed bytes."""
    media_type = _format(file).media_type
    try:
        raw = file.open("rb")
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=str(file)) from error
    with raw:
        stream = gzip.GzipFile(fileobj=raw) if file.suffix == ".gz" else raw
        try:
            yield media_type, cast("IO[bytes]", stream)
        except (gzip.BadGzipFile, EOFError) as error:
            raise UsageError(f"broken gzip file: {error}", where=str(file)) from error


def content_hash(files: Sequence[Path], graphs: Sequence[str | None] = ()) -> str:
    """Return a hash of the files' contents and formats, in their order."""
    total = hashlib.sha256()
    for file in files:
        try:
            with file.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            raise UsageError(f"cannot be read: {error.strerror}", where=str(file)) from error
        total.update(f"{_format(file).media_type} {file.suffix == '.gz'} {digest}\n".encode())
    # Without graphs, the hash is that of earlier versions.
    for at, graph in enumerate(graphs):
        if graph is not None:
            total.update(f"graph {at} {graph}\n".encode())
    return total.hexdigest()


def stored(
    files: Sequence[Path],
    merged: bool,
    cache: Path | None = None,
    graphs: Sequence[str | None] = (),
) -> Path:
    """Return the folder of an on-disk store with the files, built at the first call."""
    cache = cache or cache_dir() / "stores"
    kind = "merged" if merged else "plain"
    name = f"{content_hash(files, graphs)[:32]}-{kind}-{pyoxigraph.__version__}"
    target = cache / name
    if target.is_dir():
        return target
    cache.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=f"{name}.", dir=cache))
    try:
        store = pyoxigraph.Store(str(building))
        for file, graph in zip_longest(files, graphs):
            into = None if graph is None else pyoxigraph.NamedNode(graph)
            with open_data(file) as (_, stream):
                try:
                    store.bulk_load(stream, _format(file), to_graph=into)
                except (SyntaxError, ValueError) as error:
                    raise UsageError(f"cannot be loaded: {error}", where=str(file)) from error
        if merged:
            # As MERGE does, in half the time on disk; blank nodes stay the same.
            quads = store.quads_for_pattern(None, None, None)
            store.bulk_extend(pyoxigraph.Quad(*quad.triple) for quad in quads)
        store.flush()
        store.optimize()
        del store
        try:
            building.rename(target)
        except OSError:
            if not target.is_dir():
                raise
    finally:
        if building.exists():
            shutil.rmtree(building, ignore_errors=True)
    os.utime(target)
    return target
