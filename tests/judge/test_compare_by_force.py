"""The comparison against its definition, tried by brute force on small tables."""

from collections import Counter
from itertools import permutations, product
from random import Random

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reasoningbank.judge import Answer, Window, compare

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
