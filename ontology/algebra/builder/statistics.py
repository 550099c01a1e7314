"""The service description and VoID statistics of the sample, which is in the default graph."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from pyoxigraph import Literal, NamedNode, RdfFormat, Triple, serialize

from ontology.uniprot.builder.terms import RDF, XSD, Namespace

__all__ = ["describe"]

VOID = Namespace("http://rdfs.org/ns/void#")
SD = Namespace("http://www.w3.org/ns/sparql-service-description#")
DCTERMS = Namespace("http://purl.org/dc/terms/")
RB = Namespace("urn:reasoningbank:ontology#")


def describe(
    facts: Collection[Triple],
    endpoint: str,
    title: str,
    labels: Sequence[str],
    graph: str,
    prefixes: Mapping[str, str],
) -> bytes:
    """Describes the endpoint and its default graph in Turtle.

    Args:
        facts: The dataset.
        endpoint: The service's address.
        title: Name of the dataset.
        labels: Properties whose values name things, most telling first.
        graph: The named graph that the description is loaded into.
        prefixes: The vocabulary's namespaces by prefix, to shorten what is written.

    Returns:
        Turtle, the same bytes for the same facts.
    """
    here = Namespace(f"{graph}#")
    service, dataset, default = NamedNode(endpoint), here["dataset"], here["default"]
    triples = [
        Triple(service, RDF["type"], SD["Service"]),
        Triple(service, SD["endpoint"], service),
        Triple(service, SD["supportedLanguage"], SD["SPARQL11Query"]),
        Triple(service, SD["defaultDataset"], dataset),
        Triple(dataset, RDF["type"], SD["Dataset"]),
        Triple(dataset, SD["defaultGraph"], default),
        Triple(default, RDF["type"], SD["Graph"]),
        Triple(default, DCTERMS["title"], Literal(title)),
        *(Triple(default, RB["labelProperty"], NamedNode(label)) for label in labels),
        *_counted(default, facts),
    ]
    told = {"void": VOID, "sd": SD, "dcterms": DCTERMS, "rb": RB, "xsd": XSD, "": here}
    # One prefix a namespace, and one namespace a prefix: ours win.
    known = {name: iri for name, iri in prefixes.items() if iri not in told.values()}
    turtle = serialize(
        sorted(triples, key=str),
        format=RdfFormat.TURTLE,
        prefixes={**known, **{name: str(iri) for name, iri in told.items()}},
    )
    assert turtle is not None  # it is None only when an output file is given
    # The serializer writes its prefixes in no certain order.
    lines = turtle.decode().splitlines(keepends=True)
    header = sorted(line for line in lines if line.startswith("@prefix"))
    return "".join((*header, *lines[len(header) :])).encode()


def _counted(dataset: NamedNode, facts: Collection[Triple]) -> Iterator[Triple]:
    kinds: dict[object, NamedNode] = {
        fact.subject: fact.object
        for fact in facts
        if fact.predicate == RDF["type"] and isinstance(fact.object, NamedNode)
    }
    used = Counter(fact.predicate for fact in facts)
    members = Counter(kinds.values())
    of_class = Counter((kinds[fact.subject], fact.predicate) for fact in facts)
    subjects: dict[NamedNode, set[object]] = defaultdict(set)
    objects: dict[NamedNode, set[object]] = defaultdict(set)
    for fact in facts:
        subjects[fact.predicate].add(fact.subject)
        objects[fact.predicate].add(fact.object)
    yield Triple(dataset, RDF["type"], VOID["Dataset"])
    yield from (
        Triple(dataset, VOID[what], _number(count))
        for what, count in (
            ("triples", len(facts)),
            ("distinctSubjects", len({fact.subject for fact in facts})),
            ("distinctObjects", len({fact.object for fact in facts})),
            ("entities", len(kinds)),
            ("classes", len(members)),
            ("properties", len(used)),
        )
    )
    for kind, count in members.items():
        part = NamedNode(f"{dataset.value}-class-{_short(kind)}")
        yield Triple(dataset, VOID["classPartition"], part)
        yield Triple(part, VOID["class"], kind)
        yield Triple(part, VOID["entities"], _number(count))
    for (kind, predicate), count in of_class.items():
        owner = NamedNode(f"{dataset.value}-class-{_short(kind)}")
        part = NamedNode(f"{owner.value}-property-{_short(predicate)}")
        yield Triple(owner, VOID["propertyPartition"], part)
        yield Triple(part, VOID["property"], predicate)
        yield Triple(part, VOID["triples"], _number(count))
    for predicate, count in used.items():
        part = NamedNode(f"{dataset.value}-property-{_short(predicate)}")
        yield Triple(dataset, VOID["propertyPartition"], part)
        yield Triple(part, VOID["property"], predicate)
        yield Triple(part, VOID["triples"], _number(count))
        yield Triple(part, VOID["distinctSubjects"], _number(len(subjects[predicate])))
        yield Triple(part, VOID["distinctObjects"], _number(len(objects[predicate])))


def _number(value: int) -> Literal:
    return Literal(str(value), datatype=XSD["integer"])


def _short(node: NamedNode) -> str:
    return re.split(r"[/#]", node.value)[-1]
