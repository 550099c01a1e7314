"""Politeness: how many requests this process has in flight to one address, and how often."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Gate", "gate_for"]


class Gate:
    """Bounds simultaneous requests to one address and spaces their starts.

    Args:
        connections: Most requests at once.
    """

    def __init__(self, connections: int) -> None:
        self._slots = threading.BoundedSemaphore(connections)
        self._lock = threading.Lock()
        self._next = 0.0

    @contextmanager
    def slot(self, interval_s: float, wait_s: float) -> Iterator[None]:
        """Hold a place while a request runs; its start is `interval_s` after the last one's.

        Raises:
            TimeoutError: No place became free within `wait_s` seconds.
        """
        end = time.monotonic() + wait_s
        if not self._slots.acquire(timeout=max(0.0, wait_s)):
            raise TimeoutError
        try:
            with self._lock:
                now = time.monotonic()
                start = max(now, self._next)
                if start > max(now, end):
                    raise TimeoutError
                self._next = start + interval_s
            time.sleep(start - now)
            yield
        finally:
            self._slots.release()


_gates: weakref.WeakValueDictionary[tuple[str, int], Gate] = weakref.WeakValueDictionary()
_gates_lock = threading.Lock()


def gate_for(address: str, connections: int) -> Gate:
    """Return the gate that all clients of this process share for an address.

    Examples:
        >>> gate = gate_for("http://e/", 2)
        >>> gate is gate_for("http://e/", 2)
        True
    """
    with _gates_lock:
        return _gates.setdefault((address, connections), Gate(connections))
