"""Runs a command for as long as the process that started it lives; a script, not imported.

    python watch.py COMMAND ARGUMENT...

The parent holds the other end of standard input. When that closes, because the parent closed it,
ended, or was killed, the command is ended too. Where the parent's own forks keep the pipe open,
the change of the parent's id shows it. On Linux the kernel ends the command should this watcher be
killed itself.
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import threading

_PR_SET_PDEATHSIG = 1


def _die_with_parent() -> None:
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _end_when_orphaned(child: "subprocess.Popen[bytes]", parent: int) -> None:
    while os.getppid() == parent:
        ready, _, _ = select.select([0], [], [], 1.0)
        if ready and not os.read(0, 4096):
            break
    child.terminate()
    try:
        child.wait(3)
    except subprocess.TimeoutExpired:
        child.kill()


def main(command: list[str]) -> int:
    """Run the command to its end, or to ours, and return its exit status."""
    parent = os.getppid()
    linux = sys.platform.startswith("linux")
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        preexec_fn=_die_with_parent if linux else None,
    )
    # The kernel ties the command to the thread that started it: this one, which waits.
    threading.Thread(target=_end_when_orphaned, args=(child, parent), daemon=True).start()
    return child.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
