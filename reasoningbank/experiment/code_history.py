"""Which code a run was made with: hashes of what decides its results, and when they changed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["CodeChange", "code_changes", "code_hashes", "hash_files", "with_code"]

#: Rooms and files whose code decides what is asked, shown, remembered and believed.
DECIDING = (
    "agents",
    "corpus",
    "experiment/attempting.py",
    "experiment/learning",
    "experiment/lm_judging.py",
    "experiment/memory_config.py",
    "experiment/plan.py",
    "experiment/recall.py",
    "experiment/sampling.py",
    "experiment/trial.py",
    "experiment/world.py",
    "judge",
    "lm",
    "memory",
    "nl2sparql",
    "retrieval",
    "sparql",
    "tools",
)


class CodeChange(NamedTuple):
    """A run went on with other code.

    Attributes:
        time: When it went on, ISO 8601 in UTC; trials that began later are by the new code.
        rooms: What differs from the code just before.
    """

    time: str
    rooms: tuple[str, ...]


def code_hashes() -> dict[str, str]:
    """Return the hash of each room of the package that decides results, 16 hexadecimal digits."""
    root = Path(__file__).parent.parent
    return {
        room: hash_files([path] if path.is_file() else path.rglob("*.py"))
        for room, path in ((room, root / room) for room in DECIDING)
    }


def with_code(manifest: dict[str, Any], code: Mapping[str, str]) -> dict[str, Any]:
    """Return a manifest that knows which code its run goes on with; the same if it knew.

    The code of the beginning stays under ``code``; each other that the run went on with is added to
    ``code_history``. A room that the manifest has no hash of is not known to have changed.

    Args:
        manifest: What is on disk.
        code: The hashes of now; empty where they decide nothing.

    Examples:
        >>> begun = {"code": {"memory": "1"}}
        >>> with_code(begun, {"memory": "1", "tools": "5"}) is begun
        True
        >>> [entry["code"] for entry in with_code(begun, {"memory": "2"})["code_history"]]
        [{'memory': '2'}]
    """
    states = _states(manifest)
    if not states or not _differs(states[-1][1], code):
        return manifest
    now = datetime.now(UTC).isoformat(timespec="seconds")
    history = [{"time": time, "code": dict(known)} for time, known in states[1:]]
    return {**manifest, "code_history": [*history, {"time": now, "code": dict(code)}]}


def code_changes(manifest: Mapping[str, Any]) -> tuple[CodeChange, ...]:
    """Return when a run went on with other code, oldest first.

    Examples:
        >>> code_changes({"code": {"memory": "1", "lm": "4"}, "code_history": [
        ...     {"time": "2026-01-02T03:04:05+00:00", "code": {"memory": "2", "lm": "4"}}]})
        (CodeChange(time='2026-01-02T03:04:05+00:00', rooms=('memory',)),)
        >>> code_changes({})
        ()
    """
    states = _states(manifest)
    return tuple(
        CodeChange(time, _differs(before, after)) for (_, before), (time, after) in pairwise(states)
    )


def hash_files(paths: Iterable[Path]) -> str:
    """Return a hash of the contents of files, 16 hexadecimal digits; order does not matter."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def _states(manifest: Mapping[str, Any]) -> list[tuple[str, Mapping[str, str]]]:
    """Return each code that a run was made with, by the time from which on; none if not known."""
    begun = manifest.get("code")
    if not begun:
        return []
    history = manifest.get("code_history") or ()
    return [(str(manifest.get("created", "")), begun), *((e["time"], e["code"]) for e in history)]


def _differs(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(room for room, hashed in after.items() if before.get(room) not in (None, hashed))
