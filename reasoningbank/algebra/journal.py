"""A journal on disk of the writes of a run: each is there before it is sent, and again after.

So whatever ends a run, the journal tells which writes were done, which were not, and of which
nobody knows; a run that is resumed does none of the done ones again. It is a file of JSON lines;
a line that was not written whole stands for a request that was not sent, or an outcome that is
not known.
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

__all__ = ["Journal", "State", "Write"]

State = Literal["done", "refused", "not sent", "unanswered"]
_FORMAT = "reasoningbank algebra journal 1"


@dataclass(frozen=True)
class Write:
    """A write of a run.

    Attributes:
        number: Its place in the journal, from 1.
        method: PUT, POST or PATCH.
        url: The document.
        digest: What tells its body from others.
        condition: The request headers by which the server could tell a repetition.
        state: How it ended: ``done``; ``refused`` by the server; ``not sent``; ``unanswered``:
            it was sent, and nobody knows whether it was done.
        status: The HTTP status, 0 where there is none.
        at: The document that the server named, where it is another one.
        why: What went wrong, in one line.
        earlier: Whether a run before this one did it.
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

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes two writes the same."""
        return self.method, self.url, self.digest


class Journal:
    """The writes of one run, in memory and, where a file is given, on disk.

    Args:
        file: Where; None keeps them in memory alone.
        program: What tells the program from others; a journal is resumed by the same one only.
        resume: Whether to go on with a journal that is there.

    Raises:
        UsageError: There is a journal and it is not to be resumed, or the other way round; it is of
            another program, or in use.
        RecordError: It cannot be read or written.

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
            raise UsageError("no run can be resumed without its journal", hint="name the journal")

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
        """Take the write of an earlier run that this one would repeat; each is taken once.

        Returns:
            It, where it was done or is unanswered; None for what is to be done.
        """
        with self._lock:
            waiting = self._known[method, url, digest]
            return waiting.popleft() if waiting else None

    def begin(self, method: str, url: str, digest: str, condition: Mapping[str, str]) -> Write:
        """Note a write that is about to be sent; it is on disk when this returns.

        Raises:
            RecordError: The disk does not take it, so it must not be sent.
        """
        with self._lock:
            number = len(self._writes) + 1
            write = Write(number, method, url, digest, condition)
            line = {key: value for key, value in asdict(write).items() if value and key != "state"}
            self._note(line)
            self._writes[number] = write
            return write

    def again(self, write: Write, condition: Mapping[str, str]) -> Write:
        """Note that an unanswered write is about to be sent once more; see `begin`."""
        with self._lock:
            self._note({"number": write.number, "condition": dict(condition)})
            repeated = replace(write, condition=condition, earlier=False)
            self._writes[write.number] = repeated
            return repeated

    def end(
        self, write: Write, state: State, *, status: int = 0, at: str = "", why: str = ""
    ) -> None:
        """Note how a write ended.

        Raises:
            RecordError: The disk does not take it; a later run then holds it for unanswered.
        """
        with self._lock:
            ended = replace(write, state=state, status=status, at=at, why=why)
            self._writes[write.number] = ended
            line = {"number": write.number, "state": state, "status": status, "at": at, "why": why}
            self._note({key: value for key, value in line.items() if value})

    def writes(self) -> tuple[Write, ...]:
        """Return all writes, those of the runs before this one among them."""
        with self._lock:
            return tuple(self._writes[number] for number in sorted(self._writes))

    def draw(self, place: str = "") -> str:
        """Return a random UUID; a run that is resumed draws the same ones at the same places.

        Args:
            place: What draws: which operation, for which row. Rows that are worked on at the same
                time draw in another order each time.
        """
        with self._lock:
            self._drawn[place] += 1
            text = f"{self._seed} {place} {self._drawn[place]}"
            made = hashlib.sha256(text.encode()).digest()[:16]
        return str(uuid.UUID(bytes=made, version=4))

    def _open(self, file: Path, program: str, resume: bool) -> None:
        if resume and not file.exists():
            raise UsageError("there is no journal to resume", where=str(file))
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._held = FileLock(f"{file}.lock", timeout=0)
            self._held.acquire()
            # Only now, since another run may have written it until now.
            there = file.exists() and file.stat().st_size > 0
            if there and not resume:
                hint = "resume it, or name another file"
                raise UsageError("there is a journal already", where=str(file), hint=hint)
            if resume and not there:
                raise UsageError("there is no journal to resume", where=str(file))
            size = self._read(file, program) if there else 0
            self._out = file.open("r+b" if there else "wb", buffering=0)
            if there:
                # What was not written whole goes.
                self._out.truncate(size)
                self._out.seek(size)
            else:
                self._note({"journal": _FORMAT, "program": program, "seed": self._seed})
        except Timeout:
            self._held = None
            raise UsageError("another run is writing it", where=str(file)) from None
        except OSError as error:
            self.close()
            what = f"the journal cannot be opened: {error.strerror or error}"
            raise RecordError(what, where=str(file)) from None
        except BaseException:
            self.close()
            raise

    def _read(self, file: Path, program: str) -> int:
        """Read what earlier runs noted; returns where the last whole line ends."""
        size = 0
        for number, (line, end) in enumerate(_whole_lines(file)):
            size = end
            if number == 0:
                if line.get("journal") != _FORMAT:
                    raise UsageError("not a journal of writes", where=str(file))
                if line.get("program") != program:
                    hint = "resume with the program, variables and options that it was begun with"
                    raise UsageError("it is the journal of another run", where=str(file), hint=hint)
                self._seed = str(line.get("seed", ""))
                continue
            self._take(line, file)
        if not size:
            raise UsageError("not a journal of writes", where=str(file))
        for write in self._writes.values():
            if write.state in ("done", "unanswered"):
                self._known[write.key].append(write)
        for waiting in self._known.values():
            # Of equal writes those that were done are not repeated, whichever came first.
            ordered = sorted(waiting, key=lambda write: write.state != "done")
            waiting.clear()
            waiting.extend(ordered)
        return size

    def _take(self, line: Mapping[str, Any], file: Path) -> None:
        try:
            number = int(line["number"])
            if "method" in line:
                known = {"condition": {}, **line, "earlier": True}
                self._writes[number] = Write(**known)
            else:
                self._writes[number] = replace(self._writes[number], **line)
        except (KeyError, TypeError, ValueError):
            raise RecordError("a line of the journal cannot be read", where=str(file)) from None

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
                # A line that is not whole would hide all that are noted behind it.
                self._out.truncate(before)
                self._out.seek(before)
            raise RecordError(
                f"the journal cannot be written: {error.strerror or error}",
                where=str(self._file),
                hint="free space there; resume the run then",
            ) from None


def _whole_lines(file: Path) -> Iterator[tuple[dict[str, Any], int]]:
    end = 0
    with file.open("rb") as source:
        for text in source:
            # Lines end only as the last thing that is written of them.
            if not text.endswith(b"\n"):
                return
            try:
                line = json.loads(text)
            except ValueError:
                line = None
            if not isinstance(line, dict):
                if end == 0:
                    return
                # What was done would be done again if it were left out.
                hint = "look at what was written, and begin a new journal"
                raise RecordError(
                    "a line of the journal cannot be read", where=str(file), hint=hint
                )
            end += len(text)
            yield line, end
