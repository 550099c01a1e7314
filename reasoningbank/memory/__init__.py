"""Procedural memory: what was learned, kept with its evidence, found again for a later task.

`MemoryItem` is one thing learned; `MemoryBank` keeps items; layers turn them, and what is known of
the endpoint, into an agent's context; distillation makes items of judged trials, consolidation
keeps a bank useful.
"""

from reasoningbank.memory.item import (
    Counters,
    ItemSource,
    ItemStatus,
    MemoryItem,
    Provenance,
    Scope,
    Turn,
)

__all__ = ["Counters", "ItemSource", "ItemStatus", "MemoryItem", "Provenance", "Scope", "Turn"]
