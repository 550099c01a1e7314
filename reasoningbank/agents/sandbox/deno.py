"""How Deno is started for DSPy's runner: confined, and without reaching deno.land.

DSPy's `runner.js` imports Pyodide from npm and one function from deno.land. An import map
replaces the latter by a local module, and puts one before Pyodide that starts it from a snapshot
of its memory; Pyodide is fetched once into Deno's own cache.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import dspy.primitives
from dspy.primitives.python_interpreter import PythonInterpreter

from reasoningbank.agents.sandbox.snapshot import memory_snapshot
from reasoningbank.errors import SetupError

__all__ = ["deno_command", "deno_executable", "fetch_pyodide", "pyodide_cached"]

_HERE = Path(__file__).resolve().parent
#: Memory that Python in the sandbox may use, in WebAssembly's pages of 64 KiB: 1 GiB.
_WASM_PAGES = 16_384
#: Memory for JavaScript's objects, in MiB.
_HEAP = 512
#: Seconds in which a sandbox starts and ends, and in which Pyodide is fetched.
_START_S = 120.0
_FETCH_S = 600.0


def deno_executable() -> str:
    """Return the path of Deno: the one of the `deno` package, else the one on the PATH.

    Raises:
        SetupError: If there is none.
    """
    try:
        from deno import find_deno_bin

        return str(find_deno_bin())
    except (ImportError, FileNotFoundError):
        found = shutil.which("deno")
    if not found:
        raise SetupError("Deno is not installed", hint="run: pip install 'dspy[deno]'")
    return found


@functools.cache
def deno_command() -> tuple[str, ...]:
    """Return the command line that starts the sandbox's runner.

    The runner may read itself, Deno's cache and this folder while it starts, and gives that up
    before it runs any code. It gets no environment, no network, no modules that are not cached,
    no write access, 1 GiB of memory for Python and 3 GiB in all.

    Raises:
        SetupError: If Deno is missing or does not run.
    """
    deno, cache = deno_executable(), _cache()
    strict = ("--cached-only", "--no-remote", "--no-code-cache", "--deny-import", "--deny-net")
    bounds = f"--wasm-max-mem-pages={_WASM_PAGES},--max-old-space-size={_HEAP}"
    # A trial is too short for V8's second compiler: its work takes 0.2 s and 30 MB, and the
    # agents' code runs no faster for it.
    flags = f"--v8-flags=--liftoff-only,{bounds}"
    snapshot = memory_snapshot(cache, (deno, "run", *strict, *_reading(cache)))
    image = () if snapshot is None else (f"--snapshot={snapshot}",)
    command = (deno, "run", *strict, flags, *_runner(cache), *image)
    if os.name != "posix":
        return command
    return (sys.executable, "-I", "-S", str(_HERE / "confined.py"), cache, *command)


def pyodide_cached() -> bool:
    """Tell whether the sandbox starts: it is started, as for use, and ends at once.

    Raises:
        SetupError: If Deno is missing, or does not end in time.
    """
    late = SetupError(
        f"the Python sandbox did not start within {_START_S:g} s",
        hint="wait until the machine is less busy and try again",
    )
    return _ended(deno_command(), _START_S, late).returncode == 0


def fetch_pyodide() -> None:
    """Let Deno bring Pyodide from npm into its cache; no code of an agent runs meanwhile.

    Raises:
        SetupError: If it cannot be fetched.
    """
    late = SetupError(
        f"Pyodide was not fetched within {_FETCH_S:g} s",
        hint="check the network, then run: reasoningbank doctor --fix",
    )
    done = _ended((deno_executable(), "run", *_runner(_cache())), _FETCH_S, late)
    if done.returncode:
        said = " ".join(done.stderr.split())
        raise SetupError(
            f"Pyodide cannot be fetched ({said[:300]})",
            hint="check that npm's registry can be reached, then run: reasoningbank doctor --fix",
        )
    # What was started before had no Pyodide, and so no snapshot of it.
    deno_command.cache_clear()


def _ended(
    command: Sequence[str], seconds: float, late: SetupError
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; `late` is raised where it does not end in time."""
    try:
        return subprocess.run(
            command,
            env={**os.environ, "NO_COLOR": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired as error:
        raise late from error


def _cache() -> str:
    deno = deno_executable()
    cache = PythonInterpreter._get_deno_dir(deno)
    if cache is None:
        raise SetupError("Deno does not run", where=deno, hint="reinstall it: pip install deno")
    # Deno compares permitted paths with real ones.
    return str(os.path.realpath(cache))


def _runner(cache: str) -> tuple[str, ...]:
    runner = Path(dspy.primitives.__file__).resolve().parent / "runner.js"
    return (*_reading(cache, runner), str(runner), "", f"--dspy-deno-dir={cache}")


def _reading(cache: str, *more: Path) -> tuple[str, ...]:
    """Return the options of a script that reads Deno's cache, this folder and no more."""
    return (
        "--no-config",
        "--no-lock",
        "--no-prompt",
        "--node-modules-dir=none",
        f"--import-map={_HERE / 'import_map.json'}",
        f"--allow-read={','.join(map(str, (*more, cache, _HERE)))}",
    )
