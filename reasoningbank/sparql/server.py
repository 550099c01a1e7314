"""An embedded endpoint: the `oxigraph` program serving RDF files on loopback."""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, Literal, cast
from urllib.parse import quote

import pyoxigraph

from reasoningbank.cache import cache_dir
from reasoningbank.errors import SetupError, UsageError
from reasoningbank.http import binding

#: Puts every triple into the default graph, once.
MERGE = "INSERT { ?s ?p ?o } WHERE { GRAPH ?g { ?s ?p ?o } }"
_SUPERVISOR = Path(__file__).with_name("supervisor.py")
_BACKLOG = 128
_PORT_WAIT_S = 1.0

#: An RDF file, and the graph for its triples.
GraphFile = tuple[Path, str | None]


def oxigraph_program() -> str:
    beside = Path(sys.executable).parent / "oxigraph"
    found = str(beside) if beside.exists() else shutil.which("oxigraph")
    if found is None:
        raise SetupError("the oxigraph program is not installed", hint="pip install oxigraph")
    return found


class OxigraphServer:
    """Serves RDF files over real HTTP on loopback, for as long as this process lives.

    The server ends with `stop`, with the context, and also when this process is killed. Until
    then it stays up at the same address: `supervisor.py` starts the engine again when it has
    ended, or computes what no client waits for. Requests meanwhile wait up to 10 s, and then get a
    503, which clients retry; partly loaded data are never served.

    Args:
        data: RDF files (N-Quads, TriG, N-Triples, Turtle, RDF/XML, JSON-LD; gzipped or not).
            A pair of a file and a graph's IRI puts the file's triples into that graph.
        union_default_graph: Whether patterns outside GRAPH see all graphs, as at UniProt. The
            triples are merged into the default graph (a third more memory); Oxigraph's own
            option for it yields a triple once for each graph that holds it, and ignores FROM.
        timeout_s: Seconds after which the engine ends a query; rounded up to whole seconds. It
            checks the clock only when it reads its store; a query that goes on ends with the
            engine, as many seconds later as a start takes (at least 2).
        port: Port to listen on; a free one by default.
        storage: ``memory`` loads the files at each start (420,000 quads: 1.4 s, merging 3 s)
            and answers two to five times faster than ``disk``, which loads them once into a
            cache keyed by their contents (15 s), starts in 0.1 s, and refuses updates with 403.
            What is written to memory is lost when the engine is started again.
    """

    def __init__(
        self,
        data: Sequence[Path | str | tuple[Path, str]] = (),
        *,
        union_default_graph: bool = True,
        timeout_s: float = 30.0,
        port: int | None = None,
        storage: Literal["memory", "disk"] = "memory",
    ) -> None:
        self._data: list[GraphFile] = [
            (Path(item[0]), item[1]) if isinstance(item, tuple) else (Path(item), None)
            for item in data
        ]
        self._union = union_default_graph
        self._timeout = max(1, math.ceil(timeout_s))
        self._wanted_port = port
        self._storage = storage
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0

    def __enter__(self) -> OxigraphServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def port(self) -> int:
        if self._process is None:
            raise UsageError("the server is not running", hint="start it, or use it in a with")
        return self._port

    @property
    def url(self) -> str:
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
        plan = json.dumps(self._plan())
        self.stop()
        with self._listening() as listener:
            self._port = listener.getsockname()[1]
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_SUPERVISOR), str(listener.fileno()), plan],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                pass_fds=[listener.fileno()],
                # Ctrl-C in a terminal goes to the whole group; the server must outlive our cleanup.
                start_new_session=True,
            )
        try:
            assert self._process.stdout is not None
            answer = self._process.stdout.readline()
            failed = json.loads(answer or '{"what": "no reason given", "where": "", "hint": ""}')
            if failed and failed["where"]:
                raise UsageError(**failed)
            if failed:
                what = f"the oxigraph program: {failed['what']}"
                raise SetupError(what, where="OxigraphServer", hint=failed["hint"])
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End the program; no effect if it is not running."""
        process, self._process = self._process, None
        end_child(process)

    def _plan(self) -> dict[str, Any]:
        loads = []
        if self._storage == "disk":
            serve = ["serve-read-only", "--location", str(stored(self._data, self._union))]
        else:
            serve = ["serve"]
            loads = [_load(file, graph) for file, graph in self._data]
        return {
            "command": [oxigraph_program(), *serve, "--timeout-s", str(self._timeout)],
            "loads": loads,
            "update": MERGE if self._union and loads else "",
            "timeout_s": self._timeout,
        }

    def _listening(self) -> socket.socket:
        port = self._wanted_port or self._port
        # The system frees a port some moments after its process was killed.
        end = time.monotonic() + (_PORT_WAIT_S if port and port == self._port else 0)
        hint = "choose another port, or none to get a free one"
        while True:
            try:
                with binding(port, "OxigraphServer", hint):
                    return socket.create_server(("127.0.0.1", port), backlog=_BACKLOG)
            except SetupError as error:
                if error.code != "port-in-use" or time.monotonic() >= end:
                    raise
            time.sleep(0.05)


def end_child(process: subprocess.Popen[Any] | None) -> None:
    """End a process, if there is one, by closing its standard input; kill it if it does not end."""
    if process is None:
        return
    with suppress(OSError), process:  # closes the pipes
        cast("IO[Any]", process.stdin).close()
        try:
            process.wait(6)
        except subprocess.TimeoutExpired:
            process.kill()


def _load(file: Path, graph: str | None) -> dict[str, str]:
    kind = _format(file)
    # Otherwise the engine invents a graph for a format that has triples only.
    into = "" if kind.supports_datasets else "&default"
    into = into if graph is None else f"&graph={quote(graph, safe='')}"
    path = f"/store?no_transaction{into}"
    return {"file": str(file), "path": path, "media_type": kind.media_type}


def _format(file: Path) -> pyoxigraph.RdfFormat:
    extension = Path(file.name.removesuffix(".gz")).suffix.lstrip(".")
    found = pyoxigraph.RdfFormat.from_extension(extension)
    if found is None:
        hint = "use .nq, .trig, .nt, .ttl, .rdf or .jsonld, gzipped (.gz) or not"
        raise UsageError("not an RDF file by its name", where=str(file), hint=hint)
    return found


def _opened(file: Path) -> BufferedReader:
    try:
        return file.open("rb")
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=str(file)) from error


@contextmanager
def open_data(file: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Open an RDF file: yields its media type and its decompressed bytes."""
    media_type = _format(file).media_type
    with _opened(file) as raw:
        stream = gzip.GzipFile(fileobj=raw) if file.suffix == ".gz" else raw
        try:
            yield media_type, cast("IO[bytes]", stream)
        except (gzip.BadGzipFile, EOFError) as error:
            raise UsageError(f"broken gzip file: {error}", where=str(file)) from error


def content_hash(data: Sequence[GraphFile]) -> str:
    """Return a hash of the files' contents, formats and graphs, in their order."""
    total = hashlib.sha256()
    for file, graph in data:
        with _opened(file) as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        kind = f"{_format(file).media_type} {file.suffix == '.gz'}"
        total.update(f"{kind} {graph!r} {digest}\n".encode())
    return total.hexdigest()


def stored(data: Sequence[GraphFile], merged: bool) -> Path:
    """Return the folder of an on-disk store with the files, built at the first call."""
    kind = "merged" if merged else "plain"
    name = f"{content_hash(data)[:32]}-{kind}-{pyoxigraph.__version__}"
    target = cache_dir() / "stores" / name
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=f"{name}.", dir=target.parent))
    try:
        store = pyoxigraph.Store(str(building))
        for file, graph in data:
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
        shutil.rmtree(building, ignore_errors=True)
    return target
