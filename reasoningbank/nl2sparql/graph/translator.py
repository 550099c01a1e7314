"""The graph for people and programs: translate, stream, resume; its models and checkpoints."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dspy

from reasoningbank.agents.protocol import Budget, Episode, Meter
from reasoningbank.corpus import Pack, load_pack, open_endpoint
from reasoningbank.errors import SetupError, UsageError, need_package
from reasoningbank.lm import CATALOGUE, UsageCounter, open_lm, parse_name
from reasoningbank.lm.names import providers, sampling_settings, secrets_in_environment
from reasoningbank.nl2sparql.graph.build import build_graph
from reasoningbank.nl2sparql.graph.nodes import Parts
from reasoningbank.nl2sparql.graph.run import GraphRun, GraphTranslation, configured
from reasoningbank.nl2sparql.graph.state import GraphSettings, NL2SPARQLState, initial_state
from reasoningbank.nl2sparql.words import asked_language
from reasoningbank.sparql import EndpointConfig
from reasoningbank.trajectory import Recorder

#: Default and fast model of the providers with known names.
PROVIDERS = {
    "local": ("local", "local"),
    "openai": ("openai/gpt-4.1", "openai/gpt-4.1-mini"),
    "anthropic": ("anthropic/claude-sonnet-4-5", "anthropic/claude-haiku-4-5"),
}

#: Providers of only their own models, whose names never begin with another provider's.
_MAKERS = frozenset({"anthropic", "cohere", "deepseek", "gemini", "mistral", "openai", "xai"})


@dataclass(frozen=True)
class Tiers:
    """Names of the two models: the default one writes, the fast one does the other steps."""

    default: str
    fast: str


def tiers_for(provider: str = "local", model: str | None = None, fast: str | None = None) -> Tiers:
    """Return the models of a provider; a named model is used for all steps.

    A name that begins with a provider is complete (``anthropic/claude-haiku-4-5``), and so is that
    of a local model. Providers such as ``openrouter`` and ``groq`` serve models under names of
    other providers: with them, a name that does not begin with theirs is a model of theirs.

    Args:
        provider: ``local``, or LiteLLM's name of a provider.
        model: A model of it, or a complete name as for `open_lm`.
        fast: Another model for the fast tier; named likewise.

    Raises:
        UsageError: If there is no model, and no default for the provider.

    Examples:
        >>> tiers_for("openai")
        Tiers(default='openai/gpt-4.1', fast='openai/gpt-4.1-mini')
        >>> tiers_for("openai", "gpt-4.1").fast, tiers_for("local").default
        ('openai/gpt-4.1', 'local')
        >>> tiers_for("ollama_chat", "qwen3", fast="qwen3:0.6b").fast
        'ollama_chat/qwen3:0.6b'
        >>> tiers_for("openrouter", "anthropic/claude-haiku-4.5").default
        'openrouter/anthropic/claude-haiku-4.5'
    """
    if model is None and provider not in PROVIDERS:
        raise UsageError(
            f"no default model is known for {provider!r}",
            hint=f"name one with model, or choose {', '.join(PROVIDERS)}",
        )
    default, quick = PROVIDERS.get(provider, ("", ""))
    if model is not None:
        default = quick = _named(provider, model)
    return Tiers(default, _named(provider, fast) if fast is not None else quick)


def open_tiers(
    tiers: Tiers, stack: contextlib.ExitStack, api_key: str | None = None
) -> tuple[dspy.BaseLM, dspy.BaseLM]:
    """Open both models, for as long as a stack is open."""
    names = (tiers.default, tiers.fast)
    keyed = _of_the_key(names) if api_key else ()
    opened = {n: stack.enter_context(open_lm(n)) for n in dict.fromkeys(names) if n not in keyed}
    default, fast = (
        _keyed(name, api_key) if api_key and name in keyed else opened[name].lm(role=role)
        for name, role in zip(names, ("solver", "extractor"), strict=True)
    )
    return default, fast


def _named(provider: str, model: str) -> str:
    if provider == "local" or model in CATALOGUE or model.startswith(("local:", f"{provider}/")):
        return model
    first, slash, _ = model.partition("/")
    if slash and provider in _MAKERS and first in providers():
        return model
    return f"{provider}/{model}"


def _of_the_key(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the models that a key is for: the hosted ones, if one provider serves them."""
    hosted = tuple(name for name in names if not parse_name(name).is_local)
    serving = sorted({name.partition("/")[0] for name in hosted})
    if not hosted:
        raise UsageError("a local model takes no key", where=names[0], hint="leave api_key out")
    if len(serving) > 1:
        raise UsageError(
            f"one key cannot be for {' and '.join(serving)}",
            where=" and ".join(hosted),
            hint="leave api_key out and set the environment variable of each",
        )
    return hosted


def _keyed(name: str, api_key: str) -> dspy.BaseLM:
    sampling = sampling_settings(name, temperature=0.0, seed=None)
    return dspy.LM(name, api_key=api_key, cache=False, num_retries=5, **sampling)


@contextlib.contextmanager
def open_saver(file: Path) -> Iterator[Any]:
    """Open a SQLite file of checkpoints, created if it is missing, and yield LangGraph's saver."""
    from langgraph.checkpoint.sqlite import SqliteSaver

    class FileSaver(SqliteSaver):
        """Reports failures of the file in one line."""

        @contextlib.contextmanager
        def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:
            with _file_errors(file), super().cursor(transaction) as cursor:
                yield cursor

    with contextlib.ExitStack() as stack:
        with _file_errors(file):
            file.parent.mkdir(parents=True, exist_ok=True)
            saver = stack.enter_context(FileSaver.from_conn_string(str(file)))
            saver.setup()
        yield saver


@contextlib.contextmanager
def _file_errors(file: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        raise SetupError(
            f"checkpoints cannot be stored there: {error}",
            where=str(file),
            hint="name another file, or end the process that locks this one",
        ) from error


class NL2SPARQLAgent:
    """The self-correcting graph over a pack.

    Models and endpoint are opened when they are first needed, and closed with the agent, which is
    a context manager; a later use opens them again. Threads may not share an agent.

    Args:
        provider: ``local``, ``openai``, ``anthropic``, or another provider of LiteLLM.
        model: A model for all steps; the provider's default and fast ones by default.
        api_key: The key, kept in memory; the provider's environment variable by default.
        pack: The pack or its name.
        fast_model: Another model for analysis, plan and verification.
        endpoint: Where queries are executed, or the address of a running endpoint; the pack's own
            by default.
        lms: The default and the fast model, if they exist already.
        settings: Which steps are taken.
        checkpoints: A SQLite file for checkpoints, from which a killed run can be resumed.
        hidden: Ids of tasks of which no example may be shown.

    Raises:
        UsageError: If the provider or pack is unknown.
        SetupError: If LangGraph is not installed.

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
        """Close what the agent opened: the servers of model and endpoint, the checkpoints' file."""
        try:
            self._stack.close()
        finally:
            self._saver = None
            self._lms, self._endpoint = self._given

    @property
    def endpoint(self) -> EndpointConfig:
        """Where queries are executed; opened at first use."""
        if self._endpoint is None:
            self._endpoint = self._stack.enter_context(open_endpoint(self.pack, self._url))
        return self._endpoint

    def find(self, thread: str) -> None:
        """Check that a thread can be resumed, without opening model or endpoint."""
        file = self._checkpoints
        if file is not None and not file.is_file():
            hint = "name the file of the run's checkpoints"
            raise UsageError("there is no such file", where=str(file), hint=hint, code="no-file")
        if not self._has(thread):
            hint = "name a thread that has checkpoints"
            raise UsageError(f"there is no thread {thread!r}", hint=hint, code="no-thread")

    def translate(self, question: str, *, language: str = "", thread: str = "") -> GraphTranslation:
        """Translate a question.

        Args:
            question: A question in one of the pack's languages.
            language: Its language, in which examples are shown; detected by default.
            thread: A name for its checkpoints; a new one by default.

        Returns:
            The best query, valid or not; if the graph waits for an answer, its question.

        Raises:
            UsageError: If the question is empty, or the thread exists.
            EndpointError: If the endpoint fails.
            ModelError: If a model cannot be reached.
        """
        return self.begun(question, language, thread).finish()

    def stream(
        self, question: str, *, language: str = "", thread: str = ""
    ) -> Iterator[tuple[str, NL2SPARQLState]]:
        """Yield each completed node with the whole state; arguments as for `translate`."""
        yield from self.begun(question, language, thread).steps()

    def resume(self, thread: str, answer: str | None = None) -> GraphTranslation:
        """Resume a thread that was killed, or that waits for an answer."""
        return self.going_on(thread, answer).finish()

    def begun(self, question: str, language: str = "", thread: str = "") -> GraphRun:
        """Return a run that begins with a question; arguments and errors as for `translate`."""
        if not question.strip():
            raise UsageError("the question is empty")
        if self._has(thread):
            what, hint = f"the thread {thread!r} exists already", "resume it, or name another"
            raise UsageError(what, hint=hint, code="thread-exists")
        run = self._run(thread)
        language = language or asked_language(question, self.pack)
        run.start = initial_state(question.strip(), language, **self._origin)
        return run

    def going_on(self, thread: str, answer: str | None = None) -> GraphRun:
        """Return a run that resumes a thread; arguments and errors as for `resume`."""
        self.find(thread)
        run = self._run(thread)
        kept = run.kept()
        for name, value in self._origin.items():
            its = kept.values.get(name)
            if its != value:
                what = f"the thread {thread!r} was begun with the {name} {its!r}, not {value!r}"
                hint = "use the same again; --ask-back (human=True) allows questions back"
                raise UsageError(what, hint=hint, code="other-thread", name=name)
        if (answer is not None) != bool(kept.interrupts):
            asks = kept.values.get("unclear", "")
            what = f"waits for an answer: {asks}" if kept.interrupts else "waits for no answer"
            hint = "give one" if kept.interrupts else "leave it out"
            raise UsageError(f"the thread {thread!r} {what}", hint=hint, code="wrong-answer")
        if answer is not None:
            from langgraph.types import Command

            run.start = Command(resume=answer)
        return run

    async def atranslate(
        self, question: str, *, language: str = "", thread: str = ""
    ) -> GraphTranslation:
        """Translate a question asynchronously; as `translate`."""
        return await asyncio.to_thread(self.translate, question, language=language, thread=thread)

    async def aresume(self, thread: str, answer: str | None = None) -> GraphTranslation:
        """Resume a thread asynchronously; as `resume`."""
        return await asyncio.to_thread(self.resume, thread, answer)

    async def astream(
        self, question: str, *, language: str = "", thread: str = ""
    ) -> AsyncIterator[tuple[str, NL2SPARQLState]]:
        """Yield each completed node asynchronously; as `stream`."""
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
        # A thread that was killed before its first step has a checkpoint without a state.
        return kept is not None and "question" in kept.checkpoint["channel_values"]

    def _run(self, thread: str) -> GraphRun:
        saver = self._opened_saver()
        if self._lms is None:
            self._lms = open_tiers(self.tiers, self._stack, self._api_key)
        recorder = Recorder(redact=[self._api_key or "", *secrets_in_environment()])
        counter = UsageCounter(recorder)
        # Attempts limit the run, not seconds: a person may be waited for.
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
        durable = self._checkpoints is not None
        return GraphRun(graph, episode, self.settings, named, durable)

    @property
    def _origin(self) -> dict[str, Any]:
        """What a thread is begun with, and must be resumed with."""
        provider, model = self._named
        human = self.settings.human
        return {"provider": provider, "model": model, "pack": self.pack.key, "human": human}

    def _opened_saver(self) -> Any:
        if self._saver is None:
            if self._checkpoints is not None:
                self._saver = self._stack.enter_context(open_saver(self._checkpoints))
            elif self.settings.human:
                # After a question back the run must be resumable, at least in this process.
                from langgraph.checkpoint.memory import InMemorySaver

                self._saver = InMemorySaver()
        return self._saver
