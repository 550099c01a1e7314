"""All that a bank holds at one moment, as JSON lines named by their content."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import itertools
import json
import os
import re
import threading
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from reasoningbank.errors import ReasoningBankError, RecordError, UsageError
from reasoningbank.memory.item import MemoryItem

__all__ = ["Snapshot"]

_NAMED_BY_CONTENT = re.compile(r"([0-9a-f]{16})\.jsonl(\.gz)?")


@dataclass(frozen=True)
class Snapshot:
    """The items of a bank, of every status, by id.

    Attributes:
        items: The items, by id. Banks that hold the same have equal snapshots, in whatever order
            it came in; how it came about, the history, is no part of it.
        hash: Hash of the lines, 16 hexadecimal digits: of all that the items say, rest on and
            count.

    Examples:
        >>> one = MemoryItem("A", "a", "Do a.", "success")
        >>> two = MemoryItem("B", "b", "Do b.", "failure")
        >>> Snapshot.of([one, two]) == Snapshot.of([two, one])
        True
        >>> Snapshot.of([]).hash
        'e3b0c44298fc1c14'
    """

    items: tuple[MemoryItem, ...]
    hash: str = field(init=False)

    def __post_init__(self) -> None:
        items = tuple(sorted(self.items, key=lambda item: item.id))
        for one, next_one in itertools.pairwise(items):
            if one.id == next_one.id:
                raise UsageError(f"the memory item {one.id} is there twice")
        object.__setattr__(self, "items", items)
        object.__setattr__(self, "hash", _hash(self.lines()))

    @classmethod
    def of(cls, items: Iterable[MemoryItem]) -> Snapshot:
        """Return the snapshot of these items.

        Raises:
            UsageError: An item is there twice.
        """
        return cls(tuple(items))

    def lines(self) -> bytes:
        """Return the items as JSON lines, UTF-8."""
        return b"".join(_line(item) for item in self.items)

    def write(self, folder: Path) -> Path:
        """Write ``HASH.jsonl`` into a folder, which is made, unless it is there already.

        Returns:
            The file.

        Raises:
            RecordError: It cannot be written.
        """
        return self.write_file(folder / f"{self.hash}.jsonl")

    def write_file(self, path: Path) -> Path:
        """Write a file of a chosen name, compressed where it ends in ``.gz``; return it.

        A reader sees the whole file or what was there before, never a part.

        Raises:
            RecordError: It cannot be written.
        """
        raw = self.lines()
        # Without a time in it, equal snapshots are equal files.
        data = gzip.compress(raw, mtime=0) if path.suffix == ".gz" else raw
        temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_file() and path.read_bytes() == data:
                return path
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError as error:
            reason = error.strerror or str(error)
            hint = "free space or choose another folder"
            raise RecordError(
                f"cannot be written ({reason})", where=str(path), hint=hint
            ) from error
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
        return path

    @classmethod
    def read(cls, path: Path) -> Snapshot:
        """Read JSON lines, compressed or not, in any order.

        Args:
            path: The file. Where its name is a hash, its content must have it: its items as they
                are written today, or its lines as they were written then.

        Raises:
            RecordError: It cannot be read, or is not what its name says.
            UsageError: A line is no memory item, or an item is there twice; the message names
                the line.
        """
        try:
            raw = path.read_bytes()
        except OSError as error:
            raise _unreadable(error, str(path)) from error
        return cls.parse(raw, name=path.name, where=str(path))

    @classmethod
    def parse(cls, raw: bytes, *, name: str = "", where: str = "") -> Snapshot:
        """Read the content of a file of JSON lines, compressed or not.

        Args:
            raw: The content.
            name: Name of the file; if it is a hash, the content must have it.
            where: What error messages call the file.

        Raises:
            RecordError: If it cannot be read or does not have the hash of its name.
            UsageError: If a line is not a memory item, or an item occurs twice.
        """
        try:
            text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode("utf-8-sig")
        except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
            raise _unreadable(error, where) from error
        items: dict[str, MemoryItem] = {}
        lines: dict[str, bytes] = {}
        # Not splitlines: a title may hold U+2028, which JSON leaves as it is.
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                item = _read_line(line, f"{where}:{number}")
                if item.id in items:
                    raise UsageError(
                        f"the memory item {item.id} is there twice", where=f"{where}:{number}"
                    )
                items[item.id] = item
                lines[item.id] = f"{line.rstrip()}\n".encode()
        snapshot = cls.of(items.values())
        named = _NAMED_BY_CONTENT.fullmatch(name)
        written = b"".join(lines[one] for one in sorted(lines))
        if named and named[1] not in (snapshot.hash, _hash(written)):
            raise RecordError(
                f"was changed or cut: its content is {snapshot.hash}",
                where=where,
                hint="take it from a backup, or rename it if the change was meant",
            )
        return snapshot


def _unreadable(error: Exception, where: str) -> RecordError:
    reason = (isinstance(error, OSError) and error.strerror) or str(error)
    hint = "name a file of JSON lines, as `reasoningbank memory export` writes it"
    return RecordError(f"cannot be read ({reason})", where=where, hint=hint)


def _hash(lines: bytes) -> str:
    return hashlib.sha256(lines).hexdigest()[:16]


def _line(item: MemoryItem) -> bytes:
    text = json.dumps(item.to_json(), ensure_ascii=False, sort_keys=True)
    try:
        return f"{text}\n".encode()
    except UnicodeEncodeError:
        # Models write lone surrogates, which UTF-8 has no form for.
        return f"{json.dumps(item.to_json(), sort_keys=True)}\n".encode()


def _read_line(line: str, where: str) -> MemoryItem:
    try:
        data = json.loads(line)
        if not isinstance(data, dict):
            raise UsageError("is no memory item")
        return MemoryItem.from_json(data)
    except ReasoningBankError as error:
        raise UsageError(str(error), where=where) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"is not JSON ({error})", where=where) from error
