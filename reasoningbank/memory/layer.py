"""Layers of an agent's context: whole lines in a token budget, dropped by rank and never cut."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from reasoningbank.lm.tokens import count_tokens, estimate_tokens

__all__ = ["Entry", "Layer", "Line", "about", "pack_lines"]


@dataclass(frozen=True)
class Layer:
    """One layer of an agent's context."""

    name: str
    text: str = ""
    tokens: int = 0
    left_out: int = 0


@dataclass(frozen=True)
class Entry:
    """A part of a line, kept or dropped whole; the lowest ranks are kept."""

    text: str
    rank: float
    stem: str = ""
    names: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Line:
    """A line: a head, and those of its entries that fit."""

    head: str
    entries: tuple[Entry, ...] = ()
    rank: float = 0.0
    alone: bool = True
    lead: str = ": "
    between: str = ", "
    names: frozenset[str] = frozenset()
    about: frozenset[str] = frozenset()

    def written(self, kept: Sequence[int]) -> str:
        """Return the line with these of its entries."""
        chosen = [self.entries[at] for at in sorted(kept)]
        parts: list[str] = []
        for stem, group in itertools.groupby(chosen, lambda entry: entry.stem):
            texts = [entry.text for entry in group]
            parts += [stem + " | ".join(texts)] if stem else texts
        return f"{self.head}{self.lead if parts else ''}{self.between.join(parts)}"


def pack_lines(name: str, lines: Sequence[Line], budget: int, *, title: str = "") -> Layer:
    """Return the lines and entries of the lowest ranks that fit a budget, in their given order."""
    units = [(line.rank, at, -1) for at, line in enumerate(lines) if line.alone]
    units += [(e.rank, at, n) for at, line in enumerate(lines) for n, e in enumerate(line.entries)]
    kept: dict[int, tuple[int, ...]] = {}
    texts: dict[int, str] = {}
    tokens: dict[int, float] = {}
    shown: set[str] = set()
    left_out = 0
    room = budget - (estimate_tokens(f"{title}\n") if title else 0.0)
    for _, at, number in sorted(units):
        line = lines[at]
        if (number < 0 and at in kept) or (line.about and line.about.isdisjoint(shown)):
            continue
        tried = (*kept.get(at, ()), *((number,) if number >= 0 else ()))
        text = line.written(tried)
        needed = estimate_tokens(f"{text}\n")
        if needed - tokens.get(at, 0.0) > room:
            left_out += 1
            continue
        room -= needed - tokens.get(at, 0.0)
        kept[at], texts[at], tokens[at] = tried, text, needed
        shown |= line.names | (line.entries[number].names if number >= 0 else frozenset())
    if not texts:
        return Layer(name, left_out=left_out)
    written = "\n".join([*([title] if title else ()), *(texts[at] for at in sorted(texts))])
    return Layer(name, written, count_tokens(written), left_out)


def about(count: int) -> str:
    """Return a number in few tokens, exact below 10,000."""
    for size, letter in ((10**9, "B"), (10**6, "M"), (10**3, "k")):
        if count >= max(size, 10_000):
            value = count / size
            return f"{value:.1f}{letter}" if value < 10 else f"{value:.0f}{letter}"
    return str(count)
