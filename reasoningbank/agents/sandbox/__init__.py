"""The Deno/Pyodide sandbox in which the RLM agent's Python runs.

`Sandbox` is one interpreter, `SandboxPool` starts them in advance, `deno_command` returns the
command that starts one, and `pyodide_cached` whether it can start on this machine.
"""

from reasoningbank.agents.sandbox.deno import (
    deno_command,
    deno_executable,
    fetch_pyodide,
    pyodide_cached,
)
from reasoningbank.agents.sandbox.interpreter import Sandbox, SandboxPool

__all__ = [
    "Sandbox",
    "SandboxPool",
    "deno_command",
    "deno_executable",
    "fetch_pyodide",
    "pyodide_cached",
]
