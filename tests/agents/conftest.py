"""Episodes for agents."""

from episodes import episode, forest, kept_sandbox

__all__ = ["episode", "forest", "kept_sandbox"]
