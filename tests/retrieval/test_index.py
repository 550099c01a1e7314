"""The hybrid index: what is found, in which order, and that it depends on the texts alone."""

from __future__ import annotations

import itertools
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hashed_words import HashedWords
from hypothesis import given, settings
from hypothesis import strategies as st

from reasoningbank.errors import UsageError
from reasoningbank.retrieval import Match, TextIndex, VectorTable, best_first, open_embedder

ENGLISH = {
    "disease": "Proteins that are associated with a disease",
    "taxon": "Find the rank of a taxon and its parents",
    "mass": "Molecular mass of a sequence in daltons",
    "location": "Where in the cell a protein is found",
}


def index_of(texts: dict[str, str]) -> TextIndex:
    index = TextIndex(HashedWords())
    index.add(list(texts), list(texts.values()))
    return index


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
    index = TextIndex(open_embedder())
    index.add(list(ENGLISH), list(ENGLISH.values()))
    assert index.search(query, 4)[0].id == wanted


def test_scores_lie_between_0_and_1_and_fall() -> None:
    matches = index_of(ENGLISH).search("mass of a sequence", 10)
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
        index_of(ENGLISH).search("mass", 3, weights=weights)
    assert caught.value.code == "bad-weights"


def test_a_query_without_a_known_word_is_ranked_by_meaning_alone() -> None:
    matches = index_of(ENGLISH).search("diseas proteinz", 4)
    assert {match.lexical for match in matches} == {0}
    assert matches[0].id == "disease"


def test_one_part_may_be_left_out() -> None:
    index = index_of({"a": "zebra crossing", "b": "zebras", "c": "nothing"})
    by_words = index.search("zebra", 5, weights=(0, 1))
    assert [match.id for match in by_words] == ["a"]
    assert by_words[0].score == pytest.approx(by_words[0].lexical, abs=1e-5)
    by_meaning = index.search("zebra", 5, weights=(2, 0))
    assert len(by_meaning) == 3
    assert [match.score for match in by_meaning] == pytest.approx([m.semantic for m in by_meaning])
    assert not index.search("unknown", 5, weights=(0, 1))


def test_nothing_is_found_where_nothing_is() -> None:
    assert TextIndex(HashedWords()).search("x", 3) == []
    index = index_of(ENGLISH)
    assert index.search(" ", 3) == index.search("x", 0) == []
    index.remove([*ENGLISH, "never there"])
    assert (len(index), index.search("disease", 3)) == (0, [])


def test_a_text_takes_the_place_of_another() -> None:
    index = index_of(ENGLISH)
    index.add(["mass"], ["Pathways"])
    assert len(index) == 4
    assert "mass" in index
    assert index.search("pathways", 1)[0].id == "mass"
    index.remove(["mass"])
    assert "mass" not in [match.id for match in index.search("pathways", 9)]
    assert "mass" not in index


@pytest.mark.parametrize(("ids", "texts"), [(["a"], []), (["a", "a"], ["x", "y"])])
def test_ids_that_do_not_fit_are_refused(ids: list[str], texts: list[str]) -> None:
    with pytest.raises(UsageError, match="ids"):
        TextIndex(HashedWords()).add(ids, texts)


def test_keep_is_asked_until_there_are_enough() -> None:
    index = index_of({f"{number:03}": f"text number {number}" for number in range(500)})
    everything = [match.id for match in index.search("text number 7", 500)]
    assert len(set(everything)) == 500
    for least in (0, 100, 400):
        allowed = set(everything[least:])
        kept = index.search("text number 7", 5, keep=allowed.__contains__)
        assert [match.id for match in kept] == everything[least : least + 5]
    assert index.search("text", 5, keep=lambda _: False) == []


WORDS = st.lists(
    st.sampled_from(["oak", "pine", "ash", "moss", "fern", "tree"]), min_size=1, max_size=4
).map(" ".join)


@settings(max_examples=60, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=12), WORDS, st.randoms(), st.integers(1, 12))
def test_the_order_of_coming_in_does_not_matter(
    texts: list[str], query: str, dice: object, k: int
) -> None:
    entries = [(f"id{number}", text) for number, text in enumerate(texts)]
    shuffled = entries[:]
    dice.shuffle(shuffled)  # type: ignore[attr-defined]
    later = TextIndex(HashedWords())
    for one, text in shuffled:
        later.add([one, "passing"], [text, "oak pine passing"])
    later.remove(["passing"])
    assert index_of(dict(entries)).search(query, k) == later.search(query, k)


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
        assert (key in table) == (key in plain)
    keys, values = table.cosines(np.array([1, 0], dtype=np.float32))
    assert dict(zip(keys.tolist(), values.tolist(), strict=True)) == plain
    assert keys.tolist() == sorted(plain)


def test_equals_come_by_id_however_many() -> None:
    keys = np.arange(1_000)
    ids = {int(key): f"{999 - key:04}" for key in keys}
    none = (np.zeros(0, dtype=np.int64), np.zeros(0))
    ranked = list(best_first(ids, (keys, np.full(1_000, 0.8)), none))
    assert [match.id for match in ranked] == sorted(ids.values())
    assert ranked[0] == Match("0000", 0.6, 1.0, 0.0)


def test_threads_may_search_while_others_add() -> None:
    index = index_of(ENGLISH)

    def work(number: int) -> str:
        index.add([f"new{number}"], [f"unheard-of word{number}"])
        found = index.search(f"word{number}", 1)[0].id
        if number % 3 == 0:
            index.remove([f"new{number}"])
        return found

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(60))) == [f"new{number}" for number in range(60)]
    assert len(index) == 4 + 40
