"""Cross-references of flat-file entries (the DR lines) in the shapes that UniProt gives them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote

from pyoxigraph import Literal

from .entry import Entry
from .evidence import ECO_OF_GO, Evidence, clean
from .terms import CORE, UNIPROT, XSD, Namespace

__all__ = ["add_reference"]

_METHODS = {
    "X-ray": CORE["X-Ray_Crystallography"],
    "NMR": CORE["NMR_Spectroscopy"],
    "EM": CORE["Electron_Microscopy"],
}
_ENSEMBL = Namespace("http://rdf.ebi.ac.uk/resource/")
_CHEMBL = Namespace("http://rdf.ebi.ac.uk/resource/chembl/target/")
# KEGG's identifiers are not free to redistribute; PDBsum repeats PDB's.
_LEFT_OUT = {"KEGG", "KO", "PDBsum"}


def add_reference(entry: Entry, reference: Sequence[str]) -> None:
    """Writes one cross-reference: GO as classification, structures with method, the rest plain."""
    database, key, *details = [clean(part) for part in reference]
    if database == "GO":
        code = details[-1].split(":", 1)[0] if details else ""
        evidence = (Evidence(ECO_OF_GO[code]),) if code in ECO_OF_GO else ()
        entry.go(key, evidence)
    elif database == "Proteomes":
        component = quote(details[0].rstrip(".")) if details else ""
        entry.graph.add(entry.iri, CORE["proteome"], UNIPROT[f"proteomes/{key}#{component}"])
    elif database == "PDB":
        _add_structure(entry, key, details)
    elif database == "EMBL":
        _add_nucleotide(entry, key, details)
    elif database.startswith("Ensembl") and len(details) >= 2:
        _add_transcript(entry, database, key, details)
    elif database == "ChEMBL":
        entry.reference("ChEMBL", _CHEMBL[key])
    elif database not in _LEFT_OUT:
        number = re.sub(r"^(?:HGNC|MGI|FB|RGD|ZFIN|SGD):", "", key)
        comment = details[0].rstrip(".") if details and details[0] != "-" else ""
        if re.fullmatch(r"[\d.]+", comment):
            comment = ""
        entry.reference(database, UNIPROT[f"{database.lower()}/{quote(number)}"], comment=comment)


def _add_structure(entry: Entry, key: str, details: Sequence[str]) -> None:
    structure = UNIPROT[f"pdb/{key}"]
    entry.reference("PDB", structure, CORE["Structure_Resource"])
    if details and details[0] in _METHODS:
        entry.graph.add(structure, CORE["method"], _METHODS[details[0]])
    if len(details) > 1 and (resolution := re.match(r"([\d.]+) A", details[1])):
        # Canonical form, so that a store that keeps numbers by value gives it back unchanged.
        value = Literal(f"{float(resolution[1]):g}", datatype=XSD["float"])
        entry.graph.add(structure, CORE["resolution"], value)


def _add_nucleotide(entry: Entry, key: str, details: Sequence[str]) -> None:
    protein = details[0] if details and details[0] != "-" else ""
    if not protein:
        entry.reference("EMBL", UNIPROT[f"embl/{key}"], CORE["Nucleotide_Resource"])
        return
    coding = UNIPROT[f"embl-cds/{protein}"]
    entry.reference("EMBL", coding, CORE["Nucleotide_Resource"])
    entry.graph.add(coding, CORE["locatedOn"], UNIPROT[f"embl/{key}"])


def _add_transcript(entry: Entry, database: str, key: str, details: Sequence[str]) -> None:
    protein, gene = details[0], details[1].rstrip(".")
    gene = re.sub(r"\s*\[[^\]]*\]$", "", gene)
    transcript = _ENSEMBL[f"ensembl.transcript/{key}"]
    entry.reference(database, transcript, CORE["Transcript_Resource"])
    entry.graph.add(transcript, CORE["translatedTo"], _ENSEMBL[f"ensembl.protein/{protein}"])
    entry.graph.add(transcript, CORE["transcribedFrom"], _ENSEMBL[f"ensembl/{gene}"])
