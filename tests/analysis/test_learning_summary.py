"""A learning run's summary: streams apart from what is compared, banks, judges, rejections."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from learned_run import HELD_OUT, STREAM, records, rollout, shown, step, trial, verdict, write
from typer.testing import CliRunner

from reasoningbank.analysis import (
    MemoryRecords,
    RunSummary,
    compare_runs,
    load,
    summarise,
    summarise_run,
)
from reasoningbank.analysis.figures import FIGURES
from reasoningbank.analysis.tables import jsonable
from reasoningbank.cli.app import app
from reasoningbank.experiment import RunFolder, TrialRecord
from reasoningbank.trajectory import Usage


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return write(tmp_path_factory.mktemp("learned") / "run")


@pytest.fixture(scope="module")
def summary(run: RunFolder) -> RunSummary:
    return summarise_run(run)


def test_arms_and_comparisons_are_of_held_out_trials_alone(summary: RunSummary) -> None:
    none, learned, control = summary.arms
    assert [arm.trials for arm in summary.arms] == [8, 24, 8]
    assert (learned.tasks, learned.seeds) == (8, 3)
    found = summary.comparison
    assert found is not None
    # A task's runs in three orders are averaged; the arm without memory has one run a task.
    assert (found.tasks, found.runs, found.seeds) == (8, (24, 8), (3, 1))
    assert found.unit == "task"
    assert found.second_mean == none.mean.rate == 1 / 8
    assert found.first_mean == pytest.approx((6 + 2 / 3) / 8)
    assert found.left_out == 0, "the tasks of the stream are no part of it"
    (other,) = summary.others
    assert (other.first, other.runs) == ("random", (8, 8))
    (claim,) = summary.claims
    assert (claim.first, claim.second, claim.runs) == ("learned", "random", (24, 8))
    assert claim.p_holm == claim.p, "a claim is reported as it is"
    # Orders saw different banks: they are no repeats.
    assert learned.passes == ()
    assert control.judges == {}


def test_streams_stand_apart(summary: RunSummary) -> None:
    online = summary.online
    assert online is not None
    none, learned = online.arms
    assert (none.trials, learned.trials, learned.seeds) == (4, 12, 3)
    assert learned.mean.method == "Student's t over task permutations"
    curve = online.curves["learned"]
    assert (curve.permutations, curve.mean[0]) == (3, 1.0)
    assert curve.quarters == pytest.approx((1.0, 0.5, 2 / 3, 7 / 12))
    (found,) = online.comparisons
    # The arm without memory ran one order, which stands for the others: no spread of its own.
    assert (found.unit, found.seeds, found.runs) == ("permutation", (3, 1), (12, 4))
    assert (found.first_mean, found.second_mean) == (pytest.approx(7 / 12), 0.5)
    assert found.difference == pytest.approx((0 + 1 / 4 + 0) / 3)
    assert "(no CI), no test: unresolved" in found.sentence()


def test_an_order_that_was_cut_short_is_not_a_replicate(run: RunFolder) -> None:
    kept = [one for one in run.trials() if one.key.seed < 2 or (one.step or 0) < 1]
    online = summarise(kept, manifest=run.manifest).online
    assert online is not None
    learned = next(arm for arm in online.arms if arm.arm == "learned")
    assert (learned.trials, learned.seeds) == (8, 2)
    assert online.curves["learned"].permutations == 2
    assert online.judges["lm:local"].n == 9, "every attempt that was judged is counted"


def test_what_is_missing_yet_resolves_nothing(run: RunFolder, tmp_path: Path) -> None:
    manifest = json.loads(json.dumps(run.manifest))
    manifest["experiment"]["arms"].append({"name": "gold", "agent": "direct", "memory": "gold"})
    manifest["experiment"]["claims"] += [["learned", "gold"]]
    whole = summarise_run(run)
    assert whole.comparison is not None
    assert (whole.comparison.missing, whole.comparison.verdict) == (0, "unresolved")
    kept = [one for one in run.trials() if one.key.task != HELD_OUT[-1] or one.key.seed < 2]
    folder = write(tmp_path / "run", kept)
    folder.write_manifest(manifest)
    found = summarise_run(folder)
    assert found.comparison is not None
    assert (found.comparison.missing, found.comparison.resolved) == (1, False)
    assert found.comparison.sentence().endswith("incomplete, 1 trial missing")
    assert found.waiting == (("learned", "gold"),)
    # Who comes later counts already: its result must not undo another's.
    assert [(one.first, one.family) for one in found.others] == [("random", 2)]
    *_, waits, all_reported = found.preregistered_lines()
    assert waits.endswith("learned against gold: no task is judged in both yet")
    assert all_reported.startswith("0 of 3 pre-registered pairs resolved")


def test_what_is_missing_at_other_levels_leaves_a_comparison_complete(run: RunFolder) -> None:
    manifest = json.loads(json.dumps(run.manifest))
    manifest["experiment"]["level"] = "iid"
    last, first = HELD_OUT[-1], HELD_OUT[0]
    leveled = [
        replace(one, level="compositional" if one.key.task == last else "iid")
        for one in run.trials()
    ]

    def missing(kept: list[TrialRecord], **known: str) -> int:
        planned = manifest | {"levels": known} if known else manifest
        found = summarise(kept, comparison=("learned", "none"), manifest=planned).comparison
        assert found is not None
        return found.missing

    def without(task: str) -> list[TrialRecord]:
        gone = ("learned", task, 2)
        return [one for one in leveled if (one.key.arm, one.key.task, one.key.seed) != gone]

    assert [missing(without(task)) for task in (last, first, "")] == [0, 1, 0]
    # A task that no arm has answered yet.
    kept = [one for one in leveled if one.key.task != last]
    assert missing(kept) > 0
    assert missing(kept, **{last: "compositional"}) == 0


def test_a_stream_that_goes_on_resolves_nothing(run: RunFolder) -> None:
    manifest = {**json.loads(json.dumps(run.manifest)), "stream": list(STREAM)}
    whole = summarise(run.trials(), manifest=manifest).online
    kept = [one for one in run.trials() if one.key.seed < 2 or (one.step or 0) < 1]
    part = summarise(kept, manifest=manifest).online
    assert whole is not None
    assert part is not None
    assert (whole.comparisons[0].missing, part.comparisons[0].missing) == (0, 3)
    assert part.comparisons[0].sentence().endswith("incomplete, 3 trials missing")


def test_what_the_infrastructure_ended_in_streams_is_counted(run: RunFolder) -> None:
    spoiled = [
        replace(one, status="error", verdict=None) if one.step == 3 and one.key.seed == 1 else one
        for one in run.trials()
    ]
    online = summarise(spoiled, manifest=run.manifest).online
    assert online is not None
    assert (online.errors, online.defective) == (1, 0)
    assert jsonable(online)["errors"] == 1


def test_the_figure_draws_the_orders_that_the_summary_counts(
    run: RunFolder, tmp_path: Path
) -> None:
    kept = [one for one in run.trials() if one.key.seed < 2 or (one.step or 0) < 1]
    folder = write(tmp_path / "run", kept)
    assert folder.manifest is not None
    chart = FIGURES["learning"].draw(load(folder.path), folder.manifest)
    assert chart is not None
    online = summarise_run(folder).online
    assert online is not None
    end = online.curves["learned"].mean[-1]
    assert f"learned: {end:.2f}" in chart.description
    assert "after 4 tasks, 2 task permutations" in chart.description


def test_the_figure_of_a_run_that_goes_on_claims_nothing(run: RunFolder, tmp_path: Path) -> None:
    kept = [one for one in run.trials() if one.key.task != HELD_OUT[-1] or one.key.seed < 2]
    folder = write(tmp_path / "run", kept)
    assert folder.manifest is not None
    chart = FIGURES["paired"].draw(load(folder.path), folder.manifest)
    assert chart is not None
    assert "incomplete, 1 trial missing" in chart.description


def test_a_stream_is_set_against_an_arm_that_is_alike_in_all_but_memory(run: RunFolder) -> None:
    manifest = json.loads(json.dumps(run.manifest))
    arms = manifest["experiment"]["arms"]
    arms[1] |= {"temperature": 0.7}
    assert summarise(run.trials(), manifest=manifest).online.comparisons == ()  # type: ignore[union-attr]
    arms[0] |= {"temperature": 0.7}
    (found,) = summarise(run.trials(), manifest=manifest).online.comparisons  # type: ignore[union-attr]
    assert (found.first, found.second) == ("learned", "none")


def test_what_the_bank_holds_at_the_end(summary: RunSummary) -> None:
    learned, control = summary.memory
    assert (learned.source, control.source) == ("learned", "random of learned")
    bank = learned.banks[1]
    assert (bank.permutation, bank.steps, bank.snapshot) == (1, 4, "b14")
    assert bank.active == {"success": 2}
    assert (bank.superseded, bank.retired, bank.added, bank.merged) == (1, 1, 4, 1)
    assert bank.changes == {"supersede": 1, "retire": 1}
    assert bank.tokens[0] == 100
    assert bank.seconds[0] == 0.5
    (given,) = control.banks
    assert (given.permutation, given.snapshot, given.active) == (None, "b04", {"success": 2})


def test_rejections_are_counted_by_their_reason(summary: RunSummary) -> None:
    # The class differs from order to order, the reason does not.
    reported = {name: n for bank in summary.memory[0].banks for name, n in bank.rejected.items()}
    assert reported == {"unknown-class": 1}


def test_what_was_not_made_of_golds_is_reported(tmp_path: Path) -> None:
    folder = write(tmp_path / "run")
    note = {"version": 1, "arm": "random", "source": "gold", "after": "b04", "added": ["i0", "i1"],
            "rejected": [{"title": "t", "code": "empty-gold", "kind": "gold"}]}  # fmt: skip
    path = folder.path / "learning" / "random.bank.json"
    path.write_text(json.dumps(note))
    (bank,) = summarise_run(folder).memory[1].banks
    assert (bank.added, bank.rejected, bank.steps) == (2, {"empty-gold": 1}, 0)
    path.write_text('{"arm": 3}')
    assert [lost.name for lost, _ in MemoryRecords.read(folder).damaged] == [path.name]


def test_what_memory_showed_and_cost(summary: RunSummary) -> None:
    learned, control = summary.memory
    assert (learned.held_out.trials, learned.streams.trials) == (24, 12)
    assert learned.held_out.shown[0] == 2
    assert learned.held_out.tokens[0] == 80
    # Each stream begins with an empty bank, and what is met in it is no part of what is compared.
    assert (learned.held_out.empty, learned.held_out.filtered_out) == (0, 0)
    assert (learned.streams.empty, learned.streams.filtered_out) == (3, 9)
    assert learned.streams.tokens[0] == 40
    assert (control.held_out.trials, control.held_out.tokens[0]) == (8, 40)
    assert control.streams.trials == 0
    assert [name for name, _ in control.uses] == ["held out"]


def test_trials_with_a_demonstration_are_counted(tmp_path: Path) -> None:
    worked = {"id": "i0", "task": "s1", "trial": "learned/s1.0", "tokens": 700, "text": "Steps"}
    taught = trial(
        "learned", "h3", 1, True, memory="b14", trajectory=shown(demonstrations=[worked])
    )
    kept = [one for one in records() if one.key != taught.key]
    learned, control = summarise_run(write(tmp_path / "run", [*kept, taught])).memory
    assert (learned.held_out.demonstrated, learned.streams.demonstrated) == (1, 0)
    assert control.held_out.demonstrated == 0


def test_judges_are_held_against_execution_over_the_streams(summary: RunSummary) -> None:
    assert summary.online is not None
    lm, rule = (summary.online.judges[name] for name in ("lm:local", "rule"))
    # The model was asked in the learning arm alone, and says yes to everything, as the rule does.
    assert (lm.n, lm.precision, lm.recall, lm.kappa) == (12, 7 / 12, 1.0, 0.0)
    assert (rule.n, rule.true_positives, rule.false_positives) == (16, 9, 7)


def test_the_other_attempts_of_a_trial_are_judged_too() -> None:
    said_no = {"lm:local": {"success": False}}
    rollouts = (
        rollout(1, True, judgements=said_no),
        rollout(2, False, verdict=verdict(False, rows=0), judgements=said_no),
        rollout(3, False, verdict=None),
    )
    sampled = trial("a", "s1", 0, False, step=0, rollouts=rollouts)
    found = summarise([sampled, trial("a", "s2", 0, True, step=1)])
    assert found.online is not None
    lm, rule = (found.online.judges[name] for name in ("lm:local", "rule"))
    assert (lm.false_negatives, lm.true_negatives) == (1, 1)
    assert (rule.true_positives, rule.false_positives, rule.true_negatives) == (2, 1, 1)
    said = found.online.arms[0].sampled
    assert said is not None
    assert (said.trials, said.attempts, said.each, said.any, said.chosen) == (1, 3, 1 / 3, 1, 0)


def test_what_was_spent_is_held_against_what_was_wanted() -> None:
    other = rollout(1, True)
    one = trial("matched", "h1", 0, True, rollouts=(other,), usage=Usage(prompt_tokens=300),
                tokens_wanted=200)  # fmt: skip
    # A single attempt was enough: it counts as well.
    two = trial("matched", "h2", 0, False, usage=Usage(prompt_tokens=100), tokens_wanted=100)
    said = summarise([one, two]).arms[0].sampled
    assert said is not None
    assert (said.trials, said.attempts, said.spent, said.least) == (2, 3, 4 / 3, 1.0)
    plain = summarise([trial("a", "h1", 0, True, rollouts=(other,))]).arms[0].sampled
    assert plain is not None
    assert plain.spent is plain.least is None


def exhausted(budget: str) -> dict[str, Any]:
    finding = {"code": "budget", "fields": {"budget": budget}}
    return {"status": "exhausted", "findings": (finding,)}


def test_what_a_budget_ended_is_reported_by_cause() -> None:
    late = exhausted("seconds")
    calls = exhausted("lm_calls")
    long = exhausted("context_window")
    others = rollout(1, False, **late), rollout(2, False)
    found = summarise(
        [
            trial("a", "h1", 0, False, rollouts=others, **late),
            trial("a", "h2", 0, False, **calls),
            trial("a", "h3", 0, False, **long),
            trial("b", "h1", 0, True),
        ]
    )
    causes = {"seconds": 2, "lm_calls": 1, "context_window": 1}
    assert [arm.exhausted for arm in found.arms] == [causes, {}]
    assert found.to_json()["arms"][0]["exhausted"] == causes


def test_the_rule_alone_is_reported_for_streams_and_not_for_other_runs() -> None:
    assert summarise([trial("a", "h1", 0, True)]).arms[0].judges == {}
    online = summarise([trial("a", "s1", 0, True, step=0)]).online
    assert online is not None
    assert list(online.judges) == ["rule"]


def test_an_arm_that_was_to_have_memory_and_got_none_is_shown(tmp_path: Path) -> None:
    bare = [trial("random", task, 0, False) for task in HELD_OUT]
    folder = write(tmp_path / "run", bare)
    (learned, control) = summarise_run(folder).memory
    assert (control.arm, control.held_out.empty, control.banks) == ("random", 8, ())
    assert learned.held_out.trials == learned.streams.trials == 0, (
        "its streams are on record, its trials are not"
    )


def test_the_summary_as_json_is_whole(summary: RunSummary) -> None:
    data = json.loads(json.dumps(summary.to_json(), allow_nan=False))
    assert data["online"]["judges"]["rule"]["kappa"] == 0.0
    assert data["online"]["curves"]["learned"]["permutations"] == 3
    assert data["memory"][0]["banks"][0]["rejected"] == {"unknown-class": 1}
    assert data["leakage"]["leaks"] == []


def test_the_command_prints_all_of_it(run: RunFolder) -> None:
    said = CliRunner().invoke(app, ["status", str(run.path)]).stdout
    lines = [line.split("\t") for line in said.splitlines()]
    rows = {line[0]: line for line in lines if len(line) > 1}
    assert rows["learned"][:3] == ["learned", "2", "4"] or "arm in its stream" in rows
    assert any(line[:2] == ["lm:local", "12"] for line in lines)
    assert any(line[0] == "rule" and line[-1] == "0.00" for line in lines)
    assert "learned, rejected: 3 unknown-class" in said
    assert "2 (2 success)" in said
    uses = [line[:4] for line in lines if line[1:2] in (["held out"], ["streams"])]
    assert uses == [
        ["learned", "held out", "learned", "24"],
        ["learned", "streams", "learned", "12"],
        ["random", "held out", "random of learned", "8"],
    ]
    assert "pre-registered: learned against none" in said
    assert "pre-registered: learned against random" in said
    assert "in the stream: learned against none" in said


def test_frames_hold_steps_rejections_and_what_was_filtered_out(run: RunFolder) -> None:
    frames = load(run.path)
    assert not frames.problems
    assert frames.trials["step"].isna().sum() == 40
    assert frames.trials.query("arm == 'learned' and step.isna()")["items_shown"].eq(2).all()
    steps = frames.steps
    assert len(steps) == 12
    assert steps.query("seed == 1")["bank"].tolist() == [1, 2, 3, 2]
    assert steps["success"].tolist() == steps["execution"].tolist()
    assert frames.rejections["code"].tolist() == ["unknown-class"] * 3
    assert set(frames.filtered_out["item"]) == {"i0", "i1", "i2", "i3"}
    items = frames.memory_items
    assert set(items["status"]) == {"active", "superseded", "retired"}
    assert items.query("status == 'superseded'")["superseded_by"].notna().all()


def test_figures_compare_held_out_trials_and_draw_streams_apart(run: RunFolder) -> None:
    frames = load(run.path)
    (manifest,) = frames.manifests.values()
    charts = {name: entry.draw(frames, manifest) for name, entry in FIGURES.items()}
    reported = {name: chart.description for name, chart in charts.items() if chart is not None}
    assert "20 of 24 trials" in reported["arms"]
    assert "1 of 8 trials" in reported["arms"]
    assert "Of 40 trials in all" in reported["outcomes"]
    assert "s1" not in reported["matrix"]
    assert "learned: 0.58 (0.22 to 0.94) after 4 tasks, 3 task permutations" in reported["learning"]
    assert "learned: 2 items at the end; over 3 task permutations 12 stored" in reported["bank"]
    assert "rule on 16 trials" in reported["judges"]


def test_runs_are_compared_without_their_streams(run: RunFolder, tmp_path: Path) -> None:
    found = compare_runs(run, run, arm="learned", against="none")
    (compared,) = found.comparisons
    assert (compared.tasks, compared.runs) == (8, (24, 8))
    assert "run: 16 trials of learning streams are not compared" in found.notes


def test_steps_that_were_not_decided_have_no_success(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", [])
    path = folder.path / "learning" / "learned.0" / "0000.json"
    reported = step(0, 0, STREAM[0], "b00", "b01", used="lm:local", success=None)
    path.write_text(json.dumps(reported))
    assert load(folder.path).steps["success"].isna().tolist() == [True] + [False] * 11


def test_a_mixed_run_says_the_same_as_its_parts() -> None:
    mixed = summarise(records(), comparison=("learned", "none"))
    tested = summarise([r for r in records() if r.step is None], comparison=("learned", "none"))
    assert mixed.comparison == tested.comparison
    assert mixed.arms == tested.arms
    moved = [replace(r, verdict=verdict(True)) if r.step is not None else r for r in records()]
    assert summarise(moved, comparison=("learned", "none")).comparison == tested.comparison
    assert shown().of("memory_retrieved")
