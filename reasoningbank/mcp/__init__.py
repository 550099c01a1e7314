"""The Model Context Protocol: a pack's endpoint, memory and programs for any client that speaks it.

`Settings` says what is served and allowed; `Shared` holds it for all sessions; `serve_stdio` and
`serve_http` serve it. Each session has handles of its own, which end with it.
"""

from reasoningbank.mcp.desks import Desks
from reasoningbank.mcp.server import make_server
from reasoningbank.mcp.settings import ProgramLimits, Settings
from reasoningbank.mcp.shared import Shared
from reasoningbank.mcp.transports import listening, serve_http, serve_stdio

__all__ = [
    "Desks",
    "ProgramLimits",
    "Settings",
    "Shared",
    "listening",
    "make_server",
    "serve_http",
    "serve_stdio",
]
