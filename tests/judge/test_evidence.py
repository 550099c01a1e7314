"""What a verdict rests on: rows shown, and the rows that differ."""

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from reasoningbank.judge import Answer, Evidence, Gold, Window
from reasoningbank.judge.compare import contrast
from reasoningbank.judge.evidence import MAX_TERM_CHARS, evidence_of

A, B, C, D = (f"<http://e/{name}>" for name in "abcd")


def table(names: str, *rows: Sequence[str | None]) -> Answer:
    return Answer.of_rows(names.split(), rows)


def evidence(
    gold: Answer,
    predicted: Answer,
    window: Window | None = None,
    bag: bool = False,
    ordered: bool = False,
) -> Evidence:
    window = window or Window()
    found = contrast(gold, predicted, bag=bag, ordered=ordered, window=window)
    return evidence_of(Gold(gold, window), predicted, found, bag=bag, ordered=ordered)


def test_rows_that_differ_under_the_best_mapping() -> None:
    gold = table("taxon mass", (A, "1.50"), (B, "2"), (C, "3"))
    mine = table("m t label", ("2.0", B, '"b"'), ("1.5", A, '"a"'), ("9", C, '"c"'))
    found = evidence(gold, mine)
    assert found.mapping == {"taxon": "t", "mass": "m"}
    assert found.missing == ((C, "3"),)
    assert found.surplus == (("9", C, '"c"'),)
    assert (found.gold.n, found.predicted.n, found.predicted.variables) == (
        3,
        3,
        ("m", "t", "label"),
    )


def test_what_was_right_differs_in_nothing() -> None:
    gold = table("x n", (A, "1"), (B, None))
    found = evidence(gold, table("n x", ("1", A), (None, B)))
    assert (found.missing, found.surplus, found.n_missing, found.n_surplus) == ((), (), 0, 0)
    assert found.gold.rows == ((A, "1"), (B, None))


def test_the_right_rows_in_the_wrong_order_are_shown_in_theirs() -> None:
    gold = table("x", (B,), (A,))
    found = evidence(gold, table("x", (A,), (B,)), ordered=True)
    assert (found.gold.rows, found.predicted.rows) == (((B,), (A,)), ((A,), (B,)))
    assert (found.n_missing, found.n_surplus) == (0, 0)


def test_repeated_rows_differ_only_where_they_count() -> None:
    gold, mine = table("x", (A,), (A,), (B,)), table("x", (A,), (B,), (B,))
    assert evidence(gold, mine).n_missing == 0
    found = evidence(gold, mine, bag=True)
    assert (found.missing, found.surplus) == (((A,),), ((B,),))


def test_no_column_is_like_the_golds() -> None:
    found = evidence(table("x", (A,), (B,)), table("x", (C,), (D,)))
    assert (found.missing, found.surplus) == (((A,), (B,)), ((C,), (D,)))
    found = evidence(table("x y", (A, B)), table("x", (A,)))
    assert (found.missing, found.surplus) == (((A, B),), ((A,),))


def test_a_limit_leaves_open_which_rows_are_missing() -> None:
    gold = table("x", *((f"<http://e/{i}>",) for i in range(9, -1, -1)))
    mine = table("x", ("<http://e/4>",), (A,))
    found = evidence(gold, mine, Window(length=4, keys=()))
    assert (found.gold.n, found.n_missing, found.surplus) == (4, 3, ((A,),))
    assert found.missing == tuple((f"<http://e/{i}>",) for i in range(3))
    assert len(found.gold.rows) == 4
    found = evidence(
        gold, table("x", *((f"<http://e/{i}>",) for i in range(6))), Window(length=4, keys=())
    )
    assert (found.n_missing, found.surplus) == (0, (("<http://e/4>",), ("<http://e/5>",)))


def test_of_tied_rows_so_many_as_the_limit_takes() -> None:
    gold = table("x s", (A, "9"), (B, "8"), (C, "8"), (D, "7"))
    window = Window(length=2, keys=("s",))
    found = evidence(gold, table("x s", (B, "8"), (C, "8")), window)
    assert found.missing == ((A, "9"),)
    assert found.surplus == ((C, "8"),)
    assert found.gold.rows == ((A, "9"), (B, "8"))


def test_graphs_and_booleans() -> None:
    gold = Answer.of_triples([(A, B, "1"), (A, B, "2")])
    found = evidence(gold, Answer.of_triples([(A, B, "2"), (A, B, "3")]))
    assert found.gold.variables == ("subject", "predicate", "object")
    assert (found.missing, found.surplus) == (((A, B, "1"),), ((A, B, "3"),))
    found = evidence(Answer.of_boolean(True), Answer.of_boolean(False))
    assert (found.gold.variables, found.gold.rows) == (("boolean",), (("true",),))
    assert (found.missing, found.surplus) == ((("true",),), (("false",),))
    assert evidence(Answer.of_boolean(True), Answer.of_boolean(True)).n_missing == 0


def test_an_answer_of_another_form_differs_in_all() -> None:
    found = evidence(table("x", (A,), (B,)), Answer.of_boolean(True))
    assert (found.missing, found.surplus) == (((A,), (B,)), (("true",),))
    assert found.mapping == {}


def test_without_a_prediction_the_gold_alone_is_shown() -> None:
    gold = Gold(table("x", (B,), (A,), (A,)))
    found = evidence_of(gold)
    assert (found.gold.rows, found.gold.n) == (((A,), (B,)), 3)
    assert (found.predicted.rows, found.missing, found.surplus) == ((), (), ())


def test_evidence_is_bounded() -> None:
    gold = table("x l", *((f"<http://e/{i:03}>", f'"{"y" * 1000}{i}"') for i in range(100)))
    found = evidence(gold, table("x l", *((A, f'"{i}"') for i in range(100))))
    assert (len(found.gold.rows), len(found.predicted.rows)) == (10, 10)
    assert (len(found.missing), len(found.surplus)) == (20, 20)
    assert (found.n_missing, found.n_surplus) == (100, 100)
    text = found.gold.rows[0][1]
    assert text is not None
    assert text.startswith('"yyy')
    assert text.endswith("(1003 characters)")
    assert len(text) < MAX_TERM_CHARS + 30
    assert json.loads(json.dumps(found.to_json()))["n_missing"] == 100


def test_blank_nodes_are_named_by_where_they_stand() -> None:
    gold = table("x n", ("_:q7f", "1"), ("_:a9", "2"))
    other = table("x n", ("_:zz", "2"), ("_:zy", "1"))
    found = evidence(gold, other)
    assert found.gold.rows == found.predicted.rows == (("_:b0", "1"), ("_:b1", "2"))
    assert found.n_missing == 0


def test_what_is_shown_of_a_prediction_does_not_depend_on_the_gold() -> None:
    mine = table("u v", (B, "1"), (A, "1.0"), (B, "1"), ("_:x", None))
    golds = (
        table("x", ("1",)),
        table("x y", ("1", A), ("1", B)),
        table("x y", (A, "1"), (B, "1")),
        Answer.of_boolean(True),
    )
    windows = (Window(), Window(length=1, keys=()))
    shown = {evidence(gold, mine, window).predicted for gold in golds for window in windows}
    assert len(shown) == 1
    assert shown.pop().rows == ((A, "1.0"), (B, "1"), ("_:b0", None))


def shuffled(answer: Answer, seed: int) -> Answer:
    order = list(range(answer.n_rows))
    random.Random(seed).shuffle(order)
    return replace(answer, table=answer.table.take(pa.array(order, type=pa.int64())))


@pytest.mark.parametrize("seed", range(60))
def test_it_counts_as_the_judge_does_in_whatever_order_rows_come(seed: int) -> None:
    draw = random.Random(seed)
    cells = [A, B, C, "1", "2", None]

    def rows(most: int) -> list[list[str | None]]:
        return [[draw.choice(cells) for _ in range(2)] for _ in range(draw.randrange(most))]

    gold, mine = table("x y", *rows(12)), table("u v", *rows(9))
    length = draw.choice([None, None, 3, 5])
    window = Window(length=length, keys=() if length else None)
    bag = draw.random() < 0.5
    compared = contrast(gold, mine, bag=bag, window=window).comparison
    found = evidence(gold, mine, window, bag=bag)
    right = round(compared.f1 * (compared.n_gold + compared.n_predicted) / 2)
    assert found.n_missing == compared.n_gold - right
    assert found.n_surplus == compared.n_predicted - right
    if length is None and found.mapping and not found.n_missing:
        assert len(found.surplus) == found.n_surplus
    # What is missing and what is surplus have no row in common, as multisets under the mapping.
    if len(found.mapping) == 2 and length is None and compared.f1 > 0:
        at = [("u", "v").index(found.mapping[name]) for name in ("x", "y")]
        surplus = Counter(tuple(row[i] for i in at) for row in found.surplus)
        assert not surplus & Counter(found.missing)
    again = evidence(shuffled(gold, seed), shuffled(mine, seed + 1), window, bag=bag)
    # Of several best mappings any may be found; the rows shown of each side are the same.
    assert sorted(map(repr, again.gold.rows)) == sorted(map(repr, found.gold.rows))
    assert (again.n_missing, again.n_surplus) == (found.n_missing, found.n_surplus)
    if again.mapping == found.mapping:
        assert again.to_json() == found.to_json()
