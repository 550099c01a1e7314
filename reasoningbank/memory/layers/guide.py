"""L3: a short guide to the domain, written by people, the same for every question."""

from __future__ import annotations

from pathlib import Path

from reasoningbank.corpus import Pack
from reasoningbank.errors import UsageError
from reasoningbank.memory.layers.lines import Layer, Line, pack_lines

__all__ = ["guide", "guide_file"]


def guide_file(pack: Pack | None) -> Path | None:
    """Return a pack's guide, ``hints/guide.md``; None where it has none."""
    file = pack.hints / "guide.md" if pack is not None and pack.hints is not None else None
    return file if file is not None and file.is_file() else None


def guide(pack: Pack | None, budget: int = 200) -> Layer:
    """Return a pack's guide; of one longer than the budget, the lines that fit from the top.

    A guide has its most important lines first. Headings and blank lines are for its writers.

    Args:
        pack: The pack; without a guide, or without a pack, the layer is empty.
        budget: Tokens at most.

    Raises:
        UsageError: The file cannot be read.
    """
    file = guide_file(pack)
    if file is None:
        return Layer("L3")
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the guide cannot be read: {error}", where=str(file)) from None
    written = [line.rstrip() for line in text.splitlines()]
    lines = [
        Line(line, rank=number)
        for number, line in enumerate(written)
        if line and not line.startswith("#")
    ]
    return pack_lines("L3", lines, budget, title="Guide:")
