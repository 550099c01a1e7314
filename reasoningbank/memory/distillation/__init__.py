"""Making memory of judged attempts: what helped, what went wrong, what made the difference.

`Distiller.distil` takes one task's `Experience`s and gives the items that may be stored, and
what was rejected with the reasons.
"""

from reasoningbank.memory.distillation.distiller import Distiller
from reasoningbank.memory.distillation.experience import Distilled, Draft, Experience, Rejected
from reasoningbank.memory.distillation.grounding import Grounding
from reasoningbank.memory.distillation.skeleton import Skeleton, Slot, filled, skeleton_of
from reasoningbank.memory.distillation.wording import prompt_hash

__all__ = [
    "Distilled",
    "Distiller",
    "Draft",
    "Experience",
    "Grounding",
    "Rejected",
    "Skeleton",
    "Slot",
    "filled",
    "prompt_hash",
    "skeleton_of",
]
