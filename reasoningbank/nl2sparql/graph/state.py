"""The settings of the graph, and the state that flows through it.

The state is plain data that a checkpoint can hold. Keys, clients and packs are never part of it;
of models, only the names are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import add
from typing import Annotated, Any, Literal, TypedDict

from reasoningbank.errors import UsageError
from reasoningbank.nl2sparql.constraints import MOST_CHARS
from reasoningbank.retrieval import DEFAULT_EMBEDDER, DEFAULT_INDEX

__all__ = [
    "Complexity",
    "GraphSettings",
    "NL2SPARQLState",
    "Written",
    "attempt_of",
    "best_attempt",
    "initial_state",
    "without_attempt",
]

Complexity = Literal["simple", "moderate", "complex"]


@dataclass(frozen=True)
class GraphSettings:
    """Settings of a graph; each of its own steps can be switched off.

    Attributes:
        analyze: Whether a model says what the question needs; otherwise the pack's rules do.
        plan: Whether a question that is not simple is split into steps.
        verify: Whether a model checks that the rows answer the question; validation always runs.
        explore: Whether the schema is explored after an empty result.
        specialists: Whether each pattern family has its own writer.
        human: Whether an unclear question is asked back; the graph waits for the answer.
        max_attempts: Most queries that are written.
        top_k: Examples that are retrieved.
        shown: Examples that the writer sees.
        retrieval: How they are found: ``hybrid``, ``semantic``, ``bm25``, ``pattern``, ``random``.
        embedding: The embedding model, as named for `retrieval.open_embedder`.
        index: What compares vectors, one of `retrieval.INDEXES`.
        most_chars: Most characters of the rules.
        timeout_s: Seconds a query may take.
        whole_groups: Whether the groups of hidden tasks are hidden too (leave-group-out).

    Raises:
        UsageError: If a number is out of bounds.
    """

    analyze: bool = True
    plan: bool = True
    verify: bool = True
    explore: bool = True
    specialists: bool = True
    human: bool = False
    max_attempts: int = 3
    top_k: int = 5
    shown: int = 3
    retrieval: str = "hybrid"
    embedding: str = DEFAULT_EMBEDDER
    index: str = DEFAULT_INDEX
    most_chars: int = MOST_CHARS
    timeout_s: float = 30.0
    whole_groups: bool = True

    def __post_init__(self) -> None:
        if self.max_attempts < 1 or min(self.top_k, self.shown) < 0 or self.timeout_s <= 0:
            raise UsageError(
                "max_attempts must be at least 1, top_k and shown at least 0, timeout_s above 0",
                where="GraphSettings",
            )


class NL2SPARQLState(TypedDict, total=False):
    """What is known about one question so far.

    Attributes:
        question: The question as it was asked.
        language: Its language, e.g. ``it``; empty if not given.
        provider: The models' provider; empty if the models were given.
        model: Name of the model that writes; None if it was given.
        pack: The domain pack, as `Pack.key` names it; empty in a trial.
        human: Whether somebody can be asked back.
        advice: Memory context from earlier questions; may be empty.
        detected_patterns: Patterns that it needs, the most certain first.
        pattern_scores: Confidence in each, from 0 to 1.
        complexity: From the number of parts of the query.
        requires_service: Whether a second endpoint is needed.
        requires_translation: Whether translations are asked for.
        dialects_needed: The languages or dialects of the translations.
        unclear: A question back to the user; empty if all is clear.
        clarification: The answer to it.
        sub_tasks: The steps of the plan; only the question if there is none.
        current_task_index: The last step with retrieved examples.
        retrieved_examples: ``id``, ``nl``, ``sparql``, ``score`` and such; the best first.
        used_ids: Ids of the examples that this attempt was shown.
        shown_ids: Ids of the examples that any attempt was shown.
        relevant_constraints: The pack's rules for the patterns.
        family: The pattern family whose specialist writes; empty for the general one.
        generated_sparql: The query of this attempt; empty if the reply contained none.
        generation_attempts: Attempts so far.
        repeated: Whether this attempt repeated an earlier query.
        execution_form: SELECT, ASK, CONSTRUCT or DESCRIBE; empty if it does not parse.
        execution_result: First rows (``rows``), whether there are more (``truncated``), seconds.
        result_count: Rows or triples; 1 for an answered ASK.
        execution_error: Why it was not executed; None if it was.
        problems: ``level``, ``code`` and ``text`` of everything that is wrong with it.
        is_valid: Whether neither validation nor verification found a problem.
        validation_errors: The problems as lines.
        refinement_history: Failed attempts, in order; it accumulates.
        explored: Whether the schema was explored.
        discovered_properties: Properties found in the data by exploring.
        discovered_classes: Classes found so.
        findings: Why the explored query returned nothing.
        final_sparql: The best query; empty only if there was none.
        score: The evidence for the query, from 0 to 1.
        confidence: The probability that the query is right.
        calibrated: Whether that was measured.
        explanation: How the query was made, and what is wrong with it.
    """

    question: str
    language: str
    provider: str
    model: str | None
    pack: str
    human: bool
    advice: str
    detected_patterns: list[str]
    pattern_scores: dict[str, float]
    complexity: Complexity
    requires_service: bool
    requires_translation: bool
    dialects_needed: list[str]
    unclear: str
    clarification: str
    sub_tasks: list[str]
    current_task_index: int
    retrieved_examples: list[dict[str, Any]]
    used_ids: list[str]
    shown_ids: list[str]
    relevant_constraints: str
    family: str
    generated_sparql: str
    generation_attempts: int
    repeated: bool
    execution_form: str
    execution_result: dict[str, Any] | None
    result_count: int
    execution_error: str | None
    problems: list[dict[str, str]]
    is_valid: bool
    validation_errors: list[str]
    refinement_history: Annotated[list[dict[str, Any]], add]
    explored: bool
    discovered_properties: list[str]
    discovered_classes: list[str]
    findings: list[str]
    final_sparql: str
    score: float
    confidence: float
    calibrated: bool
    explanation: str


class Written(TypedDict, total=False):
    """What a writer returns; a returned `refinement_history` would be appended to itself."""

    family: str
    relevant_constraints: str
    retrieved_examples: list[dict[str, Any]]
    used_ids: list[str]
    shown_ids: list[str]
    generated_sparql: str
    generation_attempts: int
    repeated: bool


def initial_state(question: str, language: str = "", **given: Any) -> NL2SPARQLState:
    """Return a state in which only the question, and the values given by name, are known."""
    state = NL2SPARQLState(
        question=question,
        language=language,
        provider="",
        model=None,
        pack="",
        human=False,
        advice="",
        complexity="simple",
        requires_service=False,
        requires_translation=False,
        unclear="",
        clarification="",
        current_task_index=0,
        relevant_constraints="",
        family="",
        generation_attempts=0,
        repeated=False,
        is_valid=False,
        explored=False,
        final_sparql="",
        score=0.0,
        confidence=0.0,
        calibrated=False,
        explanation="",
        detected_patterns=[],
        pattern_scores={},
        dialects_needed=[],
        sub_tasks=[],
        retrieved_examples=[],
        shown_ids=[],
        validation_errors=[],
        refinement_history=[],
        discovered_properties=[],
        discovered_classes=[],
        findings=[],
    )
    state.update(without_attempt())
    state.update(given)  # type: ignore[typeddict-item]
    return state


def without_attempt() -> NL2SPARQLState:
    """Return the part of a state that makes room for the next attempt."""
    return NL2SPARQLState(
        used_ids=[],
        generated_sparql="",
        execution_form="",
        execution_result=None,
        result_count=0,
        execution_error=None,
        problems=[],
        is_valid=False,
    )


def attempt_of(state: NL2SPARQLState, step: str) -> dict[str, Any]:
    """Return the attempt of a verified state, as the history keeps it under the step's name."""
    return {
        "sparql": state.get("generated_sparql", ""),
        "error": "; ".join(state.get("validation_errors", ())),
        "errors": list(state.get("validation_errors", ())),
        "problems": list(state.get("problems", ())),
        "result_count": state.get("result_count", 0),
        "form": state.get("execution_form", ""),
        "executed": state.get("execution_result") is not None,
        "parses": all(one["level"] != "syntax" for one in state.get("problems", ())),
        "valid": state.get("is_valid", False),
        "family": state.get("family", ""),
        "used_ids": list(state.get("used_ids", ())),
        "similarity": max((e["score"] for e in state.get("retrieved_examples", ())), default=0.0),
        "step": step,
    }


def best_attempt(attempts: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the best attempt, of equals the first; None if none has a query.

    Valid ranks above executed with rows, executed, parsed; then fewer errors decide.

    Examples:
        >>> empty = {"sparql": "A", "executed": True, "result_count": 0, "errors": ["empty"]}
        >>> broken = {"sparql": "B", "executed": False, "result_count": 0, "errors": ["syntax"]}
        >>> best_attempt([broken, empty])["sparql"], best_attempt([{"sparql": ""}])
        ('A', None)
    """

    def rank(one: Mapping[str, Any]) -> tuple[bool, bool, bool, bool, int]:
        executed = bool(one.get("executed"))
        return (
            bool(one.get("valid")),
            executed and one.get("result_count", 0) > 0,
            executed,
            bool(one.get("parses")),
            -len(one.get("errors", ())),
        )

    return max((one for one in attempts if one.get("sparql")), key=rank, default=None)
