"""Whole UniProtKB entries from the flat files of three packages."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from Bio import SwissProt
from Bio.SwissProt import SwissProtParserError

from .citations import add_citation
from .crossrefs import add_reference
from .entry import Entry
from .evidence import clean, read_evidence
from .flat_comments import Lookups, add_comment
from .flat_features import add_feature
from .flat_names import add_gene, add_names, is_precursor, read_names
from .sequence import add_sequence
from .terms import CORE, UNIPROT, Dataset, date, integer

__all__ = ["Record", "add_record", "flat_files", "read_records"]

# Bio.SwissProt annotates its records' attributes for a record that is still empty.
Record: TypeAlias = Any

_PLACES = {
    "biopython": ("biopython-*/Tests/SwissProt/*", "biopython-*/Tests/Registry/*.dat"),
    "libswiss-perl": ("usr/share/doc/libswiss-perl/examples/*.dat",),
    "emboss-test": (
        "usr/share/EMBOSS/test/swiss/*.dat",
        "usr/share/EMBOSS/test/swnew/*.dat",
        "usr/share/EMBOSS/test/data/*.sw",
        "usr/share/EMBOSS/test/data/*.swiss",
    ),
}


def flat_files(folders: dict[str, Path]) -> list[Path]:
    """The files of the unpacked packages that may hold entries."""
    return [
        path
        for name, patterns in _PLACES.items()
        for pattern in patterns
        for path in sorted(folders[name].glob(pattern))
        if path.is_file()
    ]


def read_records(paths: list[Path], dataset: Dataset) -> dict[str, Record]:
    """The newest version of every entry that the files hold, by accession."""
    newest: dict[str, Record] = {}
    for path in paths:
        for record in _records(path, dataset):
            accession = record.accessions[0]
            older = newest.get(accession)
            if older is None or _stamp(older) < _stamp(record):
                newest[accession] = record
    return dict(sorted(newest.items()))


def _records(path: Path, dataset: Dataset) -> Iterator[Record]:
    # The folders hold test data of many kinds; an entry starts with an ID line.
    with path.open(encoding="latin-1") as lines:
        if not re.match(r"ID   \S+ ", lines.readline()):
            return
        lines.seek(0)
        try:
            for record in SwissProt.parse(lines):  # type: ignore[no-untyped-call]
                if (
                    record.data_class in ("Reviewed", "Unreviewed", "STANDARD")
                    and len(record.sequence) == record.sequence_length
                    and record.taxonomy_id
                ):
                    yield record
                else:
                    dataset.count("incomplete flat-file entries left out")
        except (SwissProtParserError, ValueError, AssertionError):
            dataset.count("flat files in other or older formats left out")


def _stamp(record: Record) -> str:
    return _iso(record.annotation_update[0])


def _iso(day: str) -> str:
    return time.strftime("%Y-%m-%d", time.strptime(day, "%d-%b-%Y"))


def add_record(dataset: Dataset, record: Record, lookups: Lookups) -> Entry:
    """Writes everything that the entry tells as facts, and returns the entry."""
    entry = Entry(dataset, record.accessions[0])
    if shown := re.search(
        rf"IsoId=({entry.accession}-\d+)[^;]*; Sequence=Displayed", "\n".join(record.comments)
    ):
        entry.sequence = UNIPROT[f"isoforms/{shown[1]}"]
    entry.head(
        record.entry_name,
        reviewed=record.data_class != "Unreviewed",
        taxon=int(record.taxonomy_id[0]),
        existence=record.protein_existence or None,
    )
    graph = entry.graph
    graph.add(entry.iri, CORE["created"], date(_iso(record.created[0])))
    graph.add(entry.iri, CORE["modified"], date(_iso(record.annotation_update[0])))
    graph.add(entry.iri, CORE["version"], integer(int(record.annotation_update[1])))
    for old in record.accessions[1:]:
        graph.add(entry.iri, CORE["replaces"], UNIPROT[f"uniprot/{old}"])
    add_names(entry, record.description)
    add_gene(entry, record.gene_name or [])
    add_sequence(
        entry,
        record.sequence,
        mass=record.seqinfo[1],
        version=record.sequence_update[1],
        modified=_iso(record.sequence_update[0]),
        fragment=_fragment(record.description),
        precursor=is_precursor(record.description),
    )
    for host in record.host_taxonomy_id:
        taxonomy = dataset.graph("taxonomy")
        organism = UNIPROT[f"taxonomy/{record.taxonomy_id[0]}"]
        taxonomy.add(organism, CORE["host"], UNIPROT[f"taxonomy/{host}"])
        dataset.taxa.add(int(host))
    for raw in record.keywords:
        name = clean(raw)
        if name in lookups.keywords:
            keyword = UNIPROT[f"keywords/{lookups.keywords[name]}"]
            entry.link(CORE["classifiedWith"], keyword, read_evidence(raw))
            dataset.keywords.add(name)
        else:
            dataset.count("keywords without a known number dropped")
    numbers = {p.value for p in read_names(record.description) if p.part == "ecName"}
    only = next(iter(numbers)) if len(numbers) == 1 else None
    for comment in record.comments:
        add_comment(entry, comment, lookups, only)
    for feature in record.features:
        add_feature(entry, feature, record.sequence)
    for reference in record.cross_references:
        add_reference(entry, reference)
    for citation in record.references:
        add_citation(entry, citation)
    return entry


def _fragment(description: str) -> str | None:
    if re.search(r"Flags:[^=]*Fragments|\(Fragments\)", description):
        return "multiple"
    if re.search(r"Flags:[^=]*Fragment|\(Fragment\)", description):
        return "single"
    return None
