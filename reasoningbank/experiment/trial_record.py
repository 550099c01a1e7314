"""What is kept of a trial."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from reasoningbank.agents import Attempt, AttemptStatus
from reasoningbank.judge import Verdict
from reasoningbank.trajectory import Trajectory, Usage

__all__ = ["TrialKey", "TrialRecord"]

VERSION = 1


@dataclass(frozen=True, order=True)
class TrialKey:
    """Which trial: an arm on a task with a seed."""

    arm: str
    task: str
    seed: int

    @property
    def path(self) -> str:
        """Path of the trial's file within the run's folder; no two tasks share one."""
        task = re.sub(r"[^A-Za-z0-9_.-]", "_", self.task)
        if task != self.task:
            task += f"-{hashlib.sha256(self.task.encode()).hexdigest()[:8]}"
        return f"trials/{self.arm}/{task}.{self.seed}.json"


@dataclass(frozen=True)
class TrialRecord:
    """One trial, whole: what was asked, what the agent did, how it was judged.

    Attributes:
        key: Which trial.
        question: The task's question.
        complexity: The task's complexity class.
        form: The query form of the gold.
        group: The task's group.
        status: How the attempt ended.
        sparql: The query submitted; None where there was none.
        answer: The answer in words, if any.
        error: One line, where something went wrong.
        verdict: The judge's verdict; None where the trial ended in an infrastructure error.
        usage: What it consumed.
        trajectory: What the agent did.
        started: Start, ISO 8601 in UTC.
        model: Fingerprint of the model, e.g. its name and the hash of its weights; may be empty.
        gold: The gold query.
        evidence: What the verdict rests on, for readers: columns and a few rows of gold and
            prediction, and rows that differ; empty where nothing was compared.
        judgements: What other judges said, by judge, e.g. ``lm:local``.
        judge_seconds: How long judging took; the verdict itself says nothing that varies.
        tries: How often the trial was run until it ended so, infrastructure errors included.
        wasted: What the earlier tries consumed; it was paid for, and is no part of `usage`.
        step: Place in a learning stream, from 0; None outside one. Its seed is then the order.
        memory: Snapshot of the memory bank that the agent could see; empty without memory.
        rollouts: The other attempts of a sampled trial, whose own is the one that was chosen: each
            with `number` (from 0), `sparql`, `status`, `error`, `usage`, `verdict`,
            `judgements`, `agreed` (how many attempts had its result, itself included) and
            `trajectory`. What they consumed is part of `usage`.
        tokens_wanted: Tokens that all its attempts together were to spend, as another arm did on
            the task; None where no arm's are matched.
    """

    key: TrialKey
    question: str
    complexity: str
    form: str
    group: str
    status: AttemptStatus
    sparql: str | None
    answer: str
    error: str
    verdict: Mapping[str, Any] | None
    usage: Usage
    trajectory: Trajectory
    started: str
    model: Mapping[str, Any]
    gold: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    judgements: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    judge_seconds: float = 0.0
    tries: int = 1
    wasted: Usage = field(default_factory=Usage)
    step: int | None = None
    memory: str = ""
    rollouts: tuple[Mapping[str, Any], ...] = ()
    tokens_wanted: int | None = None

    @property
    def strict(self) -> bool:
        """Whether the result matched strictly; an unjudged trial did not."""
        return bool(self.verdict and self.verdict.get("strict"))

    @property
    def f1(self) -> float:
        """Row F1 of the result, 0 where there was none."""
        return float(self.verdict.get("f1") or 0.0) if self.verdict else 0.0

    @classmethod
    def of(
        cls, key: TrialKey, task: Any, attempt: Attempt, verdict: Verdict | None, **rest: Any
    ) -> TrialRecord:
        """Make the record of an attempt at `task` and its verdict."""
        return cls(
            key=key,
            question=task.query,
            complexity=task.complexity,
            form=task.form,
            group=task.group,
            gold=task.expected_sparql,
            status=attempt.status,
            sparql=attempt.sparql,
            answer=attempt.answer,
            error=attempt.error,
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
        rest = {k: v for k, v in data.items() if k not in {"version", "key", "usage", "wasted"}}
        rest["wasted"] = Usage(**data.get("wasted", {}))
        rest["trajectory"] = Trajectory.from_json(rest["trajectory"])
        rest["rollouts"] = tuple(rest.get("rollouts", ()))
        return cls(key=TrialKey(**data["key"]), usage=Usage(**data["usage"]), **rest)
