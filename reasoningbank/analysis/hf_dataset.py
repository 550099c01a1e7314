"""Tasks and trials as a folder that `datasets.load_dataset` reads: Parquet files and a card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from reasoningbank.cache import write_bytes_atomically
from reasoningbank.corpus import Pack, Task, load_pack, load_shacl_tasks, split_tasks
from reasoningbank.errors import UsageError

#: The splits of a corpus, as the Hub names them.
SPLITS = {"train": "train", "dev": "validation", "test": "test"}
_RENAMED = {"query": "question", "expected_sparql": "sparql", "corpus": "pack"}
_LEFT_OUT = {"level", "source_file", "split", "resource"}
#: The columns by the fields of a task: question and gold query have their usual names.
_COLUMNS = {f.name: _RENAMED.get(f.name, f.name) for f in fields(Task) if f.name not in _LEFT_OUT}
_TASKS = """## Tasks

A question in natural language (`question`) and its gold query (`sparql`) for an `endpoint`. Tasks
of a `group` share a query and are in one split. Rows of a result are a set unless `bag`; their
order counts only if `ordered`."""
_TRIALS = """## Trials

A row is the attempt of an arm (a system under test) at a task, judged by executing its query."""
_HINT = "free space or choose another folder with --out"
_LISTS = pa.list_(pa.string())
_TYPES = {"keywords": _LISTS, "features": _LISTS, "federates_with": _LISTS, "bag": pa.bool_(),
          "ordered": pa.bool_()}  # fmt: skip


@dataclass(frozen=True)
class WrittenSplit:
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
    if runs:
        # pandas is an extra, and takes half a second to import.
        from reasoningbank.analysis.frames import load, write_parquet

        frames = load(runs)
        path = write_parquet(frames, folder, only=["trials"])["trials"]
        written.append(WrittenSplit("trials", "train", len(frames.trials), path))
    card = _card(folder, loaded, runs, written)
    write_bytes_atomically(folder / "README.md", card.encode(), durable=False, hint=_HINT)
    return written


def _card(
    folder: Path, packs: Sequence[Pack], runs: Sequence[Path], written: Sequence[WrittenSplit]
) -> str:
    """Return the card: what the Hub reads, and what a reader wants to know."""
    licences = dict.fromkeys(p.licence.split()[0].lower() for p in packs if p.licence)
    head = ["license:", *(f"- {one}" for one in licences)] if licences else []
    languages = dict.fromkeys(language for pack in packs for language in pack.languages)
    head += ["language:", *(f"- {one}" for one in languages)] if languages else []
    head += ["task_categories:", "- question-answering", "tags:", "- sparql", "- knowledge-graph"]
    head.append("configs:")
    for config in dict.fromkeys(one.config for one in written):
        head += [f"- config_name: {config}", "  data_files:"]
        for one in (each for each in written if each.config == config):
            path = one.path.relative_to(folder).as_posix()
            head += [f"  - split: {one.split}", f"    path: {path}"]
    title = ", ".join([*(pack.title or pack.key for pack in packs), *(run.name for run in runs)])
    lines = ["---", *head, "---", f"# {title}", "", "| config | split | rows |", "|---|---|---|"]
    lines += [f"| {one.config} | {one.split} | {one.rows} |" for one in written]
    if packs:
        lines += ["", _TASKS, *(_about(pack) for pack in packs)]
    if runs:
        from reasoningbank.analysis.frames import columns_of

        lines += ["", _TRIALS, "", "| column | meaning |", "|---|---|"]
        lines += [f"| `{column.name}` | {column.meaning} |" for column in columns_of("trials")]
    return "\n".join(lines) + "\n"


def _about(pack: Pack) -> str:
    licence = pack.licence or "not stated"
    about = f"\n**{pack.key}**: {pack.description or pack.title} Licence: {licence}."
    for source in pack.sources:
        named = (str(source.get(key, "")) for key in ("what", "package", "version", "licence"))
        about += f"\n- {'; '.join(filter(None, named))}"
    return about
