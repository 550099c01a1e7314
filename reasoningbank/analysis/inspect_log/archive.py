"""The `.eval` file: a zip archive, written sample by sample.

Inspect's own `write_eval_log` holds every sample of a log in memory and stamps the archive with the
time of writing. Here one sample is held at a time, and the same records give the same bytes.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from inspect_ai.log import EvalLog, EvalSample, EvalSampleSummary, condense_sample
from pydantic import BaseModel

from reasoningbank.errors import RecordError

__all__ = ["EvalArchive"]

#: A zip archive can say nothing earlier; the times that matter are in the log.
_STAMP = (1980, 1, 1, 0, 0, 0)


class EvalArchive:
    """Writes a log of Inspect; a reader sees all of it, or nothing.

    Args:
        path: The file.

    Raises:
        RecordError: If the file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._summaries: list[EvalSampleSummary] = []

    def __enter__(self) -> EvalArchive:
        """Begin a file beside the one to be written."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._path.parent, prefix=".", suffix=".tmp")
            os.close(handle)
            self._temporary = Path(name)
            self._zip = zipfile.ZipFile(self._temporary, "w", zipfile.ZIP_DEFLATED)
        except OSError as error:
            raise self._unwritable(error) from error
        return self

    def add(self, sample: EvalSample) -> None:
        """Write a sample, what it repeats stored once."""
        condensed = condense_sample(sample)
        self._write(f"samples/{sample.id}_epoch_{sample.epoch}.json", condensed)
        self._summaries.append(condensed.summary())

    def finish(self, log: EvalLog) -> None:
        """Write what the log says besides its samples."""
        self._write("_journal/start.json", log, {"version", "eval", "plan"})
        self._write_all("summaries.json", self._summaries)
        self._write_all("reductions.json", log.reductions or [])
        header = set(EvalLog.model_fields) - {"samples", "reductions"}
        self._write("header.json", log, header)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Put the file in its place, or leave no trace if writing failed."""
        try:
            with contextlib.ExitStack() as stack:
                stack.callback(self._temporary.unlink, missing_ok=True)
                self._zip.close()
                if error is None:
                    self._temporary.chmod(0o644)
                    self._temporary.replace(self._path)
        except OSError as failure:
            if error is None:
                raise self._unwritable(failure) from failure

    def _write(self, name: str, data: BaseModel, fields: set[str] | None = None) -> None:
        self._put(name, data.model_dump_json(exclude_none=True, include=fields))

    def _write_all(self, name: str, data: Sequence[BaseModel]) -> None:
        # One by one: each knows how to write a score without a value, a list of them does not.
        self._put(name, f"[{','.join(one.model_dump_json(exclude_none=True) for one in data)}]")

    def _put(self, name: str, text: str) -> None:
        member = zipfile.ZipInfo(name, _STAMP)
        member.compress_type = zipfile.ZIP_DEFLATED
        member.external_attr = 0o644 << 16
        try:
            self._zip.writestr(member, text)
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> RecordError:
        reason = error.strerror or str(error)
        hint = "free space or choose another folder with --out"
        return RecordError(f"cannot be written ({reason})", where=str(self._path), hint=hint)
