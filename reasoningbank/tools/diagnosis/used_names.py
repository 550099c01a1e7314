"""The names a query uses, and as what: class, property or resource."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from reasoningbank.errors import QueryError
from reasoningbank.sparql import STANDARD_PREFIXES, PreparedQuery, iri
from reasoningbank.sparql.tokens import Token, tokenize
from reasoningbank.sparql.tree import Clause, Group, QueryTree, TriplePattern, outline
from reasoningbank.tools.diagnosis.names import Role

__all__ = ["TYPE", "UsedName", "WrongPrefix", "absolute", "used_names", "wrong_prefixes"]

TYPE = STANDARD_PREFIXES["rdf"] + "type"
_SUBCLASS = STANDARD_PREFIXES["rdfs"] + "subClassOf"


@dataclass(frozen=True)
class UsedName:
    """An IRI of a query.

    Attributes:
        iri: The IRI.
        written: As the query writes it.
        role: What it is used as.
        pattern: The triple pattern it stands in.
    """

    iri: str
    written: str
    role: Role
    pattern: TriplePattern


@dataclass(frozen=True)
class WrongPrefix:
    """A prefix that a query declares for a namespace other than the endpoint's."""

    prefix: str
    declared: str
    known: str


def absolute(written: str, declared: Mapping[str, str]) -> str | None:
    """Return the IRI that ``<…>``, a prefixed name or ``a`` stands for; None for other terms.

    Examples:
        >>> absolute("e:a\\\\.b", {"e": "http://e/"}), absolute("?x", {})
        ('http://e/a.b', None)
    """
    if written == "a":
        return TYPE
    if written.startswith("<"):
        return _checked(written[1:-1])
    if written[:1] in "?$\"'_+-" or written[:1].isdigit():
        return None
    prefix, colon, local = written.partition(":")
    if not colon or prefix not in declared:
        return None
    return _checked(declared[prefix] + re.sub(r"\\(.)", r"\1", local))


def _checked(name: str) -> str | None:
    try:
        return iri(name)[1:-1]
    except QueryError:
        return None  # relative, or with characters that no IRI holds


def used_names(query: QueryTree) -> tuple[UsedName, ...]:
    """Return the names in a query's patterns, each once a role, in written order.

    What stands in SERVICE is another endpoint's and is left out.
    """
    declared = outline(query.text).declared
    found: dict[tuple[str, Role], UsedName] = {}
    groups = (*((query.where,) if query.where else ()), *query.others)
    for clause in (clause for group in groups for clause in _own(group)):
        for pattern in clause.patterns:
            for token, role in _roles(pattern, declared):
                iri = absolute(token, declared)
                if iri is not None:
                    found.setdefault((iri, role), UsedName(iri, token, role, pattern))
    return tuple(found.values())


def _own(group: Group) -> Iterator[Clause]:
    for clause in group.clauses:
        yield clause
        if clause.kind != "service":
            for inner in clause.groups:
                yield from _own(inner)


def _roles(pattern: TriplePattern, declared: Mapping[str, str]) -> Iterator[tuple[str, Role]]:
    steps = [t for t in tokenize(pattern.predicate) if _is_name(t)]
    for step in steps:
        yield step.text, "property"
    path = [absolute(step.text, declared) for step in steps]
    typed = TYPE in path and set(path) <= {TYPE, _SUBCLASS}
    yield pattern.subject, "resource"
    yield pattern.object, "class" if typed and "^" not in pattern.predicate else "resource"


def _is_name(token: Token) -> bool:
    return token.kind in ("iri", "name") or token.text == "a"


def wrong_prefixes(
    prepared: PreparedQuery, namespaces: Mapping[str, str]
) -> tuple[WrongPrefix, ...]:
    """Return the prefixes that a query uses for a namespace that is not the endpoint's."""
    shape = outline(prepared.original or prepared.text)
    used = {token.text.partition(":")[0] for token in shape.body if token.kind == "name"}
    known = set(namespaces.values())
    return tuple(
        WrongPrefix(prefix, space, namespaces[prefix])
        for prefix, space in shape.declared.items()
        if prefix in used and prefix in namespaces and space not in known
    )
