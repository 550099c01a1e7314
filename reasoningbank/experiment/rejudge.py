"""Judging the trials of a run again, without running agents.

`execution` runs the submitted queries once more and compares; `lm:NAME` asks a model that sees
no gold; `rule` applies the plain rule that the query ran and has rows. Records that older
versions wrote get their gold and evidence so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from reasoningbank.errors import RecordError, SetupError, UsageError
from reasoningbank.experiment.judges import OpenJudge, check_judge, open_judge
from reasoningbank.experiment.records import RunFolder, TrialKey, TrialRecord
from reasoningbank.experiment.state import hold_run
from reasoningbank.experiment.storage import write_bytes_atomically
from reasoningbank.judge import Agreement, agreement_with
from reasoningbank.trajectory import Trajectory

__all__ = ["Change", "Rejudged", "rejudge_run"]

#: Failures of the infrastructure in a row after which going on is no use.
MOST_FAILURES = 3

#: What does not make a verdict another one: how it is worded, and what old ones say of time.
_NO_DECISION = frozenset({"reason", "findings", "seconds"})


@dataclass(frozen=True)
class Change:
    """A verdict that came out differently.

    Attributes:
        key: The trial.
        before: The verdict of the record.
        after: The fresh verdict.
        written: Whether the record has the fresh one now.
    """

    key: TrialKey
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    written: bool


@dataclass(frozen=True)
class Rejudged:
    """What judging a run again came to.

    Attributes:
        judge: The judge's name.
        folder: The folder with the records as they are now.
        judged: Trials that were judged now.
        known: Trials that this judge had judged before.
        without_verdict: Trials that no judge can judge: they ended in infrastructure errors.
        changed: Verdicts of the execution judge that came out differently.
        failed: Trials left as they were, each with what failed.
        undecided: Trials of which the judge said neither yes nor no.
        agreement: The judge against the execution judge, over all trials it has judged.
        rule: The plain rule against the execution judge, over all trials.
        seconds: How long each judgement took that was made now.
    """

    judge: str
    folder: RunFolder
    judged: int = 0
    known: int = 0
    without_verdict: int = 0
    changed: tuple[Change, ...] = ()
    failed: tuple[tuple[TrialKey, str], ...] = ()
    undecided: int = 0
    agreement: Agreement | None = None
    rule: Agreement | None = None
    seconds: tuple[float, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as JSON-able data."""
        return {
            "judge": self.judge,
            "folder": str(self.folder.path),
            "judged": self.judged,
            "known": self.known,
            "without_verdict": self.without_verdict,
            "changed": [asdict(change) for change in self.changed],
            "failed": [{**asdict(key), "error": error} for key, error in self.failed],
            "undecided": self.undecided,
            "agreement": self.agreement.to_json() if self.agreement else None,
            "rule": self.rule.to_json() if self.rule else None,
            "seconds": list(self.seconds),
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
    """Judge the trials of a run with another judge, or again.

    Each record is written whole as soon as it is judged, so that the same command goes on where
    it stopped.

    Args:
        folder: The run.
        judge: ``execution``, ``rule`` or ``lm:NAME`` with a model's name.
        out: Where a copy of the run goes that is judged instead; one that exists is continued.
        arms: Only trials of these arms; empty for all.
        limit: At most so many trials.
        again: Whether a trial that this model has judged is judged again.
        overwrite: Whether a verdict of the execution judge that comes out differently takes the
            place of the run's own. In a copy it always does.
        on_progress: Told before each trial: how many are done, how many there are, which is next.
        on_notice: Told in one line what a person should know.

    Returns:
        What came of it.

    Raises:
        UsageError: If there is no run, no such judge or arm, `out` holds another run, or the
            run's trials are compressed and there is no `out`.
        SetupError: If the machine lacks a part.
        RecordError: If a record cannot be read or written.
    """
    manifest = folder.manifest
    if manifest is None:
        hint = "give a folder with manifest.json"
        raise UsageError("holds no run", where=str(folder.path), hint=hint)
    check_judge(judge)
    _check_arms(arms, manifest)
    in_place = out is None or out.path.resolve() == folder.path.resolve()
    target = folder if out is None or in_place else out
    if in_place and folder.storage.is_archived:
        raise UsageError(
            "its records are in an archive", where=str(folder.path), hint="name a folder with --out"
        )
    with hold_run(target):
        if not in_place:
            _copy(folder, target, manifest, on_notice)
        work = _Work(target, judge, arms, limit, again, overwrite or not in_place)
        with open_judge(judge, target, on_notice) as opened:
            work.carry_out(opened, on_progress, on_notice)
    if any(change.written for change in work.changed) and (target.path / "summary.json").exists():
        on_notice(f"{target.path}/summary.json was written before these verdicts")
    return work.outcome()


def _check_arms(arms: tuple[str, ...], manifest: Mapping[str, Any]) -> None:
    names = [str(arm["name"]) for arm in manifest["experiment"]["arms"]]
    for arm in arms:
        if arm not in names:
            raise UsageError(f"unknown arm {arm!r}", hint=f"choose from {', '.join(names)}")


def _copy(
    folder: RunFolder,
    target: RunFolder,
    manifest: dict[str, Any],
    on_notice: Callable[[str], None],
) -> None:
    """Copy what is not there yet, or was run again since; damaged trials stay behind."""
    folder.require_same_run(target)
    if target.manifest is None:
        target.write_manifest(manifest)
    for part in ("memory", "learning"):
        for name in folder.storage.names(f"{part}/.*"):
            if not target.storage.exists(name):
                write_bytes_atomically(target.path / name, folder.storage.read(name))
    for path, trial in folder.read_all():
        if isinstance(trial, RecordError):
            on_notice(f"{path}: cannot be read and is left out")
        elif not target.done(trial.key) or _started(target, trial.key) != trial.started:
            target.write(trial)


def _started(folder: RunFolder, key: TrialKey) -> str:
    """Return when a trial on disk began; nothing where it cannot be read."""
    try:
        return folder.read(key).started
    except RecordError:
        return ""


@dataclass
class _Work:
    """One pass of a judge over a run."""

    folder: RunFolder
    judge: str
    arms: tuple[str, ...]
    limit: int | None
    again: bool
    overwrite: bool
    judged: int = 0
    known: int = 0
    without_verdict: int = 0
    changed: list[Change] = field(default_factory=list)
    failed: list[tuple[TrialKey, str]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def wanted(self, on_notice: Callable[[str], None] = lambda _: None) -> Iterator[TrialRecord]:
        """Yield the trials of the arms in question that can be read; name files that cannot."""
        for path, found in self.folder.read_all():
            if isinstance(found, RecordError):
                on_notice(f"{path}: cannot be read and is left out")
            elif not self.arms or found.key.arm in self.arms:
                yield found

    def carry_out(
        self,
        judge: OpenJudge,
        on_progress: Callable[[int, int, TrialKey], None],
        on_notice: Callable[[str], None],
    ) -> None:
        """Judge every trial that is to be judged, and write its record."""
        todo = self._todo(judge, on_notice)
        in_a_row = 0
        for done, key in enumerate(todo):
            on_progress(done, len(todo), key)
            record = self.folder.read(key)
            try:
                fresh = judge.judge(record)
            except UsageError as error:
                self.failed.append((key, str(error)))
                continue
            except (SetupError, RecordError):
                raise
            except Exception as error:
                self.failed.append((key, str(error)))
                in_a_row += 1
                if in_a_row == MOST_FAILURES:
                    on_notice(f"{in_a_row} trials in a row could not be judged: {error}")
                    break
                continue
            in_a_row = 0
            self._keep(record, fresh)
        if self.judged:
            self._note(judge)

    def _todo(self, judge: OpenJudge, on_notice: Callable[[str], None]) -> list[TrialKey]:
        todo = []
        for record in self.wanted(on_notice):
            if not judge.can_judge(record):
                self.without_verdict += 1
            elif self.judge in record.judgements and not self.again:
                self.known += 1
            else:
                todo.append(record.key)
        return todo[: self.limit]

    def _keep(self, record: TrialRecord, fresh: TrialRecord) -> None:
        self.judged += 1
        if self.judge == "execution":
            self.seconds.append(fresh.judge_seconds)
            before, after = dict(record.verdict or {}), dict(fresh.verdict or {})
            if _decision(before) != _decision(after):
                self.changed.append(Change(record.key, before, after, self.overwrite))
                if not self.overwrite:
                    return
        else:
            self.seconds.append(float(fresh.judgements[self.judge]["seconds"]))
        self.folder.write(fresh)

    def _note(self, judge: OpenJudge) -> None:
        """Say in the manifest what judged."""
        manifest = self.folder.manifest or {}
        judges = {**manifest.get("judges", {}), self.judge: dict(judge.fingerprint)}
        self.folder.write_manifest({**manifest, "judges": judges})

    def outcome(self) -> Rejudged:
        """Return what came of it, with the agreement over all trials judged so far."""
        records = [replace(r, trajectory=Trajectory()) for r in self.wanted()]
        other = self.judge != "execution"
        said = [r.judgements[self.judge] for r in records if self.judge in r.judgements]
        return Rejudged(
            judge=self.judge,
            folder=self.folder,
            judged=self.judged,
            known=self.known,
            without_verdict=self.without_verdict,
            changed=tuple(self.changed),
            failed=tuple(self.failed),
            undecided=sum(s.get("success") is None for s in said),
            agreement=agreement_with(self.judge, records) if other else None,
            rule=agreement_with("rule", records),
            seconds=tuple(self.seconds),
        )


def _decision(verdict: Mapping[str, Any]) -> dict[str, Any]:
    said = {k: v for k, v in verdict.items() if k not in _NO_DECISION}
    return {**said, "extra_columns": list(said.get("extra_columns") or ())}
