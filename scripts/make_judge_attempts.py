"""Make the labelled set of attempts that judges without the gold are measured on.

Most models are seldom right, so that their attempts cannot tell a judge that sees what is right
from one that says no to everything. This set holds, on tasks of the train and dev splits:

- `rewritten`: golds in other words. Made, not a model's.
- `mistaken`: golds with one realistic mistake, which run and have rows. Made, not a model's.
- `recorded`: attempts of models from committed records; hardly any of these is right.

The baseline's tasks are left out, so that a judge may be tuned on the set. Every label is the
execution judge's, on the embedded endpoint. A rewriting that comes out wrong, or a mistake that
changes nothing in the data, is left out and counted.

    python scripts/make_judge_attempts.py

writes `experiments/judge_attempts`, a run like any other:

    reasoningbank judge run experiments/judge_attempts --with lm:local \\
        --out runs/judge_attempts
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from query_edits import MISTAKES, REWRITINGS, Edit

from reasoningbank.corpus import Task, split_tasks
from reasoningbank.experiment import (
    Experiment,
    RunFolder,
    TrialKey,
    TrialRecord,
    load_experiment,
    parse_experiment,
)
from reasoningbank.experiment.context import RunContext, data_files, open_context
from reasoningbank.experiment.manifest import build_manifest
from reasoningbank.experiment.plan import plan_run
from reasoningbank.judge import RAN, rule_verdict
from reasoningbank.trajectory import Recorder, Usage

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "experiments" / "results"
TARGET = ROOT / "experiments" / "judge_attempts"
#: Runs whose attempts are taken over, in this order.
SOURCES = ("uniprot_floor", "uniprot_tools", "uniprot_baseline", "uniprot_models")
#: Tasks that get a rewriting and a mistake.
MOST_TASKS = 54
#: Recorded attempts of each kind: those that ran and have rows, ran and have none, did not run.
MOST_RECORDED = {"rows": 20, "no rows": 12, "not run": 6}
#: Edits of one kind that are tried on one task.
MOST_TRIED = 6
MADE = "2026-11-22T00:00:00+00:00"

#: No agent made the attempts, but an arm must name one; that none is asked is what `oracle` says.
EXPERIMENT: Mapping[str, Any] = {
    "name": "judge_attempts",
    "title": "Attempts for judging the judges: golds rewritten, golds with a mistake, and records",
    "pack": "uniprot",
    "arms": [
        {"name": "rewritten", "agent": "oracle"},
        {"name": "mistaken", "agent": "oracle"},
        {"name": "recorded", "agent": "oracle"},
    ],
}
ABOUT = (
    "rewritten: golds in other words; mistaken: golds with one mistake; both made by "
    "scripts/make_judge_attempts.py and no model's. recorded: attempts of models; `model` says of "
    "which run."
)


@dataclass
class Made:
    """What came of the edits."""

    kinds: Counter[str]
    left_out: Counter[str]


def main() -> int:
    """Write the set and say what is in it; return the exit status."""
    probe = parse_experiment(EXPERIMENT)
    corpus = plan_run(probe).corpus
    part = split_tasks(corpus).by_id()
    base_line = set(load_experiment(ROOT / "experiments" / "uniprot_baseline.toml").tasks.ids)
    tasks = [t for t in corpus if part[t.id] in ("train", "dev") and t.id not in base_line]
    experiment = parse_experiment({**EXPERIMENT, "tasks": {"ids": [task.id for task in tasks]}})
    with tempfile.TemporaryDirectory() as name:
        folder = RunFolder(Path(name) / "run")
        made = _write(folder, experiment, tasks)
        shutil.rmtree(TARGET, ignore_errors=True)
        folder.archive(TARGET)
    _tell(RunFolder(TARGET), made)
    return 0


def _write(folder: RunFolder, experiment: Experiment, tasks: Sequence[Task]) -> Made:
    plan = plan_run(experiment)
    made = Made(Counter(), Counter())
    manifest = build_manifest(experiment, tasks, data_files(plan.pack), {}, {})
    folder.write_manifest({**manifest, "created": MADE, "machine": {}, "about": ABOUT})
    with open_context(plan.pack, folder.path, services=plan.services) as world:
        for record in _edited(world, tasks, made):
            folder.write(record)
        for record in _recorded(world, {task.id: task for task in tasks}):
            folder.write(record)
    return made


def _edited(world: RunContext, tasks: Sequence[Task], made: Made) -> Iterator[TrialRecord]:
    """Yield a rewriting and a mistake of as many tasks as are wanted, spread over all."""
    found = 0
    stride = [*tasks[::2], *tasks[1::2]]
    for number, task in enumerate(stride):
        if found == MOST_TASKS:
            return
        pair = [
            _first(world, task, "rewritten", _turned(REWRITINGS, number), made),
            _first(world, task, "mistaken", _turned(MISTAKES, number), made),
        ]
        if all(pair):
            found += 1
            print(f"{found}/{MOST_TASKS} {task.id}", file=sys.stderr)
            for record in filter(None, pair):
                made.kinds[f"{record.key.arm}: {record.model['made']}"] += 1
                yield record


def _turned(edits: Mapping[str, Edit], number: int) -> list[tuple[str, Edit]]:
    """Return the edits beginning at another one for each task, so that all kinds are met."""
    listed = list(edits.items())
    at = number % len(listed)
    return listed[at:] + listed[:at]


def _first(
    world: RunContext, task: Task, arm: str, edits: Sequence[tuple[str, Edit]], made: Made
) -> TrialRecord | None:
    """Return the first edit that is what it is meant to be: right, or wrong and plausible."""
    for kind, edit in edits:
        for number, query in enumerate(edit(task.expected_sparql)):
            if number == MOST_TRIED:
                break
            record = _judged(world, task, _blank(task, arm, kind, query))
            verdict = dict(record.verdict or {})
            plausible = bool((rule_verdict(verdict) or {}).get("success"))
            if record.strict if arm == "rewritten" else (plausible and not record.strict):
                return record
            why = (
                "comes out right"
                if record.strict
                else "has no rows"
                if not plausible
                else "is wrong"
            )
            made.left_out[f"{arm}: {kind}: {why}"] += 1
    return None


def _blank(task: Task, arm: str, kind: str, query: str) -> TrialRecord:
    recorder = Recorder(clock=lambda: 0.0)
    recorder.add("submit", {"sparql": query, "status": "submitted"})
    return TrialRecord(
        key=TrialKey(arm, task.id, 0),
        question=task.query,
        complexity=task.complexity,
        form=task.form,
        group=task.group,
        status="submitted",
        sparql=query,
        answer="",
        error="",
        verdict=None,
        usage=Usage(),
        trajectory=recorder.trajectory(),
        started=MADE,
        model={"made": kind},
    )


def _judged(world: RunContext, task: Task, record: TrialRecord) -> TrialRecord:
    judged = world.judge.examine(task, record.sparql)
    return replace(
        record,
        verdict=judged.verdict.to_json(),
        evidence=judged.evidence.to_json(),
        gold=task.expected_sparql,
        group=task.group,
        judge_seconds=0.0,
    )


def _recorded(world: RunContext, tasks: Mapping[str, Task]) -> Iterator[TrialRecord]:
    """Yield attempts of models, each once, judged as they are judged today."""
    seen: set[tuple[str, str]] = set()
    taken: Counter[str] = Counter()
    seeds: Counter[str] = Counter()
    for source in SOURCES:
        for record in RunFolder(RESULTS / source).trials():
            task = tasks.get(record.key.task)
            same = (record.key.task, (record.sparql or "").strip())
            if task is None or record.key.arm == "oracle" or not same[1] or same in seen:
                continue
            seen.add(same)
            found = _judged(world, task, replace(record, judgements={}))
            kind = _kind(found.verdict or {})
            if taken[kind] == MOST_RECORDED[kind]:
                continue
            taken[kind] += 1
            number = seeds[task.id]
            seeds[task.id] += 1
            origin = f"{source}/{record.key.arm}/{record.key.task}.{record.key.seed}"
            model = {**record.model, "recorded": origin}
            yield replace(found, key=TrialKey("recorded", task.id, number), model=model)


def _kind(verdict: Mapping[str, Any]) -> str:
    if verdict.get("status") not in RAN:
        return "not run"
    return "rows" if verdict.get("n_predicted") else "no rows"


def _tell(folder: RunFolder, made: Made) -> None:
    counts: Counter[str] = Counter()
    for record in folder.trials():
        verdict = record.verdict or {}
        plausible = bool((rule_verdict(verdict) or {}).get("success"))
        kind = "right" if record.strict else "plausible but wrong" if plausible else "wrong"
        counts[f"{record.key.arm}, {kind}"] += 1
    for table in (counts, made.kinds, made.left_out):
        for name, n in sorted(table.items()):
            print(f"{n:4} {name}")
        print()


if __name__ == "__main__":
    sys.exit(main())
