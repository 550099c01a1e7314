"""One session's own things: the handles it was given, and the tools that give and take them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from reasoningbank.errors import ToolError
from reasoningbank.mcp.shared import Shared
from reasoningbank.refs import RefStore
from reasoningbank.tools import EndpointTools, MemoryTools, SPARQLTools

__all__ = ["Desk"]

T = TypeVar("T")


class Desk:
    """What belongs to one session and ends with it; threads may share it.

    Args:
        shared: What all sessions share.
        mark: What the keys of its handles end with.
    """

    def __init__(self, shared: Shared, mark: str = "") -> None:
        self.shared = shared
        self.mark = mark
        self.store = RefStore(mark=mark)
        self._made: dict[str, Any] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        """Release all handles; calling it again is harmless."""
        self.store.close()

    def check_room(self) -> None:
        """Refuse a further handle where there are too many.

        Raises:
            ToolError: It is so.
        """
        most = self.shared.settings.most_handles
        if len(self.store) >= most:
            raise ToolError(
                f"this session holds {most} handles, and may hold no more",
                hint="begin a new session, which releases them",
            )

    @property
    def sparql(self) -> SPARQLTools:
        """The query tools."""

        def make() -> SPARQLTools:
            opened = self.shared.opened
            return SPARQLTools(
                opened.endpoint,
                store=self.store,
                client=opened.client,
                vocabulary=opened.vocabulary,
                profile=opened.survey,
            )

        return self._once("sparql", make)

    @property
    def endpoints(self) -> EndpointTools:
        """The discovery tools."""

        def make() -> EndpointTools:
            return EndpointTools(
                [self.shared.opened.endpoint],
                store=self.store,
                packs=[self.shared.settings.pack],
                hidden=frozenset(task.id for task in self.shared.evaluation()),
            )

        return self._once("endpoints", make)

    @property
    def memory(self) -> MemoryTools:
        """The memory tools."""

        def make() -> MemoryTools:
            # Memory needs what agents need, which is slow to load.
            from reasoningbank.memory import Consultation, LeakageFilter, Scope
            from reasoningbank.trajectory import Recorder

            pack = self.shared.settings.pack
            leakage = LeakageFilter.of(None, self.shared.evaluation(), prefixes=pack.prefixes)
            return MemoryTools(
                Consultation(
                    self.shared.bank(),
                    leakage=leakage,
                    recorder=Recorder(),
                    scope=Scope(pack=pack.key, endpoint=pack.endpoint),
                )
            )

        return self._once("memory", make)

    def _once(self, name: str, make: Callable[[], T]) -> T:
        with self._lock:
            if name not in self._made:
                self._made[name] = make()
            made: T = self._made[name]
            return made
