"""Tables of an experiment file that have nothing to do with one another."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from reasoningbank.corpus import Complexity, QueryForm

__all__ = ["EndpointSettings", "Executor", "Retries", "Strict", "TaskSelection", "each_once"]


class Strict(BaseModel):
    """A table of a file: a key that it does not know is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return names of tasks; refuse one that is there twice, as its trials would be the same."""
    twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
    if twice is not None:
        raise ValueError(f"{twice!r} is named twice")
    return names


class TaskSelection(Strict):
    """Which tasks of the pack are run.

    Attributes:
        ids: Exactly these, in this order; empty means all that the filters leave.
        split: Tasks of this split only.
        complexity: Tasks of these classes only; empty means all.
        forms: Tasks of these query forms only; empty means all.
        sample: At most this many, drawn by seed and id; all where there are no more.
        sample_seed: Seed of the draw.
    """

    ids: tuple[str, ...] = ()
    split: Literal["all", "train", "dev", "test"] = "all"
    complexity: tuple[Complexity, ...] = ()
    forms: tuple[QueryForm, ...] = ()
    sample: int | None = Field(default=None, ge=1)
    sample_seed: int = 0

    @field_validator("ids")
    @classmethod
    def _each_once(cls, ids: tuple[str, ...]) -> tuple[str, ...]:
        return each_once(ids)


class EndpointSettings(Strict):
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


class Executor(Strict):
    """Who runs the trials. It decides how fast a run is, never what comes out of it.

    Attributes:
        kind: `threads` of this process, or a `dask` cluster.
        workers: Trials at one time. On Dask the workers that a local cluster is given; a running
            cluster has its own number.
        scheduler: Address of a running Dask scheduler, e.g. ``tcp://10.0.0.1:8786``; empty for a
            cluster of processes on this machine.
    """

    kind: Literal["threads", "dask"] = "threads"
    workers: int = Field(default=1, ge=1, le=1024)
    scheduler: str = ""

    @model_validator(mode="after")
    def _scheduler_is_of_dask(self) -> Executor:
        if self.scheduler and self.kind != "dask":
            raise ValueError("a scheduler needs kind = 'dask'")
        return self


class Retries(Strict):
    """What happens when the infrastructure fails, as against the agent.

    Attributes:
        infrastructure: How often a trial that an infrastructure error ended is run again.
        backoff_s: Seconds before the first time; three times as long before each next one.
        stop_after: So many trials in a row that ended so end the run; None never does.
        write_s: Seconds that a record which cannot be written (a full disk) is tried again.
    """

    infrastructure: int = Field(default=3, ge=0, le=20)
    backoff_s: float = Field(default=5.0, ge=0, le=600)
    stop_after: int | None = Field(default=5, ge=1)
    write_s: float = Field(default=60.0, ge=0, le=86_400)
