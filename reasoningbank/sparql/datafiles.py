"""RDF files on disk: their formats, reading gzipped ones, and stores built from them once."""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import IO, cast

import pyoxigraph

from reasoningbank.cache import cache_dir
from reasoningbank.errors import UsageError

__all__ = ["MERGE", "content_hash", "open_data", "stored"]

#: Puts every triple into the default graph, once.
MERGE = "INSERT { ?s ?p ?o } WHERE { GRAPH ?g { ?s ?p ?o } }"


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
    """Open an RDF file: yields its media type and its decompressed bytes.

    Raises:
        UsageError: The file is missing, or its name tells no RDF format.
    """
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
    """Return a hash of the files' contents and formats, in their order.

    Raises:
        UsageError: A file cannot be read.
    """
    total = hashlib.sha256()
    for file in files:
        try:
            with file.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            raise UsageError(f"cannot be read: {error.strerror}", where=str(file)) from error
        total.update(f"{_format(file).media_type} {file.suffix == '.gz'} {digest}\n".encode())
    # Files alone hash as they always did.
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
    """Return the folder of an on-disk store holding the files, built at the first call.

    Args:
        files: RDF files.
        merged: Whether the default graph holds the triples of all graphs.
        cache: Folder that keeps the stores; the user's cache folder by default.
        graphs: The graph that each file's triples belong to; None leaves them where they are.

    Raises:
        UsageError: A file is missing, of unknown format, or does not parse.
    """
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
