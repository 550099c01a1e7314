"""The properties of a SHACL example, and what people write instead of them."""

from __future__ import annotations

from difflib import get_close_matches
from functools import lru_cache
from typing import NamedTuple

from rdflib import URIRef, namespace

__all__ = [
    "CLASS_OF_FORM",
    "PROPERTIES",
    "QUERY_PROPERTIES",
    "RB",
    "RDFS",
    "RDF_TYPE",
    "SCHEMA",
    "SH",
    "SPEX",
    "Property",
    "property_of",
]

SH = "http://www.w3.org/ns/shacl#"
RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
SCHEMA = "https://schema.org/"
SPEX = "https://purl.expasy.org/sparql-examples/ontology#"
#: Our own annotations of examples: group, bag, ordered.
RB = "urn:reasoningbank:ontology#"

#: The property that holds the query, by form.
QUERY_PROPERTIES = {
    SH + "select": "SELECT",
    SH + "ask": "ASK",
    SH + "construct": "CONSTRUCT",
    SPEX + "describe": "DESCRIBE",
    SH + "update": "UPDATE",
}

#: The class that an example of each form has beside ``sh:SPARQLExecutable``.
CLASS_OF_FORM = {
    "SELECT": SH + "SPARQLSelectExecutable",
    "ASK": SH + "SPARQLAskExecutable",
    "CONSTRUCT": SH + "SPARQLConstructExecutable",
    "DESCRIBE": SPEX + "SPARQLDescribeExecutable",
    "UPDATE": SH + "SPARQLUpdateExecutable",
}

#: What an example is read for.
PROPERTIES = (
    *QUERY_PROPERTIES,
    RDF_TYPE,
    RDFS + "comment",
    RDFS + "label",
    SH + "prefixes",
    SH + "declare",
    SH + "prefix",
    SH + "namespace",
    SCHEMA + "target",
    SCHEMA + "keywords",
    SPEX + "federatesWith",
    RB + "group",
    RB + "bag",
    RB + "ordered",
)

#: Vocabularies whose terms are all known.
_CLOSED = (namespace.SH, namespace.RDFS, namespace.SDO)
_NAMESPACES = (SH, RDFS, SCHEMA, SPEX, RB)
_LOCAL_NAMES = {p.rpartition("#")[2].rpartition("/")[2].lower(): p for p in PROPERTIES}


class Property(NamedTuple):
    """A property as it was meant, and whether it was written so."""

    iri: str
    as_written: bool


@lru_cache(maxsize=1024)
def property_of(iri: str) -> Property:
    """Find the property that an IRI stands for.

    Only IRIs of the vocabularies that examples use are mended; others are left alone, since
    a corpus may say more about its examples than this reads.

    Args:
        iri: A predicate's IRI.

    Examples:
        >>> property_of("https://schema.org/keyword")
        Property(iri='https://schema.org/keywords', as_written=False)
        >>> property_of("http://schema.org/target")
        Property(iri='https://schema.org/target', as_written=False)
        >>> property_of("http://purl.org/dc/terms/creator").as_written
        True
    """
    if iri in PROPERTIES:
        return Property(iri, True)
    cut = max(iri.rfind("#"), iri.rfind("/")) + 1
    namespace, local = iri[:cut], iri[cut:].lower()
    near = get_close_matches(namespace, _NAMESPACES, n=1, cutoff=0.85)
    if not near:
        return Property(iri, True)
    whole = near[0] + iri[cut:]
    if whole not in PROPERTIES and any(URIRef(whole) in known for known in _CLOSED):
        # sh:order and sh:group are terms of their own, and no misspelt annotations of ours.
        return Property(iri, True)
    meant = get_close_matches(local, _LOCAL_NAMES, n=1, cutoff=0.8)
    return Property(_LOCAL_NAMES[meant[0]], False) if meant else Property(iri, True)
