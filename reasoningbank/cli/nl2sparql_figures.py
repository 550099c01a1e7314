"""The figures of an evaluation: what queries were worth, in all, by pattern and by language."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rdflib.term import URIRef

from reasoningbank.analysis.statistics import wilson
from reasoningbank.corpus import Pack, query_features
from reasoningbank.errors import QueryError
from reasoningbank.nl2sparql import pattern_report, walk_query
from reasoningbank.nl2sparql.hints import namespaces_of
from reasoningbank.sparql import STANDARD_PREFIXES, prepare

__all__ = ["Row", "components", "figures", "matched"]

_TYPE = STANDARD_PREFIXES["rdf"] + "type"
#: Bins of the reliability table.
BINS = 5


@dataclass(frozen=True)
class Row:
    """One question, answered and judged.

    Attributes:
        task: The task's id.
        language: Language of the question.
        question: The question.
        sparql: The query; None where there was none.
        right: Whether it returns the right answer: execution accuracy.
        status: Why there was nothing to compare, or ``judged``.
        parses: Whether it is SPARQL.
        executes: Whether the endpoint answered it.
        components: Share of the right query's parts that it has.
        patterns: What the question needs.
        detected: What was detected.
        valid: Whether the system itself had nothing against it.
        confidence: How probable the system thought it right; None where it does not say.
        score: What that is made of; None likewise.
        calls: Calls of a model.
        tokens: Tokens sent and generated.
        seconds: Wall time.
    """

    task: str
    language: str
    question: str
    sparql: str | None
    right: bool
    status: str
    parses: bool
    executes: bool
    components: float
    patterns: tuple[str, ...]
    detected: tuple[str, ...]
    valid: bool
    confidence: float | None
    score: float | None
    calls: int
    tokens: int
    seconds: float


def figures(rows: Sequence[Row]) -> dict[str, Any]:
    """Return what rows come to, as JSON-able data; execution accuracy first."""
    patterns = list(dict.fromkeys(name for row in rows for name in row.patterns))
    languages = sorted({row.language for row in rows})
    report = pattern_report((row.detected, row.patterns) for row in rows)
    of_pattern = {name: [row for row in rows if name in row.patterns] for name in patterns}
    of_language = {name: [row for row in rows if row.language == name] for name in languages}
    return {
        "metrics": _metrics(rows),
        "by_pattern": {name: _metrics(own) for name, own in of_pattern.items()},
        "by_language": {name: _metrics(own) for name, own in of_language.items()},
        "pattern_detection": {
            "exact": round(report.exact, 4),
            "precision": round(report.micro.precision, 4),
            "recall": round(report.micro.recall, 4),
            "f1": round(report.micro.f1, 4),
            "macro_f1": round(report.macro_f1, 4),
        },
        "calibration": _calibration(rows),
    }


def matched(sparql: str | None, gold: str, pack: Pack) -> float:
    """Return the share of the gold's components that a query has, from 0 to 1."""
    wanted = components(gold, pack)
    if not sparql or not wanted:
        return 0.0
    return round(len(wanted & components(sparql, pack)) / len(wanted), 4)


def components(sparql: str, pack: Pack) -> frozenset[tuple[str, str]]:
    """Return what a query is made of: properties, classes, graphs, services, features.

    A query that does not parse has none.
    """
    try:
        prepared = prepare(sparql, prefixes=namespaces_of(pack))
    except QueryError:
        return frozenset()
    if prepared.parsed is None:
        return frozenset()
    walked = walk_query(prepared.parsed)
    found: set[tuple[str, str]] = {("form", prepared.form)}
    for one in walked.statements:
        kind = "class" if str(one.predicate) == _TYPE else "property"
        name = one.object if kind == "class" else one.predicate
        places = (("graph", one.graph), ("service", one.service), (kind, name))
        found.update((kind, str(term)) for kind, term in places if isinstance(term, URIRef))
    found.update(("graph", name) for name in walked.dataset)
    found.update(("feature", name) for name in query_features(prepared.text).features)
    return frozenset(found)


def _metrics(rows: Collection[Row]) -> dict[str, Any]:
    right = wilson(sum(row.right for row in rows), len(rows))
    seconds = [row.seconds for row in rows]
    return {
        "n": len(rows),
        "execution_accuracy": round(right.rate, 4),
        "execution_accuracy_interval": [round(right.low, 4), round(right.high, 4)],
        "syntax_validity": _mean(row.parses for row in rows),
        "execution_success": _mean(row.executes for row in rows),
        "component_match": _mean(row.components for row in rows),
        "pattern_accuracy": _mean(set(row.detected) == set(row.patterns) for row in rows),
        "calls": _mean(row.calls for row in rows),
        "tokens": _mean(row.tokens for row in rows),
        "seconds_median": round(float(np.median(seconds)), 3),
        "seconds_p95": round(float(np.percentile(seconds, 95)), 3),
    }


def _calibration(rows: Iterable[Row]) -> dict[str, Any]:
    """Return Brier score (Brier 1950) and reliability table; empty where nothing is said."""
    said = [(row.confidence, row.right) for row in rows if row.confidence is not None]
    if not said:
        return {}
    table = []
    for low in np.arange(BINS) / BINS:
        high = low + 1 / BINS
        here = [(c, r) for c, r in said if low <= c < high or (c == 1.0 and high >= 1.0)]
        if here:
            rate = wilson(sum(r for _, r in here), len(here))
            table.append(
                {
                    "from": round(float(low), 2),
                    "to": round(float(high), 2),
                    "n": len(here),
                    "confidence": _mean(c for c, _ in here),
                    "right": round(rate.rate, 4),
                    "interval": [round(rate.low, 4), round(rate.high, 4)],
                }
            )
    return {"brier": _mean((c - r) ** 2 for c, r in said), "reliability": table}


def _mean(numbers: Iterable[float]) -> float:
    return round(float(np.mean([float(one) for one in numbers])), 4)
