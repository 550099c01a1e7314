"""The self-correcting graph: a state, nodes that change it, and edges that choose the next node.

`NL2SPARQLAgent` is its interface for people and programs, `GraphAgent` for experiments,
`mermaid_picture` draws it. LangGraph is imported when a graph is built.
"""

from reasoningbank.nl2sparql.graph.build import build_graph, mermaid_picture, save_picture
from reasoningbank.nl2sparql.graph.nodes import Nodes
from reasoningbank.nl2sparql.graph.state import GraphSettings, NL2SPARQLState, initial_state
from reasoningbank.nl2sparql.graph.translator import (
    PROVIDERS,
    GraphAgent,
    GraphRun,
    GraphTranslation,
    NL2SPARQLAgent,
    Tiers,
    open_tiers,
    tiers_for,
)

__all__ = [
    "PROVIDERS",
    "GraphAgent",
    "GraphRun",
    "GraphSettings",
    "GraphTranslation",
    "NL2SPARQLAgent",
    "NL2SPARQLState",
    "Nodes",
    "Tiers",
    "build_graph",
    "initial_state",
    "mermaid_picture",
    "open_tiers",
    "save_picture",
    "tiers_for",
]
