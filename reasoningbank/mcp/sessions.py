"""What a server serves and allows, what its sessions share, and what each session holds."""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mcp.server.context import ServerRequestContext
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from reasoningbank.algebra import Limits
from reasoningbank.algebra.stage import Stage, open_stage
from reasoningbank.corpus import Pack, Task, load_corpus, open_endpoint
from reasoningbank.errors import SetupError, ToolError, UsageError
from reasoningbank.refs import RefStore
from reasoningbank.schema import EndpointProfile, Schema
from reasoningbank.sparql import EndpointConfig, SPARQLClient
from reasoningbank.tools import EndpointTools, SPARQLTools

if TYPE_CHECKING:
    from reasoningbank.mcp.asking import Asker
    from reasoningbank.memory import MemoryBank, MemoryTools
    from reasoningbank.memory.context import ContextBuilder

T = TypeVar("T")

#: Characters of a question.
MAX_QUESTION = 2_000
_LIMITS = Limits(requests=1_000, rows=100_000, seconds=300.0)


@dataclass(frozen=True)
class Settings:
    """What a server serves and allows; by default it writes nothing and calls no model."""

    pack: Pack  #: The domain pack
    url: str | None = None  #: A running endpoint instead of the pack's own
    bank: Path | None = None  #: A memory bank, opened read-only; None offers no memory tools
    allow_write: tuple[str, ...] = ()  #: Addresses below which programs may write documents
    #: Addresses that programs may read besides the pack's endpoints and `allow_write`
    allow_read: tuple[str, ...] = ()
    #: Public base → the base that really answers
    addresses: Mapping[str, str] = field(default_factory=dict)
    credentials: Path | None = None  #: A TOML file of credentials for servers
    limits: Limits = _LIMITS  #: Limits of one program
    lm: str | None = None  #: The model that answers questions; None offers no `ask`
    agent: str = "rlm"  #: The agent that answers
    most_handles: int = 1_000  #: Handles of one session
    most_sessions: int = 64  #: Concurrent sessions over HTTP
    idle_s: float = 1_800.0  #: Seconds after which an idle HTTP session ends


class once(Generic[T]):  # noqa: N801 - it is used as `property` is
    """A property that is made on first use, once; making it blocks only those who want it."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self._name = make.__name__

    def __get__(self, holder: Any, _: object) -> T:
        made = holder.__dict__
        with made.setdefault(f"making {self._name}", threading.RLock()):
            if self._name not in made:
                made[self._name] = self._make(holder)
            return made[self._name]  # type: ignore[no-any-return]


class Shared:
    """Holds what is expensive once for all sessions, made on first use; thread-safe.

    The endpoint opens in the background while the client connects.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._stack = contextlib.ExitStack()
        self._lock = threading.Lock()
        self._opener = ThreadPoolExecutor(1, thread_name_prefix="opening")
        self._running = False

    def __enter__(self) -> Shared:
        self._running = True
        self._opener.submit(lambda: (self.vocabulary, self.profile))
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close everything; calling it again is harmless."""
        self._opener.shutdown(wait=True)
        with self._lock:
            self._running = False
            self._stack.close()

    @once
    def endpoint(self) -> EndpointConfig:
        """The pack's endpoint, opened; raises if it cannot be."""
        return self._kept(open_endpoint(self.settings.pack, self.settings.url))

    @once
    def client(self) -> SPARQLClient:
        return self._kept(SPARQLClient(self.endpoint))

    @once
    def vocabulary(self) -> Schema:
        return Schema.of(self.endpoint, self.settings.pack.schema)

    @once
    def profile(self) -> EndpointProfile:
        file = self.settings.pack.schema
        declared = Schema.of_files(file) if file else None
        return self._kept(contextlib.closing(EndpointProfile(self.endpoint, declared=declared)))

    @once
    def evaluation(self) -> tuple[Task, ...]:
        """The tasks of the pack's test split, which no answer may reveal."""
        return load_corpus(self.settings.pack).split().test

    @property
    def hidden(self) -> frozenset[str]:
        """The ids of the tasks that no answer may reveal."""
        return frozenset(task.id for task in self.evaluation)

    # What follows imports modules that are slow to load.

    @once
    def bank(self) -> MemoryBank:
        """The memory bank; RecordError if it is damaged, SetupError if there is none."""
        file = self.settings.bank
        if file is None:
            raise SetupError("the server has no memory bank", hint="start it with --bank")
        from reasoningbank.memory import MemoryBank

        return self._kept(MemoryBank(file, readonly=True))

    @once
    def sense_card(self) -> str:
        """A card about the endpoint; raises as `endpoint`."""
        return self._cards("L0").static

    def schema_card(self, question: str) -> str:
        """Return a card about the schema near a question; raises as `endpoint`."""
        text = " ".join(question.split())
        if not 0 < len(text) <= MAX_QUESTION:
            raise UsageError("the question is empty or too long", hint="give one sentence")
        return self._schema_cards.build(text).text

    @once
    def _schema_cards(self) -> ContextBuilder:
        return self._cards("L1")

    def _cards(self, layer: str) -> ContextBuilder:
        from reasoningbank.memory.context import Budgets, ContextBuilder

        return ContextBuilder(
            [layer],
            endpoint=self.endpoint,
            vocabulary=self.vocabulary,
            pack=self.settings.pack,
            # Cards are read once, not with every question.
            budgets=Budgets(L0=300, L1=800),
            hidden=self.hidden,
            tools=True,
        )

    @once
    def stage(self) -> Stage:
        """The pack's offline world: its endpoint, and the resources that programs read."""
        return self._kept(open_stage(self.settings.pack, self.endpoint))

    @once
    def asker(self) -> Asker:
        """The agent; SetupError if no model can be opened, or the server has stopped."""
        endpoint = self.endpoint
        from reasoningbank.mcp.asking import open_asker

        return self._kept(open_asker(self.settings, endpoint, self.hidden))

    def _kept(self, made: AbstractContextManager[T]) -> T:
        """Return what is closed with the server."""
        with contextlib.ExitStack() as stack:
            found = stack.enter_context(made)
            with self._lock:
                if not self._running:
                    raise SetupError("the server is not running")
                self._stack.push(stack.pop_all())
            return found


class Session:
    """The handles and tools of one session; thread-safe."""

    def __init__(self, shared: Shared, mark: str = "") -> None:
        self.shared = shared
        self.mark = mark
        self.store = RefStore(mark=mark)
        #: Concurrent calls: a client may use one handle in several
        self.users = 0
        self.used = 0.0  #: When the last call ended

    def check_room(self) -> None:
        """Raise `ToolError` if the session has too many handles."""
        most = self.shared.settings.most_handles
        if len(self.store) >= most:
            what = f"this session holds {most} handles, the maximum"
            hint = "begin a new session, which releases them"
            raise ToolError(what, hint=hint, code="too-many-handles")

    @once
    def sparql(self) -> SPARQLTools:
        shared = self.shared
        return SPARQLTools(
            shared.endpoint,
            store=self.store,
            client=shared.client,
            schema=shared.vocabulary,
            profile=shared.profile,
        )

    @once
    def endpoints(self) -> EndpointTools:
        endpoints, packs = [self.shared.endpoint], [self.shared.settings.pack]
        return EndpointTools(endpoints, store=self.store, packs=packs, hidden=self.shared.hidden)

    @once
    def memory(self) -> MemoryTools:
        # Slow to load.
        from reasoningbank.memory import LeakageFilter, MemoryTools, Scope
        from reasoningbank.trajectory import Recorder

        pack, bank = self.shared.settings.pack, self.shared.bank
        leakage = LeakageFilter.of(None, self.shared.evaluation, prefixes=pack.prefixes)
        scope = Scope(pack=pack.key, endpoint=pack.endpoint)
        return MemoryTools(bank, leakage=leakage, recorder=Recorder(), scope=scope)


_STATE = "reasoningbank.session"


class Sessions:
    """The sessions of a server; use it from the event loop's thread.

    Args:
        shared: What all sessions share.
        one_session: Whether the process serves a single session, as over stdio.
        clock: Returns seconds.
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
        self._only = Session(shared) if one_session else None
        self._open: set[Session] = {self._only} if self._only else set()
        self._marked: dict[str, Session] = {}

    @property
    def stores(self) -> tuple[int, ...]:
        """How many handles each open session holds."""
        return tuple(len(session.store) for session in self._open)

    def close(self) -> None:
        for session in tuple(self._open):
            self._close(session)

    @contextlib.contextmanager
    def at(
        self, context: ServerRequestContext[Any, Any], arguments: Mapping[str, Any]
    ) -> Iterator[Session]:
        """Yield the session of a request, whose arguments may include a handle."""
        if self._only is not None:
            yield self._only
        elif context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            with self._of_handle(key_of(arguments.get("ref"))) as session:
                yield session
        else:
            yield self._of_session(context)

    def _of_session(self, context: ServerRequestContext[Any, Any]) -> Session:
        # The SDK offers no public way to the connection, which knows when it ends.
        connection = context.session._connection
        if _STATE not in connection.state:
            session = self._new()
            connection.state[_STATE] = session
            connection.exit_stack.callback(self._close, session)
        found: Session = connection.state[_STATE]
        return found

    @contextlib.contextmanager
    def _of_handle(self, key: str) -> Iterator[Session]:
        now, settings = self._clock(), self._shared.settings
        for session in tuple(self._marked.values()):
            if now - session.used > settings.idle_s and not session.users:
                self._close(session)
        mark = key[key.rfind("-") :] if "-" in key else ""
        session = self._marked.get(mark) or self._new(f"-{secrets.token_hex(16)}")
        session.users += 1
        try:
            yield session
        finally:
            session.users -= 1
            if len(session.store):
                session.used = self._clock()
                # The least recently used one stands first.
                self._marked.pop(session.mark, None)
                self._marked[session.mark] = session
                free = [one for one in self._marked.values() if not one.users]
                for least_recent in free[: max(0, len(self._marked) - settings.most_sessions)]:
                    self._close(least_recent)
            elif not session.users:
                self._close(session)

    def _new(self, mark: str = "") -> Session:
        session = Session(self._shared, mark)
        self._open.add(session)
        return session

    def _close(self, session: Session) -> None:
        session.store.close()
        self._open.discard(session)
        self._marked.pop(session.mark, None)


def key_of(ref: object) -> str:
    """Return the key of a handle, given the key or the whole handle."""
    key = ref.get("key") if isinstance(ref, Mapping) else ref
    return key if isinstance(key, str) else ""
