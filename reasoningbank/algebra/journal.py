"""A journal on disk of the writes of a run: each is recorded before it is sent, and again after.

So after any failure the journal says which writes were done, which were not, and which are
unknown; a resumed run repeats none of the done ones. It is a file of JSON lines; an incomplete
line is a request that was not sent, or an outcome that is unknown.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import threading
import uuid
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any, Literal

from filelock import FileLock, Timeout

from reasoningbank.errors import RecordError, UsageError

State = Literal["done", "refused", "not sent", "unanswered"]
_FORMAT = "reasoningbank algebra journal 1"


@dataclass(frozen=True)
class Write:
    """A write of a run.

    Attributes:
        number: Its position in the journal, from 1.
        method: PUT, POST or PATCH.
        url: The document.
        digest: Identifies its body.
        condition: The request headers by which the server can detect a repetition.
        state: Its outcome: ``done``; ``refused`` by the server; ``not sent``; ``unanswered``: it
            was sent, and it is unknown whether it was done.
        status: The HTTP status, 0 if there is none.
        at: The document that the server named, if it is another one.
        why: The failure, in one line.
        earlier: Whether an earlier run did it.
    """

    number: int
    method: str
    url: str
    digest: str
    condition: Mapping[str, str]
    state: State = "unanswered"
    status: int = 0
    at: str = ""
    why: str = ""
    earlier: bool = False


class Journal:
    """The writes of one run, in memory and, if a file is given, on disk.

    Args:
        file: The file; None keeps them in memory only.
        program: Identifies the program; only the same program can resume a journal.
        resume: Whether to continue an existing journal.

    Raises:
        UsageError: If there is a journal and it is not to be resumed, or the other way round; or
            it belongs to another program, or is in use.
        RecordError: If it cannot be read or written.

    Examples:
        >>> journal = Journal()
        >>> write = journal.begin("PUT", "http://e/a", "d1", {})
        >>> journal.end(write, "done", status=201)
        >>> [(one.url, one.state) for one in journal.writes()]
        [('http://e/a', 'done')]
    """

    def __init__(
        self, file: Path | None = None, *, program: str = "", resume: bool = False
    ) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._writes: dict[int, Write] = {}
        self._known: defaultdict[tuple[str, str, str], deque[Write]] = defaultdict(deque)
        self._seed = uuid.uuid4().hex
        self._drawn: Counter[str] = Counter()
        self._out: IO[bytes] | None = None
        self._held: FileLock | None = None
        if file is not None:
            self._open(file, program, resume)
        elif resume:
            raise _unusable("a run cannot be resumed without its journal", hint="name the journal")

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._out is not None:
                self._out.close()
                self._out = None
            if self._held is not None:
                self._held.release()
                self._held = None

    def earlier(self, method: str, url: str, digest: str) -> Write | None:
        """Return the done or unanswered write of an earlier run that this one would repeat.

        Each is returned once; None if the write is to be done.
        """
        with self._lock:
            waiting = self._known[method, url, digest]
            return waiting.popleft() if waiting else None

    def begin(self, method: str, url: str, digest: str, condition: Mapping[str, str]) -> Write:
        """Record a write that is about to be sent; it is on disk when this returns.

        Raises:
            RecordError: If it cannot be written to disk; it must not be sent then.
        """
        with self._lock:
            number = len(self._writes) + 1
            write = Write(number, method, url, digest, condition)
            self._note({key: v for key, v in asdict(write).items() if v and key != "state"})
            self._writes[number] = write
            return write

    def again(self, write: Write, condition: Mapping[str, str]) -> Write:
        """Record that an unanswered write is about to be sent once more; see `begin`."""
        with self._lock:
            self._note({"number": write.number, "condition": dict(condition)})
            repeated = replace(write, condition=condition, earlier=False)
            self._writes[write.number] = repeated
            return repeated

    def end(
        self, write: Write, state: State, *, status: int = 0, at: str = "", why: str = ""
    ) -> None:
        """Record the outcome of a write.

        Raises:
            RecordError: If it cannot be written to disk; a later run takes it for unanswered then.
        """
        with self._lock:
            self._writes[write.number] = replace(write, state=state, status=status, at=at, why=why)
            line = {"number": write.number, "state": state, "status": status, "at": at, "why": why}
            self._note({key: value for key, value in line.items() if value})

    def writes(self) -> tuple[Write, ...]:
        """Return all writes, including those of earlier runs."""
        with self._lock:
            return tuple(self._writes[number] for number in sorted(self._writes))

    def draw(self, place: str = "") -> str:
        """Return a random UUID; a resumed run draws the same ones at the same places.

        Args:
            place: Which operation draws it, for which row, since rows that are processed at the
                same time draw in another order each time.
        """
        with self._lock:
            self._drawn[place] += 1
            text = f"{self._seed} {place} {self._drawn[place]}"
        return str(uuid.UUID(bytes=hashlib.sha256(text.encode()).digest()[:16], version=4))

    def _open(self, file: Path, program: str, resume: bool) -> None:
        missing = _unusable("there is no journal to resume", file)
        if resume and not file.exists():
            raise missing
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._held = FileLock(f"{file}.lock", timeout=0)
            self._held.acquire()
            # Only now, since another run may have written it until now.
            there = file.exists() and file.stat().st_size > 0
            if there and not resume:
                hint = "resume it, or name another file"
                raise _unusable("there is a journal already", file, hint, "journal-exists")
            if resume and not there:
                raise missing
            size = self._read(file, program) if there else 0
            self._out = file.open("r+b" if there else "wb", buffering=0)
            if there:
                # An incomplete last line is removed.
                self._out.truncate(size)
                self._out.seek(size)
            else:
                self._note({"journal": _FORMAT, "program": program, "seed": self._seed})
        except Timeout:
            self._held = None
            raise _unusable("another run is writing it", file, code="journal-in-use") from None
        except OSError as error:
            self.close()
            what = f"the journal cannot be opened: {error.strerror or error}"
            raise RecordError(what, where=str(file), code="journal-unreadable") from None
        except BaseException:
            self.close()
            raise

    def _read(self, file: Path, program: str) -> int:
        """Read the lines of earlier runs; return where the last complete line ends."""
        size = 0
        for number, (line, end) in enumerate(_complete_lines(file)):
            size = end
            if number:
                self._take(line, file)
                continue
            if line.get("journal") != _FORMAT:
                raise _unusable("not a journal of writes", file, code="not-a-journal")
            if line.get("program") != program:
                hint = "resume with the program, variables and options that it was started with"
                raise _unusable("it is the journal of another run", file, hint, "other-journal")
            self._seed = str(line.get("seed", ""))
        if not size:
            raise _unusable("not a journal of writes", file, code="not-a-journal")
        # Of equal writes the done ones come first, since they are not repeated.
        for state in ("done", "unanswered"):
            for write in self._writes.values():
                if write.state == state:
                    self._known[write.method, write.url, write.digest].append(write)
        return size

    def _take(self, line: Mapping[str, Any], file: Path) -> None:
        try:
            number = int(line["number"])
            if "method" in line:
                self._writes[number] = Write(**{"condition": {}, **line, "earlier": True})
            else:
                self._writes[number] = replace(self._writes[number], **line)
        except (KeyError, TypeError, ValueError):
            raise _unreadable(file) from None

    def _note(self, line: Mapping[str, Any]) -> None:
        if self._out is None:
            return
        text = json.dumps(line, ensure_ascii=False).encode() + b"\n"
        before = self._out.tell()
        try:
            if self._out.write(text) < len(text):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._out.fileno())
        except OSError as error:
            with contextlib.suppress(OSError):
                # An incomplete line would hide all lines after it.
                self._out.truncate(before)
                self._out.seek(before)
            raise RecordError(
                f"the journal cannot be written: {error.strerror or error}",
                where=str(self._file),
                hint="free space there, then resume the run",
                code="journal-unwritable",
            ) from None


def _unusable(
    what: str, file: Path | str = "", hint: str = "", code: str = "no-journal"
) -> UsageError:
    return UsageError(what, where=str(file), hint=hint, code=code)


def _unreadable(file: Path) -> RecordError:
    # A write that was done would be done again if its line were skipped.
    hint = "look at what was written, and start a new journal"
    what = "a line of the journal cannot be read"
    return RecordError(what, where=str(file), hint=hint, code="journal-unreadable")


def _complete_lines(file: Path) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield each complete line and where it ends."""
    end = 0
    with file.open("rb") as source:
        for text in source:
            # The newline is the last byte that is written of a line.
            if not text.endswith(b"\n"):
                return
            try:
                line = json.loads(text)
            except ValueError:
                line = None
            if not isinstance(line, dict):
                if end == 0:
                    return
                raise _unreadable(file)
            end += len(text)
            yield line, end
