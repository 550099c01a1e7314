"""The graph over the LiITA pack: two endpoints, a relation that runs against its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from dspy.utils import DummyLM

from reasoningbank.corpus import Pack, load_pack, open_endpoint
from reasoningbank.nl2sparql import NL2SPARQL
from reasoningbank.nl2sparql.graph import NL2SPARQLAgent
from reasoningbank.sparql import EndpointConfig

from .replies import analysis, verified, written

QUESTION = 'Qual è l\'iperonimo diretto di "vipera"?'
TURNED = """SELECT ?name WHERE {
  SERVICE <https://klab.ilc.cnr.it/graphdb-compl-it/> {
    ?sense ontolex:isSenseOf/rdfs:label "vipera"@it .
    ?sense lexinfo:hypernym ?general .
    ?general ontolex:isSenseOf/rdfs:label ?name .
  }
}"""
RIGHT = TURNED.replace("lexinfo:hypernym", "lexinfo:hyponym")
LOOSE = TURNED.replace("  SERVICE <https://klab.ilc.cnr.it/graphdb-compl-it/> {\n", "  {\n")


@pytest.fixture(scope="module")
def liita() -> Pack:
    return load_pack("liita")


@pytest.fixture(scope="module")
def endpoint(liita: Pack) -> Iterator[EndpointConfig]:
    with open_endpoint(liita) as config:
        yield config


@pytest.fixture
def agent(liita: Pack, endpoint: EndpointConfig) -> Callable[..., NL2SPARQLAgent]:
    def make(*replies: dict[str, str], **options: Any) -> NL2SPARQLAgent:
        lm = DummyLM(list(replies))
        hidden = frozenset({"101_hypernyms_of_vipera"})
        return NL2SPARQLAgent(pack=liita, endpoint=endpoint, lms=(lm, lm), hidden=hidden, **options)

    return make


def test_a_wrong_direction_is_explored_and_turned(agent: Callable[..., NL2SPARQLAgent]) -> None:
    asked = agent(analysis("HYPERNYM"), written(TURNED), written(RIGHT), verified())
    seen = list(asked.stream(QUESTION, language="it"))
    assert [name for name, _ in seen][5:8] == ["verify", "explore", "generate"]
    explored, last = seen[6][1], seen[-1][1]
    # Found at the second endpoint, which the query reaches with SERVICE.
    assert "lexinfo:hyponym" in explored["discovered_properties"]
    assert "ontolex:LexicalSense" in explored["discovered_classes"]
    assert last["requires_service"]
    assert (last["final_sparql"], last["is_valid"]) == (RIGHT, True)
    assert last["execution_result"] is not None
    assert last["result_count"] >= 1
    groups = {one["group"] for _, state in seen for one in state["retrieved_examples"]}
    assert groups
    assert "hypernyms" not in groups
    # In the question's language.
    assert any("iperonim" in one["nl"].lower() for one in last["retrieved_examples"])


def test_a_missing_service_is_told_to_the_next_attempt(
    agent: Callable[..., NL2SPARQLAgent],
) -> None:
    asked = agent(analysis("HYPERNYM"), written(LOOSE), written(RIGHT), verified())
    found = asked.translate(QUESTION, language="it")
    assert (found.sparql, found.is_valid) == (RIGHT, True)
    assert (
        "SERVICE <https://klab.ilc.cnr.it/graphdb-compl-it/>"
        in found.refinement_history[0]["error"]
    )


def test_the_agent_is_found_beside_the_pipeline() -> None:
    from reasoningbank import nl2sparql

    assert nl2sparql.NL2SPARQLAgent is NL2SPARQLAgent
    assert nl2sparql.NL2SPARQL is NL2SPARQL
    with pytest.raises(AttributeError, match="no attribute 'NL2SPARQLAgents'"):
        _ = nl2sparql.NL2SPARQLAgents
