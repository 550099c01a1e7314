"""Runs and memory banks for the page: on disk, going on, and the report of each run."""

from __future__ import annotations

import os
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import quote

from reasoningbank.analysis import RunComparison, compare_runs
from reasoningbank.analysis.report import write_report
from reasoningbank.errors import ReasoningBankError, RecordError, UsageError
from reasoningbank.experiment import RunFolder, TrialKey, TrialRecord, read_state
from reasoningbank.experiment.memory_sources import last_snapshots
from reasoningbank.experiment.storage import ARCHIVE

#: Trials that are read before the page is shown the progress again.
AT_ONCE = 100


def trial_place(key: TrialKey) -> str:
    """Return where a trial is in the report of its run."""
    return "#trial/" + "/".join(quote(str(part), safe="") for part in vars(key).values())


class RunShelf:
    """The runs in folders, or runs themselves, and the memory banks; the first of a name counts."""

    def __init__(self, folders: Sequence[Path], banks: Sequence[Path]) -> None:
        self._folders, self._banks = folders, banks
        self._reports = tempfile.TemporaryDirectory(prefix="reasoningbank-")
        self._written: dict[str, tuple[Any, ...]] = {}
        self._streams: dict[Path, tuple[tuple[int, ...], dict[str, str]]] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        self._reports.cleanup()

    def paths(self) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for folder in self._folders:
            for file in (folder / "manifest.json", *sorted(folder.glob("*/manifest.json"))):
                if file.exists():
                    found.setdefault(file.parent.resolve().name, file.parent)
        return found

    def run(self, name: str) -> RunFolder:
        path = self.paths().get(name)
        if path is None:
            raise UsageError(f"no run {name!r}", hint="go to the list of runs", code="no-run")
        return RunFolder(path)

    def listed(self) -> list[dict[str, Any]]:
        """Return what the list shows of each run, those going on first, then the newest."""
        rows = []
        for name, path in self.paths().items():
            row: dict[str, Any] = {"name": name}
            folder = RunFolder(path)
            try:
                manifest = folder.require_manifest()
                row |= {"experiment": manifest.get("experiment") or {}, "state": read_state(folder)}
                row |= {"created": str(manifest.get("created") or "")[:16].replace("T", " ")}
                row |= {"trials": len(folder.trial_names())}
            except RecordError as error:
                row["problem"] = str(error)
            rows.append(row)
        rows.sort(key=lambda row: str(row.get("created")), reverse=True)
        return sorted(rows, key=lambda row: getattr(row.get("state"), "status", "") != "running")

    def compared(self, first: str, second: str) -> RunComparison:
        """Compare two runs or arms, each written ``RUN`` or ``RUN/ARM``.

        If only one names an arm, it is compared with the arm of that name in the other run.
        """
        if first == second or not (first and second):
            raise UsageError("choose two different runs or arms", code="same-run")
        (run, _, arm), (other, _, against) = first.partition("/"), second.partition("/")
        return compare_runs(
            self.run(run),
            self.run(other),
            arm=arm or against or None,
            against=against or arm or None,
        )

    def report(self, name: str) -> Path:
        """Return the static report of a run, written anew if the run has changed."""
        folder, out = self.run(name), Path(self._reports.name) / f"{name}.html"
        with self._lock:
            # Files are replaced and never changed in place, so that their folders change, too.
            now = (
                folder.path,
                *(Path(each).stat().st_mtime_ns for each, *_ in os.walk(folder.path)),
            )
            if self._written.get(name) != now:
                write_report(folder, out, back="/runs")
                self._written[name] = now
        return out

    def banks(self) -> dict[str, tuple[Path, str]]:
        """Return path and snapshot of each bank: files by name, and ``RUN:ARM.PERMUTATION``."""
        found = {file.name: (file, "") for file in reversed(self._banks)}
        for run, path in self.paths().items():
            places = (path / "memory", path / ARCHIVE)
            seen = tuple(place.stat().st_mtime_ns for place in places if place.exists())
            if seen and self._streams.get(path, ((), {}))[0] != seen:
                # The report of a run says what of it is damaged.
                with suppress(ReasoningBankError):
                    self._streams[path] = seen, last_snapshots(path)
            for name in self._streams.get(path, ((), {}))[1]:
                found[f"{run}:{name}"] = path, name
        return found

    def bank(self, name: str) -> tuple[Path, str]:
        found = self.banks()
        if name not in found:
            hint = "go to the list of memories"
            raise UsageError(f"no memory {name!r}", hint=hint, code="no-memory")
        return found[name]


class LiveRun:
    """Follows one run: its state, the progress of its arms, and its trials as they end."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._seen: set[str] = set()
        self._arms: dict[str, dict[str, Any]] = defaultdict(
            lambda: {"done": 0, "right": 0, "judged": 0, "tokens": 0, "seconds": 0.0}
        )
        self._last: dict[str, Any] = {}
        for arm in (folder.require_manifest().get("experiment") or {}).get("arms") or ():
            _ = self._arms[str(arm.get("name"))]

    def news(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the trials that ended since the last call, the progress, and the run's end."""
        state = read_state(self._folder)
        names = self._folder.trial_names()
        new = [name for name in names if name not in self._seen]
        records = []
        for name in new[:AT_ONCE]:
            self._seen.add(name)
            with suppress(RecordError):
                records.append(self._folder.trial(name))
        for record in sorted(records, key=lambda one: one.started):
            yield "trial", self._ended(record)
        now = {
            **(asdict(state) if state else {"status": "archived", "total": len(names)}),
            "done": len(names),
            "arms": [{"arm": arm, **counts} for arm, counts in self._arms.items()],
        }
        if now != self._last:
            self._last = now
            yield "progress", now
        if len(new) <= AT_ONCE and now["status"] != "running":
            yield "end", {}

    def _ended(self, record: TrialRecord) -> dict[str, Any]:
        arm = record.key.arm + (" (practice)" if record.step is not None else "")
        counts = self._arms[arm]
        counts["done"] += 1
        counts["judged"] += record.judged
        counts["right"] += record.outcome == "right"
        counts["tokens"] += record.usage.tokens
        counts["seconds"] = round(counts["seconds"] + record.usage.seconds, 1)
        said = {"arm": arm, "task": record.key.task, "outcome": record.outcome}
        said |= {"question": record.question, "place": trial_place(record.key)}
        return {**said, "tokens": record.usage.tokens, "seconds": record.usage.seconds}
