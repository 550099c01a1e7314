"""All levels of validation in turn."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from reasoningbank.corpus import Pack
from reasoningbank.nl2sparql.problems import Level, Problem
from reasoningbank.nl2sparql.validation.endpoint import EndpointValidation, validate_endpoint
from reasoningbank.nl2sparql.validation.semantic import validate_semantic
from reasoningbank.nl2sparql.validation.syntax import validate_syntax
from reasoningbank.sparql import EndpointConfig, SPARQLClient

__all__ = ["LEVELS", "Explain", "validate"]

#: Given a query, and whether it ran and gave nothing: what is wrong with it, a line each.
Explain = Callable[[str, bool], Sequence[str]]
LEVELS: tuple[Level, ...] = ("syntax", "semantic", "endpoint")


def validate(
    sparql: str,
    pack: Pack,
    *,
    patterns: Collection[str] = (),
    endpoint: EndpointConfig | SPARQLClient | None = None,
    levels: Collection[Level] = LEVELS,
    timeout: float = 30.0,
    question: str = "",
    explain: Explain | None = None,
) -> tuple[tuple[Problem, ...], EndpointValidation | None]:
    """Check a query at several levels; one that fails at a level is not asked at the next.

    What a pack knows against a query does not keep it from its endpoint: rules may be too strict,
    and a query with rows tells so.

    Args:
        sparql: The query.
        pack: The pack.
        patterns: What the question needs.
        endpoint: Where it is executed; not at all where None.
        levels: The levels to check at.
        timeout: Seconds it may take.
        question: The question, whose names the query has to hold.
        explain: Says why a query failed or gave nothing, better than its endpoint does.

    Returns:
        What is wrong, and what the endpoint gave.

    Raises:
        EndpointError: The endpoint fails.
    """
    problems: list[Problem] = []
    if "syntax" in levels:
        problems += validate_syntax(sparql, pack).problems
        if problems:
            return tuple(problems), None
    if "semantic" in levels:
        problems += validate_semantic(sparql, pack, patterns, question=question).problems
    checked = None
    if "endpoint" in levels and endpoint is not None:
        checked = validate_endpoint(sparql, endpoint, timeout)
        problems += (_explained(one, sparql, explain) for one in checked.problems)
    return tuple(problems), checked


def _explained(problem: Problem, sparql: str, explain: Explain | None) -> Problem:
    """Return a problem with what is known of its cause in place of a general mend."""
    lines = explain(sparql, problem.code == "empty") if explain is not None else ()
    return replace(problem, hint="; ".join(lines)) if lines else problem
