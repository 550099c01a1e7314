"""The names of a query that do not exist, and what to write instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyoxigraph import NamedNode

from reasoningbank.sparql import STANDARD_PREFIXES, PreparedQuery, compact, iri
from reasoningbank.sparql.probing import Prober
from reasoningbank.sparql.tree import QueryTree, outline
from reasoningbank.tools.contents import NamedTerm
from reasoningbank.tools.diagnosis.lookups import Lookups
from reasoningbank.tools.diagnosis.names import (
    local_name,
    namespace_of,
    nearest_names,
    spelling,
    words,
)
from reasoningbank.tools.diagnosis.used_names import (
    TYPE,
    UsedName,
    absolute,
    used_names,
    wrong_prefixes,
)
from reasoningbank.tools.vocabulary import Vocabulary

__all__ = ["NameFindings", "find_unknown", "shown"]

#: Descriptions lie beside the data, and statistics do not count themselves.
_APART = (STANDARD_PREFIXES["void"], STANDARD_PREFIXES["sd"])
#: Properties of a class that are told where no name is near.
_LISTED = 6


@dataclass(frozen=True)
class NameFindings:
    """What is wrong with a query's names.

    Attributes:
        lines: What to tell.
        told: What is told of each unknown name, by IRI; a line may hold several.
        unknown: The IRIs in the query that match nothing.
        classes: Variable or resource as written → the classes that the query says it has.
    """

    lines: tuple[str, ...]
    unknown: frozenset[str]
    classes: Mapping[str, tuple[str, ...]]
    told: Mapping[str, str] = field(default_factory=dict)


def shown(name: str, namespaces: Mapping[str, str]) -> str:
    """Return an IRI as an agent reads it."""
    return str(compact(NamedNode(name), namespaces))


def find_unknown(
    prepared: PreparedQuery,
    query: QueryTree,
    names: Vocabulary,
    prober: Prober,
    namespaces: Mapping[str, str],
    *,
    look_up: bool = False,
) -> NameFindings:
    """Find the classes and properties of a query that do not exist.

    Args:
        prepared: The query as it was written.
        query: The query as it was sent, taken apart.
        names: The vocabulary; what an incomplete one lacks is checked with one request.
        prober: What checks it.
        namespaces: Prefix → namespace of the endpoint.
        look_up: Whether to look an unknown class up as a resource, with one more request.
    """
    wrong = wrong_prefixes(prepared, namespaces)
    lines = [
        f"PREFIX {p.prefix}: <{p.declared}> is wrong here, {p.prefix}: is <{p.known}>; "
        "leave that line out"
        for p in wrong
    ]
    bases = {p.declared: p.known for p in wrong}
    used = [u for u in used_names(query) if u.role != "resource"]
    classes = _classes(used, names, bases)
    doubtful = [u for u in used if not _known(u, names) and not u.iri.startswith(_APART)]
    unknown = _checked(doubtful, names, prober)
    unknown = [u for u in unknown if u.iri != TYPE]
    look = Lookups.of(prober, names, namespaces)
    resources = _resources(unknown, names, look) if look_up else {}
    if look_up:
        classes |= _classes_of_resources(unknown, query, look)
    told: dict[str, str] = {}
    for name in unknown:
        meant = _rebased(name.iri, bases)
        if meant != name.iri and names.term(meant) is not None:
            continue
        told[name.iri] = _told(name, meant, names, namespaces, classes, resources)
    lines += _packed(list(told.values()))
    return NameFindings(tuple(lines), frozenset(u.iri for u in unknown), classes, told)


def _classes(
    used: Sequence[UsedName], names: Vocabulary, bases: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name in used:
        if name.role == "class":
            near = _rebased(name.iri, bases)
            if near in names.classes:
                subject = name.pattern.subject
                found[subject] = (*found.get(subject, ()), near)
    return found


def _classes_of_resources(
    unknown: Sequence[UsedName], query: QueryTree, look: Lookups
) -> dict[str, tuple[str, ...]]:
    """Look up the classes of the resources that an unknown property is asked of."""
    declared = outline(query.text).declared
    asked = {
        name: u.pattern.subject
        for u in unknown
        if u.role == "property" and (name := absolute(u.pattern.subject, declared))
    }
    if not asked:
        return {}
    values = " ".join(iri(name) for name in asked)
    rows = look.prober.rows(["x", "class"], f"VALUES ?x {{ {values} }} ?x a ?class", 5) or []
    return {
        asked[x.value]: (kind.value,)
        for x, kind in rows
        if isinstance(x, NamedNode) and isinstance(kind, NamedNode)
    }


def _known(name: UsedName, names: Vocabulary) -> bool:
    terms = names.classes if name.role == "class" else names.properties
    term = terms.get(name.iri)
    return term is not None and (term.in_data or not names.complete)


def _checked(doubtful: Sequence[UsedName], names: Vocabulary, prober: Prober) -> list[UsedName]:
    """Return the names that are not in the data either."""
    if names.complete or not doubtful:
        return list(doubtful)
    bodies = [
        f"?s a {iri(u.iri)}" if u.role == "class" else f"?s {iri(u.iri)} ?o" for u in doubtful
    ]
    found = prober.which(bodies)
    if found is None:
        return []
    return [name for name, there in zip(doubtful, found, strict=True) if not there]


def _resources(unknown: Sequence[UsedName], names: Vocabulary, look: Lookups) -> dict[str, str]:
    """Return what unknown classes are that look like resources: instances, or texts of some."""
    homes = {namespace_of(known) for known in names.classes}
    asked = [u for u in unknown if u.role == "class" and namespace_of(u.iri) not in homes]
    if not asked:
        return {}
    values = " ".join(iri(name.iri) for name in asked)
    rows = look.prober.rows(["x", "class"], f"VALUES ?x {{ {values} }} ?x a ?class", 5) or []
    kinds = {x.value: kind for x, kind in rows if isinstance(x, NamedNode)}
    found: dict[str, str] = {}
    for name in asked:
        if name.iri in kinds:
            found[name.iri] = (
                f"{name.written} is no class but a {look.show(kinds[name.iri])}: "
                f"write it in place of {name.pattern.subject}"
            )
        else:
            told = look.namesake(name.iri)
            if told:
                found[name.iri] = f"there is no class {name.written}; {told}"
    return found


def _rebased(name: str, bases: Mapping[str, str]) -> str:
    for declared, known in bases.items():
        if name.startswith(declared):
            return known + name[len(declared) :]
    return name


def _told(
    name: UsedName,
    meant: str,
    names: Vocabulary,
    namespaces: Mapping[str, str],
    classes: Mapping[str, tuple[str, ...]],
    resources: Mapping[str, str],
) -> str:
    subject = name.pattern.subject
    if name.iri in resources:
        return resources[name.iri]
    of_role = names.classes if name.role == "class" else names.properties
    namesake = next((known for known in of_role if spelling(name.iri, known)), "")
    if namesake and names.term(name.iri) is not None and name.iri not in of_role:
        written = shown(namesake, namespaces)
        return f"{name.written} is no {name.role}: write {written}"
    if name.role == "class" and name.iri in names.properties:
        return f"{name.written} is a property, no class: write {subject} {name.written} ?value"
    if name.role == "property" and name.iri in names.classes:
        leading = names.leading_to(name.iri)
        other = f", or a property such as {shown(leading, namespaces)}" if leading else ""
        return f"{name.written} is a class, no property: write {subject} a {name.written}{other}"
    kinds = classes.get(subject, ())
    declared = names.term(name.iri)
    if declared is not None:
        return _without_data(name, declared, names, namespaces)
    head = f"there is no {name.role} {name.written}"
    if name.role == "property" and "count" in words(local_name(name.iri)):
        return f"{head}: count with (COUNT(?x) AS ?n) and GROUP BY"
    near: dict[str, str] = {}
    for term in nearest_names(meant, names, role=name.role, classes=kinds):
        usable = _usable(term, name, kinds, names)
        if usable is not None:
            text = _reached(usable, kinds, names, namespaces)
            note = "" if usable is term else f" (to a {shown(term.iri, namespaces)})"
            if name.role == "class" and term.iri not in names.classes:
                note = " (a property)"
            near.setdefault(text, note)
    if near:
        return f"{head}: try {', or '.join(text + note for text, note in near.items())}"
    if name.role == "property" and kinds:
        has = [p for p in names.properties_of(kinds[0]) if p != TYPE][:_LISTED]
        if has:
            listed = ", ".join(shown(p, namespaces) for p in has)
            return f"{head}: a {shown(kinds[0], namespaces)} has {listed}, …"
    tool = "sparql_classes()" if name.role == "class" else "sparql_properties()"
    return f"{head}: {tool} lists those there are"


def _usable(
    term: NamedTerm, name: UsedName, kinds: Sequence[str], names: Vocabulary
) -> NamedTerm | None:
    """Return a near name, or for a class where a property stands the property that leads there."""
    if name.role == "class" or term.iri in names.properties:
        return term
    return names.properties.get(names.leading_to(term.iri, kinds))


def _reached(
    term: NamedTerm, kinds: Sequence[str], names: Vocabulary, namespaces: Mapping[str, str]
) -> str:
    """Return a near name, with the step that leads there from what its subject is."""
    text = shown(term.iri, namespaces)
    if term.iri not in names.properties:
        return text
    for kind in kinds:
        has = names.properties_of(kind)
        if has and term.iri not in has:
            step = names.link(kind, term.iri)
            if step:
                return f"{shown(step, namespaces)}/{text}"
            holders = ", ".join(shown(c, namespaces) for c in term.domain[:2])
            return f"{text} (of {holders})" if holders else text
    return text


def _without_data(
    name: UsedName, declared: NamedTerm, names: Vocabulary, namespaces: Mapping[str, str]
) -> str:
    below = names.below(declared.iri)
    if name.role == "class" and below:
        listed = ", ".join(shown(lower, namespaces) for lower in below[:4])
        return f"nothing is a {name.written} itself, only of its subclasses: {listed}"
    return f"{name.written} is in the schema, but nothing in the data has it"


def _packed(told: Sequence[str], most_chars: int = 200, most_lines: int = 2) -> list[str]:
    """Put short findings on one line."""
    lines: list[str] = []
    for text in told:
        if lines and len(lines[-1]) + len(text) + 2 <= most_chars:
            lines[-1] += f"; {text}"
        elif len(lines) < most_lines:
            lines.append(text)
    return lines
