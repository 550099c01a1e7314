"""Experiments as files: what a TOML file may say, validated before anything runs."""

from __future__ import annotations

import hashlib
import re
import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from reasoningbank.agents import Budget
from reasoningbank.corpus import Complexity, QueryForm
from reasoningbank.errors import UsageError

__all__ = ["Arm", "EndpointSettings", "Experiment", "TaskSelection", "load_experiment"]

_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TaskSelection(_Strict):
    """Which tasks of the pack are run.

    Attributes:
        ids: Exactly these, in this order; empty means all that the filters leave.
        split: Tasks of this split only.
        complexity: Tasks of these classes only; empty means all.
        forms: Tasks of these query forms only; empty means all.
        sample: At most this many, drawn stratified by complexity.
        sample_seed: Seed of the draw.
    """

    ids: tuple[str, ...] = ()
    split: Literal["all", "train", "dev", "test"] = "all"
    complexity: tuple[Complexity, ...] = ()
    forms: tuple[QueryForm, ...] = ()
    sample: int | None = Field(default=None, ge=1)
    sample_seed: int = 0


class EndpointSettings(_Strict):
    """A running endpoint to use in place of the pack's embedded one, and how to treat it.

    A public endpoint is asked politely unless told otherwise: one request a second, two at a time.

    Attributes:
        url: Its address. Besides it the run reaches only what the pack and its examples federate
            with, as politely.
        name: What people call it; the pack's name, or the host, where empty.
        user_agent: Sent with every request; public endpoints want a contact in it.
        min_interval_s: Least seconds between the starts of two requests.
        max_connections: Simultaneous requests.
        timeout_s: Seconds one request may take.
        max_rows: Most rows of one result.
        label_properties: IRIs of the properties that name things; the pack's where empty.
        cache: Whether answers are kept on disk and not asked for again.
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


class Arm(_Strict):
    """One system under test.

    Attributes:
        name: Name in records and tables.
        agent: Name of an agent.
        lm: Name of a model: `local`, `local:/path.gguf`, or a LiteLLM name.
        temperature: Sampling temperature.
        max_tokens: Tokens one reply may have.
        demonstrations: Whether the pack's demonstration turns are shown (agents with turns).
        budget: Limits of a trial; overrides the experiment's.
        tasks: Only these task ids; empty means all of the experiment's.
        first: Only the first so many of the experiment's tasks.
    """

    name: str = Field(pattern=_NAME)
    agent: str
    lm: str = "local"
    temperature: float = Field(default=0.0, ge=0, le=2)
    max_tokens: int = Field(default=700, ge=16)
    demonstrations: bool = True
    budget: Budget | None = None
    tasks: tuple[str, ...] = ()
    first: int | None = Field(default=None, ge=1)


class Experiment(_Strict):
    """An experiment: arms × tasks × seeds, and the comparison stated beforehand.

    Attributes:
        name: Names the folder of records.
        title: One line for people.
        version: Version of this file's form.
        pack: Name or path of a domain pack.
        endpoint: A running endpoint to use in place of the pack's embedded one: its address, or
            a table of settings.
        seeds: One trial for each arm, task and seed.
        metric: The primary metric.
        comparison: Names of the two arms to be compared first.
        tasks: Which tasks.
        budget: Limits of every trial.
        arms: The systems under test.
    """

    name: str = Field(pattern=_NAME)
    title: str = ""
    version: Literal[1] = 1
    pack: str
    endpoint: EndpointSettings | None = None
    seeds: tuple[int, ...] = Field(default=(0,), min_length=1)
    metric: Literal["strict"] = "strict"
    comparison: tuple[str, str] | None = None
    tasks: TaskSelection = TaskSelection()
    budget: Budget = Budget()
    arms: tuple[Arm, ...] = Field(min_length=1)

    @field_validator("endpoint", mode="before")
    @classmethod
    def _address_alone(cls, value: Any) -> Any:
        return {"url": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _names_agree(self) -> Experiment:
        names = [arm.name for arm in self.arms]
        if len(set(names)) != len(names):
            raise ValueError("two arms have the same name")
        for name in self.comparison or ():
            if name not in names:
                raise ValueError(f"comparison names {name!r}, which is no arm")
        return self

    def with_lm(self, lm: str | None) -> Experiment:
        """Return the experiment with every arm's model replaced, if `lm` is given."""
        if lm is None:
            return self
        arms = tuple(arm.model_copy(update={"lm": lm}) for arm in self.arms)
        return self.model_copy(update={"arms": arms})

    def fingerprint(self) -> str:
        """Return a hash of all that the experiment says, 16 hexadecimal digits."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:16]


def load_experiment(path: Path) -> Experiment:
    """Read and validate an experiment file.

    Raises:
        UsageError: If the file is missing, is not TOML, or says what it may not; the message
            names the key and what is allowed there.
    """
    try:
        data: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        mend = "give the path of a .toml file, e.g. experiments/uniprot_demo.toml"
        raise UsageError("no such experiment file", where=str(path), mend=mend) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot be read ({error})", where=str(path)) from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"is not valid TOML: {error}", where=str(path)) from error
    try:
        return Experiment.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        said = re.sub(r"^Value error, ", "", first["msg"])
        if first["type"] == "extra_forbidden":
            said = "unknown key"
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        raise UsageError(f"{key + ': ' if key else ''}{said}{more}", where=str(path)) from error
