"""What a server is told at its start: what it serves, and what its clients may do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from reasoningbank.corpus import Pack

__all__ = ["ProgramLimits", "Settings"]


@dataclass(frozen=True)
class ProgramLimits:
    """How much one program may do.

    Attributes:
        requests: HTTP requests.
        rows: Rows of one result, and rows that all loops go through.
        seconds: Wall time.
    """

    requests: int = 1_000
    rows: int = 100_000
    seconds: float = 300.0


@dataclass(frozen=True)
class Settings:
    """What a server serves and allows; by default nothing is written and no model is asked.

    Attributes:
        pack: The domain pack.
        url: A running endpoint to ask instead of the pack's own.
        bank: A memory bank, opened for reading alone; None offers no memory tools.
        allow_write: Addresses below which programs may write documents.
        allow_read: Addresses that programs may read besides the pack's endpoints and
            `allow_write`.
        addresses: Public prefix → where what lies below it is really asked.
        credentials: A TOML file of who programs are to which servers.
        limits: How much one program may do.
        lm: The model that answers questions; None offers no `ask`.
        agent: The agent that asks it.
        most_handles: Handles that one session may hold.
        most_sessions: Sessions over HTTP at the same time.
        idle_s: Seconds after which a session over HTTP that says nothing ends.
    """

    pack: Pack
    url: str | None = None
    bank: Path | None = None
    allow_write: tuple[str, ...] = ()
    allow_read: tuple[str, ...] = ()
    addresses: Mapping[str, str] = field(default_factory=dict)
    credentials: Path | None = None
    limits: ProgramLimits = ProgramLimits()
    lm: str | None = None
    agent: str = "rlm"
    most_handles: int = 1_000
    most_sessions: int = 64
    idle_s: float = 1_800.0
