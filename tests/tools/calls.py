"""One call of each query tool on the trees, and an endpoint that nobody runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reasoningbank.tools import SPARQLTools

__all__ = ["ALL", "CALLS", "DEAD"]

DEAD = "http://127.0.0.1:9/sparql"
ALL = "SELECT ?s ?p ?o WHERE { ?s ?p ?o }"
CALLS: dict[str, Callable[[SPARQLTools], Any]] = {
    "sparql_query": lambda t: t.sparql_query(ALL),
    "sparql_stats": lambda t: t.sparql_stats(t.sparql_query(ALL)),
    "sparql_peek": lambda t: t.sparql_peek(t.sparql_query(ALL)),
    "sparql_slice": lambda t: t.sparql_slice(t.sparql_query(ALL), 0, 2),
    "sparql_classes": lambda t: t.sparql_classes(),
    "sparql_properties": lambda t: t.sparql_properties(),
    "sparql_describe": lambda t: t.sparql_describe("t:oak"),
    "sparql_find": lambda t: t.sparql_find("tree"),
    "sparql_sample": lambda t: t.sparql_sample("t:Tree"),
    "sparql_count": lambda t: t.sparql_count(ALL),
    "endpoint_info": lambda t: t.endpoint_info(),
}
