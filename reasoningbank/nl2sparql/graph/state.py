"""The settings of the graph, and the state that flows through it.

The state is plain data that a checkpoint can hold. Keys, clients and packs are never part of it;
of models, only the names are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import add
from typing import Annotated, Any, Literal, TypedDict, cast, get_args, get_origin, get_type_hints

from reasoningbank.errors import UsageError
from reasoningbank.nl2sparql.hints import MOST_CHARS
from reasoningbank.retrieval import DEFAULT_EMBEDDER, DEFAULT_INDEX

Complexity = Literal["simple", "moderate", "complex"]


@dataclass(frozen=True)
class GraphSettings:
    """Settings of a graph; each of its own steps can be switched off."""

    #: Whether a model says what the question needs; otherwise the pack's rules do
    analyze: bool = True
    plan: bool = True  #: Whether a question that is not simple is split into steps
    #: Whether a model checks that the rows answer the question; validation always runs
    verify: bool = True
    explore: bool = True  #: Whether the schema is explored after an empty result
    specialists: bool = True  #: Whether each pattern family has its own writer
    #: Whether an unclear question is asked back; the graph waits for the answer
    human: bool = False
    max_attempts: int = 3  #: Most queries that are written
    top_k: int = 5  #: Examples that are retrieved
    shown: int = 3  #: Examples that the writer sees
    #: How they are found: ``hybrid``, ``semantic``, ``bm25``, ``pattern``, ``random``
    retrieval: str = "hybrid"
    #: The embedding model, as named for `retrieval.open_embedder`
    embedding: str = DEFAULT_EMBEDDER
    index: str = DEFAULT_INDEX  #: What compares vectors, one of `retrieval.INDEXES`
    most_chars: int = MOST_CHARS  #: Most characters of the rules
    timeout_s: float = 30.0  #: Seconds a query may take
    #: Whether the groups of hidden tasks are hidden too (leave-group-out)
    whole_groups: bool = True

    def __post_init__(self) -> None:
        if self.max_attempts < 1 or min(self.top_k, self.shown) < 0 or self.timeout_s <= 0:
            raise UsageError(
                "max_attempts must be at least 1, top_k and shown at least 0, timeout_s above 0",
                where="GraphSettings",
            )


class NL2SPARQLState(TypedDict, total=False):
    """What is known about one question so far."""

    # Input: provider and model are empty if the models were given, pack is empty in a trial; human
    # says whether questions can be asked back, advice is the memory context.
    question: str
    language: str
    provider: str
    model: str | None
    pack: str
    human: bool
    advice: str
    # Analysis: the patterns with the most certain first, a question back if it is unclear, and the
    # answer to that.
    detected_patterns: list[str]
    pattern_scores: dict[str, float]
    complexity: Complexity
    requires_service: bool
    requires_translation: bool
    dialects_needed: list[str]
    unclear: str
    clarification: str
    # Plan: the steps, or only the question; the last step with retrieved examples.
    sub_tasks: list[str]
    current_task_index: int
    # Retrieval: the examples, best first; the ids that this attempt, and that any, was shown.
    retrieved_examples: list[dict[str, Any]]
    used_ids: list[str]
    shown_ids: list[str]
    relevant_constraints: str
    # Generation: the family whose writer is used, empty for the general one; the query, empty if
    # the reply contained none; whether it repeats an earlier one.
    family: str
    generated_sparql: str
    generation_attempts: int
    repeated: bool
    # Execution: the form, empty if the query does not parse; `rows`, `truncated` and `seconds` of
    # the result; rows or triples, 1 for an answered ASK; why it was not executed.
    execution_form: str
    execution_result: dict[str, Any] | None
    result_count: int
    execution_error: str | None
    # Verification: `level`, `code` and `text` of each problem, and the texts alone.
    problems: list[dict[str, str]]
    is_valid: bool
    validation_errors: list[str]
    # Refinement: the failed attempts, which accumulate.
    refinement_history: Annotated[list[dict[str, Any]], add]
    # Exploration: names that the data contain, and why the explored query returned nothing.
    explored: bool
    discovered_properties: list[str]
    discovered_classes: list[str]
    findings: list[str]
    # Output: the best query, the evidence for it, and the probability that it is right.
    final_sparql: str
    score: float
    confidence: float
    calibrated: bool
    explanation: str


class WriterOutput(TypedDict, total=False):
    """What a writer returns; a returned `refinement_history` would be appended to itself."""

    family: str
    relevant_constraints: str
    retrieved_examples: list[dict[str, Any]]
    used_ids: list[str]
    shown_ids: list[str]
    generated_sparql: str
    generation_attempts: int
    repeated: bool


#: What is reset before the next attempt.
_ATTEMPT = (
    "used_ids", "generated_sparql", "execution_form", "execution_result", "result_count",
    "execution_error", "problems", "is_valid",
)  # fmt: skip


def _emptied(names: Iterable[str]) -> dict[str, Any]:
    """Return fields with their empty values: None, an empty container or text, 0 or False."""
    kinds = get_type_hints(NL2SPARQLState)

    def empty(kind: Any) -> Any:
        if kind == Complexity:
            return "simple"
        return None if type(None) in get_args(kind) else (get_origin(kind) or kind)()

    return {name: empty(kinds[name]) for name in names}


def initial_state(question: str, language: str = "", **given: Any) -> NL2SPARQLState:
    """Return a state in which only the question, and the values given by name, are known."""
    state = _emptied(NL2SPARQLState.__annotations__)
    return cast(NL2SPARQLState, state | {"question": question, "language": language} | given)


def next_attempt(state: NL2SPARQLState, step: str) -> dict[str, Any]:
    """Return the changes that record a failed attempt and make room for the next."""
    return {"refinement_history": [attempt_of(state, step)], **_emptied(_ATTEMPT)}


def attempt_of(state: NL2SPARQLState, step: str) -> dict[str, Any]:
    """Return the attempt of a verified state, as the history keeps it under the step's name."""
    return {
        "sparql": state["generated_sparql"],
        "error": "; ".join(state["validation_errors"]),
        "errors": state["validation_errors"],
        "problems": state["problems"],
        "result_count": state["result_count"],
        "form": state["execution_form"],
        "executed": state["execution_result"] is not None,
        "parses": all(one["level"] != "syntax" for one in state["problems"]),
        "valid": state["is_valid"],
        "family": state["family"],
        "used_ids": state["used_ids"],
        "similarity": max((one["score"] for one in state["retrieved_examples"]), default=0.0),
        "step": step,
    }


def best_attempt(state: NL2SPARQLState) -> tuple[dict[str, Any] | None, int]:
    """Return the best attempt and its number, of equals the first; None if none has a query."""
    attempts = [*state["refinement_history"], attempt_of(state, "output")]

    def rank(one: dict[str, Any]) -> tuple[bool, bool, bool, bool, int]:
        rows = one["executed"] and one["result_count"] > 0
        return one["valid"], rows, one["executed"], one["parses"], -len(one["errors"])

    best = max((one for one in attempts if one["sparql"]), key=rank, default=None)
    return best, attempts.index(best) + 1 if best else 0
