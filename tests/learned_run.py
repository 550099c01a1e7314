"""A learning run written by hand: streams in three orders, banks, and a frozen evaluation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from reasoningbank.experiment import RunFolder, TrialKey, TrialRecord
from reasoningbank.trajectory import Recorder, Trajectory, Usage

ORDERS = (0, 1, 2)
STREAM = ("s1", "s2", "s3", "s4")
HELD_OUT = tuple(f"h{n}" for n in range(8))
GOLD = "PREFIX t: <http://e/> SELECT ?x WHERE {{ ?x a t:Tree ; t:height {n} . }} # of {task}"

MANIFEST: dict[str, Any] = {
    "version": 1,
    "created": "2026-01-02T03:04:05+00:00",
    "fingerprint": "f00d",
    "experiment": {
        "name": "trees_learn",
        "title": "Does memory help among trees?",
        "pack": "trees",
        "mode": "learn",
        "seeds": [0],
        "metric": "strict",
        "comparison": ["learned", "none"],
        "claims": [["learned", "random"]],
        "arms": [
            {"name": "none", "agent": "direct", "stream": True},
            {"name": "learned", "agent": "direct", "seeds": [0, 1, 2],
             "memory": {"source": "learned", "judge": "execution"}},
            {"name": "random", "agent": "direct",
             "memory": {"source": "random", "of": "learned"}},
        ],
    },
    "tasks": list(HELD_OUT),
    "versions": {"reasoningbank": "0.1.0"},
}  # fmt: skip


def verdict(right: bool, status: str = "judged", rows: int = 3) -> dict[str, Any]:
    """Return a verdict as records hold it."""
    f1 = 1.0 if right else 0.25
    return {
        "strict": right, "lenient": right, "precision": f1, "recall": f1, "f1": f1,
        "status": status, "reason": "equal" if right else "rows differ", "n_gold": 3,
        "n_predicted": rows,
    }  # fmt: skip


def item(name: str, task: str, **changes: Any) -> dict[str, Any]:
    """Return a memory item as a snapshot holds it."""
    made = {
        "id": name,
        "title": f"Trees like those of {task}",
        "description": "When trees are asked for by height.",
        "content": "Ask for the class first, then filter by height.",
        "src": "success",
        "pattern": "SELECT ?x WHERE { ?x a t:Tree ; t:height <<height>> }",
        "tags": ["t:Tree"],
        "scope": {"pack": "trees", "endpoint": ""},
        "provenance": {"task": task, "group": f"group {task}", "corpus": "trees",
                       "trial": f"learned/{task}.0", "judge": "execution", "model": "m",
                       "time": "2026-01-02T03:04:05+00:00", "author": "rules"},
        "evidence": [],
        "counters": {"retrieved": 2, "success": 1, "failure": 1, "helped": 1, "hurt": 0},
        "question": "", "turns": [], "status": "active", "superseded_by": "",
    }  # fmt: skip
    return {**made, **changes}


def item_of(task: str, **changes: Any) -> dict[str, Any]:
    """Return the item that a task of the stream taught."""
    return item(f"i{STREAM.index(task)}", task, **changes)


def shown(
    *items: Mapping[str, Any],
    text: str = "",
    filtered: Sequence[Any] = (),
    demonstrations: Sequence[Mapping[str, Any]] = (),
) -> Trajectory:
    """Return the trajectory of a trial that was shown items, and asked a model once."""
    recorder = Recorder(clock=lambda: 0.0)
    listed = [
        {
            "id": one["id"], "title": one["title"], "src": one["src"], "score": 0.5,
            "text": text or one["content"], "task": one["provenance"].get("task", ""),
            "trial": one["provenance"].get("trial", ""),
        }
        for one in items
    ]  # fmt: skip
    kept = [{"id": name, "code": code, "reason": code} for name, code in filtered]
    found = {"query": "trees", "tokens": 40 * len(items), "items": listed, "filtered_out": kept}
    if demonstrations:
        found["demonstrations"] = list(demonstrations)
    recorder.add("memory_retrieved", found, seconds=0.0)
    return asked(recorder)


def asked(recorder: Recorder | None = None, prompt: str = "Which trees are there?") -> Trajectory:
    """Return a trajectory with one call of a model."""
    recorder = recorder or Recorder(clock=lambda: 0.0)
    messages = [{"role": "user", "content": prompt}]
    recorder.add("lm_call", {"role": "solver", "messages": messages, "response": "SELECT"})
    recorder.add("submit", {"sparql": "SELECT ?x { ?x a t:Tree }", "status": "submitted"})
    return recorder.trajectory()


def trial(arm: str, task: str, seed: int, right: bool, **changes: Any) -> TrialRecord:
    """Return a trial; tasks of one letter and number are groups of their own."""
    number = 10 * ord(task[0]) + int(task[1:])
    made = TrialRecord(
        key=TrialKey(arm, task, seed),
        question=f"Which trees of the garden {task} are {number} metres tall?",
        complexity="simple",
        form="SELECT",
        group=f"group {task}",
        status="submitted",
        sparql="SELECT ?x { ?x a t:Tree }",
        answer="",
        error="",
        verdict=verdict(right),
        usage=Usage(lm_calls=1, prompt_tokens=100, completion_tokens=20, seconds=2.0),
        trajectory=asked(),
        started="2026-01-02T03:04:05+00:00",
        model={"model": "m"},
        gold=GOLD.format(n=number, task=task),
    )
    return replace(made, **changes)


def step(order: int, at: int, task: str, before: str, after: str, **changes: Any) -> dict[str, Any]:
    """Return what a step of the learned arm's stream wrote."""
    made = {
        "version": 1, "arm": "learned", "order": order, "step": at, "task": task,
        "trial": f"learned/{task}.{order}", "before": before, "after": after,
        "retrieved": [], "added": [item_of(task)["id"]], "merged": [], "rejected": [],
        "changes": [],
        "judges": {"execution": at % 2 == 0, "lm:local": True, "rule": True},
        "used": "execution", "success": at % 2 == 0, "seconds": 0.5,
        "usage": {"prompt_tokens": 90, "completion_tokens": 10},
    }  # fmt: skip
    return {**made, **changes}


def rollout(number: int, right: bool, **changes: Any) -> dict[str, Any]:
    """Return another attempt of a trial as records hold it, with a long text in it."""
    recorder = Recorder(clock=lambda: 0.0)
    recorder.add("code", {"code": f"print({number})", "output": f"attempt {number} " * 100})
    made = {
        "number": number, "sparql": f"SELECT ?x {{ ?x a t:Tree }} LIMIT {number}",
        "status": "submitted", "error": "", "usage": {}, "verdict": verdict(right),
        "judgements": {}, "agreed": 2, "trajectory": asked(recorder).to_json(),
    }  # fmt: skip
    return {**made, **changes}


def met(order: int) -> tuple[str, ...]:
    """Return the tasks of the stream in the order in which they were met."""
    return (*STREAM[order:], *STREAM[:order])


def records() -> list[TrialRecord]:
    """Return the trials: no arm is better in the streams, `learned` is better held out."""
    made = []
    for order in ORDERS:
        first, second = (item_of(task) for task in met(order)[:2])
        for at, task in enumerate(met(order)):
            right = at % 2 == 0 or (order, at) == (1, 3)
            own = [(item_of(task)["id"], "own-task")]
            said = {"lm:local": {"success": True, "reason": ""}}
            made.append(
                trial("learned", task, order, right, step=at, memory=f"b{order}{at}",
                      judgements=said, trajectory=shown(first, filtered=own) if at else shown())
            )  # fmt: skip
            if order == 0:
                made.append(trial("none", task, order, right, step=at))
        for at, task in enumerate(HELD_OUT):
            made.append(
                trial("learned", task, order, at < 6 or order == 0, memory=f"b{order}4",
                      trajectory=shown(first, second))
            )  # fmt: skip
    for at, task in enumerate(HELD_OUT):
        made.append(trial("none", task, 0, at < 1))
        drawn = shown(item_of("s1"))
        made.append(trial("random", task, 0, at < 2, memory="b04", trajectory=drawn))
    return made


def write(path: Path, trials: Sequence[TrialRecord] | None = None) -> RunFolder:
    """Write the run into a folder and return it."""
    folder = RunFolder(path)
    folder.write_manifest(MANIFEST)
    for made in records() if trials is None else trials:
        folder.write(made)
    for order in ORDERS:
        for at in range(len(STREAM) + 1):
            held = [item_of(task) for task in met(order)[:at]]
            if at == len(STREAM):
                held[2] |= {"status": "retired", "src": "failure"}
                held[3] |= {"status": "superseded", "superseded_by": held[0]["id"]}
            snapshot = "\n".join(json.dumps(one) for one in held)
            _put(path / "memory" / f"b{order}{at}.jsonl", snapshot)
        for at, task in enumerate(met(order)):
            reported = step(order, at, task, f"b{order}{at}", f"b{order}{at + 1}")
            if at == 1:
                refused = {"title": "Flowers", "code": "unknown-class",
                           "reason": f"no class t:Flower{order}", "kind": "success",
                           "text": "Ask for t:Flower."}  # fmt: skip
                reported |= {"rejected": [refused]}
            if at == 3:
                reported |= {"changes": [{"action": "supersede", "item": "i3", "reason": "old"},
                                     {"action": "retire", "item": "i2", "reason": "hurts"}],
                         "merged": ["i1"]}  # fmt: skip
            _put(path / "learning" / f"learned.{order}" / f"{at:04}.json", json.dumps(reported))
    return folder


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
