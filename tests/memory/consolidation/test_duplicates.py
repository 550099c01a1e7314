"""What is merged, into which, and what is left alone."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from reasoningbank.memory import Counters, ItemSource, MemoryItem, Scope, Turn, consolidate
from reasoningbank.memory.consolidate import DuplicateMerge, DuplicateRule, duplicates

from .items import HERE, MASS, item, seen


class Apart(DuplicateRule):
    def cosines(self, item: MemoryItem, others: Sequence[MemoryItem]) -> list[float]:
        return [0.0] * len(others)


class Alike(DuplicateRule):
    def cosines(self, item: MemoryItem, others: Sequence[MemoryItem]) -> list[float]:
        return [1.0] * len(others)


BY_PATTERN = Apart()
BY_WORDS = Alike()
RENAMED = "SELECT ?x WHERE { ?x up:mass <<weight>> . }"
TURNED = "SELECT ?p { ?p up:mass ?m ; up:name <<name>> }"
TURNED_ROUND = "SELECT ?p { ?p up:name <<name>> ; up:mass ?m }"


def ids(merges: list[DuplicateMerge]) -> list[tuple[str, list[str]]]:
    return [(merge.kept.id, [gone.id for gone in merge.gone]) for merge in merges]


def test_the_same_pattern_is_the_same_and_the_better_evidenced_stays() -> None:
    weak = item("weak", tasks=seen("t1"), counters=Counters(retrieved=2, hurt=1), tags=("a", "b"))
    strong = item(
        "strong", pattern=RENAMED, tasks=seen("t2", "t3"), counters=Counters(3, 2, 1), tags=("b",)
    )
    for order in itertools.permutations((weak, strong, item("other", pattern=TURNED))):
        (merge,) = duplicates(order, BY_PATTERN)
        assert (merge.kept.id, merge.gone) == (strong.id, (weak,))
        assert merge.reasons == ("the same pattern",)
        assert [origin.task for origin in merge.kept.origins] == ["t2", "t3", "t1"]
        assert merge.kept.counters == Counters(3, 2, 1, 0, 1)
        assert merge.kept.tags == ("b", "a")


def test_a_query_without_a_pattern_says_what_an_item_is_about() -> None:
    one, two = (replace(item("a", pattern=""), query=query) for query in (MASS, TURNED))
    assert not duplicates((one, two), BY_WORDS)
    (merge,) = duplicates((one, replace(one, title="Another", query=RENAMED)), BY_PATTERN)
    assert merge.reasons == ("the same pattern",)


@pytest.mark.parametrize(
    "other",
    [
        item("b", src="gold"),
        item("b", scope=Scope("liita", "http://e/sparql")),
        item("b", scope=Scope("uniprot")),
        item("b", pattern=TURNED),
        item("b", pattern="SELECT (COUNT(?protein) AS ?n) { ?protein up:mass <<mass>> }"),
        item("b", pattern=""),
    ],
)
def test_near_words_do_not_join_what_differs_otherwise(other: MemoryItem) -> None:
    assert duplicates([item("a"), other], BY_WORDS) == []


def test_the_order_of_triples_does_not_count() -> None:
    (merge,) = duplicates([item("a", pattern=TURNED), item("b", pattern=TURNED_ROUND)], BY_PATTERN)
    assert merge.reasons == ("the same pattern",)


def test_near_words_join_what_names_the_same() -> None:
    pair = [item(t, "failure", "", content=f"{t}: not up:mass!") for t in ("a", "b")]
    (merge,) = duplicates(pair, BY_WORDS)
    assert merge.reasons == ("the same names in similar words, cosine 1.000",)
    assert duplicates(pair, BY_PATTERN) == []
    other = item("c", "failure", "", content="c: not up:weight!")
    assert duplicates([pair[0], other], BY_WORDS) == []


def test_the_same_content_is_the_same_whatever_the_question_was() -> None:
    pair = [
        item("Names", src="failure", pattern="", content="No up:x.\n Sign: no rows.", tasks=seen(t))
        for t in ("t1", "t2")
    ]
    pair[1] = replace(pair[1], description="Asked otherwise", content="No up:x. Sign: no rows.")
    (merge,) = duplicates(pair, BY_PATTERN)
    assert merge.reasons == ("the same content",)
    assert duplicates([replace(one, content="", pattern=TURNED) for one in pair], BY_PATTERN) == []


def test_failures_of_one_pattern_may_warn_of_different_things() -> None:
    pair = [item("a", src="failure"), item("b", src="failure")]
    assert duplicates(pair, BY_PATTERN) == []
    assert len(duplicates(pair, BY_WORDS)) == 1


@pytest.mark.parametrize("best", range(4))
def test_the_choice_is_by_evidence_then_turns_then_age_then_id(best: int) -> None:
    plain = item("plain", tasks=(replace(seen("t1")[0], time="2026-02-01"),))
    better = [
        replace(plain, title="certain", evidence=seen("t2")),
        replace(plain, title="helped", counters=Counters(helped=1)),
        replace(plain, title="with turns", turns=(Turn("look", "x = 1"),)),
        replace(plain, title="older", provenance=replace(plain.provenance, time="2026-01-01")),
    ][best]
    opinions = replace(plain, title="opinions", provenance=seen("t1", judge="lm:local")[0])
    opinions = replace(opinions, evidence=seen("t2", "t3", judge="lm:local"))
    (merge,) = duplicates([plain, better, opinions], BY_PATTERN)
    assert merge.kept.id == better.id
    assert {gone.id for gone in merge.gone} == {plain.id, opinions.id}


def test_nearness_does_not_carry_over() -> None:
    """The middle one is near both ends, which are not near one another."""
    low, middle, high = (item(t, "failure", "", content=f"{t}, up:x") for t in "abc")
    low = replace(low, evidence=seen("t1", "t2"))
    high = replace(high, evidence=seen("t3"))

    class Close(DuplicateRule):
        def cosines(self, item: MemoryItem, others: Sequence[MemoryItem]) -> list[float]:
            return [1.0 if middle.id in (item.id, other.id) else 0.0 for other in others]

    (merge,) = duplicates([low, middle, high], Close())
    assert ids([merge]) == [(low.id, [middle.id])]


def test_only_what_is_new_is_compared() -> None:
    old = [item("a"), item("b")]
    assert duplicates(old, BY_PATTERN, new=[]) == []
    new = item("c", tasks=seen("t1", "t2"))
    assert ids(duplicates([*old, new], BY_PATTERN, new=[new.id])) == [
        (new.id, [one.id for one in old])
    ]
    weak = item("d")
    strong = replace(old[0], evidence=seen("t9"))
    (merge,) = duplicates([strong, weak, item("e", pattern=TURNED)], BY_PATTERN, new=[weak.id])
    assert ids([merge]) == [(strong.id, [weak.id])]


@pytest.mark.parametrize("src", ["success", "failure"])
def test_what_differs_is_not_compared(src: ItemSource, monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes a thousand items is not a million comparisons."""
    items = [
        item(f"{n}", src, f"SELECT ?p {{ ?p up:p{n} <<it>> }}" if n % 2 else "", content=f"up:p{n}")
        for n in range(80)
    ]
    read: list[str] = []
    real = consolidate.names_in

    def counted(text: str, prefixes: Mapping[str, str] | None = None) -> frozenset[str]:
        read.append(text)
        return real(text, prefixes)

    monkeypatch.setattr(consolidate, "names_in", counted)
    assert duplicates(items, BY_WORDS) == []
    assert len(read) <= 2 * len(items)


def test_what_remains_has_no_duplicates() -> None:
    patterns = [MASS, RENAMED, TURNED, TURNED_ROUND, ""]
    items = [
        item(f"{src} {n}", src=src, pattern=patterns[n % 5], tasks=seen(*map(str, range(n % 3))))
        for n in range(40)
        for src in ("success", "failure")
    ]
    merges = duplicates(items, BY_WORDS)
    gone = {one.id for merge in merges for one in merge.gone}
    assert gone
    left = {one.id: one for one in items if one.id not in gone}
    left.update((merge.kept.id, merge.kept) for merge in merges)
    assert duplicates(list(left.values()), BY_WORDS) == []
    assert all(one.scope == HERE for one in left.values())
