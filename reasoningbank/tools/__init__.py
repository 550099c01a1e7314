"""What agents call: bounded, attributed, never printing.

Every tool returns JSON-able data that is capped in rows and in characters and says whom it
comes from and whether it was cut. Large results stay in a `RefStore` behind a `Ref`.
"""

from reasoningbank.refs import Ref, RefStore
from reasoningbank.sparql import EndpointConfig
from reasoningbank.tools.endpoint_tools import EndpointTools
from reasoningbank.tools.returns import CAPS, Rows
from reasoningbank.tools.sparql import DEFAULT_TOOLS, SPARQLTools

__all__ = [
    "CAPS",
    "DEFAULT_TOOLS",
    "EndpointConfig",
    "EndpointTools",
    "Ref",
    "RefStore",
    "Rows",
    "SPARQLTools",
]
