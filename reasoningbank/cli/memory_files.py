"""Files that `reasoningbank memory export` writes."""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from reasoningbank.cli.memory_sources import is_bank
from reasoningbank.errors import RecordError, UsageError
from reasoningbank.memory import MemoryItem, Snapshot
from reasoningbank.memory.rdf import rdf_name, to_rdf

__all__ = ["FormatName", "checked_target", "format_for", "save_items", "written"]

#: How the names of banks end.
BANK_ENDINGS = (".sqlite", ".db")

FormatName = Literal["jsonl", "turtle", "nquads"]


def format_for(target: Path, wanted: FormatName | None) -> FormatName:
    """Return the format to write a file in: what its name tells, or else what is wanted.

    Raises:
        UsageError: Its name tells another format than the one wanted, or none where none is.
    """
    ending = Path(target.name.removesuffix(".gz")).suffix
    told = "jsonl" if ending == ".jsonl" else rdf_name(target)
    if ending in BANK_ENDINGS:
        hint = "end it in .jsonl, .ttl or .nq; `reasoningbank memory import` makes a bank"
        raise UsageError(
            "is the name of a bank, which is not exported", where=str(target), hint=hint
        )
    if told and wanted and told != wanted:
        hint = "leave --format out, or name another file"
        raise UsageError(f"its name tells {told}, not {wanted}", where=str(target), hint=hint)
    name = wanted or told
    if name is None:
        hint = "end it in .jsonl, .jsonl.gz, .ttl or .nq, or give --format"
        raise UsageError("its name tells no format", where=str(target), hint=hint)
    return name


def checked_target(target: Path, source: Path) -> Path:
    """Return a file that may be written over, or made.

    Args:
        target: The file.
        source: Where the items come from: a bank, a file of items, or a run's folder.

    Raises:
        UsageError: It would take the place of the source, of a file of the run, or of any other
            database; or its folder is not there.
    """
    hint = "name another file"
    if not target.parent.is_dir():
        raise UsageError(
            f"there is no folder {target.parent}", where=str(target), hint="make it first"
        )
    if target.is_dir():
        raise UsageError("is a folder", where=str(target), hint="name a file")
    if target.exists():
        if target.samefile(source):
            raise UsageError("is what is exported itself", where=str(target), hint=hint)
        if source.resolve() in target.resolve().parents:
            raise UsageError("is a file of the run itself", where=str(target), hint=hint)
        if is_bank(target):
            raise UsageError("is a bank or another database", where=str(target), hint=hint)
    return target


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
        temporary.write_bytes(data)
        temporary.replace(target)
    except OSError as error:
        reason = error.strerror or str(error)
        hint = "free space or choose another file"
        raise RecordError(f"cannot be written ({reason})", where=str(target), hint=hint) from error
    finally:
        temporary.unlink(missing_ok=True)
