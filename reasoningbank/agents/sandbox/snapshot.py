"""A snapshot of Pyodide's memory, made once a machine, from which sandboxes start.

Starting Pyodide takes 3.7 seconds of processor time, nearly all of it the start of Python. The
memory of a Python that has started, and has run nothing of anybody's, is kept beside Pyodide in
Deno's cache; with it a sandbox starts in 0.4 seconds. Every sandbox is a process of its own all
the same: what is shared is a file that none of them can write or, once code runs, read.
"""

from __future__ import annotations

import hashlib
import logging
import os
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

__all__ = ["memory_snapshot"]

logger = logging.getLogger(__name__)

_SCRIPT = Path(__file__).resolve().parent / "make_snapshot.js"
#: No Python's memory is smaller; what is was cut off.
_LEAST_BYTES = 10_000_000
_MOST_SECONDS = 120
_lock = threading.Lock()


def memory_snapshot(cache: str, command: Sequence[str]) -> Path | None:
    """Return the snapshot's file, made now if it is not there or damaged; None where none can be.

    Args:
        cache: Deno's cache, in which Pyodide is.
        command: What runs a script with the cache, without its name.
    """
    with _lock:
        file = Path(cache) / "reasoningbank" / f"pyodide-{_fingerprint(command)}.snapshot"
        if _is_whole(file):
            return file
        try:
            made = subprocess.run(
                (*command, str(_SCRIPT)),
                env={**os.environ, "NO_COLOR": "1"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=True,
                timeout=_MOST_SECONDS,
            )
            if len(made.stdout) < _LEAST_BYTES:
                raise OSError(f"{len(made.stdout)} bytes are no snapshot")
            _write(file, made.stdout)
            _write(_digest_file(file), hashlib.sha256(made.stdout).hexdigest().encode())
        except (OSError, subprocess.SubprocessError) as error:
            # Sandboxes start without it, ten times slower.
            logger.info("no snapshot of Pyodide can be made: %s", error)
            return None
        return file


def _fingerprint(command: Sequence[str]) -> str:
    """Return what tells snapshots apart: the script, with its Pyodide, and Deno itself."""
    deno = Path(command[0]).stat()
    parts = (_SCRIPT.read_text(encoding="utf-8"), command[0], str(deno.st_size))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _is_whole(file: Path) -> bool:
    try:
        with file.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
        return digest == _digest_file(file).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return False


def _digest_file(file: Path) -> Path:
    return file.with_suffix(".sha256")


def _write(file: Path, content: bytes) -> None:
    file.parent.mkdir(exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=file.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(content)
        Path(temporary).replace(file)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
