"""Records on disk: one folder a run, one file a trial, each written whole or not at all.

`runs/<run>/manifest.json` says what was run on what; `trials/<arm>/<task>.<seed>.json` holds
one trial each. A trial file that exists is done: that is all there is to resuming.
"""

from __future__ import annotations

import gzip
import json
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from reasoningbank.errors import RecordError, UsageError
from reasoningbank.experiment.json_files import read_json, write_atomically
from reasoningbank.experiment.trial_record import TrialKey, TrialRecord

__all__ = ["RunFolder", "TrialKey", "TrialRecord"]


class RunFolder:
    """The folder of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def manifest(self) -> dict[str, Any] | None:
        """What the run is about; None before its first trial.

        Raises:
            RecordError: If the file is damaged, or something else.
        """
        path = self.path / "manifest.json"
        if not path.exists():
            return None
        hint = "restore it, or move it away: the records stay as they are"
        try:
            data = read_json(path)
        except RecordError as error:
            raise RecordError(error.what, where=error.where, hint=hint) from error
        if not isinstance(data, dict) or "experiment" not in data:
            raise RecordError("is no manifest", where=str(path), hint=hint)
        return data

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Store what the run is about."""
        write_atomically(self.path / "manifest.json", manifest)

    def write(self, record: TrialRecord) -> Path:
        """Store a trial; it is on disk, whole, when this returns."""
        path = self.path / record.key.path
        write_atomically(path, record.to_json())
        path.with_name(f"{path.name}.gz").unlink(missing_ok=True)
        return path

    def done(self, key: TrialKey) -> bool:
        """Tell whether a trial is on disk, compressed or not."""
        return self.file(key).exists()

    def read(self, key: TrialKey) -> TrialRecord:
        """Return one trial.

        Raises:
            RecordError: If the file is missing or damaged.
        """
        return _trial(self.file(key))

    def keys(self) -> Iterator[TrialKey]:
        """Yield the keys of the trials on disk that can be read."""
        for trial in self.trials(skip_damaged=True):
            yield trial.key

    def file(self, key: TrialKey) -> Path:
        """Return where a trial lies, or would lie compressed."""
        path = self.path / key.path
        return path if path.exists() else path.with_name(f"{path.name}.gz")

    def need_no_other(self, copy: RunFolder) -> None:
        """Make sure that a folder holds a copy of this run, or none.

        Args:
            copy: Where a copy is to go.

        Raises:
            UsageError: If it holds another run, be it of the same experiment.
        """
        there = copy.manifest
        if there is not None and _made(there) != _made(self.manifest or {}):
            hint = "choose another folder, or remove this one"
            raise UsageError("holds another run", where=str(copy.path), hint=hint)

    def archive(
        self, target: Path, *, on_damaged: Callable[[Path], None] = lambda _: None
    ) -> RunFolder:
        """Copy the run to `target`, compressed; gold results and damaged files are left out.

        The copy is a run like any other: it can be read, summarised and continued. The same
        records give the same bytes.

        Args:
            target: The folder of the copy.
            on_damaged: Told each trial file that cannot be read.

        Raises:
            UsageError: If the target holds another run.
            RecordError: If a file cannot be read or written.
        """
        self.need_no_other(RunFolder(target))
        damaged = set(self.damaged())
        for path in sorted(damaged):
            on_damaged(path)
        files = [path for path in self._trial_files() if path not in damaged]
        try:
            target.mkdir(parents=True, exist_ok=True)
            for name in ("manifest.json", "summary.json"):
                if (self.path / name).exists():
                    shutil.copyfile(self.path / name, target / name)
            steps = [
                path
                for path in self.path.glob("learning/**/*.json*")
                if path.suffix != ".damaged" and not path.name.startswith(".")
            ]
            for path in (*files, *sorted([*self._snapshot_files(), *steps])):
                copy = target / path.relative_to(self.path)
                copy.parent.mkdir(parents=True, exist_ok=True)
                if path.suffix == ".gz":
                    shutil.copyfile(path, copy)
                else:
                    packed = gzip.compress(path.read_bytes(), 9, mtime=0)
                    copy.with_name(f"{copy.name}.gz").write_bytes(packed)
        except OSError as error:
            raise RecordError(f"cannot be copied ({error})", where=str(target)) from error
        return RunFolder(target)

    def trials(self, *, skip_damaged: bool = False) -> Iterator[TrialRecord]:
        """Yield the trials on disk, ordered by arm, task and seed.

        Args:
            skip_damaged: Leave out files that cannot be read; `damaged` names them.

        Raises:
            RecordError: If a file is damaged; the message names it.
        """
        for _, found in self.read_all():
            if not isinstance(found, RecordError):
                yield found
            elif not skip_damaged:
                raise found

    def read_all(self) -> Iterator[tuple[Path, TrialRecord | RecordError]]:
        """Yield each trial file with its trial, or with the error of reading it, in one pass."""
        for path in self._trial_files():
            try:
                yield path, _trial(path)
            except RecordError as error:
                yield path, error

    def damaged(self) -> Iterator[Path]:
        """Yield the trial files that cannot be read."""
        for path, found in self.read_all():
            if isinstance(found, RecordError):
                yield path

    def set_damaged_aside(self, damaged: Iterable[Path]) -> list[Path]:
        """Rename trial files that cannot be read, so that their trials are run again.

        Args:
            damaged: What `damaged` found.

        Returns:
            The new names, each with ``.damaged`` at its end.

        Raises:
            RecordError: If one cannot be renamed.
        """
        moved = []
        for path in damaged:
            aside = path.with_name(f"{path.name}.damaged")
            try:
                moved.append(path.replace(aside))
            except OSError as error:
                raise RecordError(f"cannot be set aside ({error})", where=str(path)) from error
        return moved

    def memory_items(
        self, on_damaged: Callable[[RecordError], None] | None = None
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield every memory item of every snapshot, with the snapshot's name.

        Args:
            on_damaged: Told each snapshot that cannot be read; the others are read all the same.

        Raises:
            RecordError: If a snapshot is damaged and nobody is told.
        """
        for path in self._snapshot_files():
            try:
                raw = path.read_bytes()
                text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
                # Not splitlines: a title may hold U+2028, which JSON leaves as it is.
                items = [dict(json.loads(line)) for line in text.split("\n") if line.strip()]
            except (OSError, ValueError, TypeError, EOFError, zlib.error) as error:
                damage = RecordError(f"cannot be read ({error})", where=str(path))
                if on_damaged is None:
                    raise damage from error
                on_damaged(damage)
                continue
            for item in items:
                yield path.name.partition(".jsonl")[0], item

    def _snapshot_files(self) -> list[Path]:
        """Return the snapshots, without what a killed process left half written."""
        found = (self.path / "memory").glob("*.jsonl*")
        return sorted(p for p in found if p.suffix != ".damaged" and not p.name.startswith("."))

    def _trial_files(self) -> list[Path]:
        found = set((self.path / "trials").glob("*/*.json"))
        for path in (self.path / "trials").glob("*/*.json.gz"):
            # A kill between the writing of a new record and the end of the old leaves both.
            if path.with_suffix("") not in found:
                found.add(path)
        return sorted(found)


def _made(manifest: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what tells a run from every other one."""
    return manifest.get("fingerprint"), manifest.get("created")


def _trial(path: Path) -> TrialRecord:
    hint = "delete the file and run the same command again"
    try:
        trial = TrialRecord.from_json(read_json(path))
        belongs = path.name.removesuffix(".gz") == Path(trial.key.path).name
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise RecordError(f"is no trial ({error!r})", where=str(path), hint=hint) from error
    if not belongs or path.parent.name != trial.key.arm:
        raise RecordError(f"holds another trial ({trial.key})", where=str(path), hint=hint)
    return trial
