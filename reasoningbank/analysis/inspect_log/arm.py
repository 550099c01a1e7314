"""One arm of a run as one log."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from inspect_ai.log import EvalSample, EvalStats
from inspect_ai.model import ModelUsage

from reasoningbank.analysis.inspect_log.archive import EvalArchive
from reasoningbank.analysis.inspect_log.export import ExportedLog
from reasoningbank.analysis.inspect_log.sample import sample_of
from reasoningbank.analysis.inspect_log.scores import VERDICT_SCORERS
from reasoningbank.analysis.inspect_log.spec import (
    arm_of,
    log_of,
    planned,
    run_id,
    sampling,
    spec_of,
    task_id,
)
from reasoningbank.experiment import TrialRecord

__all__ = ["write_arm"]


class _Tally:
    """What is known of an arm once its samples are written, without keeping them."""

    def __init__(self) -> None:
        self.scored: list[EvalSample] = []
        self._models: dict[str, ModelUsage] = defaultdict(ModelUsage)
        self._roles: dict[str, ModelUsage] = defaultdict(ModelUsage)
        self._calls: Counter[str] = Counter()
        self._times: list[str] = []

    def add(self, sample: EvalSample) -> None:
        left_out = {"metadata": None, "answer": None, "explanation": None}
        bare = {
            name: score.model_copy(update=left_out) for name, score in (sample.scores or {}).items()
        }
        self.scored.append(
            EvalSample(
                id=sample.id,
                epoch=sample.epoch,
                input="",
                target="",
                scores=bare or None,
                error=sample.error,
            )
        )
        for usage, total in ((sample.model_usage, self._models), (sample.role_usage, self._roles)):
            for name, used in usage.items():
                total[name] += used
        self._calls.update(sample.model_usage)
        self._times += [str(sample.started_at), str(sample.completed_at)]

    @property
    def model(self) -> str:
        """The model that answered in most trials; empty where none did."""
        return next((name for name, _ in self._calls.most_common(1)), "")

    @property
    def judges(self) -> list[str]:
        """Scorers besides those of the execution judge, in the order they were met."""
        names = dict.fromkeys(name for sample in self.scored for name in sample.scores or {})
        return [name for name in names if name not in VERDICT_SCORERS]

    @property
    def errors(self) -> int:
        """Samples that an infrastructure error ended."""
        return sum(sample.error is not None for sample in self.scored)

    @property
    def stats(self) -> EvalStats:
        """When the arm ran and what it consumed."""
        return EvalStats(
            started_at=min(self._times),
            completed_at=max(self._times),
            model_usage=dict(self._models),
            role_usage=dict(self._roles),
        )


def write_arm(
    manifest: Mapping[str, Any],
    name: str,
    trials: Iterable[TrialRecord],
    epochs: Mapping[int, int],
    folder: Path,
) -> ExportedLog:
    """Write the trials of an arm as a log.

    Args:
        manifest: The run's.
        name: The arm.
        trials: Its trials, at least one.
        epochs: Number of each seed.
        folder: Where the log goes.

    Raises:
        RecordError: If a record cannot be read, or the log cannot be written.
    """
    arm = arm_of(manifest, name)
    run, config = run_id(manifest), sampling(arm)
    tasks, seeds = planned(manifest, arm)
    path = folder / _file_name(manifest, name, run)
    tally = _Tally()
    with EvalArchive(path) as archive:
        for record in trials:
            sample = sample_of(record, epochs[record.key.seed], run, config)
            archive.add(sample)
            tally.add(sample)
        complete = len(tally.scored) >= len(tasks) * seeds
        spec = spec_of(manifest, arm, tally.model, tally.judges)
        archive.finish(log_of(spec, tally.scored, tally.stats, complete))
    return ExportedLog(name, path, len(tally.scored), tally.errors, complete)


def _file_name(manifest: Mapping[str, Any], arm: str, run: str) -> str:
    # Inspect lists logs by the parts of their names: when, what, which.
    created = str(manifest["created"])
    what = f"{manifest.get('experiment', {}).get('name', 'run')}-{arm}"
    parts = (created, what, task_id(run, arm))
    return "_".join("".join(c if c.isalnum() else "-" for c in part) for part in parts) + ".eval"
