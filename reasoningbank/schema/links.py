"""`SchemaMap`: the classes of an endpoint, and the properties that lead from one to the next.

`DataPath` is a way in the data: which properties lead from a question's resources to its answer
(Berant et al., Semantic parsing on Freebase from question-answer pairs, EMNLP 2013).
"""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import product

from pyoxigraph import Literal, NamedNode

from reasoningbank.errors import QueryError
from reasoningbank.schema.schema import Schema
from reasoningbank.sparql import SPARQLClient, iri
from reasoningbank.sparql.terms import RDF_TYPE, Term, written

#: What a step against the direction of its property costs, compared with one along it.
BACKWARDS = 3.0
#: Additional cost of a step that almost no instance can take.
RARE = 0.3
#: Triples of one property that are looked at, and properties.
MOST_TRIPLES = 200_000
MOST_PROPERTIES = 150

#: By property and class: the classes and datatypes of the values.
Observed = Mapping[str, Mapping[str, tuple[str, ...]]]


@dataclass(frozen=True)
class Link:
    """A property as the instances of one class have it; what is unknown is empty or None."""

    subject: str
    property: str
    objects: tuple[str, ...] = ()  #: Classes or datatypes of its values
    triples: int | None = None
    service: str = ""  #: Address of the endpoint that has it; empty for the one that is asked


@dataclass(frozen=True)
class SchemaStep:
    """One step through the schema: from a class by a property to the next class."""

    source: str
    property: str
    target: str
    backwards: bool = False  #: Whether the property points from the target to the source
    share: float = 1.0  #: The share of the subject class's instances that have it, at most


@dataclass(frozen=True)
class SchemaMap:
    """All links of an endpoint, and the steps from each class to its neighbours."""

    links: tuple[Link, ...]  #: By class
    #: Number of instances by class, where known.
    instances: Mapping[str, int] = field(default_factory=dict)
    #: By the class that they start from, the most used first.
    steps: Mapping[str, tuple[SchemaStep, ...]] = field(default_factory=dict)
    hub: str = ""  #: The class with the most properties to other classes; empty if there is none

    @classmethod
    def of(
        cls,
        schema: Schema,
        services: Mapping[str, Schema] | None = None,
        observed: Observed | None = None,
    ) -> SchemaMap:
        """Combine a schema with those of federated endpoints, by address, and observed values.

        Observed values (see `observed_values`) override what the schema declares.
        """
        observed = observed or {}
        links = list(_links(schema, observed))
        instances = {c: t.count for c, t in schema.classes.items() if t.count is not None}
        steps = _steps(links, schema, instances, observed)
        for address, other in (services or {}).items():
            links += [replace(link, service=address) for link in _links(other, {})]

        def forward(name: str) -> int:
            return len({step.property for step in steps[name] if not step.backwards})

        hub = min(steps, key=lambda name: (-forward(name), name), default="")
        return cls(tuple(links), instances, steps, hub)

    def way(
        self, begin: Collection[str], target: str, detour: Callable[[str], float] = lambda _: 0.0
    ) -> tuple[SchemaStep, ...] | None:
        """Return the cheapest way from one of some classes to another; None if there is none.

        A step against the direction of its property counts three times: questions rarely mean it.
        `detour` is the additional cost of passing through a class, from 0 to 1.
        """
        numbers = itertools.count()
        todo: list[tuple[float, int, str, tuple[SchemaStep, ...]]]
        todo = [(0.0, next(numbers), name, ()) for name in sorted(begin)]
        done: set[str] = set()
        while todo:
            cost, _, here, way = heapq.heappop(todo)
            if here == target:
                return way
            if here in done:
                continue
            done.add(here)
            for step in self.steps.get(here, ()):
                if step.target not in done:
                    more = (BACKWARDS if step.backwards else 1.0) + detour(step.target)
                    more += RARE * (1 - step.share)
                    item = (cost + more, next(numbers), step.target, (*way, step))
                    heapq.heappush(todo, item)
        return None


def _links(schema: Schema, observed: Observed) -> Iterator[Link]:
    """Yield the links of the classes in the data, then properties whose class is unknown."""
    classes, properties = schema.classes, schema.properties

    def link(subject: str, used: str, triples: int | None) -> Link:
        values = properties[used].range if used in properties else ()
        # A property of several classes that leads back to them leads each to itself.
        values = (subject,) if subject in values else values
        return Link(subject, used, observed.get(used, {}).get(subject) or values, triples)

    counted = schema.counts_by_class
    placed = {RDF_TYPE}
    for name in [c for c, term in classes.items() if term.in_data] or list(classes):
        for used in schema.properties_of(name):
            # A declared property that no instance has would mislead.
            if used == RDF_TYPE or (counted and used not in counted.get(name, {})):
                continue
            placed.add(used)
            yield link(name, used, counted.get(name, {}).get(used))
    for name, term in properties.items():
        if name not in placed and (term.in_data or not schema.complete):
            # Not counted by class: the data or the schema may say which class has it.
            subjects = tuple(observed.get(name, ())) or term.domain or ("",)
            for subject in subjects:
                yield link(subject, name, term.count if len(subjects) == 1 else None)


def _steps(
    links: Sequence[Link], schema: Schema, instances: Mapping[str, int], observed: Observed
) -> dict[str, tuple[SchemaStep, ...]]:
    """Return the steps from each class, those that most of its instances have first."""

    def share(link: Link) -> float:
        number = instances.get(link.subject)
        return min(1.0, (link.triples or 0) / number) if number else 1.0

    present = {link.subject for link in links}
    found: dict[str, list[SchemaStep]] = defaultdict(list)
    for link in sorted(links, key=lambda one: (share(one), one.triples or 0), reverse=True):
        exact = bool(observed.get(link.property, {}).get(link.subject))
        for target in _targets(link.objects, schema, present, exact=exact):
            if link.subject and target != link.subject:
                forwards = SchemaStep(link.subject, link.property, target, share=share(link))
                found[link.subject].append(forwards)
                back = replace(forwards, source=target, target=link.subject, backwards=True)
                found[target].append(back)
    return {name: tuple(steps) for name, steps in found.items()}


def _targets(
    objects: Sequence[str], schema: Schema, present: Collection[str], *, exact: bool
) -> dict[str, None]:
    """Return the classes of values: those named, and their subclasses."""
    found: dict[str, None] = {}
    for name in objects:
        term = schema.classes.get(name)
        if term is None:
            continue
        below = () if exact else schema.below(name)
        if exact or name in present or not below:
            found[name] = None
        # What has properties but no instances is not one of its subclasses either.
        if name not in present or term.in_data:
            found |= dict.fromkeys(below)
    return found


def observed_values(client: SPARQLClient, schema: Schema) -> Observed:
    """Ask which classes subjects have, and what their values are, where a range does not tell.

    It reads up to 200,000 triples of each such property, so ask only an endpoint on this machine. A
    property that the endpoint cannot answer for is left out.
    """
    found: dict[str, Mapping[str, tuple[str, ...]]] = {}
    unsure = [
        name
        for name, term in schema.properties.items()
        if name != RDF_TYPE
        and (term.in_data or not schema.complete)
        and (not term.range or any(schema.below(of) for of in term.range))
    ]
    for name in unsure[:MOST_PROPERTIES]:
        query = f"""SELECT DISTINCT ?class ?value WHERE {{
            {{ SELECT ?s ?o WHERE {{ ?s {iri(name)} ?o }} LIMIT {MOST_TRIPLES} }}
            ?s a ?class . OPTIONAL {{ ?o a ?type }}
            BIND(COALESCE(?type, DATATYPE(?o)) AS ?value) }}"""
        values: dict[str, set[str]] = defaultdict(set)
        with suppress(QueryError):
            for of, value in client.rows(query):
                if isinstance(of, NamedNode):
                    values[of.value] |= {value.value} if isinstance(value, NamedNode) else set()
        if values:
            found[name] = {of: tuple(sorted(kinds)) for of, kinds in sorted(values.items())}
    return found


# -- paths in the data --------------------------------------------------------------------------

#: Values that a path must reach, paths of one shape and classes that are counted, paths returned.
MOST_VALUES = 5
MOST_COUNTED = 8
MOST_PATHS = 2
#: Seconds for one query of the search.
TIMEOUT_S = 5.0


@dataclass(frozen=True)
class DataPath:
    """A path from a term to values: properties, each with whether it is followed forwards.

    Examples:
        >>> hops = (("http://e/in", False), ("http://e/sequence", True), ("http://e/mass", True))
        >>> path = DataPath("taxon:9606", hops, 20)
        >>> path.pattern("mass", {"": "http://e/"})
        '?x1 :in taxon:9606 . ?x1 :sequence/:mass ?mass'
        >>> replace(path, of=(2, "http://e/Sequence")).pattern("mass", {"": "http://e/"})
        '?x1 :in taxon:9606 . ?x1 :sequence ?x2 . ?x2 a :Sequence . ?x2 :mass ?mass'
    """

    start: str  #: The term as a query writes it
    hops: tuple[tuple[str, bool], ...]
    reached: int  #: Distinct values at its end
    #: After how many hops all nodes have this class, if that leaves fewer values
    of: tuple[int, str] | None = None

    def pattern(self, variable: str, prefixes: Mapping[str, str]) -> str:
        """Return the path as triple patterns that end at a variable."""
        triples, names, here, n = list[str](), list[str](), self.start, 0
        for done, (name, ahead) in enumerate(self.hops, 1):
            names.append(written(NamedNode(name), prefixes))
            last, typed = done == len(self.hops), self.of is not None and self.of[0] == done
            if not last and not typed and self.hops[done][1] == ahead:
                continue
            n += 1
            there = f"?{variable}" if last else f"?x{n}"
            path = "/".join(names if ahead else names[::-1])
            triples.append(f"{here} {path} {there}" if ahead else f"{there} {path} {here}")
            if self.of is not None and typed:
                triples.append(f"{there} a {written(NamedNode(self.of[1]), prefixes)}")
            names, here = [], there
        return " . ".join(triples)


def paths_to(
    client: SPARQLClient, start: str, values: Sequence[str], *, most_hops: int = 4
) -> tuple[DataPath, ...]:
    """Return the shortest paths that lead from a term to all of some values, at most two.

    Args:
        client: Sends up to 2 + 4 + 8 + 16 queries, each with a limit of five seconds, and a few
            for each path.
        start: The term as a query writes it, with the endpoint's prefixes.
        values: The values as a query writes them. The first five must be reached.
        most_hops: Longest path searched for.

    Returns:
        The paths at whose ends the number of values is nearest to that of the given ones. No path
        leads through a literal, or back by the property that it came by.
    """
    wanted = tuple(dict.fromkeys(values))
    some = wanted[:MOST_VALUES]

    def beside(path: DataPath) -> int:
        return abs(path.reached - len(wanted))

    for length in range(1, most_hops + 1) if wanted else ():
        found = [
            replace(path, reached=_reached(client, path))
            for way in product((True, False), repeat=length)
            for path in _leading(client, start, some, way)
        ]
        if found:
            best = sorted(found, key=beside)[:MOST_PATHS]
            if best[0].reached > len(wanted):
                best = [_typed(client, path, some, len(wanted)) for path in best]
            return tuple(sorted(best, key=beside))
    return ()


def _leading(
    client: SPARQLClient, start: str, values: Sequence[str], way: Sequence[bool]
) -> Iterator[DataPath]:
    hops = [(f"?p{n}", ahead) for n, ahead in enumerate(way)]
    tests = [f"?p{n} != <{RDF_TYPE}>" for n in range(len(way))]
    tests += [f"!isLiteral(?x{n})" for n in range(1, len(way))]
    tests += [f"?p{n} != ?p{n + 1}" for n in range(len(way) - 1) if way[n] != way[n + 1]]
    names = " ".join(name for name, _ in hops)
    body = f"{_chain(start, hops)} FILTER({' && '.join(tests)})"
    for row in _reaching(client, names, values, body):
        taken = [one.value for one in row if isinstance(one, NamedNode)]
        yield DataPath(start, tuple(zip(taken, way, strict=True)), 0)


def _typed(client: SPARQLClient, path: DataPath, values: Sequence[str], least: int) -> DataPath:
    """Return a path with the class of one of its nodes that leaves at most half of its values."""
    best = path
    for at in range(1, len(path.hops)):
        node = f"{_chain(path.start, path.hops)} ?x{at} a ?class"
        for (of,) in _reaching(client, "?class", values, node):
            if isinstance(of, NamedNode):
                one = replace(path, of=(at, of.value))
                if least <= (n := _reached(client, one)) < best.reached and 2 * n <= path.reached:
                    best = replace(one, reached=n)
    return best


def _reached(client: SPARQLClient, path: DataPath) -> int:
    rows = _rows(client, f"SELECT (COUNT(DISTINCT ?v) AS ?n) WHERE {{ {path.pattern('v', {})} }}")
    return int(rows[0][0].value) if rows and isinstance(rows[0][0], Literal) else 0


def _chain(start: str, hops: Sequence[tuple[str, bool]]) -> str:
    ends = [start, *(f"?x{n}" for n in range(1, len(hops))), "?v"]
    names = (name if name.startswith("?") else f"<{name}>" for name, _ in hops)
    steps = zip(ends, names, ends[1:], hops, strict=False)
    return " ".join(
        f"{a} {p} {b} ." if ahead else f"{b} {p} {a} ." for a, p, b, (_, ahead) in steps
    )


def _reaching(
    client: SPARQLClient, names: str, values: Sequence[str], body: str
) -> list[tuple[Term | None, ...]]:
    """Return what some variables are where a pattern reaches all values."""
    return _rows(
        client,
        f"SELECT {names} WHERE {{ VALUES ?v {{ {' '.join(values)} }} {body} }} "
        f"GROUP BY {names} HAVING (COUNT(DISTINCT ?v) = {len(values)}) LIMIT {MOST_COUNTED}",
    )


def _rows(client: SPARQLClient, query: str) -> list[tuple[Term | None, ...]]:
    # A path that is not found in time is not offered.
    with suppress(QueryError):
        return client.rows(query, timeout_s=TIMEOUT_S)
    return []
