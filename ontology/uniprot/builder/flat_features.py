"""Features with positions in flat-file entries (the FT lines)."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from pyoxigraph import NamedNode

from .entry import Entry
from .evidence import clean, read_evidence
from .terms import CORE, GO, OWL, RDFS, UNIPROT, text

__all__ = ["CLASS_OF_KEY", "Change", "add_feature", "read_change"]

# Feature keys and the annotation class that UniProt's RDF gives them. The keys CA_BIND, METAL
# and NP_BIND were merged into BINDING in 2022.
CLASS_OF_KEY = {
    "ACT_SITE": "Active_Site",
    "BINDING": "Binding_Site",
    "CARBOHYD": "Glycosylation",
    "CA_BIND": "Binding_Site",
    "CHAIN": "Chain",
    "COILED": "Coiled_Coil",
    "COMPBIAS": "Compositional_Bias",
    "CONFLICT": "Sequence_Conflict",
    "CROSSLNK": "Cross-link",
    "DISULFID": "Disulfide_Bond",
    "DNA_BIND": "Nucleotide_Binding",
    "DOMAIN": "Domain_Extent",
    "HELIX": "Helix",
    "INIT_MET": "Initiator_Methionine",
    "INTRAMEM": "Intramembrane",
    "LIPID": "Lipidation",
    "METAL": "Binding_Site",
    "MOD_RES": "Modified_Residue",
    "MOTIF": "Motif",
    "MUTAGEN": "Mutagenesis",
    "NON_CONS": "Non-adjacent_Residues",
    "NON_STD": "Non-standard_Residue",
    "NON_TER": "Non-terminal_Residue",
    "NP_BIND": "Binding_Site",
    "PEPTIDE": "Peptide",
    "PROPEP": "Propeptide",
    "REGION": "Region",
    "REPEAT": "Repeat",
    "SIGNAL": "Signal_Peptide",
    "SITE": "Site",
    "STRAND": "Beta_Strand",
    "TOPO_DOM": "Topological_Domain",
    "TRANSIT": "Transit_Peptide",
    "TRANSMEM": "Transmembrane",
    "TURN": "Turn",
    "UNSURE": "Sequence_Uncertainty",
    "VARIANT": "Natural_Variant",
    "VAR_SEQ": "Alternative_Sequence",
    "ZN_FING": "Zinc_Finger",
}

_CHANGING = {"CONFLICT", "MUTAGEN", "VARIANT", "VAR_SEQ"}
_MOST_TEXT = 240


class Change(NamedTuple):
    """What a changing feature says: residues before, residues instead, the rest of the note."""

    before: str | None
    after: tuple[str, ...]
    rest: str


def read_change(note: str) -> Change | None:
    """Reads `A -> T (in AD1)`, `Missing (in isoform 2)` or `S->A,D: Loss of activity`.

    Examples:
        >>> read_change("A -> T (in AD1; dbSNP:rs63750851)")
        Change(before='A', after=('T',), rest='In AD1; dbSNP:rs63750851.')
        >>> read_change("S->A,D: Loss of activity.")
        Change(before='S', after=('A', 'D'), rest='Loss of activity.')
        >>> read_change("Missing (in isoform 2)")
        Change(before=None, after=(), rest='In isoform 2.')
    """
    match = re.match(
        r"(?:(Missing)|([A-Z][A-Z ]*?)\s*->\s*([A-Z][A-Z, ]*?))\s*(?:$|\.$|\((.*)\)\.?$|:\s*(.*)$)",
        note,
    )
    if not match:
        return None
    rest = (match[4] or match[5] or "").strip()
    if rest:
        rest = rest[0].upper() + rest[1:].rstrip(".") + "."
    if match[1]:
        return Change(None, (), rest)
    after = tuple(match[3].replace(" ", "").split(","))
    return Change(match[2].replace(" ", ""), after, rest)


def add_feature(entry: Entry, feature: Any, residues: str) -> None:
    """Writes one feature, or drops it when its place is unknown or disagrees with the sequence."""
    kind = CLASS_OF_KEY.get(feature.type)
    if kind is None:
        entry.dataset.count(f"features of unknown kind {feature.type} dropped")
        return
    extent = _extent(feature)
    if extent is None or not 1 <= extent[0] <= extent[1] <= len(residues):
        entry.dataset.count("features without an exact place dropped")
        return
    qualifiers = feature.qualifiers
    raw = qualifiers.get("note") or qualifiers.get("description") or ""
    evidence = (
        read_evidence("{" + qualifiers["evidence"] + "}") if qualifiers.get("evidence") else ()
    )
    evidence = evidence or read_evidence(raw)
    note = clean(raw).rstrip(".")
    change = read_change(note) if feature.type in _CHANGING else None
    if change and change.before and residues[extent[0] - 1 : extent[1]] != change.before:
        entry.dataset.count("flat-file changes whose residues disagree with the sequence dropped")
        return
    comment = change.rest if change else note
    snps = sorted(set(re.findall(r"dbSNP:(rs\d+)", comment)))
    comment = re.sub(r"(?:;\s*)?dbSNP:rs\d+\.?", "", comment, flags=re.IGNORECASE).strip(" ;")
    name = UNIPROT[f"annotation/{feature.id}"] if feature.id else None
    node = entry.annotation(
        kind,
        key=(raw, qualifiers.get("ligand", "")),
        iri=name,
        comment=comment[:_MOST_TEXT],
        evidence=evidence,
        extent=extent,
    )
    for value in change.after if change else ():
        entry.graph.add(node, CORE["substitution"], text(value))
    for snp in snps:
        add_snp(entry, node, snp)
    if qualifiers.get("ligand"):
        _add_ligand(entry, node, qualifiers)


def add_snp(entry: Entry, annotation: NamedNode, snp: str) -> None:
    """Links a variant to its dbSNP record, as `rs63750851`."""
    record = UNIPROT[f"dbsnp/{snp}"]
    entry.graph.add(annotation, RDFS["seeAlso"], record)
    entry.graph.add(record, CORE["database"], UNIPROT["database/dbSNP"])
    entry.dataset.databases.add("dbSNP")


def _add_ligand(entry: Entry, node: NamedNode, qualifiers: dict[str, str]) -> None:
    ligand = entry.node("ligand-", qualifiers["ligand"], qualifiers.get("ligand_label", ""))
    entry.graph.add(node, CORE["ligand"], ligand)
    entry.graph.type(ligand, OWL["Class"])
    entry.graph.add(ligand, RDFS["label"], text(qualifiers["ligand"]))
    if match := re.search(r"CHEBI:(\d+)", qualifiers.get("ligand_id", "")):
        entry.graph.add(ligand, RDFS["subClassOf"], GO[f"CHEBI_{match[1]}"])


def _extent(feature: Any) -> tuple[int, int] | None:
    location = feature.location
    try:
        if type(location.start).__name__ != "ExactPosition":
            return None
        if type(location.end).__name__ != "ExactPosition":
            return None
        return int(location.start) + 1, int(location.end)
    except (AttributeError, TypeError, ValueError):
        return None
