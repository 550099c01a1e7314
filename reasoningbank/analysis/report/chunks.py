"""Data in the page: JSON, compressed, as base64 in script elements that the browser never runs.

Base64 holds no character that means anything to HTML, so no text of a trial can end its element
or start another. A chunk is decoded only when it is looked at.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from reasoningbank.analysis.finite import finite

__all__ = ["PayloadPool", "chunk", "encode"]

#: Characters of payloads that are compressed together: many prompts begin alike.
BLOCK_CHARS = 256_000


def encode(data: Any) -> str:
    """Return JSON-able data as base64 of gzip of ASCII JSON; the same data give the same text.

    Numbers that JSON does not have (NaN, infinities) become null; halves of surrogate pairs stay
    as they are.
    """
    try:
        text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    except ValueError:
        text = json.dumps(finite(data), separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode("ascii"), 6, mtime=0)).decode("ascii")


def chunk(name: str, data: Any) -> str:
    """Return the element that holds `data`, to be found by its id."""
    return f'<script type="application/json+gzip" id="{name}">{encode(data)}</script>\n'


class PayloadPool:
    """Long texts of all trials, each once, in blocks of a few hundred thousand characters.

    Only the places of the texts stay in memory, not the texts.

    Args:
        emit: Takes a full block as the element to write into the page.
        block_chars: Characters of a block; the last text may go beyond.

    Examples:
        >>> pool = PayloadPool(lambda element: None)
        >>> pool.place("a prompt"), pool.place("a reply"), pool.place("a prompt")
        ((0, 0), (0, 1), (0, 0))
    """

    def __init__(self, emit: Callable[[str], object], block_chars: int = BLOCK_CHARS) -> None:
        self._emit = emit
        self._block_chars = block_chars
        self._places: dict[bytes, tuple[int, int]] = {}
        self._block: list[str] = []
        self._chars = 0
        self._number = 0

    def place(self, text: str) -> tuple[int, int]:
        """Return the block and the position in it where the page keeps `text`."""
        # The records' own keys are not trusted to be the same over trials.
        key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        found = self._places.get(key)
        if found is None:
            found = self._places[key] = (self._number, len(self._block))
            self._block.append(text)
            self._chars += len(text)
            if self._chars >= self._block_chars:
                self.flush()
        return found

    def place_all(self, payloads: Mapping[str, str]) -> dict[str, tuple[int, int]]:
        """Return the places of a trial's payloads by the keys its events use."""
        return {key: self.place(text) for key, text in payloads.items()}

    def flush(self) -> None:
        """Hand over the block that is being filled."""
        if self._block:
            self._emit(chunk(f"payloads-{self._number}", self._block))
            self._number += 1
            self._block, self._chars = [], 0
