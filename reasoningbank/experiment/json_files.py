"""JSON files that are there whole or not at all."""

from __future__ import annotations

import gzip
import json
import os
import threading
import zlib
from pathlib import Path
from typing import Any

from reasoningbank.errors import RecordError

__all__ = ["read_json", "write_atomically"]


def write_atomically(path: Path, data: Any, *, durable: bool = True) -> None:
    """Write JSON so that a reader sees the old file or the new one, never a part.

    Args:
        path: The file; its folder is made.
        data: JSON-able data.
        durable: Whether it has reached the disk, and not only the system, when this returns.

    Raises:
        RecordError: If the disk is full or the folder cannot be written.
    """
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Not by tempfile: what that makes, no colleague on a shared disk may read.
        temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
        # Models and agents' code write lone surrogates; a trial is not lost for one.
        with temporary.open("w", encoding="utf-8", errors="surrogatepass") as file:
            json.dump(data, file, ensure_ascii=False, indent=1)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
        temporary = None
    except OSError as error:
        reason = error.strerror or str(error)
        hint = "free space or choose another folder with --out"
        raise RecordError(f"cannot be written ({reason})", where=str(path), hint=hint) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def read_json(path: Path) -> Any:
    """Return what a JSON file holds, compressed or not.

    Raises:
        RecordError: If the file is missing or damaged.
    """
    try:
        raw = path.read_bytes()
        return json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    except (OSError, ValueError, EOFError, zlib.error) as error:
        hint = "delete the file and run the same command again"
        raise RecordError(f"cannot be read ({error})", where=str(path), hint=hint) from error
