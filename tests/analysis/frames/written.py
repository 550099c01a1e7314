"""Runs written by hand: everything a record can hold, in a few trials."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from reasoningbank.experiment import RunFolder, TrialKey, TrialRecord
from reasoningbank.trajectory import Recorder, Trajectory, Usage

LONG = "x" * 1000

ITEM = {
    "id": "ab12",
    "title": "Ask for the class first",
    "description": "Classes before properties.",
    "content": "Call sparql_classes before anything else.",
    "src": "failure",
    "pattern": "SELECT ?s WHERE { ?s a ?class }",
    "tags": ["classes", "first"],
    "scope": "trees",
    "provenance": {
        "task": "t1",
        "trial": "memory/t1.0",
        "judge": "execution",
        "model": "m",
        "time": "2026-01-02T03:04:05+00:00",
    },
    "counters": {"retrieved": 5, "success": 3, "failure": 1},
}


def verdict(strict: bool = False, f1: float = 0.0, status: str = "judged") -> dict[str, Any]:
    """Return a verdict as records hold it."""
    f1 = 1.0 if strict else f1
    return {
        "strict": strict, "lenient": strict, "precision": f1, "recall": f1, "f1": f1,
        "status": status, "reason": "", "n_gold": 3, "n_predicted": 3,
    }  # fmt: skip


def trial(
    arm: str, task: str, seed: int = 0, *, said: dict[str, Any] | None = None, **rest: Any
) -> TrialRecord:
    """Return a trial without a trajectory, unless one is given."""
    fields: dict[str, Any] = {
        "question": f"What of {task}?",
        "complexity": "simple",
        "form": "SELECT",
        "group": f"group of {task}",
        "status": "submitted" if said else "error",
        "sparql": "SELECT * {}",
        "answer": "",
        "error": "" if said else "the endpoint is down",
        "verdict": said,
        "usage": Usage(lm_calls=2, prompt_tokens=100, completion_tokens=20, seconds=2.0),
        "trajectory": Trajectory(),
        "started": "2026-01-01T00:00:00+00:00",
        "model": {"model": "m"},
    }
    return TrialRecord(key=TrialKey(arm, task, seed), **(fields | rest))


def busy_trajectory() -> Trajectory:
    """Return a trajectory with every kind of event."""
    now = [0.0]
    recorder = Recorder(clock=lambda: now[0])
    items = [{k: ITEM[k] for k in ("id", "title", "src")} | {"score": 0.5, "text": LONG,
              "task": "t1", "trial": "memory/t1.0"}]  # fmt: skip
    hidden = [{"id": "cd34", "code": "own-task", "reason": "own"}]
    found = {"query": "what?", "tokens": 90, "items": items, "withheld": hidden}  # old spelling
    recorder.add("memory_retrieved", found)
    now[0] = 3.0
    call = {"role": "solver", "model": "m", "messages": [{"role": "user", "content": LONG}],
            "response": "do", "prompt_tokens": 70, "completion_tokens": 5,
            "cached_prompt_tokens": 60, "finish_reason": "stop", "dollars": 0.25}  # fmt: skip
    recorder.add("lm_call", call, seconds=2.0)
    code = recorder.add("code", {"code": "print(1)"})
    query = recorder.add("tool_call", {"tool": "sparql_query", "arguments": {"query": LONG}},
                         parent=code)  # fmt: skip
    reported = "Ref('results_0', 'results', 12 items from Trees)"
    ref = {"key": "results_0", "dtype": "results", "rows": 12, "sz": 1, "source": "Trees"}
    recorder.add("tool_result", {"result": reported, "ref": ref}, seconds=0.5, parent=query)
    recorder.add("lm_call", {"role": "judge", "model": "j", "messages": [], "response": "?"})
    recorder.add("lm_call", call | {"from_cache": True})
    peek = recorder.add("tool_call", {"tool": "sparql_peek", "arguments": {"ref": "results_0"}})
    failed = "ToolError: unknown handle 'results_7'; there are results_0"
    end = {"error": failed, "code": "unknown-handle", "infrastructure": True}
    recorder.add("tool_result", end, parent=peek)
    recorder.add("tool_call", {"tool": "sparql_peek", "arguments": {"ref": {"key": "results_0"}}})
    recorder.add("error", {"error": "the reply could not be parsed", "reply": LONG})
    recorder.add("submit", {"sparql": "SELECT * {}"})
    return recorder.trajectory()


def manifest(**experiment: Any) -> dict[str, Any]:
    """Return a manifest with two arms."""
    arms = [{"name": "memory", "agent": "rlm", "lm": "local"},
            {"name": "plain", "agent": "rlm", "lm": "local"}]  # fmt: skip
    return {"version": 1, "experiment": {"name": "run", "arms": arms} | experiment}


def write_run(path: Path, records: Iterator[TrialRecord] | list[TrialRecord],
              **experiment: Any) -> RunFolder:  # fmt: skip
    """Write a run of these records."""
    folder = RunFolder(path)
    folder.write_manifest(manifest(**experiment))
    for record in records:
        folder.write(record)
    return folder


def whole_run(path: Path) -> RunFolder:
    """Write a run that has everything: tools, memory, other judges, errors, a defective gold."""
    said = {"success": True, "confidence": 0.75, "reason": LONG, "seconds": 1.5,
            "usage": {"prompt_tokens": 40, "completion_tokens": 2}}  # fmt: skip
    busy = trial("memory", "t2", said=verdict(strict=True), step=1, memory="s1",
                 trajectory=busy_trajectory(), answer="yes",
                 judgements={"lm:local": said})  # fmt: skip
    records = [
        busy,
        replace(trial("memory", "t1", said=verdict(f1=0.5), step=0), gold="ASK {}"),
        trial(
            "plain",
            "t1",
            said=verdict(status="query_error"),
            judgements={"lm:local": {"success": True}},
        ),
        trial("plain", "t2"),
        trial("plain", "t3", said=verdict(status="gold_defect")),
    ]
    folder = write_run(path, records)
    refused = {
        "title": "Fish",
        "kind": "success",
        "code": "unknown-class",
        "reason": "no class 'Fish'",
        "text": LONG,
    }
    step = {"arm": "memory", "order": 0, "step": 1, "task": "t2", "trial": "memory/t2.0",
            "before": "s0", "after": "s1", "used": "execution", "success": True,
            "judges": {"execution": True}, "rejected": [refused], "seconds": 0.5}  # fmt: skip
    taken = path / "learning" / "memory.0" / "0001.json"
    taken.parent.mkdir(parents=True)
    taken.write_text(json.dumps(step), encoding="utf-8")
    memory = path / "memory" / "s1.jsonl"
    memory.parent.mkdir()
    memory.write_text(json.dumps(ITEM) + "\n", encoding="utf-8")
    return folder
