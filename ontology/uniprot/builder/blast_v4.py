"""Reading sequences by accession from a protein database in the BLAST version 4 format.

Layout: `.pin` (index), `.phr` (descriptions, binary ASN.1), `.psq` (residues, one byte each).
See "BLAST database format" in the NCBI C++ toolkit's documentation of SeqDB.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Collection
from pathlib import Path

__all__ = ["read_sequences"]

# The NCBIstdaa alphabet: residue codes 0 to 27.
_ALPHABET = b"-ABCDEFGHIKLMNPQRSTVWXYZU*OJ"
_LETTERS = bytes.maketrans(bytes(range(28)), _ALPHABET)


def read_sequences(database: Path, wanted: Collection[str] | None = None) -> dict[str, str]:
    """Sequences of a database whose descriptions read `ACCESSION|...`.

    Args:
        database: Path of the three files without their extensions.
        wanted: Accessions to read; all if None.

    Returns:
        One-letter sequences by accession.
    """
    index = database.with_name(f"{database.name}.pin").read_bytes()
    headers = database.with_name(f"{database.name}.phr").read_bytes()
    residues = database.with_name(f"{database.name}.psq").read_bytes()
    position = 8  # version, database type
    for _ in range(2):  # title, timestamp
        (length,) = struct.unpack_from(">i", index, position)
        position += 4 + length
    (count,) = struct.unpack_from(">i", index, position)
    position += 4 + 8 + 4  # number of sequences, total residues, longest sequence
    header_offsets = struct.unpack_from(f">{count + 1}I", index, position)
    sequence_offsets = struct.unpack_from(f">{count + 1}I", index, position + 4 * (count + 1))
    found: dict[str, str] = {}
    name = re.compile(
        rb"([OPQ][0-9][A-Z0-9]{3}[0-9]|[A-NR-Z][0-9](?:[A-Z][A-Z0-9]{2}[0-9]){1,2})\|"
    )
    for number in range(count):
        match = name.search(headers, header_offsets[number], header_offsets[number + 1])
        if not match:
            continue
        accession = match[1].decode()
        if wanted is None or accession in wanted:
            # Every sequence ends with a zero byte.
            raw = residues[sequence_offsets[number] : sequence_offsets[number + 1] - 1]
            found[accession] = raw.translate(_LETTERS).decode()
    return found
