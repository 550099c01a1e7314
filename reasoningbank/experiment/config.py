"""Experiment files: arms, tasks and comparisons, validated before anything runs."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, Field, ValidationError, model_validator

from reasoningbank.agents import Budget
from reasoningbank.corpus import Level
from reasoningbank.errors import UsageError, read_toml, said_of, unknown_key
from reasoningbank.experiment.settings import (
    BankMemory,
    CompileSettings,
    EndpointSettings,
    Executor,
    LearnedMemory,
    LearningSettings,
    MemorySettings,
    NoMemory,
    RandomMemory,
    Retries,
    RetrievedMemory,
    SamplingSettings,
    SharedMemory,
    Strict,
    TaskIds,
    TaskSelection,
    invalid,
)
from reasoningbank.experiment.storage import shipped

#: Context layers that an arm may be given.
Layer = Literal["L0", "L1", "L2", "L3"]

_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
#: Keys for words that others use for them.
_MEANT = {
    "model": "lm", "llm": "lm", "judge": "judge_lm", "prompt": "agent", "dataset": "pack",
    "temp": "temperature",
}  # fmt: skip
#: Tables that may be written as one value, with the key of that value.
_SHORT = {"executor": "kind", "endpoint": "url"}


class Arm(Strict):
    """One system under test.

    Attributes:
        name: Name in records and tables.
        agent: Name of an agent, or the import path of a `dspy.Module`: `package.module:Name`.
        options: Options of the agent, e.g. `{ adapt = false }` for `rag`.
        lm: Name of a model: `local`, `local:/path.gguf`, or a LiteLLM name.
        fast_lm: Name of a model for the extract step, and for the graph's fast tier; `lm` if empty.
        temperature: Sampling temperature.
        max_tokens: Most tokens of one reply.
        judge_lm: Name of a model that judges each attempt without the gold, besides the execution
            judge; or the import path of a function that judges; empty for none.
        tools: Names or import paths of the agent's tools, or ``all``; `DEFAULT_TOOLS` of
            `reasoningbank.tools` if None.
        memory: Where its memory comes from; a word alone is the source.
        sampling: Several attempts per task; None for one.
        compile: An optimizer of DSPy that compiles its agent on training tasks; None for none.
        layers: Layers in its context: L0 sense card, L1 schema card, L3 guide. L2, retrieved
            memory, follows from `memory` and need not be named.
        entity_linking: Whether resources named in a question are looked up and appended to it; in
            the questions of few-shot examples too.
        stream: In mode `learn`, whether it also answers the stream's tasks without learning: the
            control of the arms that learn.
        seeds: Its seeds; the experiment's if empty. In mode `learn` a seed is a task permutation.
        demonstrations: Whether the pack's demonstration turns are shown (agents with turns).
        budget: Limits of a trial; replaces the experiment's.
        tasks: Only these task ids; empty means all of the experiment's.
        first: Only the first n of the experiment's tasks.
    """

    name: str = Field(pattern=_NAME)
    agent: str
    options: dict[str, bool | int | float | str] = Field(default_factory=dict)
    lm: str = "local"
    fast_lm: str = ""
    temperature: float = Field(default=0.0, ge=0, le=2)
    max_tokens: int = Field(default=700, ge=16)
    judge_lm: str = ""
    tools: tuple[str, ...] | Literal["all"] | None = None
    memory: MemorySettings = NoMemory()
    sampling: SamplingSettings | None = None
    compile: CompileSettings | None = None
    layers: tuple[Layer, ...] = ()
    entity_linking: bool = False
    stream: bool = False
    seeds: tuple[int, ...] = ()
    demonstrations: bool = True
    budget: Budget | None = None
    tasks: TaskIds = ()
    first: int | None = Field(default=None, ge=1)

    @property
    def learns(self) -> bool:
        """Whether the arm has a learning stream of its own."""
        return isinstance(self.memory, LearnedMemory)

    @property
    def learns_from(self) -> str:
        """The judge whose verdict it learns from: `execution`, `lm` or `both`."""
        return self.memory.judge if isinstance(self.memory, LearnedMemory) else "execution"

    @property
    def bank_per_seed(self) -> bool:
        """Whether each seed of the arm has a bank of its own."""
        return self.learns or (isinstance(self.memory, BankMemory) and bool(self.memory.stream))

    @property
    def uses_memory(self) -> bool:
        """Whether it has memory, context layers, entity linking, sampling or is compiled."""
        has_memory = not isinstance(self.memory, NoMemory)
        others = self.layers, self.entity_linking, self.sampling, self.compile
        return has_memory or any(map(bool, others))

    @property
    def bank_from(self) -> str:
        """Name of the arm whose bank this one is given; empty for its own or none."""
        memory = self.memory
        return memory.of if isinstance(memory, SharedMemory | RandomMemory) else ""

    @property
    def tokens_from(self) -> str:
        """Name of the arm whose token use this one matches; empty for none."""
        return self.sampling.match_tokens_of if self.sampling else ""

    @property
    def compiled_like(self) -> str:
        """Name of the arm whose stream limits the tokens of compiling; empty for none."""
        return self.compile.match_tokens_of if self.compile else ""

    @property
    def others(self) -> tuple[str, ...]:
        """Names of the arms that it depends on."""
        return tuple(filter(None, (self.bank_from, self.tokens_from, self.compiled_like)))

    @model_validator(mode="after")
    def _check(self) -> Arm:
        memory = self.memory
        # An arm that claims memory and has none would be a false result.
        if self.agent == "oracle" and self.uses_memory:
            said = "the oracle cannot use memory, layers, entity linking, sampling or compile"
            raise invalid("oracle-with-memory", said)
        if self.compile and (self.layers or not isinstance(memory, NoMemory)):
            said = "a compiled agent has the optimizer's examples; leave out memory and layers"
            raise invalid("compiled-with-memory", said)
        if "L2" in self.layers and not memory.in_context:
            raise invalid("no-source", "L2 is what memory holds; set memory.source")
        warm = self.temperature or (self.sampling and self.sampling.temperature)
        if self.sampling and self.sampling.kind == "parallel" and not warm:
            said = "parallel attempts are equal at temperature 0; set a temperature above 0"
            raise invalid("cold-sampling", said)
        if len(set(self.seeds)) != len(self.seeds):
            raise invalid("duplicate-seed", "a seed is named twice")
        return self


class Experiment(Strict):
    """An experiment: arms × tasks × seeds, and the pre-registered comparison.

    Attributes:
        name: Names the folder of records.
        title: One line for people.
        version: Version of the file format.
        pack: Name or path of a domain pack.
        language: Of the questions, if the pack has them in several.
        endpoint: A running endpoint instead of the pack's embedded one: its address, or a table
            of settings.
        mode: `evaluate`: arms answer tasks. `learn`: arms that learn first go through a stream of
            training tasks, and are then evaluated with the frozen result.
        seeds: One trial per arm, task and seed; `repeats = 3` means `seeds = [0, 1, 2]`.
        metric: The primary metric.
        comparison: Names of the two arms of the primary comparison.
        claims: Further pre-registered pairs of arms. A claim that requires all of them needs no
            correction for their number.
        level: The level of generalization at which the pre-registered pairs are compared; all
            levels if None.
        unit: What the bootstrap of a paired comparison resamples: tasks, or groups of tasks
            (templates, where tasks are instances of these).
        tasks: Which tasks.
        leave_out: Tasks of which a trial is shown no example: `run`: all of the run, with their
            groups; `group`: the trial's own group; `task`: only its own task; `none`.
        learning: The stream of training tasks.
        budget: Limits of every trial.
        executor: What runs the trials; its kind alone is enough.
        retries: What happens after infrastructure errors.
        arms: The systems under test.
    """

    name: str = Field(pattern=_NAME)
    title: str = ""
    version: Literal[1] = 1
    pack: str
    language: str = Field(default="en", pattern=r"^[a-z]{2,3}$")
    endpoint: EndpointSettings | None = None
    mode: Literal["evaluate", "learn"] = "evaluate"
    seeds: tuple[int, ...] = Field(default=(0,), min_length=1)
    metric: Literal["strict", "lenient", "f1"] = "strict"
    comparison: tuple[str, str] | None = None
    claims: tuple[tuple[str, str], ...] = ()
    level: Level | None = None
    unit: Literal["task", "group"] = "task"
    tasks: TaskSelection = TaskSelection()
    leave_out: Literal["run", "group", "task", "none"] = "run"
    learning: LearningSettings = LearningSettings()
    budget: Budget = Budget()
    executor: Executor = Executor()
    retries: Retries = Retries()
    arms: tuple[Arm, ...] = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _read_short_forms(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        data = dict(data)
        for table, key in _SHORT.items():
            if isinstance(data.get(table), str):
                data[table] = {key: data[table]}
        if "repeats" in data:
            repeats = data.pop("repeats")
            if "seeds" in data:
                raise invalid("seeds-and-repeats", "give seeds or repeats, not both")
            if not isinstance(repeats, int) or isinstance(repeats, bool) or repeats < 1:
                raise invalid("bad-repeats", "repeats must be a whole number of at least 1")
            data["seeds"] = tuple(range(repeats))
        return data

    @model_validator(mode="after")
    def _check(self) -> Experiment:
        if len(set(self.seeds)) != len(self.seeds):
            raise invalid("duplicate-seed", "a seed is named twice")
        arms = self.arms_by_name
        if len(arms) != len(self.arms):
            twice = next(arm.name for arm in self.arms if arms[arm.name] is not arm)
            raise invalid("duplicate-arm", f"two arms have the name {twice!r}")
        pairs = [("comparison", self.comparison)] if self.comparison else []
        pairs += [("claims", pair) for pair in self.claims]
        for key, pair in pairs:
            for name in pair:
                if name not in arms:
                    raise invalid("unknown-arm", f"{key} names {name!r}, which is not an arm")
            if pair[0] == pair[1]:
                raise invalid("arm-against-itself", f"{key} names {pair[0]!r} twice")
        if self.claims and not self.comparison:
            raise invalid("claims-alone", "claims need a comparison; name the first pair there")
        if self.mode == "learn" and not any(arm.learns for arm in self.arms):
            said = "mode = 'learn' needs an arm with memory.source = 'learned'"
            raise invalid("nothing-learns", said)
        if unused := sorted(set(self.executor.limits) - set().union(*map(_models_of, self.arms))):
            raise invalid("unused-limit", f"limits name {unused[0]!r}, which no arm uses")
        for arm in self.arms:
            if objection := _objection(self, arm):
                raise invalid(objection[0], f"arm {arm.name}: {objection[1]}")
        return self

    @property
    def arms_by_name(self) -> dict[str, Arm]:
        """The arms by name."""
        return {arm.name: arm for arm in self.arms}

    @property
    def uses_memory(self) -> bool:
        """Whether any arm has memory, context layers, entity linking, sampling or is compiled."""
        return any(arm.uses_memory for arm in self.arms)

    def with_lm(self, lm: str | None) -> Experiment:
        """Return the experiment with every arm's model replaced, if `lm` is given."""
        if lm is None:
            return self
        arms = tuple(arm.model_copy(update={"lm": lm}) for arm in self.arms)
        return self.model_copy(update={"arms": arms})

    def fingerprint(self) -> str:
        """Return a hash of everything that decides the run's results, 16 hexadecimal digits.

        Executor, retries and title are left out: a run may resume with more workers. Settings
        with default values are left out too, so that a setting added by a later version does not
        change the fingerprint.
        """
        settings = self.model_dump(
            mode="json", exclude_defaults=True, exclude={"executor", "retries", "title"}
        )
        return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]


def _models_of(arm: Arm) -> set[str]:
    distiller = getattr(arm.memory, "distiller", "")
    reflection = arm.compile.reflection_lm if arm.compile else ""
    return {arm.lm, arm.fast_lm, arm.judge_lm, distiller, reflection}


def seeds_of(experiment: Experiment, arm: Arm) -> tuple[int, ...]:
    """Return the seeds of an arm: its own, or the experiment's."""
    return arm.seeds or experiment.seeds


def bank_arm(experiment: Experiment, arm: Arm) -> Arm:
    """Return the arm whose stream, golds or file an arm's bank comes from."""
    while arm.bank_from:
        arm = experiment.arms_by_name[arm.bank_from]
    return arm


def control_of(experiment: Experiment, arm: Arm) -> Arm | None:
    """Return the arm that answers the stream's tasks under the same conditions without memory."""
    for other in experiment.arms:
        if not other.stream or not isinstance(other.memory, NoMemory) or other.name == arm.name:
            continue
        judged_alike = arm.learns_from == "execution" or other.judge_lm == arm.judge_lm
        if judged_alike and _solver(experiment, other) == _solver(experiment, arm):
            return other
    return None


def _solver(experiment: Experiment, arm: Arm) -> dict[str, Any]:
    """Return everything but memory that decides how an arm answers a task of a stream."""
    sampling = arm.sampling
    if sampling and sampling.applies(in_stream=True):
        sampling = sampling.model_copy(update={"phase": "both"})
    else:
        sampling = None
    other = {"name", "memory", "judge_lm", "seeds", "stream", "tasks", "first"}
    budget = arm.budget or experiment.budget
    same = arm.model_copy(update={"sampling": sampling, "budget": budget})
    return same.model_dump(exclude=other)


def _objection(experiment: Experiment, arm: Arm) -> tuple[str, str] | None:
    """Return what contradicts other arms or the mode: a code and a message."""
    arms, memory = experiment.arms_by_name, arm.memory
    learning = experiment.mode == "learn"
    if arm.learns and not learning:
        said = "memory.source = 'learned' needs mode = 'learn'; a bank on disk is source = 'bank'"
        return "learned-needs-mode", said
    if arm.stream and not learning:
        return "stream-needs-mode", "stream needs mode = 'learn'"
    if arm.learns_from != "execution" and not arm.judge_lm:
        return "no-judge", f"memory.judge = '{arm.learns_from}' needs judge_lm"
    for other in arm.others:
        if other not in arms:
            return "unknown-arm", f"names {other!r}, which is not an arm"
        if _depends_on(arms, other, arm.name):
            return "circular-arms", f"depends on {other!r}, which depends on it"
        missing = sorted(set(seeds_of(experiment, arm)) - set(seeds_of(experiment, arms[other])))
        by_seed = other != arm.bank_from or bank_arm(experiment, arm).bank_per_seed
        if missing and by_seed:
            return "seed-missing", f"has seed {missing[0]}, which {other!r} does not have"
    if arm.compiled_like and not arms[arm.compiled_like].learns:
        said = f"compile.match_tokens_of names {arm.compiled_like!r}, which does not learn"
        return "not-learned", said
    if arm.compile and arm.stream:
        return "compiled-in-stream", "a compiled agent answers no stream; leave out stream"
    root = bank_arm(experiment, arm)
    if arm.bank_from and isinstance(root.memory, NoMemory):
        return "no-memory", f"memory.of names {arm.bank_from!r}, which has no memory"
    if isinstance(memory, SharedMemory) and not root.learns:
        return "not-learned", f"memory.of names {memory.of!r}, which does not learn"
    if isinstance(memory, RandomMemory):
        real = arms[memory.of].memory
        assert isinstance(real, RetrievedMemory)
        # Everything in a learned bank is of the kinds that its stream distils.
        kinds = () if arms[memory.of].learns else real.kinds
        for name in ("show", "items", "tokens", "kinds", "demonstrations"):
            if getattr(memory, name) != (kinds if name == "kinds" else getattr(real, name)):
                said = f"the random-memory control of {memory.of!r} must have the same {name}"
                return "control-differs", said
    if arm.stream and arm.bank_from and root.learns:
        return "stream-with-final-bank", "has the bank that a stream ends with; leave out stream"
    if arm.tokens_from and (arm.stream or arm.learns):
        return "token-match-in-stream", "match_tokens_of applies to evaluation; leave out stream"
    return None


def _depends_on(arms: Mapping[str, Arm], name: str, wanted: str, *seen: str) -> bool:
    if name == wanted or name not in arms or name in seen:
        return name == wanted
    return any(_depends_on(arms, one, wanted, *seen, name) for one in arms[name].others)


def load_experiment(path: str | Path, changes: Sequence[str] = ()) -> Experiment:
    """Read and validate an experiment file.

    Args:
        path: The file. One under ``experiments/`` is found from every working directory.
        changes: Settings that replace the file's; see `apply_changes`.

    Raises:
        UsageError: If the file is missing, is not TOML or has an invalid setting; the message
            names the key and what is allowed there.
    """
    if not (file := shipped(Path(path))).exists():
        hint = "give the path of a .toml file, e.g. experiments/uniprot_demo.toml"
        raise UsageError("no such experiment file", where=str(path), hint=hint)
    data = read_toml(file, "usage")
    return parse_experiment(apply_changes(data, changes), where=str(path))


def parse_experiment(data: Mapping[str, Any], *, where: str = "") -> Experiment:
    """Validate the content of an experiment file or of a manifest.

    Raises:
        UsageError: If a setting is invalid; `fields["key"]` is its path.
    """
    try:
        return Experiment.model_validate(data)
    except ValidationError as error:
        # An invalid arm also makes the tuple of arms too short.
        errors = [one for one in error.errors() if one["type"] != "too_short"] or error.errors()
        first = errors[0]
        key, said = _path(first["loc"], data), said_of(first)
        if first["type"] == "extra_forbidden":
            said = _unknown(first["loc"])
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        code = first["type"].replace("_", "-")
        what = f"{key + ': ' if key else ''}{said}{more}"
        raise UsageError(what, where=where, code=code, key=key) from error


def _path(location: Sequence[str | int], data: Mapping[str, Any]) -> str:
    """Return the path of a setting; arms are named, and the tag of a union is left out."""
    parts = list(map(str, location))
    if len(location) > 1 and location[0] == "arms" and isinstance(location[1], int):
        with contextlib.suppress(LookupError, TypeError):
            parts[1] = str(data["arms"][location[1]]["name"])
        if len(parts) > 3 and parts[2] == "memory":
            del parts[3]
    return ".".join(parts)


def _unknown(location: Sequence[str | int]) -> str:
    """Return what is said of a key that its table does not have."""
    tables: list[type[BaseModel]] = [Experiment]
    for part in map(str, location[:-1]):
        fields = [one.model_fields[part] for one in tables if part in one.model_fields]
        inner = [one for field in fields for one in _tables_in(field.annotation)]
        sources = (getattr(one.model_fields.get("source"), "annotation", None) for one in tables)
        tagged = [one for one, of in zip(tables, sources, strict=True) if part in get_args(of)]
        tables = inner or tagged or tables
    wrong = str(location[-1])
    meant = _MEANT.get(wrong.lower(), wrong)
    known = {key for table in tables for key in table.model_fields}
    if Experiment in tables:
        known.add("repeats")
    homes = (
        "an arm" if name == "arms" else f"[{name}]"
        for name, field in Experiment.model_fields.items()
        if any(meant in one.model_fields for one in _tables_in(field.annotation))
    )
    return unknown_key(wrong, known, _MEANT, next(homes, ""))


def _tables_in(annotation: Any) -> list[type[BaseModel]]:
    """Return the tables that a field's value may be."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [table for one in get_args(annotation) for table in _tables_in(one)]


def apply_changes(data: Mapping[str, Any], changes: Sequence[str]) -> dict[str, Any]:
    """Return the content of a file with settings replaced."""
    changed = copy.deepcopy(dict(data))
    for change in changes:
        path, equals, text = change.partition("=")
        keys = path.strip().split(".")
        if not equals or not all(keys):
            what, hint = f"{change!r} is not a setting", "write --set key=value"
            raise UsageError(what, where="--set", hint=hint, code="not-a-setting")
        tables = _tables(changed, keys[:-1])
        if not tables:
            hint = "name a key of the file, such as budget.iterations or arms.NAME.lm"
            what = f"{change!r} leads nowhere"
            raise UsageError(what, where="--set", hint=hint, code="no-such-table")
        for table in tables:
            table[keys[-1]] = _value(text.strip())
    return changed


def _tables(inside: Any, keys: Sequence[str]) -> list[dict[str, Any]]:
    """Return the tables that a path leads to: one, or those of every arm; empty if nowhere."""
    if isinstance(inside, list):
        # The name of an arm may contain dots.
        return [
            table
            for arm in inside
            for end in range(1, len(keys) + 1)
            if ".".join(keys[:end]) in ("*", arm.get("name"))
            for table in _tables(arm, keys[end:])
        ]
    if not isinstance(inside, dict):
        return []
    if not keys:
        return [inside]
    if keys[0] in _SHORT and isinstance(inside.get(keys[0]), str):
        inside[keys[0]] = {_SHORT[keys[0]]: inside[keys[0]]}
    return _tables(inside.setdefault(keys[0], {}), keys[1:])


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
