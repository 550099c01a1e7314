"""Which numbers count as the same."""

import math
import random

from hypothesis import given
from hypothesis import strategies as st

from reasoningbank.judge.cells import TOLERANCE, number_classes


def test_integers_are_exact_at_any_size() -> None:
    big = 2**60
    found = number_classes([big, big + 1, 10**400, 10**400 + 1], [])
    assert len(set(found.values())) == 4


def test_decimals_are_equal_to_a_millionth() -> None:
    found = number_classes([], [100.0, 100.00009, 100.01, 1e-30, 1.0000005e-30, 0.0, -100.0])
    assert found[100.0] == found[100.00009]
    assert found[1e-30] == found[1.0000005e-30]
    assert len({found[100.0], found[100.01], found[1e-30], found[0.0], found[-100.0]}) == 5


def test_a_decimal_meets_the_nearest_integer() -> None:
    found = number_classes([1234567, 1234568], [1234567.9, 1234567.2])
    assert found[1234567.9] == found[1234568]
    assert found[1234567.2] == found[1234567]


def test_noise_never_separates_where_a_wider_gap_can() -> None:
    # A chain wider than the tolerance, whose members come in pairs one rounding error apart.
    base = [1 + i * 0.9e-6 for i in range(50)]
    noisy = [math.nextafter(v, 2) for v in base]
    found = number_classes([], base + noisy)
    assert all(found[a] == found[b] for a, b in zip(base, noisy, strict=True))
    assert len(set(found.values())) > 1


def test_extremes_do_not_overflow() -> None:
    found = number_classes([10**310], [1.7e308, -1.7e308, 5e-324, 0.0])
    assert len(set(found.values())) == 5


@given(
    st.lists(st.floats(1, 1.0001), min_size=1, max_size=60),
    st.lists(st.integers(-5, 5), max_size=5),
)
def test_no_class_is_wider_than_the_tolerance(others: list[float], integers: list[int]) -> None:
    found = number_classes(integers, others)
    assert set(found) == {*others, *integers}
    for name in set(found.values()):
        members = [float(v) for v in found if found[v] == name]
        anchors = [v for v in members if v in integers]
        # Around an integer the class may reach the tolerance to both sides.
        reach = 2 * TOLERANCE if anchors else TOLERANCE
        assert max(members) - min(members) <= reach * max(map(abs, members)) + 1e-15


def test_dense_numbers_are_cut_in_time() -> None:
    rng = random.Random(7)
    values = sorted(1 + rng.random() / 100 for _ in range(100_000))
    even = [2 + i * 1e-8 for i in range(100_000)]
    found = number_classes([], values + even)
    assert len({found[v] for v in values}) > 9_000
    assert len({found[v] for v in even}) > 400
