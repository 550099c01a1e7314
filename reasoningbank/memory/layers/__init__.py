"""What an agent is told before a question, in four layers, each with a budget of tokens.

L0 `sense_card`: what the endpoint is and holds. L1 `SchemaCard`: the classes and properties near
the question. L2 `procedures`: what earlier tasks taught. L3 `guide`: a short guide by people.
`ContextBuilder` puts them together, what never changes first.
"""

from reasoningbank.memory.layers.context import LAYERS, Budgets, Context, ContextBuilder
from reasoningbank.memory.layers.guide import guide
from reasoningbank.memory.layers.lines import Layer
from reasoningbank.memory.layers.notes import Note, load_notes
from reasoningbank.memory.layers.procedures import procedures
from reasoningbank.memory.layers.schema_card import SchemaCard
from reasoningbank.memory.layers.schema_index import SchemaIndex
from reasoningbank.memory.layers.schema_map import SchemaMap
from reasoningbank.memory.layers.sense_card import sense_card

__all__ = [
    "LAYERS",
    "Budgets",
    "Context",
    "ContextBuilder",
    "Layer",
    "Note",
    "SchemaCard",
    "SchemaIndex",
    "SchemaMap",
    "guide",
    "load_notes",
    "procedures",
    "sense_card",
]
