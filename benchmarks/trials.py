"""Running a replayed experiment: the real runner, judge, tools, sandboxes and records."""

from __future__ import annotations

import contextlib
import functools
import os
import resource
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks.turns import PACK
from reasoningbank.agents.sandbox.interpreter import SandboxPool
from reasoningbank.corpus import Task
from reasoningbank.experiment import Experiment, Progress, RunFolder, run_experiment
from reasoningbank.lm import open_lm

__all__ = ["MODEL", "Key", "Ran", "model_at", "run_trials"]

#: A name with a price, so that pricing a call is part of it.
MODEL = "openai/gpt-4o-mini"


#: Task and seed.
Key = tuple[str, int]


@dataclass
class Ran:
    """What a run took.

    Attributes:
        trials: Seconds of each trial by task and seed, from its beginning to its record on disk.
        judging: Of them, seconds of judging.
        processor_of: Processor seconds of the harness's process between a trial's beginning and
            end; its own where one trial runs at a time.
        wall: From the first trial's beginning to the last one's record.
        since_first: From the first record to the last, in which no worker is started any more.
        processor: Processor seconds of the harness's process meanwhile.
        sandboxes: Processor seconds of the sandboxes that ended meanwhile.
        record_bytes: Size of each record.
    """

    trials: dict[Key, float] = field(default_factory=dict)
    judging: dict[Key, float] = field(default_factory=dict)
    processor_of: dict[Key, float] = field(default_factory=dict)
    wall: float = 0.0
    since_first: float = 0.0
    processor: float = 0.0
    sandboxes: float = 0.0
    record_bytes: list[int] = field(default_factory=list)


def run_trials(
    folder: Path,
    tasks: Sequence[Task],
    *,
    seeds: int = 1,
    executor: dict[str, Any] | None = None,
    warm: int = 0,
) -> Ran:
    """Run the `rlm` agent on each task with each seed.

    Golds are computed by another arm before, since that is done once a run, however long it is.

    Args:
        folder: Where the records go.
        tasks: The tasks.
        seeds: Trials of each task.
        executor: As in an experiment's file.
        warm: Sandboxes that are ready before the first trial begins; none more is then started.
            By default the runner keeps some ready.

    Raises:
        AssertionError: A turn of a trial failed, or it did not end with a query that is right.
    """
    experiment = Experiment.model_validate(
        {
            "name": "replayed",
            "pack": PACK,
            "seeds": list(range(seeds)),
            "tasks": {"ids": [task.id for task in tasks]},
            "executor": executor or {},
            "arms": [
                {"name": "golds", "agent": "oracle"},
                {"name": "rlm", "agent": "rlm", "lm": MODEL},
            ],
        }
    )
    run_experiment(experiment, RunFolder(folder), only=("golds",))
    seen: list[tuple[Progress, float, float, float]] = []

    def note(progress: Progress) -> None:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = children.ru_utime + children.ru_stime
        seen.append((progress, time.perf_counter(), time.process_time(), spent))

    with _warm(warm) if warm else contextlib.nullcontext():
        run_experiment(experiment, RunFolder(folder), only=("rlm",), on_progress=note)
    first, last = seen[0], seen[-1]
    ran = Ran(wall=last[1] - first[1], processor=last[2] - first[2], sandboxes=last[3] - first[3])
    ran.since_first = last[1] - next(at for progress, at, *_ in seen if progress.record)
    began: dict[Key, tuple[float, float]] = {}
    for progress, at, spent, _ in seen:
        key = (progress.key.task, progress.key.seed)
        if progress.record is None:
            began[key] = at, spent
            continue
        record = progress.record
        said = (turn.data.get("output", "") for turn in record.trajectory.of("code"))
        turns = [str(record.trajectory.resolve(output)) for output in said]
        failed = any(output.startswith("[Error]") for output in turns)
        if failed or not (record.status == "submitted" and record.strict):
            raise AssertionError(f"{record.key}: {record.status} {record.error or turns}")
        ran.trials[key], ran.processor_of[key] = at - began[key][0], spent - began[key][1]
        ran.judging[key] = record.judge_seconds
        ran.record_bytes.append((folder / record.key.path).stat().st_size)
    return ran


@contextlib.contextmanager
def model_at(url: str) -> Iterator[None]:
    """Let `MODEL` be what answers at an address, for runs of this process."""
    there = functools.partial(open_lm, api_base=url)
    with (
        mock.patch("reasoningbank.experiment.runner.open_lm", there),
        # Asked for before a run, and never sent to another address than the provider's.
        mock.patch.dict(os.environ, OPENAI_API_KEY="none", LITELLM_LOCAL_MODEL_COST_MAP="True"),
    ):
        yield


@contextlib.contextmanager
def _warm(number: int) -> Iterator[None]:
    class Warm(SandboxPool):
        def __init__(self, spare: int, **rest: Any) -> None:
            super().__init__(number, **rest)

        def __enter__(self) -> SandboxPool:
            self.prestart()
            for sandbox in self._spares:
                assert sandbox._beginning is not None
                sandbox._beginning.join()
            self._spare = 0
            return self

    with mock.patch("reasoningbank.experiment.context.SandboxPool", Warm):
        yield
