"""Files of a run: JSON written atomically, loose, gzip-compressed, or in one archive per run.

`records.tar.xz` beside `manifest.json` holds the trials, memory snapshots and learning steps of an
archived run. A loose file takes precedence over a member of the archive with the same name.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import io
import json
import lzma
import os
import re
import tarfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from reasoningbank.cache import write_bytes_atomically
from reasoningbank.errors import RecordError

#: Name of the archive within the folder of a run.
ARCHIVE = "records.tar.xz"
_ELSEWHERE = "free space or choose another folder with --out"
_RERUN = "delete the file and run the same command again"


def shipped(path: Path) -> Path:
    """Return a path; one under ``experiments/`` that is not here is the package's or repository's.

    Examples:
        >>> shipped(Path("experiments/uniprot_demo.toml")).is_file()
        True
        >>> shipped(Path("experiments/none.toml")) == Path("experiments/none.toml")
        True
    """
    if path.parts[:1] == ("experiments",) and not path.exists():
        package = Path(__file__).resolve().parents[1]
        for home in (package, package.parent):
            if (home / path).exists():
                return home / path
    return path


def write_atomically(path: Path, data: Any, *, durable: bool = True) -> None:
    """Write JSON so that a reader sees the old file or the new one, never a part."""
    # Models and agents' code write lone surrogates; they must not cost a trial.
    text = json.dumps(data, ensure_ascii=False, indent=1)
    raw = text.encode("utf-8", "surrogatepass")
    write_bytes_atomically(path, raw, durable=durable, hint=_ELSEWHERE)


def read_json(path: Path) -> Any:
    """Return the content of a JSON file, compressed or not."""
    return _parsed(unpacked(path), lambda: path)


def plain(value: Any) -> Any:
    r"""Return JSON-able data with lone surrogates escaped."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, Mapping):
        return {plain(str(k)): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


class RunStorage:
    """Read and write the files of one run by name, such as ``trials/rlm/001.0.json``."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def exists(self, name: str) -> bool:
        """Return whether a file exists, loose, compressed or archived."""
        return self._loose(name) is not None or name in self._members()

    def file(self, name: str) -> Path:
        """Return where a file lies; for a member of the archive, its path below the archive."""
        place = self.path / ARCHIVE if name in self._members() else self.path
        return self._loose(name) or place / name

    def content(self, name: str) -> bytes:
        """Return the uncompressed content of a file."""
        loose = self._loose(name)
        if loose is None and (found := self._members().get(name)) is not None:
            return found
        return unpacked(loose or self.path / name)

    def read_json(self, name: str) -> Any:
        """Return the content of a JSON file."""
        return _parsed(self.content(name), lambda: self.file(name))

    def write_json(self, name: str, data: Any) -> Path:
        """Write a JSON file atomically and return its path."""
        path = self.path / name
        write_atomically(path, data)
        path.with_name(f"{path.name}.gz").unlink(missing_ok=True)
        return path

    def names(self, pattern: str) -> list[str]:
        """Return the sorted names of the files that match a regular expression."""
        matches, names = re.compile(pattern).fullmatch, set(self._members())
        for folder, _, files in os.walk(self.path / pattern.partition("/")[0]):
            place = Path(folder).relative_to(self.path).as_posix()
            loose = (file for file in files if not file.startswith("."))
            names |= {f"{place}/{file}".removesuffix(".gz") for file in loose}
        return sorted(filter(matches, names))

    def set_aside(self, name: str) -> Path:
        """Rename a loose file to ``….damaged`` and return its new path."""
        path = self._loose(name)
        if path is None:
            where = str(self.file(name))
            raise RecordError("is inside an archive and cannot be renamed", where=where)
        try:
            return path.replace(path.with_name(f"{path.name}.damaged"))
        except OSError as error:
            raise RecordError(f"cannot be set aside ({error})", where=str(path)) from error

    def pack(self, target: Path, names: Iterable[str]) -> Path:
        """Write an archive of these files into the folder `target`."""
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:xz", preset=6) as archive:
            for name in sorted(names):
                content = self.content(name)
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
        path = target / ARCHIVE
        write_bytes_atomically(path, buffer.getvalue(), hint=_ELSEWHERE)
        return path

    def _loose(self, name: str) -> Path | None:
        path = self.path / name
        for found in (path, path.with_name(f"{path.name}.gz")):
            if os.path.lexists(found):
                return found
        return None

    def _members(self) -> Mapping[str, bytes]:
        with contextlib.suppress(OSError):
            state = (path := self.path / ARCHIVE).stat()
            return _members(path, state.st_mtime_ns, state.st_size)
        return {}


@functools.lru_cache(maxsize=32)
def _members(path: Path, changed: int, size: int) -> Mapping[str, bytes]:
    """Return the content of an archive by name; read once while the file stays the same."""
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(path, mode="r:xz") as archive:
            for entry in archive:
                if entry.isfile() and (file := archive.extractfile(entry)) is not None:
                    found[entry.name] = file.read()
    except (OSError, EOFError, tarfile.TarError, lzma.LZMAError) as error:
        hint = "restore it from a backup or from version control"
        raise RecordError(f"cannot be read ({error})", where=str(path), hint=hint) from error
    return found


def unpacked(path: Path, hint: str = _RERUN) -> bytes:
    """Return the content of a file, compressed or not."""
    try:
        raw = path.read_bytes()
        return gzip.decompress(raw) if path.suffix == ".gz" else raw
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, error, hint) from error


def _parsed(raw: bytes, file: Callable[[], Path]) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise _unreadable(file(), error) from error


def _unreadable(path: Path, error: Exception, hint: str = _RERUN) -> RecordError:
    return RecordError(f"cannot be read ({error})", where=str(path), hint=hint)
