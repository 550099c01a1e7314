"""Procedural memory: what was learned, kept with its evidence, retrieved for later tasks.

`MemoryItem` is one thing learned and `MemoryBank` keeps items; `retrieve` finds those a trial may
be shown, subject to its `LeakageFilter`. Layers turn items, and what is known of the endpoint,
into an agent's context; distillation makes items from judged attempts; consolidation keeps a bank
useful; RDF exchanges items with others.
"""

from reasoningbank.memory.bank import MemoryBank
from reasoningbank.memory.composition import compose
from reasoningbank.memory.experience import Draft, Experience
from reasoningbank.memory.item import (
    Counters,
    ItemSource,
    ItemStatus,
    MemoryItem,
    Provenance,
    Scope,
    Turn,
)
from reasoningbank.memory.leakage import LeakageFilter
from reasoningbank.memory.memory_tools import MemoryTools
from reasoningbank.memory.search import FoundItem, Ranking, Retrieval, retrieve, retrieve_random
from reasoningbank.memory.snapshot import Snapshot
from reasoningbank.memory.store import Action, Change

__all__ = [
    "Action",
    "Change",
    "Counters",
    "Draft",
    "Experience",
    "FoundItem",
    "ItemSource",
    "ItemStatus",
    "LeakageFilter",
    "MemoryBank",
    "MemoryItem",
    "MemoryTools",
    "Provenance",
    "Ranking",
    "Retrieval",
    "Scope",
    "Snapshot",
    "Turn",
    "compose",
    "retrieve",
    "retrieve_random",
]
