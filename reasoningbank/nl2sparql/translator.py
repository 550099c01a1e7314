"""The graph at work: one run, the agent of trials, and the agent for people with its models."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import uuid
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import dspy

from reasoningbank.agents.calling import asking
from reasoningbank.agents.protocol import Attempt, Budget, Episode, Meter, conclude
from reasoningbank.corpus import Pack, Task, open_endpoint
from reasoningbank.errors import BudgetError, SetupError, UsageError, need_package
from reasoningbank.findings import Finding
from reasoningbank.lm import CATALOGUE, UsageCounter, open_lm, parse_name
from reasoningbank.lm.names import providers, sampling_settings, secrets_in_environment
from reasoningbank.nl2sparql.graph import build_graph
from reasoningbank.nl2sparql.hints import as_pack
from reasoningbank.nl2sparql.nodes import (
    GraphSettings,
    NL2SPARQLState,
    Nodes,
    best_attempt,
    initial_state,
)
from reasoningbank.nl2sparql.words import asked_language
from reasoningbank.sparql import EndpointConfig
from reasoningbank.trajectory import Recorder, Trajectory, Usage

#: Default and fast model of the providers with known names.
PROVIDERS = {
    "local": ("local", "local"),
    "openai": ("openai/gpt-4.1", "openai/gpt-4.1-mini"),
    "anthropic": ("anthropic/claude-sonnet-4-5", "anthropic/claude-haiku-4-5"),
}
#: Providers of only their own models. Others, such as ``openrouter``, serve models under names of
#: other providers: with them, a name that does not begin with theirs is a model of theirs.
_MAKERS = frozenset({"anthropic", "cohere", "deepseek", "gemini", "mistral", "openai", "xai"})
_INTERRUPT = "__interrupt__"


@dataclass(frozen=True)
class GraphTranslation:
    """The query for a question, and how it was made."""

    question: str
    sparql: str | None  #: The best query; None if none was written, or if the graph waits
    is_valid: bool = False
    errors: tuple[str, ...] = ()
    #: The probability that it is right, from 0 to 1; None if it was not measured
    confidence: float | None = None
    score: float = 0.0  #: The evidence for it, from 0 to 1, as `fit_calibration` takes it
    calibrated: bool = False  #: Whether the confidence was measured on judged trials
    explanation: str = ""
    attempts: int = 0  #: Queries that were written
    result_count: int = 0  #: Rows or triples of its result; 1 for an ASK
    patterns: tuple[str, ...] = ()
    refinement_history: tuple[dict[str, Any], ...] = ()  #: The attempts that failed
    thread: str = ""  #: The name of its checkpoints; empty if there are none
    asks: str = ""  #: The question back if the graph waits for an answer; `resume` gives it
    usage: Usage = field(default_factory=Usage)
    #: Everything that was done in this process
    trajectory: Trajectory = field(default_factory=Trajectory, repr=False)


@dataclass
class GraphRun:
    """A run that is ready to start; it runs once."""

    graph: Any
    episode: Episode
    settings: GraphSettings
    start: Any = None
    thread: str = ""
    waits: bool = False

    @property
    def config(self) -> dict[str, Any]:
        """LangGraph's configuration, which holds no secret."""
        # Five nodes an attempt, and those before and after.
        limit = {"recursion_limit": 10 + 6 * self.settings.max_attempts}
        return limit | ({"configurable": {"thread_id": self.thread}} if self.thread else {})

    def steps(self) -> Iterator[tuple[str, NL2SPARQLState]]:
        """Yield each completed node with the whole state, accumulated parts included."""
        how = {"stream_mode": ["updates", "values"], "durability": "sync" if self.thread else None}
        events = self.graph.stream(self.start, self.config, **how)
        names: list[str] = []
        state: Any = {}
        while True:
            # Only while a node runs: the caller may use another model between steps.
            with asking(self.episode):
                mode, value = next(events, ("", {}))
            if mode == "values":
                state = {key: one for key, one in value.items() if key != _INTERRUPT}
                for name in names:
                    self.waits = False
                    yield name, state
                names = []
            elif _INTERRUPT in value:
                self.waits = True
                yield "clarify", state
            elif not mode:
                return
            else:
                names += value

    def finish(
        self, on_step: Callable[[str, NL2SPARQLState], None] | None = None
    ) -> GraphTranslation:
        """Run to the end, or to a question back, and return the result."""
        state: NL2SPARQLState | None = None
        for name, state in self.steps():
            if on_step is not None:
                on_step(name, state)
        if state is None:
            # The thread had already ended.
            state = self.graph.get_state(self.config).values
        same = ("question", "is_valid", "score", "calibrated", "explanation", "result_count")
        return GraphTranslation(
            **{name: state[name] for name in same},  # type: ignore[literal-required]
            sparql=state["final_sparql"] or None,
            confidence=state["confidence"] if state["calibrated"] else None,
            errors=tuple(state["validation_errors"]),
            attempts=state["generation_attempts"],
            patterns=tuple(state["detected_patterns"]),
            refinement_history=tuple(state["refinement_history"]),
            thread=self.thread,
            asks=state["unclear"] if self.waits else "",
            usage=self.episode.meter.usage(),
            trajectory=self.episode.recorder.trajectory(),
        )


@dataclass(eq=False)
class GraphAgent(GraphSettings):
    """The self-correcting graph: analyse, plan, retrieve, write, execute, verify, and repeat.

    A turn is a model call, whichever step makes it. No question can be asked back.
    """

    uses_lm = True
    sees_gold = False
    uses = ("context",)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.needs_examples = min(self.top_k, self.shown) > 0
        if self.human:
            hint = "use NL2SPARQLAgent, or leave human out"
            raise UsageError("a trial has nobody to ask back", where="agent graph", hint=hint)

    def solve(self, task: Task, episode: Episode) -> Attempt:
        """Answer with the first valid query, or the best one of all attempts."""
        settings = replace(
            self,
            max_attempts=min(self.max_attempts, episode.budget.iterations),
            timeout_s=min(self.timeout_s, episode.endpoint.timeout_s),
        )
        graph = build_graph(Nodes(episode, settings))
        state = initial_state(task.query, task.language, advice=episode.context)
        try:
            for _, reached in GraphRun(graph, episode, settings, state).steps():
                state = reached
        except BudgetError as error:
            best, _ = best_attempt(state)
            return conclude(episode, best["sparql"] or None, "exhausted", [error])
        sparql = state["final_sparql"] or None
        if state["is_valid"]:
            return conclude(episode, sparql, "submitted")
        findings = [Finding(one["code"], one["text"]) for one in state["problems"]]
        return conclude(episode, sparql, "fallback", findings)


class Tiers(NamedTuple):
    """Names of the two models: the default one writes, the fast one does the other steps."""

    default: str
    fast: str


def tiers_for(provider: str = "local", model: str | None = None, fast: str | None = None) -> Tiers:
    """Return the models of a provider; a named model is used for all steps."""
    if model is None and provider not in PROVIDERS:
        hint = f"name one with model, or choose {', '.join(PROVIDERS)}"
        raise UsageError(f"no default model is known for {provider!r}", hint=hint)
    default, quick = PROVIDERS.get(provider, ("", ""))
    if model is not None:
        default = quick = _named(provider, model)
    return Tiers(default, _named(provider, fast) if fast is not None else quick)


def _named(provider: str, model: str) -> str:
    """Return a model's full name, which begins with its provider unless it is a local one."""
    if provider == "local" or model in CATALOGUE or model.startswith(("local:", f"{provider}/")):
        return model
    first, slash, _ = model.partition("/")
    complete = slash and provider in _MAKERS and first in providers()
    return model if complete else f"{provider}/{model}"


def open_tiers(
    tiers: Tiers, stack: contextlib.ExitStack, api_key: str | None = None
) -> tuple[dspy.BaseLM, dspy.BaseLM]:
    """Open both models, for as long as a stack is open; a key is for the hosted ones."""
    keyed = {name for name in tiers if api_key and not parse_name(name).is_local}
    serving = sorted({name.partition("/")[0] for name in keyed})
    if api_key and not keyed:
        raise UsageError(
            "a local model takes no key", where=tiers.default, hint="leave api_key out"
        )
    if len(serving) > 1:
        raise UsageError(
            f"one key cannot be for {' and '.join(serving)}",
            where=" and ".join(name for name in tiers if name in keyed),
            hint="leave api_key out and set the environment variable of each",
        )
    opened = {n: stack.enter_context(open_lm(n)) for n in dict.fromkeys(tiers) if n not in keyed}

    def tier(name: str, role: str) -> dspy.BaseLM:
        if name in opened:
            return opened[name].lm(role=role)
        sampling = sampling_settings(name, temperature=0.0, seed=None)
        return dspy.LM(name, api_key=api_key, cache=False, num_retries=5, **sampling)

    return tier(tiers.default, "solver"), tier(tiers.fast, "extractor")


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


class NL2SPARQLAgent(contextlib.AbstractContextManager["NL2SPARQLAgent"]):
    """The self-correcting graph over a pack.

    Models and endpoint are opened when they are first needed, and closed with the agent, which is
    a context manager; a later use opens them again. Threads may not share an agent.

    Args:
        provider: ``local``, ``openai``, ``anthropic``, or another provider of LiteLLM.
        model: A model for all steps; the provider's default and fast ones by default.
        api_key: The key, kept in memory; the provider's environment variable by default.
        fast_model: Another model for analysis, plan and verification.
        endpoint: Where queries are executed, or the address of a running endpoint; the pack's own
            by default.
        lms: The default and the fast model, if they exist already.
        checkpoints: A SQLite file for checkpoints, from which a killed run can be resumed.
        hidden: Ids of tasks of which no example may be shown.
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
        self.pack = as_pack(pack)
        self.settings = settings or GraphSettings()
        self._api_key, self._given, self._hidden = api_key, (endpoint, lms), hidden
        self._checkpoints = Path(checkpoints) if checkpoints is not None else None
        self._stack = contextlib.ExitStack()
        #: What a thread is begun with, and must be resumed with.
        self._origin = {
            "provider": provider if lms is None else "",
            "model": self.tiers.default if lms is None else None,
            "pack": self.pack.key,
            "human": self.settings.human,
        }

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close what the agent opened: the servers of model and endpoint, the checkpoints' file."""
        try:
            self._stack.close()
        finally:
            for name in ("endpoint", "_models", "_saver"):
                vars(self).pop(name, None)

    @cached_property
    def endpoint(self) -> EndpointConfig:
        """Where queries are executed; opened at first use."""
        given = self._given[0]
        if isinstance(given, EndpointConfig):
            return given
        return self._stack.enter_context(open_endpoint(self.pack, given))

    @cached_property
    def _models(self) -> tuple[dspy.BaseLM, dspy.BaseLM]:
        return self._given[1] or open_tiers(self.tiers, self._stack, self._api_key)

    @cached_property
    def _saver(self) -> Any:
        if self._checkpoints is not None:
            return self._stack.enter_context(open_saver(self._checkpoints))
        if not self.settings.human:
            return None
        # After a question back the run must be resumable, at least in this process.
        from langgraph.checkpoint.memory import InMemorySaver

        return InMemorySaver()

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
        """Translate a question, in one of the pack's languages.

        Args:
            question: The question.
            language: Its language, in which examples are shown; detected by default.
            thread: A name for its checkpoints; a new one by default.

        Returns:
            The best query, valid or not; if the graph waits for an answer, its question.
        """
        return self.begun(question, language, thread).finish()

    def stream(
        self, question: str, *, language: str = "", thread: str = ""
    ) -> Generator[tuple[str, NL2SPARQLState]]:
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
        language = language or asked_language(question, self.pack)
        return self._run(thread, initial_state(question.strip(), language, **self._origin))

    def going_on(self, thread: str, answer: str | None = None) -> GraphRun:
        """Return a run that resumes a thread; arguments and errors as for `resume`."""
        self.find(thread)
        run = self._run(thread)
        kept = run.graph.get_state(run.config)
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
        run = asyncio.get_running_loop().run_in_executor
        steps = self.stream(question, language=language, thread=thread)
        with ThreadPoolExecutor(1) as worker:
            try:
                while (step := await run(worker, next, steps, None)) is not None:
                    yield step
            finally:
                # After the step that runs, if the caller leaves in the middle of one.
                await run(worker, steps.close)

    def _has(self, thread: str) -> bool:
        saver = self._saver if thread else None
        kept = saver and saver.get_tuple({"configurable": {"thread_id": thread}})
        # A thread that was killed before its first step has a checkpoint without a state.
        return kept is not None and "question" in kept.checkpoint["channel_values"]

    def _run(self, thread: str, start: NL2SPARQLState | None = None) -> GraphRun:
        saver, (default, fast) = self._saver, self._models
        recorder = Recorder(redact=[self._api_key or "", *secrets_in_environment()])
        counter = UsageCounter(recorder)
        # Attempts limit the run, not seconds: a person may be waited for.
        budget = Budget(iterations=100, lm_calls=None, tool_calls=None, seconds=None)
        episode = Episode(
            endpoint=self.endpoint,
            tools={},
            lm=default,
            extractor=fast,
            recorder=recorder,
            meter=Meter(budget, lambda: counter.usage),
            callbacks=[counter],
            pack=self.pack,
            hidden=self._hidden,
        )
        graph = build_graph(Nodes(episode, self.settings), saver)
        if saver is not None:
            thread = thread or uuid.uuid4().hex
        return GraphRun(graph, episode, self.settings, start, thread)
