"""Memory items as RDF, in the terms of PROV-O, both ways without loss.

`to_rdf` writes items as Turtle or N-Quads; `from_rdf` reads them back, after the project's SHACL
shapes (`ontology/shapes/memory.ttl`) have found nothing to object to.
"""

from reasoningbank.memory.rdf.formats import RdfName, rdf_name
from reasoningbank.memory.rdf.reading import from_rdf
from reasoningbank.memory.rdf.writing import to_rdf

__all__ = ["RdfName", "from_rdf", "rdf_name", "to_rdf"]
