"""The Gene Ontology, from r-bioc-go.db: names, definitions, and `is a` closed transitively."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

from .terms import GO, OWL, RDFS, Dataset, Namespace, text

__all__ = ["GeneOntology", "add_terms", "closure"]

_OBO_IN_OWL = Namespace("http://www.geneontology.org/formats/oboInOwl#")
_ASPECT = {"BP": "biological_process", "MF": "molecular_function", "CC": "cellular_component"}


def closure(parents: dict[str, set[str]], start: Iterable[str]) -> dict[str, set[str]]:
    """All ancestors of the given terms and of their ancestors.

    Examples:
        >>> {k: sorted(v) for k, v in closure({"c": {"b"}, "b": {"a"}}, ["c"]).items()}
        {'c': ['a', 'b'], 'b': ['a'], 'a': []}
    """
    found: dict[str, set[str]] = {}

    def above(term: str) -> set[str]:
        if term not in found:
            found[term] = set()
            direct = parents.get(term, set())
            found[term] = direct.union(*(above(parent) for parent in sorted(direct)))
        return found[term]

    for term in start:
        above(term)
    return found


class GeneOntology:
    """Terms and their `is a` parents.

    Args:
        folder: The unpacked package r-bioc-go.db.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / "usr/lib/R/site-library/GO.db/extdata/GO.sqlite"
        base = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        rows = base.execute("SELECT _id, go_id, term, ontology, definition FROM go_term").fetchall()
        names = {number: term for number, term, *_ in rows}
        self.terms: dict[str, tuple[str, str, str]] = {
            term: (label, _ASPECT[aspect], definition or "")
            for _, term, label, aspect, definition in rows
            if aspect in _ASPECT
        }
        self.parents: dict[str, set[str]] = {}
        for table in ("go_bp_parents", "go_mf_parents", "go_cc_parents"):
            query = f"SELECT _id, _parent_id FROM {table} WHERE relationship_type = 'isa'"
            for child, parent in base.execute(query):
                if names[parent] in self.terms:
                    self.parents.setdefault(names[child], set()).add(names[parent])
        self.synonyms: dict[str, list[str]] = {}
        for number, synonym in base.execute(
            "SELECT _id, synonym FROM go_synonym WHERE like_go_id = 0 ORDER BY _id, synonym"
        ):
            self.synonyms.setdefault(names[number], []).append(synonym)


def add_terms(dataset: Dataset, ontology: GeneOntology) -> None:
    """Describes the terms that the sample mentions and all their ancestors."""
    graph = dataset.graph("go")
    known = sorted(term for term in dataset.go if term in ontology.terms)
    for term, ancestors in closure(ontology.parents, known).items():
        label, aspect, definition = ontology.terms[term]
        node = GO[term.replace(":", "_")]
        graph.type(node, OWL["Class"])
        graph.add(node, RDFS["label"], text(label))
        graph.add(node, _OBO_IN_OWL["hasOBONamespace"], text(aspect))
        if definition and term in dataset.go:
            graph.add(node, GO["IAO_0000115"], text(definition))
        for parent in ancestors:
            graph.add(node, RDFS["subClassOf"], GO[parent.replace(":", "_")])
