"""What a query shows of the patterns of a pack, by its names, features and directions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from rdflib.term import Identifier, Literal, URIRef, Variable

from reasoningbank.corpus import query_features
from reasoningbank.nl2sparql.hints import Pattern, PatternSet, QuerySign
from reasoningbank.schema import Statement, read_statements
from reasoningbank.sparql.query import parse_once
from reasoningbank.sparql.terms import absolute
from reasoningbank.sparql.tokens import Token, tokenize
from reasoningbank.sparql.tree import read_query

_LISTS = (
    "properties", "along", "namespaces", "classes", "names", "graphs", "services", "features",
    "filtered", "texts",
)  # fmt: skip
#: Functions that look into a text.
_TEXT_FUNCTIONS = ("REGEX", "STRSTARTS", "STRENDS", "CONTAINS", "STRLEN", "SUBSTR")


class Seen(NamedTuple):
    """The names in a query by the lists of `QuerySign`, its statements, and filtered variables."""

    names: Mapping[str, frozenset[str]]
    statements: tuple[Statement, ...]
    texts: Collection[Identifier]


@lru_cache(maxsize=4096)
def seen_in(sparql: str) -> Seen | None:
    """Return what signs are compared with; None if the query does not parse."""
    try:
        parse_once(sparql)
        walked = read_statements(sparql)
    except Exception:  # rdflib raises pyparsing's errors and bare ones
        return None
    own = walked.statements
    ends = [term for s in own for term in (s.subject, s.object) if isinstance(term, URIRef)]
    tokens, declared = tokenize(sparql), read_query(sparql).declared
    names = [absolute(t.text, declared) for t in tokens if t.kind in ("iri", "name")]
    filtered = _filtered(tokens)
    # A variable stands for any name.
    graphs = ["?" if isinstance(s.graph, Variable) else s.graph for s in own if s.graph is not None]
    found: dict[str, Iterable[Any]] = {
        "properties": ("?" if isinstance(s.predicate, Variable) else s.predicate for s in own),
        "along": names,
        "namespaces": ends,
        "classes": (s.object for s in own if s.is_type),
        "names": names,
        "graphs": (*graphs, *walked.dataset),
        "services": (s.service for s in own if s.service is not None),
        "features": query_features(sparql).features,
        "filtered": (s.predicate for s in own if str(s.object).split("~")[0] in filtered),
        "texts": (token.text.strip("\"'").lower() for token in tokens if token.kind == "string"),
    }
    listed = {name: frozenset(map(str, values)) for name, values in found.items()}
    return Seen(listed, own, walked.texts.keys())


def _filtered(tokens: Sequence[Token]) -> set[str]:
    """Return the variables inside of functions of text."""
    found: set[str] = set()
    depth = 0
    for token in tokens:
        if depth or token.is_word(*_TEXT_FUNCTIONS):
            depth += (token.is_word(*_TEXT_FUNCTIONS) and not depth) + (token.text == "(")
            depth -= token.text == ")"
            depth = 0 if depth == 1 and token.text == ")" else depth
        if depth and token.kind == "variable":
            found.add(token.text[1:])
    return found


def is_shown(pattern: Pattern, seen: Seen, *, loosely: bool = False) -> bool:
    """Return whether a query shows one of a pattern's signs.

    Loosely, direction does not matter, and a variable may be any property or graph.
    """
    return any(
        (loosely and sign.properties and "?" in seen.names["properties"])
        or (loosely and sign.graphs and "?" in seen.names["graphs"])
        or (_lists_match(sign, seen) and (loosely or not sign.named or _is_directed(sign, seen)))
        for sign in pattern.signs
    )


def patterns_of_query(sparql: str, patterns: PatternSet) -> tuple[str, ...]:
    """Return the patterns that a query's names and features show; none if it does not parse."""
    seen = seen_in(sparql)
    if seen is None:
        return ()
    given = {one.name for one in patterns.patterns if is_shown(one, seen)}
    for pattern in patterns.patterns:
        if pattern.name in given:
            given.update(pattern.implies)
    return tuple(name for name in patterns.names if name in given)


def _lists_match(sign: QuerySign, seen: Seen) -> bool:
    wanted = {name: names for name in _LISTS if (names := getattr(sign, name))}
    return bool(wanted) and all(
        any(one.startswith(tuple(names)) for one in seen.names[name])
        if name == "namespaces"
        else not names.isdisjoint(seen.names[name])
        for name, names in wanted.items()
    )


def _is_directed(sign: QuerySign, seen: Seen) -> bool:
    """Return whether the sign's end is the named one, or no relation has one named end."""
    found = set()
    links = [s for s in seen.statements if str(s.predicate) not in sign.properties]
    for one in seen.statements:
        if str(one.predicate) in sign.properties:
            subject, object_ = (is_named(e, links, seen.texts) for e in (one.subject, one.object))
            if subject != object_:
                found.add("subject" if subject else "object")
    return not found or sign.named in found


def is_named(term: Identifier, links: Sequence[Statement], texts: Collection[Identifier]) -> bool:
    """Return whether a term is, or is joined to, something that a query names."""
    at_once = isinstance(term, URIRef) or term in texts
    ends = (end for _, end in walk_links(term, links, both=True))
    return at_once or any(end in texts or isinstance(end, Literal) for end in ends)


def walk_links(
    start: Identifier, links: Sequence[Statement], *, both: bool = False
) -> Iterator[tuple[Statement, Identifier]]:
    """Yield each link that variables join to a term, with its far end; backwards too if `both`."""
    reached = [start]
    for here in reached:
        for link in links:
            ends = [(link.subject, link.object), (link.object, link.subject)]
            for near, far in ends if both else ends[:1]:
                if near == here:
                    yield link, far
                    if isinstance(far, Variable) and far not in reached:
                        reached.append(far)
