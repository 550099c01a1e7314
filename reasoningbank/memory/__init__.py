"""Procedural memory: what was learned, kept with its evidence, found again for a later task.

`MemoryItem` is one thing learned; `MemoryBank` keeps items; layers turn them, and what is known of
the endpoint, into an agent's context; distillation makes items of judged trials, consolidation
keeps a bank useful.
"""

from reasoningbank.memory.bank import MemoryBank
from reasoningbank.memory.consultation import Consultation
from reasoningbank.memory.guard import Guard
from reasoningbank.memory.history import Action, Change
from reasoningbank.memory.item import (
    Counters,
    ItemSource,
    ItemStatus,
    MemoryItem,
    Provenance,
    Scope,
    Turn,
)
from reasoningbank.memory.packing import Found
from reasoningbank.memory.search import Ranking, Retrieval, deal_at_random, retrieve
from reasoningbank.memory.snapshot import Snapshot

__all__ = [
    "Action",
    "Change",
    "Consultation",
    "Counters",
    "Found",
    "Guard",
    "ItemSource",
    "ItemStatus",
    "MemoryBank",
    "MemoryItem",
    "Provenance",
    "Ranking",
    "Retrieval",
    "Scope",
    "Snapshot",
    "Turn",
    "deal_at_random",
    "retrieve",
]
