"""Evidence in flat files and gene association tables, as ECO codes with their sources."""

from __future__ import annotations

import re
from typing import NamedTuple

from pyoxigraph import NamedNode

from .terms import UNIPROT

__all__ = ["ECO_OF_GO", "Evidence", "clean", "is_manual", "read_evidence"]


class Evidence(NamedTuple):
    """An ECO code, as `ECO:0000269`, and where the evidence was taken from."""

    code: str
    source: NamedNode | None = None


# The Gene Ontology's own mapping of its evidence codes to the Evidence & Conclusion Ontology.
ECO_OF_GO = {
    "EXP": "ECO:0000269",
    "IDA": "ECO:0000314",
    "IPI": "ECO:0000353",
    "IMP": "ECO:0000315",
    "IGI": "ECO:0000316",
    "IEP": "ECO:0000270",
    "HTP": "ECO:0006056",
    "HDA": "ECO:0007005",
    "HMP": "ECO:0007001",
    "HGI": "ECO:0007003",
    "HEP": "ECO:0007007",
    "ISS": "ECO:0000250",
    "ISO": "ECO:0000266",
    "ISA": "ECO:0000247",
    "ISM": "ECO:0000255",
    "IGC": "ECO:0000317",
    "IBA": "ECO:0000318",
    "IBD": "ECO:0000319",
    "IKR": "ECO:0000320",
    "IRD": "ECO:0000321",
    "RCA": "ECO:0000245",
    "TAS": "ECO:0000304",
    "NAS": "ECO:0000303",
    "IC": "ECO:0000305",
    "ND": "ECO:0000307",
    "IEA": "ECO:0000501",
}

# What entries said before 2014, and the code that UniProt replaced it with.
_QUALIFIERS = {
    "By similarity": "ECO:0000250",
    "Potential": "ECO:0000255",
    "Probable": "ECO:0000305",
}

_AUTOMATIC = {"ECO:0000256", "ECO:0000259", "ECO:0000313", "ECO:0000501", "ECO:0007669"}

_BRACES = re.compile(r"\s*\{(ECO:[^{}]*)\}")
_QUALIFIER = re.compile(r"\s*\((By similarity|Potential|Probable)\)")
_CODE = re.compile(r"(ECO:\d{7})(?:\|([^,]+))?")


def is_manual(code: str) -> bool:
    """Whether a curator made the assertion, rather than a rule."""
    return code not in _AUTOMATIC


def read_evidence(text: str) -> tuple[Evidence, ...]:
    """The evidence that a piece of a flat file gives, in its order, each once.

    Examples:
        >>> [e.code for e in read_evidence("Nucleus {ECO:0000269|PubMed:92029, ECO:0000305}.")]
        ['ECO:0000269', 'ECO:0000305']
        >>> [e.code for e in read_evidence("Phosphoserine (By similarity).")]
        ['ECO:0000250']
    """
    found = [
        Evidence(code, _source(where.strip()))
        for block in _BRACES.findall(text)
        for code, where in _CODE.findall(block)
    ]
    found += [Evidence(_QUALIFIERS[word]) for word in _QUALIFIER.findall(text)]
    return tuple(dict.fromkeys(found))


def clean(text: str) -> str:
    """The text without its evidence.

    Examples:
        >>> clean("Phosphoserine (By similarity).")
        'Phosphoserine.'
    """
    return " ".join(_QUALIFIER.sub("", _BRACES.sub("", text)).split())


def _source(where: str) -> NamedNode | None:
    database, _, key = where.partition(":")
    if database == "PubMed" and key.isdigit():
        return UNIPROT[f"citations/{key}"]
    if database == "UniProtKB" and re.fullmatch(r"[A-Z0-9]{6,10}", key):
        return UNIPROT[f"uniprot/{key}"]
    return None
