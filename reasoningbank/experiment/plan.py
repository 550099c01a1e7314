"""Which trials an experiment consists of, in the order in which they run."""

from __future__ import annotations

import contextlib
import functools
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from reasoningbank.agents import make_agent, uses
from reasoningbank.corpus import (
    Pack,
    Task,
    corpus_prefixes,
    find_task,
    groups_of,
    levels,
    load_pack,
    load_shacl_tasks,
    sample_tasks,
    split_tasks,
)
from reasoningbank.corpus.task import shuffle_key
from reasoningbank.errors import RecordError, UsageError
from reasoningbank.experiment.config import Arm, Experiment, seeds_of
from reasoningbank.experiment.records import RunFolder, TrialKey, snapshot_name
from reasoningbank.experiment.settings import BankMemory, LearnedMemory, TaskSelection
from reasoningbank.experiment.storage import RunStorage, shipped
from reasoningbank.findings import Finding
from reasoningbank.imports import function_of, is_import_path
from reasoningbank.judge import OwnJudge
from reasoningbank.lm import parse_name
from reasoningbank.tools import endpoint_tools, sparql
from reasoningbank.tools.adapting import own_tool
from reasoningbank.tools.returns import MEMORY_TOOL_NAMES

if TYPE_CHECKING:
    from reasoningbank.memory import MemoryItem


@dataclass(frozen=True)
class Job:
    """A trial to run."""

    arm: Arm
    task: Task
    seed: int = 0
    step: int | None = None

    @functools.cached_property
    def key(self) -> TrialKey:
        """What identifies the trial in the run."""
        return TrialKey(self.arm.name, self.task.id, self.seed)

    @property
    def teaches(self) -> bool:
        """Whether it is a step of a stream that something is learned from."""
        return self.step is not None and self.arm.learns


@dataclass(frozen=True)
class Plan:
    """The trials of an experiment on its pack; nothing is opened yet."""

    pack: Pack
    corpus: tuple[Task, ...]
    tasks: tuple[Task, ...]
    hidden: frozenset[str]
    jobs: tuple[Job, ...]
    stream: tuple[Task, ...] = ()
    hidden_by_task: Mapping[str, frozenset[str]] = field(default_factory=dict)
    #: What an arm is made of and is not given in this run; people see it before the run starts.
    denied: tuple[Finding, ...] = ()
    #: The tasks that the agents of arms are compiled on, by arm.
    training: Mapping[str, tuple[Task, ...]] = field(default_factory=dict)

    @property
    def services(self) -> list[str]:
        """Addresses that SERVICE may name at a running endpoint."""
        return [url for task in self.corpus for url in task.federates_with]


def plan_run(
    experiment: Experiment,
    *,
    limit: int | None = None,
    only: Sequence[str] = (),
    tasks: Sequence[str] = (),
) -> Plan:
    """Plan an experiment's run."""
    for arm in experiment.arms:
        check_parts(arm)
        try:
            for seed in seeds_of(experiment, arm) if named_bank(arm) else ():
                find_bank(arm, seed)
        except UsageError as error:
            raise error.at(f"arm {arm.name}") from None
    pack = load_pack(experiment.pack)
    if experiment.language not in (*pack.languages, "en"):
        hint = f"choose {' or '.join(pack.languages)}"
        what = f"{pack.key} has no questions in {experiment.language!r}"
        raise UsageError(what, where="language", hint=hint)
    corpus = load_shacl_tasks(experiment.pack, language=experiment.language)
    selected = select_tasks(corpus, experiment.tasks)
    stream = _training(experiment, corpus, selected)
    training = {
        arm.name: tuple(_training(experiment, corpus, selected, arm))
        for arm in experiment.arms
        if arm.compile
    }
    learned = stream if experiment.mode == "learn" else ()
    run = [*selected, *learned, *(task for tasks in training.values() for task in tasks)]
    hidden = hidden_tasks(corpus, run)
    if not pack.prefixes:
        # A bare folder of examples: namespaces are known only from what the examples declare.
        shown = (task.expected_sparql for task in corpus if task.id not in hidden)
        pack = replace(pack, prefixes=corpus_prefixes(shown))
    # Each bank is read once, however many arms begin with it.
    begun = {named_bank(arm): arm for arm in experiment.arms}
    banks = {name: _bank_items(arm) for name, arm in begun.items()}
    examples = (item.pattern for items in banks.values() for item in items if item.src == "gold")
    known = [*(stream or split_tasks(corpus).train), *examples]
    found = levels(selected, known, pack.prefixes)
    selected = [task.changed(level=found[task.id]) for task in selected]
    wanted = {find_task(run, task_id).id for task_id in tasks}
    for name in only:
        if name not in experiment.arms_by_name:
            hint = f"choose from {', '.join(experiment.arms_by_name)}"
            raise UsageError(f"unknown arm {name!r}", hint=hint)
    jobs = [
        job
        for job in plan_trials(experiment, selected, None if wanted else limit, stream)
        if (not only or job.arm.name in only)
        and (not wanted or (job.task.id in wanted and not job.teaches))
    ]
    # As each trial's leakage filter has them.
    held_out = [*selected, *split_tasks(corpus).test]
    frozen = {named_bank(arm) for arm in experiment.arms if arm.memory.source == "bank"}
    bare = {name for name in frozen if banks[name] and _all_leak(banks[name], held_out, pack)}
    sets = tuple(corpus), tuple(selected), hidden, tuple(jobs), tuple(stream)
    plan = Plan(pack, *sets, _hidden_by_task(experiment, corpus), training=training)
    return replace(plan, denied=tuple(_denied(plan, bare)))


def _denied(plan: Plan, bare_banks: Collection[str]) -> Iterator[Finding]:
    """Yield a finding for each arm that has trials without anything that it is made of."""
    jobs, arms = plan.jobs, {job.arm.name: job.arm for job in plan.jobs}
    agents = {name: make_agent(arm.agent, **arm.options) for name, arm in arms.items()}
    made = {name for name, agent in agents.items() if getattr(agent, "needs_examples", False)}
    hidden = plan.hidden_by_task
    shown = [(j.arm.name, hidden.get(j.task.id, plan.hidden)) for j in jobs if j.arm.name in made]
    held = {key for job in jobs if not job.teaches for key in (job.task.id, job.task.group)} - {""}

    def named(trials: Iterable[str], why: str, hint: str) -> Iterator[Finding]:
        for name, number in Counter(trials).items():
            what = f"{number} of its trials are shown {why}"
            fields = {"arm": name, "trials": number}
            yield Finding("no-examples", what, where=f"arm {name}", hint=hint, fields=fields)

    if not any(held.isdisjoint((task.id, task.group)) for task in plan.stream):
        of_golds = (job.arm.name for job in jobs if job.arm.memory.source == "gold")
        yield from named(of_golds, "no gold: the run evaluates them all", "select fewer in [tasks]")
    of_banks = (job.arm for job in jobs if job.arm.memory.source == "bank")
    of_bare = (arm.name for arm in of_banks if named_bank(arm) in bare_banks)
    why = "no item of its bank: all rest on held-out tasks"
    yield from named(of_bare, why, "select fewer in [tasks]")
    if not shown:
        return
    from reasoningbank.nl2sparql.examples import examples_left

    left = {ids: examples_left(plan.pack, ids) for ids in {ids for _, ids in shown}}
    bare = (name for name, ids in shown if not left[ids])
    hint = "select fewer in [tasks], or set leave_out = 'group'"
    yield from named(bare, "no example: all of the pack are left out", hint)


def check_parts(arm: Arm) -> None:
    """Check that an arm's agent, tools, judge and distiller exist on this machine."""
    agent, where = make_agent(arm.agent, **arm.options), f"arm {arm.name}"
    # An arm that claims memory and has none would be a false result.
    blind = not (uses(agent, "context") or uses(agent, "examples"))
    if blind and (arm.memory.in_context or arm.layers):
        what = f"{arm.agent} is shown no memory: its forward names neither context nor examples"
        raise UsageError(what, where=where, code="memory-not-shown")
    if arm.memory.as_tools and not uses(agent, "tools"):
        what, hint = f"{arm.agent} has no tools", "set memory.show = 'context'"
        raise UsageError(what, where=where, hint=hint, code="agent-without-tools")
    if getattr(arm.memory, "demonstrations", False) and not uses(agent, "sandbox"):
        what = "memory.demonstrations are turns of code, only for rlm"
        raise UsageError(what, where=where, code="demonstrations-need-rlm")
    if arm.compile:
        # Runs that compile nothing need not import it.
        from reasoningbank.experiment.compile import check_optimizer

        if not getattr(agent, "compiles", False):
            what = f"{arm.agent} has no predictors that an optimizer could change"
            hint = "choose direct, rlm, react, or a module that makes its predictors in __init__"
            raise UsageError(what, where=where, hint=hint, code="not-compilable")
        check_optimizer(arm.compile, f"{where}, compile")
    _check_tools(arm.tools if isinstance(arm.tools, tuple) else (), where)
    if is_import_path(arm.judge_lm):
        OwnJudge(arm.judge_lm, where)
    for name, takes in (("distiller", ("experiences",)), ("retriever", ("question", "items"))):
        path = getattr(arm.memory, name, "")
        if is_import_path(path):
            what = f"a function of {' and '.join(takes)}"
            function_of(path, len(takes), what, f"{where}, memory.{name}")
    distiller = getattr(arm.memory, "distiller", "rules")
    if distiller != "rules" and not is_import_path(distiller):
        try:
            parse_name(distiller)
        except UsageError as error:
            hint = f"{error.hint}; or rules, or a function as package.module:name"
            raise UsageError(error.what, where=f"{where}, memory.distiller", hint=hint) from error


def sandboxed(arms: Iterable[Arm]) -> bool:
    """Return whether the agent of an arm runs code in a sandbox."""
    for arm in {arm.name: arm for arm in arms}.values():
        # An agent that does not exist here is an error elsewhere.
        with contextlib.suppress(UsageError):
            if uses(make_agent(arm.agent, **arm.options), "sandbox"):
                return True
    return False


def _check_tools(names: Sequence[str], where: str) -> None:
    """Check that an arm's tools exist, and that no two have the same name."""
    there = (*sparql.TOOL_NAMES, *endpoint_tools.TOOL_NAMES)
    taken = {*there, *MEMORY_TOOL_NAMES}
    for path in names:
        if not is_import_path(path):
            if path not in there:
                hint = f"choose from {', '.join(there)}"
                raise UsageError(f"unknown tool {path!r}", where=where, hint=hint)
            continue
        name = own_tool(path, where=where).__name__
        if name in taken:
            what = f"{path} has the name of another tool, {name}"
            raise UsageError(what, where=where, hint="rename it", code="tool-name-taken")
        taken.add(name)


def named_bank(arm: Arm) -> str:
    """Return the bank that an arm's memory names: a file or a run; empty for none."""
    return arm.memory.bank if isinstance(arm.memory, BankMemory | LearnedMemory) else ""


def find_bank(arm: Arm, seed: int) -> tuple[RunStorage, str]:
    """Return a storage and the name in it of the bank that `memory.bank` names for a seed."""
    where, stream = shipped(Path(named_bank(arm))), getattr(arm.memory, "stream", "")
    storage, name = RunStorage(where.parent), where.name
    if stream:
        taken = RunFolder(where).taken(stream, seed)
        if not taken:
            what = f"there is no stream {stream}.{seed} in {where}"
            hint = "name a run in mode 'learn', its arm, and seeds it had"
            raise UsageError(what, hint=hint, code="no-stream")
        storage, name = RunStorage(where), snapshot_name(taken[-1].after)
    elif where.is_dir():
        hint = "name the arm whose stream is meant as memory.stream"
        raise UsageError(f"{where} is a folder, not a bank", hint=hint, code="not-a-bank")
    if not storage.exists(name):
        hint = "name a file that `reasoningbank memory export` wrote, or a bank"
        raise UsageError(f"there is no bank {storage.file(name)}", hint=hint, code="no-bank")
    return storage, name


def _training(
    experiment: Experiment, corpus: Sequence[Task], selected: Sequence[Task], arm: Arm | None = None
) -> list[Task]:
    """Return the tasks of the stream, of few-shot examples, or that an arm is compiled on."""
    learning = arm is not None or experiment.mode == "learn"
    examples = arm is not None or any(one.memory.source == "gold" for one in experiment.arms)
    if not (learning or examples):
        return []
    own = arm.compile.tasks if arm and arm.compile else None
    where = f"arm {arm.name}, compile.tasks" if arm and own else "learning.tasks"
    try:
        stream = select_tasks(corpus, own or experiment.learning.tasks)
    except UsageError as error:
        raise error.at(where) from None
    part = split_tasks(corpus).by_id()
    of = {task.id: group for group, tasks in groups_of(corpus).items() for task in tasks}
    held_out = {of[task.id]: task.id for task in selected} if learning else {}
    for task in stream:
        if part[task.id] == "test" or (examples and part[task.id] != "train"):
            purpose = "used as a few-shot example" if examples else "learned from"
            what = f"{task.id} is in the {part[task.id]} split and must not be {purpose}"
            hint = 'choose tasks of split = "train"'
            raise UsageError(what, where=where, hint=hint, code="held-out-task", task=task.id)
    for task in stream:
        if other := held_out.get(of[task.id]):
            what = f"{task.id} shares a group with the evaluation task {other}"
            hint = 'choose tasks of another split, e.g. split = "train"'
            raise UsageError(what, where=where, hint=hint, code="shared-group", task=task.id)
    return stream


def permuted(stream: Sequence[Task], number: int) -> list[Task]:
    """Return a task permutation of a stream, the same in every arm."""
    return sorted(stream, key=lambda task: (shuffle_key(number, task.id), task.id))


def select_tasks(tasks: Sequence[Task], selection: TaskSelection) -> list[Task]:
    """Return the selected tasks, in corpus order or in the order of the selection's ids."""
    named = [find_task(tasks, task_id) for task_id in selection.ids]
    chosen, seed = named or list(tasks), selection.sample_seed
    if selection.split != "all":
        part = {task.id for task in getattr(split_tasks(tasks), selection.split)}
        chosen = [task for task in chosen if task.id in part]
    if selection.complexity:
        chosen = [task for task in chosen if task.complexity in selection.complexity]
    if selection.forms:
        chosen = [task for task in chosen if task.form in selection.forms]
    kept = {task.id for task in chosen}
    if left_out := [task.id for task in named if task.id not in kept]:
        what = f"the other settings leave out {', '.join(left_out[:3])}"
        hint = "leave out split, complexity and forms, or these ids"
        raise UsageError(what, where="tasks.ids", hint=hint, code="ids-left-out")
    if selection.per_template is not None:
        by_template: dict[str, list[str]] = defaultdict(list)
        for task in sample_tasks(chosen, len(chosen), seed=seed):
            by_template[task.template or task.group].append(task.id)
        kept = {one for ids in by_template.values() for one in ids[: selection.per_template]}
        chosen = [task for task in chosen if task.id in kept]
    if selection.sample is not None:
        sampled = {task.id for task in sample_tasks(chosen, selection.sample, seed=seed)}
        chosen = [task for task in chosen if task.id in sampled]
    if not chosen:
        raise UsageError("the selection leaves no task", where="tasks", code="no-tasks")
    return chosen


def _all_leak(items: Iterable[MemoryItem], held_out: Iterable[Task], pack: Pack) -> bool:
    """Return whether the leakage filter lets no item through."""
    from reasoningbank.memory import LeakageFilter

    leakage = LeakageFilter.of(None, held_out, prefixes=pack.prefixes)
    return all(map(leakage.finding, items))


def _bank_items(arm: Arm) -> Sequence[MemoryItem]:
    """Return the items of the bank file that an arm begins with, if it names one."""
    if not named_bank(arm) or (isinstance(arm.memory, BankMemory) and arm.memory.stream):
        return ()
    # Runs without memory need not import it.
    from reasoningbank.experiment.memory_sources import read_bank

    return read_bank(arm, 0).items


def plan_trials(
    experiment: Experiment,
    tasks: Sequence[Task],
    limit: int | None = None,
    stream: Sequence[Task] = (),
) -> list[Job]:
    """Return every trial of the experiment, arm by arm."""
    planned: list[Job] = []
    for arm in experiment.arms:
        seeds = seeds_of(experiment, arm)
        if experiment.mode == "learn" and (arm.learns or arm.stream):
            planned += [
                Job(arm, task, seed, step)
                for seed in seeds
                for step, task in enumerate(permuted(stream, seed)[:limit])
            ]
        mine = [find_task(tasks, task_id) for task_id in arm.tasks] if arm.tasks else list(tasks)
        planned += [Job(arm, task, seed) for task in mine[: arm.first][:limit] for seed in seeds]
    return planned


def hidden_tasks(corpus: Sequence[Task], tasks: Sequence[Task]) -> frozenset[str]:
    """Return the ids of the tasks whose examples no tool may show in a run of `tasks`."""
    hidden = {task.id for task in split_tasks(corpus).test}
    run = {task.id for task in tasks}
    groups = ({task.id for task in group} for group in groups_of(corpus).values())
    return frozenset(hidden.union(*(ids for ids in groups if ids & run)))


def _hidden_by_task(experiment: Experiment, corpus: Sequence[Task]) -> dict[str, frozenset[str]]:
    """Return what is hidden of each task if that is not the same for all of the run."""
    if experiment.leave_out == "run":
        return {}
    if experiment.leave_out == "group":
        groups = [frozenset(task.id for task in group) for group in groups_of(corpus).values()]
        return {one: group for group in groups for one in group}
    alone = experiment.leave_out == "task"
    return {task.id: frozenset({task.id} if alone else ()) for task in corpus}


def is_done(folder: RunFolder, job: Job, there: Collection[str]) -> bool:
    """Return whether a trial is `there`, among the names on disk, with what is learned from it."""
    if job.key.path not in there or not job.teaches:
        return job.key.path in there
    with contextlib.suppress(RecordError):
        return folder.step(job.arm.name, job.seed, job.step or 0) is not None
    return False
