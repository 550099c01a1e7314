"""One invocation of a run: which trials can run when, and with what.

A stream takes training tasks one after another, each with what was learned before it. Its state is
only on disk: the records of its trials, a snapshot of the bank per step, and a file per step that
is written last.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from reasoningbank.agents.program import Predictors
from reasoningbank.corpus import Task, split_tasks
from reasoningbank.errors import EndpointError, ModelError, RecordError, UsageError
from reasoningbank.experiment.compile import Compilation
from reasoningbank.experiment.config import Arm, Experiment, bank_arm, control_of, seeds_of
from reasoningbank.experiment.context import Given, Recall, RunContext
from reasoningbank.experiment.executors import RecordWriter, waits
from reasoningbank.experiment.memory_sources import read_bank, read_snapshot, write_snapshot
from reasoningbank.experiment.plan import Job, Plan, named_bank, permuted
from reasoningbank.experiment.recall import MemoryParts
from reasoningbank.experiment.records import Step, TrialKey, TrialRecord, snapshot_name, step_name
from reasoningbank.experiment.settings import RetrievedMemory
from reasoningbank.experiment.trial import Trial, judge_attempts
from reasoningbank.findings import counted
from reasoningbank.judge import RAN, findings_of, rule_verdict
from reasoningbank.memory import Counters, MemoryBank, Snapshot
from reasoningbank.memory.consolidate import consolidate
from reasoningbank.memory.experience import Experience
from reasoningbank.retrieval import open_embedder
from reasoningbank.trajectory import Usage


@dataclass
class LearningSession:
    """Orders the trials of a run, and gives them what they need of other trials and of memory."""

    experiment: Experiment
    plan: Plan
    writer: RecordWriter
    context: RunContext
    todo: Sequence[Job]
    again: Collection[TrialKey]
    missing: bool

    def __post_init__(self) -> None:
        self.folder, self.stop = self.writer.folder, self.writer.stop.event
        self.on_notice = self.writer.on_notice
        self.parts = MemoryParts(self.context, self.plan.corpus, self.plan.tasks)
        if self.experiment.uses_memory:
            # A missing embedder ends the run before its first trial.
            open_embedder()
        self._names: dict[tuple[str, int | None, bool], str] = {}
        self._banks: dict[str, MemoryBank] = {}
        self._lock = threading.Lock()
        self._streams: dict[tuple[str, int], TaskStream] = {}
        self._waiting: Counter[str] = Counter()
        self._began = False

    def waves(self) -> Iterator[list[Iterable[Job]]]:
        """Yield the chains that can run side by side, one wave after the other."""
        left = [*self._lost(), *self.todo]
        while left:
            chains, left = self._ready(left)
            self._began = self._began or bool(chains)
            if chains:
                yield chains
            elif not self._compile(left):
                return

    def trial(self, job: Job, worker: int) -> Trial:
        """Return a trial with what it is given of memory."""

        def remember() -> Recall:
            given = self.given(job)
            return self.parts.recall(job, given, lambda: self._bank(job, given.bank))

        return Trial(self.context, self.experiment, job, worker, remember, self._tokens(job))

    def given(self, job: Job) -> Given:
        """Return what a trial needs of other trials of this run."""
        name = self._bank_name(job) if isinstance(job.arm.memory, RetrievedMemory) else ""
        return Given(name, self._tokens(job), self._program(job))

    def close(self) -> None:
        """Close the banks."""
        for bank in self._banks.values():
            bank.close()
        for stream in self._streams.values():
            stream.close()

    def finish(self) -> None:
        """Report what could not be run."""
        where = str(self.folder.path)
        if self._waiting and not self._began:
            hint = "run these first, or leave --only and --task out"
            raise UsageError("; ".join(self._waiting), where=where, hint=hint)
        for reason, trials in self._waiting.items():
            self.on_notice(f"{counted(trials, 'trial')} not run: {reason}")
        if stopped := [stream for stream in self._streams.values() if stream.stopped]:
            more = f" (and {len(stopped) - 1} more streams)" if len(stopped) > 1 else ""
            what = f"a stream ended before its last step: {stopped[0].stopped}{more}"
            status = "bug" if any(one.stopped_by == "bug" for one in stopped) else "error"
            hint = f"fix the cause, then: reasoningbank rerun {where} --status {status} --missing"
            raise EndpointError(what, where=where, hint=hint)

    def snapshot(self, name: str) -> Snapshot | None:
        """Return a snapshot; one that cannot be read is set aside."""
        try:
            return read_snapshot(self.folder, name)
        except RecordError as error:
            if there := self.folder.exists(snapshot_name(name)):
                self.folder.set_aside(snapshot_name(name))
            aside = "; it was set aside" if there else ""
            self.on_notice(f"{error}{aside}; it is made again")
            return None

    def judged(self, arm: Arm, record: TrialRecord) -> TrialRecord:
        """Return a record with the judgements that its arm learns from."""
        if arm.learns_from == "execution":
            return record
        judged = judge_attempts(self.context, arm.judge_lm, record)
        if judged != record:
            self.folder.write(judged)
        return judged

    def control(self, job: Job) -> tuple[str, TrialRecord | None]:
        """Return the name of an arm's control, empty for none, and its trial if that is on disk."""
        control = control_of(self.experiment, job.arm)
        if control is None:
            return "", None
        seeds = seeds_of(self.experiment, control)
        seed = job.seed if job.seed in seeds else seeds[0]
        return control.name, self._read(TrialKey(control.name, job.task.id, seed))

    def _ready(self, jobs: Sequence[Job]) -> tuple[list[Iterable[Job]], list[Job]]:
        """Return what can run now, and the jobs that wait for it; note what these wait for."""
        chains: list[Iterable[Job]] = []
        waiting: list[Job] = []
        reasons: dict[tuple[Any, ...], str] = {}
        self._waiting.clear()
        for job in jobs:
            alone = job.arm.tokens_from or job.arm.compile
            place = (*_place(job), job.step is None, job.key if alone else None)
            if place not in reasons:
                reasons[place] = self._waits_for(job)
                if job.teaches and not reasons[place]:
                    chains.append(self._stream(job).jobs())
            if reason := reasons[place]:
                self._waiting[reason] += 1
                waiting.append(job)
            elif not job.teaches:
                chains.append([job])
        if chains and isinstance(last := chains[-1], list):
            # The model's server still holds the prompt of this agent.
            waiting.sort(key=lambda job: job.arm.agent != last[0].arm.agent)
        return chains, waiting

    def _stream(self, job: Job) -> TaskStream:
        if (place := _place(job)) not in self._streams:
            mine = [one for one in self.plan.jobs if one.teaches and _place(one) == place]
            self._streams[place] = TaskStream(self, job.arm, job.seed, mine)
        return self._streams[place]

    def _lost(self) -> list[Job]:
        """Return the last steps of streams whose final bank can no longer be read."""
        lost: list[Job] = []
        roots = [(bank_arm(self.experiment, j.arm), j.seed) for j in self.todo if j.step is None]
        for name, order in sorted({(root.name, seed) for root, seed in roots if root.learns}):
            with contextlib.suppress(RecordError):
                taken = self.folder.taken(name, order)
                if len(taken) == len(self.plan.stream) and self.snapshot(taken[-1].after) is None:
                    self.folder.set_aside(taken[-1].name)
                    wanted = (name, order, taken[-1].step)
                    lost += [j for j in self.plan.jobs if (*_place(j), j.step) == wanted]
        return lost

    def _waits_for(self, job: Job) -> str:
        """Return what a trial depends on that does not exist yet; empty for nothing."""
        root, arm = bank_arm(self.experiment, job.arm), job.arm
        if job.teaches:
            for step in self._stream(job).trials:
                name, found = self.control(step)
                if name and (found is None or found.failed):
                    return f"stream {arm.name}.{job.seed} waits for the trials of {name}"
        elif job.step is None and root.learns:
            taken = len(self.folder.taken(root.name, job.seed))
            if taken < (every := len(self.plan.stream)):
                return f"stream {root.name}.{job.seed} is at step {taken} of {every}"
        if arm.compile and self._program(job) is None:
            if arm.compiled_like and self._limit(job) is None:
                return f"{arm.name} waits for the stream {arm.compiled_like}.{job.seed}"
            return f"{arm.name}.{job.seed} waits to be compiled"
        if arm.tokens_from and job.step is None and self._tokens(job) is None:
            return f"{arm.tokens_from}, whose tokens {job.arm.name} matches, lacks their tasks"
        return ""

    def _compile(self, jobs: Sequence[Job]) -> bool:
        """Compile what the first of these trials needs that can be; return whether it can run."""
        for job in jobs:
            (name, seed), arm, limit = _place(job), job.arm, self._limit(job)
            if not arm.compile or self.stop.is_set() or (arm.compiled_like and not limit):
                continue
            mine = [one for one in self.plan.jobs if _place(one) == (name, seed)]
            there = next((str(one.key) for one in mine if self.folder.exists(one.key.path)), "")
            if there and self.folder.program(name, seed) is None:
                what = f"compiled/{name}.{seed}.json is missing, and {there} used it"
                hint = f"restore it, or move the trials of {name} away"
                raise RecordError(what, where=str(self.folder.path), hint=hint, code="no-program")
            tasks = permuted(self.plan.training[name], seed)
            most = f", at most {limit:,} tokens" if limit else ""
            how = f"{arm.compile.optimizer} on {counted(len(tasks), 'task')}{most}"
            self.on_notice(f"{name}.{seed} is compiled with {how}")
            self._began = True
            compilation = Compilation(
                self.context, self.experiment, arm, seed, tasks, self.parts, limit, self.stop
            )
            compilation.run(self.folder, [one.task for one in mine if self._program(one) is None])
            return self._program(job) is not None
        return False

    def _program(self, job: Job) -> Predictors | None:
        """Return what the agent of a trial is given; None if nothing is, or is compiled yet."""
        found = self.folder.program(*_place(job)) if job.arm.compile else None
        programs: Mapping[str, Predictors] = (found or {}).get("programs", {})
        return programs[""] if "" in programs else programs.get(job.task.id)

    def _limit(self, job: Job) -> int | None:
        """Return the most tokens of compiling; None without a limit, or before it is known."""
        settings, like, seed = job.arm.compile, job.arm.compiled_like, job.seed
        if not like:
            return settings.tokens if settings else None
        steps = self.folder.taken(like, seed)
        if len(steps) < len(self.plan.stream):
            return None
        trials = (self.folder.read(TrialKey(like, step.task, seed)) for step in steps)
        used = (*(one.usage for one in trials), *(step.usage for step in steps))
        return sum(one.tokens for one in used)

    def _tokens(self, job: Job) -> int | None:
        """Return the tokens of the trial that a trial matches; None for none."""
        if not job.arm.tokens_from or job.step is not None:
            return None
        found = self._read(replace(job.key, arm=job.arm.tokens_from))
        return None if found is None or found.failed else found.usage.tokens

    def _read(self, key: TrialKey) -> TrialRecord | None:
        with contextlib.suppress(RecordError):
            return self.folder.read(key) if self.folder.exists(key.path) else None
        return None

    def _bank(self, job: Job, name: str) -> MemoryBank:
        """Return the bank that a trial sees, by its snapshot's hash."""
        if job.teaches:
            return self._streams[_place(job)].bank[1]
        with self._lock:
            if name not in self._banks:
                self._banks[name] = MemoryBank.from_snapshot(read_snapshot(self.folder, name))
            return self._banks[name]

    def _bank_name(self, job: Job) -> str:
        """Return the hash of the snapshot of a trial's bank, which is then on disk."""
        if job.teaches:
            return self._streams[_place(job)].bank[0]
        root, seed = bank_arm(self.experiment, job.arm), job.seed
        memory = job.arm.memory
        composes = job.step is None and isinstance(memory, RetrievedMemory) and memory.compose
        place = (root.name, seed if root.bank_per_seed else None, composes)
        with self._lock:
            if place not in self._names:
                name = self._stored_bank(root, seed)
                self._names[place] = self._composed_bank(name) if composes else name
            return self._names[place]

    def _composed_bank(self, name: str) -> str:
        """Return a bank with what its strategies make in pairs: made once, then read."""
        folder, note = self.folder, f"learning/{name}.composed.json"
        if made := self._noted(note):
            return made
        self.on_notice(f"the strategies of the bank {name} are combined")
        snapshot = self.parts.composed(read_snapshot(folder, name))
        write_snapshot(folder, snapshot)
        folder.write_json(note, {"version": 1, "of": name, "after": snapshot.hash})
        return snapshot.hash

    def _noted(self, note: str) -> str:
        """Return the snapshot that a note names; empty if it must be made, or made again."""
        if self.folder.exists(note):
            with contextlib.suppress(RecordError, KeyError, TypeError):
                name = str(self.folder.read_json(note)["after"])
                read_snapshot(self.folder, name)
                return name
        return ""

    def _stored_bank(self, root: Arm, seed: int) -> str:
        if root.learns:
            # Its trials wait until the stream is at its end.
            return self.folder.taken(root.name, seed)[-1].after
        if root.memory.source == "gold":
            return self._bank_of_gold(root)
        snapshot = read_bank(root, seed)
        write_snapshot(self.folder, snapshot)
        return snapshot.hash

    def _bank_of_gold(self, root: Arm) -> str:
        """Return the snapshot of the few-shot examples: made once, and read from then on."""
        folder, note = self.folder, f"learning/{root.name}.bank.json"
        if name := self._noted(note):
            return name
        distiller, split = self.parts.distiller(root), split_tasks(self.plan.corpus).by_id()
        made = [distiller.from_gold(task, split.get(task.id)) for task in self.plan.stream]
        with MemoryBank.from_snapshot(Snapshot.of(())) as bank:
            added = bank.add([item for one in made for item in one.items], reason="gold")
            snapshot = bank.snapshot()
        write_snapshot(folder, snapshot)
        rejected = [asdict(rejected) for one in made for rejected in one.rejected]
        content = {"version": 1, "arm": root.name, "source": "gold", "after": snapshot.hash}
        content |= {"tasks": [task.id for task in self.plan.stream]}
        content |= {"added": list(dict.fromkeys(added)), "rejected": rejected}
        folder.write_json(note, content)
        return snapshot.hash


def _place(job: Job) -> tuple[str, int]:
    return job.arm.name, job.seed


class TaskStream:
    """One arm's way through the training tasks in one task permutation."""

    def __init__(
        self, session: LearningSession, arm: Arm, order: int, trials: Sequence[Job]
    ) -> None:
        self.arm, self.order, self.trials = arm, order, trials
        self.stopped, self.stopped_by = "", "error"
        self._session, self._folder = session, session.folder
        self._begin = read_bank(arm, order) if named_bank(arm) else Snapshot.of(())
        self._distiller = session.parts.distiller(arm)
        self._open_bank: tuple[str, MemoryBank] | None = None

    @property
    def bank(self) -> tuple[str, MemoryBank]:
        """The bank that the current trial may see, with its snapshot's hash."""
        assert self._open_bank is not None
        return self._open_bank

    def jobs(self) -> Iterator[Job]:
        """Yield the missing trials in order, and take each step once its trial is stored."""
        session, begins = self._session, self._begin
        write_snapshot(self._folder, begins)
        after = [begins.hash]
        while len(after) <= len(self.trials):
            number, before = len(after) - 1, after[-1]
            job = self.trials[number]
            wanted = session.missing or job.key in session.again
            step = self._taken(number, before)
            if step is not None:
                if not self._there(job.key) and wanted:
                    # Its record was lost or damaged; what was learned from it remains.
                    if self._open(step.before):
                        yield job
                    else:
                        session.on_notice(f"{job.key.path}: is lost, and so is the memory it saw")
                after.append(step.after)
                continue
            if not self._open(before):
                if number == 0:
                    write_snapshot(self._folder, begins)
                else:
                    # The step that made the snapshot is taken again, from the bank before it.
                    self._folder.set_aside(step_name(self.arm.name, self.order, number - 1))
                    after.pop()
                continue
            if not self._there(job.key) and wanted:
                yield job
            if not self._folder.exists(job.key.path):
                return
            taken = self._take(job)
            if taken is None:
                return
            after.append(taken.after)

    def close(self) -> None:
        """Close the bank; everything that matters is on disk."""
        if self._open_bank is not None:
            self._open_bank[1].close()
        self._open_bank = None

    def _there(self, key: TrialKey) -> bool:
        """Return whether a trial is on disk and need not be run again."""
        if not self._folder.exists(key.path):
            return False
        return key not in self._session.again or not self._folder.read(key).failed

    def _taken(self, number: int, before: str) -> Step | None:
        """Return a step that is on disk and follows its predecessor."""
        name = step_name(self.arm.name, self.order, number)
        try:
            step = self._folder.step(self.arm.name, self.order, number)
        except RecordError:
            aside = self._folder.set_aside(name)
            notice = f"{aside}: could not be read and was set aside; it is made again"
            self._session.on_notice(notice)
            return None
        where, task = str(self._folder.file(name)), self.trials[number].task
        if step is not None and step.before != before:
            what = f"begins from the bank {step.before}, and the step before it ended with {before}"
            hint = "move the files of this step and all later ones away, with their trials"
            raise RecordError(what, where=where, hint=hint, code="step-does-not-follow")
        if step is not None and step.task != task.id:
            what = f"is of {step.task}, and this task permutation has {task.id} there"
            hint = "resume with the version of this package that began the run"
            raise RecordError(what, where=where, hint=hint, code="step-of-another-task")
        return step

    def _open(self, name: str) -> bool:
        """Open the bank of a snapshot; return whether that succeeded."""
        if self._open_bank is not None and self._open_bank[0] == name:
            return True
        if (snapshot := self._session.snapshot(name)) is None:
            return False
        self.close()
        self._open_bank = name, MemoryBank.from_snapshot(snapshot)
        return True

    def _take(self, job: Job) -> Step | None:
        """Learn from a trial on disk; return None if the infrastructure prevented it."""
        session, record = self._session, self._folder.read(job.key)
        total = len(session.plan.stream)
        place = f"stream {self.arm.name}.{self.order}, step {record.step} of {total}"
        if record.failed:
            self.stopped, self.stopped_by = f"{place}: {record.error}", record.status
            return None
        name = self.bank[0]
        if record.memory != name:
            raise RecordError(
                f"saw the bank {record.memory or 'of no stream'}, and the stream is at {name}",
                where=str(self._folder.file(job.key.path)),
                hint="move the file away and run the same command again",
                code="trial-of-another-bank",
            )
        failure: Exception | None = None
        for seconds in itertools.chain([0.0], waits(session.experiment.retries)):
            if seconds and session.stop.wait(seconds):
                return None
            try:
                record = session.judged(self.arm, record)
                step = self._learn(record, job.task, session.control(job)[1])
                break
            except (EndpointError, ModelError) as error:
                failure = error
                # Undo whatever was done to the bank.
                self.close()
                self._open(name)
        else:
            self.stopped = f"{place}: nothing could be learned ({failure})"
            return None
        write_snapshot(self._folder, self.bank[1].snapshot())
        self._folder.write_step(step)
        # The next step begins from disk: the history of a bank decides how it is consolidated, and
        # a bank reopened after a crash would have another history.
        self.close()
        return step

    def _learn(self, record: TrialRecord, task: Task, control: TrialRecord | None) -> Step:
        """Learn from a trial; the bank is changed."""
        began, session = time.monotonic(), self._session
        (before, bank), metric = self.bank, session.experiment.metric
        found = outcome_of(self.arm, metric, record)
        experiences = list(experiences_of(record, self.arm, task, metric))
        distilled = self._distiller.distil(experiences) if experiences else None
        shown = retrieved_in(record)
        without = None
        if control is not None and control.verdict is not None and found.success is not None:
            without = outcome_of(self.arm, metric, control).success
        right, wrong = found.success is True, found.success is False
        # Helped: only this trial succeeded; hurt: only the one without memory.
        counts = (right, wrong, right and without is False, wrong and without is True)
        bank.count(shown, Counters(1, *map(int, counts)))
        known = {item.id for item in bank.items(status=None)}
        ids = bank.add(distilled.items, reason=str(record.key)) if distilled else []
        added = tuple(dict.fromkeys(one for one in ids if one not in known))
        prefixes = session.context.endpoint.prefixes
        consolidates = session.experiment.learning.consolidate
        changes = consolidate(bank, new=added, prefixes=prefixes) if consolidates else []
        return Step(
            arm=self.arm.name,
            order=record.key.seed,
            step=record.step or 0,
            task=record.key.task,
            trial=str(record.key),
            before=before,
            after=bank.snapshot().hash,
            retrieved=shown,
            added=added,
            merged=tuple(dict.fromkeys(one for one in ids if one in known)),
            rejected=tuple(asdict(one) for one in distilled.rejected) if distilled else (),
            changes=tuple(
                {"action": str(one.action), "item": str(one.item_id), "reason": str(one.reason)}
                for one in changes
            ),
            judges=dict(found.judges),
            used=found.used,
            success=found.success,
            control=str(control.key) if control is not None and without is not None else "",
            usage=distilled.usage if distilled else Usage(),
            seconds=round(time.monotonic() - began, 3),
        )


@dataclass(frozen=True)
class Outcome:
    """The verdicts of judges on an attempt, and the one that is learned from."""

    success: bool | None
    used: str
    judges: Mapping[str, bool | None]


def outcome_of(arm: Arm, metric: str, attempt: TrialRecord) -> Outcome:
    """Return the verdict on an attempt that an arm learns from."""
    said, key = attempt.verdict or {}, "lenient" if metric == "lenient" else "strict"
    judges: dict[str, bool | None] = {"execution": bool(said.get(key)) if attempt.judged else None}
    successes = {name: words.get("success") for name, words in attempt.judgements.items()}
    judges |= {name: one if isinstance(one, bool) else None for name, one in successes.items()}
    rule = rule_verdict(said)
    judges.setdefault("rule", rule["success"] if rule else None)
    lm, believed = f"lm:{arm.judge_lm}", arm.learns_from
    if believed != "both":
        used = "execution" if believed == "execution" else lm
        return Outcome(judges.get(used), used, judges)
    agreed = judges["execution"] if judges["execution"] == judges.get(lm) else None
    return Outcome(agreed, f"execution and {lm}", judges)


def experiences_of(record: TrialRecord, arm: Arm, task: Task, metric: str) -> Iterator[Experience]:
    """Yield the attempts of a trial that can be learned from, the chosen one first."""
    for attempt in record.attempts():
        said = attempt.verdict or {}
        outcome = outcome_of(arm, metric, attempt)
        if outcome.success is None:
            continue
        ran = said.get("status") in RAN
        yield Experience(
            task=task.id,
            group=task.group,
            corpus=task.corpus,
            question=record.question,
            sparql=attempt.sparql,
            success=outcome.success,
            judge=outcome.used,
            ran=ran,
            rows=int(said.get("n_predicted") or 0) if ran else None,
            trajectory=attempt.trajectory,
            trial=str(record.key),
            model=arm.lm,
            findings=findings_of(said) if arm.learns_from != "lm" else (),
            time=record.started,
        )


def retrieved_in(record: TrialRecord) -> tuple[str, ...]:
    """Return the ids of the items that a trial was shown, each once."""
    shown = (
        item
        for trajectory in (attempt.trajectory for attempt in record.attempts())
        for event in trajectory.of("memory_retrieved")
        for item in trajectory.resolve(event.data).get("items") or ()
    )
    return tuple(dict.fromkeys(str(item["id"]) for item in shown))
