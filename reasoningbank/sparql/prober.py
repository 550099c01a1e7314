"""Probes: small queries about parts of a query, bounded in number and in time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from pyoxigraph import Literal

from reasoningbank.errors import EndpointError, QueryError, ToolError
from reasoningbank.sparql.clauses import WrittenQuery
from reasoningbank.sparql.outline import outline
from reasoningbank.sparql.results import BooleanResult, Result, TableResult
from reasoningbank.sparql.terms import Term

__all__ = ["MOST_PROBES", "MOST_SECONDS", "Prober"]

#: Requests one search may send, and seconds it may take in all.
MOST_PROBES = 16
MOST_SECONDS = 8.0

Run = Callable[[str], Result]


class Prober:
    """Sends probes of one query, as long as requests and seconds are left.

    Args:
        query: The query that is probed; its prologue and dataset are kept.
        run: Sends a query. It should end each within a few seconds.
        most: Most requests.
        seconds: Seconds after which no further request is sent.

    Attributes:
        requests: Requests sent so far.
    """

    def __init__(
        self,
        query: WrittenQuery,
        run: Run,
        *,
        most: int = MOST_PROBES,
        seconds: float = MOST_SECONDS,
    ) -> None:
        shape = outline(query.text)
        self._prologue = query.text[: shape.body[0].start]
        self._dataset = query.dataset
        self._run = run
        self._left = most
        self._end = time.monotonic() + seconds
        self.requests = 0

    @property
    def has_dataset(self) -> bool:
        """Whether the query names its graphs with FROM."""
        return bool(self._dataset)

    def ask(self, body: str, *, anywhere: bool = False) -> bool | None:
        """Say whether a group has a row; None where that could not be found out.

        Args:
            body: The inside of a group.
            anywhere: Leave the query's FROM clauses out.
        """
        result = self._send(f"ASK {self._where(body, anywhere)}")
        return result.value if isinstance(result, BooleanResult) else None

    def rows(
        self,
        variables: Sequence[str],
        body: str,
        limit: int = 1,
        *,
        distinct: bool = False,
        anywhere: bool = False,
    ) -> list[tuple[Term | None, ...]] | None:
        """Return a few rows of a group; None where that could not be found out."""
        names = " ".join(f"?{name}" for name in variables)
        kind = "DISTINCT " if distinct else ""
        result = self._send(f"SELECT {kind}{names} {self._where(body, anywhere)} LIMIT {limit}")
        return result.rows(0, limit) if isinstance(result, TableResult) else None

    def which(self, bodies: Sequence[str]) -> list[bool] | None:
        """Say in one request which of several groups have a row; None where it failed."""
        if not bodies:
            return []
        parts = (
            f"{{ SELECT ({at} AS ?part) {{ {body} }} LIMIT 1 }}" for at, body in enumerate(bodies)
        )
        found = self.rows(["part"], " UNION ".join(parts), len(bodies))
        if found is None:
            return None
        seen = {int(term.value) for (term,) in found if isinstance(term, Literal)}
        return [at in seen for at in range(len(bodies))]

    def _where(self, body: str, anywhere: bool = False) -> str:
        return f"{'' if anywhere else self._dataset} WHERE {{ {body} }}"

    def _send(self, query: str) -> Result | None:
        if self._left <= 0 or time.monotonic() >= self._end:
            return None
        self._left -= 1
        self.requests += 1
        try:
            return self._run(self._prologue + query)
        except (QueryError, EndpointError, ToolError):
            return None
