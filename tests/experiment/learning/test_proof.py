"""What a real learning run leaves on disk is enough to prove that nothing leaked."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from reasoningbank.analysis import load, summarise_run
from reasoningbank.analysis.report import write_report
from reasoningbank.experiment import Experiment, RunFolder, TrialKey
from reasoningbank.trajectory import Event

from .orchard import STREAM, TEST

Make = Callable[..., Experiment]
Run = Callable[..., RunFolder]

ARMS: tuple[dict[str, Any], ...] = (
    {"name": "none", "agent": "pupil", "stream": True, "seeds": [0]},
    {"name": "learned", "agent": "pupil", "memory": "learned"},
    {"name": "random", "agent": "pupil", "seeds": [0], "memory": {"source": "random",
     "of": "learned"}},
)  # fmt: skip


def test_a_run_is_summarised_as_it_was(learning: Make, run: Run, tmp_path: Path) -> None:
    folder = run(learning(*ARMS, seeds=[0, 1], comparison=["learned", "none"]))
    summary = summarise_run(folder)
    assert summary.leakage.leaks == ()
    assert summary.leakage.evaluation == len(TEST)
    assert summary.leakage.showings > 0
    assert summary.leakage.unproven == 0
    assert summary.comparison is not None
    assert (summary.comparison.tasks, summary.comparison.seeds) == (len(TEST), (2, 1))
    assert summary.online is not None
    assert {arm.arm: arm.trials for arm in summary.online.arms} == {
        "none": len(STREAM), "learned": 2 * len(STREAM),
    }  # fmt: skip
    learned = next(arm for arm in summary.memory if arm.arm == "learned")
    assert [bank.permutation for bank in learned.banks] == [0, 1]
    for bank in learned.banks:
        assert bank.steps == len(STREAM)
        assert sum(bank.active.values()) > 0
    frames = load(folder)
    assert not frames.problems
    assert len(frames.steps) == 2 * len(STREAM)
    assert frames.steps["bank"].notna().all()
    assert write_report(folder, tmp_path / "report.html").damaged == ()


def test_an_item_of_a_held_out_task_is_found_in_it(learning: Make, run: Run) -> None:
    folder = run(learning(*ARMS, seeds=[0]))
    key = TrialKey("learned", TEST[0], 0)
    record = folder.read(key)
    bank = folder.path / "memory" / f"{record.memory}.jsonl"
    lines = bank.read_text(encoding="utf-8").splitlines()
    item = next(one for one in map(json.loads, lines) if "provenance" in one)
    # As if the guard had slept: the item was merged with what the held-out task taught.
    held_out = {**item["provenance"], "task": TEST[1], "group": f"g{int(TEST[1][1:]):02}"}
    changed = {**item, "evidence": [held_out]}
    rest = [line for line in lines if json.loads(line).get("id") != item["id"]]
    bank.write_text("\n".join([*rest, json.dumps(changed)]), encoding="utf-8")
    origin = item["provenance"]
    shown = {"id": item["id"], "title": item["title"], "src": item["src"], "score": 0.5,
             "text": item["content"], "task": origin["task"], "trial": origin["trial"]}  # fmt: skip
    event = Event(0, "memory_retrieved", 0.0, 0.0, {"query": "?", "tokens": 9, "items": [shown]})
    kept = [replace(e, index=e.index + 1) for e in record.trajectory.of("submit")]
    folder.write(replace(record, trajectory=replace(record.trajectory, events=(event, *kept))))
    leaks = summarise_run(folder).leakage.leaks
    assert {(leak.kind, leak.item) for leak in leaks} == {("evaluation", item["id"])}
    assert f"learned/{TEST[0]}.0" in {leak.trial for leak in leaks}
