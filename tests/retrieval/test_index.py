"""Dense and lexical search, and their fusion."""

from __future__ import annotations

import itertools
import math
import random
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hashed_words import HashedWords
from hypothesis import given, settings
from hypothesis import strategies as st

from reasoningbank.errors import UsageError
from reasoningbank.retrieval import (
    WEIGHTS,
    Embedder,
    Match,
    VectorTable,
    WordIndex,
    best_first,
    index,
    open_embedder,
)
from reasoningbank.retrieval.index import MOST_TERMS, indexed, query_terms

ENGLISH = {
    "disease": "Proteins that are associated with a disease",
    "taxon": "Find the rank of a taxon and its parents",
    "mass": "Molecular mass of a sequence in daltons",
    "location": "Where in the cell a protein is found",
}


def search(
    texts: dict[str, str],
    query: str,
    k: int,
    weights: tuple[float, float] = WEIGHTS,
    embedder: Embedder | None = None,
) -> list[Match]:
    embedder, table = embedder or HashedWords(), VectorTable()
    table.put(range(1, len(texts) + 1), embedder.passages(list(texts.values())))
    cosines = table.cosines(embedder.queries([query])[0])
    lexical_scores = words_of(*texts.values()).scores(query)
    ranked = best_first(dict(enumerate(texts, 1)), cosines, lexical_scores, weights)
    return list(itertools.islice(ranked, k))


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("Quali proteine sono legate a una malattia?", "disease"),
        ("classificazione tassonomica di una specie", "taxon"),
        ("how heavy is it", "mass"),
        ("compartimento cellulare", "location"),
    ],
)
def test_meaning_finds_what_no_word_does(query: str, wanted: str) -> None:
    assert search(ENGLISH, query, 4, embedder=open_embedder())[0].id == wanted


def test_scores_lie_between_0_and_1_and_fall() -> None:
    matches = search(ENGLISH, "mass of a sequence", 10)
    assert matches[0].id == "mass"
    assert len(matches) == 4
    for match in matches:
        assert 0 <= match.semantic <= 1
        assert 0 <= match.lexical <= 1
        assert match.score == pytest.approx(0.6 * match.semantic + 0.4 * match.lexical, abs=1e-5)
    assert all(a.score >= b.score for a, b in itertools.pairwise(matches))
    assert matches[0].semantic == 1


@pytest.mark.parametrize("weights", [(0, 0), (-1, 1), (2, -1), (math.nan, 1), (math.inf, 1)])
def test_weights_that_weigh_nothing_are_refused(weights: tuple[float, float]) -> None:
    with pytest.raises(UsageError) as caught:
        search(ENGLISH, "mass", 3, weights=weights)
    assert caught.value.code == "bad-weights"


def test_a_query_without_a_known_word_is_ranked_by_meaning_alone() -> None:
    matches = search(ENGLISH, "diseas proteinz", 4)
    assert {match.lexical for match in matches} == {0}
    assert matches[0].id == "disease"


def test_one_part_may_be_left_out() -> None:
    texts = {"a": "zebra crossing", "b": "zebras", "c": "nothing"}
    by_words = search(texts, "zebra", 5, weights=(0, 1))
    assert [match.id for match in by_words] == ["a"]
    assert by_words[0].score == pytest.approx(by_words[0].lexical, abs=1e-5)
    by_meaning = search(texts, "zebra", 5, weights=(2, 0))
    assert len(by_meaning) == 3
    assert [match.score for match in by_meaning] == pytest.approx([m.semantic for m in by_meaning])
    assert not search(texts, "unknown", 5, weights=(0, 1))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9)), max_size=40))
def test_a_vector_table_is_like_a_dictionary(steps: list[tuple[bool, int]]) -> None:
    table, plain = VectorTable(), dict[int, float]()
    for number, (put, key) in enumerate(steps):
        if put:
            table.put([key], np.array([[number, 1.0]], dtype=np.float32))
            plain[key] = number
        else:
            table.drop([key])
            plain.pop(key, None)
        assert len(table) == len(plain)
    keys, values = table.cosines(np.array([1, 0], dtype=np.float32))
    assert dict(zip(keys.tolist(), values.tolist(), strict=True)) == plain


def test_a_table_is_never_in_memory_twice() -> None:
    code = """
import resource
import numpy as np
from reasoningbank.retrieval import VectorTable
part, table = np.ones((2_000, 384), dtype=np.float16), VectorTable()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for first in range(0, 60_000, 2_000):
    table.put(range(first, first + 2_000), part)
assert len(table.cosines(np.ones(384, dtype=np.float32))[0]) == 60_000
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(ran.stdout) < 1.5 * 60_000 * 384 * 4 / 1024


def test_equals_come_by_id_however_many() -> None:
    keys = np.arange(1_000)
    ids = {int(key): f"{999 - key:04}" for key in keys}
    none = (np.zeros(0, dtype=np.int64), np.zeros(0))
    ranked = list(best_first(ids, (keys, np.full(1_000, 0.8)), none))
    assert [match.id for match in ranked] == sorted(ids.values())
    assert ranked[0] == Match("0000", 0.6, 1.0, 0.0)


ANY_TEXT = st.one_of(
    st.text(max_size=60),
    st.text(alphabet="\"'*():^-+{}AND OR NOT NEAR a1\0é\ud800", max_size=30),
)


def words_of(*texts: str) -> WordIndex:
    index = WordIndex(sqlite3.connect(":memory:"))
    index.add(enumerate(texts, 1))
    return index


def found(index: WordIndex, query: str) -> dict[int, float]:
    keys, scores = index.scores(query)
    assert keys.tolist() == sorted(keys.tolist())
    return dict(zip(keys.tolist(), scores.tolist(), strict=True))


SOME_TEXT = st.text(alphabet="ab cé", max_size=12)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 6), st.none() | SOME_TEXT), max_size=12), SOME_TEXT)
def test_what_is_kept_of_words_follows_every_change(
    steps: list[tuple[int, str | None]], query: str
) -> None:
    """Asking between changes, so that something is kept, makes no difference."""
    kept, texts = words_of(), dict[int, str]()
    for key, text in steps:
        if text is None:
            kept.remove([key])
            texts.pop(key, None)
        else:
            kept.add([(key, text)])
            texts[key] = text
        fresh = WordIndex(sqlite3.connect(":memory:"))
        fresh.add(texts.items())
        assert found(kept, query) == found(fresh, query)


def test_a_change_reads_only_what_changed() -> None:
    index = words_of(*(f"common word{number}" for number in range(1_000)))
    found(index, "common")
    asked: list[str] = []
    index._database.set_trace_callback(asked.append)
    index.add([(1_001, "common new")])
    asked.clear()
    assert len(found(index, "common")) == 1_001
    assert [one for one in asked if "docsize WHERE id = 1001" in one]
    assert not [one for one in asked if "words_places" in one or one.endswith("words_docsize")]


@settings(max_examples=300, deadline=None)
@given(st.lists(ANY_TEXT, max_size=4), ANY_TEXT)
def test_any_text_may_be_kept_and_asked(texts: list[str], query: str) -> None:
    scores = found(words_of(*texts), query)
    assert all(0 < score <= 1 for score in scores.values())
    assert scores.keys() <= set(range(1, len(texts) + 1))


def test_every_letter_finds_itself() -> None:
    """However SQLite parts words and folds letters, a query must do the same."""
    letters = [letter for letter in map(chr, range(0x30000)) if letter.isalnum()]
    index = WordIndex(sqlite3.connect(":memory:"))
    for every in (
        letters[::61],
        [
            "ΐ",
            "가",
            "İ",
            "ß",
            "Ǣ",
            "\u0b3a",
            "½",
            "𝔸",
            *map(chr, (0xB5, 0x17F, 0x3C2, 0xF43, 0x19B0)),
        ],
    ):
        index.add((number, f"zz{letter}qq") for number, letter in enumerate(every, 1))
        for number, letter in enumerate(every, 1):
            assert number in found(index, f"zz{letter}qq"), hex(ord(letter))


@pytest.mark.parametrize(
    "query", ["", " ", "?!", '"', "''", "*", "NEAR(", "a:b", "-", "^", "\0", "{x} +y"]
)
def test_nothing_in_a_query_is_an_operator(query: str) -> None:
    assert found(words_of("nothing of that kind"), query) == {}


def test_operators_are_words() -> None:
    index = words_of("cats and dogs", "cats or dogs", "neither")
    assert found(index, "AND").keys() == {1}
    assert found(index, "NOT dogs").keys() == {1, 2}
    assert found(index, 'cats" OR "1').keys() == {1, 2}


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Attività enzimatica", "attivita"),
        ("attivita", "ATTIVITÀ"),
        ("e\u0301ta\u0300", "étà"),
        ("up:Disease_Annotation", "disease"),
        ("up:Disease_Annotation", "annotation of diseases"),
        ("up:encodedBy", "encoded"),
        ("the gene that it is encoded by", "up:encodedBy"),
        ("RDFType", "type"),
        ("uses P05067", "p05067"),
        ("enzyme 2.7.11.1", "ec:2.7.11.1"),
        ("Δ-like protein", "δ"),
        ("蛋白质", "蛋白质"),
        ("단백질", "단백질"),
        ("ένζυμο", "ΕΝΖΥΜΟ"),
    ],
)
def test_accents_case_and_joints_do_not_matter(text: str, query: str) -> None:
    assert found(words_of("unrelated", text), query).keys() == {2}


def test_an_accession_is_one_word() -> None:
    assert indexed("P05067 sha256") == "p05067 sha256"
    assert query_terms("P05067") == ["p05067"]


def test_a_long_query_is_cut_in_words_not_refused() -> None:
    assert len(query_terms(" ".join(f"w{number}" for number in range(10_000)))) == MOST_TERMS


def plain_bm25(texts: list[list[str]], query: list[str]) -> list[float]:
    """BM25 as Robertson and Zaragoza (2009) define it, weights of words as Lucene has them."""
    mean = sum(map(len, texts)) / len(texts)
    weights = {}
    for word in dict.fromkeys(query):
        holding = sum(word in text for text in texts)
        weights[word] = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
    scores = []
    for text in texts:
        counts = Counter(text)
        score = sum(
            weight * counts[w] * 2.2 / (counts[w] + 1.2 * (0.25 + 0.75 * len(text) / mean))
            for w, weight in weights.items()
        )
        scores.append(min(1.0, score / sum(weights.values())))
    return scores


@pytest.mark.parametrize("seed", range(20))
def test_scores_are_bm25(seed: int) -> None:
    dice = random.Random(seed)
    words = [f"w{number}" for number in range(12)]
    texts = [dice.choices(words, k=dice.randint(1, 15)) for _ in range(dice.randint(1, 30))]
    query = [*dice.choices(words, k=dice.randint(1, 5)), *(["unknown"] if seed % 2 else [])]
    scores = found(words_of(*map(" ".join, texts)), " ".join(query))
    wanted = plain_bm25(texts, query)
    assert scores.keys() == {key for key, score in enumerate(wanted, 1) if score > 0}
    for key, score in scores.items():
        assert score == pytest.approx(wanted[key - 1], abs=1e-6)


def test_chance_hits_of_another_language_weigh_little() -> None:
    index = words_of(
        "Proteins in a membrane",
        "Use in queries per organism",
        *(f"Enzymes in pathway {number}" for number in range(50)),
    )
    italian = found(
        index, "In quali compartimenti si trovano le proteine associate a una malattia?"
    )
    assert max(italian.values()) < 0.15
    assert found(index, "proteins membrane")[1] > 0.8


def test_texts_are_replaced_and_removed() -> None:
    index = words_of("one oak", "two oaks")
    index.add([(1, "one pine")])
    assert found(index, "oak") == {}
    assert found(index, "pine").keys() == {1}
    index.remove([1, 7])
    assert found(index, "one pine two").keys() == {2}


def test_forgetting_postings_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"common w{number % 7} w{number % 5}" for number in range(60)]
    queries = ["common w1", "w2 w3 common", "w6", "common w1"]
    roomy = [found(words_of(*texts), query) for query in queries]
    monkeypatch.setattr(index, "MOST_POSTINGS", 30)
    tight = words_of(*texts)
    assert [found(tight, query) for query in queries] == roomy
    assert sum(len(keys) for keys, _ in tight._postings.values()) <= 60


ROOT = Path(__file__).parents[2]


def test_a_bank_and_a_loop_find_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import retrieval

    taken = retrieval._make(tmp_path, 300)
    ways = {way: retrieval._process(way, tmp_path) for way in ("bank", "loop")}
    assert ways["bank"].keys() == ways["loop"].keys()
    assert ways["bank"]["nearest"] == ways["loop"]["nearest"] > 0
    for numbers in (taken, *(way.values() for way in ways.values())):
        assert all(number >= 0 for number in numbers)
