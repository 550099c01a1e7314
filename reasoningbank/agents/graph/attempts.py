"""The queries of a run, compared: the best one is the answer, sound or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reasoningbank.agents.graph.state import NL2SPARQLState

__all__ = ["attempt_of", "best_attempt"]


def attempt_of(state: NL2SPARQLState, step: str) -> dict[str, Any]:
    """Return the attempt that a state holds, as the history keeps it.

    Args:
        state: A state after its query was verified.
        step: The step that records it: ``refine``, ``explore`` or ``output``.
    """
    return {
        "sparql": state.get("generated_sparql", ""),
        "error": "; ".join(state.get("validation_errors", ())),
        "errors": list(state.get("validation_errors", ())),
        "result_count": state.get("result_count", 0),
        "form": state.get("execution_form", ""),
        "executed": state.get("execution_result") is not None,
        "parses": all(one["level"] != "syntax" for one in state.get("problems", ())),
        "valid": state.get("is_valid", False),
        "family": state.get("family", ""),
        "used_ids": list(state.get("used_ids", ())),
        "likeness": max((one["score"] for one in state.get("retrieved_examples", ())), default=0.0),
        "step": step,
    }


def best_attempt(attempts: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the best of some attempts, of equals the first; None where none has a query.

    A sound one is better than one with rows, that than one that was executed, that than one that
    parses; then fewer errors decide.

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
