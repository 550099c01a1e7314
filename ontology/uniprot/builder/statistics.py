"""The service description and VoID statistics of a dataset, computed from its quads."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from pyoxigraph import Literal, NamedNode, RdfFormat, Triple, serialize

from .terms import GRAPHS, RDF, XSD, Fact, Namespace

__all__ = ["VOID_GRAPH", "describe"]

VOID = Namespace("http://rdfs.org/ns/void#")
SD = Namespace("http://www.w3.org/ns/sparql-service-description#")
DCTERMS = Namespace("http://purl.org/dc/terms/")
RB = Namespace("urn:reasoningbank:ontology#")
FORMATS = Namespace("http://www.w3.org/ns/formats/")
Say = Callable[[NamedNode, NamedNode, NamedNode | Literal], None]

VOID_GRAPH = GRAPHS[".well-known/void"]
_PREFIXES = {
    "up": "http://purl.uniprot.org/core/",
    "oboInOwl": "http://www.geneontology.org/formats/oboInOwl#",
    "rh": "http://rdf.rhea-db.org/",
    "faldo": "http://biohackathon.org/resource/faldo#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "owl": "http://www.w3.org/2002/07/owl#",
}


def describe(
    quads: Iterable[Fact],
    endpoint: str,
    title: str,
    labels: Sequence[str],
    graph: NamedNode = VOID_GRAPH,
    prefixes: Mapping[str, str] = _PREFIXES,
) -> bytes:
    """Describes the endpoint and its graphs in Turtle.

    Args:
        quads: The dataset.
        endpoint: The service's address.
        title: Name of the dataset.
        labels: Properties whose values name things, most telling first.
        graph: The named graph that the description is loaded into.
        prefixes: The vocabulary's namespaces by prefix, to shorten what is written.

    Returns:
        Turtle, the same bytes for the same quads.
    """
    here = Namespace(f"{graph.value}#")
    service, dataset = NamedNode(endpoint), here["dataset"]
    triples: list[Triple] = []

    def say(subject: NamedNode, predicate: NamedNode, value: NamedNode | Literal) -> None:
        triples.append(Triple(subject, predicate, value))

    by_graph: dict[str, list[Fact]] = defaultdict(list)
    for quad in quads:
        by_graph[quad.graph.value].append(quad)
    say(service, RDF["type"], SD["Service"])
    say(service, SD["endpoint"], service)
    say(service, SD["supportedLanguage"], SD["SPARQL11Query"])
    say(service, SD["feature"], SD["UnionDefaultGraph"])
    for name in ("SPARQL_Results_JSON", "SPARQL_Results_TSV", "Turtle", "N-Triples"):
        say(service, SD["resultFormat"], FORMATS[name])
    say(service, SD["defaultDataset"], dataset)
    say(dataset, RDF["type"], SD["Dataset"])
    say(dataset, RDF["type"], VOID["Dataset"])
    say(dataset, DCTERMS["title"], Literal(title))
    say(dataset, SD["defaultGraph"], here["default"])
    for label in labels:
        say(dataset, RB["labelProperty"], NamedNode(label))
    every = [quad for own in by_graph.values() for quad in own]
    say(here["default"], RDF["type"], SD["Graph"])
    _describe_graph(say, here["default"], every, partitions=False)
    for name in sorted(by_graph):
        key = name.rstrip("/").rsplit("/", 1)[1]
        named, part = here[f"named-{key}"], here[f"graph-{key}"]
        say(dataset, SD["namedGraph"], named)
        say(named, RDF["type"], SD["NamedGraph"])
        say(named, SD["name"], NamedNode(name))
        say(named, SD["graph"], part)
        say(part, RDF["type"], SD["Graph"])
        _describe_graph(say, part, by_graph[name], partitions=True)
    named_here = {
        **prefixes,
        "void": str(VOID),
        "sd": str(SD),
        "dcterms": str(DCTERMS),
        "rb": str(RB),
        "xsd": str(XSD),
        "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
        "rdf": str(RDF),
        "": str(here),
    }
    ordered = sorted(triples, key=str)
    turtle = serialize(ordered, format=RdfFormat.TURTLE, prefixes=named_here)
    assert turtle is not None  # it is None only when an output file is given
    # The serializer writes its prefixes in no certain order.
    lines = turtle.decode().splitlines(keepends=True)
    header = sorted(line for line in lines if line.startswith("@prefix"))
    return "".join((*header, *lines[len(header) :])).encode()


def _number(value: int) -> Literal:
    return Literal(str(value), datatype=XSD["integer"])


def _describe_graph(say: Say, graph: NamedNode, quads: list[Fact], *, partitions: bool) -> None:
    triples = {q[:3] for q in quads}
    classes: dict[NamedNode, list[NamedNode]] = defaultdict(list)
    for subject, predicate, value in triples:
        if predicate == RDF["type"] and isinstance(value, NamedNode):
            classes[subject].append(value)
    say(graph, RDF["type"], VOID["Dataset"])
    say(graph, VOID["triples"], _number(len(triples)))
    say(graph, VOID["distinctSubjects"], _number(len({s for s, _, _ in triples})))
    say(graph, VOID["distinctObjects"], _number(len({o for _, _, o in triples})))
    say(graph, VOID["entities"], _number(len(classes)))
    members = Counter(each for own in classes.values() for each in own)
    used = Counter(predicate for _, predicate, _ in triples)
    say(graph, VOID["classes"], _number(len(members)))
    say(graph, VOID["properties"], _number(len(used)))
    if not partitions:
        return
    for space in _spaces(classes):
        say(graph, VOID["uriSpace"], Literal(space))
    subjects: dict[NamedNode, set[NamedNode]] = defaultdict(set)
    objects: dict[NamedNode, set[NamedNode | Literal]] = defaultdict(set)
    of_class: Counter[tuple[NamedNode, NamedNode]] = Counter()
    for subject, predicate, value in triples:
        subjects[predicate].add(subject)
        objects[predicate].add(value)
        for each in classes.get(subject, ()):
            of_class[each, predicate] += 1
    for each, number in members.items():
        part = NamedNode(f"{graph.value}-class-{_short(each)}")
        say(graph, VOID["classPartition"], part)
        say(part, VOID["class"], each)
        say(part, VOID["entities"], _number(number))
    for (each, predicate), number in of_class.items():
        owner = NamedNode(f"{graph.value}-class-{_short(each)}")
        part = NamedNode(f"{owner.value}-property-{_short(predicate)}")
        say(owner, VOID["propertyPartition"], part)
        say(part, VOID["property"], predicate)
        say(part, VOID["triples"], _number(number))
    for predicate, number in used.items():
        part = NamedNode(f"{graph.value}-property-{_short(predicate)}")
        say(graph, VOID["propertyPartition"], part)
        say(part, VOID["property"], predicate)
        say(part, VOID["triples"], _number(number))
        say(part, VOID["distinctSubjects"], _number(len(subjects[predicate])))
        say(part, VOID["distinctObjects"], _number(len(objects[predicate])))


def _short(node: NamedNode) -> str:
    return re.split(r"[/#]", node.value)[-1]


def _spaces(subjects: Iterable[NamedNode]) -> list[str]:
    # An address up to its last separator; nodes inside an entry belong to the entry's space. The
    # spaces of databases with a handful of links would bury the others.
    found = Counter(re.sub(r"[^/]*$", "", node.value.split("#", 1)[0]) for node in subjects)
    most = max(found.values(), default=0)
    return sorted(space for space, number in found.items() if number * 200 >= most)
