"""A small run on disk, written by hand: every way in which a trial can end, and every event."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from reasoningbank.experiment import RunFolder, TrialKey, TrialRecord
from reasoningbank.trajectory import Recorder, Trajectory, Usage

STARTED = "2026-01-02T03:04:05+00:00"
MODEL = "local/tiny"
GOLD = "SELECT ?tree WHERE { ?tree a :Tree }"
QUERY = "SELECT ?t WHERE { ?t a :Tree }"
LONG = "o" * 1000

MANIFEST: dict[str, Any] = {
    "version": 1,
    "experiment": {
        "name": "trees_demo",
        "title": "Agents among trees",
        "version": 3,
        "pack": "trees",
        "seeds": [7, 3],
        "metric": "strict",
        "comparison": ["rlm", "direct"],
        "budget": {"iterations": 5, "lm_calls": 8, "tokens": 9000, "seconds": 600.0},
        "arms": [
            {"name": "direct", "agent": "direct", "lm": "local", "temperature": 0.0},
            {"name": "rlm", "agent": "rlm", "lm": "local", "temperature": 0.5, "max_tokens": 700},
        ],
    },
    "fingerprint": "f0b4abfa8487635a",
    "primary": {"metric": "strict", "comparison": ["rlm", "direct"]},
    "hashes": {"corpus": "36ed4e078d2f1cdc", "models": {"local": {"model": "tiny"}}},
    "tasks": ["t1", "t2", "urn:trees/3"],
    "versions": {"reasoningbank": "0.1.0"},
    "machine": {"python": "3.11"},
    "created": "2026-01-02T03:00:00+00:00",
}


def verdict(right: bool, status: str = "judged", f1: float = 0.5) -> dict[str, Any]:
    """Return a verdict as it stands in records."""
    return {
        "strict": right,
        "lenient": right,
        "precision": 1.0 if right else f1,
        "recall": 1.0 if right else f1,
        "f1": 1.0 if right else f1,
        "status": status,
        "reason": "equal" if right else "rows differ",
        "n_gold": 3,
        "n_predicted": 3 if right else 1,
        "column_mapping": {"tree": "t"},
        "extra_columns": [],
        "truncated": False,
    }


def turns() -> Trajectory:
    """Return what an agent did: memory, a reply, code that calls a tool, a bad reply, a query.

    Times: memory at 0; reply 1 from 1 to 3; code from 3 to 4 with a tool call from 3.2 to 3.7;
    reply 2 from 5 to 6, from a cache; a tool call that fails from 6 to 6.5; submit at 7.
    """
    now = [0.0]
    recorder = Recorder(clock=lambda: now[0])
    item = {"id": "m1", "title": "Look first", "src": "seed", "score": 0.5, "text": "Look."}
    recorder.add("memory_retrieved", {"query": "trees", "tokens": 3, "items": [item]})
    prompt = [
        {"role": "system", "content": "You write SPARQL. " + LONG},
        {"role": "user", "content": "Which trees?"},
    ]
    call = {
        "role": "solver",
        "model": MODEL,
        "messages": prompt,
        "response": "I look. \ud83d",
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "cached_prompt_tokens": 60,
        "finish_reason": "stop",
        "dollars": 0.25,
    }
    now[0] = 3.0
    recorder.add("lm_call", call, seconds=2.0)
    code = recorder.add("code", {"code": f"print(sparql_query('{QUERY}'))"})
    now[0] = 3.2
    inner = recorder.add(
        "tool_call", {"tool": "sparql_query", "arguments": {"query": QUERY}}, parent=code
    )
    now[0] = 3.7
    recorder.add("tool_result", {"result": {"count": 3}}, seconds=0.5, parent=inner)
    now[0] = 4.0
    recorder.extend(code, {"output": "{'count': 3}"}, seconds=1.0)
    recorder.add("error", {"error": "the reply could not be parsed", "reply": "hm"})
    now[0] = 6.0
    cached = {**call, "prompt_tokens": None, "completion_tokens": None, "from_cache": True}
    recorder.add("lm_call", {**cached, "response": "Again.", "dollars": None}, seconds=1.0)
    tool = recorder.add("tool_call", {"tool": "sparql_peek", "arguments": {"ref": "r9"}})
    now[0] = 6.5
    recorder.add("tool_result", {"error": "ToolError: no r9"}, seconds=0.5, parent=tool)
    now[0] = 7.0
    recorder.add("submit", {"sparql": QUERY, "status": "submitted"})
    return recorder.trajectory()


def trial(arm: str, task: str, seed: int, **changes: Any) -> TrialRecord:
    """Return a trial that went well, with changes."""
    record = TrialRecord(
        key=TrialKey(arm, task, seed),
        question=f"Which trees? ({task})",
        complexity="simple",
        form="SELECT",
        group="g1",
        status="submitted",
        sparql=QUERY,
        answer="",
        error="",
        verdict=verdict(True),
        usage=Usage(
            lm_calls=1,
            cached_calls=1,
            prompt_tokens=100,
            completion_tokens=20,
            cached_prompt_tokens=60,
            tool_calls=2,
            iterations=2,
            seconds=7.0,
            dollars=0.25,
        ),
        trajectory=turns(),
        started=STARTED,
        model={"model": "tiny"},
        gold=GOLD,
        evidence={"missing": [["<http://e/oak>"]], "surplus": []},
        judgements={"lm:local": {"success": True, "confidence": 0.9, "reason": "fine"}},
        judge_seconds=0.5,
    )
    return replace(record, **changes)


def records() -> list[TrialRecord]:
    """Return two arms on three tasks with two seeds; `direct` misses its last trial."""
    lost = {"status": "error", "error": "the endpoint is gone", "verdict": None, "sparql": None}
    spent = {
        "error": "the budget of 8 LM calls is used up",
        "findings": ({"code": "budget", "fields": {"budget": "lm_calls", "limit": 8}},),
    }
    broken = {"verdict": verdict(False, "gold_defect", 0.0)}
    none = {"verdict": verdict(False, "no_query", 0.0), "sparql": None, "status": "refused"}
    return [
        trial("direct", "t1", 3, verdict=verdict(False)),
        trial("direct", "t1", 7),
        trial("direct", "t2", 3, **none),
        trial("direct", "t2", 7, verdict=verdict(False, f1=0.25)),
        trial("direct", "urn:trees/3", 7, judgements={"lm:local": {"reason": "no verdict"}}),
        trial("rlm", "t1", 3),
        trial("rlm", "t1", 7, status="exhausted", **spent, verdict=verdict(False)),
        trial("rlm", "t2", 3, **lost, judgements={}, evidence={}),
        trial("rlm", "t2", 7),
        trial("rlm", "urn:trees/3", 3, **broken),
        trial("rlm", "urn:trees/3", 7, **broken),
    ]


def write_run(path: Path) -> RunFolder:
    """Write the run into a folder and return it."""
    folder = RunFolder(path)
    folder.write_manifest(MANIFEST)
    for record in records():
        folder.write(record)
    return folder
