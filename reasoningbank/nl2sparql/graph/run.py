"""Running a graph: its steps, one run with checkpoints, and the graph as an agent of trials."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from reasoningbank.agents.calling import asking
from reasoningbank.agents.protocol import Attempt, Episode, conclude
from reasoningbank.corpus import Task
from reasoningbank.errors import BudgetError, UsageError
from reasoningbank.findings import Finding
from reasoningbank.nl2sparql.graph.build import build_graph
from reasoningbank.nl2sparql.graph.nodes import Parts
from reasoningbank.nl2sparql.graph.state import (
    GraphSettings,
    NL2SPARQLState,
    attempt_of,
    best_attempt,
    initial_state,
)
from reasoningbank.trajectory import Trajectory, Usage

#: The node that waits for an answer.
WAITS = "clarify"
_INTERRUPT = "__interrupt__"


def configured(settings: GraphSettings, thread: str = "") -> dict[str, Any]:
    """Return LangGraph's configuration of a run, which holds no secret."""
    # Five nodes an attempt, and those before and after.
    config: dict[str, Any] = {"recursion_limit": 10 + 6 * settings.max_attempts}
    if thread:
        config["configurable"] = {"thread_id": thread}
    return config


def steps_of(
    graph: Any, start: Any, config: dict[str, Any], *, durable: bool = False
) -> Iterator[tuple[str, NL2SPARQLState]]:
    """Yield each completed node with the whole state, accumulated parts included."""
    options: dict[str, Any] = {"durability": "sync"} if durable else {}
    names: list[str] = []
    state: NL2SPARQLState = {}
    for mode, value in graph.stream(start, config, stream_mode=["updates", "values"], **options):
        if mode == "values":
            state = {key: one for key, one in value.items() if key != _INTERRUPT}  # type: ignore[assignment]
            yield from ((name, state) for name in names)
            names = []
        elif _INTERRUPT in value:
            yield WAITS, state
        else:
            names += value


class GraphAgent:
    """The self-correcting graph: analyse, plan, retrieve, write, execute, verify, and repeat.

    A turn is a model call, whichever step makes it. No question can be asked back.

    Args:
        settings: The settings.
        **switches: Or single ones, as for `GraphSettings`.

    Raises:
        UsageError: If the settings want a human.
    """

    name = "graph"
    uses_lm = True
    sees_gold = False

    def __init__(self, settings: GraphSettings | None = None, **switches: Any) -> None:
        self._settings = settings or GraphSettings(**switches)
        if self._settings.human:
            raise UsageError(
                "a trial has nobody to ask back",
                where="agent graph",
                hint="use NL2SPARQLAgent, or leave human out",
            )

    def solve(self, task: Task, episode: Episode) -> Attempt:
        """Answer with the first valid query, or the best one of all attempts."""
        settings = replace(
            self._settings,
            max_attempts=min(self._settings.max_attempts, episode.budget.iterations),
            timeout_s=min(self._settings.timeout_s, episode.endpoint.timeout_s),
        )
        graph = build_graph(Parts.of(episode, settings))
        state = initial_state(task.query, task.language, advice=episode.context)
        try:
            with asking(episode):
                for _, reached in steps_of(graph, state, configured(settings)):
                    state = reached
        except BudgetError as error:
            best = best_attempt([*state["refinement_history"], attempt_of(state, "output")])
            return conclude(episode, best["sparql"] if best else None, "exhausted", [error])
        sparql = state["final_sparql"] or None
        if state["is_valid"]:
            return conclude(episode, sparql, "submitted")
        findings = [Finding(one["code"], one["text"]) for one in state["problems"]]
        return conclude(episode, sparql, "fallback", findings)


@dataclass(frozen=True)
class GraphTranslation:
    """The query for a question.

    Attributes:
        question: The question.
        sparql: The best query; None if none was written, or if the graph waits.
        is_valid: Whether no problem was found.
        errors: The problems.
        confidence: The probability that it is right, from 0 to 1.
        score: The evidence for it, from 0 to 1, as `fit_calibration` takes it.
        calibrated: Whether the confidence was measured on judged trials; otherwise it only ranks.
        explanation: How the query was made.
        attempts: Queries that were written.
        result_count: Rows or triples of its result; 1 for an ASK.
        patterns: What the question needs.
        refinement_history: The attempts that failed.
        thread: The name of its checkpoints; empty if there are none.
        asks: The question back if the graph waits for an answer; `resume` gives it.
        usage: What it cost.
        trajectory: Everything that was done in this process.
    """

    question: str
    sparql: str | None
    is_valid: bool = False
    errors: tuple[str, ...] = ()
    confidence: float = 0.0
    score: float = 0.0
    calibrated: bool = False
    explanation: str = ""
    attempts: int = 0
    result_count: int = 0
    patterns: tuple[str, ...] = ()
    refinement_history: tuple[dict[str, Any], ...] = ()
    thread: str = ""
    asks: str = ""
    usage: Usage = field(default_factory=Usage)
    trajectory: Trajectory = field(default_factory=Trajectory, repr=False)


@dataclass
class GraphRun:
    """A run that is ready to start; it runs once."""

    graph: Any
    episode: Episode
    settings: GraphSettings
    thread: str = ""
    durable: bool = False
    start: Any = None
    waits: bool = False

    def steps(self) -> Iterator[tuple[str, NL2SPARQLState]]:
        """Yield each completed node with the whole state."""
        config = configured(self.settings, self.thread)
        steps = steps_of(self.graph, self.start, config, durable=self.durable)
        while True:
            # Only while a node runs: the caller may use another model between steps.
            with asking(self.episode):
                step = next(steps, None)
            if step is None:
                return
            name, state = step
            # A node of that name completes, too; only a wait has no answer yet.
            self.waits = name == WAITS and bool(state["unclear"]) and not state["clarification"]
            yield step

    def finish(
        self, on_step: Callable[[str, NL2SPARQLState], None] | None = None
    ) -> GraphTranslation:
        """Run to the end, or to a question back, and return the result."""
        state: NL2SPARQLState | None = None
        for name, reached in self.steps():
            state = reached
            if on_step is not None:
                on_step(name, reached)
        if state is None:
            # The thread had already ended.
            state = self.kept().values
        return GraphTranslation(
            question=state["question"],
            sparql=state["final_sparql"] or None,
            is_valid=state["is_valid"],
            errors=tuple(state["validation_errors"]),
            confidence=state["confidence"],
            score=state["score"],
            calibrated=state["calibrated"],
            explanation=state["explanation"],
            attempts=state["generation_attempts"],
            result_count=state["result_count"],
            patterns=tuple(state["detected_patterns"]),
            refinement_history=tuple(state["refinement_history"]),
            thread=self.thread,
            asks=state["unclear"] if self.waits else "",
            usage=self.episode.meter.usage(),
            trajectory=self.episode.recorder.trajectory(),
        )

    def kept(self) -> Any:
        """Return the last checkpoint of the thread."""
        return self.graph.get_state(configured(self.settings, self.thread))
