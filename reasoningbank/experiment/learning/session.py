"""One invocation of a run whose arms remember: which trials can run when, and with what."""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from reasoningbank.errors import EndpointError, RecordError, UsageError
from reasoningbank.experiment.config import Arm, Experiment
from reasoningbank.experiment.executors import Job
from reasoningbank.experiment.interrupts import Stop
from reasoningbank.experiment.learning.banks import Banks
from reasoningbank.experiment.learning.learner import Learner
from reasoningbank.experiment.learning.parts import Parts
from reasoningbank.experiment.learning.recalling import Recalls
from reasoningbank.experiment.learning.snapshots import Snapshots, read_bank
from reasoningbank.experiment.learning.streams import Stream
from reasoningbank.experiment.learning.waves import Levels
from reasoningbank.experiment.lm_judging import judge_attempts
from reasoningbank.experiment.memory_config import bank_arm, control_of, seeds_of
from reasoningbank.experiment.plan import Plan, stream_order
from reasoningbank.experiment.records import RunFolder, StepFolder, TrialKey, TrialRecord
from reasoningbank.experiment.trial import Trial
from reasoningbank.experiment.world import World
from reasoningbank.memory import MemoryBank, Snapshot

__all__ = ["LearningSession"]


class LearningSession:
    """Runs the trials of arms with memory, layers or sampling, and those beside them, in order.

    Args:
        experiment: The experiment.
        plan: Its plan.
        folder: The run.
        world: What trials share.
        todo: The trials to run, and the steps to take.
        again: Trials that are run although they are on disk.
        missing: Whether trials that are not on disk are run.
        stop: Says when no further trial shall begin.
        on_notice: Told what a person should know.
    """

    def __init__(
        self,
        experiment: Experiment,
        plan: Plan,
        folder: RunFolder,
        world: World,
        todo: Sequence[Job],
        *,
        again: Collection[TrialKey],
        missing: bool,
        stop: Stop,
        on_notice: Callable[[str], None],
    ) -> None:
        self._experiment = experiment
        self._plan = plan
        self._folder = folder
        self._world = world
        self._todo = todo
        self._again = again
        self._missing = missing
        self._stop = stop
        self._on_notice = on_notice
        self._arms: Mapping[str, Arm] = {arm.name: arm for arm in experiment.arms}
        self._parts = Parts(world, plan)
        self._banks = Banks(
            experiment, folder.path, plan.stream, self._parts.exemplars, self._parts.open_bank
        )
        self._recalls = Recalls(world, plan, self._bank, self._parts.builder)
        self._streams: dict[tuple[str, int], Stream] = {}
        self._waiting: Counter[str] = Counter()
        self._chained = False

    def waves(self) -> Iterator[list[Iterable[Job]]]:
        """Yield what can run side by side, each wave once the one before it has ended."""
        levels = Levels(self._experiment)
        waves: dict[int, list[Job]] = defaultdict(list)
        for job in [*self._lost(), *self._todo]:
            waves[levels.of(job)].append(job)
        for level in sorted(waves):
            chains = self._chains(waves[level])
            self._chained = self._chained or bool(chains)
            if chains:
                yield chains

    def trial(self, job: Job, worker: int) -> Trial:
        """Return a trial, ready to be run."""
        sampling = job.arm.sampling
        matched = sampling is not None and sampling.tokens_of != "" and job.step is None
        return Trial(
            self._world,
            self._experiment,
            job.arm,
            job.task,
            job.key,
            worker,
            step=job.step,
            remember=partial(self._recalls.recall, job),
            tokens=self._tokens(job) if matched else None,
        )

    def close(self) -> None:
        """Close the banks."""
        self._banks.close()
        for stream in self._streams.values():
            stream.close()

    def finish(self) -> None:
        """Tell what could not be run.

        Raises:
            EndpointError: If a stream stopped before its end.
            UsageError: If nothing could be run.
        """
        if self._waiting and not self._chained:
            hint = "run these first, or leave --only and --task out"
            raise UsageError("; ".join(self._waiting), where=str(self._folder.path), hint=hint)
        for reason, trials in self._waiting.items():
            self._on_notice(f"{trials} trial{'s' * (trials > 1)} not run: {reason}")
        stopped = [stream.stopped for stream in self._streams.values() if stream.stopped]
        if stopped:
            more = f" (and {len(stopped) - 1} more streams)" if len(stopped) > 1 else ""
            raise EndpointError(
                f"a stream ended before its last step: {stopped[0]}{more}",
                where=str(self._folder.path),
                hint="mend that, then: reasoningbank rerun RUN --status error --missing",
            )

    def _chains(self, jobs: Iterable[Job]) -> list[Iterable[Job]]:
        chains: list[Iterable[Job]] = []
        for job in jobs:
            if not job.teaches:
                if reason := self._waits_for(job):
                    self._waiting[reason] += 1
                else:
                    chains.append([job])
                continue
            place = (job.key.arm, job.key.seed)
            if place not in self._streams:
                stream = self._streams[place] = self._stream(job.arm, job.key.seed)
                if reason := self._lacks_control(stream):
                    self._waiting[reason] += sum(j.teaches and _place(j) == place for j in jobs)
                else:
                    chains.append(stream.jobs())
        return chains

    def _lost(self) -> list[Job]:
        """Return the last steps of streams that ended with a bank that cannot be read any more."""
        lost: list[Job] = []
        snapshots = Snapshots(self._folder.path)
        roots = {
            (bank_arm(self._arms, job.arm).name, job.key.seed)
            for job in self._todo
            if job.step is None and bank_arm(self._arms, job.arm).memory.learns
        }
        for name, order in sorted(roots):
            steps = StepFolder(self._folder.path, name, order)
            with contextlib.suppress(RecordError):
                taken = steps.taken()
                if len(taken) < len(self._plan.stream):
                    continue
                try:
                    snapshots.read(taken[-1].after)
                except RecordError as error:
                    snapshots.set_aside(taken[-1].after)
                    steps.set_aside(taken[-1].step)
                    self._on_notice(f"{error}; it was set aside and is made again")
                    wanted = (name, order, taken[-1].step)
                    lost += [j for j in self._plan.jobs if (*_place(j), j.step) == wanted]
        return lost

    def _waits_for(self, job: Job) -> str:
        """Return what a trial rests on that is not there yet; empty for nothing."""
        root = bank_arm(self._arms, job.arm)
        if root.memory.learns and job.step is None:
            taken = len(StepFolder(self._folder.path, root.name, job.key.seed).taken())
            if taken < len(self._plan.stream):
                place = f"{root.name}.{job.key.seed}"
                return f"stream {place} is at step {taken} of {len(self._plan.stream)}"
        sampling = job.arm.sampling
        if sampling and sampling.tokens_of and job.step is None and self._tokens(job) is None:
            return f"{sampling.tokens_of}, whose tokens {job.key.arm} matches, lacks their tasks"
        return ""

    def _tokens(self, job: Job) -> int | None:
        assert job.arm.sampling is not None
        key = replace(job.key, arm=job.arm.sampling.tokens_of)
        found = self._read(key)
        return None if found is None or found.status == "error" else found.usage.tokens

    def _read(self, key: TrialKey) -> TrialRecord | None:
        try:
            return self._folder.read(key) if self._folder.done(key) else None
        except RecordError:
            return None

    def _bank(self, job: Job) -> tuple[str, MemoryBank]:
        if job.teaches:
            return self._streams[_place(job)].bank
        return self._banks.bank(job.arm, job.key.seed)

    def _stream(self, arm: Arm, order: int) -> Stream:
        begin = Snapshot.of(())
        if arm.memory.bank:
            begin = read_bank(arm.memory, order)
        steps = sum(job.teaches and _place(job) == (arm.name, order) for job in self._plan.jobs)
        return Stream(
            Learner(
                arm,
                self._experiment.metric,
                self._parts.distiller(arm),
                self._parts.consolidate if self._experiment.learning.consolidate else None,
            ),
            order,
            stream_order(self._plan.stream, order),
            self._folder,
            lambda: begin,
            self._parts.open_bank,
            judge=partial(self._judged, arm),
            control=partial(self._control, arm),
            retries=self._experiment.retries,
            pause=self._stop.event.wait,
            again=self._again,
            missing=self._missing,
            limit=steps,
            on_notice=self._on_notice,
        )

    def _judged(self, arm: Arm, record: TrialRecord) -> TrialRecord:
        """Return a record with the judgements that its arm believes, asked for if need be."""
        if arm.memory.judge == "execution":
            return record
        judged = judge_attempts(self._world, arm.judge_lm, record)
        if judged is not record:
            self._folder.write(judged)
        return judged

    def _control_key(self, arm: Arm, key: TrialKey) -> TrialKey | None:
        control = control_of(self._experiment, arm)
        if control is None:
            return None
        seeds = seeds_of(self._experiment, control)
        return TrialKey(control.name, key.task, key.seed if key.seed in seeds else seeds[0])

    def _control(self, arm: Arm, key: TrialKey) -> TrialRecord | None:
        other = self._control_key(arm, key)
        return self._read(other) if other else None

    def _lacks_control(self, stream: Stream) -> str:
        arm, tasks = stream.learner.arm, stream.tasks[: stream.limit]
        for key in (TrialKey(arm.name, task.id, stream.order) for task in tasks):
            other = self._control_key(arm, key)
            if other is None:
                continue
            found = self._read(other)
            if found is None or found.status == "error":
                return f"stream {arm.name}.{stream.order} waits for the trials of {other.arm}"
        return ""


def _place(job: Job) -> tuple[str, int]:
    return job.key.arm, job.key.seed
