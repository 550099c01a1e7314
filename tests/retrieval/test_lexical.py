"""The word index: BM25 as it is defined, any text as query, accents, identifiers."""

from __future__ import annotations

import math
import random
import sqlite3
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasoningbank.retrieval import WordIndex, lexical
from reasoningbank.retrieval.lexical import MOST_TERMS, indexed, query_terms

ANY_TEXT = st.one_of(
    st.text(max_size=60),
    st.text(alphabet="\"'*():^-+{}AND OR NOT NEAR a1\0é\ud800", max_size=30),
)


def index_of(*texts: str) -> WordIndex:
    index = WordIndex(sqlite3.connect(":memory:"))
    index.add(enumerate(texts, 1))
    return index


def found(index: WordIndex, query: str) -> dict[int, float]:
    keys, scores = index.scores(query)
    assert keys.tolist() == sorted(keys.tolist())
    return dict(zip(keys.tolist(), scores.tolist(), strict=True))


@settings(max_examples=300, deadline=None)
@given(st.lists(ANY_TEXT, max_size=4), ANY_TEXT)
def test_any_text_may_be_kept_and_asked(texts: list[str], query: str) -> None:
    scores = found(index_of(*texts), query)
    assert all(0 < score <= 1 for score in scores.values())
    assert scores.keys() <= set(range(1, len(texts) + 1))


def test_every_letter_finds_itself() -> None:
    """However SQLite parts words and folds letters, a query must do the same."""
    letters = [letter for letter in map(chr, range(0x30000)) if letter.isalnum()]
    index = WordIndex(sqlite3.connect(":memory:"))
    for every in (letters[::61], ["ΐ", "가", "İ", "ß", "Ǣ", "\u0b3a", "½", "𝔸"]):
        index.add((number, f"zz{letter}qq") for number, letter in enumerate(every, 1))
        for number, letter in enumerate(every, 1):
            assert number in found(index, f"zz{letter}qq"), hex(ord(letter))


@pytest.mark.parametrize(
    "query", ["", " ", "?!", '"', "''", "*", "NEAR(", "a:b", "-", "^", "\0", "{x} +y"]
)
def test_nothing_in_a_query_is_an_operator(query: str) -> None:
    assert found(index_of("nothing of that kind"), query) == {}


def test_operators_are_words() -> None:
    index = index_of("cats and dogs", "cats or dogs", "neither")
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
    assert found(index_of("unrelated", text), query).keys() == {2}


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
    scores = found(index_of(*map(" ".join, texts)), " ".join(query))
    wanted = plain_bm25(texts, query)
    assert scores.keys() == {key for key, score in enumerate(wanted, 1) if score > 0}
    for key, score in scores.items():
        assert score == pytest.approx(wanted[key - 1], abs=1e-6)


def test_chance_hits_of_another_language_weigh_little() -> None:
    index = index_of(
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
    index = index_of("one oak", "two oaks")
    index.add([(1, "one pine")])
    assert found(index, "oak") == {}
    assert found(index, "pine").keys() == {1}
    index.remove([1, 7])
    assert found(index, "one pine two").keys() == {2}


def test_forgetting_postings_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"common w{number % 7} w{number % 5}" for number in range(60)]
    queries = ["common w1", "w2 w3 common", "w6", "common w1"]
    roomy = [found(index_of(*texts), query) for query in queries]
    monkeypatch.setattr(lexical, "MOST_POSTINGS", 30)
    tight = index_of(*texts)
    assert [found(tight, query) for query in queries] == roomy
    assert sum(len(keys) for keys, _ in tight._postings.values()) <= 60
