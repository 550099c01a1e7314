"""The scopes of a query: which endpoints and graphs it reaches, and with which prefixes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from urllib.parse import urlsplit

from reasoningbank.errors import QueryError
from reasoningbank.sparql import address_key
from reasoningbank.sparql.tokens import Token
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
    return _Walk(shape.body, shape.declared).scopes()


class _Walk:
    """Goes through the tokens and tracks the endpoints of every open brace."""

    def __init__(self, tokens: Sequence[Token], declared: Mapping[str, str]) -> None:
        self._tokens = tokens
        self._declared = declared
        self._constants = _constants(tokens, declared)
        self._graphs: dict[str, dict[str, None]] = defaultdict(dict)
        self._prefixes: dict[str, dict[str, str]] = defaultdict(dict)
        self._seen: dict[str, None] = {"": None}

    def scopes(self) -> tuple[QueryScope, ...]:
        open_braces: list[tuple[str, ...]] = []
        here: tuple[str, ...] = ("",)
        entering: tuple[str, ...] | None = None
        at = 0
        while at < len(self._tokens):
            token = self._tokens[at]
            if token.is_word("SERVICE"):
                at, entering = self._service(at, here)
                continue
            if token.is_word("GRAPH", "FROM"):
                at = self._graph(at, here)
                continue
            if token.text == "{":
                open_braces.append(here)
                here, entering = here if entering is None else entering, None
            elif token.text == "}":
                if not open_braces:
                    raise QueryError("a '}' closes nothing", hint=_UNREAD)
                here = open_braces.pop()
            elif token.kind == "name":
                self._used(token, here)
            at += 1
        if open_braces:
            raise QueryError("a '{' is not closed", hint=_UNREAD)
        return tuple(
            QueryScope(name, tuple(self._graphs[name]), tuple(self._prefixes[name].items()))
            for name in self._seen
        )

    def _service(self, at: int, here: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
        at += 1
        if at < len(self._tokens) and self._tokens[at].is_word("SILENT"):
            at += 1
        named = [iri for iri in self._iris(at) if _is_endpoint(iri)]
        if at + 1 >= len(self._tokens) or self._tokens[at + 1].text != "{":
            raise QueryError("SERVICE is not followed by an address and a '{'", hint=_UNREAD)
        self._seen.update(dict.fromkeys(named))
        variable = self._tokens[at].kind == "variable"
        # The content of a SERVICE with an unknown variable belongs to no scope.
        return at + 1, tuple(named) if named or variable else here

    def _graph(self, at: int, here: tuple[str, ...]) -> int:
        at += 1
        if at < len(self._tokens) and self._tokens[at].is_word("NAMED"):
            at += 1
        for iri in self._iris(at):
            for endpoint in here:
                self._graphs[endpoint].setdefault(iri)
        if at < len(self._tokens) and self._tokens[at].kind == "name":
            self._used(self._tokens[at], here)
        return at + 1

    def _used(self, token: Token, here: tuple[str, ...]) -> None:
        prefix = token.text.partition(":")[0]
        if prefix in self._declared:
            for endpoint in here:
                self._prefixes[endpoint].setdefault(prefix, self._declared[prefix])

    def _iris(self, at: int) -> tuple[str, ...]:
        token = self._tokens[at] if at < len(self._tokens) else None
        if token is not None and token.kind == "variable":
            return tuple(self._constants.get(token.text[1:], ()))
        found = None if token is None else _iri(token, self._declared)
        if found is None:
            raise QueryError("SERVICE, GRAPH or FROM is not followed by an IRI", hint=_UNREAD)
        return (found,)


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
        if token.is_word("VALUES"):
            _of_values(tokens, at + 1, declared, found)
        elif token.is_word("BIND") and len(tokens) > at + 4:
            value, word, name = tokens[at + 2 : at + 5]
            iri = _iri(value, declared)
            if iri is not None and word.is_word("AS") and name.kind == "variable":
                found[name.text[1:]].setdefault(iri)
    return found


def _of_values(
    tokens: Sequence[Token],
    at: int,
    declared: Mapping[str, str],
    found: dict[str, dict[str, None]],
) -> None:
    names = []
    while at < len(tokens) and tokens[at].text != "{":
        names += [tokens[at].text[1:]] if tokens[at].kind == "variable" else []
        at += 1
    column = 0
    for before, token in pairwise(tokens[at:]):
        if token.text == "}":
            return
        if token.text == "(":
            column = 0
        elif before.text != "^^" and (
            token.kind in ("iri", "name", "string", "number")
            or token.is_word("UNDEF", "TRUE", "FALSE")
        ):
            iri = _iri(token, declared)
            if iri is not None and names and column < len(names):
                found[names[column]].setdefault(iri)
            column = column + 1 if len(names) > 1 else 0
