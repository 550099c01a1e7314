"""How a command that serves ends: at Ctrl-C or SIGTERM, and either is what was meant."""

from __future__ import annotations

import contextlib
import signal
import threading

from reasoningbank.cli.output import progress_console

__all__ = ["serve_until", "stopping"]


def stopping() -> threading.Event:
    """Return what SIGTERM sets from now on, so that a server that is being opened is closed."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    return stop


def serve_until(stop: threading.Event) -> None:
    """Say that it serves, and wait for the end."""
    progress_console.print("serving; Ctrl-C ends it")
    with contextlib.suppress(KeyboardInterrupt):
        stop.wait()
