"""Hashes of large files, computed once as long as a file stays what it was."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["forget", "known_hash", "remember", "sha256_of"]

_BLOCK = 4 * 1024 * 1024


def sha256_of(path: Path, notes: Path, tell: Callable[[int], None] | None = None) -> str:
    """Return the sha256 of a file.

    Args:
        path: A file that exists.
        notes: Folder that keeps what was computed, for as long as size and time stay the same.
        tell: Called with the bytes read so far.
    """
    known = known_hash(path, notes)
    if known is not None:
        return known
    digest = hashlib.sha256()
    done = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            done += len(block)
            if tell:
                tell(done)
    sha256 = digest.hexdigest()
    remember(path, notes, sha256)
    return sha256


def known_hash(path: Path, notes: Path) -> str | None:
    """Return what was computed for this very state of the file; None if nothing was."""
    try:
        note = json.loads(_note(path, notes).read_text())
        return str(note["sha256"]) if note["stamp"] == _stamp(path) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remember(path: Path, notes: Path, sha256: str) -> None:
    """Keep the hash of the file as it is now."""
    note = _note(path, notes)
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        draft = note.with_name(f"{note.name}.{os.getpid()}")
        draft.write_text(json.dumps({"stamp": _stamp(path), "sha256": sha256}))
        draft.replace(note)
    except OSError:
        pass  # A folder that cannot be written only costs hashing the file again.


def forget(path: Path, notes: Path) -> None:
    """Drop what is kept for the file."""
    _note(path, notes).unlink(missing_ok=True)


def _note(path: Path, notes: Path) -> Path:
    return notes / (hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:24] + ".json")


def _stamp(path: Path) -> dict[str, Any]:
    stat = path.stat()
    return {"path": str(path.resolve()), "size": stat.st_size, "mtime_ns": stat.st_mtime_ns}
