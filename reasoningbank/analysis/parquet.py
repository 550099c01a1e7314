"""Frames as Parquet files, one each, for pandas, DuckDB, polars and whatever else reads them."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from reasoningbank.analysis.columns import COLUMNS
from reasoningbank.analysis.frames import Frames
from reasoningbank.errors import RecordError

__all__ = ["MANIFESTS", "write_parquet"]

#: Key of the schema's metadata that holds the manifests, by run, as JSON.
MANIFESTS = b"reasoningbank.manifests"


def write_parquet(frames: Frames, folder: Path) -> dict[str, Path]:
    """Write each frame into ``folder/<frame>.parquet``, also where it is empty.

    Every column carries its meaning (field metadata ``description``), every file the manifests.
    Files are whole or not there; older ones of the same name are replaced.

    Args:
        frames: What `load` returned.
        folder: Where the files go; made if it is missing.

    Returns:
        The files by frame.

    Raises:
        RecordError: If a file cannot be written.
    """
    manifests = json.dumps(frames.manifests, ensure_ascii=False).encode()
    written = {}
    for name, frame in frames.items():
        path = folder / f"{name}.parquet"
        _write(_table(name, frame, manifests), path)
        written[name] = path
    return written


def _table(name: str, frame: pd.DataFrame, manifests: bytes) -> pa.Table:
    table = pa.Table.from_pandas(frame, preserve_index=False)
    meanings = {column.name: column.meaning for column in COLUMNS[name]}
    fields = [
        # Readers differ over the wide strings that pandas makes; all know the plain ones.
        pa.field(f.name, pa.string() if pa.types.is_large_string(f.type) else f.type)
        .with_metadata({"description": meanings[f.name]})
        for f in table.schema
    ]  # fmt: skip
    metadata = {**(table.schema.metadata or {}), MANIFESTS: manifests}
    return table.cast(pa.schema(fields, metadata=metadata))


def _write(table: pa.Table, path: Path) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            pq.write_table(table, file, compression="zstd")
        temporary.replace(path)
    except OSError as error:
        reason = error.strerror or str(error)
        hint = "free space or choose another folder with --out"
        raise RecordError(f"cannot be written ({reason})", where=str(path), hint=hint) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
