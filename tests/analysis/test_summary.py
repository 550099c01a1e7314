"""Summaries count what they say they count."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reasoningbank.analysis import summarise
from reasoningbank.analysis.statistics import clopper_pearson, wilson
from reasoningbank.experiment import RunFolder, TrialKey, TrialRecord
from reasoningbank.trajectory import Trajectory, Usage

RESULTS = Path(__file__).parents[2] / "experiments" / "results"


def trial(
    arm: str, task: str, strict: bool | None, status: str = "submitted", seed: int = 0, **rest: Any
) -> TrialRecord:
    verdict = None if strict is None else {"strict": strict, "f1": 1.0 if strict else 0.5}
    fields: dict[str, Any] = {
        "key": TrialKey(arm, task, seed),
        "question": "?",
        "complexity": "simple",
        "form": "SELECT",
        "group": "g",
        "status": status,
        "sparql": "ASK {}",
        "answer": "",
        "error": "",
        "verdict": verdict,
        "usage": Usage(prompt_tokens=100, completion_tokens=20, seconds=2.0),
        "trajectory": Trajectory(),
        "started": "2026-01-01T00:00:00+00:00",
        "model": {},
    }
    return TrialRecord(**{**fields, **rest})


def test_infrastructure_errors_are_distinguished_and_bounded() -> None:
    trials = [trial("a", "1", True), trial("a", "2", False), trial("a", "3", None, "error")]
    (arm,) = summarise(trials).arms
    assert (arm.trials, arm.judged, arm.errors, arm.strict) == (3, 2, 1, 1)
    assert arm.rate.rate == arm.mean.rate == 0.5
    assert (arm.worst_case, arm.best_case) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert arm.f1 == 0.75
    assert arm.statuses == {"submitted": 2, "error": 1}
    assert arm.tokens == (120.0, 120.0)


def test_a_defective_gold_counts_neither_way() -> None:
    broken = {"strict": False, "f1": 0.0, "status": "gold_defect"}
    (arm,) = summarise([trial("a", "1", True), trial("a", "2", False, verdict=broken)]).arms
    assert (arm.judged, arm.defective, arm.errors) == (1, 1, 0)
    assert (arm.worst_case, arm.rate.rate, arm.best_case) == (1.0, 1.0, 1.0)


def test_one_run_a_task_has_wilsons_interval_and_several_the_tasks() -> None:
    once = [trial("a", str(n), n < 6) for n in range(20)]
    (arm,) = summarise(once).arms
    assert (arm.mean.low, arm.mean.high) == (wilson(6, 20).low, wilson(6, 20).high)
    # Three runs alike a task say no more than one: an interval of 60 trials would be too narrow.
    thrice = [replace(t, key=replace(t.key, seed=seed)) for t in once for seed in range(3)]
    (arm,) = summarise(thrice).arms
    assert (arm.judged, arm.tasks, arm.seeds, arm.strict) == (60, 20, 3, 18)
    assert arm.mean.method == arm.rate.method == "bootstrap over tasks"
    assert arm.mean.high - arm.mean.low > 0.9 * (wilson(6, 20).high - wilson(6, 20).low)
    grouped = [replace(t, group=f"g{int(t.key.task) % 10}") for t in thrice]
    (arm,) = summarise(grouped, unit="group").arms
    assert arm.mean.method == "exact bound over groups", "six of ten groups are alike"


def test_tasks_weigh_alike_however_often_they_were_run() -> None:
    trials = [trial("a", "1", True, seed=seed) for seed in range(3)] + [trial("a", "2", False)]
    (arm,) = summarise(trials).arms
    assert arm.rate.rate == 0.75
    assert arm.mean.rate == 0.5


@pytest.mark.parametrize(("metric", "expected"), [("strict", 0.5), ("f1", 0.75), ("lenient", 1)])
def test_the_primary_metric(metric: Any, expected: float) -> None:
    trials = [
        trial(
            "a", str(n), n < 4, verdict={"strict": n < 4, "lenient": True, "f1": (n < 4) / 2 + 0.5}
        )
        for n in range(8)
    ]
    summary = summarise(trials, metric=metric)
    assert (summary.metric, summary.arms[0].mean.rate) == (metric, pytest.approx(expected))
    assert summary.arms[0].rate.rate == 0.5


def test_pass_at_k_and_pass_all_k() -> None:
    runs = {"1": [True, True, False], "2": [False, False, False], "3": [True, True]}
    trials = [trial("a", t, s, seed=n) for t, rs in runs.items() for n, s in enumerate(rs)]
    (arm,) = summarise(trials).arms
    two, three = arm.passes
    # Of the three pairs of task 1, all hold a success and one is all successes.
    assert (two.k, two.tasks, two.one, two.all) == (
        2, 3, pytest.approx((1 + 0 + 1) / 3), pytest.approx((1 / 3 + 0 + 1) / 3),
    )  # fmt: skip
    assert (three.k, three.tasks, three.one, three.all) == (3, 2, 0.5, 0.0)


def test_dollars_cached_calls_and_tries() -> None:
    trials = [
        trial("a", "1", True, usage=Usage(lm_calls=2, dollars=0.25, seconds=1), tries=3),
        trial("a", "2", True, usage=Usage(lm_calls=1, cached_calls=4, dollars=0.75, seconds=1)),
        trial("a", "3", None, "error", usage=Usage(lm_calls=1, seconds=9)),
    ]
    (arm,) = summarise(trials).arms
    assert (arm.dollars, arm.unpriced, arm.dollars_each[0]) == (1.0, 1, 0.5)
    assert (arm.lm_calls, arm.cached_calls, arm.retried) == (4, 4, 1)
    assert arm.seconds == (1.0, 1.0), "an infrastructure error's time is not the agent's"
    (free,) = summarise([trial("a", "1", True)]).arms
    assert free.dollars is None


def test_other_judges_are_held_against_the_execution_judge() -> None:
    said = [(True, True), (True, False), (False, True), (False, False), (False, False)]
    trials = [
        trial("a", str(n), strict, judgements={"lm:local": {"success": judged, "reason": ""}})
        for n, (strict, judged) in enumerate(said)
    ]
    # A judge that could not say, and a trial that was not judged, are no disagreement.
    trials += [trial("a", "x", True, judgements={"lm:local": {"success": None}})]
    trials += [trial("a", "y", None, judgements={"lm:local": {"success": True}})]
    summary = summarise(trials)
    found = summary.arms[0].judges["lm:local"]
    assert (found.true_positives, found.false_positives, found.n) == (1, 1, 5)
    reported = summary.to_json()["arms"][0]["judges"]["lm:local"]
    assert reported["kappa"] == pytest.approx((0.6 - 0.52) / (1 - 0.52))


def test_the_stated_comparison_comes_first_and_the_others_are_corrected() -> None:
    def arm(name: str, right: int) -> list[TrialRecord]:
        return [trial(name, str(n), n < right) for n in range(20)]

    records = [*arm("base", 2), *arm("new", 12), *arm("x", 9), *arm("y", 2)]
    summary = summarise(records, comparison=("new", "base"))
    stated = summary.comparison
    assert stated is not None
    assert (stated.first, stated.second, stated.family) == ("new", "base", 1)
    assert stated.p == stated.p_holm == pytest.approx(1 / 1024)
    assert [(c.first, c.second, c.family) for c in summary.others] == [
        ("x", "base", 2), ("y", "base", 2),
    ]  # fmt: skip
    assert summary.others[0].p_holm == pytest.approx(2 * summary.others[0].p)
    claimed = summarise(records, comparison=("new", "base"), claims=[("x", "base")])
    assert [(c.first, c.family) for c in claimed.claims] == [("x", 1)]
    assert [(c.first, c.family) for c in claimed.others] == [("y", 1)], "no pair is reported twice"
    assert [a.arm for a in summarise(records, ["y", "new"]).arms] == ["y", "new", "base", "x"]


def test_no_comparison_where_an_arm_has_no_trials() -> None:
    assert summarise([trial("a", "1", True)], comparison=("a", "b")).comparison is None
    assert summarise([trial("a", "1", True)]).others == ()
    assert summarise([]).arms == ()


def test_an_arm_of_errors_alone_is_shown_and_not_compared() -> None:
    records = [trial("a", "1", None, "error"), trial("b", "1", True)]
    summary = summarise(records, comparison=("a", "b"))
    assert summary.comparison is None
    broken = summary.arms[0]
    assert (broken.judged, broken.worst_case, broken.best_case) == (0, 0.0, 1.0)
    assert (broken.rate.low, broken.rate.high) == (0.0, 1.0)
    json.dumps(summary.to_json(), allow_nan=False)


def test_records_are_read_one_at_a_time() -> None:
    alive = 0

    class Held(TrialRecord):
        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    def many() -> Iterator[TrialRecord]:
        nonlocal alive
        for n in range(50):
            alive += 1
            record = trial("a", str(n), True)
            yield Held(**{k: getattr(record, k) for k in record.__dataclass_fields__})
            del record
            assert alive <= 2

    assert summarise(many()).arms[0].judged == 50


def test_a_learning_stream_has_orders_for_replicates() -> None:
    def stream(arm: str, orders: list[list[bool]]) -> list[TrialRecord]:
        return [
            trial(arm, str(step), right, seed=seed, step=step)
            for seed, order in enumerate(orders)
            for step, right in enumerate(order)
        ]

    learner = stream("learner", [[False, True, True, True], [True, True, True, True],
                                 [False, True, False, True]])  # fmt: skip
    base = stream("base", [[False, False, False, True], [False, False, True, False],
                           [False, False, False, False]])  # fmt: skip
    learner = [replace(t, memory=f"b{t.key.seed}{t.step}") for t in learner]
    summary = summarise([*learner, *base], comparison=("learner", "base"))
    assert (summary.arms, summary.comparison) == ((), None), "practice claims nothing"
    assert summary.online is not None
    assert summary.online.arms[0].mean.method == "Student's t over task permutations"
    assert summary.online.arms[0].passes == ()
    (found,) = summary.online.comparisons
    # Orders' differences are 1/2, 3/4 and 1/2: t = 7 with two degrees of freedom.
    assert (found.first, found.second) == ("learner", "base")
    assert (found.unit, found.difference) == ("permutation", pytest.approx(7 / 12))
    assert found.p == pytest.approx(0.0198, abs=1e-4)
    short = summarise([*learner[:4], *base[:4]], comparison=("learner", "base"))
    alone = short.online
    assert alone is not None
    assert not alone.comparisons[0].resolved
    assert "(no CI)" in alone.comparisons[0].sentence()
    assert math.isnan(alone.arms[0].mean.low)
    json.dumps(short.to_json(), allow_nan=False)
    online = summarise([*learner, trial("plain", "1", True)]).online
    assert online is not None
    assert list(online.curves) == ["learner"]
    assert online.curves["learner"].mean == pytest.approx((1 / 3, 2 / 3, 2 / 3, 0.75))


@pytest.mark.parametrize("run", ["uniprot_baseline", "uniprot_floor", "uniprot_tools"])
def test_committed_records_of_an_earlier_version_are_summarised(run: str) -> None:
    folder = RunFolder(RESULTS / run)
    manifest = folder.manifest or {}
    pair = manifest["experiment"]["comparison"]
    summary = summarise(folder.trials(), comparison=(pair[0], pair[1]), unit="group")
    assert summary.comparison is not None
    assert "unresolved" in summary.comparison.sentence()
    reported = json.loads(json.dumps(summary.to_json(), allow_nan=False))
    assert sum(arm["trials"] for arm in reported["arms"]) == sum(1 for _ in folder.trials())


def test_with_groups_nothing_seen_is_bounded_by_groups() -> None:
    trials = [trial("a", str(n), False, group=f"g{n % 5}") for n in range(20)]
    (arm,) = summarise(trials, unit="group").arms
    assert arm.mean.high == pytest.approx(clopper_pearson(0, 5).high)
