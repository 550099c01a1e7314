"""UniProtKB entries in FASTA form, from the package mmseqs2-examples."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import NamedTuple

from Bio.SeqIO.FastaIO import SimpleFastaParser

__all__ = ["FastaEntry", "read_fasta", "read_header"]

_FOLDER = "usr/share/doc/mmseqs2/example-data"


class FastaEntry(NamedTuple):
    """What a FASTA header and its sequence tell of an entry."""

    accession: str
    mnemonic: str
    reviewed: bool
    name: str
    fragment: str | None
    organism: str
    gene: str | None
    existence: int
    version: int
    sequence: str


def read_header(title: str, sequence: str = "") -> FastaEntry | None:
    """Reads a header without its `>`; None if it is not UniProtKB's.

    Examples:
        >>> e = read_header("sp|Q8AWH3|SX17A_XENTR Transcription factor Sox-17-alpha "
        ...                 "OS=Xenopus tropicalis GN=sox17a PE=2 SV=1 Split=0 ")
        >>> e.mnemonic, e.name, e.organism, e.gene, e.existence
        ('SX17A_XENTR', 'Transcription factor Sox-17-alpha', 'Xenopus tropicalis', 'sox17a', 2)
    """
    match = re.match(
        r"(sp|tr)\|(\w+)\|(\w+) (.*?) OS=(.*?)(?: GN=(.*?))? PE=(\d) SV=(\d+)(?:\s|$)", title
    )
    if not match:
        return None
    name = re.sub(r" \(Fragments?\)$", "", match[4])
    fragment = None
    if name != match[4]:
        fragment = "multiple" if match[4].endswith("(Fragments)") else "single"
    return FastaEntry(
        match[2],
        match[3],
        match[1] == "sp",
        name,
        fragment,
        match[5],
        match[6],
        int(match[7]),
        int(match[8]),
        sequence,
    )


def read_fasta(folder: Path) -> dict[str, FastaEntry]:
    """All entries of the package's two files, by accession."""
    found: dict[str, FastaEntry] = {}
    for name in ("DB.fasta.gz", "QUERY.fasta.gz"):
        with gzip.open(folder / _FOLDER / name, "rt", encoding="utf-8") as lines:
            for title, sequence in SimpleFastaParser(lines):  # type: ignore[no-untyped-call]
                entry = read_header(title, sequence)
                if entry:
                    found[entry.accession] = entry
    return found
