"""Slices of results of growing size, in memory and on disk."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.measure import Row, median_seconds
from reasoningbank import EndpointConfig, SPARQLTools
from reasoningbank.refs import RefStore
from reasoningbank.sparql import TableResult
from reasoningbank.spill import GrowingTable

__all__ = ["slices"]

#: A megabyte of response, as a result arrives.
PER_BLOCK = 10_000


def slices(sizes: tuple[int, ...], repeats: int) -> list[Row]:
    """Take 50 rows from the middle of results of growing size, in memory and on disk."""
    rows = []
    for place, memory_bytes in (("in memory", 1 << 40), ("on disk", 0)):
        taken = {size: _slice_seconds(size, memory_bytes, repeats) for size in sizes}
        least = sizes[0]
        rows += [
            Row(
                f"50 rows from the middle of {size:,}, {place}",
                "ms",
                taken[size] * 1000,
                taken[least] * 1000,
                f"the same of {least:,} rows",
            )
            for size in sizes[1:]
        ]
    return rows


def _slice_seconds(size: int, memory_bytes: int, repeats: int) -> float:
    with RefStore(1 << 40) as store:
        table = _table(size, memory_bytes)
        result = TableResult(table, size, source="generated")
        ref = store.put(result, dtype="results", rows=size, sz=0, source="generated")
        if (store.spilled_bytes == 0) != (memory_bytes > 0):
            raise AssertionError("the rows are not where they should be")
        # Nothing is asked of the endpoint: slices come from the store alone.
        tools = SPARQLTools(EndpointConfig("http://127.0.0.1:9/"), store=store)
        middle = size // 2
        found = tools.sparql_slice(ref, middle, middle + 50)
        if (len(found), found[0]["mass"]) != (50, middle):
            raise AssertionError(f"another slice than asked for: {found[:1]}")
        return median_seconds(lambda: tools.sparql_slice(ref, middle, middle + 50), repeats)


def _table(size: int, memory_bytes: int) -> pa.Table:
    first = _block(0)
    with GrowingTable(first.schema, memory_bytes=memory_bytes) as growing:
        for start in range(0, size, PER_BLOCK):
            growing.add(_block(start))
        return growing.finish()


def _block(start: int) -> pa.Table:
    numbers = pc.cast(pa.array(range(start, start + PER_BLOCK)), pa.string())

    def column(before: str, after: str) -> pa.Array:
        return pc.binary_join_element_wise(before, numbers, after, "")

    return pa.table(
        {
            "item": column("<http://e/", ">"),
            "label": column('"protein number ', ' of the sample"@en'),
            "mass": numbers,
        }
    )
