"""The graph as an agent, over a small endpoint and over the LiITA pack with two."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from dspy.utils import DummyLM

from reasoningbank.agents import Attempt, Episode, make_agent
from reasoningbank.corpus import Pack, Task, load_pack, open_endpoint
from reasoningbank.errors import UsageError
from reasoningbank.judge.case import executed_queries
from reasoningbank.nl2sparql import NL2SPARQL
from reasoningbank.nl2sparql.graph import failed_queries
from reasoningbank.nl2sparql.nodes import attempt_of, initial_state
from reasoningbank.nl2sparql.translator import GraphAgent, NL2SPARQLAgent
from reasoningbank.sparql import EndpointConfig

from .replies import (
    BROKEN,
    EMPTY,
    QUERY,
    QUESTION,
    analysis,
    plan,
    prompts,
    steps,
    verified,
    written,
)

Make = Callable[..., Episode]


def solve(episode: Episode, question: str = QUESTION, **settings: Any) -> Attempt:
    task = Task("new", question, "", "https://trees.example/sparql/")
    return GraphAgent(**settings).solve(task, episode)


def reported(attempt: Attempt, step: str) -> list[dict[str, Any]]:
    resolve = attempt.trajectory.resolve
    return [resolve(e.data) for e in attempt.trajectory.of("step") if e.data["step"] == step]


def test_the_way_without_a_failure(episode: Make, forest: Pack) -> None:
    given = episode(
        analysis("HEIGHT", "KIND"), written(QUERY), verified(), pack=forest, context="Oaks are old."
    )
    attempt = solve(given)
    assert (attempt.sparql, attempt.status, attempt.error) == (QUERY, "submitted", "")
    assert steps(attempt.trajectory) == [
        "analyze", "plan", "retrieve", "write", "execute", "verify", "output",
    ]  # fmt: skip
    assert (attempt.usage.lm_calls, attempt.usage.tool_calls, attempt.usage.iterations) == (3, 1, 3)
    assert [one.n for one in executed_queries(attempt.trajectory)] == [3]
    asked, wrote, checked = prompts(attempt)
    assert "HEIGHT: how high plants are" in asked
    assert "Oaks are old." in wrote
    assert "SELECT, 3 in all" in checked


def test_every_step_of_the_plan_reaches_retrieval_and_writing(episode: Make, forest: Pack) -> None:
    attempt = solve(
        episode(
            analysis("KIND", complexity="complex"),
            plan("Find what stands near the pine.", "Is it a tree?", "Give its height."),
            written(QUERY),
            verified(),
            pack=forest,
        ),
        top_k=4,
    )
    wrote = prompts(attempt)[2]
    for part in ("1. Find what stands near the pine.", "2. Is it a tree?", "3. Give its height."):
        assert part in wrote
    found = reported(attempt, "retrieve")[0]
    # The best example of each step is there, the last step's too.
    assert found["current_task_index"] == 2
    assert {"near", "is"} <= {one["group"] for one in found["examples"]}


def test_an_error_is_refined_with_other_examples(episode: Make, forest: Pack) -> None:
    attempt = solve(
        episode(analysis("KIND"), written(BROKEN), written(QUERY), verified(), pack=forest), top_k=2
    )
    assert (attempt.sparql, attempt.status) == (QUERY, "submitted")
    assert steps(attempt.trajectory)[5:8] == ["verify", "refine", "retrieve"]
    assert "cannot be parsed" in prompts(attempt)[2]
    first, second = (
        [one["id"] for one in found["examples"]] for found in reported(attempt, "retrieve")
    )
    assert first[0] == second[0]
    assert first[1:] != second[1:]


def test_examples_that_the_writer_did_not_see_come_next(episode: Make, forest: Pack) -> None:
    replies = (analysis("KIND"), written(BROKEN), written(QUERY), verified())
    attempt = solve(episode(*replies, pack=forest), top_k=3, shown=2, specialists=False)
    found = [[one["id"] for one in r["examples"]] for r in reported(attempt, "retrieve")]
    first, second = reported(attempt, "write")
    assert first["used_ids"] == found[0][:2]
    # The nearest stays, and the one that there was no room for is shown.
    assert second["used_ids"] == [found[0][0], found[0][2]]
    assert second["shown_ids"] == found[0]
    reported_of = f"after the examples {', '.join(second['used_ids'])};"
    assert reported_of in reported(attempt, "output")[0]["explanation"]


def test_an_earlier_answer_is_explained_by_its_own_examples(episode: Make, forest: Pack) -> None:
    replies = (analysis("KIND"), written(EMPTY), written(BROKEN))
    attempt = solve(episode(*replies, pack=forest), top_k=3, shown=2, explore=False, max_attempts=2)
    assert attempt.sparql == EMPTY
    first, second = (one["used_ids"] for one in reported(attempt, "write"))
    assert first != second
    assert (
        f"after the examples {', '.join(first)};" in reported(attempt, "output")[0]["explanation"]
    )


def test_where_no_example_is_shown_none_is_named(episode: Make, forest: Pack) -> None:
    attempt = solve(episode(analysis("KIND"), written(QUERY), verified(), pack=forest), shown=0)
    assert reported(attempt, "write")[0]["used_ids"] == []
    assert "Written by the writer for" in reported(attempt, "output")[0]["explanation"]
    assert "after the examples" not in reported(attempt, "output")[0]["explanation"]


def test_confidence_is_by_what_was_retrieved_for_the_answer() -> None:
    near, far = ([{"id": "e", "score": score}] for score in (0.9, 0.2))
    state = initial_state("?") | {"generated_sparql": "ASK {}", "retrieved_examples": near}
    assert attempt_of(state, "refine")["similarity"] == 0.9
    state |= {"retrieved_examples": far}
    assert attempt_of(state, "refine")["similarity"] == 0.2


def test_an_empty_result_is_explored_and_what_was_found_is_reported(
    episode: Make, forest: Pack
) -> None:
    attempt = solve(
        episode(analysis("KIND"), written(EMPTY), written(QUERY), verified(), pack=forest)
    )
    assert (attempt.sparql, attempt.status) == (QUERY, "submitted")
    found = reported(attempt, "explore")[0]
    # What a moss has, and what has things near it.
    assert {"t:height", "t:near", "rdfs:label"} <= set(found["discovered_properties"])
    assert "t:Tree" in found["discovered_classes"]
    assert found["findings"]
    wrote = prompts(attempt)[2]
    assert "Properties in use:" in wrote
    assert found["findings"][0] in wrote
    assert EMPTY in wrote
    assert "returns no rows" in wrote


def test_as_many_explored_names_are_reported_as_there_is_room_for_and_each_whole(
    episode: Make, forest: Pack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reasoningbank.nl2sparql.graph.MOST_NAMES", 18)
    attempt = solve(
        episode(analysis("KIND"), written(EMPTY), written(QUERY), verified(), pack=forest)
    )
    names = reported(attempt, "explore")[0]["discovered_properties"]
    wrote = prompts(attempt)[2]
    line = wrote.split("Properties in use: ")[1].split("\\n")[0].split('"')[0].split("'")[0]
    shown = line.split(", ")
    assert shown == names[: len(shown)]
    assert 0 < len(shown) < len(names)


def test_what_was_explored_is_reported_with_its_query() -> None:
    history = [
        {"sparql": "A", "error": "empty", "step": "explore"},
        {"sparql": "B", "error": "broken", "step": "refine"},
        {"sparql": "A", "error": "empty", "step": "refine"},
    ]
    first, second = history[:2], history
    for tried, expected in (
        (first, [("A", "no such way\nempty"), ("B", "broken")]),
        # What was found again is listed last, with all that is known of it.
        (second, [("B", "broken"), ("A", "no such way\nempty")]),
    ):
        state = initial_state("?") | {"refinement_history": tried, "findings": ["no such way"]}
        assert failed_queries(state) == expected  # type: ignore[arg-type]


def test_an_objection_of_the_reader_is_refined(episode: Make, forest: Pack) -> None:
    other = "SELECT ?plant WHERE { ?plant a t:Tree }"
    attempt = solve(
        episode(
            analysis("KIND"),
            written(other),
            verified("The heights are missing."),
            written(QUERY),
            verified(),
            pack=forest,
        )
    )
    assert attempt.sparql == QUERY
    assert "The heights are missing." in prompts(attempt)[3]


def test_after_the_last_attempt_the_best_one_is_given_with_its_errors(
    episode: Make, forest: Pack
) -> None:
    attempt = solve(
        episode(analysis("KIND"), written(BROKEN), written(EMPTY), written(BROKEN), pack=forest)
    )
    assert (attempt.sparql, attempt.status) == (EMPTY, "fallback")
    assert "empty" in [one.code for one in attempt.findings]
    last = reported(attempt, "output")[0]
    assert (last["is_valid"], last["final_sparql"]) == (False, EMPTY)
    assert last["confidence"] < 0.5
    assert steps(attempt.trajectory).count("write") == 3


def test_a_query_written_twice_is_reported_and_not_taken(episode: Make, forest: Pack) -> None:
    given = episode(
        analysis("KIND"), written(EMPTY), written(EMPTY), written(QUERY), verified(), pack=forest
    )
    attempt = solve(given)
    assert attempt.sparql == QUERY
    assert "this query was tried before" in prompts(attempt)[3]


@pytest.mark.parametrize(
    ("form", "query", "count"),
    [
        ("ASK", "ASK { ?plant a t:Fern }", 1),
        ("CONSTRUCT", "CONSTRUCT { ?s a t:High } WHERE { ?s t:height ?h FILTER(?h > 20) }", 2),
        ("DESCRIBE", "DESCRIBE <http://e/oak>", 5),
    ],
)
def test_every_form_is_executed_and_verified_as_such(
    episode: Make, forest: Pack, form: str, query: str, count: int
) -> None:
    attempt = solve(episode(analysis("KIND"), written(query), verified(), pack=forest), top_k=1)
    assert (attempt.sparql, attempt.status) == (query, "submitted")
    ran = reported(attempt, "execute")[0]
    assert (ran["execution_form"], ran["result_count"]) == (form, count)
    assert f"{form}, {count} in all" in prompts(attempt)[-1]


def test_what_is_switched_off_makes_no_call(episode: Make, forest: Pack) -> None:
    off = {"analyze": False, "plan": False, "verify": False, "explore": False}
    attempt = solve(episode(written(EMPTY), written(QUERY), pack=forest), **off)
    assert (attempt.sparql, attempt.usage.lm_calls) == (QUERY, 2)
    # The rules find the patterns all the same.
    assert {"KIND", "HEIGHT", "NEAR"} == set(reported(attempt, "analyze")[0]["detected_patterns"])
    assert "explore" not in steps(attempt.trajectory)


def test_the_writer_of_the_family_has_its_rules_and_examples(episode: Make, forest: Pack) -> None:
    question = "What stands near the pine?"
    given = (analysis(), written(EMPTY.replace("Moss", "Tree")), verified())
    special = solve(episode(*given, pack=forest), question)
    plain = solve(episode(*given, pack=forest), question, specialists=False)
    assert [reported(one, "write")[0]["family"] for one in (special, plain)] == [
        "places",
        "general",
    ]
    assert "You write queries of one kind: what stands near what" in prompts(special)[1]
    assert "You write queries of one kind" not in prompts(plain)[1]


def test_a_reply_that_cannot_be_read_stops_nothing(episode: Make, forest: Pack) -> None:
    unread = {"thoughts": "Hm."}
    attempt = solve(episode(unread, unread, {"reply": QUERY}, unread, pack=forest))
    assert attempt.sparql is not None
    assert attempt.sparql.startswith(QUERY)
    assert attempt.status == "submitted"


def test_no_query_at_all_is_a_refusal(episode: Make, forest: Pack) -> None:
    unsure = written("I do not know.")
    attempt = solve(episode(analysis(), unsure, unsure, unsure, pack=forest))
    assert (attempt.sparql, attempt.status) == (None, "refused")


def test_nothing_of_a_hidden_group_is_retrieved(episode: Make, forest: Pack) -> None:
    given = (analysis(), written(QUERY), verified())
    asked = 'How high is "Oak"?'
    seen = solve(episode(*given, pack=forest), asked)
    blind = solve(episode(*given, pack=forest, hidden=frozenset({"oak_height"})), asked)
    groups = [
        {one["group"] for one in reported(a, "retrieve")[0]["examples"]} for a in (seen, blind)
    ]
    assert "height" in groups[0]
    assert "height" not in groups[1]


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"lm_calls": 2}, "exhausted"),
        ({"tool_calls": 1}, "exhausted"),
        ({"iterations": 1}, "fallback"),
    ],
)
def test_a_budget_ends_it_and_what_was_done_is_kept(
    episode: Make, forest: Pack, limits: dict[str, int], expected: str
) -> None:
    attempt = solve(
        episode(analysis(), written(EMPTY), written(QUERY), pack=forest, **limits), explore=False
    )
    assert (attempt.sparql, attempt.status) == (EMPTY, expected)


def test_who_is_to_be_asked_back_is_not_there_in_a_trial() -> None:
    with pytest.raises(UsageError, match="nobody to ask back"):
        GraphAgent(human=True)


def test_it_is_an_agent_like_the_others() -> None:
    agent = make_agent("graph")
    assert (agent.uses_lm, agent.sees_gold) == (True, False)


def test_exploring_leaves_calls_for_the_next_attempts(episode: Make, forest: Pack) -> None:
    wide = "SELECT * WHERE { ?a a t:A . ?b a t:B . t:oak t:p1 ?b ; t:p2 t:ash . t:pine t:p3 ?a }"
    given = episode(analysis(), written(wide), written(QUERY), verified(), pack=forest)
    attempt = solve(given)
    assert attempt.sparql == QUERY
    assert attempt.usage.tool_calls == 1 + 10 + 1


VIPERA = 'Qual è l\'iperonimo diretto di "vipera"?'
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
    seen = list(asked.stream(VIPERA, language="it"))
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


def test_a_missing_service_is_shown_to_the_next_attempt(
    agent: Callable[..., NL2SPARQLAgent],
) -> None:
    asked = agent(analysis("HYPERNYM"), written(LOOSE), written(RIGHT), verified())
    found = asked.translate(VIPERA, language="it")
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
