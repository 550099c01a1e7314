"""Figures show the numbers of the summary, whole, and leave global state alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from reasoningbank.analysis import Frames, load, summarise
from reasoningbank.analysis.figures import (
    FIGURES,
    NARROW,
    WIDTH,
    Chart,
    arms,
    cost,
    judges,
    learning,
    outcomes,
    paired,
)
from reasoningbank.analysis.figures.canvas import COLOURS
from reasoningbank.analysis.figures.process import follow
from reasoningbank.experiment import RunFolder
from reasoningbank.judge.agreement import agreement

from .runs import frames_of, write_large

COMMITTED = Path(__file__).resolve().parents[3] / "experiments" / "results"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Frames, Mapping[str, Any]]:
    return frames_of(
        write_large(tmp_path_factory.mktemp("large") / "run", tasks=40, seeds=2, learning=True)
    )


@pytest.fixture(scope="module")
def committed() -> tuple[Frames, Mapping[str, Any]]:
    frames = load(COMMITTED / "uniprot_tools")
    return frames, frames.manifests["uniprot_tools"]


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> tuple[Frames, Mapping[str, Any]]:
    folder = write_large(tmp_path_factory.mktemp("wide") / "run", tasks=260, arms=2, seeds=1)
    return frames_of(folder)


def outside_the_view(chart: Chart) -> Iterator[Text]:
    """Yield labels of ticks that are there and are not drawn."""
    for axes in chart.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in axis.get_major_ticks():
                if not low <= tick.get_loc() <= high:
                    yield tick.label1


def cut_off(chart: Chart) -> list[str]:
    """Return the texts that do not lie whole inside the figure."""
    canvas = FigureCanvasAgg(chart)
    canvas.draw()
    whole = chart.bbox.padded(0.5)
    hidden = set(map(id, outside_the_view(chart)))
    texts = [t for t in chart.findobj(Text) if t.get_visible() and t.get_text().strip()]
    texts = [text for text in texts if id(text) not in hidden]
    assert texts
    boxes = [(t.get_text(), t.get_window_extent()) for t in texts]
    return [
        text
        for text, box in boxes
        if box.x0 < whole.x0 or box.x1 > whole.x1 or box.y0 < whole.y0 or box.y1 > whole.y1
    ]


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("run", ["large", "wide", "committed"])
@pytest.mark.parametrize("width", [WIDTH, NARROW])
def test_nothing_is_cut_off(
    name: str, run: str, width: float, request: pytest.FixtureRequest
) -> None:
    frames, manifest = request.getfixturevalue(run)
    before = dict(mpl.rcParams)
    chart = FIGURES[name].draw(frames, manifest, width)
    if chart is None:
        assert (run, name) in {
            ("wide", "learning"),
            ("wide", "bank"),
            ("committed", "bank"),
            ("committed", "learning"),
            ("committed", "judges"),
            *((kind, "levels") for kind in ("large", "wide", "committed")),
            *((kind, "learning_levels") for kind in ("large", "wide", "committed")),
        }
        return
    assert cut_off(chart) == []
    assert chart.title
    assert chart.description.endswith((".", ".)"))
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("dpi", [72, 150])
def test_a_figure_that_was_laid_out_is_whole_at_any_size(
    wide: tuple[Frames, Mapping[str, Any]], dpi: int
) -> None:
    chart = paired(*wide)
    assert chart is not None
    chart.settle()
    chart.set_dpi(dpi)
    assert cut_off(chart) == []


def test_long_names_leave_room_for_the_drawing(tmp_path: Path) -> None:
    names = ("the-agent-with-everything-that-could-be-thought-of-" * 2) + "1", "short"
    folder = write_large(tmp_path / "run", names=names, tasks=8, seeds=2, learning=True)
    frames, manifest = frames_of(folder)
    for name, entry in FIGURES.items():
        chart = entry.draw(frames, manifest)
        if name in ("levels", "learning_levels"):
            continue
        assert chart is not None
        assert cut_off(chart) == []
        shown = [axes for axes in chart.axes if axes.get_visible()]
        assert min(axes.bbox.width for axes in shown) > 0.2 * chart.bbox.width


@pytest.mark.parametrize("name", FIGURES)
def test_a_run_without_trials_has_nothing_to_draw(name: str, tmp_path: Path) -> None:
    folder = write_large(tmp_path / "run", arms=2, tasks=0)
    assert FIGURES[name].draw(*frames_of(folder)) is None


def test_arms_and_comparison_are_those_of_the_summary(tmp_path: Path) -> None:
    folder = write_large(tmp_path / "run", arms=3, tasks=20, seeds=2, unit="group")
    frames, manifest = frames_of(folder)
    names = [arm["name"] for arm in manifest["experiment"]["arms"]]
    summary = summarise(
        folder.trials(), names, tuple(manifest["experiment"]["comparison"]), unit="group"
    )
    chart = arms(frames, manifest)
    assert chart is not None
    for arm in summary.arms:
        interval = arm.mean
        said = f"{arm.arm} {interval.rate:.2f} (95% CI {interval.low:.2f} to "
        assert said in chart.description
    against = paired(frames, manifest)
    assert against is not None
    assert summary.comparison is not None
    assert summary.comparison.sentence() in against.description


def test_only_tasks_that_tell_the_arms_apart_have_a_line(
    wide: tuple[Frames, Mapping[str, Any]],
) -> None:
    chart = paired(*wide)
    assert chart is not None
    labels = [label.get_text() for label in chart.axes[0].get_yticklabels()]
    assert len(labels) == 41
    assert "smaller differences are not shown" in chart.axes[0].get_xlabel()


def test_outcomes_count_every_held_out_trial(large: tuple[Frames, Mapping[str, Any]]) -> None:
    frames, manifest = large
    chart = outcomes(frames, manifest)
    assert chart is not None
    counts = frames.trials[frames.trials["step"].isna()]["outcome"].value_counts()
    for outcome, n in counts.items():
        assert f"{n} {outcome}" in chart.description


def test_a_judge_is_set_against_the_execution_judge(
    large: tuple[Frames, Mapping[str, Any]],
) -> None:
    frames, manifest = large
    chart = judges(frames, manifest)
    assert chart is not None
    keys = ["run", "arm", "task", "seed"]
    steps = frames.trials[frames.trials["step"].notna()][keys]
    own = frames.judgements.merge(steps, on=keys)
    own = own[own["judge"] == "lm:local"]
    found = agreement(zip(own["strict"], own["success"], strict=True))
    assert f"lm:local on {found.n} trials: Cohen's kappa {found.kappa:.2f}" in chart.description
    assert "lm:b" in chart.description


def test_learning_curves_end_at_the_mean_of_all_orders(
    large: tuple[Frames, Mapping[str, Any]],
) -> None:
    frames, manifest = large
    chart = learning(frames, manifest)
    assert chart is not None
    judged = frames.trials[frames.trials["judged"] & (frames.trials["arm"] == "rlm-memory")]
    judged = judged[judged["step"].notna()]
    by_order = judged.groupby("seed")["strict"].mean()
    assert f"rlm-memory: {by_order.mean():.2f} (" in chart.description


def test_learning_needs_places_in_a_stream(wide: tuple[Frames, Mapping[str, Any]]) -> None:
    assert learning(*wide) is None


def test_tools_that_follow_each_other_are_counted_within_trials(
    committed: tuple[Frames, Mapping[str, Any]],
) -> None:
    calls = committed[0].tool_calls
    flows = follow(calls)
    trials = calls.groupby(["run", "arm", "task", "seed"]).ngroups
    assert sum(n for (before, _), n in flows.items() if before == "start") == trials
    assert sum(n for (_, after), n in flows.items() if after == "end") == trials
    assert flows.total() == len(calls) + trials


def test_arms_of_several_runs_do_not_mix() -> None:
    frames = load([COMMITTED / "uniprot_baseline", COMMITTED / "uniprot_tools"])
    chart = arms(frames, {})
    assert chart is not None
    assert [t.get_text() for t in chart.axes[0].get_yticklabels()] == [
        "direct",
        "rlm (uniprot_baseline)",
        "react",
        "rlm (uniprot_tools)",
    ]


def test_old_manifests_without_arms_still_draw() -> None:
    frames = load(RunFolder(COMMITTED / "uniprot_baseline"))
    drawn = {name for name, entry in FIGURES.items() if entry.draw(frames, {}) is not None}
    assert drawn == {"paired", "arms", "outcomes", "matrix", "cost", "tools"}


def test_an_arm_has_one_colour_in_every_figure(large: tuple[Frames, Mapping[str, Any]]) -> None:
    expected = dict(zip([arm["name"] for arm in large[1]["experiment"]["arms"]], COLOURS))  # noqa: B905
    for name in ("learning", "bank"):
        chart = FIGURES[name].draw(*large)
        assert chart is not None
        shown = {t.get_text().rsplit(" ", 1)[0]: t.get_color() for t in chart.axes[0].texts}
        assert shown == expected, name
    for name in ("arms", "cost"):
        chart = FIGURES[name].draw(*large)
        assert chart is not None
        axes = chart.axes[0]
        dotted = [line.get_color() for line in axes.lines if line.get_marker() == "o"]
        names = [label.get_text() for label in axes.get_yticklabels()]
        assert dict(zip(names, dotted, strict=True)) == expected, name


def test_the_cost_of_an_agent_that_asks_no_model_is_zero() -> None:
    frames = load(COMMITTED / "uniprot_floor")
    chart = cost(frames, frames.manifests["uniprot_floor"])
    assert chart is not None
    axes = chart.axes[0]
    assert axes.texts[0].get_text() == "0 tokens"
    chart.settle()
    ticks = [t for t in axes.get_xticklabels() if t.get_text()]
    assert ticks[0].get_text() == "0"
    boxes = [tick.get_window_extent() for tick in ticks]
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("ground", ["#ffffff", "#16181d"])
def test_colours_stand_out_in_light_and_dark(colour: str, ground: str) -> None:
    def luminance(code: str) -> float:
        parts = [int(code[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(colour), luminance(ground)), reverse=True)
    # WCAG 2.2, 1.4.11: graphics need 3:1.
    assert (light + 0.05) / (dark + 0.05) >= 3
