"""Finding resources by name: one bounded query, ranked by how well the label fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyoxigraph import NamedNode

from reasoningbank.sparql import string_literal, values

__all__ = ["label_search", "rank_by_label"]

#: Candidates fetched for ranking.
CANDIDATES = 300


def label_search(pattern: str, label_properties: Sequence[str]) -> str:
    """Return a query for resources whose label holds `pattern`, upper and lower case alike."""
    properties = values("property", (NamedNode(iri) for iri in label_properties))
    text = string_literal(" ".join(pattern.lower().split()))
    return (
        "SELECT DISTINCT ?uri ?label ?property WHERE {\n"
        f"  {properties}\n"
        "  ?uri ?property ?label .\n"
        f"  FILTER(CONTAINS(LCASE(STR(?label)), {text}))\n"
        f"}} LIMIT {CANDIDATES}"
    )


def rank_by_label(found: list[dict[str, Any]], pattern: str) -> list[dict[str, Any]]:
    """Order by fit: the whole label, its beginning, a whole word, anywhere; shorter first.

    Examples:
        >>> rows = [{"label": "Protein kinase"}, {"label": "Kinase"}, {"label": "Kinases"}]
        >>> [row["label"] for row in rank_by_label(rows, "kinase")]
        ['Kinase', 'Kinases', 'Protein kinase']
    """
    wanted = " ".join(pattern.lower().split())

    def fit(row: dict[str, Any]) -> tuple[int, int, str]:
        label = str(row["label"]).lower()
        if label == wanted:
            rank = 0
        elif label.startswith(wanted):
            rank = 1
        else:
            rank = 2 if wanted in label.split() else 3
        return rank, len(label), label

    return sorted(found, key=fit)
