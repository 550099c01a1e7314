"""Documents as files: each is one Turtle file, so that they can be read without the server."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from pyoxigraph import RdfFormat, Triple, parse, serialize

from reasoningbank.errors import UsageError
from reasoningbank.ldp.faults import Refused
from reasoningbank.ldp.names import document_url

__all__ = ["Folder"]

_SUFFIX = ".ttl"
_INDEX = "index.ttl"


class Folder:
    """Keeps each document of a server in a file below one folder.

    The document ``BASE/a/b`` is the file ``a/b.ttl``, and ``BASE/a/`` is ``a/index.ttl``. Names are
    as in the address, percent-encoding included.

    Args:
        root: The folder; made where it is not there.
        base: The address that it stands for.

    Raises:
        UsageError: The folder cannot be made.
    """

    def __init__(self, root: Path, base: str) -> None:
        self._root = root
        self._base = base
        try:
            root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot be made: {error.strerror}", where=str(root)) from error

    def documents(self) -> Iterator[tuple[str, list[Triple]]]:
        """Read all documents.

        Raises:
            UsageError: A file is not Turtle, or its name is no name of a document.
        """
        for file in sorted(self._root.rglob(f"*{_SUFFIX}")):
            if file.is_dir():
                continue  # a container whose name ends so
            place = file.relative_to(self._root).as_posix()
            name = place.removesuffix(_INDEX if file.name == _INDEX else _SUFFIX)
            url = document_url(self._base, urlsplit(self._base).path + name)
            if url != self._base + name:
                hint = "percent-encode its name, or move it elsewhere"
                raise UsageError("the name is no name of a document", where=str(file), hint=hint)
            try:
                quads = parse(
                    file.read_bytes(), RdfFormat.TURTLE, base_iri=url, rename_blank_nodes=True
                )
                yield url, [quad.triple for quad in quads]
            except SyntaxError as error:
                raise UsageError(f"not Turtle: {error}", where=str(file)) from error
            except OSError as error:
                raise UsageError(f"cannot be read: {error.strerror}", where=str(file)) from error

    def write(self, url: str, triples: Sequence[Triple], *, new: bool) -> None:
        """Write a document's file, whole or not at all.

        Args:
            url: The document.
            triples: What it holds.
            new: Whether there was none; its file must then not be there either.

        Raises:
            Refused: Its name cannot be a file's here (409), or the disk does not take it (507).
        """
        file = self._file(url)
        try:
            # Two documents can want one file: `a` and `A` on some disks, `a/index` and `a/`.
            if new and file.exists():
                raise Refused(409, f"another document is kept in the file {file.name}")
            file.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=file.parent, prefix=".", suffix=".part")
            try:
                with os.fdopen(handle, "wb") as out:
                    out.write(serialize(triples, format=RdfFormat.TURTLE) or b"")
                    out.flush()
                    os.fsync(out.fileno())
                os.replace(name, file)  # noqa: PTH105 - atomic
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(name)  # noqa: PTH108
                raise
        except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
            raise Refused(409, f"a file is in the way of {url}") from error
        except OSError as error:
            status = 414 if "name too long" in str(error).lower() else 507
            raise Refused(status, f"the file cannot be written: {error.strerror}") from error

    def remove(self, url: str) -> None:
        """Remove a document's file, and the folder of a container with it where it is empty.

        Raises:
            Refused: The disk does not do it (507).
        """
        file = self._file(url)
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            raise Refused(507, f"the file cannot be removed: {error.strerror}") from error
        if url.endswith("/"):
            with contextlib.suppress(OSError):
                file.parent.rmdir()

    def _file(self, url: str) -> Path:
        name = url.removeprefix(self._base)
        return self._root / (f"{name}{_INDEX}" if url.endswith("/") or not name else name + _SUFFIX)
