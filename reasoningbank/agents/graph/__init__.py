"""The self-correcting graph: a state, nodes that change it, and edges that decide what is next.

`NL2SPARQLAgent` is its face for people and programs, `GraphAgent` for experiments,
`mermaid_picture` draws it. LangGraph is imported when a graph is built, not before.
"""

from reasoningbank.agents.confidence import (
    Calibration,
    confidence_score,
    fit_calibration,
    load_calibration,
)
from reasoningbank.agents.graph.build import build_graph
from reasoningbank.agents.graph.graph_run import GraphRun
from reasoningbank.agents.graph.parts import Parts
from reasoningbank.agents.graph.picture import mermaid_picture, save_picture
from reasoningbank.agents.graph.settings import GraphSettings
from reasoningbank.agents.graph.solver import GraphAgent
from reasoningbank.agents.graph.state import NL2SPARQLState, initial_state
from reasoningbank.agents.graph.tiers import PROVIDERS, Tiers, tiers_for
from reasoningbank.agents.graph.translation import GraphTranslation
from reasoningbank.agents.graph.translator import NL2SPARQLAgent

__all__ = [
    "PROVIDERS",
    "Calibration",
    "GraphAgent",
    "GraphRun",
    "GraphSettings",
    "GraphTranslation",
    "NL2SPARQLAgent",
    "NL2SPARQLState",
    "Parts",
    "Tiers",
    "build_graph",
    "confidence_score",
    "fit_calibration",
    "initial_state",
    "load_calibration",
    "mermaid_picture",
    "save_picture",
    "tiers_for",
]
