"""Sandboxes started ahead of need, so that no trial waits for Pyodide."""

from __future__ import annotations

import os
import queue
import threading

from reasoningbank.agents.sandbox.interpreter import Sandbox

__all__ = ["SandboxPool"]


class SandboxPool:
    """Hands out started sandboxes and keeps `spare` more warm in the background.

    An instance is a zero-argument factory, as `dspy.RLM(interpreter_factory=...)` wants it;
    whoever takes a sandbox shuts it down, since what one trial left behind is no other's. As many
    start at a time as there are processors: more would all be ready as late as the last.

    The pool is a context manager; leaving it shuts down the spares.

    Args:
        spare: How many sandboxes to keep ready, at least 0. Each holds 150 to 190 MB.
        timeout_s: Seconds one execution may compute.
    """

    execution_instructions = Sandbox.execution_instructions

    def __init__(self, spare: int = 1, timeout_s: float = 30.0) -> None:
        self._spare = spare
        self._timeout_s = timeout_s
        self._ready: queue.SimpleQueue[Sandbox] = queue.SimpleQueue()
        self._under_way = 0
        self._starters = 0
        self._lock = threading.Lock()
        self._closed = False

    def __enter__(self) -> SandboxPool:
        self.prestart()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __call__(self) -> Sandbox:
        """Return a sandbox, a warm one if there is one."""
        try:
            sandbox = self._ready.get_nowait()
        except queue.Empty:
            sandbox = Sandbox(self._timeout_s)
        self.prestart()
        return sandbox

    @property
    def ready(self) -> int:
        """How many warm sandboxes wait to be taken."""
        return self._ready.qsize()

    def prestart(self) -> None:
        """Start sandboxes in the background until `spare` are ready or under way."""
        with self._lock:
            most = min(self._missing(), os.cpu_count() or 1) - self._starters
            self._starters += max(0, most)
        for _ in range(most):
            threading.Thread(target=self._start_some, daemon=True).start()

    def close(self) -> None:
        """Shut down the sandboxes nobody took; calling it again is harmless."""
        with self._lock:
            self._closed = True
        while not self._ready.empty():
            self._ready.get().shutdown()

    def _missing(self) -> int:
        return 0 if self._closed else self._spare - self._ready.qsize() - self._under_way

    def _start_some(self) -> None:
        while True:
            with self._lock:
                if self._missing() <= 0:
                    self._starters -= 1
                    return
                self._under_way += 1
            if not self._start_one():
                with self._lock:
                    self._starters -= 1
                return

    def _start_one(self) -> bool:
        sandbox = Sandbox(self._timeout_s)
        try:
            sandbox.start()
        except Exception:
            # The trial that needs it meets the same failure in its own thread and reports it.
            sandbox.shutdown()
            with self._lock:
                self._under_way -= 1
            return False
        with self._lock:
            self._under_way -= 1
            if not self._closed:
                self._ready.put(sandbox)
                return True
        sandbox.shutdown()
        return False
