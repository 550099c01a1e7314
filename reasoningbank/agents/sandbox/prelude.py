# mypy: ignore-errors
"""Runs inside the sandbox, after the tools are registered and before the agent's first turn.

Gives what crosses the boundary as JSON its behaviour back: a handle prints as its repr and
answers `ref.key` and `ref["key"]`; a list of rows carries `source`, `total` and `truncated`;
a tool's failure is a `ToolError`. It is sent as text, so it imports nothing of the package.
"""

import functools as _functools


class ToolError(RuntimeError):
    """A tool call that failed; its one line says what to try next."""


class Ref(dict):
    """A handle. It stays a dict, so that it goes back to the host as JSON."""

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


class Rows(list):
    """Rows with their provenance."""

    source = ""
    total = 0
    truncated = False
    note = ""

    def __repr__(self):
        shown = list.__repr__(self)
        return f"{shown}\n({self.note})" if self.note else shown

    __str__ = __repr__


def _rb_decode(value):
    if isinstance(value, dict):
        kind = value.pop("__rb__", None)
        if kind == "ref":
            return Ref(value)
        if kind == "rows":
            rows = Rows(_rb_decode(item) for item in value.pop("items"))
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
        except RuntimeError as error:
            kind, _, message = str(error).partition(": ")
            if kind == "ToolError":
                raise ToolError(message) from None
            raise

    call._rb_wrapped = True
    return call
