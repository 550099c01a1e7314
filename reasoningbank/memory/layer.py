"""Layers of an agent's context: whole lines in a token budget; and what people wrote (L3).

A pack's ``hints/guide.md`` is the same for every question. ``hints/anti_patterns.toml`` holds
warnings about names, each shown only with one of the names that it is about.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from reasoningbank.corpus.pack import Iri, Pack, hints_file, read_hints
from reasoningbank.errors import UsageError
from reasoningbank.lm.tokens import count_tokens, estimate_tokens


@dataclass(frozen=True)
class Layer:
    text: str = ""
    tokens: int = 0


@dataclass(frozen=True)
class Entry:
    """A part of a line, kept or dropped whole; the lowest ranks are kept."""

    text: str
    rank: float
    stem: str = ""
    names: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Line:
    """A line: a head alone, of a rank; or a head with those of its entries that fit."""

    head: str
    entries: tuple[Entry, ...] = ()
    rank: float = 0.0
    between: str = ", "
    about: frozenset[str] = frozenset()

    def written(self, kept: Sequence[int]) -> str:
        chosen = [self.entries[at] for at in sorted(kept)]
        parts: list[str] = []
        for stem, group in itertools.groupby(chosen, lambda entry: entry.stem):
            texts = [entry.text for entry in group]
            parts += [stem + " | ".join(texts)] if stem else texts
        return f"{self.head}{': ' if parts else ''}{self.between.join(parts)}"


def pack_lines(lines: Sequence[Line], budget: int, *, title: str = "") -> Layer:
    """Return the lines and entries of the lowest ranks that fit a budget, in their given order."""
    units: list[tuple[float, int, tuple[int, ...]]] = []
    for at, line in enumerate(lines):
        entries = [(entry.rank, at, (n,)) for n, entry in enumerate(line.entries)]
        units += entries or [(line.rank, at, ())]
    kept: dict[int, tuple[int, ...]] = {}
    texts: dict[int, str] = {}
    shown: set[str] = set()
    room = budget - (estimate_tokens(f"{title}\n") if title else 0.0)
    for _, at, added in sorted(units):
        line = lines[at]
        if line.about and line.about.isdisjoint(shown):
            continue
        tried = (*kept.get(at, ()), *added)
        text = line.written(tried)
        before = estimate_tokens(f"{texts[at]}\n") if at in texts else 0.0
        needed = estimate_tokens(f"{text}\n") - before
        if needed > room:
            continue
        room -= needed
        kept[at], texts[at] = tried, text
        shown.update(*(line.entries[number].names for number in added))
    if not texts:
        return Layer()
    written = "\n".join([*([title] if title else ()), *(texts[at] for at in sorted(texts))])
    return Layer(written, count_tokens(written))


def about(count: int) -> str:
    """Return a number in few tokens, exact below 10,000."""
    for size, letter in ((10**9, "B"), (10**6, "M"), (10**3, "k")):
        if count >= max(size, 10_000):
            value = count / size
            return f"{value:.1f}{letter}" if value < 10 else f"{value:.0f}{letter}"
    return str(count)


class Note(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)
    about: frozenset[Iri] = Field(min_length=1)
    text: str = Field(min_length=1)


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")
    note: list[Note] = []


def guide(pack: Pack | None, budget: int = 200) -> Layer:
    """Return a pack's guide as layer L3, or the lines from the top that fit the budget."""
    file = hints_file(pack, "guide.md")
    if file is None:
        return Layer()
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot be read: {error}", where=str(file), code="bad-hints") from None
    written = enumerate(line.rstrip() for line in text.splitlines())
    lines = [Line(line, rank=n) for n, line in written if line and not line.startswith("#")]
    return pack_lines(lines, budget, title="Guide:")


def load_notes(pack: Pack | None) -> tuple[Note, ...]:
    """Read a pack's warnings, in the order of the file."""
    read = _File() if pack is None else read_hints(pack, "anti_patterns.toml", _File)[0]
    return tuple(Note(about=note.about, text=" ".join(note.text.split())) for note in read.note)
