"""Class and property counts without a full scan: statistics, the schema, or a bounded look.

Each result says where it comes from (`via`). A bounded look counts what it sees: everything in a
small store, the first so many triples of a large one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pyoxigraph import Literal, NamedNode

from reasoningbank.errors import QueryError
from reasoningbank.schema.profile import Ask, EndpointProfile, Way, first_answer
from reasoningbank.sparql import STANDARD_PREFIXES, TableResult, iri, values

_VOID = "PREFIX void: <http://rdfs.org/ns/void#>\n"
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
_CLASS_TYPES = (_OWL + "Class", _RDFS + "Class")
_PROPERTY_TYPES = (_OWL + "ObjectProperty", _OWL + "DatatypeProperty", _RDF + "Property")


@dataclass(frozen=True)
class Counted:
    """Names with how often they occur."""

    items: tuple[tuple[str, int | None], ...]
    via: str
    notes: tuple[str, ...] = ()
    whole: bool = False


def classes(profile: EndpointProfile, limit: int) -> Counted:
    """Return the most frequent classes."""
    statistics = "?part void:class ?name ; void:entities ?n"
    return _names(profile, "classes", (statistics, "SUM"), "?s a ?name", limit)


def properties(profile: EndpointProfile, limit: int) -> Counted:
    """Return the most frequent properties; raises as `classes` does."""
    statistics = "?part void:property ?name ; void:triples ?n"
    return _names(profile, "properties", (statistics, "MAX"), "?s ?name ?o", limit)


def properties_of(profile: EndpointProfile, class_iri: str, limit: int) -> Counted:
    """Return the most frequent properties of one class; raises as `classes` does."""
    ask = profile.ask()
    statistics = (
        f"?of void:class {iri(class_iri)} ; void:propertyPartition ?part . "
        "?part void:property ?name ; void:triples ?n"
    )
    sampled = f"sample of {INSTANCES} instances"

    def published() -> Counted | None:
        return _published(ask, statistics, "SUM", limit)

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
        return Counted(tuple((name, None) for name in names[:limit]), "schema") if names else None

    ways = [
        Way("void", published, "void: properties_of"),
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

    def published() -> Counted | None:
        return _published(ask, *statistics, limit)

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
            types = _CLASS_TYPES if of_classes else _PROPERTY_TYPES
            stated = [*near, *_stated(ask, profile, types, pattern)]
            via += ", neighbours and declarations" if set(stated) - set(found) else ""
            found = {**dict.fromkeys(stated), **found}
            found = {**{name: found[name] for name, _ in seen}, **found}
        items = tuple(found.items())[:limit]
        return Counted(items, via, ("counts are those in the sample",))

    def declared() -> Counted | None:
        return Counted(_in_order(known, ())[:limit], "schema") if known else None

    ways = [
        Way("void", published, f"void: {what}"),
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
        counted = _counts(
            ask(
                f"{_VOID}SELECT ?name ({aggregate}(?n) AS ?count) WHERE {{\n  {where}\n"
                f"}} GROUP BY ?name ORDER BY DESC(?count) ?name LIMIT {limit}"
            )
        )
        if counted:
            return Counted(counted, "void")
    return None


def _look(ask: Ask, pattern: str, most: int) -> tuple[tuple[str, int], ...]:
    """Count the names among the first `most` solutions of a pattern that binds ?name."""
    return _counts(
        ask(
            "SELECT ?name (COUNT(*) AS ?count) WHERE {\n"
            f"  {{ SELECT ?name WHERE {{ {pattern} }} LIMIT {most} }}\n"
            f"}} GROUP BY ?name ORDER BY DESC(?count) ?name LIMIT {MOST_NAMES}"
        )
    )


def _stated(ask: Ask, profile: EndpointProfile, types: Sequence[str], use: str) -> list[str]:
    """Return names that the store itself declares and uses, in no order."""
    branches = " UNION ".join(
        f"{{ SELECT ?name WHERE {{ {profile.within(f'?name a {iri(kind)}')} }} "
        f"LIMIT {MOST_DECLARED} }}"
        for kind in types
    )
    try:
        rows = ask(f"SELECT ?name WHERE {{ {branches} }}").rows()
        names = dict.fromkeys(row[0] for row in rows if isinstance(row[0], NamedNode))
        if not names:
            return []
        used = f"FILTER EXISTS {{ {profile.within(use)} }}"
        rows = ask(f"SELECT ?name WHERE {{ {values('name', names)} {used} }}").rows()
    except QueryError:
        return []
    return [row[0].value for row in rows if isinstance(row[0], NamedNode)]


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
            rows = ask(f"SELECT ?name WHERE {{ {branches} }}").rows() if todo else []
            names = dict.fromkeys(row[0].value for row in rows if isinstance(row[0], NamedNode))
            todo = [name for name in names if name not in known][:STEP_CLASSES]
            known |= names
    except QueryError:
        return list(known)
    return list(known)


def _in_order(
    known: Sequence[str], seen: Iterable[tuple[str, int]]
) -> tuple[tuple[str, int | None], ...]:
    """Return the known names without counts, those that were seen first."""
    first = [name for name, _ in seen if name in set(known)]
    return tuple((name, None) for name in dict.fromkeys((*first, *known)))


def _counts(result: TableResult) -> tuple[tuple[str, int], ...]:
    return tuple(
        (name.value, int(count.value))
        for name, count in result.rows()
        if isinstance(name, NamedNode) and isinstance(count, Literal)
    )
