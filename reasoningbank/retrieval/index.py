"""Lexical search by BM25 over SQLite's full-text index (FTS5), dense vectors, and their fusion."""

from __future__ import annotations

import functools
import importlib
import itertools
import math
import re
import sqlite3
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
MOST_CHANGED = 1_000

#: Numbers, and the score of each.
Scored = tuple[NDArray[np.int64], NDArray[np.float64]]
_NONE: Scored = (np.zeros(0, dtype=np.int64), np.zeros(0))
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

    #: The statement that creates the table if it does not exist.
    SCHEMA = (
        "CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5"
        '(text, tokenize = "unicode61 remove_diacritics 2")'
    )

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        #: By term, its texts and how often each has it, as they were when it was read.
        self._postings: dict[str, _Postings] = {}
        self._kept = 0  #: How many these are
        #: By number, the words of a text, -1 if there is none; and its length's part in BM25.
        self._counts: NDArray[np.float64] | None = None
        self._lengths: NDArray[np.float64] = np.zeros(0)
        self._texts = 0
        #: The texts that have changed since all were read: those to read, and the words of others.
        self._changed: set[int] = set()
        self._new: dict[int, Counter[str]] = {}
        database.execute(self.SCHEMA)
        database.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS temp.words_places "
            "USING fts5vocab(main, words, instance)"
        )

    def add(self, texts: Iterable[tuple[int, str]]) -> None:
        """Add texts by number, replacing those that exist."""
        rows = [(key, indexed(text)) for key, text in texts]
        self.remove(key for key, _ in rows)
        self._database.executemany("INSERT INTO words(rowid, text) VALUES (?, ?)", rows)

    def remove(self, keys: Iterable[int]) -> None:
        """Remove texts; unknown numbers are ignored."""
        rows = [(key,) for key in keys]
        self._database.executemany("DELETE FROM words WHERE rowid = ?", rows)
        self.forget(key for (key,) in rows)

    def forget(self, keys: Iterable[int] | None = None) -> None:
        """Drop what is kept in memory of texts that have changed, by default of all."""
        self._changed.update(() if keys is None else keys)
        if keys is None or len(self._changed) + len(self._new) > MOST_CHANGED:
            self._postings, self._kept, self._counts, self._new = {}, 0, None, {}

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
        keys, times = self._postings.get(term) or self._read_term(term)
        if self._new:
            kept = ~np.isin(keys, list(self._new))
            more = {key: words[term] for key, words in self._new.items() if words[term]}
            keys = np.append(keys[kept], np.array(list(more), dtype=np.int32))
            times = np.append(times[kept], np.array(list(more.values()), dtype=np.float32))
        return keys, times

    def _read_term(self, term: str) -> _Postings:
        # One row of text is read several times as fast as a row for each place.
        sql = "SELECT group_concat(doc, ' ') FROM words_places WHERE term = ?"
        (text,) = self._database.execute(sql, (term,)).fetchone()
        places = np.fromstring(text or "", dtype=np.int64, sep=" ")
        first = np.flatnonzero(np.diff(places, prepend=-1))
        times = np.diff(first, append=len(places)).astype(np.float32)
        if self._kept + len(first) > MOST_POSTINGS:
            self._postings, self._kept = {}, 0
        self._kept += len(first)
        self._postings[term] = read = places[first].astype(np.int32), times
        return read

    def _follow(self) -> None:
        """Read the lengths of all texts, or the lengths and words of those that have changed."""
        if self._counts is not None and not self._changed:
            return
        read, sql = self._database.execute, "SELECT id, sz FROM words_docsize"
        if self._counts is None:
            rows = read(sql).fetchall()
            self._counts = np.full(1 + max((key for key, _ in rows), default=0), -1.0)
        else:
            rows = []
            for key in self._changed:
                rows += read(f"{sql} WHERE id = ?", (key,)).fetchall()
                found = read("SELECT text FROM words WHERE rowid = ?", (key,)).fetchall()
                self._new[key] = Counter(word for (text,) in found for word in text.split())
            missing = 1 + max(self._changed) - len(self._counts)
            self._counts = np.append(self._counts, np.full(max(0, missing), -1.0))
            self._counts[list(self._changed)] = -1
        self._changed.clear()
        for key, size in rows:
            # SQLite's form of a number: seven bits in each byte.
            self._counts[key] = functools.reduce(lambda n, byte: n << 7 | byte & 127, size, 0)
        counted = self._counts[self._counts >= 0]
        self._texts = len(counted)
        mean = counted.sum() / max(1, self._texts)
        self._lengths = K1 * (1 - B + B * self._counts / (mean or 1))


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
#: So many texts are ranked before the rest.
FIRST = 128


class VectorTable:
    """A matrix of vectors of length 1 by number. One thread at a time may use it."""

    def __init__(self) -> None:
        #: Number → row of the matrix, and the rows that belong to none.
        self._rows: dict[int, int] = {}
        self._free: list[int] = []
        self._matrix: Vectors = np.zeros((0, 0), dtype=np.float32)
        #: The numbers and their rows, once they were searched.
        self._order: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def put(self, keys: Sequence[int], vectors: NDArray[np.floating]) -> None:
        """Add vectors by number, replacing those that exist."""
        for key in keys:
            if key not in self._rows:
                self._rows[key] = self._free.pop() if self._free else len(self._rows)
        # In place, so that there never are two copies of all.
        size = len(self._rows) + len(self._free), vectors.shape[1]
        self._matrix.resize(size, refcheck=False)
        self._matrix[[self._rows[key] for key in keys]] = vectors
        self._order = None

    def drop(self, keys: Iterable[int]) -> None:
        """Remove vectors; unknown numbers are ignored."""
        self._free += [self._rows.pop(key) for key in keys if key in self._rows]
        self._order = None

    def cosines(self, query: Vectors) -> Scored:
        """Return all numbers, and the cosine of each with the query."""
        return self.candidates(query, len(self))

    def candidates(self, query: Vectors, most: int, found: Scored = _NONE) -> Scored:
        """Return at least the `most` nearest, the furthest, and the `most` best of `found`.

        These are numbers of the table. Here all are returned.
        """
        if not self._rows:
            return _NONE
        if self._order is None:
            self._order = np.array([list(self._rows), list(self._rows.values())])
        keys, rows = self._order
        return keys, _cosines(self._matrix, query)[rows].round(DECIMALS)


def _cosines(matrix: Vectors, query: Vectors) -> NDArray[np.float64]:
    # In one thread: BLAS's threads spin while they wait, and beside a busy processor `@` took
    # twice as long.
    found: NDArray[np.float64] = np.vecdot(matrix, query).astype(np.float64)
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

    def candidates(self, query: Vectors, most: int, found: Scored = _NONE) -> Scored:
        if not self._rows:
            return _NONE
        index = self._settle()
        asked = np.ascontiguousarray(query, dtype=np.float32)[np.newaxis]
        lists = index.nlist if most >= len(self) else max(1, index.nlist // READ_SHARE)
        how = self._faiss.SearchParametersIVF(nprobe=lists)
        cosines, keys = index.search(asked, min(most, len(self)), params=how)
        furthest = index.search(-asked, 1, params=how)[1]
        # Those found otherwise, and the furthest, are compared by their vectors.
        others = found[0]
        if len(others) > most:
            others = others[np.argpartition(-found[1], most)[:most]]
        rest = np.setdiff1d(np.append(furthest[0], others), keys[0]).astype(np.int64)
        rest = rest[rest >= 0]
        compared = _cosines(index.reconstruct_batch(rest), asked[0])
        near = np.append(keys[0], rest), np.append(cosines[0].astype(np.float64), compared)
        # A list that is nearly empty is filled up with -1.
        kept = near[0] >= 0
        return near[0][kept], near[1][kept].round(DECIMALS)

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


INDEXES: Mapping[str, type[VectorTable]] = {DEFAULT_INDEX: VectorTable, "faiss": FaissTable}


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
    # Mostly a few are wanted: the rest is sorted, and equals by id, where the reader gets to them.
    least = np.partition(scores, -FIRST)[-FIRST] if len(scores) > FIRST else -math.inf
    parts = map(np.flatnonzero, (scores >= least, scores < least))
    rows = itertools.chain.from_iterable(some[np.argsort(-scores[some])] for some in parts)
    groups = itertools.groupby(rows, scores.__getitem__)
    named = (sorted((ids[int(keys[row])], row) for row in equals) for _, equals in groups)
    for text_id, row in itertools.islice(itertools.chain.from_iterable(named), int(left)):
        yield Match(text_id, float(scores[row]), float(semantic[row]), float(lexical[row]))
