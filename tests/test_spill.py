"""Tables on disk leave nothing behind, however a process ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from reasoningbank.spill import GrowingTable, is_on_disk, to_disk

BLOCK = pa.table({"a": ["x", None, "é"], "b": ["1", "2", "3"]})

KILLED = """
import os, signal, sys, tempfile
import pyarrow as pa
from reasoningbank.spill import GrowingTable, to_disk
tempfile.tempdir = sys.argv[1]
block = pa.table({"a": ["some text"] * 10_000})
kept = to_disk(block)
growing = GrowingTable(block.schema, memory_bytes=0)
growing.add(block)
print(kept.num_rows, len(os.listdir(sys.argv[1])), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("memory_bytes", [0, 100, 10**6])
@pytest.mark.parametrize("blocks", [0, 1, 7])
def test_a_table_reads_the_same_wherever_it_grew(memory_bytes: int, blocks: int) -> None:
    with GrowingTable(BLOCK.schema, memory_bytes=memory_bytes) as growing:
        for _ in range(blocks):
            growing.add(BLOCK)
        table = growing.finish()
    expected = pa.concat_tables([BLOCK] * blocks) if blocks else BLOCK.slice(0, 0)
    assert table.equals(expected)
    assert is_on_disk(table) == (BLOCK.nbytes * blocks > memory_bytes)


def test_a_part_of_a_table_is_written_without_the_rest() -> None:
    long = pa.table({"a": [f"value {n}" for n in range(10_000)]})
    part = to_disk(long.slice(5_000, 2))
    assert part["a"].to_pylist() == ["value 5000", "value 5001"]
    assert part.get_total_buffer_size() < 1_000


def test_a_killed_process_leaves_no_file(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert (done.returncode, done.stdout.split()) == (-9, ["10000", "0"])
    assert list(tmp_path.iterdir()) == []
