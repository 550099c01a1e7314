"""Comparing graphs."""

import random
import time

import pytest

from reasoningbank.judge import Answer, Window, compare

Triples = list[tuple[str, str, str]]
P, Q, A = "<http://e/p>", "<http://e/q>", "<http://e/a>"


def renamed(triples: Triples, seed: int = 0) -> Triples:
    """Give blank nodes other labels, and triples another order."""
    rng = random.Random(seed)
    labels = sorted({term for triple in triples for term in triple if term.startswith("_:")})
    new = dict(
        zip(labels, [f"_:n{i}" for i in rng.sample(range(len(labels)), len(labels))], strict=True)
    )
    moved = [tuple(new.get(term, term) for term in triple) for triple in triples]
    return rng.sample(moved, len(moved))  # type: ignore[arg-type]


def strict(one: Triples, other: Triples) -> bool:
    found = compare(Answer.of_triples(one), Answer.of_triples(other))
    back = compare(Answer.of_triples(other), Answer.of_triples(one))
    assert found.strict == back.strict
    return found.strict


def cycle(*sizes: int) -> Triples:
    triples, base = [], 0
    for size in sizes:
        triples += [(f"_:b{base + i}", P, f"_:b{base + (i + 1) % size}") for i in range(size)]
        base += size
    return triples


def test_graphs_without_blank_nodes_are_sets() -> None:
    one = [(A, P, "1"), (A, Q, '"x"@EN')]
    assert strict(one, [(A, Q, '"x"@en'), (A, P, "1.0"), (A, P, "1.0")])
    found = compare(Answer.of_triples(one), Answer.of_triples([(A, P, "1"), (A, P, "2")]))
    assert (found.strict, found.precision, found.recall, found.f1) == (False, 0.5, 0.5, 0.5)
    missing, extra = found.findings
    assert (missing.code, dict(missing.fields)) == (
        "rows-missing",
        {"missing": 1, "of": 2, "unit": "triples"},
    )
    assert (extra.code, dict(extra.fields)) == (
        "rows-extra",
        {"extra": 1, "of": 2, "unit": "triples"},
    )


def test_subject_and_object_are_no_columns_to_be_swapped() -> None:
    b = "<http://e/b>"
    assert not strict([(A, P, b)], [(b, P, A)])


@pytest.mark.parametrize(
    "triples",
    [
        [("_:x", P, "1"), ("_:x", Q, "2"), ("_:y", P, "1")],
        cycle(6),
        cycle(3, 3),
        cycle(100),
        [(A, P, f"_:m{i}") for i in range(150)] + [(f"_:m{i}", Q, f"_:l{i}") for i in range(150)],
        [("_:r", P, f"_:c{i}") for i in range(12)],
    ],
)
def test_other_labels_are_the_same_graph(triples: Triples) -> None:
    assert strict(triples, renamed(triples))


def test_equal_signatures_are_not_enough() -> None:
    # No walk outward from a node tells one ring of six from two rings of three.
    assert not strict(cycle(6), cycle(3, 3))
    assert strict(cycle(3, 3), renamed(cycle(3, 3)))


def test_blank_nodes_that_are_merged_or_split_are_noticed() -> None:
    one = [("_:x", P, "1"), ("_:x", Q, "2"), ("_:y", P, "3"), ("_:y", Q, "4")]
    crossed = [("_:x", P, "1"), ("_:x", Q, "4"), ("_:y", P, "3"), ("_:y", Q, "2")]
    found = compare(Answer.of_triples(one), Answer.of_triples(crossed))
    assert (found.strict, found.f1) == (False, 1.0)
    assert [finding.code for finding in found.findings] == ["blank-nodes-differ"]


def test_triple_f1_stands_beside_isomorphism() -> None:
    one = [("_:x", P, "1"), ("_:x", Q, "2"), ("_:y", P, "3"), ("_:y", Q, "4")]
    found = compare(Answer.of_triples(one), Answer.of_triples(renamed(one)[:3]))
    assert (found.strict, found.precision, found.recall) == (False, 1.0, 0.75)


def test_many_blank_nodes_alike_are_compared_in_time() -> None:
    triples = [(f"_:b{i}", P, A) for i in range(20_000)]
    began = time.monotonic()
    assert strict(triples, renamed(triples))
    assert not strict(triples, renamed(triples[1:]))
    assert strict(cycle(3_000), renamed(cycle(3_000)))
    assert time.monotonic() - began < 20


def test_empty_graphs() -> None:
    assert strict([], [])
    assert not strict([], [(A, P, A)])


def test_a_limit_takes_any_right_triples_of_the_right_number() -> None:
    whole = Answer.of_triples([(A, P, str(i)) for i in range(5)] + [("_:x", Q, "1")])
    window = Window(0, 2, ())
    assert compare(whole, Answer.of_triples([(A, P, "3"), ("_:k", Q, "1")]), window=window).strict
    assert not compare(whole, Answer.of_triples([(A, P, "3")]), window=window).strict
    assert not compare(whole, Answer.of_triples([(A, P, "3"), (A, P, "7")]), window=window).strict
