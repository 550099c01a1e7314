"""Two ontologies in OBO format, from the package emboss-data: what other sources do not tell.

GO's file tells how a synonym relates to its term; ChEBI's tells the names that UniProt and Rhea
use for compounds, which are those of the form that prevails at pH 7.3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Compound", "read_compounds", "read_scopes"]

_SYNONYM = re.compile(r'synonym: "((?:\\.|[^"\\])*)" (\w+)(?: (\w+))? \[([^\]]*)\]')


@dataclass(frozen=True)
class Compound:
    """A ChEBI entry that UniProt names.

    Args:
        number: Number in ChEBI.
        formula: Molecular formula; empty where ChEBI has none, or several.
    """

    number: str
    formula: str = ""


def read_scopes(folder: Path) -> dict[tuple[str, str], str]:
    """How synonyms relate to GO terms: `EXACT`, `BROAD`, `NARROW` or `RELATED`.

    Args:
        folder: The unpacked package emboss-data.

    Returns:
        The relation by GO id and synonym.
    """
    return {
        (term, text): scope
        for term, lines in _terms(folder, "go.obo")
        for text, scope, _, _ in _synonyms(lines)
    }


def read_compounds(folder: Path) -> dict[str, Compound]:
    """The compounds that UniProt has names for, by that name; ambiguous names are left out."""
    found: dict[str, set[Compound]] = {}
    for term, lines in _terms(folder, "chebi.obo"):
        synonyms = list(_synonyms(lines))
        formulas = {text for text, _, kind, _ in synonyms if kind == "FORMULA"}
        compound = Compound(
            term.removeprefix("CHEBI:"), formulas.pop() if len(formulas) == 1 else ""
        )
        for text, _, _, source in synonyms:
            if source.startswith("UniProt:"):
                found.setdefault(text, set()).add(compound)
    return {name: own.pop() for name, own in found.items() if len(own) == 1}


def _terms(folder: Path, name: str) -> Iterator[tuple[str, list[str]]]:
    text = (folder / "usr/share/EMBOSS/data/OBO" / name).read_text(encoding="utf-8")
    for stanza in text.split("\n\n"):
        lines = stanza.strip().splitlines()
        if lines[:1] == ["[Term]"] and lines[1].startswith("id: "):
            yield lines[1].removeprefix("id: "), lines[2:]


def _synonyms(lines: list[str]) -> Iterator[tuple[str, str, str, str]]:
    for line in lines:
        if match := _SYNONYM.match(line):
            yield re.sub(r"\\(.)", r"\1", match[1]), match[2], match[3] or "", match[4]
