"""Writing a protein's canonical sequence."""

from __future__ import annotations

import hashlib

from Bio.SeqUtils import molecular_weight

from .entry import Entry
from .terms import CORE, RDF, boolean, date, integer, text

__all__ = ["add_sequence", "mass_of"]

_STANDARD = frozenset("ACDEFGHIKLMNPQRSTVWY")


def mass_of(residues: str) -> int | None:
    """Average molecular mass in Da, rounded; None with ambiguous residues.

    Examples:
        >>> mass_of("MKV")
        377
    """
    if not set(residues) <= _STANDARD:
        return None
    weight: float = molecular_weight(residues, seq_type="protein")  # type: ignore[no-untyped-call]
    return round(weight)


def add_sequence(
    entry: Entry,
    residues: str,
    *,
    mass: int | None = None,
    version: int | None = None,
    modified: str | None = None,
    fragment: str | None = None,
    precursor: bool = False,
) -> None:
    """Adds the sequence that positions refer to (isoform 1 unless the entry says otherwise).

    Args:
        entry: The protein.
        residues: One-letter code without spaces.
        mass: Da, where the source tells it; computed otherwise.
        version: Sequence version.
        modified: Date of the sequence, `YYYY-MM-DD`.
        fragment: `single` or `multiple` where the sequence is incomplete.
        precursor: Whether parts of it are cut off later.
    """
    graph, node = entry.graph, entry.sequence
    graph.add(entry.iri, CORE["sequence"], node)
    graph.type(node, CORE["Simple_Sequence"])
    graph.add(node, RDF["value"], text(residues))
    checksum = hashlib.md5(residues.encode(), usedforsecurity=False).hexdigest()
    graph.add(node, CORE["md5Checksum"], text(checksum))
    weight = mass if mass is not None else mass_of(residues)
    if weight is not None:
        graph.add(node, CORE["mass"], integer(weight))
    if version:
        graph.add(node, CORE["version"], integer(version))
    if modified:
        graph.add(node, CORE["modified"], date(modified))
    if fragment:
        graph.add(node, CORE["fragment"], text(fragment))
    if precursor:
        graph.add(node, CORE["precursor"], boolean(True))
