"""The local model: llama.cpp's OpenAI-compatible server in a process of its own, on loopback.

Each `LocalModel` starts and stops its own server: in a shared one, a run would evict another's
prompt prefixes. To share one, start it with ``reasoningbank lm serve`` and pass its address.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO

import httpx

from reasoningbank.errors import ModelError, SetupError, UsageError
from reasoningbank.sparql.server import end_child

_SERVE = Path(__file__).with_name("serve.py")

#: Seconds that loading may take.
STARTUP_S = 300.0
#: Roles that share one slot each, after the slots of the solver's workers.
SINGLE_ROLES = ("judge", "distiller", "extractor")


def slot_of(role: str, *, workers: int = 1, worker: int = 0) -> int:
    """Return the server slot of a role, so that no role evicts the cached prefix of another."""
    if role == "solver":
        return worker % workers
    if role in SINGLE_ROLES:
        return workers + SINGLE_ROLES.index(role)
    raise UsageError(
        f"unknown role {role!r}", where="role", hint="choose solver, judge, distiller or extractor"
    )


class LocalModel:
    """A server process for one verified GGUF file, for the length of a block.

    It ends with the block, and also when this process dies in any way, SIGKILL included. Each of
    the `workers` solvers has a slot of `context` tokens, and so has each other role.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        alias: str = "local",
        workers: int = 1,
        context: int = 8192,
        threads: int | None = None,
    ) -> None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        self.path = Path(path)
        self.threads = threads or cores or 1
        #: What `serve.py` reads.
        self._settings = {
            "path": str(path),
            "alias": alias,
            "slots": workers + len(SINGLE_ROLES),
            "context": context,
            "threads": self.threads,
        }
        self._process: subprocess.Popen[str] | None = None
        self._log: IO[str] | None = None
        self._address = ""

    @property
    def address(self) -> str:
        """Base of the OpenAI-compatible interface, e.g. ``http://127.0.0.1:40123/v1``."""
        if not self._address:
            raise ModelError("the local model server is not running", where=str(self.path))
        return self._address

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def __enter__(self) -> LocalModel:
        """Start the server and wait until it answers."""
        check_gguf(self.path)
        # An unnamed file, so that it disappears with this process.
        self._log = tempfile.TemporaryFile("w+", errors="replace")
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(_SERVE), json.dumps(self._settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            # Ctrl-C is for this process, which then stops the server.
            start_new_session=True,
        )
        try:
            self._await_ready(self._process, time.monotonic() + STARTUP_S)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        process, self._process, self._address = self._process, None, ""
        end_child(process)
        if self._log is not None:
            self._log.close()
            self._log = None

    def _await_ready(self, process: subprocess.Popen[str], deadline: float) -> None:
        found: list[str] = []
        stream = process.stdout
        assert stream is not None
        reader = threading.Thread(target=lambda: found.append(stream.readline()), daemon=True)
        reader.start()
        reader.join(max(0.0, deadline - time.monotonic()))
        line = "".join(found)
        message = json.loads(line) if line.startswith("{") else {}
        if "address" not in message:
            raise self._failure(message.get("error"), timed_out=line == "" and self.alive)
        address = str(message["address"])
        while time.monotonic() < deadline and self.alive:
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(f"{address}/health", timeout=5, trust_env=False).status_code == 200:
                    self._address = f"{address}/v1"
                    return
            time.sleep(0.1)
        raise self._failure(None, timed_out=self.alive)

    def _failure(self, error: str | None, *, timed_out: bool) -> SetupError:
        assert self._log is not None
        self._log.seek(0)
        log, path = self._log.read(), str(self.path)
        if timed_out:
            what = f"the model did not load within {STARTUP_S:.0f} s"
            hint = "wait until the machine is less busy and try again"
            return SetupError(what, where=path, hint=hint, code="startup-timeout")
        complaints = [x for x in log.splitlines() if " E " in x or "error" in x.lower()]
        reason = (complaints or [error or "the server ended while it loaded the model"])[0]
        what = f"the model cannot be served: {reason.strip()[:300]}"
        hint = "check that it is a GGUF file llama.cpp can load and that memory suffices"
        return SetupError(what, where=path, hint=hint, code="cannot-serve")


def check_gguf(path: Path) -> None:
    """Raise a `SetupError` unless the file exists and begins as GGUF does."""
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        what = f"the weights file cannot be read ({error.strerror})"
        hint = "name a GGUF file, or run `reasoningbank lm pull local` for the embedded model"
        raise SetupError(what, where=str(path), hint=hint, code="no-weights") from error
    if magic != b"GGUF":
        hint = "name a GGUF file"
        raise SetupError("not a GGUF file", where=str(path), hint=hint, code="not-gguf")
