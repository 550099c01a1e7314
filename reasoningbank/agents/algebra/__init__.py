"""The agent that translates an instruction into a Web Algebra program, and runs it."""

from reasoningbank.agents.algebra.agent import AlgebraAgent, composer, naming_columns
from reasoningbank.agents.algebra.shown import ShownProgram, load_shown_programs, shown_programs
from reasoningbank.agents.algebra.stage import Scene, Stage, open_stage
from reasoningbank.agents.algebra.writing import Draft, Writing

__all__ = [
    "AlgebraAgent",
    "Draft",
    "Scene",
    "ShownProgram",
    "Stage",
    "Writing",
    "composer",
    "load_shown_programs",
    "naming_columns",
    "open_stage",
    "shown_programs",
]
