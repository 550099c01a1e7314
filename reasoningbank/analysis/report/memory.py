"""The memory bank in the page: every item of every snapshot, once, with where it is found."""

from __future__ import annotations

from collections.abc import Mapping, MutableSequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reasoningbank.analysis.report.markup import Html, element, joined
from reasoningbank.analysis.report.overview import Damaged
from reasoningbank.errors import RecordError
from reasoningbank.experiment import RunFolder

__all__ = ["Bank", "memory_view", "read_bank"]


@dataclass(frozen=True)
class Bank:
    """The items of a run's memory, each as its last snapshot has it, and with all snapshots."""

    items: list[dict[str, Any]]


def read_bank(folder: RunFolder, damaged: MutableSequence[Damaged]) -> Bank:
    """Read the snapshots of a run; one that cannot be read is added to `damaged`."""
    items: dict[str, dict[str, Any]] = {}
    try:
        for snapshot, item in folder.memory_items():
            name = str(item.get("id", ""))
            before = items.get(name, {}).get("snapshots", [])
            items[name] = {**_shaped(item), "id": name, "snapshots": [*before, snapshot]}
    except RecordError as error:
        where = Path(error.where)
        inside = where.is_relative_to(folder.path)
        path = where.relative_to(folder.path) if inside else where
        damaged.append(Damaged(path, error.what))
    return Bank(list(items.values()))


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
    return element(
        "section",
        element("h1", "Memory bank", tabindex="-1"),
        element(
            "p",
            "What was learned, where it comes from, and whom it was shown to.",
            class_="lead quiet",
        ),
        element("div", joined([search, source]), class_="bar-line"),
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
        for name in ("title", "description", "content", "src", "pattern")
        if item.get(name)
    }
    tags = item.get("tags")
    provenance, counters = item.get("provenance"), item.get("counters")
    return {
        **kept,
        "tags": [str(tag) for tag in tags] if isinstance(tags, (list, tuple)) else [],
        "provenance": dict(provenance) if isinstance(provenance, Mapping) else {},
        "counters": dict(counters) if isinstance(counters, Mapping) else {},
    }
