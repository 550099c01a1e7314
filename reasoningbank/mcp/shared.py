"""What all sessions of a server share: the endpoint, what is known of it, memory, the model."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reasoningbank.corpus import Task, load_shacl_tasks, open_endpoint, split_tasks
from reasoningbank.errors import SetupError
from reasoningbank.mcp.settings import Settings
from reasoningbank.schema import EndpointProfile, Schema
from reasoningbank.sparql import EndpointConfig, SPARQLClient

if TYPE_CHECKING:
    from reasoningbank.mcp.asking import Asker
    from reasoningbank.mcp.cards import Cards
    from reasoningbank.memory import MemoryBank

__all__ = ["Opened", "Shared"]


@dataclass(frozen=True)
class Opened:
    """An endpoint that can be asked.

    Attributes:
        endpoint: How it is asked.
        client: The connection to it.
        vocabulary: What names it knows.
        survey: How it can be explored.
    """

    endpoint: EndpointConfig
    client: SPARQLClient
    vocabulary: Schema
    survey: EndpointProfile


class Shared:
    """Holds what is costly once for all sessions; threads may share it.

    A client waits for the answer to its first message, so the endpoint is opened meanwhile, in the
    background; whoever needs it first waits. What else is costly is made when it is first needed.

    Args:
        settings: What is served and allowed.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._stack = contextlib.ExitStack()
        self._lock = threading.RLock()
        self._asker_lock = threading.Lock()
        self._opener = ThreadPoolExecutor(1, thread_name_prefix="opening")
        self._opened: Future[Opened] | None = None
        self._closed = False
        self._evaluation: tuple[Task, ...] | None = None
        self._bank: MemoryBank | None = None
        self._cards: Cards | None = None
        self._asker: Asker | None = None

    def __enter__(self) -> Shared:
        self._opened = self._opener.submit(self._open)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End what was opened; calling it again is harmless."""
        self._opener.shutdown(wait=True)
        with self._lock:
            self._closed = True
            self._stack.close()

    @property
    def opened(self) -> Opened:
        """The endpoint; waits until it is open.

        Raises:
            ReasoningBankError: It could not be opened.
        """
        if self._opened is None or self._closed:
            raise SetupError("the server is not running")
        return self._opened.result()

    def evaluation(self) -> tuple[Task, ...]:
        """Return the tasks of the pack's evaluation split, which nothing that is served may show.

        Raises:
            UsageError: The pack's examples cannot be read.
        """
        with self._lock:
            if self._evaluation is None:
                pack = self.settings.pack
                tasks = load_shacl_tasks(pack) if pack.examples.is_dir() else []
                self._evaluation = tuple(split_tasks(tasks).test) if tasks else ()
            return self._evaluation

    def bank(self) -> MemoryBank:
        """Return the memory bank.

        Raises:
            RecordError: It is damaged.
            SetupError: The server has none.
        """
        with self._lock:
            if self._bank is None:
                if self.settings.bank is None:
                    raise SetupError("the server has no memory bank", hint="start it with --bank")
                # Memory needs what agents need, which is slow to load.
                from reasoningbank.memory import MemoryBank

                bank = MemoryBank(self.settings.bank, readonly=True)
                self._bank = self._stack.enter_context(bank)
            return self._bank

    def cards(self) -> Cards:
        """Return what tells of the endpoint in a few lines.

        Raises:
            ReasoningBankError: The endpoint could not be opened, or does not answer.
        """
        opened = self.opened
        with self._lock:
            if self._cards is None:
                from reasoningbank.mcp.cards import Cards

                hidden = frozenset(task.id for task in self.evaluation())
                self._cards = Cards(self.settings.pack, opened, hidden)
            return self._cards

    def asker(self) -> Asker:
        """Return what answers questions with the model.

        Raises:
            SetupError: The server has no model, it cannot be opened, or the server ended meanwhile.
        """
        opened = self.opened
        # A lock of its own: a model takes long to load, and everybody else goes on.
        with self._asker_lock:
            if self._asker is None:
                if self.settings.lm is None:
                    raise SetupError("the server has no model", hint="start it with --lm")
                from reasoningbank.mcp.asking import Asker

                hidden = frozenset(task.id for task in self.evaluation())
                made = Asker(self.settings, opened, hidden)
                with self._lock:
                    if self._closed:
                        made.close()
                        raise SetupError("the server is not running")
                    self._asker = self._stack.enter_context(contextlib.closing(made))
            return self._asker

    def _open(self) -> Opened:
        pack = self.settings.pack
        endpoint = self._stack.enter_context(open_endpoint(pack, self.settings.url))
        declared = Schema.of_files(pack.schema) if pack.schema else None
        return Opened(
            endpoint=endpoint,
            client=self._stack.enter_context(SPARQLClient(endpoint)),
            vocabulary=Schema.of(endpoint, pack.schema),
            survey=self._stack.enter_context(
                contextlib.closing(EndpointProfile(endpoint, declared=declared))
            ),
        )
