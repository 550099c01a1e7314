"""The result of a program as a query: what it returns when it runs is the result."""

from __future__ import annotations

from typing import Any

import pyoxigraph as ox
import pytest
from rdflib import BNode, Graph, Literal, URIRef

from reasoningbank.algebra import ProgramError, Stream, Table, Value
from reasoningbank.algebra.restating import as_query

A, B, P = (URIRef(f"http://e/{name}") for name in "abp")


def graph(*triples: Any) -> Graph:
    made = Graph()
    for triple in triples:
        made.add(triple)
    return made


def ran(value: Value) -> Any:
    found = ox.Store().query(as_query(value))
    if isinstance(found, ox.QueryBoolean):
        return bool(found)
    if isinstance(found, ox.QueryTriples):
        return [str(triple) for triple in found]
    names = [variable.value for variable in found.variables]
    return names, [[None if cell is None else str(cell) for cell in row] for row in found]


ROWS: list[tuple[Value, tuple[list[str], list[list[str | None]]]]] = [
    (
        Table(("a", "n"), [{"a": A, "n": Literal("007", datatype=URIRef("http://e/t"))}, {"a": B}]),
        (["a", "n"], [["<http://e/a>", '"007"^^<http://e/t>'], ["<http://e/b>", None]]),
    ),
    (Table(("a",), []), (["a"], [])),
    (Literal('say "no"\n', lang="en"), (["value"], [['"say \\"no\\"\\n"@en']])),
    ({"a": A}, (["a"], [["<http://e/a>"]])),
    ([A, None, B], (["value"], [["<http://e/a>"], ["<http://e/b>"]])),
    (Stream(iter([[A, Literal("x")], [B, Literal("y")]])), (
        ["value1", "value2"], [["<http://e/a>", '"x"'], ["<http://e/b>", '"y"']],
    )),
    (
        [Table(("a",), [{"a": A}]), Table(("b",), [{"b": B}])],
        (["a", "b"], [["<http://e/a>", None], [None, "<http://e/b>"]]),
    ),
    ([Table(("a",), []), Table(("a",), [{"a": A}])], (["a"], [["<http://e/a>"]])),
    ([[None, Table(("a",), [{"a": A}])]], (["a"], [["<http://e/a>"]])),
]  # fmt: skip


@pytest.mark.parametrize(("value", "rows"), ROWS)
def test_tables_rows_and_values_are_a_table(value: Value, rows: Any) -> None:
    assert ran(value) == rows


def test_the_order_of_rows_stays() -> None:
    numbers = [Literal(n) for n in (3, 1, 2, 10)]
    assert [row[0] for row in ran(numbers)[1]] == [str(ox.Literal(n)) for n in (3, 1, 2, 10)]


@pytest.mark.parametrize("truth", [True, False])
def test_a_boolean_is_an_answer_to_ask(truth: bool) -> None:
    assert ran(Literal(truth)) is truth


def test_graphs_are_one_graph_and_keep_their_blank_nodes_apart() -> None:
    one, other = BNode(), BNode()
    triples = ran([graph((A, P, one), (one, P, B)), graph((A, P, other)), graph((A, P, B))])
    assert len(triples) == 4
    ends = {text.rpartition(" ")[2] for text in triples if text.startswith("<http://e/a>")}
    assert len(ends) == 3


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "yields nothing"),
        ([], "yields nothing"),
        ([None, None], "yields nothing"),
        (Table(("b",), [{"b": BNode()}]), "blank node"),
        ([graph((A, P, B)), Literal("x")], "graphs and of other values"),
        (Table(("a",), [{"a": URIRef("relative")}]), "no absolute IRI"),
    ],
)
def test_what_is_no_answer_is_told(value: Value, told: str) -> None:
    with pytest.raises(ProgramError, match=told):
        as_query(value)
