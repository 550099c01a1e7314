"""How Deno is started for DSPy's runner on a machine that cannot reach deno.land.

DSPy's `runner.js` imports Pyodide from npm and one function from deno.land. An import map
replaces the latter by a local module; Pyodide is fetched once into Deno's own cache.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path

import dspy.primitives
from dspy.primitives.python_interpreter import PythonInterpreter

from reasoningbank.errors import SetupError

__all__ = ["deno_command", "deno_executable", "pyodide_cached"]

_HERE = Path(__file__).resolve().parent


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
        raise SetupError("Deno is not installed", mend="run: pip install 'dspy[deno]'")
    return found


@functools.cache
def deno_command() -> tuple[str, ...]:
    """Return the command line that starts the sandbox's runner.

    It may read the runner, Deno's cache (given up after start-up) and this folder; it gets no
    environment, no network and no write access.

    Raises:
        SetupError: If Deno is missing or does not run.
    """
    deno = deno_executable()
    runner = Path(dspy.primitives.__file__).resolve().parent / "runner.js"
    cache = PythonInterpreter._get_deno_dir(deno)
    if cache is None:
        raise SetupError("Deno does not run", where=deno, mend="reinstall it: pip install deno")
    cache = os.path.realpath(cache)
    return (
        deno,
        "run",
        "--no-config",
        "--no-lock",
        "--no-prompt",
        "--node-modules-dir=none",
        f"--import-map={_HERE / 'import_map.json'}",
        f"--allow-read={runner},{cache},{_HERE}",
        str(runner),
        "",
        f"--dspy-deno-dir={cache}",
    )


def pyodide_cached() -> bool:
    """Tell whether the sandbox starts without the network: it is started so, and ends at once."""
    deno, run, *rest = deno_command()
    done = subprocess.run(
        [deno, run, "--cached-only", *rest],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=120,
    )
    return done.returncode == 0
