"""Starting Deno for DSPy's runner: confined, without deno.land, from a snapshot of Pyodide.

DSPy's `runner.js` imports Pyodide from npm and one function from deno.land. An import map replaces
the latter with a local module, and loads one before Pyodide that starts it from a snapshot of its
memory: of a Python that has started and run nothing. Starting Pyodide takes 3.7 seconds of
processor time, with the snapshot 0.4. Sandboxes can neither write nor, once code runs, read it.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import dspy.primitives
from dspy.primitives.python_interpreter import PythonInterpreter, _find_deno_executable

from reasoningbank.cache import write_bytes_atomically
from reasoningbank.errors import RecordError, SetupError

logger = logging.getLogger(__name__)

_HERE = Path(__file__).resolve().parent
#: Memory of Python in the sandbox, in WebAssembly's pages of 64 KiB: 1 GiB.
_WASM_PAGES = 16_384
#: Memory of JavaScript's objects, in MiB.
_HEAP = 512
#: Seconds in which a sandbox must start and end, and Pyodide must be fetched.
_START_S = 120.0
_FETCH_S = 600.0
_SNAPSHOT_SCRIPT = _HERE / "make_snapshot.js"
_LEAST_BYTES = 10_000_000
_lock = threading.Lock()


def deno_executable() -> str:
    """Return the path of Deno, from the `deno` package or the PATH."""
    found = shutil.which(_find_deno_executable())
    if not found:
        raise SetupError("Deno is not installed", hint="run: pip install 'dspy[deno]'")
    return str(found)


@functools.cache
def deno_command() -> tuple[str, ...]:
    """Return the command line that starts the sandbox's runner.

    The runner may read itself, Deno's cache and this folder while it starts, and drops that
    permission before it runs code. It has no environment, no network, no modules outside the
    cache, no write access, 1 GiB of memory for Python and 3 GiB in total.
    """
    deno, cache = deno_executable(), _cache()
    strict = ("--cached-only", "--no-remote", "--no-code-cache", "--deny-import", "--deny-net")
    bounds = f"--wasm-max-mem-pages={_WASM_PAGES},--max-old-space-size={_HEAP}"
    # V8's second compiler takes 0.2 s and 30 MB, and agents' code runs no faster with it.
    flags = f"--v8-flags=--liftoff-only,{bounds}"
    snapshot = memory_snapshot(cache, (deno, "run", *strict, *_reading(cache)))
    image = () if snapshot is None else (f"--snapshot={snapshot}",)
    command = (deno, "run", *strict, flags, *_runner(cache), *image)
    if os.name != "posix":
        return command
    return (sys.executable, "-I", "-S", str(_HERE / "confined.py"), cache, *command)


def pyodide_cached() -> bool:
    """Return whether the sandbox starts: start it as for use, and end it at once."""
    slow = f"the Python sandbox did not start within {_START_S:g} s"
    hint = "wait until the machine is less busy and try again"
    return _run(deno_command(), _START_S, SetupError(slow, hint=hint)).returncode == 0


def fetch_pyodide() -> None:
    """Fetch Pyodide from npm into Deno's cache."""
    then = "then run: reasoningbank doctor --fix"
    slow = f"Pyodide was not fetched within {_FETCH_S:g} s"
    command = (deno_executable(), "run", *_runner(_cache()))
    done = _run(command, _FETCH_S, SetupError(slow, hint=f"check the network, {then}"))
    if done.returncode:
        said = " ".join(done.stderr.decode(errors="replace").split())
        hint = f"check that npm's registry can be reached, {then}"
        raise SetupError(f"Pyodide cannot be fetched ({said[:300]})", hint=hint)
    # The command of before has no snapshot, which needs Pyodide.
    deno_command.cache_clear()


def _run(
    command: Sequence[str], seconds: float, slow: Exception
) -> subprocess.CompletedProcess[bytes]:
    """Run a command to its end; raise `slow` if it does not end in time."""
    environment = {**os.environ, "NO_COLOR": "1"}
    try:
        return subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired as error:
        raise slow from error


def _cache() -> str:
    deno = deno_executable()
    cache = PythonInterpreter._get_deno_dir(deno)
    if cache is None:
        raise SetupError("Deno does not run", where=deno, hint="reinstall it: pip install deno")
    # Deno compares permitted paths with resolved ones.
    return str(os.path.realpath(cache))


def _runner(cache: str) -> tuple[str, ...]:
    runner = Path(dspy.primitives.__file__).resolve().parent / "runner.js"
    return (*_reading(cache, runner), str(runner), "", f"--dspy-deno-dir={cache}")


def _reading(cache: str, *more: Path) -> tuple[str, ...]:
    """Return the options of a script that may read Deno's cache, this folder and `more`."""
    return (
        "--no-config",
        "--no-lock",
        "--no-prompt",
        "--node-modules-dir=none",
        f"--import-map={_HERE / 'import_map.json'}",
        f"--allow-read={','.join(map(str, (*more, cache, _HERE)))}",
    )


def memory_snapshot(cache: str, command: Sequence[str]) -> Path | None:
    """Return the snapshot's file, created if missing; None if that fails."""
    # Its key is the script, which names its Pyodide, and Deno.
    script = _SNAPSHOT_SCRIPT.read_text(encoding="utf-8")
    parts = (script, command[0], str(Path(command[0]).stat().st_size))
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    file = Path(cache) / "reasoningbank" / f"pyodide-{key}.snapshot"
    with _lock:
        if file.is_file():
            return file
        try:
            slow = OSError(f"it takes more than {_START_S:g} s")
            made = _run((*command, str(_SNAPSHOT_SCRIPT)), _START_S, slow)
            # A smaller snapshot is incomplete.
            if made.returncode or len(made.stdout) < _LEAST_BYTES:
                raise OSError(f"not a snapshot ({len(made.stdout)} bytes)")
            write_bytes_atomically(file, made.stdout)
        except (OSError, RecordError) as error:
            # Sandboxes start without it, ten times slower.
            logger.info("no snapshot of Pyodide can be created: %s", error)
            return None
        return file
