"""What is found out about an endpoint, once: how much of it may be looked at, and how."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar, cast

from pyoxigraph import Literal, NamedNode

from reasoningbank.errors import CallTimeoutError, QueryError, QueryTimeoutError
from reasoningbank.sparql import (
    BooleanResult,
    EndpointConfig,
    PreparedQuery,
    SPARQLClient,
    TableResult,
    is_loopback,
)
from reasoningbank.tools.exploring import label_queries
from reasoningbank.tools.exploring.text_search import DIALECTS, TextSearch, words_of

if TYPE_CHECKING:
    from reasoningbank.tools.vocabulary import Vocabulary

__all__ = ["Ask", "Labels", "Survey"]

#: Rows that one bounded look may visit: of an engine on this machine, and of a public one.
LOOK_HERE = 1_000_000
LOOK_AFAR = 50_000
#: Seconds one query of an exploring tool may take, and all queries of one call together; both
#: are lowered where the endpoint's own limit for a query is short.
QUERY_S = 10.0
CALL_S = 20.0
#: Seconds until an endpoint that could not tell where its data are is asked again.
UNSURE_S = 60.0
#: Language tags that labels are looked up with, seen or not.
_USUAL = ("", "en")

#: Asks one query within what is left of a call's time.
Ask = Callable[[str], TableResult]
T = TypeVar("T")


@dataclass(frozen=True)
class Labels:
    """Which label properties an endpoint uses.

    Attributes:
        counts: Number of labels by property, counted up to `most` and one more.
        most: Labels of one property that a search looks at.
    """

    counts: tuple[tuple[str, int], ...]
    most: int

    @property
    def complete(self) -> bool:
        """Whether a search looks at all labels there are."""
        return all(count <= self.most for _, count in self.counts)

    @property
    def looked_at(self) -> int:
        """Number of labels that a search looks at."""
        return sum(min(count, self.most) for _, count in self.counts)

    @property
    def properties(self) -> tuple[str, ...]:
        """The properties in use."""
        return tuple(name for name, count in self.counts if count)


class Survey:
    """What the exploring tools know of one endpoint; safe to share between threads and trials.

    Everything is found out when it is first needed, with bounded queries, and kept. What the
    endpoint could not do is not tried again; what a call had no time left for is.

    Args:
        config: The endpoint.
        declared: Classes and properties that are known beforehand, e.g. of a pack's schema.
        look: Rows one bounded look may visit; by default 1,000,000 of an engine on this machine,
            50,000 of any other.

    Examples:
        >>> from reasoningbank.sparql import OxigraphServer
        >>> with OxigraphServer() as server:
        ...     survey = Survey(EndpointConfig(server.url))
        ...     survey.labels(survey.ask()).complete, survey.text_search(survey.ask())
        (True, None)
    """

    def __init__(
        self,
        config: EndpointConfig,
        *,
        declared: Vocabulary | None = None,
        look: int | None = None,
    ) -> None:
        self.config = config
        self.look = look or (LOOK_HERE if is_loopback(config.address) else LOOK_AFAR)
        self.given_up: dict[str, QueryError] = {}
        self.declared = declared
        self._query_s = min(QUERY_S, config.timeout_s / 2)
        self._call_s = min(CALL_S, config.timeout_s * 0.8)
        # The same address, so the same places in its queue; but an explorer waits less long.
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
        """Let no further request out."""
        self._client.close()

    def ask(self) -> Ask:
        """Return what asks SELECT queries, within the time that one call of a tool has."""
        end = time.monotonic() + self._call_s

        def ask(query: str) -> TableResult:
            left = end - time.monotonic()
            what = f"the query timed out (a call has {self._call_s:g} s)"
            if left <= 0:
                raise CallTimeoutError(what)
            # Already as the engine is to get it: checking it again takes longer than the answer.
            prepared = PreparedQuery(query, "SELECT", original=query)
            try:
                result = self._client.query(prepared, timeout_s=min(self._query_s, left))
            except QueryTimeoutError as error:
                if left < self._query_s:
                    raise CallTimeoutError(what) from error
                raise
            assert isinstance(result, TableResult), "the exploring tools ask SELECT queries"
            return result

        return ask

    @property
    def in_graphs(self) -> bool:
        """Whether the data are in named graphs only, so that patterns need a GRAPH clause.

        False where the endpoint cannot tell in time; a minute later it is asked again.
        """
        with self._lock:
            if "in_graphs" not in self._known and time.monotonic() >= self._unsure_until:
                try:
                    plain = self._holds("?s ?p ?o")
                    self._known["in_graphs"] = not plain and self._holds("GRAPH ?g { ?s ?p ?o }")
                except QueryError:
                    self._unsure_until = time.monotonic() + UNSURE_S
            return bool(self._known.get("in_graphs"))

    def within(self, pattern: str) -> str:
        """Return a pattern as it is to be asked here: in a GRAPH clause where it must be."""
        return f"GRAPH ?g {{ {pattern} }}" if self.in_graphs else pattern

    def labels(self, ask: Ask) -> Labels:
        """Count the labels, up to a bound for each property.

        Raises:
            QueryError: The endpoint cannot count even these in time.
            EndpointError: The endpoint is down.
        """

        def count() -> Labels:
            names = self.config.label_properties
            if not names:
                return Labels((), self.look)
            most = max(1, self.look // len(names))
            counts = dict.fromkeys(names, 0)
            for name, n in ask(label_queries.count(names, most + 1, self.within)).rows():
                if isinstance(name, NamedNode) and isinstance(n, Literal):
                    counts[name.value] = int(n.value)
            return Labels(tuple(counts.items()), most)

        return self._once("labels", count)

    def languages(self, ask: Ask) -> tuple[str, ...]:
        """Return the language tags to look labels up with, the most used first; ``''`` is none."""
        return self._once("languages", lambda: self._examine(ask)[0])

    def text_search(self, ask: Ask) -> TextSearch | None:
        """Return the engine's text search, found by looking up a label that is there."""
        return self._once("text_search", lambda: self._try_dialects(ask))

    def _try_dialects(self, ask: Ask) -> TextSearch | None:
        _, name, word = self._examine(ask)
        if not word:
            return None
        for dialect in DIALECTS:
            query = label_queries.by_text(dialect, (word,), (name,), self.within, most=1)
            try:
                if ask(query).n_rows:
                    return dialect
            except QueryError:
                continue
        return None

    def _examine(self, ask: Ask) -> tuple[tuple[str, ...], str, str]:
        """Look at some labels: their languages, and one property and word to be searched for."""

        def look() -> tuple[tuple[str, ...], str, str]:
            try:
                names = self.labels(ask).properties
            except QueryError:
                names = self.config.label_properties
            tags = dict.fromkeys(_USUAL, 0)
            best = ("", "")
            if not names:
                return _USUAL, *best
            for name, label in ask(label_queries.some(names, self.within)).rows():
                if not isinstance(label, Literal) or not isinstance(name, NamedNode):
                    continue
                tag = label.language or ""
                tags[tag] = tags.get(tag, 0) + 1
                longest = max(
                    (w for w in words_of(label.value) if w.isascii()), key=len, default=""
                )
                if len(longest) > len(best[1]):
                    best = (name.value, longest)
            order = sorted(tags, key=lambda tag: (-tags[tag], tag))
            return tuple(order), *best

        return self._once("examined", look)

    def _holds(self, pattern: str) -> bool:
        result = self._client.query(f"ASK {{ {pattern} }}")
        return isinstance(result, BooleanResult) and result.value

    def _once(self, key: str, find: Callable[[], T]) -> T:
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
