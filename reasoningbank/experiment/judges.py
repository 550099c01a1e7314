"""The judges that records can be judged with again, by name, opened for a run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from reasoningbank.corpus import Task
from reasoningbank.errors import UsageError
from reasoningbank.experiment.config import parse_experiment
from reasoningbank.experiment.lm_judging import judge_record
from reasoningbank.experiment.manifest import hash_files, hash_tasks
from reasoningbank.experiment.plan import Plan, plan_run
from reasoningbank.experiment.records import RunFolder, TrialRecord
from reasoningbank.experiment.world import World, data_files, open_world
from reasoningbank.judge import rule_verdict
from reasoningbank.judge.lm_judge import prompt_hash
from reasoningbank.lm import open_lm, parse_name

__all__ = ["OpenJudge", "check_judge", "open_judge"]


@dataclass(frozen=True)
class OpenJudge:
    """A judge that is ready.

    Attributes:
        judge: Returns the record with what the judge says of it.
        can_judge: Whether there is anything to judge in a record.
        fingerprint: What decides what it says.
    """

    judge: Callable[[TrialRecord], TrialRecord]
    can_judge: Callable[[TrialRecord], bool]
    fingerprint: Mapping[str, Any] = field(default_factory=dict)


def check_judge(name: str) -> None:
    """Check the name of a judge; nothing is opened.

    Raises:
        UsageError: If there is no such judge.
    """
    if name in ("execution", "rule"):
        return
    kind, _, model = name.partition(":")
    if kind != "lm" or not model:
        raise UsageError(
            f"unknown judge {name!r}", where="--with", hint="choose execution, rule or lm:NAME"
        )
    parse_name(model)


@contextlib.contextmanager
def open_judge(
    name: str, folder: RunFolder, on_notice: Callable[[str], None]
) -> Iterator[OpenJudge]:
    """Open a judge for the records of a run, for the length of a block.

    Args:
        name: ``execution``, ``rule`` or ``lm:NAME``.
        folder: The run; its manifest names pack and endpoint, and golds are frozen in it.
        on_notice: Told where the pack is not what it was when the run was made.

    Raises:
        UsageError: If the manifest names what there is no more.
        SetupError: If the machine lacks a part.
    """
    if name == "rule":
        yield OpenJudge(_by_rule, lambda r: rule_verdict(r.verdict or {}) is not None)
        return
    manifest = folder.manifest or {}
    experiment = parse_experiment(manifest["experiment"], where=str(folder.path))
    plan = plan_run(experiment)
    model = name.partition(":")[2]
    with contextlib.ExitStack() as stack:
        models = {model: stack.enter_context(open_lm(model))} if model else {}
        world = stack.enter_context(
            open_world(
                plan.pack,
                folder.path,
                endpoint=experiment.endpoint,
                models=models,
                services=plan.services,
            )
        )
        if model:
            fingerprint = {"model": dict(models[model].fingerprint), "prompt": prompt_hash()}
            yield OpenJudge(
                lambda record: judge_record(world, model, record), _has_verdict, fingerprint
            )
            return
        fingerprint = {"corpus": hash_tasks(plan.tasks)}
        if experiment.endpoint is None:
            fingerprint["store"] = hash_files(data_files(plan.pack))
        _notice_differences(manifest.get("hashes") or {}, fingerprint, on_notice)
        yield OpenJudge(
            lambda record: _by_execution(world, plan, record), _has_verdict, fingerprint
        )


def _notice_differences(
    then: Mapping[str, Any], now: Mapping[str, Any], tell: Callable[[str], None]
) -> None:
    if then.get("corpus") != now["corpus"]:
        tell("the pack's tasks are not those of the run any more; their golds decide now")
    if "store" in now and then.get("store") != now["store"]:
        tell("the pack's data are not those of the run any more")


def _has_verdict(record: TrialRecord) -> bool:
    return record.verdict is not None


def _by_rule(record: TrialRecord) -> TrialRecord:
    said = rule_verdict(record.verdict or {}) or {}
    return replace(record, judgements={**record.judgements, "rule": said})


def _by_execution(world: World, plan: Plan, record: TrialRecord) -> TrialRecord:
    task = _task(plan, record)
    judged = world.judge.examine(task, record.sparql)
    others = (
        {**one, "verdict": world.judge.examine(task, one.get("sparql")).verdict.to_json()}
        for one in record.rollouts
    )
    return replace(
        record,
        rollouts=tuple(others),
        verdict=judged.verdict.to_json(),
        evidence=judged.evidence.to_json(),
        gold=task.expected_sparql,
        judge_seconds=judged.seconds,
    )


def _task(plan: Plan, record: TrialRecord) -> Task:
    for task in plan.corpus:
        if task.id == record.key.task:
            return task
    raise UsageError("the pack has no such task any more", where=record.key.task)
