"""The error types: one line that says what happened, where, and what to do next.

After a `recoverable` error an agent may try again; any other ends the trial or the command.
"""

from __future__ import annotations

import difflib
import importlib.util
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from reasoningbank.findings import Finding

if TYPE_CHECKING:
    from pydantic import ValidationError


class ReasoningBankError(Exception):
    """Base of all errors raised on purpose. Each one carries a `Finding`.

    Args:
        what: What happened, without a trailing period.
        where: What it happened to: a file, an address, an argument.
        hint: What the reader can do next.
        code: Stable name of the kind of error; the class's own code if not given.
        fields: Facts that code may read, JSON-able, e.g. ``budget="tokens"``.

    Examples:
        >>> print(UsageError("unknown pack 'unprot'", where="--pack", hint="choose uniprot"))
        --pack: unknown pack 'unprot'; choose uniprot
        >>> UsageError("x").recoverable, QueryError("x").recoverable
        (False, True)
        >>> error = BudgetError("the token budget of 100 is used up", budget="tokens")
        >>> error.code, error.fields["budget"]
        ('budget', 'tokens')
    """

    recoverable: ClassVar[bool] = False
    default_code: ClassVar[str] = "error"

    def __init_subclass__(cls, *, code: str = "", recoverable: bool = False) -> None:
        cls.default_code = code or cls.default_code
        cls.recoverable = recoverable or cls.recoverable

    def __init__(
        self, what: str, *, where: str = "", hint: str = "", code: str = "", **fields: Any
    ) -> None:
        self.finding = Finding(
            code or self.default_code,
            " ".join(what.split()),
            where=" ".join(where.split()),
            hint=" ".join(hint.split()),
            fields=fields,
        )
        super().__init__(self.finding.what)

    #: The parts of the finding.
    what: str
    where: str
    hint: str
    code: str
    fields: Mapping[str, Any]

    def __getattr__(self, name: str) -> Any:
        if name == "finding":
            raise AttributeError(name)
        return getattr(self.finding, name)

    def at(self, where: str) -> Self:
        """Say what the error happened to, and return the error."""
        self.finding = replace(self.finding, where=where)
        return self

    def __str__(self) -> str:
        return str(self.finding)

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions with keyword-only arguments do not survive pickling by themselves.
        return _rebuild, (type(self), self.finding)


def _rebuild(kind: type[ReasoningBankError], finding: Finding) -> ReasoningBankError:
    error = kind(finding.what)
    error.finding = finding
    return error


class UsageError(ReasoningBankError, code="usage"):
    """The request is wrong: an unknown name, file or option."""


class SetupError(ReasoningBankError, code="setup"):
    """The machine lacks something: weights, Deno, a free port."""


class EndpointError(ReasoningBankError, code="endpoint"):
    """An endpoint is down, refuses, or sends an unreadable answer (infrastructure)."""


class ModelError(ReasoningBankError, code="model"):
    """A language model cannot be reached or does not answer (infrastructure)."""


class RecordError(ReasoningBankError, code="record"):
    """A record on disk cannot be read or written."""


class BudgetError(ReasoningBankError, code="budget"):
    """A budget of the trial is used up; what was done so far is kept and judged."""


class QueryError(ReasoningBankError, code="query", recoverable=True):
    """A query is wrong: it does not parse, the engine rejects it, or it times out."""


class QueryTimeoutError(QueryError, code="query-timeout"):
    """A query exceeded its own time limit or the engine's."""


class CallTimeoutError(QueryTimeoutError, code="call-timeout"):
    """A call that runs several queries has no time left; its last one may be quick."""


class ToolError(ReasoningBankError, code="tool", recoverable=True):
    """A tool call failed in a way the agent can fix; its one line says what to try next."""


def read_toml(file: Path, code: str) -> dict[str, Any]:
    """Read a TOML file; raise a `UsageError` with this code if it cannot be read."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8-sig"))
    # A ValueError: not UTF-8, not TOML, or a number with thousands of digits.
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot be read: {error}", where=str(file), code=code) from None


def causes(error: BaseException, *, implicit: bool = False) -> Iterator[BaseException]:
    """Yield an error and its causes; `implicit` ones, too, during whose handling it was raised."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        yield cause
        seen.add(id(cause))
        cause = cause.__cause__ or (cause.__context__ if implicit else None)


#: What pydantic says in words of Python, by the type of its error.
_WANTED = {
    "tuple_type": 'write a list, e.g. ["one", "two"]',
    "list_type": 'write a list, e.g. ["one", "two"]',
    "dict_type": "write a table, e.g. { key = value }",
    "string_type": "write a text in quotes",
    "path_type": "write a path in quotes",
    "bool_type": "write true or false",
    "bool_parsing": "write true or false",
}


def said_of(mistake: Mapping[str, Any]) -> str:
    """Return what an error of pydantic says, in words of its data's format."""
    return _WANTED.get(mistake["type"], str(mistake["msg"]).removeprefix("Value error, "))


def invalid_data(error: ValidationError, where: str = "", code: str = "") -> UsageError:
    """Return the error of data that pydantic refuses: the first mistake, with its path."""
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"]))
    what = f"{place}: {said_of(first)}" if place else said_of(first)
    return UsageError(what, where=where, code=code, field=place)


def unknown_key(
    wrong: str, known: Iterable[str], meant: Mapping[str, str] | None = None, home: str = ""
) -> str:
    """Return what is said of a key that a table does not have: the nearest one that it has."""
    choices = sorted(known)
    given = (meant or {}).get(wrong.lower())
    # A key of another table is meant, unless the word is all but a key of this one.
    near = difflib.get_close_matches(wrong, choices, n=1, cutoff=0.85 if home else 0.6)
    if given in choices or (near and not (given and home)):
        return f"unknown key; did you mean {given if given in choices else near[0]}?"
    if home:
        return f"unknown key; it belongs in {home}" + (f", as {given}" if given else "")
    return f"unknown key; known are {', '.join(choices)}"


def need_package(name: str, extra: str) -> None:
    """Check that an optional package is installed, without loading it."""
    if importlib.util.find_spec(name) is None:
        raise _no_package(name, extra)


def missing_package(error: ModuleNotFoundError) -> Exception:
    """Return what to raise for a module that needs a package when it is loaded.

    Examples:
        >>> print(missing_package(ModuleNotFoundError("", name="matplotlib.axes")))
        the package matplotlib is not installed; pip install "reasoningbank[analysis]"
        >>> missing_package(ModuleNotFoundError("", name="other"))
        ModuleNotFoundError('')
    """
    name = (error.name or "").partition(".")[0]
    return _no_package(name, "analysis") if name in {"pandas", "matplotlib"} else error


def _no_package(name: str, extra: str) -> SetupError:
    hint = f'pip install "reasoningbank[{extra}]"'
    return SetupError(
        f"the package {name} is not installed", hint=hint, code="no-package", package=name
    )
