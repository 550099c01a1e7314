"""Keeps an Oxigraph engine running behind a stable port; a script, run by `OxigraphServer`.

    python supervisor.py LISTENER < PLAN

LISTENER is the file number of a listening socket: the port that clients know. Each connection is
relayed to the engine on another port, so the requests it works on are known for every client. An
engine that ended, or that computes what no client waits for, is started again with the same data.
Requests wait meanwhile, and get 503 if that takes long. An engine that is still loading never
answers. A request on which the engine broke off twice is refused.

PLAN is one line of JSON (see `EnginePlan`); the answer is one line on standard output: `{}` once
the engine has all data, otherwise the failure. When standard input closes, because the parent
closed it, ended, or was killed, the engine is ended too.
"""

import ctypes
import gzip
import hashlib
import http.client
import json
import math
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import IO, NoReturn, TypedDict, cast

HOST = "127.0.0.1"
#: A port that was free when it was chosen may be taken a moment later.
PORT_TRIES = 5
POLL_S = 0.02
CHUNK = 256 * 1024
#: Seconds a request waits for the engine before it gets 503.
HOLD_S = 10.0
#: Fewest seconds an engine may continue with what no client waits for.
LEAST_PATIENCE_S = 2.0
#: Most seconds between two checks of what the engine works on.
LOOK_S = 2.0
#: Seconds in which the rest of a request may come: many requests have the same head.
REST_S = 0.05
MOST_PAUSE_S = 60
#: After this many times, the request is at fault.
MOST_BROKEN_OFF = 2
TIMED_OUT = "the query took too long to run"
BROKEN_OFF = "QueryEvaluationError: the engine broke off twice while it worked on this"
PR_SET_PDEATHSIG = 1


class Load(TypedDict):
    """A file to send to the engine."""

    file: str
    path: str
    media_type: str


class EnginePlan(TypedDict):
    """The command without its address, what to load, and an update to run then, if not empty."""

    command: list[str]
    loads: list[Load]
    update: str
    timeout_s: float
    start_timeout_s: float


class Failed(Exception):  # noqa: N818 - reported to the parent
    """The engine cannot be started or filled."""

    def __init__(
        self, what: str, where: str = "", hint: str = "", *, port_taken: bool = False
    ) -> None:
        super().__init__(what)
        self.port_taken = port_taken
        self.report = {"what": what, "where": where, "hint": hint}


class Exchange:
    """One connection of a client, and the request on it that the engine works on."""

    __slots__ = ("_digest", "answered", "began", "left")

    def __init__(self) -> None:
        self.began = 0.0
        self.answered = False
        self.left = 0.0
        self._digest = hashlib.sha256()

    @property
    def key(self) -> bytes:
        """A digest of the request."""
        return self._digest.digest()

    def take(self, asked: bytes) -> None:
        """Add a part of a request."""
        if not self.began or self.answered:
            self.began, self.answered = time.monotonic(), False
            self._digest = hashlib.sha256()
        self._digest.update(asked)


class Engine:
    """The program and its data."""

    def __init__(self, plan: EnginePlan) -> None:
        self._plan = plan
        self._digests: dict[str, str] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self._starting = threading.Lock()
        self._over = False
        self.port = 0

    def start(self) -> None:
        """Start it on a free port and load all data, which must be what they were before."""
        for attempt in range(PORT_TRIES):
            try:
                self._launch()
                break
            except Failed as error:
                if not error.port_taken or attempt == PORT_TRIES - 1:
                    raise
        for load in self._plan["loads"]:
            self._load(load)
        if self._plan["update"]:
            body = iter([self._plan["update"].encode()])
            if problem := self._post("/update", "application/sparql-update", body):
                raise Failed(f"the graphs cannot be merged: {problem}")

    def wait(self) -> None:
        """Return when it has ended."""
        if self._process is not None:
            self._process.wait()

    def end(self) -> None:
        """Kill it; it has nothing to write to disk."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        if self._log is not None:
            self._log.close()
        self._log = None

    def end_for_good(self) -> None:
        """End it, and allow no further start: one that is under way would be left behind."""
        with self._starting:
            self._over = True
        self.end()

    def _launch(self) -> None:
        self.end()
        with socket.socket() as probe:
            probe.bind((HOST, 0))
            self.port = probe.getsockname()[1]
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the engine
        with self._starting:
            if self._over:
                raise Failed("the endpoint is being ended")
            self._process = subprocess.Popen(
                [*self._plan["command"], "--bind", f"{HOST}:{self.port}"],
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                preexec_fn=_die_with_parent if sys.platform.startswith("linux") else None,
            )
        end = time.monotonic() + self._plan["start_timeout_s"]
        while time.monotonic() < end:
            # Only our own program writes to the log: another server on the port cannot pass.
            if "Listening" in self._output() and self._answers():
                return
            if self._process.poll() is not None:
                output = self._output()
                reason = next((line for line in output.splitlines() if line.strip()), "no reason")
                raise Failed(f"the program ended at once: {reason}", port_taken="in use" in output)
            time.sleep(POLL_S)
        seconds = f"{self._plan['start_timeout_s']:g} s"
        raise Failed(
            f"the program did not start within {seconds}: {self._output()[:200]}",
            hint="try again on a less busy machine",
        )

    def _output(self) -> str:
        # Not by seek and read: the program shares the position, and would overwrite its output.
        log = self._log
        return os.pread(log.fileno(), 4_000, 0).decode("utf-8", "replace") if log else ""

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection(HOST, self.port, timeout=2)
        with closing(connection), suppress(OSError):
            connection.request("GET", "/query", headers={"Accept": "text/turtle"})
            return connection.getresponse().status == 200
        return False

    def _load(self, load: Load) -> None:
        file = load["file"]
        digest = hashlib.sha256()

        def chunks() -> Iterator[bytes]:
            with cast("IO[bytes]", (gzip.open if file.endswith(".gz") else open)(file, "rb")) as it:
                while chunk := it.read(1 << 20):
                    digest.update(chunk)
                    yield chunk

        try:
            problem = self._post(load["path"], load["media_type"], chunks())
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise Failed(f"broken gzip file: {error}", file) from error
        if problem:
            raise Failed(f"cannot be loaded: {problem}", file, "correct it")
        if self._digests.setdefault(file, digest.hexdigest()) != digest.hexdigest():
            raise Failed("was changed since the server was started", file, "start a new server")

    def _post(self, path: str, media_type: str, chunks: Iterator[bytes]) -> str:
        """Send a body to the program; return its error message, or an empty string."""
        connection = http.client.HTTPConnection(HOST, self.port, timeout=600)
        headers = {"Content-Type": media_type, "Transfer-Encoding": "chunked"}
        with closing(connection):
            # It may report an error before it has read everything.
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.request("POST", path, chunks, headers, encode_chunked=True)
            answer = connection.getresponse()
            text = answer.read().decode("utf-8", "replace")
        return "" if 200 <= answer.status < 300 else text[:300] or f"HTTP {answer.status}"


class Supervisor:
    """Relays connections to the engine, and starts it again when that is due."""

    def __init__(self, listener: socket.socket, plan: EnginePlan) -> None:
        self._listener = listener
        self._engine = Engine(plan)
        self._timeout = plan["timeout_s"]
        self._patience = LEAST_PATIENCE_S
        self._exchanges: set[Exchange] = set()
        self._change = threading.Condition()
        self._up = False
        self._starts = 0
        self._ending = False
        self._problem = ""
        self._broken_off: Counter[bytes] = Counter()

    def run(self) -> NoReturn:
        """Start the engine, report it, and keep it running."""
        # The kernel ties the engine to the thread that starts it: this one, which stays.
        failed = self._start()
        os.write(1, json.dumps(failed.report if failed else {}).encode() + b"\n")
        if failed:
            self.end(1)
        threading.Thread(target=self._accept, daemon=True).start()
        while True:
            self._await_due()
            with self._change:
                self._up, self._ending = False, self._up
            self._engine.end()
            for pause in count(1):
                failed = self._start()
                if failed is None:
                    break
                where = failed.report["where"]
                reason = f"{where}: {failed}" if where else str(failed)
                with self._change:
                    self._problem = f"the engine cannot be started again: {reason}"
                    self._change.notify_all()
                time.sleep(min(pause, MOST_PAUSE_S))

    def end(self, status: int) -> NoReturn:
        """End the engine and this process."""
        with suppress(OSError):  # frees the port at once
            self._listener.shutdown(socket.SHUT_RDWR)
        self._engine.end_for_good()
        os._exit(status)

    def _start(self) -> Failed | None:
        began = time.monotonic()
        try:
            self._engine.start()
        except Failed as failed:
            return failed
        except (OSError, http.client.HTTPException) as error:
            file = getattr(error, "filename", None)
            if isinstance(file, str):
                return Failed(f"cannot be read: {getattr(error, 'strerror', error)}", file)
            return Failed(f"cannot connect to the program: {error}")
        # Waiting as long as a start takes before starting anew costs at most twice the optimum.
        self._patience = max(LEAST_PATIENCE_S, time.monotonic() - began)
        with self._change:
            self._up, self._ending, self._problem = True, False, ""
            self._starts += 1
            self._change.notify_all()
        threading.Thread(target=self._await_end, args=(self._starts,), daemon=True).start()
        return None

    def _await_end(self, start: int) -> None:
        self._engine.wait()
        with self._change:
            if start == self._starts:
                self._up = False
                self._change.notify_all()

    def _await_due(self) -> None:
        """Return when the engine has ended, or should be ended."""
        with self._change:
            while self._up and (wait := self._due() - time.monotonic()) > 0:
                self._change.wait(min(wait, LOOK_S))

    def _due(self) -> float:
        """Return when the engine is to be started anew, given the current requests."""
        asked = [exchange for exchange in self._exchanges if exchange.began]
        # The engine ends a query by itself at its time limit, unless it cannot.
        most = self._timeout + self._patience
        due = [exchange.began + most for exchange in asked if not exchange.answered]
        left = [exchange for exchange in asked if exchange.left]
        # If no other client waits, a restart disturbs nobody.
        alone = len(left) == len(asked)
        due += [
            max(exchange.left + self._patience, 0 if alone else exchange.began + most)
            for exchange in left
        ]
        return min(due, default=math.inf)

    def _accept(self) -> NoReturn:
        while True:
            client, _ = self._listener.accept()
            threading.Thread(target=self._attend, args=(client,), daemon=True).start()

    def _attend(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            while (engine := self._connected()) is not None:
                exchange = Exchange()
                with self._change:
                    self._exchanges.add(exchange)
                try:
                    with engine:
                        self._relay(client, engine, exchange)
                finally:
                    with self._change:
                        self._exchanges.remove(exchange)
                        self._change.notify_all()
                # An engine that ended before it was asked anything is replaced by the next one.
                if exchange.began or exchange.left:
                    return
            client.settimeout(HOLD_S)
            client.recv(CHUNK)
            self._turn_away(client)

    def _connected(self) -> socket.socket | None:
        end = time.monotonic() + HOLD_S
        while True:
            with self._change:
                self._change.wait_for(lambda: self._up or self._problem, end - time.monotonic())
                # Read together: a moment later the port may belong to an engine that still loads.
                port = self._engine.port if self._up else 0
            if not port or time.monotonic() > end:
                return None
            with suppress(OSError):
                return socket.create_connection((HOST, port))
            time.sleep(POLL_S)

    def _relay(self, client: socket.socket, engine: socket.socket, exchange: Exchange) -> None:
        poll = select.poll()
        for end in (client, engine):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            poll.register(end, select.POLLIN)
        while True:
            ready = {number for number, _ in poll.poll()}
            # The engine first: what it was not asked yet, the next one can be asked.
            if engine.fileno() in ready:
                if answer := _received(engine):
                    if not exchange.answered:
                        exchange.answered = True
                        self._broken_off.pop(exchange.key, None)
                    client.sendall(answer)
                else:
                    if exchange.began and not exchange.answered:
                        self._explain(client, exchange)
                    return
            if client.fileno() in ready:
                if asked := _received(client):
                    exchange.take(asked)
                    if self._broken_off[exchange.key] >= MOST_BROKEN_OFF:
                        _answer(client, BROKEN_OFF, "500 Internal Server Error")
                        return
                    with suppress(OSError):
                        engine.sendall(asked)
                else:
                    # A client that only stopped sending still gets its answer.
                    poll.unregister(client)
                    exchange.left = time.monotonic()
                    with suppress(OSError):
                        engine.shutdown(socket.SHUT_WR)
                    with self._change:
                        self._change.notify_all()

    def _explain(self, client: socket.socket, exchange: Exchange) -> None:
        """Answer in place of an engine that ended, or was ended, before it did."""
        if self._ending and time.monotonic() >= exchange.began + self._timeout:
            _answer(client, TIMED_OUT, "408 Request Timeout")
            return
        if not self._ending:
            while select.select([client], [], [], REST_S)[0] and (asked := _received(client)):
                exchange.take(asked)
            self._broken_off[exchange.key] += 1
        self._turn_away(client)

    def _turn_away(self, client: socket.socket) -> None:
        reason = self._problem or "the engine is being started again"
        _answer(client, reason, "503 Service Unavailable", "Retry-After: 1\r\n")


def _answer(client: socket.socket, text: str, status: str, headers: str = "") -> None:
    body = text.encode()
    head = (
        f"HTTP/1.1 {status}\r\n{headers}Content-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    client.sendall(head.encode() + body)
    # Data that a client still sends must not reset a connection whose answer it has not read.
    client.shutdown(socket.SHUT_WR)
    client.settimeout(HOLD_S)
    while client.recv(CHUNK):
        pass


def _received(end: socket.socket) -> bytes:
    """Return what came; nothing if the other side has closed, or is gone."""
    try:
        return end.recv(CHUNK)
    except OSError:
        return b""


def _die_with_parent() -> None:
    # The first process to be killed if memory runs out.
    with suppress(OSError), Path("/proc/self/oom_score_adj").open("w") as score:
        score.write("1000")
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _end_when_orphaned(supervisor: Supervisor, parent: int) -> None:
    while os.getppid() == parent:
        ready, _, _ = select.select([0], [], [], 1.0)
        if ready and not os.read(0, 4096):
            break
    supervisor.end(0)


def main(listener: str) -> NoReturn:
    """Keep an engine running until standard input closes."""
    parent = os.getppid()
    plan = cast("EnginePlan", json.loads(_first_line()))
    supervisor = Supervisor(socket.socket(fileno=int(listener)), plan)
    threading.Thread(target=_end_when_orphaned, args=(supervisor, parent), daemon=True).start()
    supervisor.run()


def _first_line() -> bytes:
    # Unbuffered: the end of standard input is watched from here on.
    line = b""
    while not line.endswith(b"\n") and (chunk := os.read(0, CHUNK)):
        line += chunk
    return line


if __name__ == "__main__":
    main(sys.argv[1])
