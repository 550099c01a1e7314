"""Lexical search: BM25 over SQLite's full-text index (FTS5)."""

from __future__ import annotations

import math
import re
import sqlite3
import unicodedata
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

#: Terms of a query that count: a pasted error message may hold hundreds.
MOST_TERMS = 64
#: Postings kept in memory, so that a common word is read from the database once.
MOST_POSTINGS = 2_000_000

Postings = tuple[NDArray[np.int64], NDArray[np.float64]]

_WORD = re.compile(r"[^\W_]+")
#: `encodedBy` → encoded By; `RDFType` → RDF Type; `P53` and `sha256` stay whole.
_INNER = re.compile(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class WordIndex:
    """An FTS5 table of texts by number; case, accents and the parts of identifiers are ignored.

    The score of a text is its BM25 divided by the total weight of the query's words, those that no
    text has included: a query in another language, with a few words in common by chance, scores
    close to 0. Word weights are Lucene's, since FTS5's vanish for a word that half of the texts
    have. The caller manages transactions and lets one thread in at a time.
    """

    def __init__(self, database: sqlite3.Connection, table: str = "words") -> None:
        self._database = database
        self._table = table
        self._postings: dict[str, Postings] = {}
        self._kept = 0
        self._texts: int | None = None
        database.execute(self.schema(table))

    @staticmethod
    def schema(table: str) -> str:
        """Return the statement that creates the table if it does not exist."""
        return (
            f"CREATE VIRTUAL TABLE IF NOT EXISTS {table} USING fts5"
            '(text, tokenize = "unicode61 remove_diacritics 2")'
        )

    def add(self, texts: Iterable[tuple[int, str]]) -> None:
        """Add texts by number, replacing those that exist."""
        rows = [(key, indexed(text)) for key, text in texts]
        self.remove(key for key, _ in rows)
        self._database.executemany(f"INSERT INTO {self._table}(rowid, text) VALUES (?, ?)", rows)
        self.forget()

    def remove(self, keys: Iterable[int]) -> None:
        """Remove texts; unknown numbers are ignored."""
        self._database.executemany(
            f"DELETE FROM {self._table} WHERE rowid = ?", [(key,) for key in keys]
        )
        self.forget()

    def forget(self) -> None:
        """Drop what is kept in memory, because the table has changed."""
        self._postings.clear()
        self._kept = 0
        self._texts = None

    def scores(self, query: str) -> Postings:
        """Return the numbers, ascending, of texts that share a word with the query, and scores.

        Quotes, operators and punctuation have no meaning in a query; scores are above 0 and at
        most 1.
        """
        if self._texts is None:
            counted = self._database.execute(f"SELECT count(*) FROM {self._table}")
            self._texts = int(counted.fetchone()[0])
        texts = self._texts
        total_weight = 0.0
        parts: list[Postings] = []
        for term in query_terms(query) if texts else ():
            keys, shares = self._of_term(term, texts)
            weight = math.log(1 + (texts - len(keys) + 0.5) / (len(keys) + 0.5))
            total_weight += weight
            if len(keys):
                parts.append((keys, weight * shares))
        if not parts:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        sums = np.zeros(1 + max(int(keys[-1]) for keys, _ in parts))
        for keys, shares in parts:
            sums[keys] += shares
        found = np.flatnonzero(sums)
        return found, np.clip(sums[found] / total_weight, 1e-9, 1.0)

    def _of_term(self, term: str, texts: int) -> Postings:
        """Return the texts that have a word, and how prominent it is in each, about 0.5 to 2."""
        if term in self._postings:
            return self._postings[term]
        sql = "SELECT rowid, bm25({0}) FROM {0} WHERE {0} MATCH ? ORDER BY rowid"
        rows = self._database.execute(sql.format(self._table), (f'"{term}"',))
        read = np.fromiter(rows, dtype=[("key", np.int64), ("score", np.float64)])
        # bm25() is minus FTS5's weight of the word (at least 1e-6) times its prominence.
        weight = max(1e-6, math.log((texts - len(read) + 0.5) / (len(read) + 0.5)))
        found = read["key"].copy(), read["score"] / -weight
        self._kept += len(read)
        if self._kept > MOST_POSTINGS:
            self._postings, self._kept = {}, len(read)
        self._postings[term] = found
        return found


def indexed(text: str) -> str:
    """Return the words of a text and, after them, the parts of its identifiers."""
    words = _words(text)
    parts = dict.fromkeys(part for word in words for part in _parts(word))
    return " ".join(map(_folded, (*words, *parts)))


def query_terms(text: str) -> list[str]:
    """Return the distinct words of a query, without case and accents, identifiers also in parts."""
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
    # Composed again, since Korean syllables are decomposed too.
    return unicodedata.normalize("NFC", "".join(letters)).lower()
