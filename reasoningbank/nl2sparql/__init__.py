"""From a question to a SPARQL query over a pack: patterns, examples, rules, validation.

`HybridRetriever` finds similar examples, `build_constraints` returns the rules that a question
needs, and the three validations say what is wrong with a query. `NL2SPARQL` is the pipeline of
these around a language model, `NL2SPARQLAgent` the self-correcting graph.
"""

from reasoningbank.nl2sparql.detection import PatternReport, pattern_report, patterns_of_query
from reasoningbank.nl2sparql.examples import (
    HybridRetriever,
    PackExample,
    RandomRetriever,
    Retrieved,
    examples_of,
    load_examples,
)
from reasoningbank.nl2sparql.hints import (
    Pattern,
    PatternSet,
    Rule,
    build_constraints,
    get_constraints_for_patterns,
    load_patterns,
)
from reasoningbank.nl2sparql.pipeline import NL2SPARQL, Candidate, Translation
from reasoningbank.nl2sparql.translator import NL2SPARQLAgent
from reasoningbank.nl2sparql.validation import (
    EndpointValidation,
    Validation,
    validate_endpoint,
    validate_semantic,
    validate_syntax,
)
from reasoningbank.nl2sparql.words import asked_language

__all__ = [
    "NL2SPARQL",
    "Candidate",
    "EndpointValidation",
    "HybridRetriever",
    "NL2SPARQLAgent",
    "PackExample",
    "Pattern",
    "PatternReport",
    "PatternSet",
    "RandomRetriever",
    "Retrieved",
    "Rule",
    "Translation",
    "Validation",
    "asked_language",
    "build_constraints",
    "examples_of",
    "get_constraints_for_patterns",
    "load_examples",
    "load_patterns",
    "pattern_report",
    "patterns_of_query",
    "validate_endpoint",
    "validate_semantic",
    "validate_syntax",
]
