"""Values as the text of a cell or a sentence, and errors without what varies in them."""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["counted", "error_form", "json_of", "text_of"]

_POSITION = re.compile(r"\bline \d+,? column \d+:?\s*|\bat (?:line|column|position) \d+\b")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|<[^>]*>|`[^`]*`")
_NAMES = re.compile(r"\b[\w.-]+:[\w.-]+|\?\w+|\b\d[\d.,]*\b")


def counted(n: int, noun: str) -> str:
    """Return a number with its noun, in the plural where it is not one.

    Examples:
        >>> counted(1, "trial"), counted(0, "trial")
        ('1 trial', '0 trials')
    """
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def error_form(error: str) -> str:
    """Return what kind of error it is: the message without positions, names and values.

    The advice after a semicolon is left out, as are the exception's name and whatever is quoted.

    Examples:
        >>> error_form("ToolError: line 6, column 3: the query cannot be parsed near 'x'; check it")
        'the query cannot be parsed near …'
        >>> error_form("ToolError: unknown handle 'results_7'; there are results_0")
        'unknown handle …'
    """
    said = re.sub(r"^(?:\w+(?:Error|Exception|Timeout): )+", "", " ".join(error.split()))
    said = _NAMES.sub("…", _QUOTED.sub("…", _POSITION.sub("", said)).split(";")[0])
    return re.sub(r"…(?:[\s,]*…)+", "…", said).strip()[:120]


def text_of(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value or None
    return json_of(value)


def json_of(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
