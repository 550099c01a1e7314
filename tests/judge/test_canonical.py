"""What a cell means."""

import pytest
from pyoxigraph import BaseDirection, BlankNode, Literal, NamedNode, Triple

from reasoningbank.judge.answer import term_text
from reasoningbank.judge.cells import Blank, canonical

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
    one = term_text(
        Triple(NamedNode("http://e/a"), NamedNode("http://e/p"), Literal("x", language="EN"))
    )
    other = "<<( <http://e/a>   <http://e/p> 'x'@en )>>"
    assert canonical(one) == canonical(other)
    blank = term_text(Triple(BlankNode("b1"), NamedNode("http://e/p"), Literal(1)))
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
