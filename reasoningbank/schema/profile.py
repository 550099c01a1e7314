"""`EndpointProfile`: what exploring an endpoint found out, and how much of it may be looked at.

`first_answer` tries several ways to the same answer, the best first, and says which one worked.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from reasoningbank.errors import (
    CallTimeoutError,
    EndpointError,
    QueryError,
    QueryTimeoutError,
    ReasoningBankError,
)
from reasoningbank.sparql import (
    BooleanResult,
    EndpointConfig,
    PreparedQuery,
    SPARQLClient,
    TableResult,
    is_loopback,
)
from reasoningbank.sparql.terms import cut

if TYPE_CHECKING:
    from reasoningbank.schema.schema import Schema


#: Rows that one bounded look may visit: of an engine on this machine, and of a public one.
LOOK_HERE = 1_000_000
LOOK_AFAR = 50_000
#: Seconds one exploring query may take, and all queries of one call together. Both are lowered
#: where the endpoint's own limit for a query is short.
QUERY_S = 10.0
CALL_S = 20.0
#: Seconds until an endpoint that could not say where its data are is asked again.
UNSURE_S = 60.0
#: Characters of a failure in a note.
_MOST_CHARS = 120

#: Sends one query within what is left of a call's time.
Ask = Callable[[str], TableResult]
T = TypeVar("T")


class EndpointProfile:
    """What exploring one endpoint found out; safe to share between threads and trials.

    Each fact is found when it is first needed, with bounded queries, and kept. What the endpoint
    could not do is not tried again; what a call had no time left for is.

    Args:
        config: The endpoint.
        declared: Classes and properties that are already known, e.g. from a pack's schema.
        look: Rows one bounded look may visit; by default 1,000,000 for an engine on this machine,
            50,000 for any other.
    """

    def __init__(
        self,
        config: EndpointConfig,
        *,
        declared: Schema | None = None,
        look: int | None = None,
    ) -> None:
        self.config = config
        self.look = look or (LOOK_HERE if is_loopback(config.address) else LOOK_AFAR)
        self.given_up: dict[str, QueryError] = {}
        self.declared = declared
        self._query_s = min(QUERY_S, config.timeout_s / 2)
        self._call_s = min(CALL_S, config.timeout_s * 0.8)
        # The same address and the same connection limit, but less patience.
        self._client = SPARQLClient(
            replace(
                config,
                timeout_s=self._query_s,
                deadline_s=self._call_s,
                retries=min(config.retries, 1),
            )
        )
        self._known: dict[str, object] = {}
        self._unsure_until = 0.0
        self._lock = threading.RLock()

    def close(self) -> None:
        """Close the connection; no further request is sent."""
        self._client.close()

    def ask(self) -> Ask:
        """Return a function that sends SELECT queries, within the time that one call may take."""
        end = time.monotonic() + self._call_s

        def ask(query: str) -> TableResult:
            left = end - time.monotonic()
            what = f"the query timed out (a call has {self._call_s:g} s)"
            if left <= 0:
                raise CallTimeoutError(what)
            # Written for the engine: preparing it would take longer than answering it.
            prepared = PreparedQuery(query, "SELECT", original=query)
            try:
                result = self._client.query(prepared, timeout_s=min(self._query_s, left))
            except QueryTimeoutError as error:
                if left < self._query_s:
                    raise CallTimeoutError(what) from error
                raise
            assert isinstance(result, TableResult), "exploring sends SELECT queries"
            return result

        return ask

    @property
    def in_graphs(self) -> bool:
        """Whether the data are in named graphs only; False if the endpoint cannot say in time."""
        with self._lock:
            if "in_graphs" not in self._known and time.monotonic() >= self._unsure_until:
                try:
                    plain = self._holds("?s ?p ?o")
                    self._known["in_graphs"] = not plain and self._holds("GRAPH ?g { ?s ?p ?o }")
                except QueryError:
                    self._unsure_until = time.monotonic() + UNSURE_S
            return bool(self._known.get("in_graphs"))

    def within(self, pattern: str) -> str:
        """Return a pattern, inside a GRAPH clause where this endpoint needs one."""
        return f"GRAPH ?g {{ {pattern} }}" if self.in_graphs else pattern

    def once(self, key: str, find: Callable[[], T]) -> T:
        """Return what `find` returns, computed once; what fails, except for time, always does."""
        with self._lock:
            if key in self.given_up:
                raise self.given_up[key]
            if key not in self._known:
                try:
                    self._known[key] = find()
                except CallTimeoutError:
                    raise
                except QueryError as error:
                    self.given_up[key] = error
                    raise
            return cast(T, self._known[key])

    def _holds(self, pattern: str) -> bool:
        result = self._client.query(f"ASK {{ {pattern} }}")
        return isinstance(result, BooleanResult) and result.value


def side_client(config: EndpointConfig, timeout_s: float) -> SPARQLClient:
    """Return a client for hints and statistics: each request ends in time, none is retried."""
    return SPARQLClient(replace(config, retries=0, timeout_s=timeout_s, deadline_s=timeout_s))


@dataclass(frozen=True)
class Way(Generic[T]):
    """One way to an answer."""

    name: str
    ask: Callable[[], T | None]
    key: str = ""


@dataclass(frozen=True)
class FirstAnswer(Generic[T]):
    """An answer, the way that gave it, and what failed before."""

    value: T
    via: str
    notes: tuple[str, ...] = ()


def first_answer(
    ways: Sequence[Way[T]], given_up: MutableMapping[str, QueryError]
) -> FirstAnswer[T] | None:
    """Return the first answer; None if every way found nothing and none failed."""
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
            timed_out = isinstance(error, CallTimeoutError)
            if way.key and isinstance(error, QueryError) and not timed_out:
                given_up[way.key] = error
            continue
        if value is not None:
            return FirstAnswer(value, way.name, tuple(notes))
    if failure is not None:
        raise failure
    return None


def brief(error: ReasoningBankError) -> str:
    """Return what happened, cut."""
    return cut(error.what, _MOST_CHARS)
