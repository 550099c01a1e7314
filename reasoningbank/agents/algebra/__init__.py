"""The agent that translates an instruction into a Web Algebra program, and runs it."""

from reasoningbank.agents.algebra.agent import (
    AlgebraAgent,
    ProgramDraft,
    ShownProgram,
    Writing,
    composer,
    lead_programs,
    load_shown_programs,
    naming_columns,
    shown_programs,
)
from reasoningbank.agents.algebra.stage import Scene, Stage, open_stage

__all__ = [
    "AlgebraAgent",
    "ProgramDraft",
    "Scene",
    "ShownProgram",
    "Stage",
    "Writing",
    "composer",
    "lead_programs",
    "load_shown_programs",
    "naming_columns",
    "open_stage",
    "shown_programs",
]
