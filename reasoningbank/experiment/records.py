"""Records on disk: one folder a run, one file a trial, each written whole or not at all.

`runs/<run>/manifest.json` says what was run on what; `trials/<arm>/<task>.<seed>.json` holds
one trial each. A trial file that exists is done: that is all there is to resuming.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from reasoningbank.agents import Attempt, AttemptStatus
from reasoningbank.errors import RecordError
from reasoningbank.judge import Verdict
from reasoningbank.trajectory import Trajectory, Usage

__all__ = ["RunFolder", "TrialKey", "TrialRecord", "write_atomically"]

VERSION = 1


@dataclass(frozen=True, order=True)
class TrialKey:
    """Which trial: an arm on a task with a seed."""

    arm: str
    task: str
    seed: int

    @property
    def path(self) -> str:
        """Path of the trial's file within the run's folder; no two tasks share one."""
        task = re.sub(r"[^A-Za-z0-9_.-]", "_", self.task)
        if task != self.task:
            task += f"-{hashlib.sha256(self.task.encode()).hexdigest()[:8]}"
        return f"trials/{self.arm}/{task}.{self.seed}.json"


@dataclass(frozen=True)
class TrialRecord:
    """One trial, whole: what was asked, what the agent did, how it was judged.

    Attributes:
        key: Which trial.
        question: The task's question.
        complexity: The task's complexity class.
        form: The query form of the gold.
        group: The task's group.
        status: How the attempt ended.
        sparql: The query submitted; None where there was none.
        answer: The answer in words, if any.
        error: One line, where something went wrong.
        verdict: The judge's verdict; None where the trial ended in an infrastructure error.
        usage: What it consumed.
        trajectory: What the agent did.
        started: Start, ISO 8601 in UTC.
        model: Fingerprint of the model, e.g. its name and the hash of its weights; may be empty.
    """

    key: TrialKey
    question: str
    complexity: str
    form: str
    group: str
    status: AttemptStatus
    sparql: str | None
    answer: str
    error: str
    verdict: Mapping[str, Any] | None
    usage: Usage
    trajectory: Trajectory
    started: str
    model: Mapping[str, Any]

    @property
    def strict(self) -> bool:
        """Whether the result matched strictly; an unjudged trial did not."""
        return bool(self.verdict and self.verdict.get("strict"))

    @property
    def f1(self) -> float:
        """Row F1 of the result, 0 where there was none."""
        return float(self.verdict.get("f1") or 0.0) if self.verdict else 0.0

    @classmethod
    def of(
        cls, key: TrialKey, task: Any, attempt: Attempt, verdict: Verdict | None, **rest: Any
    ) -> TrialRecord:
        """Make the record of an attempt at `task` and its verdict."""
        return cls(
            key=key,
            question=task.query,
            complexity=task.complexity,
            form=task.form,
            group=task.group,
            status=attempt.status,
            sparql=attempt.sparql,
            answer=attempt.answer,
            error=attempt.error,
            verdict=asdict(verdict) if verdict is not None else None,
            usage=attempt.usage,
            trajectory=attempt.trajectory,
            **rest,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON-able data."""
        data = {k: getattr(self, k) for k in self.__dataclass_fields__ if k != "trajectory"}
        data["key"], data["usage"] = asdict(self.key), asdict(self.usage)
        return {"version": VERSION, **data, "trajectory": self.trajectory.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TrialRecord:
        """Read what `to_json` wrote."""
        rest = {k: v for k, v in data.items() if k not in {"version", "key", "usage"}}
        rest["trajectory"] = Trajectory.from_json(rest["trajectory"])
        return cls(key=TrialKey(**data["key"]), usage=Usage(**data["usage"]), **rest)


class RunFolder:
    """The folder of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def manifest(self) -> dict[str, Any] | None:
        """What the run is about; None before its first trial."""
        path = self.path / "manifest.json"
        return dict(_read(path)) if path.exists() else None

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Store what the run is about."""
        write_atomically(self.path / "manifest.json", manifest)

    def write(self, record: TrialRecord) -> Path:
        """Store a trial; it is on disk, whole, when this returns."""
        path = self.path / record.key.path
        write_atomically(path, record.to_json())
        return path

    def done(self, key: TrialKey) -> bool:
        """Tell whether a trial is on disk, compressed or not."""
        path = self.path / key.path
        return path.exists() or path.with_name(f"{path.name}.gz").exists()

    def read(self, key: TrialKey) -> TrialRecord:
        """Return one trial.

        Raises:
            RecordError: If the file is missing or damaged.
        """
        path = self.path / key.path
        return _trial(path if path.exists() else path.with_name(f"{path.name}.gz"))

    def archive(self, target: Path) -> RunFolder:
        """Copy the run to `target` with its trials compressed; gold results are left out.

        The copy is a run like any other: it can be read, summarised and continued. The same
        records give the same bytes.

        Raises:
            RecordError: If a file cannot be read or written.
        """
        try:
            for name in ("manifest.json", "summary.json"):
                if (self.path / name).exists():
                    target.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(self.path / name, target / name)
            for path in sorted((self.path / "trials").glob("*/*.json")):
                copy = target / "trials" / path.parent.name / f"{path.name}.gz"
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))
        except OSError as error:
            raise RecordError(f"cannot be copied ({error})", where=str(target)) from error
        return RunFolder(target)

    def trials(self) -> Iterator[TrialRecord]:
        """Yield the trials on disk, ordered by arm, task and seed.

        Raises:
            RecordError: If a file is damaged; the message names it.
        """
        for path in sorted((self.path / "trials").glob("*/*.json*")):
            if path.name.endswith((".json", ".json.gz")):
                yield _trial(path)


def write_atomically(path: Path, data: Any) -> None:
    """Write JSON so that a reader sees the old file or the new one, never a part.

    Raises:
        RecordError: If the disk is full or the folder cannot be written.
    """
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
        # Models and agents' code write lone surrogates; a trial is not lost for one.
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogatepass") as file:
            json.dump(data, file, ensure_ascii=False, indent=1)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
        temporary = None
    except OSError as error:
        reason = error.strerror or str(error)
        mend = "free space or choose another folder with --out"
        raise RecordError(f"cannot be written ({reason})", where=str(path), mend=mend) from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def _read(path: Path) -> Any:
    try:
        raw = path.read_bytes()
        return json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    except (OSError, ValueError) as error:
        mend = "delete the file and run the same command again"
        raise RecordError(f"cannot be read ({error})", where=str(path), mend=mend) from error


def _trial(path: Path) -> TrialRecord:
    try:
        return TrialRecord.from_json(_read(path))
    except (KeyError, TypeError, AttributeError) as error:
        mend = "delete the file and run the same command again"
        raise RecordError(f"is no trial ({error!r})", where=str(path), mend=mend) from error
