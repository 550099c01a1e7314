"""One invocation of a run whose arms use memory: which trials can run when, and with what."""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from reasoningbank.errors import EndpointError, RecordError, UsageError
from reasoningbank.experiment.config import Arm, Experiment, bank_arm, control_of, seeds_of
from reasoningbank.experiment.context import RunContext
from reasoningbank.experiment.plan import Job, Plan, named_bank, permuted, read_bank
from reasoningbank.experiment.recall import Banks, MemoryParts, Recalls
from reasoningbank.experiment.records import RunFolder, StepFolder, TrialKey, TrialRecord
from reasoningbank.experiment.settings import LearnedMemory
from reasoningbank.experiment.state import Stop
from reasoningbank.experiment.streams import Learner, Snapshots, TaskStream
from reasoningbank.experiment.trial import Trial, judge_attempts
from reasoningbank.memory import MemoryBank, Snapshot


class LearningSession:
    """Orders the trials of a run with memory, context layers or sampling, and equips them."""

    def __init__(
        self,
        experiment: Experiment,
        plan: Plan,
        folder: RunFolder,
        context: RunContext,
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
        self._context = context
        self._todo = todo
        self._again = again
        self._missing = missing
        self._stop = stop
        self._on_notice = on_notice
        self._parts = MemoryParts(context, plan)
        self._banks = Banks(experiment, folder.path, plan.stream, self._parts)
        self._recalls = Recalls(context, plan, self._bank, self._parts.builder)
        self._streams: dict[tuple[str, int], TaskStream] = {}
        self._waiting: Counter[str] = Counter()
        self._chained = False

    def waves(self) -> Iterator[list[Iterable[Job]]]:
        """Yield the chains that can run side by side, one wave after the other."""
        waves: dict[int, list[Job]] = defaultdict(list)
        for job in [*self._lost(), *self._todo]:
            waves[self._level(job)].append(job)
        for level in sorted(waves):
            chains = self._chains(waves[level])
            self._chained = self._chained or bool(chains)
            if chains:
                yield chains

    def trial(self, job: Job, worker: int) -> Trial:
        """Return a trial with what it is given of memory."""
        matched = bool(job.arm.tokens_from) and job.step is None
        return Trial(
            self._context,
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
        """Report what could not be run."""
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
                hint="fix the cause, then: reasoningbank rerun RUN --status error --missing",
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
        """Return the last steps of streams whose final bank can no longer be read."""
        lost: list[Job] = []
        snapshots = Snapshots(self._folder.path)
        roots = {
            (bank_arm(self._experiment, job.arm).name, job.key.seed)
            for job in self._todo
            if job.step is None and bank_arm(self._experiment, job.arm).learns
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
        """Return what a trial depends on that does not exist yet; empty for nothing."""
        root = bank_arm(self._experiment, job.arm)
        if root.learns and job.step is None:
            taken = len(StepFolder(self._folder.path, root.name, job.key.seed).taken())
            if taken < len(self._plan.stream):
                place = f"{root.name}.{job.key.seed}"
                return f"stream {place} is at step {taken} of {len(self._plan.stream)}"
        if job.arm.tokens_from and job.step is None and self._tokens(job) is None:
            return f"{job.arm.tokens_from}, whose tokens {job.key.arm} matches, lacks their tasks"
        return ""

    def _level(self, job: Job) -> int:
        """Return the wave in which a trial runs, from 0: after the trials it depends on."""
        if job.step is None:
            return self._evaluation_level(job.arm)
        return self._stream_level(job.arm) if job.teaches else 0

    def _stream_level(self, arm: Arm) -> int:
        return 0 if control_of(self._experiment, arm) is None else 1

    def _evaluation_level(self, arm: Arm) -> int:
        root = bank_arm(self._experiment, arm)
        level = self._stream_level(root) + 1 if root.learns else 0
        if arm.tokens_from:
            other = self._experiment.arms_by_name[arm.tokens_from]
            level = max(level, self._evaluation_level(other) + 1)
        return level

    def _tokens(self, job: Job) -> int | None:
        found = self._read(replace(job.key, arm=job.arm.tokens_from))
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

    def _stream(self, arm: Arm, order: int) -> TaskStream:
        begin = Snapshot.of(())
        if named_bank(arm):
            begin = read_bank(arm, order)
        steps = sum(job.teaches and _place(job) == (arm.name, order) for job in self._plan.jobs)
        return TaskStream(
            Learner(
                arm,
                self._experiment.metric,
                self._parts.distiller(arm),
                self._parts.consolidate if self._experiment.learning.consolidate else None,
            ),
            order,
            permuted(self._plan.stream, order),
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
        """Return a record with the judgements that its arm learns from."""
        if not isinstance(arm.memory, LearnedMemory) or arm.memory.judge == "execution":
            return record
        judged = judge_attempts(self._context, arm.judge_lm, record)
        if judged != record:
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

    def _lacks_control(self, stream: TaskStream) -> str:
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
