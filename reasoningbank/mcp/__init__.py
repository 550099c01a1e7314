"""The Model Context Protocol: a pack's endpoint, memory and programs for any client.

`Settings` says what is served and allowed; `Shared` holds what all sessions share; `serve_stdio`
and `serve_http` serve it. Each session has its own handles, released at its end.
"""

from reasoningbank.mcp.server import listening, make_server, serve_http, serve_stdio
from reasoningbank.mcp.sessions import Sessions, Settings, Shared

__all__ = [
    "Sessions",
    "Settings",
    "Shared",
    "listening",
    "make_server",
    "serve_http",
    "serve_stdio",
]
