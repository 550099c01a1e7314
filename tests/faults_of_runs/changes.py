"""What is changed in a command's process before it begins, to make a fault happen there."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
import time
from pathlib import Path

__all__ = [
    "QUOTA",
    "clock_that_jumps_back",
    "dies_before_renaming",
    "dies_in_mid_write",
    "dies_writing_the_manifest",
    "disk_quota",
    "endpoint_counts_as_public",
    "hurried",
    "interrupted_at_the_manifest",
    "without_rights",
]


#: Bytes that a file may have under `disk_quota`.
QUOTA = 20_000


def hurried() -> None:
    """Make all waits of the process a hundredth as long, so that tests need not wait."""
    sleep = time.sleep
    time.sleep = lambda seconds: sleep(seconds / 100)  # type: ignore[assignment]


def dies_before_renaming() -> None:
    """Let SIGKILL come between the third record's last byte and its name."""
    _die_replacing("t002.0.json")


def dies_writing_the_manifest() -> None:
    """Let SIGKILL come before the manifest has its name."""
    _die_replacing("manifest.json")


def interrupted_at_the_manifest() -> None:
    """Let a terminal's Ctrl-C come when the manifest has its name and nothing is opened yet."""
    replace = os.replace

    def interrupt(source: object, target: object) -> None:
        replace(source, target)  # type: ignore[arg-type]
        if Path(str(target)).name == "manifest.json":
            os.killpg(os.getpid(), signal.SIGINT)

    os.replace = interrupt  # type: ignore[assignment]


def dies_in_mid_write() -> None:
    """Let SIGKILL come when half of the third record is written."""
    sync = os.fsync
    synced: list[int] = []

    def half(handle: int) -> None:
        written = os.fstat(handle)
        parts = Path("run", "trials").glob("*/.*.tmp")
        if any(os.path.samestat(written, part.stat()) for part in parts):
            synced.append(handle)
        if len(synced) == 3:
            os.ftruncate(handle, written.st_size // 2)
            os.kill(os.getpid(), signal.SIGKILL)
        sync(handle)

    os.fsync = half  # type: ignore[assignment]


def disk_quota() -> None:
    """Bound the size of files, so that a large record cannot be written; it can be lifted."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (QUOTA, resource.RLIM_INFINITY))


def without_rights() -> None:
    """Heed what a folder's mode says also where the tests are root's."""
    if os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    # Effective, permitted and inheritable, twice 32 bits of each.
    rights = (ctypes.c_uint32 * 6)()
    assert libc.capget(header, rights) == 0
    rights[0] &= ~(1 << 1 | 1 << 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    assert libc.capset(header, rights) == 0


def clock_that_jumps_back() -> None:
    """Let the clock go back by a day at the third look at it."""
    now = time.time
    looks: list[float] = []

    def reported() -> float:
        looks.append(0.0)
        return now() - (86_400.0 if len(looks) > 2 else 0.0)

    time.time = reported


def _die_replacing(name: str) -> None:
    replace = os.replace

    def die(source: object, target: object) -> None:
        if Path(str(target)).name == name:
            os.kill(os.getpid(), signal.SIGKILL)
        replace(source, target)  # type: ignore[arg-type]

    # pathlib holds no reference of its own: it looks the function up in os.
    os.replace = die  # type: ignore[assignment]
    assert "pathlib" in sys.modules


def endpoint_counts_as_public() -> None:
    """Let answers of the endpoint on loopback be cached as a public one's are."""
    from reasoningbank.sparql import client

    client.is_loopback = lambda _: False  # type: ignore[assignment]
