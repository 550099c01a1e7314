"""Sandboxes started ahead of need, so that no trial waits four seconds for Pyodide."""

from __future__ import annotations

import queue
import threading

from reasoningbank.agents.sandbox.interpreter import Sandbox

__all__ = ["SandboxPool"]


class SandboxPool:
    """Hands out started sandboxes and keeps `spare` more warm in the background.

    An instance is a zero-argument factory, as `dspy.RLM(interpreter_factory=...)` wants it;
    whoever takes a sandbox shuts it down. The pool is a context manager; leaving it shuts down
    the spares.

    Args:
        spare: How many sandboxes to keep ready, at least 0. Each holds 110 to 170 MB.
        timeout_s: Seconds one execution may compute.
    """

    execution_instructions = Sandbox.execution_instructions

    def __init__(self, spare: int = 1, timeout_s: float = 30.0) -> None:
        self._spare = spare
        self._timeout_s = timeout_s
        self._ready: queue.SimpleQueue[Sandbox] = queue.SimpleQueue()
        self._waiting = 0
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

    def prestart(self) -> None:
        """Start sandboxes in the background until `spare` are ready or under way."""
        with self._lock:
            missing = 0 if self._closed else self._spare - self._ready.qsize() - self._waiting
            self._waiting += max(0, missing)
        for _ in range(missing):
            threading.Thread(target=self._start_one, daemon=True).start()

    def close(self) -> None:
        """Shut down the sandboxes nobody took; calling it again is harmless."""
        with self._lock:
            self._closed = True
        while not self._ready.empty():
            self._ready.get().shutdown()

    def _start_one(self) -> None:
        sandbox = Sandbox(self._timeout_s)
        try:
            sandbox.start()
        except Exception:
            # The trial that needs it meets the same failure in its own thread and reports it.
            sandbox.shutdown()
            with self._lock:
                self._waiting -= 1
            return
        with self._lock:
            self._waiting -= 1
            if not self._closed:
                self._ready.put(sandbox)
                return
        sandbox.shutdown()
