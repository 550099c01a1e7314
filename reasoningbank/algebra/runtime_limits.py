"""The budgets of a run, and what of them is used up."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, fields

from reasoningbank.errors import BudgetError, UsageError

__all__ = ["Limits", "Spent"]


@dataclass(frozen=True)
class Limits:
    """How much a run may do; None is no limit.

    Attributes:
        requests: HTTP requests, repeated and redirected ones counted; a query counts as one.
        rows: Rows of one result, triples of one graph, and rows that all loops go through.
        seconds: Wall time.
        depth: Operations inside one another.
        request_seconds: Seconds that one exchange may take, connecting and reading included.
        wait_seconds: Seconds that all tries of one request may take together, pauses included.
        document_bytes: Most bytes of one document.
        result_bytes: Most bytes of the answer to one query, which goes to disk where it is large.
        tries: How often one request is sent at most.

    Raises:
        UsageError: A number is not above 0.

    Examples:
        >>> Limits(requests=10).requests
        10
    """

    requests: int | None = 10_000
    rows: int | None = 1_000_000
    seconds: float | None = 3_600.0
    depth: int | None = 100
    request_seconds: float = 60.0
    wait_seconds: float = 180.0
    document_bytes: int = 64 * 1024 * 1024
    result_bytes: int = 1024 * 1024 * 1024
    tries: int = 4

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if value is not None and not value > 0:
                raise UsageError("must be above 0", where=f"Limits.{one.name}")


class Spent:
    """What a run has used of its budgets so far; safe to share between threads.

    Args:
        limits: The budgets.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._requests = 0

    @property
    def requests(self) -> int:
        """Requests sent."""
        return self._requests

    @property
    def left_s(self) -> float:
        """Seconds that are left."""
        if self._limits.seconds is None:
            return float("inf")
        return self._limits.seconds - (time.monotonic() - self._began)

    def request(self, url: str) -> None:
        """Count a request that is about to be sent.

        Raises:
            BudgetError: It may not be sent any more.
        """
        if self.left_s <= 0:
            raise BudgetError(
                f"the run's {self._limits.seconds:g} seconds are used up",
                where=url,
                hint="allow it more seconds, or let it do less",
            )
        with self._lock:
            if self._limits.requests is not None and self._requests >= self._limits.requests:
                raise BudgetError(
                    f"the run's {self._limits.requests:,} requests are used up",
                    where=url,
                    hint="allow it more requests, or let it do less",
                )
            self._requests += 1
