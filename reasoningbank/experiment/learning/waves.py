"""In which order trials can run: what rests on others comes after them."""

from __future__ import annotations

from collections.abc import Mapping

from reasoningbank.experiment.config import Arm, Experiment
from reasoningbank.experiment.executors import Job
from reasoningbank.experiment.memory_config import bank_arm, control_of

__all__ = ["Levels"]


class Levels:
    """The wave in which each trial of an experiment runs, from 0.

    A stream comes after the trials without memory that it is set beside; the evaluation of an arm
    after the stream that its bank comes of, and after the arm whose tokens it matches.

    Args:
        experiment: The experiment.
    """

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment
        self._arms: Mapping[str, Arm] = {arm.name: arm for arm in experiment.arms}

    def of(self, job: Job) -> int:
        """Return the wave of a trial."""
        if job.step is None:
            return self._evaluation(job.arm)
        return self._stream(job.arm) if job.teaches else 0

    def _stream(self, arm: Arm) -> int:
        return 0 if control_of(self._experiment, arm) is None else 1

    def _evaluation(self, arm: Arm) -> int:
        root = bank_arm(self._arms, arm)
        level = self._stream(root) + 1 if root.memory.learns else 0
        if arm.sampling and arm.sampling.tokens_of:
            level = max(level, self._evaluation(self._arms[arm.sampling.tokens_of]) + 1)
        return level
