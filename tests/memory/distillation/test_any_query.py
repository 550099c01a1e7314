"""Whatever was submitted, distillation ends, breaks on nothing and stores only what parses."""

from __future__ import annotations

import random

import pytest

from reasoningbank.corpus import load_shacl_tasks, split_tasks
from reasoningbank.memory.distill import Distiller
from reasoningbank.memory.skeleton import filled, slot_names
from reasoningbank.sparql import EndpointConfig
from reasoningbank.sparql.query import prepare
from reasoningbank.sparql.tokens import tokenize

from .attempts import attempt

TRAIN = split_tasks(load_shacl_tasks("uniprot")).train
STRANGE = ["{", "}", "(", ")", "VALUES", '"x', "<<a>>", "?x", "up:foo", "SERVICE", "GRAPH", "LIMIT"]


def broken(query: str, chance: random.Random) -> str:
    """Return a query with a token left out, replaced or added here and there."""
    tokens = [token.text for token in tokenize(query)]
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(tokens))
        tokens[at : at + chance.randint(0, 1)] = chance.choice([[], [chance.choice(STRANGE)]])
    return " ".join(tokens)


@pytest.mark.parametrize("seed", range(4))
def test_broken_queries(distiller: Distiller, endpoint: EndpointConfig, seed: int) -> None:
    chance = random.Random(seed)
    for task in chance.sample(TRAIN, 12):
        query = broken(task.expected_sparql, chance)
        judged = chance.random() < 0.5
        distilled = distiller.distil(
            [
                attempt(query, success=judged, question=task.query, rows=chance.randint(0, 3)),
                attempt(task.expected_sparql, success=True, question=task.query),
            ]
        )
        for item in distilled.items:
            values = dict.fromkeys(slot_names(item.pattern), "1")
            if item.pattern and "LIMIT" in item.pattern:
                prepare(filled(item.pattern, values), prefixes=endpoint.namespaces)
        assert all(rejected.reason for rejected in distilled.rejected)
        assert distilled.items or distilled.rejected
