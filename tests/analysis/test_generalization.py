"""Levels along a stream, and the causes of i.i.d. failures, from records alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from learned_run import item, records, shown, trial, write

from reasoningbank.analysis import load, summarise_run
from reasoningbank.analysis.figures import learning_levels
from reasoningbank.analysis.memory import CAUSES, cause_of_failure, stream_levels
from reasoningbank.analysis.tables import tables_of
from reasoningbank.experiment import RunFolder

HEIGHT = "PREFIX t: <http://e/> SELECT ?h WHERE { t:oak t:height ?h }"
TALLER = "PREFIX t: <http://e/> SELECT ?x WHERE { ?x t:height ?h . FILTER(?h > 3) }"
AGE = "PREFIX t: <http://e/> SELECT ?a WHERE { t:oak t:age ?a }"
RESULTS = Path(__file__).resolve().parents[2] / "experiments" / "results"


def test_a_level_is_relative_to_the_earlier_tasks_of_the_same_permutation() -> None:
    golds = {"a": HEIGHT, "b": HEIGHT.replace("oak", "ash"), "c": TALLER, "d": AGE}
    places = [(0, at, task) for at, task in enumerate("abcd")]
    places += [(1, at, task) for at, task in enumerate("dcba")]
    found = stream_levels(places, golds)
    levels = {seed: [found[seed, task] for task in "abcd"] for seed in (0, 1)}
    assert levels[0] == ["zero-shot", "iid", "compositional", "zero-shot"]
    assert levels[1] == ["iid", "compositional", "zero-shot", "zero-shot"]
    assert stream_levels([(0, 0, "d")], golds, ["SELECT ?n { <<tree>> t:age ?n }"]) == {
        (0, "d"): "iid"
    }
    assert stream_levels([(0, 0, "old")], {"old": ""}) == {}


@pytest.mark.parametrize(
    ("pattern", "sparql", "cause"),
    [
        (AGE, HEIGHT, CAUSES[0]),
        ("SELECT ?n { <<tree>> t:height ?n }", AGE, CAUSES[1]),
        ("SELECT ?n { <<tree>> t:height ?n }", None, CAUSES[1]),
        (HEIGHT, HEIGHT.replace("oak", "ash"), CAUSES[2]),
    ],
)
def test_a_failure_has_one_cause(pattern: str, sparql: str | None, cause: str) -> None:
    made = trial("learned", "h0", 0, False, gold=HEIGHT, sparql=sparql, level="iid",
                 trajectory=shown(item("m", "s1")))  # fmt: skip
    assert cause_of_failure(made, {"m": pattern}) == cause
    right = trial("learned", "h0", 0, True, gold=HEIGHT, level="iid", trajectory=made.trajectory)
    assert cause_of_failure(right, {"m": pattern}) is None
    assert cause_of_failure(trial("none", "h0", 0, False, level="iid"), {}) is None


def test_summary_frames_and_figures_have_the_levels_of_streams(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", list(records()))
    summary = summarise_run(folder)
    online = summary.online
    assert online is not None
    in_stream = load(folder).trials.dropna(subset=["step"])
    for one in online.levels:
        own = in_stream[(in_stream["arm"] == one.arm) & (in_stream["level"] == one.level)]
        assert (len(own), own["strict"].sum()) == (one.judged, one.strict)
        curve = online.level_curves[one.level][one.arm]
        means = own.groupby("seed")["strict"].mean()
        assert curve.mean[-1] == pytest.approx(means.mean())
    table = tables_of(summary)["stream levels"]
    assert {row[0] for row in table.rows} == {"iid", "zero-shot"}
    frames = load(folder)
    chart = learning_levels(frames, frames.manifests[folder.path.name])
    assert chart is not None
    assert [axes.get_ylabel() for axes in chart.axes] == ["iid\nso far", "zero-shot\nso far"]


def test_each_iid_failure_of_an_arm_with_memory_has_a_cause() -> None:
    summary = summarise_run(RunFolder(RESULTS / "uniprot_practised"))
    table = tables_of(summary)["failures"]
    assert table.headers == ("arm", "n", "wrong", *CAUSES)
    assert table.rows == [
        ("examples", "50", "32", "31", "1", "0"),
        ("learned", "50", "9", "6", "3", "0"),
    ]
    iid = {one.arm: one for one in summary.levels if one.level == "iid"}
    counts = {arm: [*map(int, rest)] for arm, *rest in table.rows}
    for arm, (n, wrong, *causes) in counts.items():
        assert (n, n - wrong) == (iid[arm].judged, iid[arm].strict)
        assert sum(causes) == wrong > 0
