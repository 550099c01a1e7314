"""Names of proteins and genes in flat-file entries (the DE and GN lines)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from .entry import Entry
from .evidence import Evidence, clean, read_evidence
from .terms import CORE

__all__ = ["NamePart", "add_gene", "add_names", "is_precursor", "read_names"]

_PART = {
    "Full": "fullName",
    "Short": "shortName",
    "EC": "ecName",
    "INN": "internationalNonproprietaryName",
    "CD_antigen": "cdAntigenName",
    "Allergen": "allergenName",
    "Biotech": "biotechName",
}


class NamePart(NamedTuple):
    """One item of a DE line: where it stands and what it says.

    `section` is `""`, `Contains 1`, `Includes 2`…; `name` numbers the names of a section;
    `kind` is `RecName`, `AltName` or `SubName`; `part` is `fullName`, `shortName`,
    `ecName`…
    """

    section: str
    name: int
    kind: str
    part: str
    value: str
    evidence: tuple[Evidence, ...]


def read_names(description: str) -> list[NamePart]:
    """Reads the DE lines that Bio.SwissProt joined into one string.

    Examples:
        >>> [p[2:5] for p in read_names("RecName: Full=14-3-3 protein epsilon; Short=14-3-3E;")]
        [('RecName', 'fullName', '14-3-3 protein epsilon'), ('RecName', 'shortName', '14-3-3E')]
        >>> read_names("Proto-oncogene protein c-fos (Cellular oncogene fos).")[1].value
        'Cellular oncogene fos'
    """
    if not re.match(r"(RecName|SubName|AltName|Flags):", description):
        return list(_read_old_names(description))
    parts: list[NamePart] = []
    section, sections, name, kind = "", 0, 0, "RecName"
    for item in re.split(r";\s*", description):
        rest = item.strip()
        while match := re.match(r"(Contains|Includes|RecName|AltName|SubName|Flags):\s*", rest):
            rest = rest[match.end() :]
            if match[1] in ("Contains", "Includes"):
                sections += 1
                section = f"{match[1]} {sections}"
            else:
                name += 1
                kind = match[1]
        label, equals, value = rest.partition("=")
        if equals and label in _PART and kind != "Flags":
            found = clean(value)
            parts.append(NamePart(section, name, kind, _PART[label], found, read_evidence(value)))
    return parts


def _read_old_names(description: str) -> Iterator[NamePart]:
    # Until 2008: "Name (Synonym) (EC 1.1.1.1) [Contains: ...]."
    own = description.split("[", 1)[0].strip().rstrip(".")
    synonyms = re.findall(r" \(((?:[^()]|\([^()]*\))*)\)(?= \(|$)", own)
    full = own
    for synonym in reversed(synonyms):
        full = full.removesuffix(f" ({synonym})")
    yield NamePart("", 1, "RecName", "fullName", full, ())
    for number, synonym in enumerate(synonyms, 2):
        if synonym in ("Fragment", "Fragments"):
            continue
        if synonym.startswith("EC "):
            yield NamePart("", 1, "RecName", "ecName", synonym[3:], ())
        else:
            yield NamePart("", number, "AltName", "fullName", synonym, ())


def is_precursor(description: str) -> bool:
    """Whether the entry is flagged as a precursor.

    Examples:
        >>> is_precursor("RecName: Full=Renin; Flags: Precursor;")
        True
    """
    return bool(re.search(r"Flags:[^=]*Precursor", description))


def add_names(entry: Entry, description: str) -> None:
    """Writes all names, those of contained chains and domains, and the EC numbers."""
    groups: dict[tuple[str, int, str], list[NamePart]] = {}
    for part in read_names(description):
        groups.setdefault((part.section, part.name, part.kind), []).append(part)
    for (section, _, kind), parts in groups.items():
        predicate = {
            "RecName": CORE["recommendedName"],
            "AltName": CORE["alternativeName"],
            "SubName": CORE["submittedName"],
        }[kind]
        owner = entry.iri
        if section:
            owner = entry.node("SIP", section)
            entry.graph.type(owner, CORE["Part"])
            role = "component" if section.startswith("Contains") else "domain"
            entry.graph.add(entry.iri, CORE[role], owner)
        entry.name(predicate, [(p.part, p.value, p.evidence) for p in parts], owner)
        for part in parts:
            if part.part == "ecName":
                entry.enzyme(part.value, part.evidence)
                if section:
                    ec = CORE["enzyme"]
                    number = f"http://purl.uniprot.org/enzyme/{part.value}"
                    entry.graph.add(owner, ec, type(owner)(number))


def add_gene(entry: Entry, genes: Sequence[Mapping[str, object]]) -> None:
    """Writes the genes that Bio.SwissProt read from the GN lines."""
    for gene in genes:
        name = gene.get("Name")

        def listed(key: str, gene: Mapping[str, object] = gene) -> list[str]:
            values = gene.get(key, [])
            return [clean(str(v)) for v in values] if isinstance(values, list) else []

        entry.gene(
            clean(str(name)) if name else None,
            listed("Synonyms"),
            listed("OrderedLocusNames"),
            listed("ORFNames"),
        )
