"""A journal on disk of the writes of a run: each is recorded before it is sent, and again after.

So after any failure the journal says which writes were done, which were not, and which are
unknown; a resumed run repeats none of the done ones. It is an SQLite database.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
import uuid
from collections import Counter, defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from reasoningbank.errors import RecordError, UsageError

State = Literal["done", "refused", "not sent", "unanswered"]
_FORMAT = "reasoningbank algebra journal 2"
_TABLES = """
CREATE TABLE journal (format TEXT, program TEXT, seed TEXT);
CREATE TABLE writes (
  number INTEGER PRIMARY KEY, method TEXT, url TEXT, digest TEXT, condition TEXT,
  state TEXT DEFAULT 'unanswered', status INTEGER DEFAULT 0, at TEXT DEFAULT '', why TEXT DEFAULT ''
);
"""


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
        self._where = str(file or "")
        self._lock = threading.Lock()
        self._writes: dict[int, Write] = {}
        self._known: defaultdict[tuple[str, str, str], deque[Write]] = defaultdict(deque)
        self._seed = uuid.uuid4().hex
        self._drawn: Counter[str] = Counter()
        there = file is not None and file.exists() and file.stat().st_size > 0
        if resume and not there:
            raise self._unusable("there is no journal to resume", "no-journal", "name the journal")
        if there and not resume:
            hint = "resume it, or name another file"
            raise self._unusable("the journal already exists", "journal-exists", hint)
        try:
            if file is not None:
                file.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(
                file or ":memory:", timeout=0, isolation_level=None, check_same_thread=False
            )
        except (OSError, sqlite3.Error) as error:
            raise self._failed(error) from None
        try:
            # The first write takes the lock, which is held until the journal is closed.
            self._run("PRAGMA locking_mode=EXCLUSIVE")
            self._run("BEGIN EXCLUSIVE")
            if there:
                self._read(program)
            else:
                for statement in _TABLES.split(";")[:-1]:
                    self._run(statement)
                self._run("INSERT INTO journal VALUES (?, ?, ?)", _FORMAT, program, self._seed)
            self._run("COMMIT")
        except BaseException:
            self._db.close()
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; `writes` stays available."""
        with self._lock:
            self._db.close()

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
            write = Write(len(self._writes) + 1, method, url, digest, condition)
            self._run(
                "INSERT INTO writes (number, method, url, digest, condition) VALUES (?,?,?,?,?)",
                *(write.number, method, url, digest, json.dumps(dict(condition))),
            )
            self._writes[write.number] = write
            return write

    def again(self, write: Write, condition: Mapping[str, str]) -> Write:
        """Record that an unanswered write is about to be sent once more; see `begin`."""
        return self._update(replace(write, condition=condition, earlier=False))

    def end(
        self, write: Write, state: State, *, status: int = 0, at: str = "", why: str = ""
    ) -> None:
        """Record the outcome of a write.

        Raises:
            RecordError: If it cannot be written to disk; a later run takes it for unanswered then.
        """
        self._update(replace(write, state=state, status=status, at=at, why=why))

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

    def _read(self, program: str) -> None:
        """Read what earlier runs recorded."""
        found = self._run("SELECT format, program, seed FROM journal") or [("", "", "")]
        kind, owner, self._seed = found[0]
        if kind != _FORMAT:
            raise self._unusable("not a journal of writes", "not-a-journal")
        if owner != program:
            hint = "resume with the program, variables and options that it was started with"
            raise self._unusable("it is the journal of another run", "other-journal", hint)
        for number, method, url, digest, condition, *end in self._run("SELECT * FROM writes"):
            headers = json.loads(condition)
            write = Write(number, method, url, digest, headers, *end)
            self._writes[number] = replace(write, earlier=True)
        # Of equal writes the done ones come first, since they are not repeated.
        for state in ("done", "unanswered"):
            for write in self.writes():
                if write.state == state:
                    self._known[write.method, write.url, write.digest].append(write)

    def _update(self, write: Write) -> Write:
        with self._lock:
            self._writes[write.number] = write
            self._run(
                "UPDATE writes SET condition=?, state=?, status=?, at=?, why=? WHERE number=?",
                *(json.dumps(dict(write.condition)), write.state, write.status),
                *(write.at, write.why, write.number),
            )
            return write

    def _run(self, statement: str, *values: object) -> list[Any]:
        try:
            return self._db.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise self._failed(error) from None

    def _failed(self, error: OSError | sqlite3.Error) -> UsageError | RecordError:
        name = getattr(error, "sqlite_errorname", "")
        if name == "SQLITE_BUSY":
            return self._unusable("another run is writing it", "journal-in-use")
        if name in ("SQLITE_NOTADB", "SQLITE_ERROR"):
            return self._unusable("not a journal of writes", "not-a-journal")
        if name == "SQLITE_CORRUPT":
            # A write that was done would be done again if its row were skipped.
            what, code = "the journal is damaged", "journal-unreadable"
            hint = "look at what was written, and start a new journal"
        else:
            what, code = f"the journal cannot be written: {error}", "journal-unwritable"
            hint = "free space there, then resume the run"
        return RecordError(what, where=self._where, hint=hint, code=code)

    def _unusable(self, what: str, code: str, hint: str = "") -> UsageError:
        return UsageError(what, where=self._where, hint=hint, code=code)
