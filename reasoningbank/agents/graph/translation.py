"""What the graph made of a question, for whoever asked it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from reasoningbank.agents.graph.state import NL2SPARQLState
from reasoningbank.trajectory import Trajectory, Usage

__all__ = ["GraphTranslation"]


@dataclass(frozen=True)
class GraphTranslation:
    """A question's query.

    Attributes:
        question: The question.
        sparql: The best query; None where none was written, or where the graph waits.
        is_valid: Whether nothing was found against it.
        errors: What was.
        confidence: How probable it is that it is right, from 0 to 1.
        score: What that is made of, from 0 to 1; `fit_calibration` takes it.
        calibrated: Whether the confidence was measured on judged trials; else it only orders.
        explanation: How it came about.
        attempts: Queries that were written.
        result_count: Rows or triples that it gave; 1 for an ASK.
        patterns: What the question needs.
        refinement_history: The attempts that failed.
        thread: The name its checkpoints are kept under; empty where none are.
        asks: The question back, where the graph waits for an answer; `resume` gives it.
        usage: What it cost.
        trajectory: All that was done, in this process.
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

    @classmethod
    def of(
        cls,
        state: NL2SPARQLState,
        *,
        thread: str = "",
        waits: bool = False,
        usage: Usage | None = None,
        trajectory: Trajectory | None = None,
    ) -> GraphTranslation:
        """Read a state.

        Args:
            state: The last one.
            thread: The name of its checkpoints.
            waits: Whether the graph waits for an answer.
            usage: What it cost.
            trajectory: What was done.
        """
        return cls(
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
            thread=thread,
            asks=state["unclear"] if waits else "",
            usage=usage or Usage(),
            trajectory=trajectory or Trajectory(),
        )
