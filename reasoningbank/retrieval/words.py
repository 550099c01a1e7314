"""The words of a text, as the word index keeps them and as a query asks for them."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["indexed", "query_terms"]

#: A pasted query or error message may hold hundreds of words; the first tell what it is about.
MOST_TERMS = 64

_WORD = re.compile(r"[^\W_]+")
#: `encodedBy` → encoded By; `RDFType` → RDF Type; `P53` and `sha256` stay whole.
_INNER = re.compile(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def indexed(text: str) -> str:
    """Return the words of a text and, after them, the parts of its identifiers; as queries ask.

    SQLite would part words and drop accents by itself, but not in all alphabets as it is done for
    a query.

    Examples:
        >>> indexed("La proteína es ?p up:encodedBy ?gene.")
        'la proteina es p up encodedby gene encoded by'
    """
    words = _words(text)
    parts = dict.fromkeys(part for word in words for part in _parts(word))
    return " ".join(map(_folded, (*words, *parts)))


def query_terms(text: str) -> list[str]:
    """Return the distinct words of a query, without case and accents, identifiers also in parts.

    Examples:
        >>> query_terms('Proteína "AND" up:encodedBy*')
        ['proteina', 'and', 'up', 'encodedby', 'encoded', 'by']
    """
    found: dict[str, None] = {}
    for word in _words(text):
        for term in (word, *_parts(word)):
            if folded := _folded(term):
                found[folded] = None
        if len(found) >= MOST_TERMS:
            break
    return list(found)[:MOST_TERMS]


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFC", text))


def _parts(word: str) -> list[str]:
    parts = _INNER.split(word)
    return parts if len(parts) > 1 else []


def _folded(word: str) -> str:
    letters = (c for c in unicodedata.normalize("NFD", word) if not unicodedata.combining(c))
    # Composed again, since Korean syllables come apart too.
    return unicodedata.normalize("NFC", "".join(letters)).lower()
