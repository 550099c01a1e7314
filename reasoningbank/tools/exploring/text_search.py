"""Full-text search as engines offer it, each in its own dialect of SPARQL.

Each dialect is a magic property, named by its full IRI. An engine that does not know it reads a
plain triple pattern that nothing matches, so asking costs next to nothing anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reasoningbank.sparql import iri, string_literal

__all__ = ["DIALECTS", "TextSearch", "words_of"]

#: Hits asked of an engine that wants a number.
MOST_HITS = 300
#: Virtuoso takes a wildcard only after so many characters.
_WILDCARD_AFTER = 4


@dataclass(frozen=True)
class TextSearch:
    """One engine's text search.

    Attributes:
        engine: The engine, as named in results.
        pattern: Makes of words and a label property the patterns that bind ?uri and ?label to
            what has all the words in that label, the last one as a beginning.
    """

    engine: str
    pattern: Callable[[Sequence[str], str], str]


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text: letters and digits only, so no syntax of any dialect.

    Examples:
        >>> words_of("alpha-1 'AND' kin*se_x")
        ('alpha', '1', 'AND', 'kin', 'se', 'x')
    """
    return tuple(re.findall(r"[^\W_]+", text))


def _virtuoso(words: Sequence[str], label: str) -> str:
    *whole, last = words
    start = f"{last}*" if len(last) >= _WILDCARD_AFTER else last
    wanted = " AND ".join(f"'{word}'" for word in (*whole, start))
    return f"?uri {iri(label)} ?label . ?label <bif:contains> {string_literal(wanted)} ."


def _blazegraph(words: Sequence[str], label: str) -> str:
    bds = "http://www.bigdata.com/rdf/search#"
    wanted = string_literal(" ".join(words) + "*")
    return (
        f'?label <{bds}search> {wanted} . ?label <{bds}matchAllTerms> "true" . '
        f"?uri {iri(label)} ?label ."
    )


def _jena(words: Sequence[str], label: str) -> str:
    wanted = string_literal(" AND ".join((*words[:-1], words[-1] + "*")))
    query = f"<http://jena.apache.org/text#query> ({iri(label)} {wanted} {MOST_HITS})"
    return f"?uri {query} . ?uri {iri(label)} ?label ."


def _qlever(words: Sequence[str], label: str) -> str:
    ql = "http://qlever.cs.uni-freiburg.de/builtin-functions/"
    wanted = string_literal(" ".join((*words[:-1], words[-1] + "*")))
    return (
        f"?text <{ql}contains-word> {wanted} . ?text <{ql}contains-entity> ?label . "
        f"?uri {iri(label)} ?label ."
    )


#: The dialects that are tried. Virtuoso's is tested on the engine itself, the others are written
#: by their engines' manuals and taken only where they find a label that is known to be there.
DIALECTS = (
    TextSearch("Virtuoso", _virtuoso),
    TextSearch("Blazegraph", _blazegraph),
    TextSearch("Jena", _jena),
    TextSearch("QLever", _qlever),
)
