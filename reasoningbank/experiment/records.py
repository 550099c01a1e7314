"""Records on disk: one folder per run, one file per trial and per learning step.

`runs/<run>/manifest.json` describes the run and `trials/<arm>/<task>.<seed>.json` holds one trial
each. A trial whose file exists is done, which is all that resuming needs. An archived run keeps
everything but manifest and summary in `records.tar.xz`; `RunFolder` reads both forms.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from pydantic import TypeAdapter

from reasoningbank.agents import UNJUDGED, Attempt, AttemptStatus
from reasoningbank.errors import RecordError, UsageError
from reasoningbank.experiment.storage import RunStorage, write_atomically
from reasoningbank.judge import Verdict, is_judged
from reasoningbank.trajectory import Trajectory, Usage

Found = TypeVar("Found")

VERSION = 1
_TRIALS = r"trials/[^/]+/[^/]+\.json"
_STEPS = r"learning/[^/]+/\d+\.json"
_BANK_NOTES = r"learning/[^/]+\.bank\.json"
_SNAPSHOTS = r"memory/[^/]+\.jsonl"
_COMPOSED = r"learning/[^/]+\.composed\.json"
_COMPILED = r"compiled/[^/]+\.json"


@dataclass(frozen=True, order=True)
class TrialKey:
    """Identifies a trial: an arm on a task with a seed."""

    arm: str
    task: str
    seed: int

    @property
    def path(self) -> str:
        """Path of the trial's file within the run's folder, unique per task."""
        task = re.sub(r"[^A-Za-z0-9_.-]", "_", self.task)
        if task != self.task:
            task += f"-{hashlib.sha256(self.task.encode()).hexdigest()[:8]}"
        return f"trials/{self.arm}/{task}.{self.seed}.json"

    def __str__(self) -> str:
        return f"{self.arm}/{self.task}.{self.seed}"


@dataclass(frozen=True)
class TrialRecord:
    """One trial: the question, what the agent did, and how it was judged."""

    key: TrialKey  #: Which trial
    question: str  #: The task's question
    complexity: str  #: The task's complexity class
    form: str  #: The query form of the gold
    group: str  #: The task's group
    status: AttemptStatus  #: How the attempt ended
    sparql: str | None  #: The submitted query; None if there was none
    answer: str  #: The answer in words, if any
    error: str  #: The findings as one line
    #: The execution judge's verdict; None if the trial ended in an infrastructure error
    verdict: Mapping[str, Any] | None
    usage: Usage  #: What the trial consumed
    trajectory: Trajectory  #: What the agent did
    started: str  #: Start, ISO 8601 in UTC
    #: Fingerprint of the model, e.g. its name and the hash of its weights; may be empty.
    model: Mapping[str, Any]
    gold: str = ""  #: The gold query
    #: What the verdict rests on, for readers: columns and a few rows of gold and prediction, and
    #: rows that differ; empty if nothing was compared
    evidence: Mapping[str, Any] = field(default_factory=dict)
    #: What other judges found, by judge, e.g. ``lm:local``.
    judgements: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    judge_seconds: float = 0.0  #: Duration of judging
    tries: int = 1  #: How often the trial was run, infrastructure errors included
    #: What the earlier tries consumed; not part of `usage`
    wasted: Usage = field(default_factory=Usage)
    #: Position in a learning stream, from 0; None outside one. The seed is then the number of the
    #: task permutation.
    step: int | None = None
    memory: str = ""  #: Hash of the bank snapshot that the agent could see; empty without memory
    #: The other attempts of a sampled trial, each with `number` (from 0), `sparql`, `status`,
    #: `error`, `usage`, `verdict`, `judgements`, `agreed` (how many attempts returned its result,
    #: itself included) and `trajectory`. `usage` includes them.
    rollouts: tuple[Mapping[str, Any], ...] = ()
    #: In a token-matched control, the tokens to spend on this task; else None
    tokens_wanted: int | None = None
    #: Why the attempt did not end with a clean submission: findings as JSON objects with ``code``,
    #: ``what`` and ``fields``; empty in records of earlier versions
    findings: tuple[Mapping[str, Any], ...] = ()
    template: str = ""  #: The template that the task is an instance of; may be empty
    #: Its level of generalization relative to the training tasks of the run: ``iid``,
    #: ``compositional`` or ``zero-shot``; empty in records of earlier versions
    level: str = ""

    @property
    def budget(self) -> str:
        """Which budget ended it: a field of `Budget`, or ``context_window``; empty if none did."""
        fields = (one.get("fields", {}) for one in self.findings)
        spent = next((str(one["budget"]) for one in fields if "budget" in one), "")
        return spent if self.status == "exhausted" else ""

    @property
    def failed(self) -> bool:
        """Whether it ended in an infrastructure error or a bug, and so is not judged."""
        return self.status in UNJUDGED

    @property
    def judged(self) -> bool:
        """Whether it counts: not after an infrastructure error, nor if the gold is defective."""
        return is_judged(self.verdict)

    @property
    def outcome(self) -> str:
        """``right`` or ``wrong``; else ``gold defect``, or the status that an error ended in."""
        if not self.judged:
            return "gold defect" if self.verdict else str(self.status)
        return "right" if self.strict else "wrong"

    @property
    def strict(self) -> bool:
        """Whether the result matched strictly; False for an unjudged trial."""
        return bool(self.verdict and self.verdict.get("strict"))

    @property
    def f1(self) -> float:
        """Row F1 of the result; 0 if there was none."""
        return float(self.verdict.get("f1") or 0.0) if self.verdict else 0.0

    def attempts(self) -> tuple[TrialRecord, ...]:
        """Return the trial and its other attempts, each as a record of one attempt."""
        others = (
            replace(
                self,
                sparql=one.get("sparql"),
                status=one.get("status", ""),
                findings=tuple(one.get("findings") or ()),
                verdict=one.get("verdict"),
                judgements=one.get("judgements") or {},
                trajectory=Trajectory.from_json(one["trajectory"]),
                evidence={},
                rollouts=(),
            )
            for one in self.rollouts
        )
        return (self, *others)

    @classmethod
    def of(
        cls, key: TrialKey, task: Any, attempt: Attempt, verdict: Verdict | None, **rest: Any
    ) -> TrialRecord:
        """Return the record of an attempt at `task` and its verdict."""
        return cls(
            key=key,
            question=task.query,
            complexity=task.complexity,
            form=task.form,
            group=task.group,
            template=task.template,
            level=task.level,
            gold=task.expected_sparql,
            status=attempt.status,
            sparql=attempt.sparql,
            answer=attempt.answer,
            error=attempt.error,
            findings=tuple(one.to_json() for one in attempt.findings),
            verdict=verdict.to_json() if verdict is not None else None,
            usage=attempt.usage,
            trajectory=attempt.trajectory,
            **rest,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON-able data."""
        data = {k: getattr(self, k) for k in self.__dataclass_fields__ if k != "trajectory"}
        data["key"], data["usage"] = asdict(self.key), asdict(self.usage)
        data["wasted"] = asdict(self.wasted)
        return {"version": VERSION, **data, "trajectory": self.trajectory.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TrialRecord:
        """Read what `to_json` wrote."""
        trajectory = Trajectory.from_json(data["trajectory"])
        return _TRIAL.validate_python({**data, "trajectory": trajectory})


@dataclass(frozen=True)
class Step:
    """One step of a learning stream: what was learned from one trial."""

    arm: str
    order: int
    step: int
    task: str
    trial: str
    before: str
    after: str
    retrieved: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    rejected: tuple[Mapping[str, Any], ...] = ()
    changes: tuple[Mapping[str, Any], ...] = ()
    judges: Mapping[str, bool | None] = field(default_factory=dict)
    used: str = ""
    success: bool | None = None
    control: str = ""
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0

    @property
    def name(self) -> str:
        """Name of its file in the run's folder."""
        return step_name(self.arm, self.order, self.step)


_TRIAL, _STEP = TypeAdapter(TrialRecord), TypeAdapter(Step)


class RunFolder(RunStorage):
    """The records of one run, in a folder or in an archive within it.

    Args:
        path: Folder of the run.
    """

    @property
    def manifest(self) -> dict[str, Any] | None:
        """The manifest; None before the run's first trial.

        Raises:
            RecordError: If the file is damaged or not a manifest.
        """
        if not (self.path / "manifest.json").exists():
            return None
        hint = "restore it, or move it away: the records stay as they are"
        return self._parsed("manifest.json", "a manifest", _manifest, hint)

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Write the manifest."""
        write_atomically(self.path / "manifest.json", manifest)

    def write(self, record: TrialRecord) -> Path:
        """Write a trial; it is completely on disk when this returns."""
        return self.write_json(record.key.path, record.to_json())

    def read(self, key: TrialKey) -> TrialRecord:
        """Return one trial.

        Raises:
            RecordError: If it is missing or damaged.
        """
        return self.trial(key.path)

    def trial_names(self) -> list[str]:
        """Return the names of the trial files, such as ``trials/rlm/001.0.json``."""
        return self.names(_TRIALS)

    def trials(self, *, skip_damaged: bool = False) -> Iterator[TrialRecord]:
        """Yield the trials, ordered by arm, task and seed.

        Raises:
            RecordError: If a file is damaged, unless such files are skipped.
        """
        for _, found in self.read_all():
            if not isinstance(found, RecordError):
                yield found
            elif not skip_damaged:
                raise found

    def read_all(self) -> Iterator[tuple[Path, TrialRecord | RecordError]]:
        """Yield the path of each trial with the trial, or with the error of reading it."""
        return self._each(self.trial_names(), self.trial)

    def damaged(self) -> list[str]:
        """Return the names of the trials that cannot be read."""
        names = self.trial_names()
        found = zip(names, self._each(names, self.trial), strict=True)
        return [name for name, (_, trial) in found if isinstance(trial, RecordError)]

    def step(self, arm: str, order: int, step: int) -> Step | None:
        """Return a step of a stream; None if it was not taken yet."""
        if not self.exists(name := step_name(arm, order, step)):
            return None
        found = self._step(name)
        if found.name != name:
            raise RecordError("holds another step", where=str(self.file(name)))
        return found

    def write_step(self, step: Step) -> None:
        """Write a step; it is completely on disk when this returns."""
        self.write_json(step.name, {"version": VERSION, **asdict(step)})

    def taken(self, arm: str, order: int) -> list[Step]:
        """Return the steps of a stream, while each begins where its predecessor ended."""
        found: list[Step] = []
        while (step := self.step(arm, order, len(found))) is not None:
            if found and step.before != found[-1].after:
                break
            found.append(step)
        return found

    def read_steps(self) -> Iterator[tuple[Path, Step | RecordError]]:
        """Yield the path of each learning step with the step, or with the error of reading it."""
        return self._each(self.names(_STEPS), self._step)

    def streams(self) -> dict[str, Sequence[Step]]:
        """Return the steps of each stream, by its name ``ARM.PERMUTATION``.

        Raises:
            RecordError: If a step is damaged.
        """
        found: dict[str, Sequence[Step]] = {}
        names = {PurePosixPath(name).parent.name for name in self.names(_STEPS)}
        for name in sorted(names):
            arm, _, order = name.rpartition(".")
            if order.isdigit() and (steps := self.taken(arm, int(order))):
                found[name] = steps
        return found

    def bank_notes(self) -> Iterator[tuple[Path, Mapping[str, Any] | RecordError]]:
        """Yield what was recorded of each bank built from gold queries, or the error of reading it.

        A note has `arm`, `after` (the snapshot), `added` and `rejected`.
        """
        read = partial(self._parsed, kind="a note of a bank", parse=dict)
        return self._each(self.names(_BANK_NOTES), read)

    def composed(self) -> dict[str, str]:
        """Return the snapshots with composed items, by the snapshot that they are composed of."""
        read = partial(self._parsed, kind="a note of a composed bank", parse=dict)
        notes = (note for _, note in self._each(self.names(_COMPOSED), read))
        return {str(n.get("of")): str(n.get("after")) for n in notes if isinstance(n, dict)}

    def program(self, arm: str, seed: int) -> Mapping[str, Any] | None:
        """Return what an optimizer compiled for an arm and a seed; None if nothing was yet."""
        name = f"compiled/{arm}.{seed}.json"
        return self._parsed(name, "a program", dict) if self.exists(name) else None

    def compiled(self) -> Iterator[tuple[Path, Mapping[str, Any] | RecordError]]:
        """Yield what optimizers compiled, for each arm and seed, or the error of a damaged file."""
        read = partial(self._parsed, kind="a program", parse=dict)
        return self._each(self.names(_COMPILED), read)

    def _each(
        self, names: Iterable[str], read: Callable[[str], Found]
    ) -> Iterator[tuple[Path, Found | RecordError]]:
        for name in names:
            path = self.file(name)
            try:
                yield path, read(name)
            except RecordError as error:
                yield path, error

    def snapshots(self) -> list[str]:
        """Return the hashes of the bank snapshots, sorted."""
        return [_hash_of(name) for name in self.names(_SNAPSHOTS)]

    def memory_items(
        self, on_damaged: Callable[[RecordError], None] | None = None
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield every memory item of every snapshot, with the snapshot's hash.

        Raises:
            RecordError: If a snapshot is damaged; `on_damaged`, if given, is called instead.
        """
        for name in self.names(_SNAPSHOTS):
            try:
                # Not splitlines: a title may hold U+2028, which JSON leaves as it is.
                lines = self.content(name).decode().split("\n")
                items = [dict(json.loads(line)) for line in lines if line.strip()]
            except (RecordError, ValueError, TypeError) as error:
                where = str(self.file(name))
                damage = RecordError(f"cannot be read ({error})", where=where)
                if on_damaged is None:
                    raise damage from error
                on_damaged(damage)
            else:
                yield from ((_hash_of(name), item) for item in items)

    def require_manifest(self) -> dict[str, Any]:
        """Return the manifest.

        Raises:
            UsageError: If the folder holds no run.
        """
        if (manifest := self.manifest) is None:
            hint = "give a folder with manifest.json"
            raise UsageError("holds no run", where=str(self.path), hint=hint)
        return manifest

    def require_same_run(self, copy: RunFolder) -> None:
        """Check that a folder holds a copy of this run, or no run.

        Raises:
            UsageError: If it holds another run, even of the same experiment.
        """
        there, here = copy.manifest, self.manifest or {}
        names = ("fingerprint", "created")
        if there is not None and any(there.get(name) != here.get(name) for name in names):
            hint, where = "choose another folder, or remove this one", str(copy.path)
            raise UsageError("holds another run", where=where, hint=hint, code="another-run")

    def archive(
        self, target: Path, *, on_damaged: Callable[[Path], None] = lambda _: None
    ) -> RunFolder:
        """Copy the run to `target` with its records in one compressed archive.

        Gold results and damaged files are left out. The copy can be read, summarised and resumed
        like any other run. The same records give the same bytes.

        `on_damaged` is called with the path of each trial that cannot be read.

        Raises:
            UsageError: If the target holds another run.
            RecordError: If a file cannot be read or written.
        """
        copy = RunFolder(target)
        self.require_same_run(copy)
        damaged = self.damaged()
        for name in damaged:
            on_damaged(self.file(name))
        patterns = (_TRIALS, _STEPS, _BANK_NOTES, _COMPOSED, _SNAPSHOTS, _COMPILED)
        every = (name for pattern in patterns for name in self.names(pattern))
        names = [name for name in every if name not in damaged]
        self.pack(target, names)
        try:
            for name in ("manifest.json", "summary.json"):
                if (self.path / name).exists() and target.resolve() != self.path.resolve():
                    shutil.copyfile(self.path / name, target / name)
            for name in names:
                # The archive holds them now; loose files would take precedence.
                for file in (target / name, target / f"{name}.gz"):
                    file.unlink(missing_ok=True)
        except OSError as error:
            raise RecordError(f"cannot be copied ({error})", where=str(target)) from error
        return copy

    def trial(self, name: str) -> TrialRecord:
        hint = "delete the file and run the same command again"
        trial = self._parsed(name, "a trial", TrialRecord.from_json, hint)
        if trial.key.path != name:
            what, where = f"holds another trial ({trial.key})", str(self.file(name))
            raise RecordError(what, where=where, hint=hint, code="another-trial")
        return trial

    def _step(self, name: str) -> Step:
        return self._parsed(name, "a step of a stream", _STEP.validate_python)

    def _parsed(self, name: str, kind: str, parse: Callable[[Any], Found], hint: str = "") -> Found:
        """Return what a file holds; a file that holds anything else is damaged."""
        data = None
        try:
            data = self.read_json(name)
            return parse(data)
        except RecordError as error:
            where = str(self.file(name))
            raise RecordError(error.what, where=where, hint=hint or error.hint) from error
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            code, where = f"not-{kind.replace(' ', '-')}", str(self.file(name))
            why = f"it has no {error}" if isinstance(error, KeyError) else "its fields are others"
            what = f"is not {kind}: {why if isinstance(data, dict) else 'it holds no JSON object'}"
            raise RecordError(what, where=where, hint=hint, code=code) from error


def step_name(arm: str, order: int, step: int) -> str:
    """Return the name of a step's file; steps are written after all that they rest on."""
    return f"learning/{arm}.{order}/{step:04}.json"


def snapshot_name(name: str) -> str:
    """Return the name of the file of a bank's snapshot, which is named by its hash."""
    return f"memory/{name}.jsonl"


def _manifest(data: Mapping[str, Any]) -> dict[str, Any]:
    return {**data, "experiment": dict(data["experiment"])}


def _hash_of(snapshot: str) -> str:
    return PurePosixPath(snapshot).name.partition(".jsonl")[0]
