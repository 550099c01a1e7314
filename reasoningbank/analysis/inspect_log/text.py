"""What Inspect's models are made of: text, moments, and ids that are the same every time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

__all__ = ["as_text", "identity", "moment"]


def as_text(value: Any) -> str:
    """Return what a tool gave back, or the content of a message, as text.

    Examples:
        >>> as_text("rows"), as_text({"n": 1}), as_text(None)
        ('rows', '{"n": 1}', '')
        >>> as_text([{"type": "text", "text": "Which"}, {"type": "text", "text": "genes?"}])
        'Which\\ngenes?'
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(_is_text_part(part) for part in value):
        return "\n".join(str(part["text"]) for part in value)
    return json.dumps(value, ensure_ascii=False)


def identity(*parts: object) -> str:
    """Return an id that the same parts always give, 22 characters as Inspect's own."""
    text = "\0".join(str(part) for part in parts)
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:22]


def moment(started: str, seconds: float) -> datetime:
    """Return the time `seconds` after `started` (ISO 8601), in UTC."""
    start = datetime.fromisoformat(started)
    return start.astimezone(UTC) + timedelta(seconds=seconds)


def _is_text_part(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "text" and "text" in part
