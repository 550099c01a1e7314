"""Frames hold what the records hold, with the same columns and types whatever that is."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pandas as pd
import pytest
from work import memory

from reasoningbank.analysis import load
from reasoningbank.analysis.frames import COLUMNS, columns_of
from reasoningbank.errors import UsageError
from reasoningbank.experiment import RunFolder

from .written import LONG, trial, verdict, whole_run, write_run

COMMITTED = Path(__file__).resolve().parents[3] / "experiments" / "results"


def types(frame: pd.DataFrame) -> dict[str, str]:
    return {str(name): str(dtype) for name, dtype in frame.dtypes.items()}


def test_names_are_unique_and_every_table_can_be_joined() -> None:
    for frame, columns in COLUMNS.items():
        names = [column.name for column in columns]
        assert len(set(names)) == len(names), frame
        assert names[:4] == ["run", "arm", "task", "seed"]
        assert all(column.meaning for column in columns)


@pytest.mark.parametrize("texts", [False, True])
def test_columns_and_types_are_as_documented_full_or_empty(tmp_path: Path, texts: bool) -> None:
    full = load(whole_run(tmp_path / "full"), texts=texts)
    empty = load(write_run(tmp_path / "empty", []), texts=texts)
    for name, frame in full.items():
        documented = {c.name: c.dtype for c in columns_of(name, texts=texts)}
        assert len(frame), name
        assert types(frame) == documented
        assert types(dict(empty.items())[name]) == documented
        assert not len(dict(empty.items())[name])


def test_trials_say_how_each_ended(tmp_path: Path) -> None:
    trials = load(whole_run(tmp_path / "run")).trials.set_index(["arm", "task"])
    assert trials["outcome"].to_dict() == {
        ("memory", "t1"): "partly right",
        ("memory", "t2"): "right",
        ("plain", "t1"): "query error",
        ("plain", "t2"): "infrastructure error",
        ("plain", "t3"): "gold defect",
    }
    assert trials["judged"].tolist() == [True, True, True, False, False]
    assert trials["strict"].isna().tolist() == [False, False, False, True, True]
    assert trials["strict"].mean() == pytest.approx(1 / 3)
    assert trials["f1"].mean() == pytest.approx(0.5)
    busy = trials.loc[("memory", "t2")]
    assert (busy["step"], busy["memory"], busy["agent"], busy["lm"]) == (1, "s1", "rlm", "local")
    assert (busy["tokens"], busy["tool_errors"], busy["model"]) == (120, 2, "m")
    assert busy["started"] == pd.Timestamp("2026-01-01", tz="UTC")
    assert busy["file"] == "trials/memory/t2.0.json"
    assert trials.loc[("memory", "t1"), "gold"] == "ASK {}"
    assert pd.isna(trials.loc[("plain", "t1"), "step"])


def test_tool_calls_have_their_results_joined(tmp_path: Path) -> None:
    calls = load(whole_run(tmp_path / "run")).tool_calls
    assert calls["tool"].tolist() == ["sparql_query", "sparql_peek", "sparql_peek"]
    assert calls["ok"].tolist() == [True, False, False]
    assert calls["made"].tolist()[0] == "results_0"
    assert calls["rows"].tolist()[0] == 12
    assert calls["opened"].tolist()[1:] == ["results_0", "results_0"]
    assert calls["error_code"].dropna().tolist() == ["unknown-handle"]
    assert calls["infrastructure"].tolist() == [False, True, False]
    # The last call was cut off by the end of the trial.
    assert calls["seconds"].tolist()[0] == 0.5
    assert calls["seconds"].isna().tolist() == [False, False, True]
    assert calls["turn"].tolist() == [1, 2, 2]


def test_model_calls_of_others_are_no_turns_of_the_agent(tmp_path: Path) -> None:
    frames = load(whole_run(tmp_path / "run"))
    calls = frames.lm_calls
    assert calls["role"].tolist() == ["solver", "judge", "solver"]
    assert calls["turn"].tolist() == [1, 1, 2]
    assert calls["seconds"].tolist()[0] == 2.0
    assert calls["cached_prompt_tokens"].tolist() == [60, pd.NA, 60]
    assert calls["from_cache"].tolist() == [False, False, True]
    assert calls["dollars"].sum() == 0.5
    events = frames.events
    assert len(events) == 12
    assert events["tool"].dropna().tolist() == ["sparql_query"] * 2 + ["sparql_peek"] * 3
    assert events["error"].dropna().tolist()[-1] == "the reply could not be parsed"


def test_memory_and_other_judges(tmp_path: Path) -> None:
    frames = load(whole_run(tmp_path / "run"), texts=True)
    (shown,) = frames.retrievals.to_dict("records")
    assert (shown["item"], shown["rank"], shown["tokens"]) == ("ab12", 0, 90)
    assert (shown["item_task"], shown["item_trial"]) == ("t1", "memory/t1.0")
    assert shown["text"] == LONG
    (item,) = frames.memory_items.to_dict("records")
    assert (item["snapshot"], item["item"], item["tags"]) == ("s1", "ab12", "classes first")
    assert (item["arm"], item["task"], item["seed"]) == ("memory", "t1", 0)
    assert (item["retrieved"], item["success"], item["failure"]) == (5, 3, 1)
    assert item["made"] == pd.Timestamp("2026-01-02T03:04:05Z")
    judged = frames.judgements.set_index("arm")
    assert judged["success"].to_dict() == {"memory": True, "plain": True}
    assert judged["strict"].to_dict() == {"memory": True, "plain": False}
    assert judged.loc["memory", "tokens"] == 42
    assert judged.loc["memory", "reason"] == LONG


def test_long_texts_come_only_when_asked_for(tmp_path: Path) -> None:
    folder = whole_run(tmp_path / "run")
    without, with_texts = load(folder), load(folder, texts=True)
    assert not any(LONG in str(row) for _, f in without.items() for row in f.to_dict("records"))
    assert LONG in json.loads(with_texts.lm_calls["messages"].iloc[0])[0]["content"]
    assert json.loads(with_texts.tool_calls["arguments"].iloc[0]) == {"query": LONG}
    assert json.loads(with_texts.events["data"].iloc[10])["reply"] == LONG


def test_an_unreadable_trial_is_left_out_and_reported(tmp_path: Path) -> None:
    folder = whole_run(tmp_path / "run")
    (folder.path / "trials/plain/t1.0.json").write_text('{"half', encoding="utf-8")
    odd = folder.path / "trials/memory/t1.0.json"
    data = json.loads(odd.read_text(encoding="utf-8"))
    orphan = {"index": 0, "kind": "tool_result", "at": 0, "data": {}, "parent": 7}
    data["trajectory"]["events"] = [orphan]
    odd.write_text(json.dumps(data), encoding="utf-8")
    (folder.path / "memory/s2.jsonl").write_text("{", encoding="utf-8")
    frames = load(folder)
    assert len(frames.trials) == 3
    assert [p.path.name for p in frames.problems] == ["t1.0.json", "t1.0.json", "s2.jsonl"]
    assert all(p.reason for p in frames.problems)
    assert len(frames.memory_items) == 1


def test_a_broken_manifest_does_not_hide_the_trials(tmp_path: Path) -> None:
    folder = whole_run(tmp_path / "run")
    (folder.path / "manifest.json").write_text("{", encoding="utf-8")
    frames = load(folder)
    assert len(frames.trials) == 5
    assert frames.manifests == {"run": {}}
    assert [p.path.name for p in frames.problems] == ["manifest.json"]


def test_values_that_are_not_what_they_should_be_are_missing(tmp_path: Path) -> None:
    said = {"success": "yes", "confidence": "high", "seconds": None}
    records = [trial("plain", "t1", said=verdict(), judgements={"odd": said}, answer="a\ud800b"),
               trial("plain", "t2", said=verdict(), started="yesterday")]  # fmt: skip
    frames = load(write_run(tmp_path / "run", records), texts=True)
    assert not frames.problems
    assert frames.judgements[["success", "confidence"]].isna().all(axis=None)
    assert types(frames.judgements)["success"] == "boolean"
    assert frames.trials["answer"].tolist()[0] == "a?b"
    assert frames.trials["started"].isna().tolist() == [False, True]


def test_several_runs_are_distinguished_by_their_paths(tmp_path: Path) -> None:
    one, two = whole_run(tmp_path / "a" / "run"), whole_run(tmp_path / "b" / "run")
    assert set(load(one).manifests) == {"run"}
    frames = load([one.path, str(two.path), one])
    assert list(frames.manifests) == ["a/run", "b/run"]
    assert frames.trials.groupby("run").size().to_dict() == {"a/run": 5, "b/run": 5}


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no run"):
        load(tmp_path)
    with pytest.raises(UsageError, match="holds no run"):
        load([tmp_path / "missing"])


def test_compressed_records_are_read_as_well(tmp_path: Path) -> None:
    folder = whole_run(tmp_path / "run")
    copy = folder.archive(tmp_path / "copy")
    assert (copy.path / "records.tar.xz").exists()
    left, right = load(folder).trials, load(copy).trials
    pd.testing.assert_frame_equal(left.drop(columns=["run", "file"]),
                                  right.drop(columns=["run", "file"]))  # fmt: skip


@pytest.mark.parametrize("run", sorted(p.name for p in COMMITTED.iterdir()))
def test_committed_records_load_whole(run: str) -> None:
    frames = load(COMMITTED / run, texts=True)
    records = list(RunFolder(COMMITTED / run).trials())
    assert not frames.problems
    assert len(frames.trials) == len(records) > 0
    assert len(frames.events) == sum(len(r.trajectory.events) for r in records)
    assert frames.trials["tokens"].sum() == sum(r.usage.tokens for r in records)
    assert frames.trials["strict"].sum() == sum(r.strict for r in records)
    solver = frames.lm_calls[frames.lm_calls["role"] == "solver"]
    # A trial's usage is of all its attempts, its events are of the one that was chosen.
    others = [one.get("usage") or {} for r in records for one in r.rollouts]
    called = sum(r.usage.tool_calls for r in records)
    assert len(frames.tool_calls) == called - sum(int(u.get("tool_calls") or 0) for u in others)
    assert solver["prompt_tokens"].sum() == sum(r.usage.prompt_tokens for r in records) - sum(
        int(usage.get("prompt_tokens") or 0) for usage in others
    )


def test_thousands_of_trials_take_little_memory(tmp_path: Path) -> None:
    source = json.dumps(trial("plain", "t", said=verdict()).to_json())
    folder = write_run(tmp_path / "run", [])
    target = folder.path / "trials" / "plain"
    target.mkdir(parents=True)
    padding = "y" * 60_000
    for n in range(300):
        data = json.loads(source)
        data["key"]["task"] = f"t{n}"
        data["trajectory"]["payloads"] = {"h": padding + str(n)}
        (target / f"t{n}.0.json.gz").write_bytes(gzip.compress(json.dumps(data).encode(), 1))
    assert len(load(folder).trials) == 300
    # The records hold 18 MB of texts.
    assert memory(lambda: load(folder)) < 4_000_000
