"""The memory bank in the page: every item once, with what became of it in each stream."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, MutableSequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reasoningbank.analysis.memory_records import MemoryRecords
from reasoningbank.analysis.report.markup import Html, element, joined
from reasoningbank.analysis.report.overview import Damaged
from reasoningbank.errors import RecordError
from reasoningbank.experiment import RunFolder

__all__ = ["Bank", "memory_view", "read_bank"]


@dataclass(frozen=True)
class Bank:
    """The items of a run's memory, each once, with what became of it in each stream.

    Attributes:
        items: The items in the shapes that the page expects. `places` says where an item is: for
            each stream that has it (or each other snapshot) its status, counters and evidence
            there at the end, and at which step it came.
    """

    items: list[dict[str, Any]]


def read_bank(folder: RunFolder, memory: MemoryRecords, damaged: MutableSequence[Damaged]) -> Bank:
    """Read the snapshots of a run; one that cannot be read is added to `damaged`.

    Args:
        folder: The run.
        memory: Its streams, which say in which order snapshots were made.
        damaged: Told what cannot be read.
    """
    at: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for stream in memory.streams:
        for number, snapshot in enumerate(stream.snapshots):
            at[snapshot].append((f"{stream.arm} · {stream.order}", number))
    items: dict[str, dict[str, Any]] = {}
    places: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    newest: dict[tuple[str, str], int] = {}

    def tell(error: RecordError) -> None:
        damaged.append(Damaged(Path(error.where).relative_to(folder.path), error.what))

    for snapshot, item in folder.memory_items(tell):
        name = str(item.get("id", ""))
        items.setdefault(name, {**_shaped(item), "id": name})
        for place, number in at.get(snapshot) or [(snapshot, 0)]:
            known = places[name].get(place)
            first = min(number, known["first"]) if known else number
            if known is None or number >= newest[name, place]:
                newest[name, place] = number
                known = {**_state(item), "stream": snapshot in at}
            places[name][place] = {**known, "first": first}
    for path, reason in memory.damaged_steps:
        damaged.append(Damaged(path.relative_to(folder.path), reason))
    return Bank(
        [
            {**item, "places": [{"place": p, **state} for p, state in sorted(places[name].items())]}
            for name, item in items.items()
        ]
    )


def memory_view(bank: Bank) -> Html:
    """Return the frame of the view that the page's script fills; nothing without items."""
    if not bank.items:
        return Html()
    search = element(
        "input", type="search", id="memory-search", placeholder="Search the bank",
        aria_label="Search the memory bank", autocomplete="off",
    )  # fmt: skip
    source = element(
        "label",
        element("span", "Source"),
        element("select", element("option", "any", value=""), id="memory-source"),
        class_="choice",
    )
    status = element(
        "label",
        element("span", "Status"),
        element("select", element("option", "any", value=""), id="memory-status"),
        class_="choice",
    )
    place = element(
        "label",
        element("span", "Bank"),
        element("select", element("option", "any", value=""), id="memory-place"),
        class_="choice",
    )
    return element(
        "section",
        element("h1", "Memory bank", tabindex="-1"),
        element(
            "p",
            "What was learned, where it comes from, and whom it was shown to.",
            class_="lead quiet",
        ),
        element("div", joined([search, source, status, place]), class_="bar-line"),
        element("p", id="memory-found", class_="quiet", role="status"),
        element("div", id="memory-list"),
        element("button", "Show more", type="button", class_="more", id="memory-more", hidden=True),
        class_="view",
        id="view-memory",
        hidden=True,
    )


def _shaped(item: Mapping[str, Any]) -> dict[str, Any]:
    """Keep what the page shows, in the shapes that it expects of a file that others wrote."""
    kept = {
        name: str(item[name])
        for name in ("title", "description", "content", "src", "pattern", "question", "query")
        if item.get(name)
    }
    tags, provenance = item.get("tags"), item.get("provenance")
    return {
        **kept,
        "tags": [str(tag) for tag in tags] if isinstance(tags, (list, tuple)) else [],
        "provenance": dict(provenance) if isinstance(provenance, Mapping) else {},
        "turns": len(item.get("turns") or ()),
    }


def _state(item: Mapping[str, Any]) -> dict[str, Any]:
    """Keep what changes about an item while it is in a bank."""
    counters, evidence = item.get("counters"), item.get("evidence")
    return {
        "status": str(item.get("status") or "active"),
        "superseded_by": str(item.get("superseded_by") or ""),
        "counters": dict(counters) if isinstance(counters, Mapping) else {},
        "evidence": [dict(one) for one in evidence or () if isinstance(one, Mapping)],
    }
