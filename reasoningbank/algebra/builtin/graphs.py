"""Putting graphs together: Merge."""

from __future__ import annotations

from pydantic import Field
from rdflib import Graph

from reasoningbank.algebra.arguments import Graphs
from reasoningbank.algebra.contract import Evaluation
from reasoningbank.algebra.operation import Example, Operation, register
from reasoningbank.algebra.values import Value

__all__ = ["Merge"]

_CONTEXT = {"dbr": "http://dbpedia.org/resource/", "schema": "http://schema.org/"}


@register
class Merge(Operation):
    """Merges a list of RDF graphs into one.

    Blank nodes of different documents stay apart. The results of a ForEach can be merged as well.
    """

    op = "Merge"
    yields = "graph"
    examples = (
        Example(
            {
                "graphs": [
                    {
                        "@context": _CONTEXT,
                        "@id": "dbr:Copenhagen",
                        "@type": "schema:City",
                        "schema:name": "City of Copenhagen",
                    },
                    {
                        "@context": _CONTEXT,
                        "@id": "dbr:Vilnius",
                        "@type": "schema:City",
                        "schema:name": "Vilnius",
                    },
                ]
            }
        ),
    )

    graphs: Graphs = Field(description="The graphs: JSON-LD, or operations that yield graphs")

    def run(self, run: Evaluation) -> Value:
        """Return the graph of all statements."""
        # Blank nodes got fresh names when each document was read, so a union is a merge.
        merged = Graph()
        for graph in self.graphs:
            for triple in graph:
                merged.add(triple)
        return merged
