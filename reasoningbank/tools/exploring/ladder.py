"""Ways to the same answer, the best first: one that fails gives way to the next, which is said."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from reasoningbank.errors import CallTimeoutError, EndpointError, QueryError

__all__ = ["Found", "Way", "brief", "climb"]

T = TypeVar("T")
#: Characters of a failure in a note.
_MOST_CHARS = 120


@dataclass(frozen=True)
class Way(Generic[T]):
    """One way to an answer.

    Attributes:
        name: What it is called in results and notes.
        ask: Returns the answer, or None where this way knows nothing.
        key: What it is remembered by once the endpoint could not do it; never where empty.
    """

    name: str
    ask: Callable[[], T | None]
    key: str = ""


@dataclass(frozen=True)
class Found(Generic[T]):
    """An answer, the way that led to it, and what went wrong before."""

    value: T
    via: str
    notes: tuple[str, ...] = ()


def climb(ways: Sequence[Way[T]], given_up: MutableMapping[str, QueryError]) -> Found[T] | None:
    """Take the first way that has an answer; None where none failed and none has one.

    Args:
        ways: The ways, the best first.
        given_up: Ways that failed before, by key, and why; those are not tried again. What
            fails now is added, except where the endpoint could not be reached at all, or the
            call had no time left for it.

    Raises:
        QueryError: No way had an answer and one failed, the last of those with this.
        EndpointError: The same, where the endpoint is at fault.

    Examples:
        >>> def slow():
        ...     raise QueryError("the query timed out")
        >>> climb([Way("count", slow, "count"), Way("sample", lambda: 7)], {})
        Found(value=7, via='sample', notes=('count: the query timed out',))
    """
    notes: list[str] = []
    failure: QueryError | EndpointError | None = None
    for way in ways:
        if way.key in given_up:
            failure = given_up[way.key]
            continue
        try:
            value = way.ask()
        except (QueryError, EndpointError) as error:
            failure = error
            notes.append(f"{way.name}: {brief(error)}")
            late = isinstance(error, CallTimeoutError)
            if way.key and isinstance(error, QueryError) and not late:
                given_up[way.key] = error
            continue
        if value is not None:
            return Found(value, way.name, tuple(notes))
    if failure is not None:
        raise failure
    return None


def brief(error: QueryError | EndpointError) -> str:
    """Return what happened, without an engine's details.

    Examples:
        >>> brief(QueryError("the endpoint estimates the query as too costly: Virtuoso 42000 …"))
        'the endpoint estimates the query as too costly'
    """
    what = error.what.split(": ", 1)[0].split(" (", 1)[0]
    return what if len(what) <= _MOST_CHARS else what[:_MOST_CHARS] + "…"
