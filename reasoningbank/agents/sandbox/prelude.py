# mypy: ignore-errors
"""Runs inside a started sandbox, before tools are registered and code is run.

Restores what crosses the boundary as JSON: a handle prints as its repr and supports `ref.key` and
`ref["key"]`; a list of rows has `source`, `total` and `truncated`; a tool's failure is a
`ToolError`. It is sent as text, so it imports nothing of the package.
"""

import ast as _ast
import builtins as _builtins
import functools as _functools
import json as _json
import sys as _sys

#: Most characters that one turn may print; more than a prompt would ever hold.
_RB_PRINTED = 1_000_000


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

    __str__ = __repr__


class _RbRows(list):
    """Rows with their provenance."""

    source = ""
    total = 0
    truncated = False
    note = ""

    def __repr__(self):
        shown = list.__repr__(self)
        return f"{shown}\n({self.note})" if self.note else shown

    __str__ = __repr__


def print(*values, sep=" ", end="\n", file=None, flush=False):
    """Print within the bound of a turn."""
    if file is not None and file is not _sys.stdout:
        _rb_print(*values, sep=sep, end=end, file=file, flush=flush)
        return
    text = (" " if sep is None else sep).join(map(str, values)) + ("\n" if end is None else end)
    room = _RB_PRINTED - _sys.stdout.tell()
    _sys.stdout.write(text[: max(0, room)])
    if len(text) > room:
        raise RuntimeError(f"a turn may print {_RB_PRINTED:,} characters: print less")


_rb_print, _builtins.print = _builtins.print, print


def _rb_dumps(value, *args, **kwargs):
    # DSPy's runner ends when the arguments of an exception are not JSON.
    if _sys._getframe(1).f_code.co_name == "last_exception_args":
        value = [item if _rb_is_json(item) else _rb_str(item) for item in value]
    return _rb_json(value, *args, **kwargs)


def _rb_is_json(value):
    try:
        return bool(_rb_json(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return False


_rb_json, _json.dumps = _json.dumps, _rb_dumps
# It also ends when the first failure of all is one of JavaScript's.
_sys.last_exc = None


def _rb_str(value):
    try:
        return str(value)
    except Exception:
        return type(value).__name__


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
    return value


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


def _rb_why(code):
    """Return why `code` is not Python, and in which line; DSPy's runner reports neither."""
    try:
        compile(code, "<turn>", "exec", flags=_ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except SyntaxError as error:
        lines = code.splitlines()
        number = error.lineno or 0
        text = lines[number - 1].strip()[:120] if 0 < number <= len(lines) else ""
        return f"line {number}: {error.msg}" + (f": {text}" if text else "")
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    # It compiles, so code that it ran, evaluated or raised does not.
    return _rb_str(_sys.last_exc)
