"""Two runs are compared on what is the same in both, and on nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reasoningbank.analysis import compare_runs
from reasoningbank.errors import UsageError
from reasoningbank.experiment import RunFolder, TrialKey, TrialRecord
from reasoningbank.trajectory import Trajectory, Usage

Make = Callable[..., RunFolder]
RESULTS = Path(__file__).parents[2] / "experiments" / "results"


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Return what writes a run: for each arm, which of its tasks it solved."""

    def write(name: str, arms: dict[str, dict[str, bool]], **rest: Any) -> RunFolder:
        folder = RunFolder(tmp_path / name)
        said = {"name": "direct", "agent": "direct", "lm": "local", **rest.get("arm", {})}
        folder.write_manifest(
            {
                "experiment": {"name": name, "metric": rest.get("metric", "strict"),
                               **({"language": rest["language"]} if "language" in rest else {}),
                               **rest.get("settings", {}),
                               "arms": [{**said, "name": arm} for arm in arms]},
                "code": {"commit": "c", "prompts": "1", **rest.get("code", {})},
                "hashes": {"corpus": "c", "store": "s", "models": {"local": {"model": "m1"}},
                           **rest.get("hashes", {})},
                "versions": {"reasoningbank": "0.1.0", **rest.get("versions", {})},
            }
        )  # fmt: skip
        for arm, tasks in arms.items():
            for task, right in tasks.items():
                folder.write(record(arm, task, right, **rest.get("task", {})))
        return folder

    return write


def record(arm: str, task: str, right: bool, **rest: Any) -> TrialRecord:
    verdict = {"strict": right, "f1": float(right), "status": "judged",
               "n_gold": rest.pop("n_gold", 3)}  # fmt: skip
    return TrialRecord(
        key=TrialKey(arm, task, 0), question=rest.get("question", f"{task}?"),
        complexity="simple", form="SELECT", group=task, status="submitted", sparql="ASK {}",
        answer="", error="", verdict=verdict, usage=Usage(), trajectory=Trajectory(),
        started="2026-01-01T00:00:00+00:00", model={}, gold=rest.get("gold", f"# {task}"),
    )  # fmt: skip


def test_the_tasks_on_which_arms_differ_are_named_with_their_trials(make: Make) -> None:
    one = make("one", {"a": {"t1": True, "t2": False, "t3": True}})
    two = make("two", {"a": {"t1": True, "t2": True, "t3": False, "t4": True}})
    found = compare_runs(one, two)
    ((lost, won),) = found.differing
    assert (lost.task, lost.question, lost.first, lost.second) == ("t2", "t2?", 0.0, 1.0)
    assert (won.task, won.trials) == ("t3", (TrialKey("a", "t3", 0), TrialKey("a", "t3", 0)))
    (pair,) = found.comparisons
    assert (pair.first_better, pair.second_better) == (1, 1)
    assert found.to_json()["differing"][0][1]["task"] == "t3"


def tasks(n: int, right: int = 0, start: int = 0) -> dict[str, bool]:
    return {f"t{k:02}": k < right for k in range(start, n)}


def test_each_arm_of_the_same_name_is_compared(make: Make) -> None:
    one = make("one", {"a": tasks(10, 9), "b": tasks(10, 1), "mine": tasks(10)})
    two = make("two", {"a": tasks(10, 1), "b": tasks(10, 1), "theirs": tasks(10)})
    found = compare_runs(one, two)
    assert [(c.first, c.second, c.resolved) for c in found.comparisons] == [
        ("one:a", "two:a", True), ("one:b", "two:b", False),
    ]  # fmt: skip
    assert {c.family for c in found.comparisons} == {2}
    assert found.unpaired == ("one:mine", "two:theirs")
    assert (found.shared, found.only_first, found.only_second, found.notes) == (10, 0, 0, ())
    json.dumps(found.to_json(), allow_nan=False)


def test_two_arms_of_one_run(make: Make) -> None:
    one = make("one", {"a": tasks(10, 9), "b": tasks(10, 1)})
    (found,) = compare_runs(one, one, arm="a", against="b").comparisons
    assert (found.first, found.second, found.difference) == ("a", "b", pytest.approx(0.8))


def test_only_shared_tasks_are_compared_and_the_others_counted(make: Make) -> None:
    one = make("one", {"a": tasks(12, 12)}, hashes={"corpus": "c1"})
    two = make("two", {"a": tasks(15, 0, start=4)}, hashes={"corpus": "c2"})
    found = compare_runs(one, two)
    assert (found.shared, found.only_first, found.only_second) == (8, 4, 3)
    assert found.comparisons[0].tasks == 8
    assert found.comparisons[0].left_out == 0, "what a run lacks is reported apart"
    assert any("selections of tasks differ" in note for note in found.notes)


@pytest.mark.parametrize(
    ("task", "what"),
    [
        ({"question": "another?"}, "question"),
        ({"gold": "# other"}, "gold query"),
        ({"n_gold": 4}, "size of the gold result"),
    ],
)
@pytest.mark.parametrize("part", ["corpus", "store", "neither"])
def test_tasks_that_are_not_the_same_are_refused(
    make: Make, task: dict[str, Any], what: str, part: str
) -> None:
    one = make("one", {"a": tasks(10)})
    two = make("two", {"a": tasks(10)}, hashes={part: "other"}, task=task)
    with pytest.raises(UsageError) as reported:
        compare_runs(one, two)
    assert reported.value.code == "different-tasks"
    assert reported.value.finding.fields["tasks"] == {f"t{n:02}": what for n in range(10)}
    assert "and 7 more" in str(reported.value)


def test_questions_in_two_languages_are_compared_by_their_golds(make: Make) -> None:
    hashes = {"corpus": "other"}
    english = make("english", {"rag": tasks(4, 1)})
    italian = make(
        "italian", {"rag": tasks(4, 3)}, hashes=hashes, task={"question": "Quali?"}, language="it"
    )
    found = compare_runs(italian, english)
    assert found.comparisons[0].difference == 0.5
    assert "questions in it against en, of the same gold queries" in found.notes
    other = make(
        "other", {"rag": tasks(4)}, hashes=hashes, language="it",
        task={"question": "Quali?", "gold": "ASK { ?s ?p 1 }"},
    )  # fmt: skip
    with pytest.raises(UsageError, match="gold query"):
        compare_runs(other, english)
    without = make(
        "without", {"rag": tasks(4)}, hashes=hashes, language="it",
        task={"question": "Quali?", "gold": ""},
    )  # fmt: skip
    with pytest.raises(UsageError, match="question"):
        compare_runs(without, english)


def test_a_gold_that_an_old_record_lacks_is_not_a_difference(make: Make) -> None:
    one = make("one", {"a": tasks(4)}, task={"gold": ""}, hashes={"store": "old"})
    found = compare_runs(one, make("two", {"a": tasks(4)}))
    assert found.notes == ("the stores differ; the shared tasks' gold results have the same sizes",)


def test_what_else_differs_is_noted(make: Make) -> None:
    one = make("one", {"a": tasks(4)})
    two = make(
        "two", {"a": tasks(4)}, arm={"lm": "local", "judge_lm": "openai/x", "temperature": 0.7},
        hashes={"models": {"local": {"model": "m2"}}, "prompts": {"demonstrations": "d"}},
        versions={"reasoningbank": "0.2.0"},
    )  # fmt: skip
    assert compare_runs(one, two).notes == (
        "a: models differ (m1; m2)",
        "demonstrations or other prompts differ",
        "versions differ: reasoningbank 0.1.0 / 0.2.0, including the judge of reasoningbank",
    )
    three = make("three", {"a": tasks(4)}, arm={"lm": "local", "agent": "rlm"})
    assert compare_runs(one, three).notes == ("a: settings differ: agent",)
    four = make(
        "four", {"a": tasks(4)}, settings={"leave_out": "none", "level": "iid"},
        code={"commit": "d", "prompts": "2"}, hashes={"memory": {"stream": "s"}},
    )  # fmt: skip
    assert compare_runs(one, four).notes == (
        "a: settings differ: leave_out, level",
        "banks, stream or hints differ",
        "versions differ: commit c / d, prompts 1 / 2",
    )
    # The pre-registered comparison is at one level.
    assert len(compare_runs(four, one).notes) == 4


def test_metric_and_unit_are_the_first_runs_unless_named(make: Make) -> None:
    one = make("one", {"a": tasks(8, 7)}, metric="f1")
    two = make("two", {"a": tasks(8)})
    assert compare_runs(one, two).metric == "f1"
    named = compare_runs(one, two, metric="lenient", unit="group")
    assert (named.metric, named.unit) == ("lenient", "group")
    assert named.comparisons[0].unit == "group"


def test_a_damaged_record_is_left_out_and_reported(make: Make) -> None:
    one = make("one", {"a": tasks(8)})
    (one.path / "trials" / "a" / "t03.0.json").write_text("{", encoding="utf-8")
    found = compare_runs(one, make("two", {"a": tasks(8)}))
    assert found.notes == ("one: 1 unreadable file left out",)
    assert (found.shared, found.only_second) == (7, 1)


def test_what_cannot_be_compared_is_reported_in_one_line(make: Make, tmp_path: Path) -> None:
    one = make("one", {"a": tasks(4)})
    cases: list[tuple[RunFolder, dict[str, str], str]] = [
        (RunFolder(tmp_path / "none"), {}, "usage"),
        (make("two", {"b": tasks(4)}), {}, "no-shared-arm"),
        (make("three", {"a": tasks(9, 0, 5)}), {}, "no-shared-task"),
        (one, {}, "same-run"),
        (one, {"arm": "a"}, "same-arm"),
        (one, {"arm": "x"}, "unknown-arm"),
        (one, {"against": "a"}, "no-first-arm"),
    ]
    for other, arms, code in cases:
        with pytest.raises(UsageError) as reported:
            compare_runs(one, other, **arms)  # type: ignore[arg-type]
        assert reported.value.code == code
        # The options of the command line mean nothing to callers from Python and the page.
        assert "--" not in str(reported.value)
    unjudged = make("four", {"a": {}})
    unjudged.write(record("a", "t00", False).__class__(**{**record("a", "t00", False).__dict__,
                                                          "verdict": None}))  # fmt: skip
    found = compare_runs(one, unjudged)
    assert found.comparisons == ()
    assert found.notes == ("a and a have no task that both have judged",)


def test_runs_of_one_name_are_distinguished_by_their_folders(make: Make) -> None:
    one, two = make("x/run", {"a": tasks(4)}), make("y/run", {"a": tasks(4)})
    (found,) = compare_runs(one, two).comparisons
    assert (found.first, found.second) == (f"{one.path}:a", f"{two.path}:a")


def test_committed_runs_of_an_earlier_version() -> None:
    found = compare_runs(
        RunFolder(RESULTS / "uniprot_baseline"), RunFolder(RESULTS / "uniprot_tools")
    )
    assert found.shared == 20
    assert [c.first for c in found.comparisons] == ["uniprot_baseline:rlm"]
    # The second was run on ten of its twenty tasks.
    assert found.comparisons[0].missing == 10
    assert any("stores differ" in note for note in found.notes)


def test_runs_that_go_on_resolve_nothing(make: Make) -> None:
    runs = []
    for name, right in (("one", 12), ("two", 0)):
        folder = make(name, {"a": tasks(12, right)})
        manifest = folder.manifest or {}
        manifest["experiment"]["pack"] = "trees"
        folder.write_manifest({**manifest, "tasks": [f"t{k:02}" for k in range(60)]})
        runs.append(folder)
    (found,) = compare_runs(*runs).comparisons
    assert (found.missing, found.verdict) == (96, "incomplete")
    for folder in runs:
        folder.write_manifest({**(folder.manifest or {}), "tasks": list(tasks(12))})
    (found,) = compare_runs(*runs).comparisons
    assert (found.missing, found.verdict) == (0, "resolved")


def test_a_gold_is_of_one_size_whatever_became_of_the_first_trial(make: Make) -> None:
    hashes = {"hashes": {"corpus": "other"}}
    one = make("one", {"a": tasks(4), "b": tasks(4)})
    two = make("two", {"a": tasks(4), "b": tasks(4)}, **hashes)
    for folder in (one, two):
        first = next(iter(folder.trials()))
        if folder is two:
            # Repeated rows of the gold are counted where no query was compared with them.
            verdict = {**(first.verdict or {}), "status": "query_error", "n_gold": 5}
            folder.write(replace(first, verdict=verdict))
    assert compare_runs(one, two).shared == 4
