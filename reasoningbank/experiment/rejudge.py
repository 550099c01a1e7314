"""Judge the trials of a run again, without running agents.

`execution` runs the submitted queries again and compares; `lm:NAME` asks a model that does not see
the gold; `rule` checks only that the query ran and has rows. Records of older versions get their
gold and evidence this way.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from reasoningbank.cache import write_bytes_atomically
from reasoningbank.corpus import find_task
from reasoningbank.errors import RecordError, SetupError, UsageError
from reasoningbank.experiment.config import parse_experiment
from reasoningbank.experiment.context import RunContext, data_files, hash_files, open_context
from reasoningbank.experiment.manifest import hash_tasks
from reasoningbank.experiment.plan import Plan, plan_run
from reasoningbank.experiment.records import RunFolder, TrialKey, TrialRecord
from reasoningbank.experiment.state import hold_run
from reasoningbank.experiment.storage import ARCHIVE
from reasoningbank.experiment.trial import judge_record
from reasoningbank.imports import is_import_path
from reasoningbank.judge import Agreement, OwnJudge, agreement_with, rule_verdict
from reasoningbank.judge.lm_judge import prompt_hash
from reasoningbank.lm import open_lm
from reasoningbank.lm.names import check_model
from reasoningbank.trajectory import Trajectory

#: Consecutive infrastructure failures after which judging stops.
MOST_FAILURES = 3
#: Parts of a verdict that are not the decision: its wording, and times in old records.
_NO_DECISION = frozenset({"reason", "findings", "seconds"})


#: A judge that is ready, and what identifies it.
OpenJudge = tuple[Callable[[TrialRecord], TrialRecord], dict[str, Any]]


@dataclass(frozen=True)
class VerdictChange:
    """A verdict that came out differently."""

    key: TrialKey
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    written: bool


@dataclass
class Rejudged:
    """The outcome of judging a run again."""

    judge: str
    folder: RunFolder
    judged: int = 0
    known: int = 0
    without_verdict: int = 0
    changed: list[VerdictChange] = field(default_factory=list)
    failed: list[tuple[TrialKey, str]] = field(default_factory=list)
    undecided: int = 0
    agreement: Agreement | None = None
    rule: Agreement | None = None
    seconds: list[float] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as JSON-able data."""
        return {
            **asdict(self),
            "folder": str(self.folder.path),
            "failed": [{**asdict(key), "error": error} for key, error in self.failed],
            "agreement": self.agreement.to_json() if self.agreement else None,
            "rule": self.rule.to_json() if self.rule else None,
        }


def rejudge_run(
    folder: RunFolder,
    judge: str,
    *,
    out: RunFolder | None = None,
    arms: tuple[str, ...] = (),
    limit: int | None = None,
    again: bool = False,
    overwrite: bool = False,
    on_progress: Callable[[int, int, TrialKey], None] = lambda *_: None,
    on_notice: Callable[[str], None] = lambda _: None,
) -> Rejudged:
    """Judge the trials of a run with another judge, or again."""
    manifest = folder.require_manifest()
    kind, _, model = judge.partition(":")
    if is_import_path(model):
        OwnJudge(model, "--with")
    elif kind == "lm" and model:
        check_model(model)
    elif judge not in ("execution", "rule"):
        hint = "choose execution, rule or lm:NAME"
        raise UsageError(f"unknown judge {judge!r}", where="--with", hint=hint)
    names = [str(arm["name"]) for arm in manifest["experiment"]["arms"]]
    for arm in set(arms) - set(names):
        raise UsageError(f"unknown arm {arm!r}", hint=f"choose from {', '.join(names)}")
    in_place = out is None or out.path.resolve() == folder.path.resolve()
    target = folder if out is None or in_place else out
    if in_place and (folder.path / ARCHIVE).exists():
        what, hint = "its records are in an archive", "name a folder with --out"
        raise UsageError(what, where=str(folder.path), hint=hint, code="archived")
    with hold_run(target):
        if not in_place:
            _copy(folder, target, on_notice)
        outcome = Rejudged(judge, target)
        with open_judge(judge, target, on_notice) as opened:
            todo = _todo(outcome, arms, again, on_notice)[:limit]
            if model and outcome.known:
                _check_same_model(target, judge, opened[1]["model"])
            _judge_all(outcome, opened, todo, overwrite or not in_place, on_progress, on_notice)
    summary = target.path / "summary.json"
    if any(change.written for change in outcome.changed) and summary.exists():
        on_notice(f"{summary} was written before these verdicts")
    records = [
        replace(trial, trajectory=Trajectory())
        for trial in target.trials(skip_damaged=True)
        if not arms or trial.key.arm in arms
    ]
    said = [r.judgements[judge] for r in records if judge in r.judgements]
    outcome.undecided = sum(one.get("success") is None for one in said)
    outcome.agreement = agreement_with(judge, records) if judge != "execution" else None
    outcome.rule = agreement_with("rule", records)
    return outcome


def _check_same_model(folder: RunFolder, judge: str, now: Mapping[str, Any]) -> None:
    """Check that the model and server of earlier judgements are those of the next ones."""
    manifest = folder.manifest or {}
    inline = (manifest.get("hashes") or {}).get("models", {}).get(judge.partition(":")[2])
    before = manifest.get("judges", {}).get(judge, {}).get("model") or inline or now
    if any(before.get(name) != now.get(name) for name in ("model", "sha256", "api_base")):
        what = f"the run's judgements of {judge} are by another model or server"
        hint = "judge all trials with --again, or a copy with --out"
        raise UsageError(what, where=str(folder.path), hint=hint, code="another-judge")


def _copy(folder: RunFolder, target: RunFolder, on_notice: Callable[[str], None]) -> None:
    """Copy what is not in the target yet, or was run again since; leave out damaged trials."""
    folder.require_same_run(target)
    if target.manifest is None:
        target.write_manifest(folder.require_manifest())
    for part in ("memory", "learning", "compiled"):
        for name in folder.names(f"{part}/.*"):
            if not target.exists(name):
                write_bytes_atomically(target.path / name, folder.content(name))
    for path, trial in folder.read_all():
        if isinstance(trial, RecordError):
            on_notice(f"{path}: cannot be read and is left out")
            continue
        there = None
        with contextlib.suppress(RecordError):
            there = target.read(trial.key).started
        if there != trial.started:
            target.write(trial)


def _todo(
    outcome: Rejudged, arms: tuple[str, ...], again: bool, on_notice: Callable[[str], None]
) -> list[TrialKey]:
    """Return the trials to judge; count and report the others."""
    todo = []
    for path, record in outcome.folder.read_all():
        if isinstance(record, RecordError):
            on_notice(f"{path}: cannot be read and is left out")
        elif arms and record.key.arm not in arms:
            continue
        elif not record.verdict or (outcome.judge == "rule" and not rule_verdict(record.verdict)):
            outcome.without_verdict += 1
        elif outcome.judge in record.judgements and not again:
            outcome.known += 1
        else:
            todo.append(record.key)
    return todo


def _judge_all(
    outcome: Rejudged,
    judge: OpenJudge,
    todo: list[TrialKey],
    overwrite: bool,
    on_progress: Callable[[int, int, TrialKey], None],
    on_notice: Callable[[str], None],
) -> None:
    """Judge trials, and write each record."""
    (judged, fingerprint), folder, in_a_row = judge, outcome.folder, 0
    for done, key in enumerate(todo):
        on_progress(done, len(todo), key)
        record = folder.read(key)
        try:
            fresh = judged(record)
        except (SetupError, RecordError):
            raise
        except Exception as error:
            outcome.failed.append((key, str(error)))
            in_a_row += not isinstance(error, UsageError)
            if in_a_row == MOST_FAILURES:
                on_notice(f"{in_a_row} trials in a row could not be judged: {error}")
                break
            continue
        in_a_row = 0
        outcome.judged += 1
        said = fresh.judgements.get(outcome.judge, {"seconds": fresh.judge_seconds})
        outcome.seconds.append(float(said["seconds"]))
        before, after = dict(record.verdict or {}), dict(fresh.verdict or {})
        changed = _decision(before) != _decision(after)
        if changed:
            outcome.changed.append(VerdictChange(key, before, after, overwrite))
        if overwrite or not changed:
            folder.write(fresh)
    if outcome.judged:
        manifest = folder.manifest or {}
        judges = {**manifest.get("judges", {}), outcome.judge: fingerprint}
        folder.write_manifest({**manifest, "judges": judges})


def _decision(verdict: Mapping[str, Any]) -> dict[str, Any]:
    decision = {k: v for k, v in verdict.items() if k not in _NO_DECISION}
    return {**decision, "extra_columns": list(decision.get("extra_columns") or ())}


@contextlib.contextmanager
def open_judge(
    name: str, folder: RunFolder, on_notice: Callable[[str], None]
) -> Iterator[OpenJudge]:
    """Open a judge for the records of a run, for the length of a block."""
    if name == "rule":
        yield _by_rule, {}
        return
    manifest = folder.manifest or {}
    experiment = parse_experiment(manifest["experiment"], where=str(folder.path))
    plan = plan_run(experiment)
    model = name.partition(":")[2]
    with contextlib.ExitStack() as stack:
        own = is_import_path(model)
        models = {model: stack.enter_context(open_lm(model))} if model and not own else {}
        where: dict[str, Any] = {"endpoint": experiment.endpoint, "services": plan.services}
        context = stack.enter_context(open_context(plan.pack, folder.path, models=models, **where))
        if model:
            identity: dict[str, Any] = {"model": {"model": model}}
            if not own:
                identity = {"model": dict(models[model].fingerprint), "prompt": prompt_hash()}
            yield lambda record: judge_record(context, model, record), identity
            return
        fingerprint = {"corpus": hash_tasks(plan.tasks)}
        if experiment.endpoint is None:
            fingerprint["store"] = hash_files(data_files(plan.pack))
        then = manifest.get("hashes") or {}
        if then.get("corpus") != fingerprint["corpus"]:
            on_notice("the pack's tasks changed since the run; their present golds decide")
        if "store" in fingerprint and then.get("store") != fingerprint["store"]:
            on_notice("the pack's data changed since the run")
        yield lambda record: _by_execution(context, plan, record), fingerprint


def _by_rule(record: TrialRecord) -> TrialRecord:
    said = rule_verdict(record.verdict or {}) or {}
    return replace(record, judgements={**record.judgements, "rule": said})


def _by_execution(context: RunContext, plan: Plan, record: TrialRecord) -> TrialRecord:
    task = find_task(plan.corpus, record.key.task)
    judged = context.judge.examine(task, record.sparql)
    others = (
        {**one, "verdict": context.judge.examine(task, one.get("sparql")).verdict.to_json()}
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
