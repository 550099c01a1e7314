"""Validation of a query at three levels: syntax, what a pack knows, and its endpoint.

`validate_syntax` asks two parsers, `validate_semantic` holds the algebra against schema, statistics
and rules, `validate_endpoint` executes. Every problem says how to mend it.
"""

from reasoningbank.nl2sparql.problems import Level, Problem, Validation
from reasoningbank.nl2sparql.validation.endpoint import EndpointValidation, validate_endpoint
from reasoningbank.nl2sparql.validation.levels import LEVELS, Explain, validate
from reasoningbank.nl2sparql.validation.semantic import validate_semantic
from reasoningbank.nl2sparql.validation.syntax import validate_syntax

__all__ = [
    "LEVELS",
    "EndpointValidation",
    "Explain",
    "Level",
    "Problem",
    "Validation",
    "validate",
    "validate_endpoint",
    "validate_semantic",
    "validate_syntax",
]
