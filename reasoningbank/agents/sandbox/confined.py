"""Runs a command with little of anything; a script, not imported.

    python confined.py DENO_DIR COMMAND ARGUMENT...

The command gets no environment but the folder of Deno's cache, may write to no file, and has a
bounded memory and processor time. The bounds are the operating system's: they hold whatever the
code inside finds out about Deno. It replaces this process, so that its id stays the same.
"""

import contextlib
import os
import resource
import signal
import sys

#: Written pages, not the address space that V8 sets aside; a warm sandbox uses 0.6 GiB of them.
MEMORY = 3 << 30
#: A sandbox lives for one trial. One that outlives its host, busy, is ended by this.
PROCESSOR_S = 1_800


def main(deno_dir: str, command: list[str]) -> None:
    """Lower the bounds, which cannot be raised again, and become the command."""
    bounds = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: PROCESSOR_S,
        resource.RLIMIT_DATA: MEMORY,
        # Python ignores the signal for it, and so does what it becomes: a write fails.
        resource.RLIMIT_FSIZE: 0,
    }
    for kind, most in bounds.items():
        # A bound that is lower already stays; a system may not know one.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (most, most))
    # Ctrl-C goes to every process of the terminal; whoever started this one decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    environment = {
        "DENO_DIR": deno_dir,
        "DENO_NO_PACKAGE_JSON": "1",
        "DENO_NO_UPDATE_CHECK": "1",
        "NO_COLOR": "1",
    }
    os.execve(command[0], command, environment)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
