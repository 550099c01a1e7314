"""The Deno/Pyodide sandbox in which the RLM agent's Python runs.

`Sandbox` is one interpreter, `SandboxPool` starts them ahead of need, `deno_command` and
`pyodide_cached` say how it is started and whether the machine has what it takes.
"""

from reasoningbank.agents.sandbox.deno import (
    deno_command,
    deno_executable,
    fetch_pyodide,
    pyodide_cached,
)
from reasoningbank.agents.sandbox.interpreter import Sandbox
from reasoningbank.agents.sandbox.pool import SandboxPool

__all__ = [
    "Sandbox",
    "SandboxPool",
    "deno_command",
    "deno_executable",
    "fetch_pyodide",
    "pyodide_cached",
]
