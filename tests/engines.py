"""A second engine for the tests: Virtuoso, unpacked by `scripts/fetch_virtuoso.py`.

It is unlike Oxigraph where it hurts: an ASK is answered with a table, booleans it computes are
the integers 0 and 1, its TSV leaves out datatypes and languages, a query that it estimates to be
costly is refused before it runs, and its own limits cut results short.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pyoxigraph
import watch

from reasoningbank.cache import cache_dir
from reasoningbank.sparql.server import open_data

UNPACKED = "usr/bin/virtuoso-t"

CONFIGURATION = """
[Database]
DatabaseFile = virtuoso.db
ErrorLogFile = virtuoso.log
LockFile = virtuoso.lck
TransactionFile = virtuoso.trx
xa_persistent_file = virtuoso.pxa
FileExtend = 200
[TempDatabase]
DatabaseFile = virtuoso-temp.db
TransactionFile = virtuoso-temp.trx
FileExtend = 200
[Parameters]
ServerPort = 127.0.0.1:{sql}
ServerThreads = 20
CheckpointInterval = 0
NumberOfBuffers = 8000
MaxDirtyBuffers = 6000
ThreadsPerQuery = 1
DirsAllowed = {folder}
[HTTPServer]
ServerPort = 127.0.0.1:{http}
ServerRoot = {folder}
ServerThreads = 8
[SPARQL]
ResultSetMaxRows = {max_rows}
MaxQueryCostEstimationTime = {max_cost_s}
MaxQueryExecutionTime = {timeout_s}
DefaultQuery = ASK {{}}
"""

LOAD = """
DB.DBA.RDF_OBJ_FT_RULE_ADD(null, null, 'All');
DB.DBA.TTLP(file_to_string_output('{file}'), '', '{default}', 512);
DB.DBA.VT_INC_INDEX_DB_DBA_RDF_OBJ();
"""


def virtuoso_program() -> Path | None:
    """Return Virtuoso's program: the fetched one, else the machine's; None where there is none."""
    fetched = cache_dir() / "virtuoso" / UNPACKED
    if fetched.exists():
        return fetched
    installed = shutil.which("virtuoso-t")
    return None if installed is None else Path(installed)


class VirtuosoServer:
    """Serves RDF files with Virtuoso on loopback; ends with the context and with this process.

    Takes about five seconds to start. Nobody may update it over HTTP, nor use SERVICE. Text is
    indexed for `bif:contains`. As always with Virtuoso, the default graph is all graphs together.

    Args:
        data: RDF files of any format, gzipped or not. A pair of a file and a graph's IRI puts
            the file's triples into that graph.
        max_rows: Rows at which Virtuoso cuts a result short, without an error.
        max_cost_s: Estimated seconds above which it refuses a query at once.
        timeout_s: Seconds after which it ends a query.
        default_graph: Graph for triples that the files put into none, which Virtuoso cannot have.
    """

    def __init__(
        self,
        data: Sequence[Path | tuple[Path, str]] = (),
        *,
        max_rows: int = 10_000,
        max_cost_s: int = 400,
        timeout_s: int = 20,
        default_graph: str = "urn:graph:default",
    ) -> None:
        program = virtuoso_program()
        if program is None:
            raise FileNotFoundError("no Virtuoso here: run scripts/fetch_virtuoso.py")
        self._program = program
        self._data = [item if isinstance(item, tuple) else (item, None) for item in data]
        self._limits = {"max_rows": max_rows, "max_cost_s": max_cost_s, "timeout_s": timeout_s}
        self._default = default_graph
        self._folder = Path()
        self._process: subprocess.Popen[bytes] | None = None
        self._http = self._sql = 0

    @property
    def url(self) -> str:
        """The address of its query service."""
        return f"http://127.0.0.1:{self._http}/sparql"

    def __enter__(self) -> VirtuosoServer:
        self._folder = Path(tempfile.mkdtemp(prefix="virtuoso-")).resolve()
        try:
            self._start()
            if self._data:
                self._load()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(10)
        shutil.rmtree(self._folder, ignore_errors=True)

    def sql(self, statements: str) -> str:
        """Run SQL as the database's owner and return what isql says."""
        done = subprocess.run(
            [
                str(self._program.with_name("isql-vt")),
                f"127.0.0.1:{self._sql}",
                "dba",
                "dba",
                "ERRORS=STDOUT",
                "VERBOSE=OFF",
            ],
            input=statements,
            env=self._environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        if "*** Error" in done.stdout:
            raise RuntimeError(done.stdout.strip())
        return done.stdout

    def _environment(self) -> dict[str, str]:
        root = self._program.parents[2]
        found = [
            sub for name in ("usr/lib", "lib") for sub in sorted((root / name).glob("*-linux-*"))
        ]
        # For an installed program these are the folders that the linker knows anyway.
        return {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(map(str, found))}

    def _start(self) -> None:
        """Start it; on other ports where another process takes a free one before it does."""
        for last in (False, False, True):
            try:
                self._start_once()
                return
            except RuntimeError as failure:
                if last or "Address already in use" not in str(failure):
                    raise

    def _start_once(self) -> None:
        with socket.socket() as one, socket.socket() as other:
            for probe in (one, other):
                probe.bind(("127.0.0.1", 0))
            self._http, self._sql = one.getsockname()[1], other.getsockname()[1]
        (self._folder / "virtuoso.ini").write_text(
            CONFIGURATION.format(
                folder=self._folder, http=self._http, sql=self._sql, **self._limits
            ),
            encoding="utf-8",
        )
        command = [str(self._program), "+configfile", "virtuoso.ini", "+foreground"]
        with (self._folder / "said.log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", watch.__file__, *command],
                cwd=self._folder,
                env=self._environment(),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        end = time.monotonic() + 60
        while time.monotonic() < end and self._process.poll() is None:
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                urllib.request.urlopen(f"{self.url}?query=ASK%7B%7D", timeout=2).close()
                return
            time.sleep(0.1)
        said = (self._folder / "said.log").read_text("utf-8", "replace")
        raise RuntimeError(f"Virtuoso does not start: {said[-400:]}")

    def _load(self) -> None:
        quads = []
        for file, graph in self._data:
            with open_data(file) as (media_type, stream):
                kind = pyoxigraph.RdfFormat.from_media_type(media_type)
                for quad in pyoxigraph.parse(
                    stream.read(), kind, lenient=True, rename_blank_nodes=True
                ):
                    if isinstance(quad.object, pyoxigraph.Triple):
                        continue  # RDF 1.2 is newer than Virtuoso
                    where = pyoxigraph.NamedNode(graph) if graph else quad.graph_name
                    quads.append(pyoxigraph.Quad(quad.subject, quad.predicate, quad.object, where))
        file = self._folder / "data.nq"
        pyoxigraph.serialize(quads, str(file), pyoxigraph.RdfFormat.N_QUADS)
        self.sql(LOAD.format(file=file, default=self._default))


def small_uniprot(source: Path, target: Path) -> None:
    """Write the part of the UniProt sample that the fixture `virtuoso` holds, as N-Quads.

    Thirty human proteins and ten others with all that is reached from them: names, genes,
    sequences, taxa with their whole lineage, annotations of all kinds with ranges and evidence,
    diseases, keywords, locations, enzymes, citations, cross-references, and the GO terms they are
    classified with (not those terms' ancestors). The graphs are those of the sample.
    """
    about: dict[str, list[str]] = defaultdict(list)
    with gzip.open(source, "rt", encoding="utf-8") as lines:
        for line in lines:
            if not ("subClassOf> <" in line and "/obo/GO_" in line):
                about[line.split(" ", 1)[0]].append(line)
    human = "core/organism> <http://purl.uniprot.org/taxonomy/9606> "
    proteins = [
        name for name in sorted(about) if name.startswith("<http://purl.uniprot.org/uniprot/")
    ]
    of_human = [name for name in proteins if any(human in line for line in about[name])]
    others = [name for name in proteins if any("core/organism>" in line for line in about[name])]
    others = [name for name in others if name not in set(of_human)]
    reached = dict.fromkeys([*of_human[:30], *others[:10]])
    new = list(reached)
    outside = set(proteins) - set(reached)
    while new:
        objects = [
            found[1]
            for name in new
            for line in about[name]
            if (found := re.match(r"\S+ \S+ (<[^>]*>|_:\S+) ", line))
        ]
        new = [name for name in dict.fromkeys(objects) if name in about and name not in reached]
        new = [name for name in new if name not in outside]
        reached.update(dict.fromkeys(new))
    target.write_text("".join("".join(about[name]) for name in reached), encoding="utf-8")
