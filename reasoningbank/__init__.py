"""Agents that learn to answer questions over SPARQL knowledge graphs, and the proof of it.

The public names are importable from here; each room's own `__init__` says what it is for.
"""

from reasoningbank.corpus import get_task_stats, load_shacl_tasks, sample_tasks
from reasoningbank.refs import Ref
from reasoningbank.sparql import EndpointConfig
from reasoningbank.tools import EndpointTools, SPARQLTools

__all__ = [
    "EndpointConfig",
    "EndpointTools",
    "Ref",
    "SPARQLTools",
    "get_task_stats",
    "load_shacl_tasks",
    "sample_tasks",
]
