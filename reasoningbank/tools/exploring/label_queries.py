"""Queries for resources by their labels, each bounded so that an engine of any size answers it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyoxigraph import Literal

from reasoningbank.sparql import iri, string_literal
from reasoningbank.sparql.terms import full
from reasoningbank.tools.exploring.text_search import TextSearch

__all__ = ["by_part", "by_text", "count", "exact", "some", "spellings"]

#: Candidates fetched for ranking.
CANDIDATES = 300
#: Labels of each property that are looked at for their languages.
EXAMINED = 500
#: Languages in which a whole label is looked up.
MOST_LANGUAGES = 8

#: Puts a pattern where an endpoint keeps its data.
Within = Callable[[str], str]


def by_part(text: str, properties: Sequence[str], most: int, within: Within) -> str:
    """Return a query for labels that hold `text`, among `most` labels of each property."""
    branches = [
        f"{{ {{ SELECT ?uri ?label WHERE {{ {within(f'?uri {iri(name)} ?label')} }} "
        f"LIMIT {most} }} BIND({iri(name)} AS ?property) }}"
        for name in properties
    ]
    wanted = string_literal(text.lower())
    return (
        "SELECT DISTINCT ?uri ?label ?property WHERE {\n"
        f"  {_union(branches)}\n"
        f"  FILTER(CONTAINS(LCASE(STR(?label)), {wanted}))\n"
        f"}} LIMIT {CANDIDATES}"
    )


def exact(text: str, properties: Sequence[str], languages: Sequence[str], within: Within) -> str:
    """Return a query for labels that are `text`, in the usual spellings and some languages."""
    terms = " ".join(
        full(Literal(spelling, language=tag)) if tag else string_literal(spelling)
        for spelling in spellings(text)
        for tag in languages[:MOST_LANGUAGES]
    )
    branches = [
        f"{{ VALUES ?label {{ {terms} }} {within(f'?uri {iri(name)} ?label')} "
        f"BIND({iri(name)} AS ?property) }}"
        for name in properties
    ]
    return _select(branches, CANDIDATES)


def by_text(
    dialect: TextSearch,
    words: Sequence[str],
    properties: Sequence[str],
    within: Within,
    most: int = CANDIDATES,
) -> str:
    """Return a query for labels that have all the words, by the engine's text search."""
    branches = [
        f"{{ {within(dialect.pattern(words, name))} BIND({iri(name)} AS ?property) }}"
        for name in properties
    ]
    return _select(branches, most)


def count(properties: Sequence[str], most: int, within: Within) -> str:
    """Return a query for the number of labels of each property, counted up to `most`."""
    branches = [
        f"{{ {{ SELECT (COUNT(*) AS ?n) WHERE {{ {{ SELECT ?uri WHERE "
        f"{{ {within(f'?uri {iri(name)} ?label')} }} LIMIT {most} }} }} }} "
        f"BIND({iri(name)} AS ?property) }}"
        for name in properties
    ]
    return f"SELECT ?property ?n WHERE {{\n  {_union(branches)}\n}}"


def some(properties: Sequence[str], within: Within) -> str:
    """Return a query for a few labels of each property."""
    branches = [
        f"{{ {{ SELECT ?label WHERE {{ {within(f'?uri {iri(name)} ?label')} }} "
        f"LIMIT {EXAMINED} }} BIND({iri(name)} AS ?property) }}"
        for name in properties
    ]
    return f"SELECT ?property ?label WHERE {{\n  {_union(branches)}\n}}"


def spellings(text: str) -> tuple[str, ...]:
    """Return a name as given and as it is usually written.

    Examples:
        >>> spellings("homo sapiens")
        ('homo sapiens', 'Homo sapiens', 'Homo Sapiens', 'HOMO SAPIENS')
    """
    lower = text.lower()
    titled = " ".join(word[:1].upper() + word[1:] for word in lower.split(" "))
    capital = lower[:1].upper() + lower[1:]
    return tuple(dict.fromkeys((text, lower, capital, titled, text.upper())))


def _select(branches: Sequence[str], most: int) -> str:
    return f"SELECT ?uri ?label ?property WHERE {{\n  {_union(branches)}\n}} LIMIT {most}"


def _union(branches: Sequence[str]) -> str:
    return "\n  UNION ".join(branches)
