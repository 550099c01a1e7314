"""What agents call: bounded, attributed, never printing.

Every tool returns JSON-able data that is capped in rows and in characters and says whom it
comes from and whether it was cut. Large results stay in a `RefStore` behind a `Ref`.
"""

from reasoningbank.refs import Ref, RefStore
from reasoningbank.sparql import EndpointConfig
from reasoningbank.tools.endpoint_tools import EndpointTools
from reasoningbank.tools.memory_tools import Consulted, MemoryTools, SearchableMemory
from reasoningbank.tools.returns import CAPS, Cap, Rows
from reasoningbank.tools.sparql import SPARQLTools

#: The tools that an arm's agent gets unless the arm names others. In the trials of `rlm` and
#: `react` recorded until 0.1.0, no agent called any other tool.
DEFAULT_TOOLS = (
    "sparql_query",
    "sparql_peek",
    "sparql_slice",
    "sparql_find",
    "sparql_describe",
    "sparql_classes",
    "sparql_properties",
    "sparql_sample",
    "sparql_count",
)

__all__ = [
    "CAPS",
    "DEFAULT_TOOLS",
    "Cap",
    "Consulted",
    "EndpointConfig",
    "EndpointTools",
    "MemoryTools",
    "Ref",
    "RefStore",
    "Rows",
    "SPARQLTools",
    "SearchableMemory",
]
