"""Experiments as files: what a TOML file may say, validated before anything runs."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from reasoningbank.agents import Budget
from reasoningbank.errors import UsageError
from reasoningbank.experiment.changes import apply_changes
from reasoningbank.experiment.memory_config import (
    LearningSettings,
    MemorySettings,
    SamplingSettings,
    check_arms,
)
from reasoningbank.experiment.settings import (
    EndpointSettings,
    Executor,
    Retries,
    Strict,
    TaskSelection,
    each_once,
)

__all__ = [
    "Arm",
    "EndpointSettings",
    "Executor",
    "Experiment",
    "Layer",
    "LearningSettings",
    "MemorySettings",
    "Retries",
    "SamplingSettings",
    "TaskSelection",
    "load_experiment",
    "parse_experiment",
]

#: The layers of memory that an arm may be given.
Layer = Literal["L0", "L1", "L2", "L3"]

_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"


class Arm(Strict):
    """One system under test.

    Attributes:
        name: Name in records and tables.
        agent: Name of an agent.
        options: What the agent is made with, e.g. `{ adapt = false }` for `rag`.
        lm: Name of a model: `local`, `local:/path.gguf`, or a LiteLLM name.
        temperature: Sampling temperature.
        max_tokens: Tokens one reply may have.
        judge_lm: Name of a model that judges each attempt without the gold, besides the execution
            judge; empty for none.
        tools: Names of the tools that the agent has; None for all.
        memory: Where its memory comes from; a word alone is its source.
        sampling: Several attempts a task; None for one.
        layers: Layers in its context: L0 sense card, L1 schema card, L3 guide. L2, what memory
            holds, is there by `memory` and need not be named.
        linking: Whether the resources that a question names are looked up, word for word, and
            written behind its words; in the questions of answered examples too.
        stream: In mode `learn`, whether it answers the stream's tasks too, learning nothing: the
            control beside those that learn.
        seeds: Its seeds; the experiment's where empty. In mode `learn` a seed is an order of the
            stream.
        demonstrations: Whether the pack's demonstration turns are shown (agents with turns).
        budget: Limits of a trial; overrides the experiment's.
        tasks: Only these task ids; empty means all of the experiment's.
        first: Only the first so many of the experiment's tasks.
    """

    name: str = Field(pattern=_NAME)
    agent: str
    options: dict[str, bool | int | float | str] = Field(default_factory=dict)
    lm: str = "local"
    temperature: float = Field(default=0.0, ge=0, le=2)
    max_tokens: int = Field(default=700, ge=16)
    judge_lm: str = ""
    tools: tuple[str, ...] | None = None
    memory: MemorySettings = MemorySettings()
    sampling: SamplingSettings | None = None
    layers: tuple[Layer, ...] = ()
    linking: bool = False
    stream: bool = False
    seeds: tuple[int, ...] = ()
    demonstrations: bool = True
    budget: Budget | None = None
    tasks: tuple[str, ...] = ()
    first: int | None = Field(default=None, ge=1)

    @field_validator("tasks")
    @classmethod
    def _each_once(cls, tasks: tuple[str, ...]) -> tuple[str, ...]:
        return each_once(tasks)

    @field_validator("memory", mode="before")
    @classmethod
    def _source_alone(cls, value: Any) -> Any:
        return {"source": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _can_be_done(self) -> Arm:
        # An arm that says it has memory and has none would be a false result.
        asked = self.memory.source != "none" or self.layers or self.linking or self.sampling
        if self.agent == "oracle" and asked:
            raise ValueError("the oracle has no use for memory, layers, linking or sampling")
        if self.memory.as_tools and self.agent in ("direct", "rag", "graph"):
            raise ValueError(f"{self.agent} has no tools; leave memory.show = 'context'")
        if self.memory.demonstrations and self.agent != "rlm":
            raise ValueError("memory.demonstrations are turns of code, for rlm alone")
        if "L2" in self.layers and not self.memory.in_context:
            raise ValueError("L2 is what memory holds; name memory.source")
        warm = self.temperature or (self.sampling and self.sampling.temperature)
        if self.sampling and self.sampling.kind == "parallel" and not warm:
            raise ValueError("parallel attempts are all the same at temperature 0; set it above 0")
        if len(set(self.seeds)) != len(self.seeds):
            raise ValueError("a seed is named twice")
        return self


class Experiment(Strict):
    """An experiment: arms × tasks × seeds, and the comparison stated beforehand.

    Attributes:
        name: Names the folder of records.
        title: One line for people.
        version: Version of this file's form.
        pack: Name or path of a domain pack.
        language: Of the questions, where the pack has them in several.
        endpoint: A running endpoint to use in place of the pack's embedded one: its address, or
            a table of settings.
        mode: `evaluate`: arms answer tasks. `learn`: arms that learn go through a stream of
            training tasks first, and are then evaluated with what they learned, frozen.
        seeds: One trial for each arm, task and seed; `repeats = 3` says `seeds = [0, 1, 2]`.
        metric: The primary metric.
        comparison: Names of the two arms to be compared first.
        claims: Further pairs of arms that were stated beforehand. Each is told as it is: a claim
            that rests on all of them needs no correction for their number.
        unit: What the bootstrap of a paired comparison draws: tasks, or groups of tasks.
        tasks: Which tasks.
        learning: The stream of training tasks.
        budget: Limits of every trial.
        executor: Who runs the trials; its kind alone is enough.
        retries: What happens when the infrastructure fails.
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
    unit: Literal["task", "group"] = "task"
    tasks: TaskSelection = TaskSelection()
    learning: LearningSettings = LearningSettings()
    budget: Budget = Budget()
    executor: Executor = Executor()
    retries: Retries = Retries()
    arms: tuple[Arm, ...] = Field(min_length=1)

    @field_validator("endpoint", mode="before")
    @classmethod
    def _address_alone(cls, value: Any) -> Any:
        return {"url": value} if isinstance(value, str) else value

    @field_validator("executor", mode="before")
    @classmethod
    def _kind_alone(cls, value: Any) -> Any:
        return {"kind": value} if isinstance(value, str) else value

    @model_validator(mode="before")
    @classmethod
    def _repeats_are_seeds(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "repeats" not in data:
            return data
        data = dict(data)
        repeats = data.pop("repeats")
        if "seeds" in data:
            raise ValueError("give seeds or repeats, not both")
        if not isinstance(repeats, int) or isinstance(repeats, bool) or repeats < 1:
            raise ValueError("repeats must be a whole number of at least 1")
        return {**data, "seeds": tuple(range(repeats))}

    @model_validator(mode="after")
    def _names_agree(self) -> Experiment:
        if len(set(self.seeds)) != len(self.seeds):
            raise ValueError("a seed is named twice")
        names = [arm.name for arm in self.arms]
        if len(set(names)) != len(names):
            raise ValueError("two arms have the same name")
        pairs = [("comparison", self.comparison)] if self.comparison else []
        pairs += [("claims", pair) for pair in self.claims]
        for key, pair in pairs:
            for name in pair:
                if name not in names:
                    raise ValueError(f"{key} names {name!r}, which is no arm")
            if pair[0] == pair[1]:
                raise ValueError(f"{key} names {pair[0]!r} twice")
        if self.claims and not self.comparison:
            raise ValueError("claims go with a comparison; name the first pair there")
        check_arms(self)
        return self

    @property
    def remembers(self) -> bool:
        """Whether any arm has memory, layers of context, linking or sampling."""
        return any(
            a.memory.source != "none" or a.layers or a.linking or a.sampling for a in self.arms
        )

    def with_lm(self, lm: str | None) -> Experiment:
        """Return the experiment with every arm's model replaced, if `lm` is given."""
        if lm is None:
            return self
        arms = tuple(arm.model_copy(update={"lm": lm}) for arm in self.arms)
        return self.model_copy(update={"arms": arms})

    def fingerprint(self) -> str:
        """Return a hash of all that decides the run's results, 16 hexadecimal digits.

        Who runs the trials, how failures are retried and the title are left out: a run may go on
        with more workers. What is not said counts as its default, so that a setting which a later
        version adds does not make a run another one.
        """
        said = self.model_dump(
            mode="json", exclude_defaults=True, exclude={"executor", "retries", "title"}
        )
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]


def load_experiment(path: Path, changes: Sequence[str] = ()) -> Experiment:
    """Read and validate an experiment file.

    Args:
        path: The file.
        changes: Settings that replace the file's, as `apply_changes` takes them.

    Raises:
        UsageError: If the file is missing, is not TOML, or says what it may not; the message
            names the key and what is allowed there.
    """
    try:
        data: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        hint = "give the path of a .toml file, e.g. experiments/uniprot_demo.toml"
        raise UsageError("no such experiment file", where=str(path), hint=hint) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot be read ({error})", where=str(path)) from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"is not valid TOML: {error}", where=str(path)) from error
    return parse_experiment(apply_changes(data, changes), where=str(path))


def parse_experiment(data: Mapping[str, Any], *, where: str = "") -> Experiment:
    """Validate what an experiment file, or a manifest, says.

    Raises:
        UsageError: If it says what it may not.
    """
    try:
        return Experiment.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        key = _path(first["loc"], data)
        said = re.sub(r"^Value error, ", "", first["msg"])
        if first["type"] == "extra_forbidden":
            wrong = str(first["loc"][-1])
            # It may be the key of another table.
            near = get_close_matches(wrong, [key for key in _keys() if key != wrong], n=1)
            said = "unknown key" + (f"; did you mean {near[0]}?" if near else "")
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        raise UsageError(f"{key + ': ' if key else ''}{said}{more}", where=where) from error


def _path(location: Sequence[str | int], data: Mapping[str, Any]) -> str:
    """Return where in a file something is; an arm is called by its name."""
    parts = list(map(str, location))
    if len(location) > 1 and location[0] == "arms" and isinstance(location[1], int):
        with contextlib.suppress(LookupError, TypeError):
            parts[1] = str(data["arms"][location[1]]["name"])
    return ".".join(parts)


def _keys() -> list[str]:
    tables = (
        *(Experiment, Arm, TaskSelection, EndpointSettings, Executor, Retries, Budget),
        *(MemorySettings, SamplingSettings, LearningSettings),
    )
    return sorted({key for table in tables for key in table.model_fields})
