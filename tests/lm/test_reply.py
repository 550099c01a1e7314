"""Queries are found in what models really write."""

from __future__ import annotations

import pytest

from reasoningbank.lm.reply import query_in

QUERY = "PREFIX up: <http://purl.uniprot.org/core/>\nSELECT ?p WHERE { ?p a up:Protein }"


@pytest.mark.parametrize(
    "reply",
    [
        QUERY,
        f"```sparql\n{QUERY}\n```",
        f"```\n{QUERY}\n```",
        f"Sure:\n```sparql\n{QUERY}\n```\nIt lists proteins.",
        f"[[ ## sparql ## ]]\n{QUERY}",
        f"```sparql\n{QUERY}",
        f"{QUERY}[[ ## completed ## ]]",
        f"First ```python\nprint(1)\n``` and\n```sparql\n{QUERY}\n```",
    ],
)
def test_the_query_is_found(reply: str) -> None:
    assert query_in(reply) == QUERY


@pytest.mark.parametrize("reply", [None, "", "I cannot.", "Please select a protein first."])
def test_no_query_is_none(reply: str | None) -> None:
    assert query_in(reply) is None


def test_the_last_of_several_queries_counts() -> None:
    assert query_in("```sparql\nASK {}\n```\nbetter:\n```sparql\nASK { ?s ?p 1 }\n```") == (
        "ASK { ?s ?p 1 }"
    )
