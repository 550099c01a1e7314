"""Runs faults, two at a time, each once."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

from reasoningbank.sparql import EndpointConfig

from .budgets import Ending, Limit, ended
from .caches import CACHES
from .commands import begin
from .scenario import Fault, Scenario, Seen, observe

__all__ = ["FaultRunner"]

#: Whose cache is their own, since they spoil it.
_SPOILERS = {id(fault) for fault in CACHES}


class FaultRunner:
    """Gives each fault a scenario of its own.

    Args:
        folder: Where the scenarios are built.
        trees: A real endpoint that serves the trees.
    """

    def __init__(self, folder: Path, trees: EndpointConfig) -> None:
        port = urlsplit(trees.address).port
        assert port is not None
        self._folder = folder
        self._port = port
        self._pool = ThreadPoolExecutor(2)
        # The first command waits for the server that all are forked from.
        begin(("--help",), folder, {}).wait(180)
        self._faults: dict[int, Future[Seen]] = {}
        self._limits: dict[int, Future[Ending]] = {}

    def __enter__(self) -> FaultRunner:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def announce(self, case: Fault | Limit) -> None:
        """Start this as soon as there is room, so that asking for it waits less."""
        if isinstance(case, Limit):
            if id(case) not in self._limits:
                self._limits[id(case)] = self._pool.submit(self._end, case)
        elif id(case) not in self._faults:
            self._faults[id(case)] = self._pool.submit(self._observe, case)

    def seen(self, fault: Fault) -> Seen:
        """Return what a fault led to."""
        self.announce(fault)
        return self._faults[id(fault)].result()

    def ending(self, limit: Limit) -> Ending:
        """Return how trials ended under a budget."""
        self.announce(limit)
        return self._limits[id(limit)].result()

    def scenario(self, name: str, *, own_cache: bool = False) -> Scenario:
        """Build a scenario."""
        cache = None if own_cache else self._folder / "cache"
        return Scenario(self._folder / name, self._port, cache)

    def _observe(self, fault: Fault) -> Seen:
        scenario = self.scenario(f"fault-{id(fault)}", own_cache=id(fault) in _SPOILERS)
        try:
            return observe(fault, scenario)
        finally:
            scenario.close()

    def _end(self, limit: Limit) -> Ending:
        scenario = self.scenario(f"budget-{limit.name}")
        try:
            return ended(limit, scenario)
        finally:
            scenario.close()
