"""Whether each frozen evaluation saw the bank that it is the evaluation of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reasoningbank.analysis.leak import Leak
from reasoningbank.analysis.memory_records import MemoryRecords
from reasoningbank.analysis.planned import bank_roots

__all__ = ["wrong_banks"]


def wrong_banks(
    seen: Mapping[tuple[str, int], Mapping[str, str]],
    manifest: Mapping[str, Any],
    memory: MemoryRecords,
) -> Iterator[Leak]:
    """Yield what is wrong with the banks that held-out trials saw.

    Args:
        seen: By arm and seed, the snapshots that its held-out trials saw, each with the first such
            trial.
        manifest: The run's manifest; what it does not say is not checked.
        memory: The run's streams, and the banks made of golds.
    """
    right = _right(manifest, memory)
    roots = bank_roots(manifest)
    for (arm, seed), banks in seen.items():
        first, *others = banks
        for bank in others:
            yield Leak(banks[bank], "bank changed", detail=f"{first}, then {bank}")
        root = roots.get(arm, arm)
        wanted = right.get((root, seed)) or right.get((root, None))
        for bank, trial in banks.items():
            if wanted and bank != wanted:
                yield Leak(trial, "other bank", detail=f"{bank}, and {root} has {wanted}")


def _right(manifest: Mapping[str, Any], memory: MemoryRecords) -> dict[tuple[str, int | None], str]:
    """Return the last snapshot of each stream that is whole, and each bank made of golds."""
    steps = len(manifest.get("stream") or ())
    found: dict[tuple[str, int | None], str] = {
        (stream.arm, stream.order): stream.steps[-1].after
        for stream in memory.streams
        if steps and len(stream.steps) == steps
    }
    return found | {(arm, None): made.snapshot for arm, made in memory.exemplars.items()}
