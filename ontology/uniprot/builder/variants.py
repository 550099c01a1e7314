"""Human natural variants and diseases, from the package gnuhealth-genetics-uniprot."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from Bio.SeqUtils import seq1

from .entry import Entry
from .flat_comments import add_disease
from .flat_features import add_snp
from .terms import CORE, RDFS, SKOS, UNIPROT, Dataset, text

__all__ = ["Disease", "Variant", "add_diseases", "add_variants", "read_diseases", "read_variants"]

_FOLDER = "trytond/modules/health_genetics_uniprot/data"
_MEANING = {"lpp": "Likely pathogenic or pathogenic", "lbb": "Likely benign or benign"}


class Variant(NamedTuple):
    """A change of one residue: `key` is `VAR_000016`, `diseases` as `DI-00085`."""

    key: str
    protein: str
    before: str
    position: int
    after: str
    significance: str
    snp: str
    diseases: tuple[str, ...]


class Disease(NamedTuple):
    """A disease of UniProt's list: `key` is `DI-00085`; references as `MIM:104300`."""

    key: str
    name: str
    acronym: str
    definition: str
    references: tuple[str, ...]


def _records(path: Path) -> Iterator[dict[str, str]]:
    for _, element in ElementTree.iterparse(path):
        if element.tag == "record":
            record = {"": element.get("id") or ""}
            for field in element:
                record[field.get("name") or ""] = field.get("ref") or field.text or ""
            yield record
            element.clear()


def read_change(value: str) -> tuple[str, int, str] | None:
    """Reads `p.Ala692Gly`.

    Examples:
        >>> read_change("p.Ala692Gly")
        ('A', 692, 'G')
        >>> read_change("p.Ala692del") is None
        True
    """
    match = re.fullmatch(r"p\.([A-Z][a-z]{2})(\d+)([A-Z][a-z]{2})", value)
    if not match:
        return None
    before, after = (seq1(code) for code in (match[1], match[3]))  # type: ignore[no-untyped-call]
    return before, int(match[2]), after


def read_variants(folder: Path) -> dict[str, list[Variant]]:
    """All variants with a single substitution, by protein, in the order of their keys."""
    diseases: dict[str, list[str]] = {}
    for record in _records(folder / _FOLDER / "variant_phenotypes.xml"):
        diseases.setdefault(record["variant"], []).append(record["phenotype"])
    found: dict[str, list[Variant]] = {}
    for record in _records(folder / _FOLDER / "gene_variants.xml"):
        change = read_change(record["aa_change"])
        if change is None:
            continue
        snp = record["dbsnp"] if re.fullmatch(r"rs\d+", record["dbsnp"]) else ""
        key = record["variant"]
        variant = Variant(
            key,
            record["protein"],
            *change,
            record["significance"],
            snp,
            tuple(sorted(set(diseases.get(record[""], ())))),
        )
        found.setdefault(variant.protein, []).append(variant)
    for variants in found.values():
        variants.sort()
    return found


def read_diseases(folder: Path) -> dict[str, Disease]:
    """All diseases by key."""
    found = {}
    for record in _records(folder / _FOLDER / "protein_diseases.xml"):
        found[record["name"]] = Disease(
            record["name"],
            record["disease_name"].strip(),
            record["acronym"].strip(),
            " ".join(record["description"].split()),
            tuple(r.strip() for r in record["xrefs"].split(",") if ":" in r),
        )
    return found


def add_variants(
    entry: Entry,
    residues: str,
    variants: Sequence[Variant],
    diseases: Mapping[str, Disease],
    known: frozenset[str],
) -> None:
    """Writes a protein's variants and the diseases they are involved in.

    Args:
        entry: The protein.
        residues: Its canonical sequence; a variant that disagrees with it is dropped.
        variants: The protein's variants.
        diseases: All diseases by key.
        known: Variants that the protein's flat-file entry has already told; they only gain
            their links.
    """
    for variant in variants:
        entry.dataset.count("variants read for the chosen proteins")
        if residues[variant.position - 1 : variant.position] != variant.before:
            entry.dataset.count("variants whose residue disagrees with the sequence dropped")
            continue
        node = UNIPROT[f"annotation/{variant.key}"]
        linked = [key for key in variant.diseases if key in diseases]
        if variant.key not in known:
            said = [f"In {', '.join(diseases[key].acronym for key in linked)}"] if linked else []
            said += [_MEANING[variant.significance]] if variant.significance in _MEANING else []
            entry.annotation(
                "Natural_Variant",
                iri=node,
                comment="; ".join(said) + "." if said else "",
                extent=(variant.position, variant.position),
            )
            entry.graph.add(node, CORE["substitution"], text(variant.after))
        if variant.snp:
            add_snp(entry, node, variant.snp)
        for key in linked:
            entry.graph.add(node, SKOS["related"], UNIPROT[f"diseases/{int(key[3:])}"])
            add_disease(entry, key)


def add_diseases(dataset: Dataset, diseases: Mapping[str, Disease]) -> None:
    """Describes the diseases that the sample mentions."""
    graph = dataset.graph("diseases")
    for key in sorted(dataset.diseases):
        disease = diseases[key]
        node = UNIPROT[f"diseases/{int(key[3:])}"]
        graph.type(node, CORE["Disease"])
        graph.add(node, SKOS["prefLabel"], text(disease.name))
        if disease.acronym:
            graph.add(node, CORE["mnemonic"], text(disease.acronym))
        if disease.definition:
            graph.add(node, RDFS["comment"], text(disease.definition))
        for reference in disease.references:
            database, _, number = reference.partition(":")
            other = UNIPROT[f"{database.lower()}/{number}"]
            graph.add(node, RDFS["seeAlso"], other)
            graph.add(other, CORE["database"], UNIPROT[f"database/{database}"])
            dataset.databases.add(database)
