"""Keeps an Oxigraph engine running behind a stable port; a script, run by `OxigraphServer`.

    python supervisor.py LISTENER PLAN

LISTENER is the file number of a listening socket: the port that clients know. Each connection is
relayed to the engine on another port, so the requests it works on are known for every client. An
engine that ended, or that computes what no client waits for, is started again with the same data.
Requests wait meanwhile, and get 503 if that takes long. A request on which the engine broke off
twice is refused.

PLAN is JSON: the engine's `command` without its address, what it `loads`, an `update` to run
then if not empty, and `timeout_s` of queries. The answer is one line on standard output: `{}` once
the engine has all data, otherwise the failure. The engine ends when standard input closes.
"""

import asyncio
import ctypes
import gzip
import hashlib
import http.client
import json
import math
import os
import signal
import socket
import sys
import tempfile
import time
import zlib
from asyncio import StreamReader, StreamWriter
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import IO, Any, NoReturn, cast

HOST = "127.0.0.1"
#: Seconds the program may take to start, without loading.
START_S = 30.0
#: A port that was free when it was chosen may be taken a moment later.
PORT_TRIES = 5
POLL_S = 0.02
CHUNK = 256 * 1024
#: Seconds a request waits for the engine before it gets 503.
HOLD_S = 10.0
#: Fewest seconds an engine may continue with what no client waits for.
LEAST_PATIENCE_S = 2.0
#: Seconds between two checks of what the engine works on.
LOOK_S = 0.2
#: Seconds in which the rest of a request may come: many requests have the same head.
REST_S = 0.05
MOST_PAUSE_S = 60
#: After this many times, the request is at fault.
MOST_BROKEN_OFF = 2
TIMED_OUT = "the query took too long to run"
BROKEN_OFF = "QueryEvaluationError: the engine broke off twice while it worked on this"
PR_SET_PDEATHSIG = 1


class Failed(Exception):  # noqa: N818 - reported to the parent
    def __init__(self, what: str, where: str = "", hint: str = "") -> None:
        super().__init__(f"{where}: {what}" if where else what)
        self.report = {"what": what, "where": where, "hint": hint}


class Exchange:
    """One connection of a client, and the request on it that the engine works on."""

    def __init__(self) -> None:
        # The loop holds tasks weakly, and what this one waits for may be in nobody else's hands.
        self._task = asyncio.current_task()
        self.began = self.left = 0.0
        self.answered = False
        self._digest = hashlib.sha256()

    @property
    def key(self) -> bytes:
        """A digest of the request, however it was divided."""
        return self._digest.digest()

    def take(self, asked: bytes) -> None:
        if not self.began or self.answered:
            self.began, self.answered = time.monotonic(), False
            self._digest = hashlib.sha256()
        self._digest.update(asked)


class Supervisor:
    """Starts the engine when that is due, and relays connections to it."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self._plan = plan
        self._digests: dict[str, str] = {}
        self._process: asyncio.subprocess.Process | None = None
        self._port = 0
        self._patience = LEAST_PATIENCE_S
        self._exchanges: set[Exchange] = set()
        self._up = False
        self._ending = False
        self._problem = ""
        self._broken_off: Counter[bytes] = Counter()

    async def run(self, listener: socket.socket) -> None:
        """Start the engine, report it, and keep it running; return if it does not start."""
        try:
            await self._start()
        except Failed as failed:
            _report(failed.report)
            return
        _report({})
        await asyncio.start_server(self._attend, sock=listener, limit=CHUNK)
        while True:
            while self._running() and time.monotonic() < self._due():
                await asyncio.sleep(LOOK_S)
            self._up, self._ending = False, self._running()
            for pause in count(1):
                try:
                    await self._start()
                    break
                except Failed as failed:
                    self._problem = f"the engine cannot be started again: {failed}"
                await asyncio.sleep(min(pause, MOST_PAUSE_S))

    async def end(self) -> None:
        """Kill the engine; it has nothing to write to disk."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    def _running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def _start(self) -> None:
        """Start the engine on a free port with all data, which must be what they were before."""
        began = time.monotonic()
        try:
            await self._launch()
            await asyncio.to_thread(self._fill)
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, OSError) and isinstance(error.filename, str):
                raise Failed(f"cannot be read: {error.strerror}", error.filename) from error
            raise Failed(f"cannot connect to the program: {error}") from error
        # Waiting as long as a start takes before starting anew costs at most twice the optimum.
        self._patience = max(LEAST_PATIENCE_S, time.monotonic() - began)
        self._up, self._ending, self._problem = True, False, ""

    async def _launch(self) -> None:
        end = time.monotonic() + START_S
        said = ""
        for _ in range(PORT_TRIES):
            await self.end()
            with socket.socket() as probe:
                probe.bind((HOST, 0))
                self._port = probe.getsockname()[1]
            with tempfile.TemporaryFile() as log:
                # The kernel ties the engine to the thread that starts it: this one, which stays.
                self._process = await asyncio.create_subprocess_exec(
                    *self._plan["command"],
                    *("--bind", f"{HOST}:{self._port}"),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    preexec_fn=_die_with_parent,
                )
                while self._running() and time.monotonic() < end:
                    await asyncio.sleep(POLL_S)
                    # Only our own program writes there: another server on the port cannot pass.
                    if "Listening" in _text(log):
                        return
                said = _text(log)
            if self._running():
                what = f"the program did not start within {START_S:g} s: {said[:200]}"
                raise Failed(what, hint="try again on a less busy machine")
            if "in use" not in said:
                break
        reason = next((line for line in said.splitlines() if line.strip()), "no reason")
        raise Failed(f"the program ended at once: {reason}")

    def _fill(self) -> None:
        for load in self._plan["loads"]:
            self._load(**load)
        if self._plan["update"]:
            body = iter([self._plan["update"].encode()])
            if problem := self._post("/update", "application/sparql-update", body):
                raise Failed(f"the graphs cannot be merged: {problem}")

    def _load(self, file: str, path: str, media_type: str) -> None:
        digest = hashlib.sha256()

        def chunks() -> Iterator[bytes]:
            with cast("IO[bytes]", (gzip.open if file.endswith(".gz") else open)(file, "rb")) as it:
                while chunk := it.read(1 << 20):
                    digest.update(chunk)
                    yield chunk

        try:
            problem = self._post(path, media_type, chunks())
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise Failed(f"broken gzip file: {error}", file) from error
        if problem:
            raise Failed(f"cannot be loaded: {problem}", file, "correct it")
        if self._digests.setdefault(file, digest.hexdigest()) != digest.hexdigest():
            raise Failed("was changed since the server was started", file, "start a new server")

    def _post(self, path: str, media_type: str, chunks: Iterator[bytes]) -> str:
        """Send a body to the program; return its error message, or an empty string."""
        connection = http.client.HTTPConnection(HOST, self._port, timeout=600)
        headers = {"Content-Type": media_type, "Transfer-Encoding": "chunked"}
        with closing(connection):
            # It may report an error before it has read everything.
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.request("POST", path, chunks, headers, encode_chunked=True)
            answer = connection.getresponse()
            text = answer.read().decode("utf-8", "replace")
        return "" if 200 <= answer.status < 300 else text[:300] or f"HTTP {answer.status}"

    def _due(self) -> float:
        """Return when the engine is to be started anew, given the current requests."""
        asked = [one for one in self._exchanges if one.began]
        # The engine ends a query by itself at its time limit, unless it cannot.
        most = self._plan["timeout_s"] + self._patience
        due = [one.began + most for one in asked if not one.answered]
        left = [one for one in asked if one.left]
        # If no other client waits, a restart disturbs nobody.
        alone = len(left) == len(asked)
        due += [max(one.left + self._patience, 0 if alone else one.began + most) for one in left]
        return min(due, default=math.inf)

    async def _attend(self, client: StreamReader, answer: StreamWriter) -> None:
        with suppress(OSError), closing(answer):
            # Connected only now: an engine may end while a client has not asked yet.
            if not (asked := await client.read(CHUNK)):
                return
            engine = await self._connected()
            if engine is None:
                await self._turn_away(client, answer)
                return
            exchange = Exchange()
            self._exchanges.add(exchange)
            sending = asyncio.create_task(self._send(asked, client, answer, engine[1], exchange))
            try:
                while said := await _received(engine[0]):
                    if not exchange.answered:
                        exchange.answered = True
                        self._broken_off.pop(exchange.key, None)
                    answer.write(said)
                    await answer.drain()
                sending.cancel()
                await asyncio.wait([sending])
                if not exchange.answered:
                    await self._explain(client, answer, exchange)
            finally:
                sending.cancel()
                self._exchanges.remove(exchange)
                engine[1].close()

    async def _connected(self) -> tuple[StreamReader, StreamWriter] | None:
        end = time.monotonic() + HOLD_S
        while time.monotonic() < end and (self._up or not self._problem):
            if self._up:
                with suppress(OSError):
                    return await asyncio.open_connection(HOST, self._port, limit=CHUNK)
            await asyncio.sleep(POLL_S)
        return None

    async def _send(
        self,
        asked: bytes,
        client: StreamReader,
        answer: StreamWriter,
        engine: StreamWriter,
        exchange: Exchange,
    ) -> None:
        with suppress(OSError):
            while asked:
                exchange.take(asked)
                if self._broken_off[exchange.key] >= MOST_BROKEN_OFF:
                    exchange.answered = True
                    await _answer(client, answer, BROKEN_OFF, "500 Internal Server Error")
                    engine.close()
                    return
                with suppress(OSError):
                    engine.write(asked)
                    await engine.drain()
                asked = await _received(client)
            # A client that only stopped sending still gets its answer.
            exchange.left = time.monotonic()
            engine.write_eof()

    async def _explain(
        self, client: StreamReader, answer: StreamWriter, exchange: Exchange
    ) -> None:
        """Answer in place of an engine that ended, or was ended, before it did."""
        if self._ending and time.monotonic() >= exchange.began + self._plan["timeout_s"]:
            await _answer(client, answer, TIMED_OUT, "408 Request Timeout")
            return
        if not self._ending:
            with suppress(TimeoutError):
                while asked := await asyncio.wait_for(client.read(CHUNK), REST_S):
                    exchange.take(asked)
            self._broken_off[exchange.key] += 1
        await self._turn_away(client, answer)

    async def _turn_away(self, client: StreamReader, answer: StreamWriter) -> None:
        reason = self._problem or "the engine is being started again"
        await _answer(client, answer, reason, "503 Service Unavailable", "Retry-After: 1\r\n")


async def _answer(
    client: StreamReader, answer: StreamWriter, text: str, status: str, headers: str = ""
) -> None:
    body = text.encode()
    head = (
        f"HTTP/1.1 {status}\r\n{headers}Content-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    answer.write(head.encode() + body)
    answer.write_eof()
    # Data that a client still sends must not reset a connection whose answer it has not read.
    await asyncio.wait_for(client.read(), HOLD_S)


async def _received(end: StreamReader) -> bytes:
    """Return what came; nothing if the other side has closed, or is gone."""
    with suppress(OSError):
        return await end.read(CHUNK)
    return b""


def _text(log: IO[bytes]) -> str:
    # Not by seek and read: the program shares the position, and would overwrite its output.
    return os.pread(log.fileno(), 4_000, 0).decode("utf-8", "replace")


def _report(failure: dict[str, str]) -> None:
    os.write(1, json.dumps(failure).encode() + b"\n")


def _die_with_parent() -> None:
    # The first process to be killed if memory runs out.
    with suppress(OSError), Path("/proc/self/oom_score_adj").open("w") as score:
        score.write("1000")
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


async def main(listener: socket.socket, plan: dict[str, Any]) -> NoReturn:
    """Keep an engine running until standard input closes, or the parent has ended."""
    parent = os.getppid()
    closed = asyncio.Event()
    asyncio.get_running_loop().add_reader(0, closed.set)
    supervisor = Supervisor(plan)
    keeping = asyncio.create_task(supervisor.run(listener))
    ends = [keeping, asyncio.create_task(closed.wait())]
    while os.getppid() == parent and not any(end.done() for end in ends):
        await asyncio.wait(ends, timeout=1, return_when=asyncio.FIRST_COMPLETED)
    if keeping.done() and (error := keeping.exception()):
        _report({"what": f"{type(error).__name__}: {error}", "where": "", "hint": ""})
    keeping.cancel()
    with suppress(OSError):  # frees the port at once
        listener.shutdown(socket.SHUT_RDWR)
    await supervisor.end()
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main(socket.socket(fileno=int(sys.argv[1])), json.loads(sys.argv[2])))
