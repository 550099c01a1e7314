"""Items of one kind, made short for tests."""

from __future__ import annotations

from typing import Any

from reasoningbank.memory import Counters, ItemSource, MemoryItem, Provenance, Scope

HERE = Scope("uniprot", "http://e/sparql")
MASS = "SELECT ?protein { ?protein up:mass <<mass>> }"


def seen(*tasks: str, judge: str = "execution") -> tuple[Provenance, ...]:
    """Return an experience a task."""
    return tuple(
        Provenance(task=task, group=f"group of {task}", corpus="uniprot", judge=judge)
        for task in tasks
    )


def item(
    title: str = "Find by mass",
    src: ItemSource = "success",
    pattern: str = MASS,
    tasks: tuple[Provenance, ...] = (),
    **more: Any,
) -> MemoryItem:
    """Return an item that rests on some experiences."""
    first, *others = tasks or (Provenance(),)
    given: dict[str, Any] = {
        "description": "",
        "content": f"Steps of: {title}",
        "scope": HERE,
        "counters": Counters(),
        **more,
    }
    return MemoryItem(
        title, src=src, pattern=pattern, provenance=first, evidence=tuple(others), **given
    )
