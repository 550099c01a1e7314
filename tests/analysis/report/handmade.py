"""A run written by hand that holds all that a report must show, and one of thousands of trials."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from reasoningbank.experiment import RunFolder, TrialKey, TrialRecord
from reasoningbank.trajectory import Recorder, Trajectory, Usage

#: Text that breaks pages which put text into HTML carelessly.
HOSTILE = (
    "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"
    "<!--<script> &lt;b&gt; &amp;amp; \u2028\u2029 \x00 \ud83d \udc00 {{script}} ]]> \"'`"
)

GOLD = "SELECT ?tree ?height WHERE {\n  ?tree a t:Tree ; t:height ?height . # all of them\n}"
QUERY = 'SELECT ?oak ?h WHERE { ?oak a t:Tree ; rdfs:label "Oak"@en ; t:height ?h }'

EVIDENCE = {
    "gold": {
        "variables": ["tree", "height"],
        "rows": [["<http://e/oak>", "31"], ["<http://e/pine>", "40"], ["<http://e/ash>", "12"]],
        "n": 3,
    },
    "predicted": {
        "variables": ["oak", "h"],
        "rows": [["<http://e/oak>", "31"], ["<http://e/moss>", '"tall"@en']],
        "n": 2,
    },
    "missing": [["<http://e/pine>", "40"], ["<http://e/ash>", "12"]],
    "surplus": [["<http://e/moss>", '"tall"@en']],
    "mapping": {"tree": "oak", "height": "h"},
    "n_missing": 2,
    "n_surplus": 1,
}

ITEM = {
    "id": "m1",
    "title": "Look at one instance first",
    "description": "Before a query, see how one resource is described.",
    "content": "Call sparql_sample, then sparql_describe.",
    "src": "success",
    "pattern": "SELECT ?s WHERE { ?s a {class} }",
    "tags": ["vocabulary"],
    "scope": {"pack": "trees"},
    # The tasks of another pack may be called alike: nothing leaks.
    "provenance": {
        "task": "a_task",
        "trial": "first/a_task/0",
        "judge": "execution",
        "corpus": "flowers",
    },
    "counters": {"retrieved": 2, "success": 1, "failure": 1},
}

MANIFEST: dict[str, Any] = {
    "version": 1,
    "created": "2026-01-02T03:04:05+00:00",
    "fingerprint": "f00d",
    "experiment": {
        "name": "trees",
        "title": "First against second & <both>",
        "pack": "trees",
        "seeds": [0, 1],
        "comparison": ["first", "second"],
        "arms": [{"name": "first", "agent": "rlm"}, {"name": "second", "agent": "react"}],
    },
    "versions": {"reasoningbank": "0.1.0"},
}


def verdict(strict: bool, f1: float = 0.0, status: str = "judged", reason: str = "") -> Any:
    """Return a verdict as a record holds it."""
    return {
        "strict": strict,
        "lenient": strict,
        "precision": f1,
        "recall": f1,
        "f1": f1,
        "status": status,
        "reason": reason or ("right" if strict else "2 of 3 rows missing"),
        "n_gold": 3,
        "n_predicted": 2,
        "column_mapping": {},
        "extra_columns": [],
        "truncated": False,
    }


def trajectory(memory: bool = False, text: str = "I look at one instance.") -> Trajectory:
    """Return what an agent did: memory, a turn of code with tool calls, and a submission."""
    recorder = Recorder(clock=lambda: 0.0)
    if memory:
        shown = {
            "id": "m1",
            "title": ITEM["title"],
            "src": "success",
            "score": 0.81,
            "text": "Call sparql_sample.",
            "trial": "first/a_task/0",
        }
        worked = {"id": "m1", "trial": "first/a_task/0", "tokens": 20, "text": "=== Step 1 ==="}
        found = {"query": "trees", "tokens": 40, "items": [shown], "demonstrations": [worked]}
        recorder.add("memory_retrieved", found)
        examples = [{"id": "oaks", "score": 0.9523}, {"id": "pines", "score": 0.5}]
        recorder.add("step", {"step": "retrieve_examples", "examples": examples, "problems": [],
                              "patterns": {"HEIGHT": 0.978}, "sparql": QUERY})  # fmt: skip
        recorder.add("step", {"step": "output", "confidence": 0.93, "calibrated": False})
        recorder.add("step", {"step": "output", "confidence": 0.42, "calibrated": True})
    recorder.add(
        "lm_call",
        {
            "role": "solver",
            "model": "test/model",
            "messages": [
                {"role": "system", "content": "You write SPARQL. " * 60},
                {"role": "user", "content": "[[ ## question ## ]]\nHow tall is each tree?"},
            ],
            "response": f"[[ ## reasoning ## ]]\n{text}\n\n[[ ## code ## ]]\n```python\n1\n```",
            "prompt_tokens": 1200,
            "completion_tokens": 40,
            "cached_prompt_tokens": 1000,
        },
        seconds=2.5,
    )
    code = f'r = sparql_query("""{QUERY}""")  # a query\nprint(sparql_peek(r), 42)'
    turn = recorder.add("code", {"code": code, "output": "Ref('results_0', 'results', 2 items)"})
    call = recorder.add(
        "tool_call", {"tool": "sparql_query", "arguments": {"query": QUERY}}, parent=turn
    )
    made = "Ref('results_0', 'results', 2 items from Trees)"
    ref = {"key": "results_0", "dtype": "results", "rows": 2, "sz": 0, "source": "Trees"}
    recorder.add("tool_result", {"result": made, "ref": ref}, parent=call, seconds=0.02)
    call = recorder.add(
        "tool_call", {"tool": "sparql_peek", "arguments": {"ref": "results_0"}}, parent=turn
    )
    rows = [{"oak": "<http://e/oak>", "h": 31}, {"oak": "<http://e/moss>", "h": '"tall"@en'}]
    recorder.add("tool_result", {"result": rows}, parent=call)
    call = recorder.add(
        "tool_call", {"tool": "sparql_peek", "arguments": {"ref": "results_7"}}, parent=turn
    )
    recorder.add("tool_result", {"error": "ToolError: unknown handle 'results_7'"}, parent=call)
    recorder.add("error", {"error": "the reply could not be parsed", "reply": text})
    recorder.add("submit", {"sparql": QUERY, "status": "submitted"})
    return recorder.trajectory()


def record(arm: str, task: str, seed: int = 0, **changes: Any) -> TrialRecord:
    """Return a trial; `changes` replace its fields."""
    made = TrialRecord(
        key=TrialKey(arm, task, seed),
        question=f"How tall is each tree of {task}?",
        complexity="simple",
        form="SELECT",
        group="heights",
        status="submitted",
        sparql=QUERY,
        answer="",
        error="",
        verdict=verdict(True, 1.0),
        usage=Usage(lm_calls=1, prompt_tokens=1200, completion_tokens=40, tool_calls=3, seconds=3),
        trajectory=trajectory(),
        started="2026-01-02T03:04:05+00:00",
        model={"model": "test/model"},
        gold=GOLD,
    )
    return replace(made, **changes)


def records() -> list[TrialRecord]:
    """Return trials that end in every way a trial can end."""
    wrong, lost = verdict(False, 0.4), {"verdict": None, "status": "error", "sparql": None}
    judged = {"lm:test": {"success": True, "confidence": 0.9, "reason": "It looks right."}}
    return [
        record("first", "a_task"),
        record("first", "a_task", 1),
        record("second", "a_task", verdict=wrong, evidence=EVIDENCE, judgements=judged,
               trajectory=trajectory(memory=True)),
        record("second", "a_task", 1, verdict=verdict(False), status="fallback"),
        record("first", "b/ odd?task#1", complexity="complex", form="ASK", question=HOSTILE,
               sparql=HOSTILE, error=HOSTILE, answer=HOSTILE, gold=HOSTILE,
               verdict=verdict(False, reason=HOSTILE), trajectory=trajectory(text=HOSTILE),
               judgements={HOSTILE: {"reason": HOSTILE}},
               evidence={**EVIDENCE, "missing": [[HOSTILE, HOSTILE]]}),
        record("second", "b/ odd?task#1", complexity="complex", form="ASK", sparql=None,
               status="exhausted", verdict=verdict(False, status="no_query", reason="no query")),
        record("first", "c_task", error="the endpoint was unreachable", **lost),
        record("second", "c_task", verdict=verdict(False, status="gold_defect")),
    ]  # fmt: skip


def many_records(folder: RunFolder, n: int) -> None:
    """Fill a run with `n` trials of two arms, each with a trajectory and a prompt of its own."""
    folder.write_manifest(MANIFEST)
    for arm in ("first", "second"):
        (folder.path / "trials" / arm).mkdir(parents=True)
    # Made once and filled in as text: making each anew would take longer than reading them.
    tree = record("ARM", "task_TREE", question="How tall is tree TREE?",
                  trajectory=trajectory(text="I look at tree TREE in arm ARM. " * 20))  # fmt: skip
    templates = [
        json.dumps(replace(tree, verdict=verdict(right, float(right))).to_json())
        for right in (True, False)
    ]
    for number in range(n):
        arm, name = ("first", "second")[number % 2], str(number // 2)
        text = templates[number % 3 > 0].replace("ARM", arm).replace("TREE", name)
        # Not by `folder.write`, which waits for the disk after each.
        path = folder.path / TrialKey(arm, f"task_{name}", 0).path
        path.write_text(text, encoding="utf-8")
