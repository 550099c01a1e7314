"""Finding texts by their words: BM25 over SQLite's full-text index (FTS5)."""

from __future__ import annotations

import math
import sqlite3
from collections import OrderedDict
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from reasoningbank.retrieval.words import indexed, query_terms

__all__ = ["WordIndex"]

#: Postings kept in memory, so that a common word is read from the database once.
MOST_POSTINGS = 2_000_000

Postings = tuple[NDArray[np.int64], NDArray[np.float64]]


class WordIndex:
    """An FTS5 table of texts by number; case, accents and the joints of identifiers don't matter.

    The score of a text is the share of the query that its words make up: BM25, divided by what
    the query's words weigh, those that no text has included. So a query in another language, whose
    few words in common are there by chance, scores close to 0 everywhere; dividing by the best
    text's score would make 1 of the best chance hit.

    FTS5 gives each word's weight in each text; the words' own weights are Lucene's, since FTS5's
    vanish for a word that half of the texts have, and small banks have many such.

    The caller sees to transactions, and to it that one thread at a time comes in.

    Args:
        database: Where the table is, or is made.
        table: Its name.

    Examples:
        >>> index = WordIndex(sqlite3.connect(":memory:"))
        >>> index.add([(1, "Diseases of a protein"), (2, "up:encodedBy")])
        >>> keys, scores = index.scores("encoded by which gene?")
        >>> keys.tolist(), bool(0 < scores[0] < 1)
        ([2], True)
    """

    def __init__(self, database: sqlite3.Connection, table: str = "words") -> None:
        self._database = database
        self._table = table
        self._postings: OrderedDict[str, Postings] = OrderedDict()
        self._kept = 0
        self._texts: int | None = None
        database.execute(self.schema(table))

    @staticmethod
    def schema(table: str) -> str:
        """Return the statement that makes the table where there is none."""
        return (
            f"CREATE VIRTUAL TABLE IF NOT EXISTS {table} USING fts5"
            '(text, tokenize = "unicode61 remove_diacritics 2")'
        )

    def add(self, texts: Iterable[tuple[int, str]]) -> None:
        """Put texts in, each under its number; what was there under it is replaced."""
        rows = [(key, indexed(text)) for key, text in texts]
        self.remove(key for key, _ in rows)
        self._database.executemany(f"INSERT INTO {self._table}(rowid, text) VALUES (?, ?)", rows)
        self.forget()

    def remove(self, keys: Iterable[int]) -> None:
        """Take texts out; numbers that are not there don't matter."""
        self._database.executemany(
            f"DELETE FROM {self._table} WHERE rowid = ?", [(key,) for key in keys]
        )
        self.forget()

    def forget(self) -> None:
        """Drop what was kept in memory, because the table has changed."""
        self._postings.clear()
        self._kept = 0
        self._texts = None

    def scores(self, query: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the numbers of the texts that share a word with the query, and their scores.

        Args:
            query: Any text; quotes, operators and punctuation have no meaning in it.

        Returns:
            Numbers in ascending order, and scores above 0, at most 1.
        """
        terms = query_terms(query)
        if self._texts is None:
            counted = self._database.execute(f"SELECT count(*) FROM {self._table}")
            (self._texts,) = counted.fetchone()
        texts = self._texts or 0
        weight_of_all = 0.0
        parts: list[Postings] = []
        for term in terms if texts else ():
            keys, shares = self._of_term(term, texts)
            weight = math.log(1 + (texts - len(keys) + 0.5) / (len(keys) + 0.5))
            weight_of_all += weight
            if len(keys):
                parts.append((keys, weight * shares))
        if not parts:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        sums = np.zeros(1 + max(int(keys[-1]) for keys, _ in parts))
        for keys, shares in parts:
            sums[keys] += shares
        found = np.flatnonzero(sums)
        return found, np.clip(sums[found] / weight_of_all, 1e-9, 1.0)

    def _of_term(self, term: str, texts: int) -> Postings:
        """Return the texts that have a word, and how much it stands out in each, about 0.5 to 2."""
        if term in self._postings:
            self._postings.move_to_end(term)
            return self._postings[term]
        rows = self._database.execute(
            f"SELECT rowid, bm25({self._table}) FROM {self._table} "
            f"WHERE {self._table} MATCH ? ORDER BY rowid",
            (f'"{term}"',),
        )
        read = np.fromiter(rows, dtype=[("key", np.int64), ("score", np.float64)])
        # bm25() is the negative of FTS5's weight of the word, at least 1e-6, times the share.
        weight = math.log((texts - len(read) + 0.5) / (len(read) + 0.5))
        weight = weight if weight > 0 else 1e-6
        found = read["key"].copy(), read["score"] / -weight
        self._postings[term] = found
        self._kept += len(read)
        while self._kept > MOST_POSTINGS and len(self._postings) > 1:
            self._kept -= len(self._postings.popitem(last=False)[1][0])
        return found
