"""The sandbox: DSPy's interpreter with handles, a watchdog and bounds; and a pool of sandboxes.

Deno is started confined, without deno.land, from a snapshot of Pyodide. DSPy's `runner.js` imports
Pyodide from npm and one function from deno.land. An import map replaces the latter with a local
module, and loads one before Pyodide that starts it from a snapshot of its memory: of a Python that
has started and run nothing. Starting Pyodide takes 3.7 seconds of processor time, with the snapshot
0.4. Sandboxes can neither write nor, once code runs, read it.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import inspect
import json
import logging
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

import dspy.primitives
from dspy.primitives.code_interpreter import CodeExecutionError, CodeInterpreterError, FinalOutput
from dspy.primitives.local_interpreter import LocalInterpreter
from dspy.primitives.python_interpreter import PythonInterpreter, _find_deno_executable

from reasoningbank.cache import write_bytes_atomically
from reasoningbank.errors import RecordError, SetupError
from reasoningbank.refs import Ref
from reasoningbank.tools import Rows

logger = logging.getLogger(__name__)

_HERE = Path(__file__).resolve().parent
_PRELUDE = (_HERE / "prelude.py").read_text(encoding="utf-8")
#: Memory of Python in the sandbox, in WebAssembly's pages of 64 KiB: 1 GiB.
_WASM_PAGES = 16_384
#: Memory of JavaScript's objects, in MiB.
_HEAP = 512
#: Seconds in which a sandbox must start and end, and Pyodide must be fetched.
_START_S = 120.0
_FETCH_S = 600.0
_SNAPSHOT_SCRIPT = _HERE / "make_snapshot.js"
_LEAST_BYTES = 10_000_000
#: Characters of one line from the sandbox: a turn's output, or a tool call with its query.
_LINE = 8_000_000
#: What the prelude puts before the output of a turn that failed, and before what it prints.
_FAILED, _PRINTED = "\0failed\0", "\0printed\0"
_BEFORE = "\nPrinted before the error:\n"
#: Characters of a turn's prints that are kept if it is stopped.
_EARLY = 10_000
_lock = threading.Lock()


def deno_executable() -> str:
    """Return the path of Deno, from the `deno` package or the PATH."""
    found = shutil.which(_find_deno_executable())
    if not found:
        hint = 'pip install "reasoningbank[sandbox]"'
        raise SetupError("Deno is not installed", hint=hint, code="no-package", package="deno")
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
    try:
        return subprocess.run(
            command,
            env={**os.environ, "NO_COLOR": "1"},
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


# -- the interpreter ------------------------------------------------------------------------------


def encode(value: Any) -> Any:
    """Return `value` as JSON-able data that the prelude turns back into handles and rows."""
    if isinstance(value, Ref):
        return {"__rb__": "ref", **asdict(value)}
    if isinstance(value, Rows):
        about = {name: getattr(value, name) for name in ("source", "total", "truncated", "note")}
        return {"__rb__": "rows", "items": [encode(item) for item in value], **about}
    if isinstance(value, Mapping):
        return {key: encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    return value


class _LineTooLongError(Exception):
    """One line from the sandbox exceeded the bound."""


class _Interpreter(PythonInterpreter):  # type: ignore[misc]
    """DSPy's interpreter with our encoding at the boundary, and the prelude inside."""

    #: Seconds spent in tools during the present execution; the watchdog does not count them.
    tool_seconds = 0.0
    in_tool = False
    printed = ""  #: What the present execution has printed so far, its beginning
    deno_process: Any

    def _health_check(self) -> None:
        # Invalid bytes must not be an error of the host.
        self.deno_process.stdout.reconfigure(errors="replace")
        super()._health_check()
        # Now, before any trial waits for it.
        code = f"{_PRELUDE}\n_RB_TOLD, _RB_EARLY = {_PRINTED!r}, {_EARLY}"
        self._send_request("execute", {"code": code}, "preparing the sandbox")

    def _register_tools(self) -> None:
        fresh = not self._tools_registered
        super()._register_tools()
        if fresh:
            wraps = "\n".join(f"{name} = _rb_wrap({name})" for name in self.tools)
            self._send_request("execute", {"code": wraps}, "preparing tools")

    def execute(self, code: str, variables: dict[str, Any] | None = None) -> Any:
        result = super().execute(f"await _rb_run({code!r}, {_FAILED!r})", variables)
        if isinstance(result, str) and result.startswith(_FAILED):
            raise CodeExecutionError(result.removeprefix(_FAILED))
        return result

    def _read_response_line(self, context: str) -> str:
        line: str = self.deno_process.stdout.readline(_LINE)
        while line.startswith(_PRINTED):
            with contextlib.suppress(ValueError):
                said = str(json.loads(line.removeprefix(_PRINTED)))
                self.printed = (self.printed + said)[:_EARLY]
            line = self.deno_process.stdout.readline(_LINE)
        if len(line) == _LINE:
            raise _LineTooLongError
        # Code wrote an empty line; the base class handles the end of the stream.
        return line.strip() or ("-" if line else super()._read_response_line(context))

    def invoke_tool(self, tool_name: str, kwargs: dict[str, Any]) -> Any:
        # Excludes writing the answer, which code that does not read it could block.
        self.in_tool, began = True, time.monotonic()
        try:
            return encode(super().invoke_tool(tool_name, kwargs))
        finally:
            self.tool_seconds += time.monotonic() - began
            self.in_tool = False

    def _raise_terminal_error(self, message: str, cause: Exception | None = None) -> NoReturn:
        self.kill()
        super()._raise_terminal_error(message, cause)
        raise AssertionError  # the base class always raises

    def kill(self) -> None:
        """Kill the process: code can ignore a request to end, and there is no state."""
        process = self.deno_process
        if process is not None:
            process.kill()
            process.wait()

    def shutdown(self) -> None:
        self._session_ended = True
        self.kill()
        process, self.deno_process = self.deno_process, None
        for pipe in () if process is None else (process.stdin, process.stdout, process.stderr):
            # Unwritten data for a process that has ended.
            with contextlib.suppress(OSError):
                pipe.close()


class LocalToolInterpreter(LocalInterpreter):  # type: ignore[misc]
    """DSPy's `LocalInterpreter`, where tools take positional arguments, and handles stay handles.

    It is no sandbox: code has the user's files and network.
    """

    _is_prepared = False

    def execute(self, code: str, variables: dict[str, Any] | None = None) -> Any:
        """Run `code` as DSPy does, with the tools wrapped as in the sandbox."""
        if not self._is_prepared:
            # The bound on what a turn prints needs Pyodide's stream.
            super().execute(f"{_PRELUDE}\n_builtins.print = _rb_print\ndel print")
            self._is_prepared = True
        with contextlib.suppress(ValueError, RecursionError, MemoryError):
            ast.parse(code)  # here, where its first line is the first
        # DSPy's worker says what failed and not where.
        why = f"lambda error: _rb_why(error, '<interpreter>', {code.splitlines()}, 1)"
        wraps = [f"{name} = _rb_wrap({name})" for name in self.tools]
        first = "; ".join((*wraps, f"_sys.modules['__main__'].describe = {why}"))
        return super().execute(f"{first}\n{code}", variables)

    def _receive(self, deadline: float | None, timeout_message: str) -> dict[str, Any]:
        """Return a message of the worker; what a turn printed before is part of its outcome."""
        message: dict[str, Any] = super()._receive(deadline, timeout_message)
        printed = message.get("stdout")
        if printed and message["type"] == "execution_error":
            message["error"] += _BEFORE + printed
        elif printed and message["type"] == "result" and message["value"] is not None:
            message["value"] = f"{printed}\n{message['value']}"
        return message

    def invoke_tool(self, tool_name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Call a tool with all arguments by name, since `dspy.Tool` takes no others."""
        if tool_name in self.tools:
            bound = inspect.signature(self.tools[tool_name]).bind(*args, **kwargs)
            args, kwargs = [], dict(bound.arguments)
        return encode(super().invoke_tool(tool_name, args, kwargs))


class Sandbox:
    """A `CodeInterpreter` for `dspy.RLM` that survives what the agent's code does.

    An execution is stopped after `timeout_s` seconds (time inside tools not counted), and a crashed
    interpreter is replaced; the agent sees either as an error, which says that its variables are
    gone. Python has 1 GiB of memory; more raises a `MemoryError`.
    """

    execution_instructions = (
        "Python runs in Pyodide. State persists between turns. There are no files, no network "
        "and no subprocesses; the standard library is there."
    )

    def __init__(self, timeout_s: float = 30.0) -> None:
        self.tools: dict[str, Callable[..., Any]] = {}
        self.output_fields: list[dict[str, Any]] | None = None
        self._tools_registered = False
        self._timeout_s = timeout_s
        self._inner: _Interpreter | None = None
        self._beginning: threading.Thread | None = None
        self._closed = False

    def begin(self) -> None:
        """Start and register the tools in the background; `execute` waits for it.

        A sandbox that began without tools begins again once it has them.
        """
        deno_executable()
        if not self._closed and (self._beginning is None or self.tools):
            # Read here: the caller may be about to change them while the thread starts Pyodide.
            args = [self._beginning, bool(self.tools)]
            self._beginning = threading.Thread(target=self._get_ready, args=args, daemon=True)
            self._beginning.start()

    def start(self) -> None:
        """Start Deno and Pyodide; the first start on a machine fetches Pyodide from npm."""
        if self._closed:
            raise CodeInterpreterError("this sandbox was shut down")
        if self._inner is not None:
            return
        try:
            self._inner = _started()
        except CodeInterpreterError as error:
            if pyodide_cached():
                what = f"the Python sandbox does not start ({str(error)[:300]})"
                raise SetupError(what, hint="run: reasoningbank doctor") from error
            fetch_pyodide()
            self._inner = _started()

    def execute(self, code: str, variables: dict[str, Any] | None = None) -> Any:
        """Run `code` and return its output, or DSPy's `FinalOutput` when it submits."""
        self._wait_until_begun()
        inner = self._with_tools()
        inner.tool_seconds, inner.printed = 0.0, ""
        finished, stopped = threading.Event(), threading.Event()
        threading.Thread(target=self._watch, args=(inner, finished, stopped), daemon=True).start()
        try:
            result = inner.execute(code, variables)
            self._tools_registered = True
        except CodeExecutionError:
            self._tools_registered = True
            raise
        except Exception as error:
            # Any exception: code can write anything to the pipe.
            inner.shutdown()
            self._inner, self._tools_registered = None, False
            reason = "the code brought the sandbox down"
            if stopped.is_set():
                reason = f"the code was stopped after {self._timeout_s:g} s"
            elif isinstance(error, _LineTooLongError):
                reason = f"the code wrote more than {_LINE:,} characters at once"
            before = _BEFORE + inner.printed if inner.printed else ""
            raise CodeExecutionError(
                f"{reason}; the sandbox was restarted and its variables are gone: "
                f"do less in one turn{before}"
            ) from error
        finally:
            finished.set()
        if isinstance(result, FinalOutput) and not isinstance(result.output, dict):
            raise CodeExecutionError("TypeError: end with SUBMIT(...), not by its exception")
        return result

    def shutdown(self) -> None:
        """End the sandbox; calling it again is harmless."""
        self._closed = True
        if self._inner is not None:
            # Also ends one that is starting.
            self._inner.kill()
        self._wait_until_begun()
        if self._inner is not None:
            self._inner.shutdown()
            self._inner = None

    def _get_ready(self, earlier: threading.Thread | None, register: bool) -> None:
        # The thread that uses the sandbox meets the same failure and reports it.
        with contextlib.suppress(Exception):
            if earlier is None:
                self.start()
            else:
                earlier.join()
            if register and self._inner is not None:
                self._with_tools()._register_tools()
                self._tools_registered = True

    def _wait_until_begun(self) -> None:
        if self._beginning is not None:
            self._beginning.join()

    def _with_tools(self) -> _Interpreter:
        """Return the started interpreter with the current tools."""
        self.start()
        inner = self._inner
        assert inner is not None
        inner.tools = self.tools
        inner.output_fields = self.output_fields
        if not self._tools_registered:
            inner._tools_registered = False
        return inner

    def _watch(
        self, inner: _Interpreter, finished: threading.Event, stopped: threading.Event
    ) -> None:
        began = time.monotonic()
        while not finished.wait(0.2):
            computing = time.monotonic() - began - inner.tool_seconds
            if not inner.in_tool and computing > self._timeout_s:
                stopped.set()
                inner.kill()
                return


def _started() -> _Interpreter:
    inner = _Interpreter(deno_command=list(deno_command()))
    try:
        inner.start()
    except BaseException:
        inner.shutdown()
        raise
    return inner


class SandboxPool:
    """Returns sandboxes that have begun to start, and lets `spare` more begin.

    An instance is a factory for `dspy.RLM(interpreter_factory=...)`. The caller shuts a sandbox
    down; none is used twice. The pool is a context manager that shuts down the spares.
    """

    execution_instructions = Sandbox.execution_instructions

    def __init__(self, spare: int = 1) -> None:
        self._spare = spare
        self._spares: list[Sandbox] = []
        self._lock = threading.Lock()

    def __enter__(self) -> SandboxPool:
        self.prestart()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __call__(self) -> Sandbox:
        """Return a sandbox, the oldest spare one if there is any."""
        with self._lock:
            sandbox = self._spares.pop(0) if self._spares else Sandbox()
        self.prestart()
        return sandbox

    def prestart(self) -> None:
        """Let sandboxes begin until `spare` are ready or starting."""
        with self._lock:
            while len(self._spares) < self._spare:
                self._spares.append(Sandbox())
                self._spares[-1].begin()

    def close(self) -> None:
        """Shut down the unused sandboxes; calling it again is harmless."""
        with self._lock:
            self._spare = 0
            spares, self._spares = self._spares, []
        for one in spares:
            one.shutdown()
