"""Measures of work that no other load on the machine changes."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType


def calls(job: Callable[[], object]) -> int:
    """Return how many calls of Python and C functions a job makes in this thread."""
    count = 0

    def counted(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        job()
    finally:
        sys.setprofile(before)
    return count


def memory(job: Callable[[], object], times: int = 3) -> int:
    """Return the most bytes that a job holds at once, where other threads allocate least."""
    peaks = []
    for _ in range(times):
        tracemalloc.start()
        job()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    return min(peaks)
