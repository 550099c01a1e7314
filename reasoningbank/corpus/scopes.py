"""The scopes of a query: which endpoints and graphs it reaches, and with which prefixes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import cycle, pairwise
from urllib.parse import urlsplit

from reasoningbank.errors import QueryError
from reasoningbank.sparql import address_key
from reasoningbank.sparql.tokens import Token, closing
from reasoningbank.sparql.tree import outline

_UNREAD = "close its brackets, and name addresses and graphs as IRIs"


@dataclass(frozen=True)
class QueryScope:
    """What a query names in the part that one endpoint answers."""

    endpoint: str
    graphs: tuple[str, ...] = ()
    prefixes: tuple[tuple[str, str], ...] = ()


@lru_cache(maxsize=8192)
def query_scopes(query: str) -> tuple[QueryScope, ...]:
    """Return the scopes of a query, that of the queried endpoint first."""
    shape = outline(query)
    braces = [token.text for token in shape.body if token.text in ("{", "}")]
    if braces.count("{") != braces.count("}"):
        raise QueryError("a '{' is not closed, or a '}' closes nothing", hint=_UNREAD)
    walk = _Walk(shape.body, shape.declared)
    walk.read(shape.body, ("",))
    return tuple(
        QueryScope(name, tuple(walk.graphs[name]), tuple(walk.prefixes[name].items()))
        for name in walk.seen
    )


class _Walk:
    """Goes through the tokens, and from each SERVICE through those in its braces."""

    def __init__(self, tokens: Sequence[Token], declared: Mapping[str, str]) -> None:
        self._declared = declared
        self._constants = _constants(tokens, declared)
        self.graphs: dict[str, dict[str, None]] = defaultdict(dict)
        self.prefixes: dict[str, dict[str, str]] = defaultdict(dict)
        self.seen: dict[str, None] = {"": None}

    def read(self, tokens: Sequence[Token], here: tuple[str, ...]) -> None:
        """Note what tokens name that the endpoints `here` answer."""
        at = 0
        while at < len(tokens):
            token = tokens[at]
            at += 1
            if token.kind == "name":
                self._used(token, here)
            elif token.is_word("GRAPH", "FROM", "SERVICE"):
                at += at < len(tokens) and tokens[at].is_word("NAMED", "SILENT")
                named = self._iris(tokens[at : at + 1])
                if not token.is_word("SERVICE"):
                    for endpoint in here:
                        self.graphs[endpoint].update(dict.fromkeys(named))
                    continue
                if at + 1 >= len(tokens) or tokens[at + 1].text != "{":
                    what = "SERVICE is not followed by an address and a '{'"
                    raise QueryError(what, hint=_UNREAD)
                named = tuple(iri for iri in named if _is_endpoint(iri))
                self.seen.update(dict.fromkeys(named))
                # The content of a SERVICE with an unknown variable belongs to no scope.
                there = named if named or tokens[at].kind == "variable" else here
                end = closing(tokens, at + 1)
                self.read(tokens[at + 2 : end - 1], there)
                at = end

    def _used(self, token: Token, here: tuple[str, ...]) -> None:
        prefix = token.text.partition(":")[0]
        if prefix in self._declared:
            for endpoint in here:
                self.prefixes[endpoint].setdefault(prefix, self._declared[prefix])

    def _iris(self, tokens: Sequence[Token]) -> tuple[str, ...]:
        for token in tokens:
            if token.kind == "variable":
                return tuple(self._constants.get(token.text[1:], ()))
            if (found := _iri(token, self._declared)) is not None:
                return (found,)
        raise QueryError("SERVICE, GRAPH or FROM is not followed by an IRI", hint=_UNREAD)


def _is_endpoint(iri: str) -> bool:
    return address_key(iri) is not None and not urlsplit(iri).fragment


def _iri(token: Token, declared: Mapping[str, str]) -> str | None:
    if token.kind == "iri":
        return token.text[1:-1]
    prefix, _, local = token.text.partition(":")
    if token.kind == "name" and prefix in declared:
        return declared[prefix] + local.replace("\\", "")
    return None


def _constants(tokens: Sequence[Token], declared: Mapping[str, str]) -> dict[str, dict[str, None]]:
    """Return the IRIs that VALUES and BIND give each variable, in written order."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for at, token in enumerate(tokens):
        if token.is_word("BIND"):
            bound = tokens[at + 2 : at + 5]
            iri = _iri(bound[0], declared) if len(bound) == 3 else None
            if iri is not None and bound[1].is_word("AS"):
                found[bound[2].text[1:]].setdefault(iri)
        elif token.is_word("VALUES"):
            begin = next((i for i in range(at, len(tokens)) if tokens[i].text == "{"), len(tokens))
            names = [t.text[1:] for t in tokens[at:begin] if t.kind == "variable"]
            if names and begin < len(tokens):
                data = tokens[begin : closing(tokens, begin)]
                for column, value in zip(cycle(names), _data(data), strict=False):
                    if (iri := _iri(value, declared)) is not None:
                        found[column].setdefault(iri)
    return found


def _data(tokens: Sequence[Token]) -> list[Token]:
    """Return the terms of the data of VALUES, without datatypes and language tags."""
    kinds = ("iri", "name", "string", "number")
    return [
        token
        for before, token in pairwise(tokens)
        if before.text != "^^" and (token.kind in kinds or token.is_word("UNDEF", "TRUE", "FALSE"))
    ]
