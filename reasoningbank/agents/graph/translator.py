"""The graph for people and programs: translate, stream, go on after a break."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import dspy

from reasoningbank.agents.budget import Budget, Meter
from reasoningbank.agents.graph.build import build_graph
from reasoningbank.agents.graph.checkpoints import memory_saver, open_saver
from reasoningbank.agents.graph.graph_run import GraphRun
from reasoningbank.agents.graph.parts import Parts
from reasoningbank.agents.graph.running import configured
from reasoningbank.agents.graph.settings import GraphSettings
from reasoningbank.agents.graph.state import NL2SPARQLState
from reasoningbank.agents.graph.tiers import open_tiers, tiers_for
from reasoningbank.agents.graph.translation import GraphTranslation
from reasoningbank.agents.protocol import Episode
from reasoningbank.corpus import Pack, load_pack, open_endpoint
from reasoningbank.errors import UsageError, need_package
from reasoningbank.lm import UsageCounter
from reasoningbank.lm.names import secrets_in_environment
from reasoningbank.sparql import EndpointConfig
from reasoningbank.trajectory import Recorder

__all__ = ["NL2SPARQLAgent"]


class NL2SPARQLAgent:
    """The self-correcting graph over a pack.

    Models and endpoint are opened when they are first needed, and closed with the agent, which is
    a context manager; if it is used again, they are opened anew. Several threads may not share one.

    Args:
        provider: ``local``, ``openai``, ``anthropic``, or another provider of LiteLLM.
        model: A model for all steps; the provider's default and fast ones where None.
        api_key: The key; the provider's environment variable by default. It stays in memory.
        pack: The pack or its name.
        fast_model: Another model for analysis, plan and verification.
        endpoint: Where queries are executed, or the address of a running endpoint; the pack's own
            by default.
        lms: The default and the fast model, where they exist already.
        settings: Which steps are taken.
        checkpoints: A SQLite file for checkpoints; with it a killed run can be resumed.
        hidden: Ids of tasks of which no example may be shown.

    Raises:
        UsageError: Unknown provider or pack.
        SetupError: LangGraph is not installed.

    Examples:
        >>> agent = NL2SPARQLAgent(provider="openai", model="gpt-4.1", api_key="sk-...")
        >>> agent.tiers
        Tiers(default='openai/gpt-4.1', fast='openai/gpt-4.1')
    """

    def __init__(
        self,
        provider: str = "local",
        model: str | None = None,
        api_key: str | None = None,
        *,
        pack: Pack | str = "liita",
        fast_model: str | None = None,
        endpoint: EndpointConfig | str | None = None,
        lms: tuple[dspy.BaseLM, dspy.BaseLM] | None = None,
        settings: GraphSettings | None = None,
        checkpoints: Path | str | None = None,
        hidden: frozenset[str] = frozenset(),
    ) -> None:
        need_package("langgraph", "graph")
        self.tiers = tiers_for(provider, model, fast_model)
        self._named = (provider, self.tiers.default) if lms is None else ("", None)
        self.pack = load_pack(pack) if isinstance(pack, str) else pack
        self.settings = settings or GraphSettings()
        self._api_key = api_key
        self._url = endpoint if isinstance(endpoint, str) else None
        self._given = (lms, None if isinstance(endpoint, str) else endpoint)
        self._lms, self._endpoint = self._given
        self._hidden = hidden
        self._checkpoints = Path(checkpoints) if checkpoints is not None else None
        self._saver: Any = None
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> NL2SPARQLAgent:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End what the agent started: a model's server, the endpoint's, the checkpoints' file."""
        try:
            self._stack.close()
        finally:
            self._saver = None
            self._lms, self._endpoint = self._given

    @property
    def endpoint(self) -> EndpointConfig:
        """Where queries are executed; opened now if it is not yet."""
        if self._endpoint is None:
            self._endpoint = self._stack.enter_context(open_endpoint(self.pack, self._url))
        return self._endpoint

    def find(self, thread: str) -> None:
        """Make sure that a thread can be gone on with; neither model nor endpoint is opened.

        Raises:
            UsageError: There is no such thread, or no such file of checkpoints; none is made.
            SetupError: The file holds no checkpoints, or another process keeps it to itself.
        """
        file = self._checkpoints
        if file is not None and not file.is_file():
            raise UsageError(
                "there is no such file", where=str(file), hint="name that of the run's checkpoints"
            )
        if not self._has(thread):
            raise UsageError(
                f"there is no thread {thread!r}", hint="name one that checkpoints were kept of"
            )

    def translate(self, question: str, *, language: str = "", thread: str = "") -> GraphTranslation:
        """Translate a question.

        Args:
            question: A question in one of the pack's languages.
            language: Its language, in which examples are shown; the pack's first by default.
            thread: A name for its checkpoints; a new one by default.

        Returns:
            The best query, valid or not; where the graph waits for an answer, its question.

        Raises:
            UsageError: The question is empty, or the thread exists.
            EndpointError: The endpoint fails.
            ModelError: A model cannot be reached.
        """
        return self.begun(question, language, thread).finish()

    def stream(
        self, question: str, *, language: str = "", thread: str = ""
    ) -> Iterator[tuple[str, NL2SPARQLState]]:
        """Yield each node that completed, with the whole state; arguments are `translate`'s."""
        yield from self.begun(question, language, thread).steps()

    def resume(self, thread: str, answer: str | None = None) -> GraphTranslation:
        """Go on where a thread was killed, or with the answer that it waits for.

        Args:
            thread: Its name.
            answer: The answer to its question; None where it asked none.

        Raises:
            UsageError: There is no such thread, or it waits for an answer that is not given.
            EndpointError: The endpoint fails.
            ModelError: A model cannot be reached.
        """
        return self.going_on(thread, answer).finish()

    def begun(self, question: str, language: str = "", thread: str = "") -> GraphRun:
        """Return a run that begins with a question; arguments and errors are `translate`'s."""
        if not question.strip():
            raise UsageError("the question is empty")
        if self._has(thread):
            raise UsageError(
                f"there is a thread {thread!r} already", hint="resume it, or name another"
            )
        return self._run(thread).begin(question, language)

    def going_on(self, thread: str, answer: str | None = None) -> GraphRun:
        """Return a run that goes on with a thread; arguments and errors are `resume`'s."""
        self.find(thread)
        return self._run(thread).go_on(answer)

    async def atranslate(
        self, question: str, *, language: str = "", thread: str = ""
    ) -> GraphTranslation:
        """Translate a question while other tasks run; as `translate`."""
        return await asyncio.to_thread(self.translate, question, language=language, thread=thread)

    async def aresume(self, thread: str, answer: str | None = None) -> GraphTranslation:
        """Go on with a thread while other tasks run; as `resume`."""
        return await asyncio.to_thread(self.resume, thread, answer)

    async def astream(
        self, question: str, *, language: str = "", thread: str = ""
    ) -> AsyncIterator[tuple[str, NL2SPARQLState]]:
        """Yield each node that completed while other tasks run; as `stream`.

        Whoever stops listening ends the graph after the node that is under way.
        """
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[tuple[str, NL2SPARQLState] | None] = asyncio.Queue()
        stopped = threading.Event()

        def work() -> None:
            try:
                for step in self.stream(question, language=language, thread=thread):
                    loop.call_soon_threadsafe(queue.put_nowait, step)
                    if stopped.is_set():
                        break
            finally:
                loop.call_soon_threadsafe(queue.put_nowait, None)

        working = asyncio.create_task(asyncio.to_thread(work))
        try:
            while (step := await queue.get()) is not None:
                yield step
        finally:
            stopped.set()
            await working

    def _has(self, thread: str) -> bool:
        saver = self._opened_saver() if thread else None
        kept = saver.get_tuple(configured(self.settings, thread)) if saver is not None else None
        # Killed before its first step, a thread holds what LangGraph begins with, and no state.
        return kept is not None and "question" in kept.checkpoint["channel_values"]

    def _run(self, thread: str) -> GraphRun:
        saver = self._opened_saver()
        if self._lms is None:
            self._lms = open_tiers(self.tiers, self._stack, self._api_key)
        recorder = Recorder(redact=[self._api_key or "", *secrets_in_environment()])
        counter = UsageCounter(recorder)
        # A person waits: seconds end nothing, attempts do.
        budget = Budget(iterations=100, lm_calls=None, tool_calls=None, seconds=None)
        default, fast = self._lms
        episode = Episode(
            endpoint=self.endpoint,
            tools={},
            lm=default,
            extractor=fast,
            budget=budget,
            recorder=recorder,
            meter=Meter(budget, lambda: counter.usage),
            callbacks=[counter],
            pack=self.pack,
            hidden=self._hidden,
        )
        graph = build_graph(Parts.of(episode, self.settings), saver)
        named = thread or (uuid.uuid4().hex if saver is not None else "")
        provider, model = self._named
        return GraphRun(
            graph,
            episode,
            self.settings,
            named,
            durable=self._checkpoints is not None,
            provider=provider,
            model=model,
        )

    def _opened_saver(self) -> Any:
        if self._saver is None:
            if self._checkpoints is not None:
                self._saver = self._stack.enter_context(open_saver(self._checkpoints))
            elif self.settings.human:
                # Who is asked back must be able to go on, in this process at least.
                self._saver = memory_saver()
        return self._saver
