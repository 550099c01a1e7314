"""Lexical search by BM25 over SQLite's full-text index (FTS5), dense vectors, and their fusion."""

from __future__ import annotations

import functools
import importlib
import math
import re
import sqlite3
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reasoningbank.errors import UsageError, need_package
from reasoningbank.retrieval.embedding import Vectors

#: Parameters of BM25, those of FTS5.
K1, B = 1.2, 0.75
#: Terms of a query that count: a pasted error message may hold hundreds.
MOST_TERMS = 64
#: Postings kept in memory, 8 bytes each, so that a common word is read from the database once.
MOST_POSTINGS = 32_000_000
#: Texts that may change before all is read again.
MOST_CHANGED = 5_000

#: Numbers, and the score of each.
Scored = tuple[NDArray[np.int64], NDArray[np.float64]]
_Postings = tuple[NDArray[np.int32], NDArray[np.float32]]

_WORD = re.compile(r"[^\W_]+")
#: `encodedBy` → encoded By; `RDFType` → RDF Type; `P53` and `sha256` stay whole.
_INNER = re.compile(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
#: Where FTS5 folds letters, or parts words, otherwise than Python does.
_VARIANTS = str.maketrans("\u00b5\u017fςϐϑϕϖϰϱϵ", "μsσβθφπκρε") | dict.fromkeys(
    (0xFB5, 0xFB7, *range(0x19B0, 0x19C1), 0x19C8, 0x19C9, 0x1CF2, 0x1CF3), " "
)


class WordIndex:
    """An FTS5 table of texts by number; case, accents and the parts of identifiers are ignored.

    The score of a text is its BM25 divided by the total weight of the query's words, those that no
    text has included: a few words in common by chance score close to 0. Word weights are Lucene's,
    since FTS5's vanish for a word that half of the texts have. BM25 is computed here: FTS5's own
    function looks up the length of a text for every word, which takes most of the time of a search.
    The caller manages transactions and lets one thread in at a time.
    """

    def __init__(self, database: sqlite3.Connection, table: str = "words") -> None:
        self._database = database
        self._table = table
        #: By term, its texts and how often each has it; and the place in `_changed` they are of.
        self._postings: dict[str, tuple[_Postings, int]] = {}
        self._kept = 0
        #: By number, the words of a text, -1 if there is none; and its length's part in BM25.
        self._counts: NDArray[np.float64] | None = None
        self._lengths: NDArray[np.float64] = np.zeros(0)
        self._texts = 0
        #: The texts that have changed since all were read, and how many of these are known.
        self._changed: list[int] = []
        self._now = 0
        #: The words of texts that have changed.
        self._new: dict[int, Counter[str]] = {}
        database.execute(self.schema(table))
        database.execute(
            f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.{table}_places "
            f"USING fts5vocab(main, {table}, instance)"
        )

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

    def remove(self, keys: Iterable[int]) -> None:
        """Remove texts; unknown numbers are ignored."""
        rows = [(key,) for key in keys]
        self._database.executemany(f"DELETE FROM {self._table} WHERE rowid = ?", rows)
        self.forget(key for (key,) in rows)

    def forget(self, keys: Iterable[int] | None = None) -> None:
        """Drop what is kept in memory of texts that have changed, by default of all."""
        self._changed.extend(() if keys is None else keys)
        if keys is None or len(self._changed) > MOST_CHANGED:
            self._postings, self._kept, self._counts, self._changed = {}, 0, None, []

    def scores(self, query: str) -> Scored:
        """Return the numbers, ascending, of texts that share a word with the query, and scores.

        Scores are above 0 and at most 1; operators and punctuation have no meaning.
        """
        self._follow()
        total_weight, sums = 0.0, np.zeros(len(self._lengths))
        for term in query_terms(query) if self._texts else ():
            keys, counts = self._of_term(term)
            times = counts.astype(np.float64)
            shares = times * (1 + K1) / (times + self._lengths[keys])
            weight = math.log(1 + (self._texts - len(keys) + 0.5) / (len(keys) + 0.5))
            total_weight += weight
            sums[keys] += weight * shares
        found = np.flatnonzero(sums)
        return found, np.clip(sums[found] / (total_weight or 1), 1e-9, 1.0)

    def _of_term(self, term: str) -> _Postings:
        """Return the texts that have a word, and how often each has it."""
        (keys, times), seen = self._postings.get(term) or (self._read_term(term), self._now)
        if seen < self._now:
            changed = np.unique(self._changed[seen:])
            kept = ~np.isin(keys, changed)
            held = [(key, self._words_of(key)[term]) for key in changed.tolist()]
            more = np.array([one for one in held if one[1]], dtype=np.int64).reshape(-1, 2)
            keys, times = np.append(keys[kept], more[:, 0]), np.append(times[kept], more[:, 1])
            order = np.argsort(keys, kind="stable")
            keys, times = keys[order].astype(np.int32), times[order].astype(np.float32)
        self._postings[term] = (keys, times), self._now
        return keys, times

    def _read_term(self, term: str) -> _Postings:
        # One row of text is read several times as fast as a row for each place.
        sql = f"SELECT group_concat(doc, ' ') FROM {self._table}_places WHERE term = ?"
        (text,) = self._database.execute(sql, (term,)).fetchone()
        places = np.fromstring(text or "", dtype=np.int64, sep=" ")
        first = np.flatnonzero(np.diff(places, prepend=-1))
        self._kept += len(first)
        if self._kept > MOST_POSTINGS:
            self._postings, self._kept = {}, len(first)
        times = np.diff(first, append=len(places))
        return places[first].astype(np.int32), times.astype(np.float32)

    def _words_of(self, key: int) -> Counter[str]:
        """Return how often a text that has changed has each word."""
        if key not in self._new:
            sql = f"SELECT text FROM {self._table} WHERE rowid = ?"
            row = self._database.execute(sql, (key,)).fetchone()
            self._new[key] = Counter(row[0].split() if row else ())
        return self._new[key]

    def _follow(self) -> None:
        """Read the lengths of all texts, or of those that have changed."""
        if self._counts is not None and self._now == len(self._changed):
            return
        sql = f"SELECT id, sz FROM {self._table}_docsize"
        if self._counts is None:
            rows = self._database.execute(sql).fetchall()
            self._counts = np.full(1 + max((key for key, _ in rows), default=0), -1.0)
        else:
            changed = dict.fromkeys(self._changed[self._now :])
            found = (self._database.execute(f"{sql} WHERE id = ?", (key,)) for key in changed)
            rows = [row for cursor in found for row in cursor]
            missing = 1 + max(changed) - len(self._counts)
            self._counts = np.append(self._counts, np.full(max(0, missing), -1.0))
            self._counts[list(changed)] = -1
        for key, size in rows:
            # SQLite's form of a number: seven bits in each byte.
            self._counts[key] = functools.reduce(lambda n, byte: n << 7 | byte & 127, size, 0)
        counted = self._counts[self._counts >= 0]
        self._texts = len(counted)
        mean = counted.sum() / max(1, self._texts)
        self._lengths = K1 * (1 - B + B * self._counts / (mean or 1))
        self._new, self._now = {}, len(self._changed)


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
            found.update(dict.fromkeys(_folded(term).split()))
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
    return unicodedata.normalize("NFC", "".join(letters)).lower().translate(_VARIANTS)


# -- dense vectors ------------------------------------------------------------------------------

DEFAULT_INDEX = "numpy"
#: Weight of dense and of lexical scores.
WEIGHTS = (0.6, 0.4)
#: Decimals of a cosine: those beyond depend on the processor.
DECIMALS = 5

#: From so many vectors on, FAISS's index is approximate; below, comparing all takes some
#: milliseconds. One in `READ_SHARE` of its lists is read.
LARGE = 200_000
READ_SHARE = 12

#: So many are ranked at first, and eight times as many each further time.
FIRST = 128


class VectorTable:
    """A matrix of vectors of length 1 by number. One thread at a time may use it."""

    def __init__(self) -> None:
        #: Number → row of the parts, one after another; in the order of the rows.
        self._rows: dict[int, int] = {}
        #: Matrices; after a search there is one, without free rows.
        self._parts: list[Vectors] = []
        self._keys: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: int) -> bool:
        return key in self._rows

    def put(self, keys: Sequence[int], vectors: NDArray[np.floating]) -> None:
        """Add vectors by number, replacing those that exist."""
        self.drop(keys)
        first = sum(map(len, self._parts))
        self._parts.append(np.array(vectors, dtype=np.float32))
        self._rows.update(zip(keys, range(first, first + len(vectors)), strict=True))

    def drop(self, keys: Iterable[int]) -> None:
        """Remove vectors; unknown numbers are ignored."""
        for key in keys:
            self._rows.pop(key, None)
        self._keys = None

    def cosines(self, query: Vectors) -> Scored:
        """Return all numbers, and the cosine of each with the query."""
        return self.candidates(query, len(self), ())

    def candidates(self, query: Vectors, most: int, others: Sequence[int]) -> Scored:
        """Return at least the `most` nearest, the furthest, and `others`; here all.

        `others` are numbers of the table.
        """
        if not self._rows:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        if self._keys is None:
            self._keys = np.fromiter(self._rows, dtype=np.int64)
            self._merge()
        return self._keys, self._compare(self._parts[0], query).astype(np.float64).round(DECIMALS)

    def _merge(self) -> None:
        rows = np.fromiter(self._rows.values(), dtype=np.int64)
        matrix = np.empty((len(rows), self._parts[0].shape[1]), dtype=np.float32)
        done = passed = 0
        while self._parts:
            # Released one by one, so that there never are two copies of all.
            part = self._parts.pop(0)
            end = int(np.searchsorted(rows, passed + len(part)))
            np.take(part, rows[done:end] - passed, axis=0, out=matrix[done:end], mode="clip")
            done, passed = end, passed + len(part)
        self._parts = [matrix]
        self._rows = dict(zip(self._rows, range(len(rows)), strict=True))

    def _compare(self, matrix: Vectors, query: Vectors) -> Vectors:
        # In one thread: BLAS's threads spin while they wait, and beside a busy processor `@` took
        # twice as long.
        found: Vectors = np.vecdot(matrix, query)
        return found


class FaissTable(VectorTable):
    """The same by FAISS (Douze et al., arXiv:2401.08281): exact if small, and then approximate.

    From `LARGE` vectors on they lie in lists of near ones, in half precision, and `candidates`
    reads the lists nearest to the query. The lists are made for the vectors at the first search.
    """

    def __init__(self) -> None:
        super().__init__()
        need_package("faiss", "faiss")
        self._faiss: Any = importlib.import_module("faiss")
        self._index: Any = None
        #: Vectors that are not in the index yet.
        self._waiting: list[tuple[NDArray[np.int64], Vectors]] = []

    def put(self, keys: Sequence[int], vectors: NDArray[np.floating]) -> None:
        last = {key: row for row, key in enumerate(keys)}
        self.drop(last)
        numbers = np.fromiter(last, dtype=np.int64)
        if len(numbers):
            self._waiting.append((numbers, np.array(vectors[list(last.values())])))
        self._rows.update(dict.fromkeys(last, 0))

    def drop(self, keys: Iterable[int]) -> None:
        known = [key for key in keys if self._rows.pop(key, None) is not None]
        if known:
            self._settle().remove_ids(np.array(known, dtype=np.int64))

    def candidates(self, query: Vectors, most: int, others: Sequence[int]) -> Scored:
        if not self._rows:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        index = self._settle()
        asked = np.ascontiguousarray(query, dtype=np.float32)[np.newaxis]
        lists = index.nlist if most >= len(self) else max(1, index.nlist // READ_SHARE)
        how = self._faiss.SearchParametersIVF(nprobe=lists)
        cosines, keys = index.search(asked, min(most, len(self)), params=how)
        furthest = index.search(-asked, 1, params=how)[1]
        # Those found otherwise, and the furthest, are compared by their vectors.
        rest = np.setdiff1d(np.append(furthest[0], others), keys[0]).astype(np.int64)
        rest = rest[rest >= 0]
        compared = super()._compare(index.reconstruct_batch(rest), asked[0])
        found = np.append(keys[0], rest), np.append(cosines[0], compared).astype(np.float64)
        # A list that is nearly empty is filled up with -1.
        kept = found[0] >= 0
        return found[0][kept], found[1][kept].round(DECIMALS)

    def _settle(self) -> Any:
        if self._index is None:
            total = sum(len(keys) for keys, _ in self._waiting)
            lists, kept = (math.isqrt(total) // 2, "SQfp16") if total >= LARGE else (1, "Flat")
            width = self._waiting[0][1].shape[1]
            inner = self._faiss.METRIC_INNER_PRODUCT
            index = self._faiss.index_factory(width, f"IVF{lists},{kept}", inner)
            # Else it prints a warning if there are few.
            index.cp.min_points_per_centroid = 1
            index.set_direct_map_type(self._faiss.DirectMap.Hashtable)
            step = max(1, total // (64 * lists))
            sample = [rows[::step] for _, rows in self._waiting]
            index.train(np.concatenate(sample).astype(np.float32))
            self._index = index
        while self._waiting:
            # Released one by one, so that there never are two copies of all.
            keys, rows = self._waiting.pop(0)
            self._index.add_with_ids(rows.astype(np.float32), keys)
        return self._index


INDEXES: MappingProxyType[str, type[VectorTable]] = MappingProxyType(
    {DEFAULT_INDEX: VectorTable, "faiss": FaissTable}
)


def open_index(name: str = DEFAULT_INDEX) -> VectorTable:
    """Return an empty vector index: ``numpy``; or ``faiss``, which is approximate if large."""
    if name not in INDEXES:
        hint = f"choose {' or '.join(INDEXES)}"
        raise UsageError(f"unknown vector index {name!r}", hint=hint, code="unknown-index")
    return INDEXES[name]()


@dataclass(frozen=True)
class Match:
    """A text that was found; all scores are in [0, 1].

    `semantic` is 0 for the furthest text and 1 for the nearest; `lexical` is 0 without a word in
    common. `score` is their weighted sum, for ranking and not as a threshold.
    """

    id: str
    score: float
    semantic: float
    lexical: float


def best_first(
    ids: Mapping[int, str], cosines: Scored, found: Scored, weights: tuple[float, float] = WEIGHTS
) -> Iterator[Match]:
    """Yield texts, best first; ties by id, so that insertion order does not matter.

    Cosines of one model lie close together: they are scaled between the furthest and the nearest
    text. With a dense weight of 0, texts without a word in common are left out.
    """
    if not (min(weights) >= 0 and 0 < sum(weights) < math.inf):
        what = f"retrieval weights {weights[0]:g} and {weights[1]:g} are not usable"
        hint = "give none below 0, and at least one above 0"
        raise UsageError(what, hint=hint, code="bad-weights")
    keys, angles = cosines
    if not len(keys):
        return
    low, high = angles.min(), angles.max()
    semantic = (angles - low) / (high - low) if high > low else np.ones(len(keys))
    by_key = np.zeros(1 + max(keys.max(), found[0].max(initial=0)))
    by_key[found[0]] = found[1]
    lexical = by_key[keys]
    scores = np.round((weights[0] * semantic + weights[1] * lexical) / sum(weights), 6)
    left = len(keys) if weights[0] > 0 else np.count_nonzero(lexical)
    # Mostly a few are wanted: sort the best, and the rest only if it is asked for.
    bound, most = math.inf, FIRST
    while left > 0:
        place = min(most, len(keys)) - 1
        least = -np.partition(-scores, place)[place]
        rows = np.flatnonzero((scores < bound) & (scores >= least))
        ranked = sorted((-scores[row], ids[int(keys[row])], row) for row in rows)
        for score, text_id, row in ranked[:left]:
            yield Match(text_id, float(-score), float(semantic[row]), float(lexical[row]))
        left -= len(rows)
        bound, most = least, most * 8
