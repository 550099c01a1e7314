"""Mnemonics, and which protein a PDB structure shows, from files of other databases.

EMBOSS's tests hold a conversion table of PDB codes and a part of PROSITE; Biopython's tests hold
entries of PROSITE and of the ENZYME database. All name proteins by accession and mnemonic.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

__all__ = ["Structures", "current_mnemonic", "read_structures"]

_NAMED = (
    r"\b([OPQ][0-9][A-Z0-9]{3}[0-9]|[A-NR-Z][0-9][A-Z][A-Z0-9]{2}[0-9])"
    r", *([A-Z0-9]+_[A-Z0-9]+)\b"
)

# Mnemonics without the symbol that are still in use.
_KEPT = {"P04637": "P53_HUMAN", "P10636": "TAU_HUMAN"}


class Structures(NamedTuple):
    """PDB codes, and all mnemonics that the files give, by accession."""

    codes: dict[str, list[str]]
    mnemonics: dict[str, set[str]]


def read_structures(emboss: Path, biopython: Path) -> Structures:
    """Reads records like `IN P53_HUMAN ID; P04637 ACC;` and lists like `P04637, P53_HUMAN`."""
    tests = emboss / "usr/share/EMBOSS/test/data"
    codes: dict[str, list[str]] = {}
    mnemonics: dict[str, set[str]] = {}
    code = ""
    table = tests / "structure/Epdbtosp.dat"
    for line in table.read_text(encoding="ascii").splitlines():
        if line.startswith("EN"):
            code = line[2:].strip()
        elif match := re.match(r"IN\s+(\w+) ID; (\w+) ACC;", line):
            codes.setdefault(match[2], []).append(code)
            mnemonics.setdefault(match[2], set()).add(match[1])
    lists = [tests / "prosite.dat"]
    for pattern in ("biopython-*/Tests/Prosite/*.txt", "biopython-*/Tests/Enzymes/*.txt"):
        lists += sorted(biopython.glob(pattern))
    for path in lists:
        for accession, mnemonic in re.findall(_NAMED, path.read_text(encoding="latin-1")):
            mnemonics.setdefault(accession, set()).add(mnemonic)
    return Structures(codes, mnemonics)


def current_mnemonic(structures: Structures, accession: str, symbol: str) -> str:
    """A human protein's mnemonic, or nothing.

    The files are from 1998 to 2006, and four in ten of their mnemonics were changed since; those
    made of the gene's symbol were not (none of 13 that another source tells too).

    Args:
        structures: What the files say.
        accession: The protein.
        symbol: The gene's approved symbol.
    """
    known = _KEPT.get(accession, f"{symbol}_HUMAN")
    return known if known in structures.mnemonics.get(accession, ()) else ""
