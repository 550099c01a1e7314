"""Frames to draw: a run of many arms and tasks, made from a seed, without files."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reasoningbank.analysis import Frames, load
from reasoningbank.experiment import RunFolder, TrialKey, TrialRecord
from reasoningbank.trajectory import Recorder, Usage

TOOLS = [f"sparql_{name}" for name in ("query", "peek", "sample", "classes", "properties",
         "describe", "count", "find", "slice", "labels")]  # fmt: skip
ARMS = ("direct", "react", "rlm", "rlm-memory", "rlm-random", "nl2sparql-graph")
TOPICS = ("arabidopsis", "diseases_of_transcription_factors", "mass_of_protein")


def write_large(
    path: Path,
    *,
    names: tuple[str, ...] = ARMS,
    arms: int = 6,
    tasks: int = 60,
    seeds: int = 3,
    learning: bool = False,
    **experiment: Any,
) -> RunFolder:
    """Write a run whose arms differ; some trials fail, some in the infrastructure.

    Of one that learns every other task is of the streams, and each arm's bank grows.
    """
    rng = random.Random(7)
    folder = RunFolder(path)
    names = names[:arms]
    stated = {"comparison": list(names[-2:]), "arms": [{"name": name} for name in names]}
    folder.write_manifest({"version": 1, "experiment": stated | experiment})
    for place, arm in enumerate(names):
        for seed in range(seeds):
            order = rng.sample(range(tasks), tasks)
            stream = [task for task in order if learning and task % 2]
            for task in order:
                step = stream.index(task) if task in stream else None
                record = _trial(rng, arm, place, task, seed, step)
                # Durable writing is not what is tested here.
                target = path / record.key.path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(json.dumps(record.to_json()), encoding="utf-8")
            for at in range(len(stream)):
                _grow(path, arm, seed, at, kept=max(1, at - place))
    return folder


def _grow(path: Path, arm: str, order: int, at: int, kept: int) -> None:
    """Write a step of a stream, and the bank that it leaves behind."""
    bank = f"{arm}-{order}-{at}"
    step = {"arm": arm, "order": order, "step": at, "task": "t", "trial": "", "before": "",
            "after": bank, "added": ["i"], "used": "execution"}  # fmt: skip
    items = "\n".join(json.dumps({"id": str(n), "src": "success"}) for n in range(kept))
    for name, text in ((f"memory/{bank}.jsonl", items),
                       (f"learning/{arm}.{order}/{at:04}.json", json.dumps(step))):  # fmt: skip
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text, encoding="utf-8")


def frames_of(folder: RunFolder) -> tuple[Frames, Mapping[str, Any]]:
    """Return the frames of a run and its manifest."""
    frames = load(folder)
    assert not frames.problems
    (manifest,) = frames.manifests.values()
    return frames, manifest


def _trial(
    rng: random.Random, arm: str, place: int, task: int, seed: int, step: int | None
) -> TrialRecord:
    right = rng.random() < 0.15 + 0.1 * place
    lost = rng.random() < 0.02
    status = "judged" if right or rng.random() < 0.6 else rng.choice(["query_error", "no_query"])
    f1 = 1.0 if right else rng.choice([0.0, 0.5]) if status == "judged" else 0.0
    verdict = {"strict": right, "lenient": right, "precision": f1, "recall": f1, "f1": f1,
               "status": status, "reason": ""}  # fmt: skip
    says = right if rng.random() < 0.8 else not right
    return TrialRecord(
        key=TrialKey(arm, f"{task:03d}_{TOPICS[task % 3]}", seed),
        question="?",
        complexity=("simple", "moderate", "complex")[task % 3],
        form="SELECT",
        group=f"group {task // 4}",
        status="error" if lost else "submitted",
        sparql="ASK {}",
        answer="",
        error="",
        verdict=None if lost else verdict,
        usage=Usage(prompt_tokens=rng.randint(300, 30_000), seconds=rng.lognormvariate(3, 0.7)),
        trajectory=_calls(rng, 0 if arm == "direct" else rng.randint(0, 4)),
        started="2026-01-01T00:00:00+00:00",
        model={},
        judgements={} if lost else {"lm:local": {"success": says}, "lm:b": {"success": right}},
        step=step,
    )


def _calls(rng: random.Random, n: int) -> Any:
    recorder = Recorder(clock=lambda: 0.0)
    for _ in range(n):
        call = recorder.add("tool_call", {"tool": rng.choice(TOOLS), "arguments": {}})
        reported = {"error": "ToolError: no"} if rng.random() < 0.2 else {"result": []}
        recorder.add("tool_result", reported, parent=call)
    return recorder.trajectory()
