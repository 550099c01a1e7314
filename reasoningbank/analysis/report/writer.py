"""The page: a template, with every part written one after another into one file.

Trials are read once and written as they are read, so a run of any size needs little memory. The
page may load nothing: its policy allows its own two scripts, by their hashes, and no address.
"""

from __future__ import annotations

import base64
import hashlib
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import IO, Any

from reasoningbank.analysis.memory_records import MemoryRecords
from reasoningbank.analysis.report.chunks import PayloadPool, chunk
from reasoningbank.analysis.report.drawings import figures_view
from reasoningbank.analysis.report.index import TrialIndex
from reasoningbank.analysis.report.markup import Html, element, escaped
from reasoningbank.analysis.report.memory import Bank, memory_view, read_bank
from reasoningbank.analysis.report.overview import Damaged, overview
from reasoningbank.analysis.summary import summarise_run
from reasoningbank.errors import RecordError, UsageError
from reasoningbank.experiment import RunFolder, TrialRecord

__all__ = ["Report", "write_report"]

#: The page's script, one idea a file, in the order in which they need each other.
SCRIPTS = (
    "dom", "highlight", "store", "marks", "trials", "matrix", "values", "evidence", "events",
    "trial", "memory", "page",
)  # fmt: skip

#: Fields of a record that the index has, or that are put differently.
_INDEXED = frozenset({"key", "question", "complexity", "form", "group", "trajectory"})

_PLACE = re.compile(r"\{\{(\w+)\}\}")


@dataclass(frozen=True)
class Report:
    """A page that was written.

    Attributes:
        path: The file.
        size: Its bytes.
        trials: Trials in it.
        damaged: Files of the run that could not be read; the page names them.
    """

    path: Path
    size: int
    trials: int
    damaged: tuple[Path, ...]


def write_report(folder: RunFolder, out: Path) -> Report:
    """Write one self-contained HTML page of a run.

    Trial files and memory snapshots that cannot be read are left out, and named in the page.

    Args:
        folder: The run.
        out: The file to write; an older one is replaced once the new one is whole.

    Raises:
        UsageError: If the folder holds no run.
        RecordError: If the manifest cannot be read, or the page cannot be written.
    """
    manifest = folder.manifest
    if manifest is None:
        hint = "give a folder with manifest.json"
        raise UsageError("holds no run", where=str(folder.path), hint=hint)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=".report-") as name:
            draft = Path(name) / "page.html"
            trials, damaged = _write(folder, manifest, draft, Path(name) / "data")
            draft.replace(out)
        return Report(out, out.stat().st_size, trials, tuple(damaged))
    except OSError as error:
        reason = error.strerror or str(error)
        hint = "free space or choose another file with --out"
        raise RecordError(f"cannot be written ({reason})", where=str(out), hint=hint) from error


def _write(
    folder: RunFolder, manifest: Mapping[str, Any], draft: Path, data: Path
) -> tuple[int, list[Path]]:
    experiment: Mapping[str, Any] = manifest.get("experiment") or {}
    index = TrialIndex(str(arm.get("name", "")) for arm in experiment.get("arms") or ())
    damaged: list[Damaged] = []
    with data.open("w", encoding="ascii") as file:
        written = _trials(folder, index, damaged, file)
        memory = MemoryRecords.read(folder)
        summary = summarise_run(folder, written, memory)
    bank = read_bank(folder, memory, damaged)
    title = str(experiment.get("title") or experiment.get("name") or folder.path.name)
    early, script = _script("early"), "\n".join(_script(name) for name in SCRIPTS)
    drawings = figures_view(folder)
    parts = {
        "title": escaped(title),
        "version": escaped(version("reasoningbank")),
        "policy": escaped(_policy(early, script)),
        "style": _part("page.css"),
        "early": early,
        "script": script,
        "overview": overview(title, manifest, summary, damaged, len(index)),
        "figures": drawings,
        "figures_tab": element("a", "Figures", href="#figures") if drawings else Html(),
        "memory": memory_view(bank),
        "memory_tab": element("a", "Memory", href="#memory") if bank.items else Html(),
        "index": chunk("index", index.to_json()),
    }
    with draft.open("w", encoding="utf-8") as page:
        for text in _filled(_part("page.html"), parts, data, bank):
            page.write(text)
    return len(index), [item.path for item in damaged]


def _trials(
    folder: RunFolder, index: TrialIndex, damaged: list[Damaged], file: IO[str]
) -> Iterator[TrialRecord]:
    """Yield the trials once, and write each one's part of the page on the way."""
    pool = PayloadPool(file.write)
    for path, found in folder.read_all():
        if isinstance(found, RecordError):
            damaged.append(Damaged(path.relative_to(folder.path), found.what))
            continue
        number = index.add(found)
        payloads = pool.place_all(found.trajectory.payloads)
        file.write(chunk(f"trial-{number}", _whole(found, payloads)))
        yield found
    pool.flush()


def _whole(record: TrialRecord, payloads: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the reader of one trial needs, long texts as their places."""
    # The record's fields as they are: copying them deeply would take longer than all the rest.
    fields = {k: v for k, v in vars(record).items() if k not in _INDEXED}
    whole = {k: vars(v) if is_dataclass(v) else v for k, v in fields.items()}
    return {
        **whole,
        "file": record.key.path,
        "events": [vars(event) for event in record.trajectory.events],
        "payloads": payloads,
    }


def _filled(template: str, parts: Mapping[str, str], data: Path, bank: Bank) -> Iterator[str]:
    for number, piece in enumerate(_PLACE.split(template)):
        if number % 2 == 0:
            yield piece
        elif piece == "data":
            if bank.items:
                yield chunk("memory", bank.items)
            with data.open(encoding="ascii") as file:
                while block := file.read(1 << 20):
                    yield block
        else:
            yield parts[piece]


def _policy(*scripts: str) -> str:
    """Return a policy under which the page runs its own scripts and can ask no network."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'"
        for s in scripts
    )
    # Figures carry style attributes, which have no hash; without addresses they can do no harm.
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _script(name: str) -> str:
    return _part(f"{name}.js")


def _part(name: str) -> str:
    return files("reasoningbank.analysis.report").joinpath("page", name).read_text("utf-8")
