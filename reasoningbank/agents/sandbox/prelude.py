# mypy: ignore-errors
"""Runs inside a started sandbox, before tools are registered and code is run.

Restores what crosses the boundary as JSON: a handle prints as its repr and supports `ref.key` and
`ref["key"]`; a list of rows has `source`, `total` and `truncated`; a tool's failure is a
`ToolError`. It is sent as text, so it imports nothing of the package.
"""

import builtins as _builtins
import functools as _functools
import itertools as _itertools
import json as _json
import sys as _sys

try:
    from js import console as _rb_console
except ImportError:
    _rb_console = None

#: Most characters that one turn may print; more than a prompt would ever hold.
_RB_PRINTED = 1_000_000
#: Characters of an error, and of the line that raised it.
_RB_SAID, _RB_PLACE = 5_000, 200
#: What precedes a print that the host gets at once, and most characters of a turn's prints that it
#: gets: those that are left if the turn is stopped. The host sets both where it listens.
_RB_TOLD, _RB_EARLY = "", 0
#: What None becomes on the way through JavaScript; outside of Pyodide it stays None.
_RB_NULL = getattr(_sys.modules.get("pyodide.ffi"), "jsnull", None)


ToolError = type("ToolError", (RuntimeError,), {})


class _RbRef(dict):
    """A handle; a dict, so that it returns to the host as JSON."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __repr__(self):
        return (
            f"Ref({self['key']!r}, {self['dtype']!r}, {self['rows']} items from {self['source']})"
        )


class _RbRows(list):
    """Rows with their provenance."""

    source = ""
    total = 0
    truncated = False
    note = ""

    def __repr__(self):
        shown = list.__repr__(self)
        return f"{shown}\n({self.note})" if self.note else shown


def print(*values, sep=" ", end="\n", file=None, flush=False):
    """Print within the bound of a turn."""
    if file is not None and file is not _sys.stdout:
        _rb_print(*values, sep=sep, end=end, file=file, flush=flush)
        return
    text = (" " if sep is None else sep).join(map(str, values)) + ("\n" if end is None else end)
    before = _sys.stdout.tell()
    room = _RB_PRINTED - before
    _sys.stdout.write(text[: max(0, room)])
    if before < _RB_EARLY:
        _rb_console.log(_RB_TOLD + _json.dumps(text[: _RB_EARLY - before]))
    if len(text) > room:
        raise RuntimeError(f"a turn may print {_RB_PRINTED:,} characters: print less")


_rb_print, _builtins.print = _builtins.print, print
# DSPy's runner ends when the first failure of all is one of JavaScript's.
_sys.last_exc = None
_RbRef.__name__, _RbRows.__name__ = "Ref", "Rows"


def _rb_decode(value):
    if isinstance(value, dict):
        kind = value.pop("__rb__", None)
        if kind == "ref":
            return _RbRef(value)
        if kind == "rows":
            rows = _RbRows(_rb_decode(item) for item in value.pop("items"))
            rows.__dict__.update(value)
            return rows
        return {key: _rb_decode(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rb_decode(item) for item in value]
    return None if value is _RB_NULL else value


def _rb_wrap(tool):
    if hasattr(tool, "_rb_wrapped"):
        return tool

    @_functools.wraps(tool)
    def call(*args, **kwargs):
        try:
            return _rb_decode(tool(*args, **kwargs))
        except RuntimeError as failure:
            kind, _, message = str(failure).partition(": ")
            if kind == "ToolError":
                raise ToolError(message) from None
            raise

    call._rb_wrapped = True
    return call


def _rb_str(value):
    try:
        return str(value)
    except Exception:
        return type(value).__name__


def _rb_plain(value):
    try:
        _json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return _rb_str(value)
    return value


_rb_turns = _itertools.count()


async def _rb_run(code, mark):
    """Run a turn; what fails is a text that begins with `mark`."""
    from pyodide.code import eval_code_async

    turn, printed = f"<turn {next(_rb_turns)}>", _sys.stdout
    try:
        value = await eval_code_async(code, globals(), filename=turn)
        if value is not None:
            print(value)
    except BaseException as error:
        if type(error).__name__ == "_DSPyFinalOutput":
            # DSPy's runner ends when the arguments are not JSON.
            error.args = tuple(map(_rb_plain, error.args))
            raise
        said = printed.getvalue()
        before = f"\nPrinted before the error:\n{said}" if said else ""
        return f"{mark}{_rb_why(error, turn, code.splitlines())}{before}"


def _rb_why(error, turn, lines, before=0):
    """Return an error with the line of the turn that raised it, which `before` lines precede."""
    said = f"{type(error).__name__}: {_rb_str(error)}"
    number, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == turn:
            number = trace.tb_lineno - before
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and not number:
        said, number = f"SyntaxError: {error.msg}", error.lineno or 0
    place = f"\n  line {number}: {lines[number - 1].strip()}" if 0 < number <= len(lines) else ""
    return said[:_RB_SAID] + place[:_RB_PLACE]
