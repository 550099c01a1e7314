"""Writing documents so that nothing is lost or done twice, even if a reply is lost.

A journal on disk records each write before it is sent, and its outcome. PUT states the whole
document, so it may be sent again. POST adds and PATCH changes: before either, the document's ETag
is requested, the request carries it as a condition, and after a lost reply the ETag shows whether
the request was carried out. If it cannot show it, the run ends and the write is recorded as
unanswered. A resumed run repeats no write that was done.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import sqlite3
import threading
import uuid
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urljoin

import pyoxigraph
from rdflib import BNode, Graph
from rdflib.term import Node

from reasoningbank.algebra.evaluation import Method, Sent
from reasoningbank.algebra.terms import to_oxigraph
from reasoningbank.algebra.web import ACCEPT, Web, graph_of, summary
from reasoningbank.errors import (
    BudgetError,
    EndpointError,
    ReasoningBankError,
    RecordError,
    UsageError,
)
from reasoningbank.http import ExchangeError, Reply, Unreachable
from reasoningbank.ldp.exchange import fingerprint

State = Literal["done", "refused", "not sent", "unanswered"]
_FORMAT = "reasoningbank algebra journal 2"
_TABLES = """
CREATE TABLE journal (format TEXT, program TEXT, seed TEXT);
CREATE TABLE writes (
  number INTEGER PRIMARY KEY, method TEXT, url TEXT, digest TEXT, condition TEXT,
  state TEXT, status INTEGER, at TEXT, why TEXT
);
"""


@dataclass(frozen=True)
class Write:
    """A write of a run.

    `digest` identifies its body, `condition` holds the headers by which the server can detect a
    repetition, `at` is the document that the server named instead of `url`. ``unanswered`` means
    that it was sent and its outcome is unknown; `earlier` that an earlier run did it.
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
    """The writes of one run, in memory and, if a file is given, on disk."""

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

    def close(self) -> None:
        """Close the file; `writes` stays available."""
        with self._lock:
            self._db.close()

    def earlier(self, method: str, url: str, digest: str) -> Write | None:
        """Return, once each, the done or unanswered write of an earlier run; None if to be done."""
        with self._lock:
            waiting = self._known[method, url, digest]
            return waiting.popleft() if waiting else None

    def begin(self, method: str, url: str, digest: str, condition: Mapping[str, str]) -> Write:
        """Record a write that is about to be sent; it is on disk when this returns."""
        with self._lock:
            write = Write(len(self._writes) + 1, method, url, digest, condition)
            self._store(write)
            self._writes[write.number] = write
            return write

    def update(self, write: Write, **changes: Any) -> Write:
        """Record the outcome of a write, or that it is about to be sent again."""
        write = replace(write, **changes)
        with self._lock:
            self._writes[write.number] = write
            self._store(write)
        return write

    def _store(self, write: Write) -> None:
        *start, condition, state, status, at, why, _ = astuple(write)
        row = (*start, json.dumps(condition), state, status, at, why)
        self._run("REPLACE INTO writes VALUES (?,?,?,?,?,?,?,?,?)", *row)

    def writes(self) -> tuple[Write, ...]:
        """Return all writes, including those of earlier runs."""
        with self._lock:
            return tuple(self._writes[number] for number in sorted(self._writes))

    def draw(self, place: str = "") -> str:
        """Return a random UUID; a resumed run draws the same ones at the same places."""
        # A place is an operation and its row: concurrent rows draw in another order each time.
        with self._lock:
            self._drawn[place] += 1
            text = f"{self._seed} {place} {self._drawn[place]}"
        return str(uuid.UUID(bytes=hashlib.sha256(text.encode()).digest()[:16], version=4))

    def _read(self, program: str) -> None:
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
        what, code = f"the journal cannot be written: {error}", "journal-unwritable"
        hint = "free space there, then resume the run"
        if name == "SQLITE_CORRUPT":
            # A write that was done would be done again if its row were skipped.
            what, code = "the journal is damaged", "journal-unreadable"
            hint = "look at what was written, and start a new journal"
        return RecordError(what, where=self._where, hint=hint, code=code)

    def _unusable(self, what: str, code: str, hint: str = "") -> UsageError:
        return UsageError(what, where=self._where, hint=hint, code=code)


#: What to do with a write of an earlier run whose outcome is unknown.
Unanswered = Literal["ask", "done", "again"]
TURTLE = "text/turtle"
UPDATE = "application/sparql-update"
_CHANGED_MEANWHILE = 412
#: It is unclear whether the request was carried out before it failed.
_UNCLEAR = frozenset({500, 502, 504})
_GONE = frozenset({404, 410})
#: The condition that there is no document yet.
_ABSENT = {"If-None-Match": "*"}


def written(graph: Graph) -> bytes:
    """Return a graph as sorted N-Triples, which is Turtle too."""
    triples = (
        pyoxigraph.Triple(to_oxigraph(s), to_oxigraph(p), to_oxigraph(o))  # type: ignore[arg-type]
        for s, p, o in graph
    )
    return "".join(sorted(f"{triple} .\n" for triple in triples)).encode()


def body_of(method: Method, body: Graph | str, url: str) -> bytes:
    """Return the request body: N-Triples for PUT and POST, a SPARQL Update for PATCH."""
    if isinstance(body, str) == (method == "PATCH"):
        return body.encode() if isinstance(body, str) else written(body)
    takes = "a SPARQL Update" if method == "PATCH" else "a graph"
    raise UsageError(f"{method} takes {takes}", where=url, code="wrong-body")


def digest(body: bytes) -> str:
    """Return an identifier of a graph that does not depend on its blank node labels."""
    if b"_:" in body:
        with contextlib.suppress(SyntaxError):
            quads = pyoxigraph.parse(body, pyoxigraph.RdfFormat.N_TRIPLES)
            return fingerprint([quad.triple for quad in quads])
    return hashlib.sha256(body).hexdigest()


@dataclass(frozen=True)
class _Order:
    """A write to be done; `graph` is None for an update, `only_new` says not to replace."""

    method: Method
    url: str
    address: str
    body: bytes
    graph: Graph | None
    only_new: bool = False

    @property
    def repeatable(self) -> bool:
        """Whether it may be sent again without a look at the document."""
        return self.method == "PUT" and not self.only_new

    def failure(self, state: State, why: str) -> EndpointError:
        """Return the error of a write that was not done, or may not have been."""
        what, hint = f"the {self.method} was {state}: {why}", ""
        if state == "unanswered":
            what = f"the {self.method} was sent, and it is unknown whether it was done: {why}"
            hint = "resume the run, which checks before it repeats it"
        elif state == "not sent":
            hint = "resume the run later"
        code = f"write-{state.replace(' ', '-')}"
        return EndpointError(what, where=self.url, hint=hint, code=code)


@dataclass
class Writer:
    """Carries out the writes of a run, each recorded in its journal."""

    web: Web
    journal: Journal
    unanswered: Unanswered
    may_write: Callable[[str], None]
    # Writes to one document run one after another, so that their ETags hold.
    locks: dict[str, threading.Lock] = field(default_factory=dict)

    def send(
        self, method: Method, url: str, address: str, body: Graph | str, only_new: bool
    ) -> Sent:
        """Write a document, unless an earlier run that this one resumes has done it."""
        graph = None if isinstance(body, str) else body
        order = _Order(method, url, address, body_of(method, body, url), graph, only_new)
        with self.locks.setdefault(address, threading.Lock()):
            earlier = self.journal.earlier(method, address, digest(order.body))
            if earlier is None:
                return self._sent(order, None)
            if earlier.state == "done":
                return Sent(earlier.status, earlier.at or url)
            repeated = order.repeatable or self.unanswered == "again"
            decided = self.unanswered == "done"
            if repeated or not (decided or self._was_done(order, earlier.condition)):
                return self._sent(order, earlier)
            self.journal.update(earlier, state="done", status=earlier.status or 200)
            return Sent(earlier.status or 200, url)

    def _sent(self, order: _Order, earlier: Write | None) -> Sent:
        condition = self._condition(order)
        if earlier is not None:
            write = self.journal.update(earlier, condition=condition, earlier=False)
        else:
            write = self.journal.begin(order.method, order.address, digest(order.body), condition)
        if order.only_new and condition != _ABSENT:
            # Not left to the server, which need not know conditions.
            raise self._refused(order, write, "the document exists", _CHANGED_MEANWHILE)
        kind = UPDATE if order.graph is None else TURTLE
        lost = ""
        for attempt in range(1, self.web.limits.tries + 1):
            last = attempt == self.web.limits.tries
            try:
                reply = self.web.ask(
                    order.method,
                    order.address,
                    headers={"Content-Type": kind, **condition},
                    body=order.body,
                    may_follow=self.may_write,
                )
                changed = reply.status == _CHANGED_MEANWHILE and bool(condition)
                if changed and not lost and not last and not order.only_new:
                    # Someone else changed it since its ETag was read; this write was not done.
                    condition = self._condition(order)
                    write = self.journal.update(write, condition=condition)
                    continue
            except (Unreachable, BudgetError, EndpointError, UsageError) as error:
                # An earlier attempt may still be carried out.
                state: State = "unanswered" if lost else "not sent"
                self.journal.update(write, state=state, why=lost or str(error))
                if isinstance(error, BudgetError):
                    raise
                raise order.failure(state, f"{error}") from error
            except ExchangeError as error:
                lost = str(error)
            else:
                # After a lost reply, the lost request itself may have changed it.
                if reply.status not in _UNCLEAR and not (changed and lost):
                    return self._ended(order, write, reply)
                lost = summary(reply)
            done, why = False, lost
            if not order.repeatable:
                try:
                    done = self._was_done(order, condition)
                except EndpointError as error:
                    last, why = True, f"{lost}; {error.what}"
            if done:
                self.journal.update(write, state="done", status=200, why=f"seen after: {lost}")
                return Sent(200, order.url)
            if last:
                self.journal.update(write, state="unanswered", why=lost)
                raise order.failure("unanswered", why)
            self.web.pause(0.5 * 2 ** (attempt - 1) * random.uniform(0.75, 1.25))
        raise AssertionError("the last attempt returns or raises")

    def _ended(self, order: _Order, write: Write, reply: Reply) -> Sent:
        """Record and return what a clear reply says."""
        if reply.status == 303 or 200 <= reply.status < 300:
            at = order.url
            named = reply.headers.get("Location")
            if named and reply.status in (201, 303) and order.method == "POST":
                at = self.web.known_as(urljoin(reply.url, named))
            noted = "" if at == order.url else at
            self.journal.update(write, state="done", status=reply.status, at=noted)
            return Sent(reply.status, at)
        what = summary(reply)
        if 300 <= reply.status < 400:
            what = f"HTTP {reply.status} redirects to {reply.headers.get('Location', 'nowhere')}"
        raise self._refused(order, write, what, reply.status)

    def _refused(self, order: _Order, write: Write, why: str, status: int) -> EndpointError:
        self.journal.update(write, state="refused", status=status, why=why)
        return order.failure("refused", why)

    def _was_done(self, order: _Order, condition: Mapping[str, str]) -> bool:
        """Compare the document with its state before a write."""
        try:
            if condition and self._condition(order) == condition:
                return False
            if order.graph is not None:
                reply = self.web.ask("GET", order.address, headers={"Accept": ACCEPT})
                if reply.status >= 300 and reply.status not in _GONE:
                    what, code = summary(reply), "http"
                    raise EndpointError(what, where=order.url, code=code, status=reply.status)
                if reply.status < 300 and entails(graph_of(reply), order.graph):
                    return True
        except ReasoningBankError as error:
            what = f"the document cannot be read: {error}"
            raise EndpointError(what, where=order.url, code="write-unknown") from None
        what = f"the document does not show whether an earlier {order.method} was done"
        hint = "look at it, then resume with unanswered writes taken as done, or done again"
        raise EndpointError(what, where=order.url, hint=hint, code="write-unknown")

    def _condition(self, order: _Order) -> dict[str, str]:
        """Return the condition that the document is in its present state; empty if unsupported."""
        if order.repeatable:
            return {}
        # The server compares the condition with the document, in any format.
        reply = self.web.ask("HEAD", order.address, headers={"Accept": ACCEPT})
        if reply.status in _GONE:
            return _ABSENT
        tag = reply.headers.get("ETag", "")
        good = 200 <= reply.status < 300 and tag and not tag.startswith("W/")
        return {"If-Match": tag} if good else {}


def entails(there: Graph, wanted: Graph) -> bool:
    """Return whether a graph holds another, whose blank nodes may have other names there."""
    names: dict[Node, str] = {}

    def written(part: Node) -> str:
        if isinstance(part, BNode):
            return names.setdefault(part, f"?b{len(names)}")
        return part.n3()

    blank = [t for t in wanted if any(isinstance(part, BNode) for part in t)]
    if not all(triple in there for triple in set(wanted) - set(blank)):
        return False
    pattern = " . ".join(" ".join(map(written, triple)) for triple in blank)
    return not blank or bool(there.query(f"ASK {{ {pattern} }}").askAnswer)
