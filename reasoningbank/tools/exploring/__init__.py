"""Exploring an endpoint of any size: what the tools for classes, properties and labels do inside.

Each question has several ways to an answer, the best first (`ladder`); a `Survey` finds out once
which of them an endpoint can go.
"""

from reasoningbank.tools.exploring.survey import Survey

__all__ = ["Survey"]
