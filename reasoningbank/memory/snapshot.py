"""Snapshots: the items of a bank at one moment, as JSON lines named by their content."""

from __future__ import annotations

import gzip
import hashlib
import itertools
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from reasoningbank.cache import write_bytes_atomically
from reasoningbank.errors import ReasoningBankError, RecordError, UsageError
from reasoningbank.memory.item import MemoryItem

_HASH_NAME = re.compile(r"([0-9a-f]{16})\.jsonl(\.gz)?")


@dataclass(frozen=True)
class Snapshot:
    """The items of a bank, of every status, by id."""

    #: The items, by id. Banks with the same items have equal snapshots; the history is not part of
    #: it.
    items: tuple[MemoryItem, ...]

    @classmethod
    def of(cls, items: Iterable[MemoryItem]) -> Snapshot:
        """Return the snapshot of these items."""
        ordered = tuple(sorted(items, key=lambda item: item.id))
        for one, following in itertools.pairwise(ordered):
            if one.id == following.id:
                raise _twice(one.id)
        return cls(ordered)

    @cached_property
    def hash(self) -> str:
        """Hash of the lines, 16 hexadecimal digits: content, evidence and counts."""
        return _hash(self.lines())

    def lines(self) -> bytes:
        """Return the items as JSON lines, UTF-8."""
        return b"".join(f"{item.json_text(sort_keys=True)}\n".encode() for item in self.items)

    def write(self, folder: Path) -> Path:
        """Write ``HASH.jsonl`` into a folder, which is created if missing; return the file."""
        path, data = folder / f"{self.hash}.jsonl", self.lines()
        if not path.is_file() or path.read_bytes() != data:
            write_bytes_atomically(path, data, code="snapshot-unwritable")
        return path

    @classmethod
    def read(cls, path: Path) -> Snapshot:
        """Read JSON lines, compressed or not, in any order."""
        try:
            return cls.parse(path.read_bytes(), name=path.name, where=str(path))
        except OSError as error:
            raise _unreadable(error, str(path)) from error

    @classmethod
    def parse(cls, raw: bytes, *, name: str = "", where: str = "") -> Snapshot:
        """Read the content of such a file, raising as `read`; `where` is what errors call it."""
        try:
            text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode("utf-8-sig")
        except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
            raise _unreadable(error, where) from error
        read: dict[str, tuple[MemoryItem, str]] = {}
        # Not splitlines: a title may contain U+2028, which JSON does not escape.
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                item = _read_line(line, f"{where}:{number}")
                if item.id in read:
                    raise _twice(item.id, f"{where}:{number}")
                read[item.id] = item, f"{line.rstrip()}\n"
        snapshot = cls.of(item for item, _ in read.values())
        named = _HASH_NAME.fullmatch(name)
        written = "".join(line for _, (_, line) in sorted(read.items())).encode()
        if named and named[1] not in (snapshot.hash, _hash(written)):
            raise RecordError(
                f"was changed or truncated: its content hash is {snapshot.hash}",
                where=where,
                hint="restore it from a backup, or rename it if the change was intended",
                code="snapshot-changed",
                hash=snapshot.hash,
            )
        return snapshot


def _unreadable(error: Exception, where: str) -> RecordError:
    return RecordError(
        f"cannot be read ({(isinstance(error, OSError) and error.strerror) or error})",
        where=where,
        hint="name a file of JSON lines, as `reasoningbank memory export` writes it",
        code="snapshot-unreadable",
    )


def _twice(item_id: str, where: str = "") -> UsageError:
    what = f"the memory item {item_id} occurs twice"
    return UsageError(what, where=where, code="duplicate-item", item=item_id)


def _hash(lines: bytes) -> str:
    return hashlib.sha256(lines).hexdigest()[:16]


def _read_line(line: str, where: str) -> MemoryItem:
    try:
        data = json.loads(line)
        if not isinstance(data, dict):
            raise UsageError("not a memory item", code="bad-item")
        return MemoryItem.from_json(data)
    except ReasoningBankError as error:
        raise error.at(where) from error.__cause__
    except (ValueError, RecursionError) as error:
        raise UsageError(f"is not JSON ({error})", where=where, code="not-json") from error


@dataclass(frozen=True)
class Difference:
    """The difference of two banks, by the ids of items; see `fields_changed`."""

    added: tuple[MemoryItem, ...]
    removed: tuple[MemoryItem, ...]
    changed: tuple[tuple[MemoryItem, dict[str, tuple[Any, Any]]], ...]


def difference(before: Iterable[MemoryItem], after: Iterable[MemoryItem]) -> Difference:
    first = {item.id: item for item in before}
    second = {item.id: item for item in after}
    common = [second[one] for one in sorted(first.keys() & second)]
    compared = [(item, fields_changed(first[item.id], item)) for item in common]
    return Difference(
        added=tuple(second[one] for one in sorted(second.keys() - first)),
        removed=tuple(first[one] for one in sorted(first.keys() - second)),
        changed=tuple((item, changed) for item, changed in compared if changed),
    )


def fields_changed(before: MemoryItem, after: MemoryItem) -> dict[str, tuple[Any, Any]]:
    """Return the differences of two states of an item, before and after, by name."""
    first, second = (
        {"query": "", **item.to_json(), **asdict(item.counters)} for item in (before, after)
    )
    for left_out in ("id", "provenance", "evidence", "counters"):
        del first[left_out]
    changed = {name: (was, second[name]) for name, was in first.items() if was != second[name]}
    # Without times and order: evidence is kept in the order of its times.
    origins = [Counter(replace(one, time="") for one in item.origins) for item in (before, after)]
    if origins[0] != origins[1]:
        changed["evidence"] = (len(before.origins), len(after.origins))
    return changed
