"""From a question to a SPARQL query over a pack: patterns, examples, rules, validation.

`PatternDetector` finds what a question needs, `HybridRetriever` similar examples,
`build_constraints` returns the rules it needs, and the three validations say what is wrong with a
query. `NL2SPARQL` is the pipeline of these around a language model, `NL2SPARQLAgent` the
self-correcting graph; `RAGAgent` and `GraphAgent` are the agents of experiments.
"""

from reasoningbank.nl2sparql.confidence import (
    Calibration,
    Confidence,
    confidence_in,
    confidence_score,
    fit_calibration,
    load_calibration,
)
from reasoningbank.nl2sparql.constraints import (
    ConstraintPrompt,
    Constraints,
    Rule,
    build_constraints,
    constraint_prompt,
    get_constraints_for_patterns,
    load_constraints,
)
from reasoningbank.nl2sparql.detection import (
    Detected,
    Detector,
    JointDetector,
    PatternDetector,
    PatternReport,
    PrototypeDetector,
    Rate,
    pattern_report,
)
from reasoningbank.nl2sparql.examples import (
    PackExample,
    example_pack,
    examples_of,
    load_examples,
    patterns_of_query,
    question_similarity,
    swap_entities,
)
from reasoningbank.nl2sparql.graph import GraphAgent, NL2SPARQLAgent
from reasoningbank.nl2sparql.hybrid import (
    RETRIEVALS,
    WEIGHTS,
    HybridRetriever,
    RandomRetriever,
    Retrieved,
    Retriever,
    ShownExamples,
    shown_examples,
)
from reasoningbank.nl2sparql.patterns import Pattern, PatternSet, load_patterns
from reasoningbank.nl2sparql.pipeline import (
    NL2SPARQL,
    Candidate,
    OnStep,
    Translation,
    adapt_query,
    best_candidate,
    same_query,
    write_query,
)
from reasoningbank.nl2sparql.rag import RAGAgent, translation_confidence
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
from reasoningbank.nl2sparql.words import asked_language, language_of

__all__ = [
    "LEVELS",
    "NL2SPARQL",
    "RETRIEVALS",
    "WEIGHTS",
    "Calibration",
    "Candidate",
    "Confidence",
    "ConstraintPrompt",
    "Constraints",
    "Detected",
    "Detector",
    "EndpointValidation",
    "Explain",
    "GraphAgent",
    "HybridRetriever",
    "JointDetector",
    "Level",
    "NL2SPARQLAgent",
    "OnStep",
    "PackExample",
    "Pattern",
    "PatternDetector",
    "PatternReport",
    "PatternSet",
    "PrototypeDetector",
    "RAGAgent",
    "RandomRetriever",
    "Rate",
    "Retrieved",
    "Retriever",
    "Rule",
    "ShownExamples",
    "Translation",
    "Validation",
    "adapt_query",
    "asked_language",
    "best_candidate",
    "build_constraints",
    "confidence_in",
    "confidence_score",
    "constraint_prompt",
    "example_pack",
    "examples_of",
    "fit_calibration",
    "get_constraints_for_patterns",
    "language_of",
    "load_calibration",
    "load_constraints",
    "load_examples",
    "load_patterns",
    "pattern_report",
    "patterns_of_query",
    "question_similarity",
    "same_query",
    "shown_examples",
    "swap_entities",
    "translation_confidence",
    "validate",
    "validate_endpoint",
    "validate_semantic",
    "validate_syntax",
    "write_query",
]
