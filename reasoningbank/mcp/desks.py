"""Which desk a request is served at: one for each session, released when the session ends.

Since the protocol's revision of 2026-07-28 requests over HTTP belong to no session. There a handle
alone leads to its desk: its key ends with a mark that nobody can guess.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from reasoningbank.mcp.desk import Desk
from reasoningbank.mcp.shared import Shared

__all__ = ["Desks", "key_of"]

_STATE = "reasoningbank.desk"


class Desks:
    """The desks of a server; to be used from the event loop's thread.

    Args:
        shared: What all sessions share.
        one_session: Whether the process serves one session, as over standard input and output.
        clock: Tells seconds.
    """

    def __init__(
        self,
        shared: Shared,
        *,
        one_session: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._shared = shared
        self._clock = clock
        self._only = Desk(shared) if one_session else None
        self._open: set[Desk] = {self._only} if self._only else set()
        self._marked: OrderedDict[str, tuple[Desk, float]] = OrderedDict()
        self._users: Counter[Desk] = Counter()

    @property
    def stores(self) -> tuple[int, ...]:
        """How many handles each open desk holds."""
        return tuple(len(desk.store) for desk in self._open)

    def close(self) -> None:
        """Release all that is left."""
        for desk in tuple(self._open):
            self._close(desk)
        self._marked.clear()

    @contextlib.contextmanager
    def at(
        self, context: ServerRequestContext[Any, Any], arguments: Mapping[str, Any]
    ) -> Iterator[Desk]:
        """Lend the desk of a request.

        Args:
            context: The request.
            arguments: What it gives, a handle perhaps.
        """
        if self._only is not None:
            yield self._only
        elif context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            with self._of_handle(key_of(arguments.get("ref"))) as desk:
                yield desk
        else:
            yield self._of_session(context)

    def _of_session(self, context: ServerRequestContext[Any, Any]) -> Desk:
        # The SDK gives handlers no public way to the connection, which alone knows its end.
        connection = context.session._connection
        if _STATE not in connection.state:
            desk = self._new()
            connection.state[_STATE] = desk
            connection.exit_stack.callback(self._close, desk)
        found: Desk = connection.state[_STATE]
        return found

    @contextlib.contextmanager
    def _of_handle(self, key: str) -> Iterator[Desk]:
        now, settings = self._clock(), self._shared.settings
        for mark, (desk, used) in tuple(self._marked.items()):
            if now - used > settings.idle_s and not self._users[desk]:
                del self._marked[mark]
                self._close(desk)
        mark = key[key.rfind("-") :] if "-" in key else ""
        known = self._marked.get(mark)
        desk = known[0] if known else self._new(f"-{secrets.token_hex(16)}")
        # Clients look at one result in several ways at once.
        self._users[desk] += 1
        try:
            yield desk
        finally:
            self._users[desk] -= 1
            if len(desk.store):
                self._marked[desk.mark] = (desk, self._clock())
                self._marked.move_to_end(desk.mark)
                self._make_room(settings.most_sessions)
            elif not self._users[desk]:
                self._marked.pop(desk.mark, None)
                self._close(desk)

    def _make_room(self, most: int) -> None:
        """Close the desks that were used least lately; those in use stay."""
        free = [mark for mark, (desk, _) in self._marked.items() if not self._users[desk]]
        for mark in free[: max(0, len(self._marked) - most)]:
            self._close(self._marked.pop(mark)[0])

    def _new(self, mark: str = "") -> Desk:
        desk = Desk(self._shared, mark)
        self._open.add(desk)
        return desk

    def _close(self, desk: Desk) -> None:
        desk.close()
        self._open.discard(desk)
        del self._users[desk]


def key_of(ref: object) -> str:
    """Return the key of a handle as a client gives it back: the key, or the whole handle.

    Examples:
        >>> key_of("results_0"), key_of({"key": "results_0", "rows": 3}), key_of(None)
        ('results_0', 'results_0', '')
    """
    key = ref.get("key") if isinstance(ref, Mapping) else ref
    return key if isinstance(key, str) else ""
