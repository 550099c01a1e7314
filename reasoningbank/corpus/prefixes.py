"""Prefixes: what queries declare, what they use, and declarations to add."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from reasoningbank.sparql.tokens import tokenize


def declared_prefixes(query: str) -> dict[str, str]:
    """Return the prefixes that a query or update declares: prefix → namespace."""
    tokens = tokenize(query)
    return {
        name.text[:-1]: iri.text[1:-1]
        for word, name, iri in zip(tokens, tokens[1:], tokens[2:], strict=False)
        if word.is_word("PREFIX") and name.kind == "name" and iri.kind == "iri"
    }


def corpus_prefixes(queries: Iterable[str]) -> dict[str, str]:
    """Return the prefixes that queries declare; of two namespaces the more frequent one."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for query in queries:
        for name, namespace in declared_prefixes(query).items():
            found[name][namespace] += 1
    return {name: counted.most_common(1)[0][0] for name, counted in sorted(found.items())}


class Completed(NamedTuple):
    """A query with declarations added, the prefixes added, and those that nobody declares."""

    text: str
    added: tuple[str, ...]
    unknown: tuple[str, ...]


def complete_prefixes(query: str, known: Mapping[str, str]) -> Completed:
    """Declare the known prefixes that a query uses and does not declare."""
    tokens = tokenize(query)
    declared = declared_prefixes(query)
    used = dict.fromkeys(
        token.text.partition(":")[0]
        for before, token in zip([None, *tokens], tokens, strict=False)
        if token.kind == "name" and not (before and before.is_word("PREFIX"))
    )
    missing = [prefix for prefix in used if prefix not in declared]
    added = tuple(prefix for prefix in missing if prefix in known)
    head = "".join(f"PREFIX {prefix}: <{known[prefix]}>\n" for prefix in added)
    return Completed(head + query, added, tuple(p for p in missing if p not in known))
