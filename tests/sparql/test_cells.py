"""What proves a whole column says no other than the regular expression for each cell."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from reasoningbank.sparql import tsv
from reasoningbank.sparql.tsv import first_bad_cell

GOOD = [
    ["<http://e/a>", "<>", "<http://e/é b>"],
    ['""', '"a"', '"漢 <b> @en ^^"'],
    ['"a"@en', '""@en', '"@en"@en'],
    ['"1"^^<http://e/int>', '"^^<"^^<http://e/int>'],
    ['"a"@en', '"b"', '"c"^^<t>', "<http://e/a>", "_:b", "1", "-.5", "true", "<<( <a> <b> 1 )>>"],
    ['"a\\"b"', '"\\\\"', '"x"@en_US'],
]
BAD = [
    "",
    "<",
    ">",
    "<a",
    "a>",
    "<a>>",
    "<<a>",
    "<a><b>",
    '"',
    '"a',
    'a"',
    '"a"b"',
    '"a"@',
    '"a"@e n',
    '"a"^^',
    '"a"^^<t',
    '"a"^^<t>x',
    '""a""',
    '"\\"',
    "Baum",
    "1.5.2",
    '"a"@en.',
]


def by_pattern(column: pa.Array) -> int | None:
    at = pc.index(pc.match_substring_regex(column, tsv._CELL), False).as_py()
    return None if at < 0 else int(at)


@pytest.mark.parametrize("good", GOOD)
@pytest.mark.parametrize("bad", BAD)
def test_one_bad_cell_is_found_in_every_column(good: list[str], bad: str) -> None:
    assert first_bad_cell(pa.array(good)) is None
    for at in range(len(good) + 1):
        column = pa.array([*good[:at], bad, *good[at:]])
        assert first_bad_cell(column) == at
        assert first_bad_cell(pa.array([None, *column.to_pylist(), None])) == at + 1
        # A part of a column says what a column of that part says.
        assert first_bad_cell(column.slice(at)) == 0
        assert first_bad_cell(column.slice(at + 1)) is None


def test_random_columns_get_the_patterns_verdict() -> None:
    chance = random.Random(11)
    pieces = ['"', "<", ">", "\\", "@", "^", "a", "é", "@en", "^^<t>", '"a"', "<b>", " "]
    seen = {True: 0, False: 0}
    for _ in range(3_000):
        kind = chance.choice(['"{}"', '"{}"@en', '"{}"^^<t>', "<{}>", "{}"])
        texts = [
            kind.format("".join(chance.choices(pieces, k=chance.randint(0, 2)))) or None
            for _ in range(chance.randint(1, 3))
        ]
        column = pa.array(texts, pa.string())
        assert first_bad_cell(column) == by_pattern(column), texts
        seen[by_pattern(column) is None] += 1
    assert min(seen.values()) > 300


def test_columns_without_a_bound_cell_are_good() -> None:
    assert first_bad_cell(pa.array([], pa.string())) is None
    assert first_bad_cell(pa.array([None, None], pa.string())) is None
