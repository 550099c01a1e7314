"""The state that flows through the graph: plain data, so that a checkpoint can hold it.

No key, client or pack is ever part of it; of models, the names.
"""

from __future__ import annotations

from operator import add
from typing import Annotated, Any, Literal, TypedDict

__all__ = ["Complexity", "NL2SPARQLState", "Written", "initial_state"]

Complexity = Literal["simple", "moderate", "complex"]


class NL2SPARQLState(TypedDict, total=False):
    """What is known of one question so far.

    Attributes:
        question: The question as it was asked.
        language: Its language, e.g. ``it``; empty where that is not told.
        provider: Whose models are asked; empty where they were given ready.
        model: Name of the model that writes; None likewise.
        pack: The domain pack, as `Pack.key` names it; empty in a trial.
        human: Whether somebody can be asked back.
        advice: What is known from earlier questions; empty where nothing is.
        detected_patterns: Patterns that it needs, the surest first.
        pattern_scores: How sure each is, from 0 to 1.
        complexity: How many parts the query has.
        requires_service: Whether a second endpoint has to be asked.
        requires_translation: Whether translations are asked for.
        dialects_needed: Into which languages or dialects.
        unclear: A question back to whoever asked; empty where all is clear.
        clarification: Their answer.
        sub_tasks: The steps of the plan; the question alone where there is none.
        current_task_index: The last step that examples were retrieved for.
        retrieved_examples: ``id``, ``nl``, ``sparql``, ``score``, ``patterns``; the best first.
        used_ids: Ids of the examples that this attempt was written from.
        shown_ids: Ids of the examples that any attempt was written from.
        relevant_constraints: The pack's rules for the patterns.
        family: The pattern family whose specialist writes; empty for the general one.
        generated_sparql: The query of this attempt; empty where the reply held none.
        generation_attempts: Attempts so far.
        repeated: Whether this attempt wrote an earlier query again.
        execution_form: SELECT, ASK, CONSTRUCT or DESCRIBE; empty where it does not parse.
        execution_result: First rows (``rows``), whether there are more (``truncated``), seconds.
        result_count: Rows or triples; 1 for an ASK that was answered.
        execution_error: Why it was not executed; None where it was.
        problems: ``level``, ``code``, ``text`` of what validation has against it.
        is_valid: Whether neither validation nor the reader of its rows has anything against it.
        validation_errors: What is wrong, in lines.
        refinement_history: Failed attempts, in order. It accumulates.
        explored: Whether the schema was looked at.
        discovered_properties: Properties that the data have, found by exploring.
        discovered_classes: Classes likewise.
        findings: What else exploring found out.
        final_sparql: The best query; empty only where there was none at all.
        score: What the confidence is made of, from 0 to 1.
        confidence: How probable it is that the query is right.
        calibrated: Whether that was measured.
        explanation: How the query came about, and why it is trusted or not.
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
    """What a specialist hands back.

    It has no `refinement_history`: a subgraph that returned it would append it to itself.
    """

    family: str
    relevant_constraints: str
    retrieved_examples: list[dict[str, Any]]
    used_ids: list[str]
    shown_ids: list[str]
    generated_sparql: str
    generation_attempts: int
    repeated: bool


def initial_state(
    question: str,
    language: str = "",
    *,
    advice: str = "",
    provider: str = "",
    model: str | None = None,
    pack: str = "",
    human: bool = False,
) -> NL2SPARQLState:
    """Return the state in which nothing is known but the question and who is asked."""
    return NL2SPARQLState(
        question=question,
        language=language,
        provider=provider,
        model=model,
        pack=pack,
        human=human,
        advice=advice,
        detected_patterns=[],
        pattern_scores={},
        complexity="simple",
        requires_service=False,
        requires_translation=False,
        dialects_needed=[],
        unclear="",
        clarification="",
        sub_tasks=[],
        current_task_index=0,
        retrieved_examples=[],
        used_ids=[],
        shown_ids=[],
        relevant_constraints="",
        family="",
        generated_sparql="",
        generation_attempts=0,
        repeated=False,
        execution_form="",
        execution_result=None,
        result_count=0,
        execution_error=None,
        problems=[],
        is_valid=False,
        validation_errors=[],
        refinement_history=[],
        explored=False,
        discovered_properties=[],
        discovered_classes=[],
        findings=[],
        final_sparql="",
        score=0.0,
        confidence=0.0,
        calibrated=False,
        explanation="",
    )
