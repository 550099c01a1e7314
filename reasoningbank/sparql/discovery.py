"""Discovery: the service description and the VoID statistics of an endpoint, as plain values.

A service description comes from the endpoint's bare address (SPARQL 1.1 Service Description,
section 2); VoID statistics from the same document, else from the endpoint's own graphs, else from
the well-known location (VoID, section 7.2). Each step is bounded and reported in the notes. A store
is never scanned: every pattern has a bound property or class, and every query a LIMIT.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from urllib.parse import urljoin

from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from reasoningbank.errors import EndpointError, QueryError
from reasoningbank.sparql.client import SPARQLClient
from reasoningbank.sparql.formats import ACCEPT, ACCEPT_XML, document_triples
from reasoningbank.sparql.results import GraphResult
from reasoningbank.sparql.terms import RDF_TYPE, STANDARD_PREFIXES, Term, iri

WELL_KNOWN = "/.well-known/void"
#: Triples read of a document; those of the largest public stores have about as many.
MOST_TRIPLES = 200_000
#: Seconds of one step; the endpoint's own limit if that is less.
STEP_S = 20.0
#: Seconds after which no further step starts: an agent is waiting.
TOTAL_S = 45.0
#: Statistics of the largest public stores have some tens of thousands of triples.
MOST_STORED = 50_000
#: Graphs read for statistics; stores keep them in one.
MOST_GRAPHS = 5
#: Names of graphs read.
MOST_NAMES = 200
#: Matches whose graphs are read.
SAMPLE = 10_000

_NO_PROPERTY = "FILTER NOT EXISTS { ?d void:property ?any }"
#: The properties of VoID that are read.
_OF_VOID = """
triples classPartition class entities distinctSubjects propertyPartition property
"""
#: All that are read, each with a condition on its subject.
_READ = {
    **dict.fromkeys(("sd:name", "sd:graph", *(f"void:{n}" for n in _OF_VOID.split())), ""),
    "dcterms:title": "?d a void:Dataset .",
}
#: The same without property partitions, which make up most of long statistics.
_READ_BRIEFLY = {
    name: _NO_PROPERTY if name in ("void:triples", "void:distinctSubjects") else condition
    for name, condition in _READ.items()
    if "roperty" not in name
}
_SD = STANDARD_PREFIXES["sd"]
_VOID = STANDARD_PREFIXES["void"]
_HEAD = "".join(f"PREFIX {p}: <{STANDARD_PREFIXES[p]}>\n" for p in ("void", "sd", "dcterms"))


@dataclass(frozen=True)
class NamedGraph:
    """A named graph and its number of triples, None if unknown."""

    name: str
    triples: int | None = None


@dataclass(frozen=True)
class VoidDataset:
    """One void:Dataset with its statistics: numbers by name, the largest first; None if unknown."""

    iri: str  #: IRI or blank node label of the dataset
    title: str = ""
    graph: str = ""  #: The named graph that holds it, if the description names it
    triples: int | None = None
    entities: int | None = None
    classes: Mapping[str, int | None] = field(default_factory=dict)  #: Instances of each class
    properties: Mapping[str, int | None] = field(default_factory=dict)  #: Triples of each property
    #: By class, if known: the properties of its instances
    of_class: Mapping[str, Mapping[str, int | None]] = field(default_factory=dict)


@dataclass(frozen=True)
class Description:
    endpoint: str  #: Public address of the endpoint
    source: str  #: Name of the endpoint
    offered: bool  #: Whether it offers a description; all else is empty if not
    _: KW_ONLY
    named_graphs: tuple[NamedGraph, ...] = ()  #: Those listed, with their sizes
    triples: tuple[Triple, ...] = field(default=(), repr=False)  #: The description as RDF
    notes: tuple[str, ...] = ()  #: Why something is missing


@dataclass(frozen=True)
class ServiceDescription(Description):
    """The service description of an endpoint; everything is named by its IRI."""

    languages: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    result_formats: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()  #: Extension functions and aggregates
    entailment: str = ""


@dataclass(frozen=True)
class VoidDescription(Description):
    origin: str = ""  #: ``store``, ``well-known``, ``service description``, or empty
    datasets: tuple[VoidDataset, ...] = ()  #: The datasets described, the largest first
    truncated: bool = False  #: Whether the description was longer than the part read


@dataclass(frozen=True)
class Discovery:
    """The descriptions of an endpoint: of the engine by itself, of the data by the store."""

    service: ServiceDescription
    void: VoidDescription
    named_graphs: tuple[NamedGraph, ...]  #: Named graphs in either description, the largest first
    graphs_via: str = ""  #: Their origin: ``description``, ``sample of N triples``, or empty
    notes: tuple[str, ...] = ()  #: Which steps failed, and why

    @property
    def triples(self) -> tuple[Triple, ...]:
        """All triples read: the service description first, then the statistics."""
        return tuple(dict.fromkeys((*self.service.triples, *self.void.triples)))


def discover(client: SPARQLClient) -> Discovery:
    """Read the service description and the statistics of an endpoint, and join them.

    If neither names a graph, graphs are looked for in a bounded sample of the data.
    """
    down: EndpointError | None = None
    steps = _Steps(client)
    try:
        service = service_description(client, steps)
    except EndpointError as error:
        # Some endpoints answer queries only; the store may have statistics.
        down = error
        service = _read_service((), client, error.what)
    try:
        void = void_description(client, service, steps)
    except EndpointError as error:
        raise down or error from None
    notes = [f"service description: {note}" for note in service.notes]
    notes += [f"statistics: {note}" for note in void.notes]
    sizes = {graph.name: graph.triples for graph in service.named_graphs}
    sizes |= {
        g.name: g.triples for g in void.named_graphs if g.triples is not None or g.name not in sizes
    }
    graphs = _sized(sizes)
    via = "description" if graphs else ""
    if not graphs:
        try:
            graphs = tuple(map(NamedGraph, steps.names("GRAPH ?g { ?s a ?class }")))
            via = f"sample of {SAMPLE:,} triples" if graphs else ""
        except (QueryError, EndpointError) as error:
            notes.append(f"named graphs: {error.what}")
    return Discovery(service, void, graphs, via, tuple(notes))


def service_description(client: SPARQLClient, steps: _Steps | None = None) -> ServiceDescription:
    """Read the service description at the endpoint's bare address."""
    triples, note = (steps or _Steps(client)).document("")
    found = _read_service(triples, client, note)
    if found.offered or note:
        return found
    return _read_service((), client, "the answer describes no service")


def void_description(
    client: SPARQLClient, service: ServiceDescription | None = None, steps: _Steps | None = None
) -> VoidDescription:
    """Read VoID statistics from the service description, the store, or the well-known location.

    The first with counts of classes or properties is used, else the first with any count. A
    `service` description that is known needs no further request.
    """
    notes: list[str] = []

    def found(triples: Sequence[Triple], origin: str, truncated: bool = False) -> VoidDescription:
        return VoidDescription(
            endpoint=client.config.url,
            source=client.config.source,
            offered=bool(origin),
            origin=origin,
            datasets=read_void(triples),
            named_graphs=_named_graphs(_Graph(triples)),
            triples=tuple(triples),
            truncated=truncated or len(triples) >= MOST_TRIPLES,
            notes=tuple(notes),
        )

    described = () if service is None else service.triples
    if any(dataset.classes or dataset.properties for dataset in read_void(described)):
        return found(described, "service description")
    steps = steps or _Steps(client)
    stored, truncated, failure = _store_statistics(steps, notes)
    if read_void(stored):
        return found(stored, "store", truncated)
    try:
        published, note = steps.document(WELL_KNOWN)
    except EndpointError as error:
        if failure is not None:
            raise failure from None
        published, note = [], error.what
    if read_void(published):
        return found(published, "well-known")
    notes.append(f"{WELL_KNOWN}: {note or 'holds no statistics'}")
    return found(described, "service description") if read_void(described) else found((), "")


class _Steps:
    """Asks an endpoint step by step, with a time limit for each step and for all."""

    def __init__(self, client: SPARQLClient) -> None:
        self._client = client
        self._end = time.monotonic() + TOTAL_S

    def _next_s(self) -> float:
        """Return the seconds of the next step; raise `EndpointError` if the time is up."""
        config = self._client.config
        if time.monotonic() >= self._end:
            what = f"not asked: the endpoint took more than {TOTAL_S:g} s already"
            raise EndpointError(what, where=config.address)
        return min(config.timeout_s, STEP_S)

    def document(self, path: str) -> tuple[list[Triple], str]:
        """Return the triples of a document of the endpoint, and the reason if there are none."""
        base = urljoin(self._client.config.url, path)
        reply = self._client.fetch(path, ACCEPT, timeout_s=self._next_s())
        triples, note = document_triples(reply, base, MOST_TRIPLES)
        if triples or not (reply.status == 406 or (reply.status < 300 and reply.is_html)):
            return triples, note
        again = self._client.fetch(path, ACCEPT_XML, timeout_s=self._next_s())
        triples, _ = document_triples(again, base, MOST_TRIPLES)
        return triples, "" if triples else note

    def names(self, pattern: str) -> tuple[str, ...]:
        """Return the named graphs of a bounded number of matches."""
        some = f"SELECT ?g WHERE {{ {pattern} }} LIMIT {SAMPLE}"
        query = f"{_HEAD}SELECT DISTINCT ?g WHERE {{ {{ {some} }} }} LIMIT {MOST_NAMES}"
        rows = self._client.rows(query, max_rows=MOST_NAMES, timeout_s=self._next_s())
        return tuple(sorted(g.value for (g,) in rows if isinstance(g, NamedNode)))

    def statistics(self, graph: str, most: int, read: Mapping[str, str]) -> GraphResult:
        """Return at most `most` triples of statistics in a graph, or in the default graph."""
        # One branch and one variable for each property: not all engines support BIND inside UNION.
        template = "\n".join(f"  ?d {name} ?v{at} ." for at, name in enumerate(read))
        branches = "\n  UNION ".join(
            f"{{ {condition} ?d {name} ?v{at} }}"
            for at, (name, condition) in enumerate(read.items())
        )
        where = f"GRAPH {iri(graph)} {{\n  {branches}\n}}" if graph else branches
        query = f"{_HEAD}CONSTRUCT {{\n{template}\n}} WHERE {{\n  {where}\n}} LIMIT {most + 1}"
        found = self._client.query(query, max_rows=most, timeout_s=self._next_s())
        assert isinstance(found, GraphResult), "a CONSTRUCT yields a graph"
        return found


def _store_statistics(
    steps: _Steps, notes: list[str]
) -> tuple[tuple[Triple, ...], bool, EndpointError | None]:
    """Read a store's statistics, whether there are more, and why the endpoint did not answer."""
    triples: dict[Triple, None] = {}
    truncated = answered = False
    failure: EndpointError | None = None
    graphs: tuple[str, ...] = ()
    try:
        graphs = steps.names("GRAPH ?g { ?d a void:Dataset }")
        answered = True
    # Stores without named graphs reject GRAPH; their default graph is read instead.
    except (QueryError, EndpointError) as error:
        notes.append(f"the store could not be asked which graphs describe it: {error.what}")
        failure = error if isinstance(error, EndpointError) else None
    for number, graph in enumerate(graphs[:MOST_GRAPHS] or ("",)):
        left = MOST_STORED - len(triples)
        if left <= 0:
            break
        try:
            found = steps.statistics(graph, left, _READ)
            if found.truncated:
                notes.append(
                    f"more than {left:,} triples of statistics: those of properties left out"
                )
                truncated = True
                found = steps.statistics(graph, left, _READ_BRIEFLY)
        except (QueryError, EndpointError) as error:
            notes.append(f"the store could not be asked for VoID statistics: {error.what}")
            failure = failure or (error if isinstance(error, EndpointError) else None)
            continue
        answered = True
        for triple in found.triples():
            # The labels of blank nodes may repeat in the answers of several queries.
            subject, _, value = (
                BlankNode(f"g{number}x{term.value}") if isinstance(term, BlankNode) else term
                for term in triple
            )
            triples[Triple(subject, triple.predicate, value)] = None
    if answered and not triples:
        notes.append("the store holds no VoID statistics")
    return tuple(triples), truncated or len(graphs) > MOST_GRAPHS, None if answered else failure


# -- reading the triples ------------------------------------------------------------------


class _Graph:
    """Triples by subject and predicate."""

    def __init__(self, triples: Iterable[Triple]) -> None:
        self._objects: dict[tuple[Term, str], list[Term]] = defaultdict(list)
        self.subjects: dict[Term, None] = {}
        for triple in triples:
            self.subjects[triple.subject] = None
            self._objects[triple.subject, triple.predicate.value].append(triple.object)

    def all(self, subject: Term, *predicates: str) -> list[Term]:
        return [o for p in predicates for o in self._objects.get((subject, p), ())]

    def iris(self, subject: Term, *predicates: str) -> set[str]:
        return {t.value for t in self.all(subject, *predicates) if isinstance(t, NamedNode)}

    def count(self, nodes: Iterable[Term], *predicates: str) -> int | None:
        """Return the highest number that nodes have: each by the first predicate with one."""
        counts: list[int] = []
        for node in nodes:
            values = (
                t.value.strip() for t in self.all(node, *predicates) if isinstance(t, Literal)
            )
            counts += [int(text) for text in values if text.isdigit()][:1]
        return max(counts, default=None)


def _read_service(triples: Sequence[Triple], client: SPARQLClient, note: str) -> ServiceDescription:
    """Read a service description; `offered` is False if the triples contain none."""
    graph = _Graph(triples)
    services = [
        s
        for s in graph.subjects
        if NamedNode(_SD + "Service") in graph.all(s, RDF_TYPE)
        or graph.all(s, _SD + "supportedLanguage", _SD + "endpoint")
    ]

    def of(*names: str) -> tuple[str, ...]:
        return tuple(sorted({i for s in services for n in names for i in graph.iris(s, _SD + n)}))

    return ServiceDescription(
        endpoint=client.config.url,
        source=client.config.source,
        offered=bool(services),
        languages=of("supportedLanguage"),
        features=of("feature"),
        result_formats=of("resultFormat"),
        functions=of("extensionFunction", "extensionAggregate"),
        entailment=next(iter(of("defaultEntailmentRegime")), ""),
        named_graphs=_named_graphs(graph),
        triples=tuple(triples),
        notes=(note,) if note else (),
    )


def _named_graphs(graph: _Graph) -> tuple[NamedGraph, ...]:
    described: dict[str, list[Term]] = defaultdict(list)
    for node in graph.subjects:
        for name in graph.iris(node, _SD + "name"):
            described[name] += (node, *graph.all(node, _SD + "graph"))
    return _sized({n: graph.count(nodes, _VOID + "triples") for n, nodes in described.items()})


def _sized(graphs: Mapping[str, int | None]) -> tuple[NamedGraph, ...]:
    return tuple(NamedGraph(*item) for item in by_size(graphs).items())


def by_size(counts: Mapping[str, int | None]) -> dict[str, int | None]:
    """Return numbers by name, the largest first."""
    return dict(sorted(counts.items(), key=lambda item: (-(item[1] or 0), item[0])))


def read_void(triples: Iterable[Triple]) -> tuple[VoidDataset, ...]:
    """Read the datasets of a VoID description, the largest first."""
    graph = _Graph(triples)
    links = (_VOID + "classPartition", _VOID + "propertyPartition")
    partitions = {part for node in graph.subjects for part in graph.all(node, *links)}
    graphs = {
        dataset: name
        for node in graph.subjects
        for dataset in graph.all(node, _SD + "graph")
        for name in sorted(graph.iris(node, _SD + "name"))
    }
    datasets = [
        _dataset(graph, node, graphs.get(node, ""))
        for node in graph.subjects
        if graph.all(node, _VOID + "triples", *links) and node not in partitions
    ]
    return tuple(sorted(datasets, key=lambda d: (-(d.triples or 0), d.iri)))


def _dataset(graph: _Graph, node: Term, name: str) -> VoidDataset:
    titles = graph.all(node, STANDARD_PREFIXES["dcterms"] + "title")
    entities, triples = _VOID + "entities", _VOID + "triples"

    def parts(nodes: Iterable[Term], kind: str) -> dict[str, list[Term]]:
        found: dict[str, list[Term]] = defaultdict(list)
        for part in (p for node in nodes for p in graph.all(node, f"{_VOID}{kind}Partition")):
            for name in graph.iris(part, _VOID + kind):
                found[name].append(part)
        return found

    def properties(nodes: Iterable[Term]) -> dict[str, int | None]:
        found = parts(nodes, "property")
        return by_size({p: graph.count(some, triples) for p, some in found.items()})

    classes = parts([node], "class")
    return VoidDataset(
        iri=node.value if isinstance(node, NamedNode | BlankNode) else str(node),
        title=next((title.value for title in titles if isinstance(title, Literal)), ""),
        graph=name,
        triples=graph.count([node], triples),
        entities=graph.count([node], entities, _VOID + "distinctSubjects"),
        classes=by_size({c: graph.count(some, entities, triples) for c, some in classes.items()}),
        properties=properties([node]),
        of_class={c: used for c, some in classes.items() if (used := properties(some))},
    )
