"""L1, the schema card: the classes and properties near a question."""

from reasoningbank.memory.layers.schema_card import SchemaCard
from reasoningbank.memory.layers.schema_index import SchemaIndex
from reasoningbank.memory.layers.schema_map import SchemaMap

__all__ = ["SchemaCard", "SchemaIndex", "SchemaMap"]
