"""Getting to know an endpoint: the discovery tools beside dumping what it says into the prompt."""

from __future__ import annotations

import urllib.request

from SPARQLWrapper import JSON, N3, SPARQLWrapper

from benchmarks.measure import Row, median_seconds
from reasoningbank import EndpointConfig, SPARQLTools
from reasoningbank.corpus import load_pack, open_endpoint
from reasoningbank.refs import RefStore
from reasoningbank.tools import EndpointTools

__all__ = ["discovery"]

THAN = "description, VoID, `SELECT DISTINCT` of classes and of properties, whole"
QUERIES = (
    "SELECT DISTINCT ?class WHERE { ?x a ?class }",
    "SELECT DISTINCT ?property WHERE { ?s ?property ?o }",
)
#: What both ways must show: a class, a property, a graph.
LEARNED = ("Disease_Annotation", "encodedBy", "taxonomy")


def discovery(repeats: int) -> list[Row]:
    """Learn of the UniProt sample what it is, its graphs, classes and properties, both ways."""
    pack = load_pack("uniprot")
    with open_endpoint(pack) as config:
        asked, shown = _by_tools(config), _by_dump(config, pack.void_graph)
        seconds = (
            median_seconds(lambda: _by_tools(config), repeats),
            median_seconds(lambda: _by_dump(config, pack.void_graph), repeats),
        )
    for texts in (asked, shown):
        for name in LEARNED:
            if not any(name in text for text in texts):
                raise AssertionError(f"one way does not learn of {name}")
    label = "getting to know an endpoint: "
    chars = (sum(map(len, asked)), sum(map(len, shown)))
    return [
        Row(label + "calls", "calls", len(asked), len(shown), THAN),
        Row(label + "characters that reach a model", "characters", *chars, THAN),
        Row(label + "time of all calls", "s", *seconds, THAN),
    ]


def _by_tools(config: EndpointConfig) -> list[str]:
    """Return what a model reads that calls the tools one after the other."""
    with RefStore() as store:
        about, data = EndpointTools((config,), store=store), SPARQLTools(config, store=store)
        ref = about.service_desc(config.url)
        said = [
            ref,
            about.service_desc_stats(ref),
            about.service_desc_graphs(ref),
            data.sparql_classes(limit=100),
            data.sparql_properties(limit=100),
        ]
        return [str(one) for one in said]


def _by_dump(config: EndpointConfig, void_graph: str) -> list[str]:
    """Return what a prompt holds into which everything goes as it comes."""
    request = urllib.request.Request(config.address, headers={"Accept": "text/turtle"})
    with urllib.request.urlopen(request) as response:
        said = [response.read().decode()]
    wrapper = SPARQLWrapper(config.address)
    wrapper.setQuery(f"CONSTRUCT {{ ?s ?p ?o }} WHERE {{ GRAPH <{void_graph}> {{ ?s ?p ?o }} }}")
    wrapper.setReturnFormat(N3)
    said.append(wrapper.query().convert().decode())
    for query in QUERIES:
        wrapper.setQuery(query)
        wrapper.setReturnFormat(JSON)
        said.append(str(wrapper.query().convert()))
    return said
