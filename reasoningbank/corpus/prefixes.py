"""Prefix declarations: what a query declares, what it uses, and what must be put before it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from reasoningbank.sparql.tokens import Token, tokenize

__all__ = [
    "Completed",
    "complete_prefixes",
    "corpus_prefixes",
    "declared_prefixes",
    "used_prefixes",
]


def declared_prefixes(tokens: Sequence[Token]) -> dict[str, str]:
    """Return the prefixes that a query's prologue declares, by name.

    Examples:
        >>> declared_prefixes(tokenize("PREFIX up: <http://u/> ASK {}"))
        {'up': 'http://u/'}
    """
    return {
        name.text[:-1]: iri.text[1:-1]
        for word, name, iri in zip(tokens, tokens[1:], tokens[2:], strict=False)
        if word.is_word("PREFIX") and name.kind == "name" and iri.kind == "iri"
    }


def used_prefixes(tokens: Sequence[Token]) -> list[str]:
    """Return the prefixes that a query uses, in order of first use.

    Examples:
        >>> used_prefixes(tokenize("PREFIX a: <http://a/> ASK { ?s a:p up:Protein }"))
        ['a', 'up']
    """
    names = (
        token.text.partition(":")[0]
        for before, token in zip([None, *tokens], tokens, strict=False)
        if token.kind == "name" and not (before and before.is_word("PREFIX"))
    )
    return list(dict.fromkeys(names))


def corpus_prefixes(queries: Iterable[str]) -> dict[str, str]:
    """Return the prefixes that queries declare, by name; of two namespaces the commoner one.

    Examples:
        >>> corpus_prefixes(["PREFIX a: <http://a/> ASK {}", "ASK {}"])
        {'a': 'http://a/'}
    """
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for query in queries:
        for name, namespace in declared_prefixes(tokenize(query)).items():
            found[name][namespace] += 1
    return {name: counted.most_common(1)[0][0] for name, counted in sorted(found.items())}


class Completed(NamedTuple):
    """A query with its prefixes declared."""

    text: str
    added: tuple[str, ...]
    unknown: tuple[str, ...]


def complete_prefixes(query: str, known: Mapping[str, str]) -> Completed:
    """Declare the known prefixes that a query uses and does not declare.

    Args:
        query: SPARQL text.
        known: Namespace by prefix.

    Returns:
        The query with the declarations before it, the prefixes added, and those that are
        neither declared nor known.

    Examples:
        >>> complete_prefixes("ASK { ?p a up:Protein ; x:y 1 }", {"up": "http://u/"})
        ... # doctest: +NORMALIZE_WHITESPACE
        Completed(text='PREFIX up: <http://u/>\\nASK { ?p a up:Protein ; x:y 1 }',
                  added=('up',), unknown=('x',))
    """
    tokens = tokenize(query)
    declared = declared_prefixes(tokens)
    missing = [p for p in used_prefixes(tokens) if p not in declared]
    added = tuple(p for p in missing if p in known)
    head = "".join(f"PREFIX {p}: <{known[p]}>\n" for p in added)
    return Completed(head + query, added, tuple(p for p in missing if p not in known))
