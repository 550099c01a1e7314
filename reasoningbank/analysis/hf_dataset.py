"""Tasks and trials as a folder that `datasets.load_dataset` reads: Parquet files and a card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from jinja2 import Template

from reasoningbank.cache import write_bytes_atomically
from reasoningbank.corpus import Task, load_pack, load_shacl_tasks, split_tasks
from reasoningbank.errors import UsageError

if TYPE_CHECKING:
    from reasoningbank.analysis.frames import Column

#: The splits of a corpus, as the Hub names them.
SPLITS = {"train": "train", "dev": "validation", "test": "test"}
_RENAMED = {"query": "question", "expected_sparql": "sparql", "corpus": "pack"}
_LEFT_OUT = {"level", "source_file", "split", "resource"}
#: The columns by the fields of a task: question and gold query have their usual names.
_COLUMNS = {f.name: _RENAMED.get(f.name, f.name) for f in fields(Task) if f.name not in _LEFT_OUT}
_HINT = "free space or choose another folder with --out"
_LISTS = pa.list_(pa.string())
_TYPES = {"keywords": _LISTS, "features": _LISTS, "federates_with": _LISTS, "bag": pa.bool_(),
          "ordered": pa.bool_()}  # fmt: skip


class WrittenSplit(NamedTuple):
    """One file of the folder."""

    config: str
    split: str
    rows: int
    path: Path


def export_dataset(
    folder: Path, packs: Sequence[str] = (), runs: Sequence[Path] = ()
) -> list[WrittenSplit]:
    """Write tasks of packs (config ``tasks``) and trials of runs (config ``trials``).

    Args:
        folder: Created if missing; files of the same names are replaced.
        packs: Names or folders of packs.
        runs: Folders of runs; their trials need pandas.

    Raises:
        UsageError: If nothing is named, or a pack or run is unknown.
        RecordError: If a file cannot be written.
    """
    if not packs and not runs:
        hint = "name a run, or a pack with --pack"
        raise UsageError("nothing to export", hint=hint, code="nothing-to-export")
    card_file = folder / "README.md"
    if card_file.exists() and "configs:" not in card_file.read_text("utf-8", "replace"):
        what, hint = "is no card of a dataset", "choose another folder with --out"
        raise UsageError(what, where=str(card_file), hint=hint, code="not-a-card")
    loaded = [load_pack(name) for name in packs]
    splits: dict[str, list[dict[str, Any]]] = {name: [] for name in SPLITS.values()}
    for pack in loaded:
        tasks = load_shacl_tasks(pack)
        parts = split_tasks(tasks).by_id()
        for task in tasks:
            row = {column: getattr(task, name) for name, column in _COLUMNS.items()}
            splits[SPLITS[parts[task.id]]].append(row)
    written = []
    for split, rows in splits.items():
        if rows:
            path = folder / "tasks" / f"{split}.parquet"
            sink = pa.BufferOutputStream()
            types = [(column, _TYPES.get(name, pa.string())) for name, column in _COLUMNS.items()]
            table = pa.Table.from_pylist(rows, pa.schema(types))
            pq.write_table(table, sink, compression="zstd")
            write_bytes_atomically(path, sink.getvalue().to_pybytes(), durable=False, hint=_HINT)
            written.append(WrittenSplit("tasks", split, len(rows), path))
    columns: tuple[Column, ...] = ()
    if runs:
        # pandas is an extra, and takes half a second to import.
        from reasoningbank.analysis.frames import columns_of, load, write_parquet

        frames = load(runs)
        path = write_parquet(frames, folder, only=["trials"])["trials"]
        written.append(WrittenSplit("trials", "train", len(frames.trials), path))
        columns = columns_of("trials")
    card = Template(
        files("reasoningbank.analysis").joinpath("dataset_card.md").read_text("utf-8"),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    ).render(
        folder=folder,
        packs=loaded,
        written=written,
        columns=columns,
        title=", ".join(
            [*(pack.title or pack.key for pack in loaded), *(run.name for run in runs)]
        ),
        lists={
            "license": {pack.licence.split()[0].lower(): None for pack in loaded if pack.licence},
            "language": dict.fromkeys(language for pack in loaded for language in pack.languages),
            "task_categories": ["question-answering"],
            "tags": ["sparql", "knowledge-graph"],
        },
    )
    write_bytes_atomically(card_file, card.encode(), durable=False, hint=_HINT)
    return written
