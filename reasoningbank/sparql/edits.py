"""Edits of a text that can be traced back: an engine's error position in the author's own text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Edit", "apply_edits", "origin"]


@dataclass(frozen=True, order=True)
class Edit:
    """Replace the characters `start` to `end` of a text; `start == end` inserts."""

    start: int
    end: int
    text: str


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return the text with all edits made; edits must not overlap.

    Examples:
        >>> apply_edits("a b", [Edit(2, 3, "c"), Edit(0, 0, ">")])
        '>a c'
    """
    parts: list[str] = []
    done = 0
    for edit in sorted(edits):
        parts += text[done : edit.start], edit.text
        done = edit.end
    return "".join(parts) + text[done:]


def origin(edits: Iterable[Edit], offset: int) -> int:
    """Return where a character of the edited text stood in the original one.

    Examples:
        >>> origin([Edit(0, 0, "xx"), Edit(3, 4, "long")], 3)
        1
    """
    shift = 0
    for edit in sorted(edits):
        start = edit.start + shift
        if offset < start:
            break
        if offset < start + len(edit.text):
            return edit.start
        shift += len(edit.text) - (edit.end - edit.start)
    return offset - shift
