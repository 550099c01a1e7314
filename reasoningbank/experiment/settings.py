"""Tables of an experiment file: tasks, endpoint, executor, retries, memory, sampling, learning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from reasoningbank.corpus import Complexity, QueryForm
from reasoningbank.imports import is_import_path
from reasoningbank.lm import RateLimit

#: Old spelling of keys, and of values of `memory.source`, with the present one. Files and
#: manifests may use either.
RENAMED = {
    "linking": "entity_linking",
    "tokens_of": "match_tokens_of",  # old spelling
    "placebo": "random",  # old spelling
}

ItemKind = Literal["success", "composed", "failure", "contrast", "seed", "gold"]
#: Kinds of items that a stream can distil.
DISTILLED: tuple[ItemKind, ...] = ("success", "failure", "contrast")


def invalid(code: str, message: str) -> PydanticCustomError:
    """Return a validation error with a code of its own."""
    return PydanticCustomError(code, message)


class Strict(BaseModel):
    """A table of a file. Unknown keys are errors; old spellings of keys are read."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _read_old_keys(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        fields = cls.model_fields
        return {
            RENAMED[key] if key not in fields and RENAMED.get(key) in fields else key: value
            for key, value in data.items()
        }


def _unique(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return task ids; refuse duplicates, whose trials would be the same."""
    twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
    if twice is not None:
        raise invalid("duplicate-task", f"{twice!r} is named twice")
    return names


TaskIds = Annotated[tuple[str, ...], AfterValidator(_unique)]


class TaskSelection(Strict):
    """Which tasks of the pack are run.

    Attributes:
        ids: These, in this order; empty means all. One that a filter leaves out is an error.
        split: Only tasks of this split.
        complexity: Only tasks of these classes; empty means all.
        forms: Only tasks of these query forms; empty means all.
        per_template: At most this many instances of a template, sampled by seed and id.
        sample: At most this many, sampled by seed and id.
        sample_seed: Seed of the sample.
    """

    ids: TaskIds = ()
    split: Literal["all", "train", "dev", "test"] = "all"
    complexity: tuple[Complexity, ...] = ()
    forms: tuple[QueryForm, ...] = ()
    per_template: int | None = Field(default=None, ge=1)
    sample: int | None = Field(default=None, ge=1)
    sample_seed: int = 0


class EndpointSettings(Strict):
    """A running endpoint to use instead of the pack's embedded one.

    The defaults are polite to public endpoints: one request per second, two at a time.

    Attributes:
        url: Its address. Besides it, the run reaches only what the pack and its examples federate
            with, under the same limits.
        name: Display name; the pack's name or the host if empty.
        user_agent: Sent with every request; public endpoints expect a contact in it.
        min_interval_s: Minimum seconds between the starts of two requests.
        max_connections: Simultaneous requests.
        timeout_s: Seconds one request may take.
        max_rows: Most rows of one result.
        label_properties: IRIs of the properties that name things; the pack's if empty.
        cache: Whether answers are cached on disk.
    """

    url: str = Field(min_length=1)
    name: str = ""
    user_agent: str = ""
    min_interval_s: float = Field(default=1.0, ge=0)
    max_connections: int = Field(default=2, ge=1)
    timeout_s: float = Field(default=60.0, gt=0)
    max_rows: int = Field(default=10_000, ge=1)
    label_properties: tuple[str, ...] = ()
    cache: bool = True


class Executor(Strict):
    """What runs the trials. It decides the speed of a run and never its results.

    Attributes:
        kind: `threads` of this process, or a `dask` cluster.
        workers: Trials at one time. With Dask, the workers of a local cluster; a running cluster
            has its own number.
        scheduler: Address of a running Dask scheduler, e.g. ``tcp://10.0.0.1:8786``; empty for a
            cluster of processes on this machine.
        warm_sandboxes: Most sandboxes of `rlm` kept started for the next trials, besides one for
            each trial that runs; about 150 MB each. A Dask worker keeps at most one.
        limits: What providers allow, by a model's name: `requests` and `tokens` a minute. All
            trials, and all workers of a cluster, share it.
    """

    kind: Literal["threads", "dask"] = "threads"
    workers: int = Field(default=1, ge=1, le=1024)
    scheduler: str = ""
    warm_sandboxes: int = Field(default=8, ge=0, le=1024)
    limits: dict[str, RateLimit] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_scheduler(self) -> Executor:
        if self.scheduler and self.kind != "dask":
            raise invalid("scheduler-without-dask", "a scheduler needs kind = 'dask'")
        return self


class Retries(Strict):
    """What happens after infrastructure errors.

    Attributes:
        infrastructure: How often a trial is run again that an infrastructure error ended.
        backoff_s: Seconds before the first retry; each further wait is three times as long.
        stop_after: This many consecutive trials that ended in such errors end the run; None for
            never.
        write_s: Seconds for which writing a record is retried, e.g. on a full disk.
    """

    infrastructure: int = Field(default=3, ge=0, le=20)
    backoff_s: float = Field(default=5.0, ge=0, le=600)
    stop_after: int | None = Field(default=5, ge=1)
    write_s: float = Field(default=60.0, ge=0, le=86_400)


class Memory(Strict):
    """Base of the memory settings of an arm; `source` tells them apart."""

    source: str

    @property
    def in_context(self) -> bool:
        """Whether items are put into the context."""
        return getattr(self, "show", "none") in ("context", "both")

    @property
    def as_tools(self) -> bool:
        """Whether the agent has tools that search the bank."""
        return getattr(self, "show", "none") in ("tools", "both")


class NoMemory(Memory):
    """No memory."""

    source: Literal["none"] = "none"


class RetrievedMemory(Memory):
    """A bank from which items are retrieved.

    Attributes:
        compose: Whether to add to the bank, for the evaluation, what its strategies make in pairs;
            see `reasoningbank.memory.composition`.
        retriever: Import path of a function that chooses the items; ours if empty.
    """

    kinds: tuple[ItemKind, ...] = ()
    show: Literal["context", "tools", "both"] = "context"
    items: int = Field(default=3, ge=1, le=50)
    tokens: int = Field(default=600, ge=50, le=20_000)
    demonstrations: bool = False
    compose: bool = False
    retriever: str = ""

    @model_validator(mode="after")
    def _check_demonstrations(self) -> RetrievedMemory:
        where = "show = 'context' or 'both'"
        if self.demonstrations and not self.in_context:
            raise invalid("demonstrations-not-shown", f"demonstrations need {where}")
        if self.retriever and not is_import_path(self.retriever):
            said = f"retriever is {self.retriever!r}, not a function as package.module:name"
            raise invalid("not-an-import-path", said)
        if self.retriever and not self.in_context:
            raise invalid("retriever-not-shown", f"a retriever needs {where}")
        return self


class LearnedMemory(RetrievedMemory):
    """A bank that the arm learns in a stream of training tasks.

    Attributes:
        kinds: Kinds of items to distil; all if empty.
        bank: A bank (.jsonl or .sqlite) that the stream begins with; empty for none.
        judge: Whose verdict is learned from. With `both`, only attempts on which the execution
            judge and the LM judge agree.
        distiller: `rules`, or the name of a model that words the rules' findings, or the import
            path of a function that makes the drafts of items.
    """

    source: Literal["learned"]
    bank: str = ""
    judge: Literal["execution", "lm", "both"] = "execution"
    distiller: str = "rules"

    @field_validator("kinds")
    @classmethod
    def _check_kinds(cls, kinds: tuple[ItemKind, ...]) -> tuple[ItemKind, ...]:
        if set(kinds) - set(DISTILLED):
            raise invalid("kinds-not-distilled", f"a stream distils only {', '.join(DISTILLED)}")
        return kinds


class SharedMemory(RetrievedMemory):
    """The bank that another arm learns.

    Attributes:
        of: The other arm.
    """

    source: Literal["shared"]
    of: str = Field(min_length=1)


class GoldMemory(RetrievedMemory):
    """Few-shot examples made of the gold queries of the training tasks."""

    source: Literal["gold"]


class BankMemory(RetrievedMemory):
    """A bank on disk.

    Attributes:
        bank: A bank (.jsonl or .sqlite), or with `stream` the folder of an earlier run.
        stream: An arm of that run: each seed gets the bank with which the stream of this task
            permutation ended there.
    """

    source: Literal["bank"]
    bank: str = Field(min_length=1)
    stream: str = ""


class RandomMemory(RetrievedMemory):
    """The random-memory control: random items of another arm's bank, as many tokens as it shows.

    Attributes:
        of: The other arm.
    """

    source: Literal["random"]
    of: str = Field(min_length=1)


_AnyMemory = NoMemory | LearnedMemory | SharedMemory | GoldMemory | BankMemory | RandomMemory
_KINDS_OF_MEMORY: tuple[type[Memory], ...] = get_args(_AnyMemory)


def _read_memory(value: Any) -> Any:
    """Read a source alone, old spellings, and manifests that list every key with its default."""
    if isinstance(value, str):
        value = {"source": value}
    if not isinstance(value, Mapping):
        return value
    found = {"source": "none", **value}
    source = RENAMED.get(str(found["source"]), found["source"])
    if source == "learned" and found.get("of"):
        source = "shared"
    kind = next((k for k in _KINDS_OF_MEMORY if k.__name__.lower() == f"{source}memory"), NoMemory)
    # A manifest may say of settings that the source does not have what they are by default.
    every = {name: one for each in _KINDS_OF_MEMORY for name, one in each.model_fields.items()}
    kept = {
        key: one
        for key, one in found.items()
        if key in kind.model_fields or key not in every or (one and one != every[key].default)
    }
    return {**kept, "source": source}


#: Where an arm's memory comes from: a table that `source` tells apart; a word alone is a source.
MemorySettings = Annotated[_AnyMemory, Field(discriminator="source"), BeforeValidator(_read_memory)]


class SamplingSettings(Strict):
    """Several attempts at a task, of which one is submitted. The gold is not used.

    Attributes:
        kind: `parallel`: independent attempts, of which the most frequent result is submitted;
            `sequential`: each attempt sees the last query and its result; `retry`: another
            attempt is made only while none has rows, first with each few-shot example alone,
            the nearest first.
        k: Number of attempts; with `match_tokens_of` the maximum.
        match_tokens_of: Makes the arm a token-matched control: parallel attempts are made until
            they spent at least the tokens that this other arm spent on the same task, unless `k`
            or the budget ends them. The first is made at temperature 0.
        phase: Whether to sample in the stream, in evaluation, or in both.
        temperature: Of every attempt but the first, which has the arm's. None for the arm's.
    """

    kind: Literal["parallel", "sequential", "retry"] = "parallel"
    k: int = Field(default=3, ge=1, le=64)
    match_tokens_of: str = ""
    phase: Literal["both", "stream", "evaluation"] = "both"
    temperature: float | None = Field(default=None, gt=0, le=2)

    @model_validator(mode="after")
    def _check_token_match(self) -> SamplingSettings:
        if self.match_tokens_of and (self.kind != "parallel" or self.phase == "stream"):
            said = "match_tokens_of needs kind = 'parallel' and phase = 'evaluation' or 'both'"
            raise invalid("token-match-not-possible", said)
        if not self.match_tokens_of and self.k < 2:
            raise invalid("one-sample", "sampling needs k of at least 2; leave the table out")
        return self

    def applies(self, *, in_stream: bool) -> bool:
        """Return whether trials of a phase are sampled."""
        return self.phase == "both" or (self.phase == "stream") == in_stream


Optimizer = Literal["BootstrapFewShot", "KNNFewShot", "MIPROv2", "GEPA"]


class CompileSettings(Strict):
    """An optimizer of DSPy that compiles the arm's agent before its trials, once for each seed.

    Attributes:
        optimizer: Its class in DSPy.
        options: Its own settings by DSPy's names, e.g. `{ max_bootstrapped_demos = 2 }`.
        tasks: The training tasks; those of `[learning]` if None. None may share a group with a task
            of the evaluation.
        match_tokens_of: The most tokens that compiling may take are those that the stream of this
            other arm took.
        tokens: The most tokens that compiling may take; None for no limit.
        reflection_lm: Name of the model that proposes instructions; the arm's if empty.
    """

    optimizer: Optimizer
    options: dict[str, bool | int | float | str] = Field(default_factory=dict)
    tasks: TaskSelection | None = None
    match_tokens_of: str = ""
    tokens: int | None = Field(default=None, ge=1)
    reflection_lm: str = ""

    @model_validator(mode="after")
    def _check_limits(self) -> CompileSettings:
        if self.tokens is not None and self.match_tokens_of:
            raise invalid("two-limits", "give tokens or match_tokens_of, not both")
        return self


class LearningSettings(Strict):
    """The stream of training tasks.

    Attributes:
        tasks: Which tasks; few-shot examples of `gold` are made of these too. None may share a
            group with a task of the evaluation.
        consolidate: Whether the bank is consolidated after each step.
        attempts: Most attempts at a task of the stream. While the execution judge says that a query
            is wrong, the next attempt sees patterns in the data that lead to the right rows; every
            second one also sees the query and what is wrong with it. With 1 the arm's sampling
            applies. Arms that learn from other verdicts than `execution` get one attempt.
    """

    tasks: TaskSelection = TaskSelection(split="train")
    consolidate: bool = True
    attempts: int = Field(default=1, ge=1, le=64)
