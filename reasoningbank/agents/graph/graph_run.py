"""One run of a graph, from the question or from a checkpoint on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from reasoningbank.agents.calling import asking
from reasoningbank.agents.graph.running import WAITS, configured, steps_of
from reasoningbank.agents.graph.settings import GraphSettings
from reasoningbank.agents.graph.state import NL2SPARQLState, initial_state
from reasoningbank.agents.graph.translation import GraphTranslation
from reasoningbank.agents.protocol import Episode
from reasoningbank.agents.shown_examples import pack_of
from reasoningbank.errors import UsageError
from reasoningbank.nl2sparql import asked_language

__all__ = ["GraphRun"]


@dataclass
class GraphRun:
    """A run that is ready to go; it goes once.

    Attributes:
        graph: The compiled graph.
        episode: What its nodes use.
        settings: Which steps are taken.
        thread: The name its checkpoints are kept under; empty where none are.
        durable: Whether each checkpoint is on disk before the next node begins.
        provider: Whose models are asked; empty where they were given ready.
        model: Name of the model that writes; None likewise.
        waits: Whether it ended in a question back.
    """

    graph: Any
    episode: Episode
    settings: GraphSettings
    thread: str = ""
    durable: bool = False
    provider: str = ""
    model: str | None = None
    waits: bool = False
    _start: Any = field(default=None, repr=False)

    def begin(self, question: str, language: str = "") -> GraphRun:
        """Set the run to begin with a question, and return it."""
        pack = pack_of(self.episode, "graph")
        self._start = initial_state(
            question.strip(),
            language or asked_language(question, pack),
            provider=self.provider,
            model=self.model,
            pack=pack.key,
            human=self.settings.human,
        )
        return self

    def go_on(self, answer: str | None = None) -> GraphRun:
        """Set the run to go on from its last checkpoint, and return it.

        Raises:
            UsageError: There is none; it was begun with another pack or model; or it waits for an
                answer that is not given, or for none that is.
        """
        kept = self._kept()
        if kept is None:
            raise UsageError(
                f"there is no thread {self.thread!r}", hint="name one that checkpoints were kept of"
            )
        for name, mine in (
            ("pack", pack_of(self.episode, "graph").key),
            ("provider", self.provider),
            ("model", self.model),
        ):
            its = kept.values.get(name)
            if its != mine:
                raise UsageError(
                    f"the thread {self.thread!r} was begun with the {name} {its or '(none)'}",
                    hint=f"name the same {name} again",
                )
        if kept.values.get("human", False) != self.settings.human:
            begun, hint = ("without", "leave out") if self.settings.human else ("with", "give")
            raise UsageError(
                f"the thread {self.thread!r} was begun {begun} somebody to ask back",
                hint=f"{hint} --ask-back (human=True)",
            )
        if answer is not None and not kept.interrupts:
            raise UsageError(f"the thread {self.thread!r} waits for no answer", hint="leave it out")
        if kept.interrupts:
            if answer is None:
                asks = kept.values.get("unclear", "")
                raise UsageError(f"the thread waits for an answer: {asks}", hint="give one")
            from langgraph.types import Command

            self._start = Command(resume=answer)
        return self

    def steps(self) -> Iterator[tuple[str, NL2SPARQLState]]:
        """Yield each node that completes, with the whole state.

        Raises:
            EndpointError: The endpoint fails.
            ModelError: A model cannot be reached.
        """
        config = configured(self.settings, self.thread)
        steps = steps_of(self.graph, self._start, config, durable=self.durable)
        while (step := self._next(steps)) is not None:
            name, state = step
            # A node called so that completes is told of too; only a wait has no answer yet.
            self.waits = name == WAITS and bool(state["unclear"]) and not state["clarification"]
            yield step

    def _next(
        self, steps: Iterator[tuple[str, NL2SPARQLState]]
    ) -> tuple[str, NL2SPARQLState] | None:
        # Only while a node is under way: whoever is given its state has a model of their own.
        with asking(self.episode):
            return next(steps, None)

    def finish(
        self, on_step: Callable[[str, NL2SPARQLState], None] | None = None
    ) -> GraphTranslation:
        """Go to the end, or to a question back, and return what came of it.

        Args:
            on_step: Told of each node that completes.

        Raises:
            EndpointError: The endpoint fails.
            ModelError: A model cannot be reached.
        """
        state: NL2SPARQLState | None = None
        for name, reached in self.steps():
            state = reached
            if on_step is not None:
                on_step(name, reached)
        if state is None:
            # The thread was at its end: nothing was left to do.
            state = self._kept().values
        return GraphTranslation.of(
            state,
            thread=self.thread,
            waits=self.waits,
            usage=self.episode.meter.usage(),
            trajectory=self.episode.recorder.trajectory(),
        )

    def _kept(self) -> Any:
        """Return what the checkpoints hold of the thread; None where there is nothing."""
        if self.graph.checkpointer is None:
            return None
        found = self.graph.get_state(configured(self.settings, self.thread))
        return found if found.values else None
