"""JSON-able data that every other program reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["plain"]


def plain(value: Any) -> Any:
    """Return JSON-able data with lone surrogates, which models write, spelt out.

    Records keep them; databases, and parsers other than Python's, refuse them.

    Examples:
        >>> plain({"said": ("\\ud83d", 1)})
        {'said': ['\\\\ud83d', 1]}
    """
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, Mapping):
        return {plain(str(k)): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value
