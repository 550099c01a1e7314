"""Cells by value: terms, numbers, calendars."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BaseDirection, BlankNode, Literal, NamedNode, Triple

from reasoningbank.judge.cells import TOLERANCE, Blank, canonical, number_classes
from reasoningbank.sparql.terms import full

XSD = "http://www.w3.org/2001/XMLSchema#"


def typed(lexical: str, name: str) -> str:
    return f'"{lexical}"^^<{XSD}{name}>'


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1", typed("1", "integer")),
        ("+01", "1"),
        (typed("1", "unsignedByte"), typed("1", "long")),
        (typed(" 7 ", "integer"), "7"),
        ("1.0", typed("1.00", "decimal")),
        ("1e0", typed("1", "float")),
        (typed("INF", "float"), typed("+INF", "double")),
        (typed("NaN", "float"), typed("NaN", "double")),
        ("true", typed("1", "boolean")),
        ("false", typed("0", "boolean")),
        ('"a"', typed("a", "string")),
        ('"a"', "'a'"),
        ('"a"', '"""a"""'),
        ('"é"', '"\\u00e9"'),
        ('"a"@EN-gb', '"a"@en-GB'),
        ('"a\\tb"', "'a\\tb'"),
        ("<http://e/é>", "<http://e/\\u00e9>"),
        (typed("2020-01-01T00:00:00Z", "dateTime"), typed("2020-01-01T01:00:00+01:00", "dateTime")),
        (typed("2020-01-01T00:00:00Z", "dateTime"), typed("2019-12-31T24:00:00Z", "dateTime")),
        (typed("2020-01-01T00:00:00.50Z", "dateTime"), typed("2020-01-01T00:00:00.5Z", "dateTime")),
        (
            typed("2020-01-01T00:00:00Z", "dateTimeStamp"),
            typed("2020-01-01T00:00:00Z", "dateTime"),
        ),
        (typed("2020-01-01Z", "date"), typed("2020-01-01+00:00", "date")),
    ],
)
def test_same_meaning(one: str, other: str) -> None:
    assert canonical(one) == canonical(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1", '"1"'),
        ("1", typed("1", "boolean")),
        ('"true"', "true"),
        ('"a"', '"a"@en'),
        ('"a"@en', '"a"@de'),
        ('"a"@en', '"a"@en--ltr'),
        ("<http://e/a>", '"http://e/a"'),
        ("<http://e/a>", "<http://e/A>"),
        ("<http://e/a>", "<http://e/%61>"),
        ('"<http://e/a>"', "<http://e/a>"),
        ('""', None),
        ('"a"', '"A"'),
        ('"a"', '" a"'),
        (typed("abc", "integer"), '"abc"'),
        (typed("abc", "integer"), typed("abc", "int")),
        (typed("1_000", "integer"), "1000"),
        (typed("1_0.5", "decimal"), "10.5"),
        (typed("nan", "double"), typed("NaN", "double")),
        (typed("INF", "double"), typed("-INF", "double")),
        (typed("yes", "boolean"), "true"),
        (typed("2020-01-01T00:00:00", "dateTime"), typed("2020-01-01T00:00:00Z", "dateTime")),
        (typed("2020-01-01", "date"), typed("2020-01-01Z", "date")),
        (typed("2020-01-01T00:00:00Z", "dateTime"), typed("2020-01-01Z", "date")),
        ('"POINT(0 0)"^^<http://e/wkt>', '"POINT(0 0)"'),
    ],
)
def test_different_meaning(one: str, other: str | None) -> None:
    assert canonical(one) != canonical(other)


@pytest.mark.parametrize(
    "lexical", ["-0044-03-15T00:00:00Z", "2020-02-30T00:00:00Z", "9999-12-31T23:59:59-14:00"]
)
def test_instants_beyond_the_calendar_are_compared_as_written(lexical: str) -> None:
    assert canonical(typed(lexical, "dateTime")) == f'^{XSD}dateTime"{lexical}'


def test_terms_as_the_library_writes_them_mean_what_the_terms_mean() -> None:
    assert canonical(str(Literal(3))) == 3
    assert canonical(str(Literal("a", language="en", direction=BaseDirection.LTR))) == canonical(
        '"a"@EN--ltr'
    )
    assert canonical(str(Literal('say "hi"\n\\'))) == '"say "hi"\n\\'


def test_triple_terms_are_compared_by_their_parts() -> None:
    one = full(
        Triple(NamedNode("http://e/a"), NamedNode("http://e/p"), Literal("x", language="EN"))
    )
    other = "<<( <http://e/a>   <http://e/p> 'x'@en )>>"
    assert canonical(one) == canonical(other)
    blank = full(Triple(BlankNode("b1"), NamedNode("http://e/p"), Literal(1)))
    found = canonical(blank)
    assert isinstance(found, Blank)
    other_blank = canonical(blank.replace("b1", "b2"))
    assert isinstance(other_blank, Blank)
    assert found.shape == other_blank.shape
    assert found.label != other_blank.label


def test_what_no_parser_reads_equals_only_itself() -> None:
    assert canonical("nodeID//x") == canonical("nodeID//x")
    assert canonical("nodeID//x") != canonical("nodeID//y")
    assert canonical("nodeID//x") != canonical('"nodeID//x"')


def test_huge_integers_do_not_break_reading() -> None:
    assert canonical("9" * 5000) == canonical(typed("9" * 5000, "integer"))


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


def test_an_integral_decimal_is_as_exact_as_an_integer() -> None:
    found = number_classes([10_000_001], [10_000_001.0, 10_000_001.5, 10_000_005.0])
    assert found[10_000_001.0] == found[10_000_001.5] == found[10_000_001]
    assert found[10_000_005.0] != found[10_000_001]


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
