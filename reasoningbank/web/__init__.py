"""The page of `reasoningbank serve`: ask, watch runs, read memory; and a chat interface."""

from reasoningbank.web.server import PageSettings, make_app, serve_page

__all__ = ["PageSettings", "make_app", "serve_page"]
