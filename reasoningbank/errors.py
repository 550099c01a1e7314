"""The few errors of the harness: what happened, where, and what to do about it.

Every error is one line. `recoverable` tells the two kinds apart: an agent may try again
after a recoverable one (its query was wrong, its handle unknown); a terminal one ends the
trial or the command, because nothing the agent writes can mend it.
"""

from __future__ import annotations

import importlib.util
from typing import ClassVar

__all__ = [
    "BudgetError",
    "CallTimeoutError",
    "EndpointError",
    "ModelError",
    "QueryError",
    "QueryTimeoutError",
    "ReasoningBankError",
    "RecordError",
    "SetupError",
    "ToolError",
    "UsageError",
    "need_package",
]


class ReasoningBankError(Exception):
    """Base of all errors raised on purpose.

    Args:
        what: What happened, without a trailing period.
        where: The thing it happened to: a file, an address, an argument.
        mend: What the reader can do next.

    Examples:
        >>> print(UsageError("unknown pack 'unprot'", where="--pack", mend="choose uniprot"))
        --pack: unknown pack 'unprot'; choose uniprot
        >>> UsageError("x").recoverable, QueryError("x").recoverable
        (False, True)
    """

    recoverable: ClassVar[bool] = False

    def __init__(self, what: str, *, where: str = "", mend: str = "") -> None:
        self.what = " ".join(what.split())
        self.where = " ".join(where.split())
        self.mend = " ".join(mend.split())
        super().__init__(self.what)

    def __str__(self) -> str:
        head = f"{self.where}: {self.what}" if self.where else self.what
        return f"{head}; {self.mend}" if self.mend else head

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions with keyword-only arguments do not survive pickling by themselves.
        return _rebuild, (type(self), self.what, self.where, self.mend)


def _rebuild(
    kind: type[ReasoningBankError], what: str, where: str, mend: str
) -> ReasoningBankError:
    return kind(what, where=where, mend=mend)


class UsageError(ReasoningBankError):
    """What the person asked for cannot be: a name, a file or an option is wrong."""


class SetupError(ReasoningBankError):
    """The machine lacks something the job needs: weights, Deno, a free port."""


class EndpointError(ReasoningBankError):
    """An endpoint is down, refuses, or talks nonsense: the infrastructure's fault."""


class ModelError(ReasoningBankError):
    """A language model cannot be reached or does not answer: the infrastructure's fault."""


class RecordError(ReasoningBankError):
    """A record on disk cannot be read or written."""


class BudgetError(ReasoningBankError):
    """A budget of the trial is used up; what was done so far is kept and judged."""


class QueryError(ReasoningBankError):
    """A query is at fault: it does not parse, the engine rejects it, or it takes too long."""

    recoverable = True


class QueryTimeoutError(QueryError):
    """A query takes too long: longer than it was given, or than the engine has patience."""


class CallTimeoutError(QueryTimeoutError):
    """The time of a call that asks several queries is used up; its last one may be quick."""


class ToolError(ReasoningBankError):
    """A tool call failed in a way the agent can mend; its one line says what to try next."""

    recoverable = True


def need_package(name: str, extra: str) -> None:
    """Say in a line what to install, where a package that comes with an extra is missing.

    Args:
        name: The package as it is imported; it is looked for, and not loaded.
        extra: Which of this package's extras brings it.

    Raises:
        SetupError: It is not installed.

    Examples:
        >>> try:
        ...     need_package("no_such_package", "graph")
        ... except SetupError as error:
        ...     print(error)
        the package no_such_package is not installed; pip install "reasoningbank[graph]"
    """
    if importlib.util.find_spec(name) is None:
        mend = f'pip install "reasoningbank[{extra}]"'
        raise SetupError(f"the package {name} is not installed", mend=mend)
