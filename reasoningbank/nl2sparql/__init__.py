"""From a question to a SPARQL query over a pack: patterns, examples, rules, validation.

`PatternDetector` tells what a question needs, `HybridRetriever` finds examples like it,
`build_constraints` gives the rules that it needs, the three validations say what is wrong with a
query and how to mend it, and `NL2SPARQL` puts them together around a language model.
"""

import importlib
from typing import Any

from reasoningbank.nl2sparql.constraints import Constraints, Rule, load_constraints
from reasoningbank.nl2sparql.detection import Detected, Detector, PatternDetector
from reasoningbank.nl2sparql.examples import (
    Example,
    example_pack,
    examples_of,
    load_examples,
    patterns_of_query,
)
from reasoningbank.nl2sparql.hybrid import (
    WEIGHTS,
    HybridRetriever,
    RandomRetriever,
    Retrieved,
    Retriever,
)
from reasoningbank.nl2sparql.languages import asked_language, language_of
from reasoningbank.nl2sparql.measuring import PatternReport, Rate, pattern_report
from reasoningbank.nl2sparql.nearness import exchanged, likeness
from reasoningbank.nl2sparql.patterns import Pattern, PatternSet, load_patterns
from reasoningbank.nl2sparql.pipeline import NL2SPARQL
from reasoningbank.nl2sparql.prompting import (
    ConstraintPrompt,
    build_constraints,
    constraint_prompt,
    get_constraints_for_patterns,
)
from reasoningbank.nl2sparql.prototypes import JointDetector, PrototypeDetector
from reasoningbank.nl2sparql.translation import Candidate, OnStep, Translation, best_candidate
from reasoningbank.nl2sparql.validation import (
    LEVELS,
    EndpointValidation,
    Explain,
    Level,
    Validation,
    validate,
    validate_endpoint,
    validate_semantic,
    validate_syntax,
)
from reasoningbank.nl2sparql.writing import adapt_query, same_query, write_query

__all__ = [
    "LEVELS",
    "NL2SPARQL",
    "WEIGHTS",
    "Candidate",
    "ConstraintPrompt",
    "Constraints",
    "Detected",
    "Detector",
    "EndpointValidation",
    "Example",
    "Explain",
    "HybridRetriever",
    "JointDetector",
    "Level",
    "OnStep",
    "Pattern",
    "PatternDetector",
    "PatternReport",
    "PatternSet",
    "PrototypeDetector",
    "RandomRetriever",
    "Rate",
    "Retrieved",
    "Retriever",
    "Rule",
    "Translation",
    "Validation",
    "adapt_query",
    "asked_language",
    "best_candidate",
    "build_constraints",
    "constraint_prompt",
    "example_pack",
    "examples_of",
    "exchanged",
    "get_constraints_for_patterns",
    "language_of",
    "likeness",
    "load_constraints",
    "load_examples",
    "load_patterns",
    "pattern_report",
    "patterns_of_query",
    "same_query",
    "validate",
    "validate_endpoint",
    "validate_semantic",
    "validate_syntax",
    "write_query",
]


def __getattr__(name: str) -> Any:
    # The graph is built on this room and stands above it; by this name it is found here as well.
    if name == "NL2SPARQLAgent":
        return importlib.import_module("reasoningbank.agents.graph").NL2SPARQLAgent
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
