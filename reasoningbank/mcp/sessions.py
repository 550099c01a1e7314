"""What a server serves and allows, what its sessions share, and what each session holds."""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mcp.server.context import ServerRequestContext
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from reasoningbank.corpus import Pack, Task, load_shacl_tasks, open_endpoint, split_tasks
from reasoningbank.errors import SetupError, ToolError, UsageError
from reasoningbank.refs import RefStore
from reasoningbank.schema import EndpointProfile, Schema
from reasoningbank.sparql import EndpointConfig, SPARQLClient
from reasoningbank.tools import EndpointTools, MemoryTools, SPARQLTools

if TYPE_CHECKING:
    from reasoningbank.algebra.stage import Stage
    from reasoningbank.mcp.asking import Asker
    from reasoningbank.memory import MemoryBank

T = TypeVar("T")

#: Characters of a question.
MAX_QUESTION = 2_000


@dataclass(frozen=True)
class ProgramLimits:
    """Limits of one program."""

    requests: int = 1_000  #: HTTP requests
    rows: int = 100_000  #: Rows of one result, and rows of all loops together
    seconds: float = 300.0  #: Wall time


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
    limits: ProgramLimits = ProgramLimits()  #: Limits of one program
    lm: str | None = None  #: The model that answers questions; None offers no `ask`
    agent: str = "rlm"  #: The agent that answers
    most_handles: int = 1_000  #: Handles of one session
    most_sessions: int = 64  #: Concurrent sessions over HTTP
    idle_s: float = 1_800.0  #: Seconds after which an idle HTTP session ends


@dataclass(frozen=True)
class Opened:
    """An open endpoint: its configuration, client, vocabulary and profile."""

    endpoint: EndpointConfig
    client: SPARQLClient
    vocabulary: Schema
    profile: EndpointProfile


class Once:
    """Values by name, each made on first use, once; thread-safe."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}
        self._locks: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)
        self._lock = threading.Lock()

    def get(self, name: str, make: Callable[[], T]) -> T:
        """Return a value; making it blocks only those who want the same one."""
        with self._lock:
            lock = self._locks[name]
        with lock:
            if name not in self._made:
                self._made[name] = make()
            made: T = self._made[name]
            return made


class Shared:
    """Holds expensive objects once for all sessions; thread-safe.

    The endpoint opens in the background while the client connects; everything else that is
    expensive is created on first use.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._stack = contextlib.ExitStack()
        self._lock = threading.RLock()
        self._opener = ThreadPoolExecutor(1, thread_name_prefix="opening")
        self._opened: Future[Opened] | None = None
        self._closed = False
        self._once = Once()

    def __enter__(self) -> Shared:
        self._opened = self._opener.submit(self._open)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close everything; calling it again is harmless."""
        self._opener.shutdown(wait=True)
        with self._lock:
            self._closed = True
            self._stack.close()

    @property
    def opened(self) -> Opened:
        """The endpoint, once it is open; raises if it could not be opened."""
        if self._opened is None or self._closed:
            raise SetupError("the server is not running")
        return self._opened.result()

    def evaluation(self) -> tuple[Task, ...]:
        """Return the tasks of the pack's test split, which no answer may reveal."""

        def make() -> tuple[Task, ...]:
            pack = self.settings.pack
            tasks = load_shacl_tasks(pack) if pack.examples.is_dir() else []
            return tuple(split_tasks(tasks).test) if tasks else ()

        return self._once.get("evaluation", make)

    def hidden(self) -> frozenset[str]:
        """Return the ids of the tasks that no answer may reveal."""
        return frozenset(task.id for task in self.evaluation())

    # What follows imports modules that are slow to load.

    def bank(self) -> MemoryBank:
        """Return the memory bank; RecordError if it is damaged, SetupError if there is none."""
        file = self.settings.bank
        if file is None:
            raise SetupError("the server has no memory bank", hint="start it with --bank")
        from reasoningbank.memory import MemoryBank

        return self._kept("bank", lambda: MemoryBank(file, readonly=True))

    def card(self, layer: str, question: str = "") -> str:
        """Return a card about the endpoint: layer L0, or L1 near a question; raises as `opened`."""
        opened = self.opened
        from reasoningbank.memory.context import Budgets, ContextBuilder

        text = " ".join(question.split())
        if layer == "L1" and not 0 < len(text) <= MAX_QUESTION:
            raise UsageError("the question is empty or too long", hint="give one sentence")

        def make() -> ContextBuilder:
            return ContextBuilder(
                [layer],
                endpoint=opened.endpoint,
                vocabulary=opened.vocabulary,
                pack=self.settings.pack,
                # Cards are read once, not with every question.
                budgets=Budgets(L0=300, L1=800),
                hidden=self.hidden(),
                tools=True,
            )

        card = self._once.get(layer, make)
        return card.build(text).text if text else card.static

    def stage(self) -> Stage:
        """Return the pack's offline world: its endpoint, and the resources that programs read."""
        opened = self.opened
        from reasoningbank.algebra.stage import open_stage

        return self._kept("stage", lambda: open_stage(self.settings.pack, opened.endpoint))

    def asker(self) -> Asker:
        """Return the agent; SetupError if no model can be opened, or the server has stopped."""
        opened = self.opened
        from reasoningbank.mcp.asking import Asker

        make = lambda: contextlib.closing(Asker(self.settings, opened, self.hidden()))  # noqa: E731
        return self._kept("asker", make)

    def _kept(self, name: str, make: Callable[[], AbstractContextManager[T]]) -> T:
        """Return what is made once and closed with the server."""

        def entered() -> T:
            made = make()
            with self._lock:
                if not self._closed:
                    return self._stack.enter_context(made)
            with made:
                raise SetupError("the server is not running")

        return self._once.get(name, entered)

    def _open(self) -> Opened:
        pack = self.settings.pack
        endpoint = self._stack.enter_context(open_endpoint(pack, self.settings.url))
        declared = Schema.of_files(pack.schema) if pack.schema else None
        return Opened(
            endpoint=endpoint,
            client=self._stack.enter_context(SPARQLClient(endpoint)),
            vocabulary=Schema.of(endpoint, pack.schema),
            profile=self._stack.enter_context(
                contextlib.closing(EndpointProfile(endpoint, declared=declared))
            ),
        )


class Session:
    """The handles and tools of one session; thread-safe."""

    def __init__(self, shared: Shared, mark: str = "") -> None:
        self.shared = shared
        self.mark = mark
        self.store = RefStore(mark=mark)
        self._once = Once()

    def close(self) -> None:
        """Release all handles; calling it again is harmless."""
        self.store.close()

    def check_room(self) -> None:
        """Raise `ToolError` if the session has too many handles."""
        most = self.shared.settings.most_handles
        if len(self.store) >= most:
            what = f"this session holds {most} handles, the maximum"
            hint = "begin a new session, which releases them"
            raise ToolError(what, hint=hint, code="too-many-handles")

    @property
    def sparql(self) -> SPARQLTools:
        """The query tools."""
        opened = self.shared.opened

        def make() -> SPARQLTools:
            return SPARQLTools(
                opened.endpoint,
                store=self.store,
                client=opened.client,
                schema=opened.vocabulary,
                profile=opened.profile,
            )

        return self._once.get("sparql", make)

    @property
    def endpoints(self) -> EndpointTools:
        """The discovery tools."""
        endpoints, packs = [self.shared.opened.endpoint], [self.shared.settings.pack]
        hidden = self.shared.hidden()

        def make() -> EndpointTools:
            return EndpointTools(endpoints, store=self.store, packs=packs, hidden=hidden)

        return self._once.get("endpoints", make)

    @property
    def memory(self) -> MemoryTools:
        """The memory tools."""

        def make() -> MemoryTools:
            # Slow to load.
            from reasoningbank.memory import Consultation, LeakageFilter, Scope
            from reasoningbank.trajectory import Recorder

            pack, bank = self.shared.settings.pack, self.shared.bank()
            leakage = LeakageFilter.of(None, self.shared.evaluation(), prefixes=pack.prefixes)
            scope = Scope(pack=pack.key, endpoint=pack.endpoint)
            return MemoryTools(
                Consultation(bank, leakage=leakage, recorder=Recorder(), scope=scope)
            )

        return self._once.get("memory", make)


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
        self._marked: OrderedDict[str, tuple[Session, float]] = OrderedDict()
        self._users: Counter[Session] = Counter()

    @property
    def stores(self) -> tuple[int, ...]:
        """How many handles each open session holds."""
        return tuple(len(session.store) for session in self._open)

    def close(self) -> None:
        """Close all sessions."""
        for session in tuple(self._open):
            self._close(session)
        self._marked.clear()

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
        for mark, (session, used) in tuple(self._marked.items()):
            if now - used > settings.idle_s and not self._users[session]:
                del self._marked[mark]
                self._close(session)
        mark = key[key.rfind("-") :] if "-" in key else ""
        known = self._marked.get(mark)
        session = known[0] if known else self._new(f"-{secrets.token_hex(16)}")
        # A client may use one handle in several concurrent calls.
        self._users[session] += 1
        try:
            yield session
        finally:
            self._users[session] -= 1
            if len(session.store):
                self._marked[session.mark] = (session, self._clock())
                self._marked.move_to_end(session.mark)
                free = [known for known in self._marked if not self._users[self._marked[known][0]]]
                for least_recent in free[: max(0, len(self._marked) - settings.most_sessions)]:
                    self._close(self._marked.pop(least_recent)[0])
            elif not self._users[session]:
                self._marked.pop(session.mark, None)
                self._close(session)

    def _new(self, mark: str = "") -> Session:
        session = Session(self._shared, mark)
        self._open.add(session)
        return session

    def _close(self, session: Session) -> None:
        session.close()
        self._open.discard(session)
        del self._users[session]


def key_of(ref: object) -> str:
    """Return the key of a handle, given the key or the whole handle."""
    key = ref.get("key") if isinstance(ref, Mapping) else ref
    return key if isinstance(key, str) else ""
