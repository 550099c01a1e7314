"""Ctrl-C and SIGTERM: the first ends a run in order, the second at once."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FrameType

__all__ = ["Stop", "interruptible"]


@dataclass
class Stop:
    """Whether a run is to end.

    Attributes:
        event: Set when no further trial shall begin.
        asked: Whether a person, or the system, asked for it.
    """

    event: threading.Event = field(default_factory=threading.Event)
    asked: bool = False


@contextlib.contextmanager
def interruptible(on_notice: Callable[[str], None]) -> Iterator[Stop]:
    """Turn interrupts into an orderly end, for the length of a block.

    Outside the main thread signals are left as they are.

    Args:
        on_notice: Told what the first interrupt does.

    Raises:
        KeyboardInterrupt: At the second interrupt.
    """
    stop = Stop()

    def interrupt(number: int, frame: FrameType | None) -> None:
        if stop.asked:
            raise KeyboardInterrupt
        stop.asked = True
        stop.event.set()
        on_notice("ending: trials in flight are finished first; interrupt again to abandon them")

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {kind: signal.getsignal(kind) for kind in (signal.SIGINT, signal.SIGTERM)}
    for kind in before:
        signal.signal(kind, interrupt)
    try:
        yield stop
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)
