"""Run a command with bounds of the operating system; a script, not imported.

    python confined.py DENO_DIR COMMAND ARGUMENT...

The command gets no environment but the folder of Deno's cache, cannot write files, and has bounded
memory and processor time, whatever weakness of Deno the code finds. It replaces this process.
"""

import contextlib
import os
import resource
import signal
import sys

#: Written pages, not the address space that V8 sets aside; a warm sandbox uses 0.6 GiB of them.
MEMORY = 3 << 30
#: Ends a sandbox that keeps running after its host has ended.
PROCESSOR_S = 1_800


def main(deno_dir: str, command: list[str]) -> None:
    """Lower the bounds, which cannot be raised again, and execute the command."""
    bounds = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: PROCESSOR_S,
        resource.RLIMIT_DATA: MEMORY,
        # Python, and so the command, ignores its signal: a write fails.
        resource.RLIMIT_FSIZE: 0,
    }
    for kind, most in bounds.items():
        # A lower bound stays; a system may not support one.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (most, most))
    # Ctrl-C reaches every process of the terminal; the parent handles it.
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
