"""Tasks as examples, and the execution judge as a metric in DSPy's own classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.utils import DummyLM

from reasoningbank import load_shacl_tasks, open_metric, to_examples
from reasoningbank.corpus import Task
from reasoningbank.errors import UsageError
from reasoningbank.judge import ExecutionJudge, ExecutionMetric, GoldStore
from reasoningbank.schema import Schema
from reasoningbank.sparql import EndpointConfig, SPARQLClient

TREES = "SELECT ?p WHERE { ?p a t:Tree }"
OAK_AND_ASH = "SELECT ?p WHERE { VALUES ?p { t:oak t:ash } ?p a t:Tree }"


@pytest.fixture
def metric(trees: EndpointConfig, tmp_path: Path) -> Iterator[ExecutionMetric]:
    with SPARQLClient(trees) as client:
        judge = ExecutionJudge(client, GoldStore(tmp_path, "trees"))
        yield ExecutionMetric(judge, Schema.of(trees))


def example(gold: str = TREES, **more: Any) -> dspy.Example:
    task = Task("t1", "Which plants are trees?", gold, "https://trees.example/sparql/", **more)
    return to_examples([task])[0]


def feedback(metric: ExecutionMetric, query: str | None, gold: str = TREES, **more: Any) -> str:
    found = metric(example(gold, **more), dspy.Prediction(sparql=query), None, "solve", None)
    assert isinstance(found, dspy.Prediction)
    assert found.score == metric(example(gold, **more), dspy.Prediction(sparql=query))
    return str(found.feedback)


def test_examples_have_their_inputs() -> None:
    shown = example(bag=True)
    assert shown.inputs().toDict() == {"question": "Which plants are trees?"}
    assert (shown.sparql, shown.task, shown.bag, shown.ordered) == (TREES, "t1", True, False)
    both = to_examples([Task("t", "?", "ASK {}", "http://e/")], inputs=("question", "endpoint"))
    assert both[0].inputs().toDict() == {"question": "?", "endpoint": "http://e/"}


def test_a_number_that_any_reply_with_the_query_gets(metric: ExecutionMetric) -> None:
    for reply in (TREES, f"Here it is:\n```sparql\n{TREES}\n```", "SELECT ?x { ?x t:height ?h }"):
        assert metric(example(), dspy.Prediction(sparql=reply)) == 1.0, reply
    for reply in (OAK_AND_ASH, "", None, "I do not know.", "SELECT ?x { ?x t:height"):
        assert metric(example(), dspy.Prediction(sparql=reply)) == 0.0, reply
    assert metric(example(), dspy.Prediction()) == 0.0
    plain = dspy.Example(question="Which?", sparql=TREES).with_inputs("question")
    assert metric(plain, dspy.Prediction(sparql=TREES)) == 1.0


def test_a_prediction_with_another_field_is_not_a_wrong_answer(metric: ExecutionMetric) -> None:
    for wrong in (dspy.Prediction(query=TREES), TREES):
        with pytest.raises(UsageError, match="no field sparql"):
            metric(example(), wrong)


def test_bag_and_order_of_the_task_count(metric: ExecutionMetric) -> None:
    gold = "SELECT ?h { ?p t:height ?h } ORDER BY ?h"
    falling = dspy.Prediction(sparql="SELECT ?h { ?p t:height ?h } ORDER BY DESC(?h)")
    assert metric(example(gold), falling) == 1.0
    assert metric(example(gold, ordered=True), falling) == 0.0


def test_row_f1_as_the_score(metric: ExecutionMetric) -> None:
    with pytest.raises(UsageError) as caught:
        ExecutionMetric(metric._judge, score="F1")  # type: ignore[arg-type]
    assert caught.value.code == "unknown-score"
    part = ExecutionMetric(metric._judge, score="f1")
    assert part(example(), dspy.Prediction(sparql=OAK_AND_ASH)) == pytest.approx(0.8)


def test_feedback_has_the_evidence(metric: ExecutionMetric) -> None:
    assert feedback(metric, TREES).startswith("Right")
    few = feedback(metric, OAK_AND_ASH)
    assert "1 of 3 rows missing" in few
    assert "Missing, 1 of 1 rows: t:pine" in few
    many = feedback(metric, "SELECT ?p { ?p rdfs:label ?l }")
    assert "Wrong or too many, 1 of 1 rows: t:moss" in many
    pairs = feedback(metric, TREES, gold="SELECT ?p ?h { ?p t:height ?h }")
    assert "1 of 2 columns missing" in pairs
    assert "the columns ?p ?h; rows: 3" in pairs


def test_feedback_says_why_a_result_is_empty_and_what_fails(metric: ExecutionMetric) -> None:
    assert "t:Tree" in feedback(metric, "SELECT ?p { ?p a t:Treee }").splitlines()[-1]
    counted = feedback(
        metric,
        "SELECT (COUNT(*) AS ?n) { ?p a t:Treee }",
        gold="SELECT (COUNT(*) AS ?n) { ?p a t:Tree }",
    )
    assert "no class t:Treee" in counted
    assert "no class t:Treee" in feedback(
        metric, "ASK { ?p a t:Treee }", gold="ASK { ?p a t:Tree }"
    )
    assert "line 1" in feedback(metric, "SELECT ?p { ?p a t:Tree")
    assert "no query" in feedback(metric, None)
    broken = feedback(metric, TREES, gold="SELECT ?p { ?p a t:Nothing }")
    assert "the gold returns nothing" in broken


def scripted(*queries: str) -> dspy.Module:
    program = dspy.Predict("question -> sparql")
    program.set_lm(DummyLM([{"sparql": query} for query in queries]))
    return program


def test_three_lines_in_evaluate_with_four_threads(make_pack: Callable[..., Path]) -> None:
    pack = make_pack(12)
    tasks = load_shacl_tasks(pack)
    golds = {task.query: task.expected_sparql for task in tasks}

    class Half(dspy.Module):  # type: ignore[misc]
        def forward(self, question: str) -> dspy.Prediction:
            right = question in sorted(golds)[:6]
            return dspy.Prediction(sparql=golds[question] if right else OAK_AND_ASH)

    with open_metric(pack) as metric:
        found = dspy.Evaluate(devset=to_examples(tasks), metric=metric, num_threads=4)(Half())
        again = [metric(one, prediction) for one, prediction, _ in found.results]
    assert [score for *_, score in found.results] == again
    assert {type(score) for *_, score in found.results} == {float}
    assert found.score == 50


def test_bootstrap_few_shot_keeps_only_right_traces(
    make_pack: Callable[..., Path],
) -> None:
    pack = make_pack(3)
    examples = to_examples(load_shacl_tasks(pack))
    replies = [examples[0].sparql, TREES + " LIMIT 0", examples[2].sparql]
    with open_metric(pack) as metric:
        optimizer = dspy.BootstrapFewShot(metric=metric, max_labeled_demos=0)
        compiled = optimizer.compile(scripted(*replies), trainset=examples)
    assert [demo.question for demo in compiled.demos] == [
        examples[0].question,
        examples[2].question,
    ]


def test_gepa_reads_the_feedback(make_pack: Callable[..., Path]) -> None:
    pack = make_pack(4)
    examples = to_examples(load_shacl_tasks(pack))
    program = dspy.Predict("question -> sparql")
    program.set_lm(DummyLM([{"sparql": "SELECT ?p { ?p a t:Treee }"}] * 40))
    reflection = DummyLM([{"new": "```\nWrite t:Tree.\n```"}] * 20)
    with open_metric(pack) as metric:
        optimizer = dspy.GEPA(metric, max_metric_calls=12, reflection_lm=reflection, num_threads=2)
        optimizer.compile(program, trainset=examples, valset=examples)
    prompts = [str(call["messages"] or call["prompt"]) for call in reflection.history]
    assert prompts
    assert all("no class t:Treee" in prompt for prompt in prompts)
