"""Answers of public endpoints on disk, so that a repeated run sends no query twice."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from reasoningbank.cache import DiskCache
from reasoningbank.sparql.results import BooleanResult, GraphResult, Result, TableResult
from reasoningbank.spill import is_on_disk


class AnswerCache:
    """Results by endpoint, query and bounds; equal content is stored once."""

    def __init__(self, file: Path | DiskCache) -> None:
        self._disk = file if isinstance(file, DiskCache) else DiskCache(file, required=True)

    @staticmethod
    def shared(file: Path) -> AnswerCache:
        """Return the cache of a file, which is opened once per process."""
        return AnswerCache(DiskCache.shared(file, required=True))

    def close(self) -> None:
        """Close the file."""
        self._disk.close()

    def get(self, key: str, *, max_age_s: float, source: str = "") -> Result | None:
        """Return the result under a key, if it is younger than `max_age_s` seconds."""
        entry = self._disk.get([key]).get(key)
        if entry is None:
            return None
        try:
            head: dict[str, Any] = json.loads(entry)
            if head["at"] <= time.time() - max_age_s:
                return None
            body = self._disk.get([head["content"]]).get(head["content"])
            return None if body is None else _read(head, body, source)
        except (ValueError, KeyError, TypeError, OSError, pa.ArrowException):
            return None

    def put(self, key: str, result: Result) -> None:
        """Store a result under a key, unless it is too large for memory."""
        if not isinstance(result, BooleanResult) and is_on_disk(result.table):
            return
        head, body = _written(result)
        content = hashlib.sha256(body).hexdigest()
        head |= {"content": content, "at": time.time()}
        entries = {key: json.dumps(head).encode()}
        if not self._disk.get([content]):
            entries[content] = body
        self._disk.put(entries)

    @staticmethod
    def key_of(
        address: str,
        query: str,
        form: str,
        rows: int,
        max_bytes: int,
        headers: Mapping[str, str] | None = None,
    ) -> str:
        """Return the key of a query as sent, with the bounds of its result."""
        text = json.dumps([address, query, form, rows, max_bytes, sorted((headers or {}).items())])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _written(result: Result) -> tuple[dict[str, Any], bytes]:
    if isinstance(result, BooleanResult):
        return {"form": "boolean"}, b"1" if result.value else b"0"
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, result.table.schema, options=options) as writer:
        writer.write_table(result.table)
    form = "graph" if isinstance(result, GraphResult) else "table"
    head = {"form": form, "n_rows": result.n_rows, "truncated": result.truncated}
    return head, sink.getvalue().to_pybytes()


def _read(head: Mapping[str, Any], body: bytes, source: str) -> Result:
    if head["form"] == "boolean":
        return BooleanResult(body == b"1", source=source)
    table = pa.ipc.open_stream(body).read_all()
    kind = GraphResult if head["form"] == "graph" else TableResult
    return kind(table, head["n_rows"], head["truncated"], source=source)
