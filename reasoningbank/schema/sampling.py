"""`EndpointProfile`: what exploring an endpoint found out, and how much of it may be looked at.

Classes and properties are counted without a full scan: from statistics, the schema, or a bounded
look, which sees everything in a small store and the first so many triples of a large one. Each
result says where it comes from (`via`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from pyoxigraph import Literal, NamedNode

from reasoningbank.errors import (
    CallTimeoutError,
    EndpointError,
    QueryError,
    QueryTimeoutError,
    ReasoningBankError,
)
from reasoningbank.sparql import (
    STANDARD_PREFIXES,
    BooleanResult,
    EndpointConfig,
    PreparedQuery,
    SPARQLClient,
    TableResult,
    iri,
    is_loopback,
    values,
)
from reasoningbank.sparql.terms import cut

if TYPE_CHECKING:
    from reasoningbank.schema.schema import Schema


#: Rows that one bounded look may visit: of an engine on this machine, and of a public one.
LOOK_HERE = 1_000_000
LOOK_AFAR = 50_000
#: Seconds one exploring query may take, and all queries of one call together. Both are lowered
#: where the endpoint's own limit for a query is short.
QUERY_S = 10.0
CALL_S = 20.0
#: Seconds until an endpoint that could not say where its data are is asked again.
UNSURE_S = 60.0
#: Characters of a failure in a note.
_MOST_CHARS = 120

#: Sends one query within what is left of a call's time.
Ask = Callable[[str], TableResult]
T = TypeVar("T")


class EndpointProfile:
    """What exploring one endpoint found out; safe to share between threads and trials.

    Each fact is found when it is first needed, with bounded queries, and kept. What the endpoint
    could not do is not tried again; what a call had no time left for is.

    Args:
        config: The endpoint.
        declared: Classes and properties that are already known, e.g. from a pack's schema.
        look: Rows one bounded look may visit; by default 1,000,000 for an engine on this machine,
            50,000 for any other.
    """

    def __init__(
        self, config: EndpointConfig, *, declared: Schema | None = None, look: int | None = None
    ) -> None:
        self.config = config
        self.look = look or (LOOK_HERE if is_loopback(config.address) else LOOK_AFAR)
        self.given_up: dict[str, QueryError] = {}
        self.declared = declared
        self._query_s = min(QUERY_S, config.timeout_s / 2)
        self._call_s = min(CALL_S, config.timeout_s * 0.8)
        # The same address and the same connection limit, but less patience.
        self._client = SPARQLClient(
            replace(
                config,
                timeout_s=self._query_s,
                deadline_s=self._call_s,
                retries=min(config.retries, 1),
            )
        )
        self._known: dict[str, object] = {}
        self._unsure_until = 0.0
        self._lock = threading.RLock()

    def close(self) -> None:
        self._client.close()

    def ask(self) -> Ask:
        """Return a function that sends SELECT queries, within the time that one call may take."""
        end = time.monotonic() + self._call_s

        def ask(query: str) -> TableResult:
            left = end - time.monotonic()
            what = f"the query timed out (a call has {self._call_s:g} s)"
            if left <= 0:
                raise CallTimeoutError(what)
            # Written for the engine: preparing it would take longer than answering it.
            prepared = PreparedQuery(query, "SELECT", original=query)
            try:
                result = self._client.query(prepared, timeout_s=min(self._query_s, left))
            except QueryTimeoutError as error:
                if left < self._query_s:
                    raise CallTimeoutError(what) from error
                raise
            assert isinstance(result, TableResult), "exploring sends SELECT queries"
            return result

        return ask

    @property
    def in_graphs(self) -> bool:
        """Whether the data are in named graphs only; False if the endpoint cannot say in time."""
        with self._lock:
            if "in_graphs" not in self._known and time.monotonic() >= self._unsure_until:
                try:
                    plain = self._holds("?s ?p ?o")
                    self._known["in_graphs"] = not plain and self._holds("GRAPH ?g { ?s ?p ?o }")
                except QueryError:
                    self._unsure_until = time.monotonic() + UNSURE_S
            return bool(self._known.get("in_graphs"))

    def within(self, pattern: str) -> str:
        """Return a pattern, inside a GRAPH clause where this endpoint needs one."""
        return f"GRAPH ?g {{ {pattern} }}" if self.in_graphs else pattern

    def once(self, key: str, find: Callable[[], T]) -> T:
        """Return what `find` returns, computed once; what fails, except for time, always does."""
        with self._lock:
            if key in self.given_up:
                raise self.given_up[key]
            if key not in self._known:
                try:
                    self._known[key] = find()
                except CallTimeoutError:
                    raise
                except QueryError as error:
                    self.given_up[key] = error
                    raise
            return cast(T, self._known[key])

    def _holds(self, pattern: str) -> bool:
        result = self._client.query(f"ASK {{ {pattern} }}")
        return isinstance(result, BooleanResult) and result.value


def side_client(config: EndpointConfig, timeout_s: float) -> SPARQLClient:
    """Return a client for hints and statistics: each request ends in time, none is retried."""
    return SPARQLClient(replace(config, retries=0, timeout_s=timeout_s, deadline_s=timeout_s))


@dataclass(frozen=True)
class Way(Generic[T]):
    name: str
    ask: Callable[[], T | None]
    key: str = ""


@dataclass(frozen=True)
class FirstAnswer(Generic[T]):
    """An answer, the way that gave it, and what failed before."""

    value: T
    via: str
    notes: tuple[str, ...] = ()


def first_answer(
    ways: Sequence[Way[T]], given_up: MutableMapping[str, QueryError]
) -> FirstAnswer[T] | None:
    """Return the first answer; None if every way found nothing and none failed."""
    notes: list[str] = []
    failure: QueryError | EndpointError | None = None
    for way in ways:
        if way.key in given_up:
            failure = given_up[way.key]
            continue
        try:
            value = way.ask()
        except (QueryError, EndpointError) as error:
            failure = error
            notes.append(f"{way.name}: {brief(error)}")
            timed_out = isinstance(error, CallTimeoutError)
            if way.key and isinstance(error, QueryError) and not timed_out:
                given_up[way.key] = error
            continue
        if value is not None:
            return FirstAnswer(value, way.name, tuple(notes))
    if failure is not None:
        raise failure
    return None


def brief(error: ReasoningBankError) -> str:
    """Return what happened, cut."""
    return cut(error.what, _MOST_CHARS)


# -- classes and properties --------------------------------------------------------------------

_VOID = "".join(f"PREFIX {name}: <{STANDARD_PREFIXES[name]}>\n" for name in ("void", "sd"))
#: Triples looked at where a whole look times out.
FEW = 1_000
#: Instances looked at for the properties of one class, and triples of theirs.
INSTANCES = 200
TRIPLES = 20_000
#: Names taken from one look; Virtuoso sorts at most 10,000 rows.
MOST_NAMES = 1_000
#: How further classes are reached from those of a sample: steps, and in each the classes, their
#: instances, and the links of those on either side that are followed.
STEPS = 3
STEP_CLASSES = 8
STEP_INSTANCES = 50
STEP_LINKS = 1_000
#: Declared names of one kind that are checked for use.
MOST_DECLARED = 200

_RDF, _RDFS, _OWL = (STANDARD_PREFIXES[prefix] for prefix in ("rdf", "rdfs", "owl"))
CLASS_TYPES = (_OWL + "Class", _RDFS + "Class")
PROPERTY_TYPES = (_OWL + "ObjectProperty", _OWL + "DatatypeProperty", _RDF + "Property")


@dataclass(frozen=True)
class Counted:
    """Names with how often they occur."""

    items: tuple[tuple[str, int | None], ...]
    via: str
    notes: tuple[str, ...] = ()
    whole: bool = False
    sampled: bool = False


def classes(profile: EndpointProfile, limit: int) -> Counted:
    statistics = "?part void:class ?name ; void:entities ?n"
    return _names(profile, "classes", (statistics, "SUM"), "?s a ?name", limit)


def properties(profile: EndpointProfile, limit: int) -> Counted:
    # Statistics of the whole, or else the sum of those of its named graphs.
    used = "?part void:property ?name ; void:triples ?triples"
    of_graphs = f"?of void:propertyPartition ?part . {used} FILTER EXISTS {{ ?named sd:graph ?of }}"
    statistics = " UNION ".join(
        f"{{ SELECT ?name ({aggregate}(?triples) AS ?n) WHERE {{ {where} }} GROUP BY ?name }}"
        for aggregate, where in (("MAX", used), ("SUM", of_graphs))
    )
    return _names(profile, "properties", (statistics, "MAX"), "?s ?name ?o", limit)


def properties_of(profile: EndpointProfile, class_iri: str, limit: int) -> Counted:
    """Return the most frequent properties of one class; raises as `classes` does."""
    ask = profile.ask()
    statistics = (
        f"?of void:class {iri(class_iri)} ; void:propertyPartition ?part . "
        "?part void:property ?name ; void:triples ?n"
    )
    sampled = f"sample of {INSTANCES} instances"

    def sample() -> Counted | None:
        instances = profile.within(f"?s a {iri(class_iri)}")
        triples = (
            f"{{ SELECT ?s WHERE {{ {instances} }} LIMIT {INSTANCES} }} "
            f"{profile.within('?s ?name ?o')}"
        )
        seen = _look(ask, triples, TRIPLES)[:limit]
        return Counted(seen, sampled) if seen else None

    def declared() -> Counted | None:
        names = () if profile.declared is None else profile.declared.properties_of(class_iri)
        return Counted(_in_order(names, ())[:limit], "schema") if names else None

    ways = [
        Way("void", lambda: _published(ask, statistics, "SUM", limit), "void: properties_of"),
        Way(sampled, sample),
        Way("schema", declared),
    ]
    return _first(ways, profile, sampled)


def _names(
    profile: EndpointProfile, what: str, statistics: tuple[str, str], pattern: str, limit: int
) -> Counted:
    ask = profile.ask()
    of_classes = what == "classes"
    schema = profile.declared
    known = () if schema is None else tuple(schema.classes if of_classes else schema.properties)

    def look(most: int) -> Counted | None:
        seen = _look(ask, profile.within(pattern), most)
        total = sum(count for _, count in seen)
        # As many names as were asked for may not be all there are.
        if total < most and len(seen) < MOST_NAMES:
            return Counted(seen[:limit], f"all {total:,} triples", whole=True)
        if known:
            return Counted(_in_order(known, seen)[:limit], "schema")
        found: dict[str, int | None] = dict(seen)
        via = f"sample of {most:,} triples"
        if len(found) < limit:
            # A sample follows the order of an index, which may have one class for a long way.
            near = _reached(ask, profile, found) if of_classes else []
            types = CLASS_TYPES if of_classes else PROPERTY_TYPES
            stated = [*near, *_stated(ask, profile, types, pattern)]
            via += ", neighbours and declarations" if set(stated) - set(found) else ""
            found |= {name: None for name in stated if name not in found}
        items = tuple(found.items())[:limit]
        return Counted(items, via, ("counts are those in the sample",), sampled=True)

    def declared() -> Counted | None:
        return Counted(_in_order(known, ())[:limit], "schema") if known else None

    ways = [
        Way("void", lambda: _published(ask, *statistics, limit), f"void: {what}"),
        Way(f"look at {profile.look:,} triples", lambda: look(profile.look), f"look: {what}"),
        Way("schema", declared),
        Way(f"look at {FEW:,} triples", lambda: look(FEW), f"few: {what}"),
    ]
    return _first(ways, profile, "no query was possible")


def _first(ways: Sequence[Way[Counted]], profile: EndpointProfile, nothing: str) -> Counted:
    found = first_answer(ways, profile.given_up)
    if found is None:
        return Counted((), nothing)
    return replace(found.value, notes=(*found.notes, *found.value.notes))


def _published(ask: Ask, pattern: str, aggregate: str, limit: int) -> Counted | None:
    """Ask for statistics where the default graph has them, else in the named graphs."""
    for where in (pattern, f"GRAPH ?statistics {{ {pattern} }}"):
        if counted := _counts(ask, where, f"{aggregate}(?n)", limit, _VOID):
            return Counted(counted, "void")
    return None


def _look(ask: Ask, pattern: str, most: int) -> tuple[tuple[str, int], ...]:
    """Count the names among the first `most` solutions of a pattern that binds ?name."""
    some = f"{{ SELECT ?name WHERE {{ {pattern} }} LIMIT {most} }}"
    return _counts(ask, some, "COUNT(*)", MOST_NAMES)


def _stated(ask: Ask, profile: EndpointProfile, types: Sequence[str], use: str) -> list[str]:
    """Return names that the store itself declares and uses, in no order."""
    branches = " UNION ".join(
        f"{{ SELECT ?name WHERE {{ {profile.within(f'?name a {iri(kind)}')} }} "
        f"LIMIT {MOST_DECLARED} }}"
        for kind in types
    )
    try:
        names = _found(ask, branches)
        used = f"FILTER EXISTS {{ {profile.within(use)} }}"
        return _found(ask, f"{values('name', map(NamedNode, names))} {used}") if names else []
    except QueryError:
        return []


def _reached(ask: Ask, profile: EndpointProfile, seen: Iterable[str]) -> list[str]:
    """Return the classes of what instances of the seen classes are linked with, and so on."""
    known = dict.fromkeys(seen)
    todo = list(known)[:STEP_CLASSES]
    try:
        for _ in range(STEPS):
            branches = " UNION ".join(
                f"{{ SELECT DISTINCT ?name WHERE {{ {{ SELECT ?x WHERE {{ {{ SELECT ?s WHERE {{ "
                f"{profile.within(f'?s a {iri(name)}')} }} LIMIT {STEP_INSTANCES} }} "
                f"{profile.within(link)} }} LIMIT {STEP_LINKS} }} "
                f"{profile.within('?x a ?name')} }} }}"
                for name in todo
                for link in ("?s ?p ?x", "?x ?p ?s")
            )
            names = _found(ask, branches) if todo else []
            todo = [name for name in names if name not in known][:STEP_CLASSES]
            known |= dict.fromkeys(names)
    except QueryError:
        pass  # what was reached so far will do
    return list(known)


def _found(ask: Ask, pattern: str) -> list[str]:
    """Return the IRIs that a pattern binds to ?name, each once."""
    rows = ask(f"SELECT ?name WHERE {{ {pattern} }}").rows()
    return list(dict.fromkeys(row[0].value for row in rows if isinstance(row[0], NamedNode)))


def _in_order(
    known: Sequence[str], seen: Iterable[tuple[str, int]]
) -> tuple[tuple[str, int | None], ...]:
    """Return the known names without counts, those that were seen first."""
    first = (name for name, _ in seen if name in known)
    return tuple((name, None) for name in dict.fromkeys((*first, *known)))


def _counts(
    ask: Ask, pattern: str, count: str, limit: int, head: str = ""
) -> tuple[tuple[str, int], ...]:
    """Return the names that a pattern binds to ?name, the highest count first."""
    found = ask(
        f"{head}SELECT ?name ({count} AS ?count) WHERE {{\n  {pattern}\n"
        f"}} GROUP BY ?name ORDER BY DESC(?count) ?name LIMIT {limit}"
    )
    return tuple(
        (name.value, int(n.value))
        for name, n in found.rows()
        if isinstance(name, NamedNode) and isinstance(n, Literal)
    )
