"""Files that `reasoningbank memory export` writes."""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from reasoningbank.errors import RecordError, UsageError
from reasoningbank.memory import MemoryItem, Snapshot
from reasoningbank.memory.rdf import rdf_name, to_rdf

__all__ = ["FormatName", "format_of", "save_items", "written"]

FormatName = Literal["jsonl", "turtle", "nquads"]


def format_of(target: Path) -> FormatName:
    """Return the format that a file's name tells.

    Raises:
        UsageError: It tells none.
    """
    if Path(target.name.removesuffix(".gz")).suffix == ".jsonl":
        return "jsonl"
    name = rdf_name(target)
    if name is None:
        mend = "end it in .jsonl, .jsonl.gz, .ttl or .nq, or give --format"
        raise UsageError("its name tells no format", where=str(target), mend=mend)
    return name


def written(items: Sequence[MemoryItem], name: FormatName) -> bytes:
    """Return items in a format."""
    return Snapshot.of(items).lines() if name == "jsonl" else to_rdf(items, name)


def save_items(target: Path, items: Sequence[MemoryItem], name: FormatName) -> None:
    """Write items to a file, whole or not at all; compressed where its name ends in ``.gz``.

    Raises:
        UsageError: They cannot be written in that format.
        RecordError: The file cannot be written.
    """
    raw = written(items, name)
    data = gzip.compress(raw, mtime=0) if target.suffix == ".gz" else raw
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(data)
        temporary.replace(target)
    except OSError as error:
        reason = error.strerror or str(error)
        mend = "free space or choose another file"
        raise RecordError(f"cannot be written ({reason})", where=str(target), mend=mend) from error
    finally:
        temporary.unlink(missing_ok=True)
