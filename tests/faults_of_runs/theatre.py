"""Acts faults out, two at a time, each once."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

from reasoningbank.sparql import EndpointConfig

from .budgets import Ending, Limit, ended
from .caches import CACHES
from .nursery import begin
from .scene import Fault, Seen, Stage, observe

__all__ = ["Theatre"]

#: Whose cache is their own, since they spoil it.
_SPOILERS = {id(fault) for fault in CACHES}


class Theatre:
    """Gives each act a stage of its own.

    Args:
        folder: Where the stages are built.
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

    def __enter__(self) -> Theatre:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def announce(self, act: Fault | Limit) -> None:
        """Act this out as soon as there is room; whoever asks waits less."""
        if isinstance(act, Limit):
            if id(act) not in self._limits:
                self._limits[id(act)] = self._pool.submit(self._end, act)
        elif id(act) not in self._faults:
            self._faults[id(act)] = self._pool.submit(self._befall, act)

    def seen(self, fault: Fault) -> Seen:
        """Return what came of a fault."""
        self.announce(fault)
        return self._faults[id(fault)].result()

    def ending(self, limit: Limit) -> Ending:
        """Return how trials ended under a budget."""
        self.announce(limit)
        return self._limits[id(limit)].result()

    def stage(self, name: str, *, own_cache: bool = False) -> Stage:
        """Build a stage."""
        cache = None if own_cache else self._folder / "cache"
        return Stage(self._folder / name, self._port, cache)

    def _befall(self, fault: Fault) -> Seen:
        stage = self.stage(f"fault-{id(fault)}", own_cache=id(fault) in _SPOILERS)
        try:
            return observe(fault, stage)
        finally:
            stage.close()

    def _end(self, limit: Limit) -> Ending:
        stage = self.stage(f"budget-{limit.name}")
        try:
            return ended(limit, stage)
        finally:
            stage.close()
