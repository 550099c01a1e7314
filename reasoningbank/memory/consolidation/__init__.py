"""Keeping a bank useful as it grows: duplicates merged, contradicted and harmful items put away.

Deterministic, without a model; each change is one of the bank's own, with its reason, and can be
undone. `docs/consolidation.md` gives the rules.
"""

from reasoningbank.memory.consolidation.closeness import TextCloseness
from reasoningbank.memory.consolidation.consolidation import consolidate
from reasoningbank.memory.consolidation.contradictions import Superseding, contradictions
from reasoningbank.memory.consolidation.duplicates import (
    NEAR,
    Closeness,
    DuplicateRule,
    Merge,
    duplicates,
    merged,
)
from reasoningbank.memory.consolidation.evidence import Evidence, by_evidence, evidence_of
from reasoningbank.memory.consolidation.harm import HarmRule, harm_midp

__all__ = [
    "NEAR",
    "Closeness",
    "DuplicateRule",
    "Evidence",
    "HarmRule",
    "Merge",
    "Superseding",
    "TextCloseness",
    "by_evidence",
    "consolidate",
    "contradictions",
    "duplicates",
    "evidence_of",
    "harm_midp",
    "merged",
]
