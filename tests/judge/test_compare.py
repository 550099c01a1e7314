"""Comparing answers: tables and graphs."""

import random
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise, permutations, product
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from work import calls

from reasoningbank.judge import Answer, Comparison, Window, compare

A, B, C, D = (f"<http://e/{name}>" for name in "abcd")


def table(names: str, *rows: Sequence[str | None]) -> Answer:
    return Answer.of_rows(names.split(), rows)


def codes(found: Comparison) -> dict[str, dict[str, object]]:
    return {finding.code: dict(finding.fields) for finding in found.findings}


def scores(found: Comparison) -> tuple[bool, float, float, float]:
    return found.strict, found.precision, found.recall, found.f1


# Columns


def test_names_and_order_of_columns_do_not_count() -> None:
    gold = table("protein mass", (A, "10"), (B, "20"))
    found = compare(gold, table("weight p", ("20", B), ("10", A)))
    assert found.strict
    assert found.column_mapping == {"protein": "p", "mass": "weight"}


def test_swapped_names_are_no_hint() -> None:
    gold = table("x y", (A, B), (C, D))
    found = compare(gold, table("y x", (A, B), (C, D)))
    assert found.strict
    assert found.column_mapping == {"x": "y", "y": "x"}


def test_one_mapping_holds_for_all_rows() -> None:
    gold = table("x y", (A, B), (C, D))
    found = compare(gold, table("x y", (A, B), (D, C)))
    assert scores(found) == (False, 0.5, 0.5, 0.5)


def test_columns_with_the_same_values_are_distinguished_by_their_rows() -> None:
    gold = table("x y z", (A, B, "1"), (B, A, "2"), (C, C, "3"))
    found = compare(gold, table("u v w", (B, "1", A), (A, "2", B), (C, "3", C)))
    assert found.strict
    assert found.column_mapping == {"x": "w", "y": "u", "z": "v"}


def test_a_predicted_column_stands_for_one_gold_column_only() -> None:
    gold = table("x y", (A, A), (B, B))
    assert compare(gold, table("x y", (A, A), (B, B))).strict
    found = compare(gold, table("x", (A,), (B,)))
    assert scores(found) == (False, 0.0, 0.0, 0.0)
    assert codes(found) == {"columns-missing": {"missing": 1, "of": 2}}
    assert found.reason == "1 of 2 columns missing"
    assert not compare(gold, table("x y", (A, C), (B, D))).strict


def test_an_extra_column_fails_strictly_and_passes_leniently() -> None:
    gold = table("x", (A,), (B,))
    wider = table("x label", (A, '"a"'), (B, '"b"'))
    found = compare(gold, wider)
    assert (found.match, found.strict, found.lenient, found.f1) == (False, False, True, 1.0)
    assert found.extra_columns == ("label",)
    assert codes(found) == {"columns-extra": {"columns": ["label"]}}
    assert compare(gold, wider, lenient=True).match


def test_an_extra_column_that_multiplies_rows_fails_in_both_readings() -> None:
    gold = table("x", (A,), (B,))
    found = compare(gold, table("x label", (A, '"a"'), (A, '"ä"'), (B, '"b"')), lenient=True)
    assert (found.match, found.strict, found.lenient) == (False, False, False)
    assert (found.precision, found.recall) == (2 / 3, 1.0)


def test_an_extra_column_is_found_among_look_alikes() -> None:
    gold = table("x", (A,), (B,))
    found = compare(gold, table("u v", (C, A), (A, B)))
    assert found.lenient
    assert found.column_mapping == {"x": "v"}


def test_a_column_with_nothing_in_common_spoils_every_row() -> None:
    gold = table("x y", (A, '"a"'), (B, '"b"'))
    found = compare(gold, table("x y", (A, C), (B, D)))
    assert scores(found) == (False, 0.0, 0.0, 0.0)
    assert found.column_mapping["x"] == "x"


def test_wide_tables_are_mapped_in_few_steps() -> None:
    rng = random.Random(1)
    rows = [[rng.choice(["true", "false"]) for _ in range(30)] for _ in range(2_000)]
    order = rng.sample(range(30), 30)
    gold = Answer.of_rows([f"g{i}" for i in range(30)], rows)
    shuffled = [[row[i] for i in order] for row in rng.sample(rows, len(rows))]
    found = []
    predicted = Answer.of_rows([f"p{i}" for i in range(30)], shuffled)
    assert calls(lambda: found.append(compare(gold, predicted))) < 1_000_000
    assert found[0].strict
    assert found[0].column_mapping == {f"g{i}": f"p{order.index(i)}" for i in range(30)}


def test_many_equal_columns_do_not_explode() -> None:
    names = [f"c{i}" for i in range(40)]
    gold = Answer.of_rows(names, [[A] * 40, [B] * 40])
    almost = Answer.of_rows(names, [[A] * 40, [B] * 39 + [C]])
    assert compare(gold, gold).strict
    assert compare(gold, almost).recall == 0.5
    assert calls(lambda: (compare(gold, gold), compare(gold, almost))) < 300_000


# Rows


def test_rows_are_a_set_unless_they_are_a_bag() -> None:
    gold = table("x", (A,), (A,), (B,))
    once = table("x", (A,), (B,))
    assert compare(gold, once).strict
    assert compare(gold, once).n_gold == 2
    found = compare(gold, once, bag=True)
    assert scores(found) == (False, 1.0, 2 / 3, 0.8)
    assert compare(gold, table("x", (B,), (A,), (A,)), bag=True).strict
    assert not compare(gold, table("x", (B,), (B,), (A,)), bag=True).strict


def test_a_distribution_over_cells_is_not_enough() -> None:
    gold = table("x y", (A, "1"), (A, "2"), (B, "1"), (B, "3"))
    other = table("x y", (A, "1"), (A, "3"), (B, "1"), (B, "2"))
    assert scores(compare(gold, other)) == (False, 0.5, 0.5, 0.5)


@pytest.mark.parametrize(
    ("gold", "predicted", "expected"),
    [
        (table("x"), table("y"), (True, 1.0, 1.0, 1.0)),
        (table("x", (A,)), table("x"), (False, 0.0, 0.0, 0.0)),
        (table("x"), table("x", (A,)), (False, 0.0, 0.0, 0.0)),
        (table("x y"), table("x"), (False, 1.0, 1.0, 1.0)),
        (table("x"), table("x y"), (False, 1.0, 1.0, 1.0)),
        (Answer.of_rows([], [[]]), Answer.of_rows([], [[]]), (True, 1.0, 1.0, 1.0)),
    ],
)
def test_empty_answers(
    gold: Answer, predicted: Answer, expected: tuple[bool, float, float, float]
) -> None:
    assert scores(compare(gold, predicted)) == expected


def test_unbound_is_a_value() -> None:
    gold = table("x y", (A, None), (B, "1"))
    assert compare(gold, table("x y", (A, None), (B, "1"))).strict
    assert not compare(gold, table("x y", (A, '""'), (B, "1"))).strict
    assert compare(gold, table("x y", (A, "0"), (B, "1"))).recall == 0.5
    assert compare(table("x y", (A, None)), table("x y", (None, A))).strict


def test_a_single_count() -> None:
    gold = table("n", ("42",))
    assert compare(gold, table("count", ('"42"^^<http://www.w3.org/2001/XMLSchema#int>',))).strict
    assert compare(gold, table("count", ("42.0",))).strict
    assert not compare(gold, table("count", ("43",))).strict
    assert not compare(gold, table("count", ('"42"',))).strict


def test_sums_in_another_order_are_the_same_sum() -> None:
    gold = table("x s", (A, str(0.1 + 0.2 + 0.3)), (B, "1e3"))
    assert compare(gold, table("x s", (A, str(0.3 + 0.2 + 0.1)), (B, "1000"))).strict
    assert not compare(gold, table("x s", (A, "0.60001"), (B, "1000"))).strict


def test_forms_must_agree() -> None:
    found = compare(table("x", (A,)), Answer.of_boolean(True))
    assert scores(found) == (False, 0.0, 0.0, 0.0)
    assert codes(found) == {"form-mismatch": {"gold": "table", "predicted": "boolean"}}


def test_booleans() -> None:
    assert scores(compare(Answer.of_boolean(False), Answer.of_boolean(False)))[0]
    found = compare(Answer.of_boolean(False), Answer.of_boolean(True))
    assert scores(found) == (False, 0.0, 0.0, 0.0)
    assert codes(found) == {"wrong-boolean": {"gold": False}}


# Blank nodes


def test_labels_of_blank_nodes_do_not_count() -> None:
    gold = table("x n", ("_:a", "1"), ("_:b", "2"))
    assert compare(gold, table("x n", ("_:b", "1"), ("_:a", "2"))).strict


def test_blank_nodes_shared_across_rows() -> None:
    gold = table("x n", ("_:a", "1"), ("_:a", "2"), ("_:b", "3"))
    assert compare(gold, table("x n", ("_:q", "2"), ("_:q", "1"), ("_:r", "3"))).strict
    found = compare(gold, table("x n", ("_:q", "1"), ("_:r", "2"), ("_:r", "3")))
    assert not found.strict
    assert codes(found) == {"blank-nodes-differ": {}}
    assert found.f1 == 1.0
    assert not compare(gold, table("x n", ("_:q", "1"), ("_:r", "2"), ("_:s", "3"))).strict


def test_blank_nodes_within_a_row() -> None:
    gold = table("x y", ("_:a", "_:a"), ("_:b", "_:c"))
    assert compare(gold, table("x y", ("_:p", "_:q"), ("_:r", "_:r"))).strict
    assert compare(gold, table("x y", ("_:p", "_:q"), ("_:r", "_:s"))).f1 == 0.5


def test_different_blank_nodes_are_different_rows() -> None:
    gold = table("x", ("_:a",), ("_:b",), ("_:a",))
    assert compare(gold, table("x", ("_:p",), ("_:q",))).strict
    assert not compare(gold, table("x", ("_:p",))).strict
    assert not compare(gold, table("x", ("_:p",), ("_:q",), ("_:r",))).strict


def test_blank_nodes_far_apart_decide() -> None:
    # Two chains of four steps against one of eight: alike nearby, different at the ends.
    def chain(*nodes: str) -> list[tuple[str, str]]:
        return list(pairwise(nodes))

    two = chain(*"abcde") + chain(*"fghij")
    one = chain(*"abcdefghi")
    assert len(two) == len(one)
    found = compare(
        table("x y", *[(f"_:{a}", f"_:{b}") for a, b in two]),
        table("x y", *[(f"_:{a}", f"_:{b}") for a, b in one]),
    )
    assert not found.strict


# Order


def test_order_counts_only_where_it_is_asked_for() -> None:
    gold = table("x", (A,), (B,), (C,))
    turned = table("x", (C,), (B,), (A,))
    assert compare(gold, turned).strict
    found = compare(gold, turned, ordered=True)
    assert scores(found) == (False, 1.0, 1.0, 1.0)
    assert codes(found) == {"wrong-order": {}}
    assert compare(gold, gold, ordered=True).strict


def test_rows_tied_on_the_sort_keys_may_change_places() -> None:
    gold = table("x n", (A, "3"), (B, "2"), (C, "2"), (D, "1"))
    tied = table("n x", ("3", A), ("2.0", C), ("2", B), ("1", D))
    assert compare(gold, tied, ordered=True, window=Window(keys=("n",))).strict
    assert not compare(gold, tied, ordered=True).strict
    wrong = table("n x", ("2", B), ("3", A), ("2", C), ("1", D))
    assert not compare(gold, wrong, ordered=True, window=Window(keys=("n",))).strict


def test_what_nothing_sorts_has_no_order() -> None:
    gold = table("x", (A,), (B,))
    turned = table("x", (B,), (A,))
    assert compare(gold, turned, ordered=True, window=Window(keys=())).strict


def test_the_mapping_that_keeps_the_order_is_found() -> None:
    # As sets both mappings are right; in order only one is.
    gold = table("x y", (A, B), (B, A))
    found = compare(gold, table("x y", (B, A), (A, B)), ordered=True)
    assert found.strict
    assert found.column_mapping == {"x": "y", "y": "x"}


def test_order_of_a_set_is_that_of_first_occurrence() -> None:
    gold = table("x", (A,), (B,), (A,))
    assert compare(gold, table("x", (A,), (B,)), ordered=True).strict
    assert not compare(gold, table("x", (A,), (B,)), ordered=True, bag=True).strict


# LIMIT

WHOLE = table("x n", (A, "3"), (B, "2"), (C, "2"), (D, "1"))


def test_any_right_subset_of_the_right_size() -> None:
    window = Window(0, 2, ())
    assert compare(WHOLE, table("x n", (D, "1"), (B, "2")), window=window).strict
    found = compare(WHOLE, table("x n", (D, "1")), window=window)
    assert scores(found) == (False, 1.0, 0.5, 2 / 3)
    found = compare(WHOLE, table("x n", (D, "1"), (A, "1")), window=window)
    assert scores(found) == (False, 0.5, 0.5, 0.5)
    found = compare(WHOLE, WHOLE, window=window)
    assert scores(found) == (False, 0.5, 1.0, 2 / 3)


def test_ties_at_the_cut() -> None:
    window = Window(0, 2, ("n",))
    for ordered in (False, True):
        assert compare(
            WHOLE, table("x n", (A, "3"), (B, "2")), ordered=ordered, window=window
        ).strict
        assert compare(
            WHOLE, table("x n", (A, "3"), (C, "2")), ordered=ordered, window=window
        ).strict
        # Two of the tied rows instead of the first one.
        assert not compare(
            WHOLE, table("x n", (B, "2"), (C, "2")), ordered=ordered, window=window
        ).strict
    backwards = table("x n", (C, "2"), (A, "3"))
    assert compare(WHOLE, backwards, window=window).strict
    assert not compare(WHOLE, backwards, ordered=True, window=window).strict


def test_offset_and_limit() -> None:
    window = Window(1, 1, ("n",))
    assert compare(WHOLE, table("x n", (C, "2")), window=window).strict
    assert not compare(WHOLE, table("x n", (A, "3")), window=window).strict
    rest = Window(3, None, ("n",))
    assert compare(WHOLE, table("x n", (D, "1")), window=rest).strict


def test_a_limit_beyond_the_end_takes_all() -> None:
    window = Window(0, 9, ())
    assert compare(WHOLE, WHOLE, window=window).strict
    assert not compare(WHOLE, table("x n", (A, "3")), window=window).strict


def test_a_limit_cuts_repeated_rows_or_distinct_ones() -> None:
    whole = table("x", (A,), (A,), (B,), (C,))
    window = Window(0, 3, ())
    assert compare(whole, table("x", (A,), (A,), (B,)), window=window).strict
    assert compare(whole, table("x", (A,), (B,), (C,)), window=window).strict
    assert not compare(whole, table("x", (B,), (B,), (B,)), window=window).strict
    assert not compare(whole, table("x", (A,), (B,)), window=window).strict
    assert compare(whole, table("x", (A,), (A,), (C,)), window=window, bag=True).strict
    assert not compare(whole, table("x", (C,), (A,), (C,)), window=window, bag=True).strict


def test_a_limit_with_a_column_too_many() -> None:
    found = compare(
        WHOLE, table("l x n", ('"b"', B, "2"), ('"d"', D, "1")), window=Window(0, 2, ())
    )
    assert (found.strict, found.lenient) == (False, True)


def test_a_limit_over_blank_nodes() -> None:
    whole = table("x n", ("_:a", "1"), ("_:b", "2"), ("_:c", "3"))
    assert compare(whole, table("x n", ("_:q", "3")), window=Window(0, 1, ())).strict
    assert not compare(whole, table("x n", ("_:q", "4")), window=Window(0, 1, ())).strict


# Size


def test_the_work_grows_with_the_number_of_rows() -> None:
    rng = random.Random(3)

    def steps(n: int) -> int:
        rows = [
            (f"<http://e/p{i}>", f'"name {i % 500}"@en', str(rng.randrange(10**6)), f"_:b{i // 3}")
            for i in range(n)
        ]
        shuffled = [(*row[:3][::-1], f"_:c{row[3][3:]}") for row in rng.sample(rows, len(rows))]
        gold, predicted = table("a b c d", *rows), table("w x y z", *shuffled)
        assert compare(gold, predicted).strict
        return calls(lambda: compare(gold, predicted))

    assert steps(8_000) < 5 * steps(2_000)


def test_one_wrong_row_of_many_is_reported() -> None:
    rows = [(f"<http://e/p{i}>", f'"name {i % 500}"@en', f"_:b{i // 3}") for i in range(10_000)]
    wrong = [*rows[:5], ('"else"', *rows[5][1:]), *rows[6:]]
    found = compare(table("a b c", *rows), table("w x y", *wrong[::-1]))
    assert not found.strict
    assert found.precision == 1 - 1e-4


Cell = str | None
Rows = list[tuple[Cell, ...]]

PLAIN = ["<http://e/a>", "<http://e/b>", "1", '"1"', None]
MIXED = [*PLAIN, "_:x", "_:y", "_:z"]


def tables(cells: list[str | None], width: int, most: int = 5) -> st.SearchStrategy[Rows]:
    row = st.tuples(*[st.sampled_from(cells)] * width)
    return st.lists(row, max_size=most)


def answer(rows: Rows, width: int) -> Answer:
    return Answer.of_rows([f"v{i}" for i in range(width)], rows)


def best_by_force(gold: Rows, predicted: Rows, width: int, wide: int, bag: bool) -> int:
    if not bag:
        gold, predicted = list(dict.fromkeys(gold)), list(dict.fromkeys(predicted))
    wanted = Counter(gold)
    return max(
        (
            (wanted & Counter(tuple(row[c] for c in columns) for row in predicted)).total()
            for columns in permutations(range(wide), width)
        ),
        default=0,
    )


@settings(max_examples=300, deadline=None)
@given(st.data(), st.integers(1, 4), st.integers(1, 4), st.booleans())
def test_most_rows_are_matched(data: st.DataObject, width: int, wide: int, bag: bool) -> None:
    gold = data.draw(tables(PLAIN[:3], width, 8))
    predicted = data.draw(tables(PLAIN[:3], wide, 8))
    found = compare(answer(gold, width), answer(predicted, wide), bag=bag)
    assume(found.n_gold or found.n_predicted)
    right = best_by_force(gold, predicted, width, wide, bag)
    assert round(found.recall * found.n_gold) == right
    assert round(found.precision * found.n_predicted) == right
    whole = right == found.n_gold == found.n_predicted
    assert found.lenient == whole
    assert found.strict == (whole and width == wide)


def same_up_to_labels(gold: Rows, predicted: Rows) -> bool:
    """Whether some renaming of blank nodes and columns makes one set of rows the other."""
    ours, theirs = set(gold), set(predicted)
    labels = sorted({c for row in theirs for c in row if c and c.startswith("_:")})
    names = sorted({c for row in ours for c in row if c and c.startswith("_:")})
    if len(labels) != len(names):
        return False
    width = len(gold[0]) if gold else 0
    for columns, images in product(permutations(range(width)), permutations(names)):
        renamed = dict(zip(labels, images, strict=True))
        mapped = {
            tuple(row[c] if row[c] not in renamed else renamed[str(row[c])] for c in columns)
            for row in theirs
        }
        if mapped == ours:
            return True
    return False


@settings(max_examples=300, deadline=None)
@given(tables(MIXED, 2), tables(MIXED, 2))
def test_blank_nodes_are_matched_as_by_force(gold: Rows, predicted: Rows) -> None:
    assume(gold and predicted)
    found = compare(answer(gold, 2), answer(predicted, 2))
    assert found.strict == same_up_to_labels(gold, predicted)


@settings(max_examples=200, deadline=None)
@given(tables(MIXED, 3, 6), st.randoms(use_true_random=False))
def test_renaming_and_shuffling_change_nothing(rows: Rows, rng: Random) -> None:
    columns = rng.sample(range(3), 3)
    labels: dict[Cell, Cell] = dict(
        zip(["_:x", "_:y", "_:z"], rng.sample(["_:p", "_:q", "_:x"], 3), strict=True)
    )
    moved = [
        tuple(labels.get(row[c], row[c]) for c in columns) for row in rng.sample(rows, len(rows))
    ]
    for bag in (False, True):
        found = compare(answer(rows, 3), answer(moved, 3), bag=bag)
        assert found.strict
        assert found.f1 == 1.0


@settings(max_examples=200, deadline=None)
@given(tables(PLAIN, 3, 6), st.data())
def test_one_changed_cell_is_noticed(rows: Rows, data: st.DataObject) -> None:
    assume(rows)
    at = data.draw(st.integers(0, len(rows) - 1))
    column = data.draw(st.integers(0, 2))
    changed = [list(row) for row in rows]
    changed[at][column] = '"new"'
    broken = [tuple(row) for row in changed]
    assert not compare(answer(rows, 3), answer(broken, 3)).strict
    found = compare(answer(rows, 3), answer(broken, 3), bag=True)
    assert not found.strict
    assert found.f1 < 1.0


def windows_by_force(gold: Rows, window: Window) -> list[Rows]:
    """Every answer that an engine may give: ties in any order, then cut."""
    keyed = [[row[int(k[1:])] for k in window.keys or ()] for row in gold]
    found = []
    for order in permutations(range(len(gold))):
        if [keyed[i] for i in order] == keyed:
            cut = [gold[i] for i in order][window.start :]
            found.append(cut if window.length is None else cut[: window.length])
    return found


@settings(max_examples=150, deadline=None)
@given(
    tables(PLAIN[:3], 2, 5),
    tables(PLAIN[:3], 2, 4),
    st.integers(0, 2),
    st.integers(1, 3),
    st.sampled_from([(), ("v0",), ("v1", "v0")]),
    st.booleans(),
)
def test_windows_are_what_an_engine_may_return(
    gold: Rows, predicted: Rows, start: int, length: int, keys: tuple[str, ...], ordered: bool
) -> None:
    gold.sort(key=lambda row: [str(row[int(k[1:])]) for k in keys])
    window = Window(start, length, keys)
    found = compare(answer(gold, 2), answer(predicted, 2), bag=True, ordered=ordered, window=window)
    swapped = [row[::-1] for row in predicted]
    possible = windows_by_force(gold, window)
    if ordered and keys:
        # Any order within ties: so every order an engine may give is among these.
        right = any(answer_ in possible for answer_ in (predicted, swapped))
    else:
        counts = [Counter(rows) for rows in possible]
        right = any(Counter(rows) in counts for rows in (predicted, swapped))
    assert found.strict == right


Triples = list[tuple[str, str, str]]
P, Q, ND = "<http://e/p>", "<http://e/q>", "<http://e/a>"


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
    one = [(ND, P, "1"), (ND, Q, '"x"@EN')]
    assert strict(one, [(ND, Q, '"x"@en'), (ND, P, "1.0"), (ND, P, "1.0")])
    found = compare(Answer.of_triples(one), Answer.of_triples([(ND, P, "1"), (ND, P, "2")]))
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
    assert not strict([(ND, P, b)], [(b, P, ND)])


@pytest.mark.parametrize(
    "triples",
    [
        [("_:x", P, "1"), ("_:x", Q, "2"), ("_:y", P, "1")],
        cycle(6),
        cycle(3, 3),
        cycle(100),
        [(ND, P, f"_:m{i}") for i in range(150)] + [(f"_:m{i}", Q, f"_:l{i}") for i in range(150)],
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


def test_the_work_grows_with_the_number_of_blank_nodes_alike() -> None:
    def steps(triples: list[tuple[str, str, str]]) -> int:
        same = renamed(triples)
        assert strict(triples, same)
        assert not strict(triples, renamed(triples[1:]))
        return calls(lambda: strict(triples, same))

    few, many = (steps([(f"_:b{i}", P, ND) for i in range(n)]) for n in (2_000, 8_000))
    assert many < 5 * few
    assert steps(cycle(1_200)) < 5 * steps(cycle(300))


def test_empty_graphs() -> None:
    assert strict([], [])
    assert not strict([], [(ND, P, ND)])


def test_a_limit_takes_any_right_triples_of_the_right_number() -> None:
    whole = Answer.of_triples([(ND, P, str(i)) for i in range(5)] + [("_:x", Q, "1")])
    window = Window(0, 2, ())
    assert compare(whole, Answer.of_triples([(ND, P, "3"), ("_:k", Q, "1")]), window=window).strict
    assert not compare(whole, Answer.of_triples([(ND, P, "3")]), window=window).strict
    assert not compare(whole, Answer.of_triples([(ND, P, "3"), (ND, P, "7")]), window=window).strict
