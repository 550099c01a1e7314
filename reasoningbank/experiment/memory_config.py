"""What an experiment file says of memory, sampling and learning, and that it hangs together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, model_validator

from reasoningbank.errors import UsageError
from reasoningbank.experiment.records import StepFolder
from reasoningbank.experiment.settings import Strict, TaskSelection
from reasoningbank.experiment.storage import RunStorage

if TYPE_CHECKING:
    from reasoningbank.experiment.config import Arm, Experiment

__all__ = [
    "ItemKind",
    "LearningSettings",
    "MemorySettings",
    "SamplingSettings",
    "bank_arm",
    "check_arms",
    "control_of",
    "find_bank",
    "seeds_of",
]

ItemKind = Literal["success", "failure", "contrast", "seed", "gold"]
#: What a stream can distil.
LEARNED: tuple[ItemKind, ...] = ("success", "failure", "contrast")


class MemorySettings(Strict):
    """Where an arm's memory comes from, and how the agent gets it.

    Attributes:
        source: `none`; `learned`: what a stream of training tasks taught, the arm's own or that
            of `of`; `gold`: exemplars of training tasks, made of their golds; `bank`: a file;
            `placebo`: items of `of`'s bank dealt at random, as many tokens as `of` would show.
        bank: A bank (.jsonl or .sqlite): all there is with `bank`, what a stream begins with
            with `learned`. With `stream` the folder of an earlier run.
        stream: With `bank`, an arm of the run of that folder: each seed has the bank that the
            stream of this order ended with there.
        of: Another arm, whose bank this one is given.
        judge: Whose verdict is learned from. With `both`, only what both say alike of is.
        kinds: With a stream of its own, what is distilled; otherwise what is retrieved. All where
            empty.
        distiller: `rules`, or the name of a model that words what the rules found.
        show: Whether retrieved items are put into the context, or found by tools.
        items: Most items that are retrieved. An agent that is shown answered questions as turns
            of its own gets so many of these, and one lesson beside them where tokens are left.
        tokens: Most tokens that they take together.
        demonstrations: Whether a retrieved success shows its own turns, after those of the pack.
    """

    source: Literal["none", "learned", "gold", "bank", "placebo"] = "none"
    bank: str = ""
    stream: str = ""
    of: str = ""
    judge: Literal["execution", "lm", "both"] = "execution"
    kinds: tuple[ItemKind, ...] = ()
    distiller: str = "rules"
    show: Literal["context", "tools", "both"] = "context"
    items: int = Field(default=3, ge=1, le=50)
    tokens: int = Field(default=600, ge=50, le=20_000)
    demonstrations: bool = False

    @property
    def learns(self) -> bool:
        """Whether the arm has a stream of its own."""
        return self.source == "learned" and not self.of

    @property
    def by_order(self) -> bool:
        """Whether each seed of the arm has a bank of its own."""
        return self.learns or bool(self.stream)

    @property
    def in_context(self) -> bool:
        """Whether items are put into the context."""
        return self.source != "none" and self.show in ("context", "both")

    @property
    def as_tools(self) -> bool:
        """Whether the agent has tools that search the bank."""
        return self.source != "none" and self.show in ("tools", "both")

    @model_validator(mode="after")
    def _is_whole(self) -> MemorySettings:
        if self.source == "none" and self.model_dump(exclude_defaults=True):
            raise ValueError("has settings and no source; choose learned, gold, bank or placebo")
        if self.source == "placebo" and not self.of:
            raise ValueError("a placebo needs of = 'ARM', whose items it deals")
        if self.source in ("gold", "bank") and self.of:
            raise ValueError(f"source = '{self.source}' has a bank of its own; leave out of")
        if self.source == "bank" and not self.bank:
            raise ValueError("source = 'bank' needs bank = 'FILE'")
        if self.bank and not (self.source == "bank" or self.learns):
            raise ValueError("bank is for source = 'bank', or what a stream begins with")
        if self.stream and self.source != "bank":
            raise ValueError("stream is for source = 'bank', of the run whose folder bank is")
        if self.learns and set(self.kinds) - set(LEARNED):
            raise ValueError(f"a stream distils {', '.join(LEARNED)} alone")
        if self.demonstrations and not self.in_context:
            raise ValueError("demonstrations need show = 'context' or 'both'")
        if not self.learns and (self.judge != "execution" or self.distiller != "rules"):
            raise ValueError("judge and distiller are for an arm with a stream of its own")
        return self


class SamplingSettings(Strict):
    """Several attempts at a task, of which one is submitted. No gold is looked at.

    Attributes:
        kind: `parallel`: attempts that know nothing of one another, and the result that most of
            them agree on; `sequential`: each is told the last query and what running it gave.
        k: How many; with `tokens_of` the most.
        tokens_of: Another arm: parallel attempts are made until as many tokens are spent as it
            spent on the same task, never fewer unless `k` or the budget ends it. The first is
            made at temperature 0.
        phase: Where it is done: in the stream, in evaluation, or in both.
        temperature: Of every attempt but the first, which has the arm's, so that a stream can try
            several ways and the evaluation be made at temperature 0. None is the arm's for all.
    """

    kind: Literal["parallel", "sequential"] = "parallel"
    k: int = Field(default=3, ge=1, le=64)
    tokens_of: str = ""
    phase: Literal["both", "stream", "evaluation"] = "both"
    temperature: float | None = Field(default=None, gt=0, le=2)

    @model_validator(mode="after")
    def _matched_is_parallel(self) -> SamplingSettings:
        if self.tokens_of and self.kind != "parallel":
            raise ValueError("tokens_of is for kind = 'parallel'")
        if self.tokens_of and self.phase == "stream":
            raise ValueError("tokens_of is of held-out trials; leave phase out, or 'evaluation'")
        if not self.tokens_of and self.k < 2:
            raise ValueError("k = 1 is no sampling; leave the table out")
        return self

    def applies(self, *, in_stream: bool) -> bool:
        """Tell whether trials of a phase are sampled."""
        return self.phase == "both" or (self.phase == "stream") == in_stream


class LearningSettings(Strict):
    """The stream of training tasks.

    Attributes:
        tasks: Which tasks; exemplars of `gold` are of these too. None may share a group with a
            task of the evaluation.
        consolidate: Whether the bank is consolidated after each step.
    """

    tasks: TaskSelection = TaskSelection(split="train")
    consolidate: bool = True


def seeds_of(experiment: Experiment, arm: Arm) -> tuple[int, ...]:
    """Return the seeds of an arm: its own, or the experiment's."""
    return arm.seeds or experiment.seeds


def find_bank(memory: MemorySettings, seed: int) -> tuple[RunStorage, str]:
    """Return where the bank lies that `memory.bank` names for a seed: a storage and a name in it.

    Raises:
        UsageError: If there is no such bank.
        RecordError: If a step of the earlier run is damaged.
    """
    where = Path(memory.bank)
    storage, name = RunStorage(where.parent), where.name
    if memory.stream:
        taken = StepFolder(where, memory.stream, seed).taken()
        if not taken:
            what = f"there is no stream {memory.stream}.{seed} in {memory.bank}"
            hint = "name a run in mode 'learn', its arm, and seeds it had"
            raise UsageError(what, hint=hint, code="no-stream")
        storage, name = RunStorage(where), f"memory/{taken[-1].after}.jsonl"
    if where.is_dir() and not memory.stream:
        hint = "name the arm whose stream is meant as memory.stream"
        raise UsageError(f"{where} is a folder, not a bank", hint=hint, code="not-a-bank")
    if not storage.exists(name):
        hint = "name a file that `reasoningbank memory export` wrote, or a bank"
        raise UsageError(f"there is no bank {storage.path(name)}", hint=hint, code="no-bank")
    return storage, name


def bank_arm(arms: Mapping[str, Arm], arm: Arm) -> Arm:
    """Return the arm whose stream, golds or file an arm's bank comes from."""
    while arm.memory.of:
        arm = arms[arm.memory.of]
    return arm


def control_of(experiment: Experiment, arm: Arm) -> Arm | None:
    """Return the arm whose trials on the stream's tasks show what happens without memory.

    It is the first that runs the stream, has no memory, and is alike in all else that decides what
    an attempt is: agent, model, its settings, tools, demonstrations of the pack, layers, budget and
    what sampling it does in a stream. Where a model's judgement is learned from, the same model
    judges it too.
    """
    for other in experiment.arms:
        alike = _solves(experiment, other) == _solves(experiment, arm)
        judged = arm.memory.judge == "execution" or other.judge_lm == arm.judge_lm
        plain = other.memory.source == "none"
        if other.stream and plain and alike and judged and other.name != arm.name:
            return other
    return None


def _solves(experiment: Experiment, arm: Arm) -> tuple[Any, ...]:
    """Return all but memory that decides how an arm answers a task of a stream."""
    sampling = arm.sampling
    if sampling is not None:
        several = sampling.applies(in_stream=True)
        sampling = sampling.model_copy(update={"phase": "both"}) if several else None
    return (
        *(arm.agent, sorted(arm.options.items()), arm.lm, arm.temperature, arm.max_tokens),
        *(
            arm.tools,
            arm.demonstrations,
            arm.layers,
            arm.linking,
            arm.budget or experiment.budget,
            sampling,
        ),
    )


def check_arms(experiment: Experiment) -> None:
    """Check what arms say of one another and of the mode.

    Raises:
        ValueError: If it does not hang together.
    """
    arms = {arm.name: arm for arm in experiment.arms}
    learning = experiment.mode == "learn"
    if learning and not any(arm.memory.learns for arm in experiment.arms):
        raise ValueError("mode = 'learn' needs an arm with memory.source = 'learned'")
    remote = experiment.executor.kind == "dask"
    if remote and learning:
        raise ValueError("mode = 'learn' runs in threads; leave executor.kind out")
    for arm in experiment.arms:
        if (said := _objection(experiment, arm, arms, learning=learning)) or (
            said := _on_dask(arm) if remote else ""
        ):
            raise ValueError(f"arm {arm.name}: {said}")


def _on_dask(arm: Arm) -> str:
    if arm.memory.source != "none" or arm.layers or arm.linking or arm.sampling:
        given = "memory, layers, linking and sampling"
        return f"{given} run in threads; leave executor.kind = 'dask' out"
    return ""


def _objection(experiment: Experiment, arm: Arm, arms: Mapping[str, Arm], *, learning: bool) -> str:
    memory, sampling = arm.memory, arm.sampling
    if memory.source == "learned" and not learning:
        return "memory.source = 'learned' needs mode = 'learn'; a bank on file is source = 'bank'"
    if arm.stream and not learning:
        return "stream needs mode = 'learn'"
    if memory.judge != "execution" and not arm.judge_lm:
        return f"memory.judge = '{memory.judge}' needs judge_lm"
    others = [memory.of] + ([sampling.tokens_of] if sampling else [])
    for other in filter(None, others):
        if other not in arms:
            return f"names {other!r}, which is no arm"
        if _leads_back(arm, other, arms):
            return f"depends on {other!r}, and that on it"
        missing = sorted(set(seeds_of(experiment, arm)) - set(seeds_of(experiment, arms[other])))
        if missing and (other != memory.of or bank_arm(arms, arm).memory.by_order):
            return f"has seed {missing[0]}, which {other!r} has not"
    if memory.of and bank_arm(arms, arm).memory.source == "none":
        return f"memory.of names {memory.of!r}, which has no memory"
    if memory.source == "learned" and memory.of and not bank_arm(arms, arm).memory.learns:
        return f"memory.of names {memory.of!r}, which learns nothing"
    if memory.source == "placebo" and (unlike := _unlike(memory, arms[memory.of].memory)):
        return f"a placebo of {memory.of!r} has to have its {unlike}"
    if arm.stream and memory.of and bank_arm(arms, arm).memory.learns:
        return "has the bank that a stream ends with; leave out stream"
    if (arm.stream or memory.learns) and sampling and sampling.tokens_of:
        return "sampling.tokens_of is of the evaluation; leave out stream and learning"
    return ""


def _unlike(placebo: MemorySettings, real: MemorySettings) -> str:
    """Return the first setting by which a placebo would show something else than is dealt for."""
    # What a stream distils is all that its bank has.
    kinds = () if real.learns else real.kinds
    pairs = {
        "show": (placebo.show, real.show),
        "items": (placebo.items, real.items),
        "tokens": (placebo.tokens, real.tokens),
        "kinds": (placebo.kinds, kinds),
        "demonstrations": (placebo.demonstrations, real.demonstrations),
    }
    return next((name for name, (mine, its) in pairs.items() if mine != its), "")


def _leads_back(arm: Arm, other: str, arms: Mapping[str, Arm]) -> bool:
    waiting, seen = [other], set[str]()
    while waiting:
        name = waiting.pop()
        if name == arm.name:
            return True
        if name in seen or name not in arms:
            continue
        seen.add(name)
        waiting += _named(arms[name])
    return False


def _named(arm: Arm) -> Sequence[str]:
    names = [arm.memory.of, arm.sampling.tokens_of if arm.sampling else ""]
    return [name for name in names if name]
