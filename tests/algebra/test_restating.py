"""The result of a program as a query: what it returns when it runs is the result."""

from __future__ import annotations

from typing import Any

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib import BNode, Graph, Literal, URIRef

from reasoningbank.algebra import ProgramError, Stream, Table, Value
from reasoningbank.algebra.queries import as_query
from reasoningbank.algebra.terms import BlankNodes, from_oxigraph

from .faults import raises

A, B, P = (URIRef(f"http://e/{name}") for name in "abp")


def graph(*triples: Any) -> Graph:
    made = Graph()
    for triple in triples:
        made.add(triple)
    return made


def ran(value: Value) -> Any:
    return _plain(ox.Store().query(as_query(value)))


def _plain(found: Any) -> Any:
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
    # An unbound value leaves its column empty, and moves no other into it.
    (
        [[A, B, Literal("x")], [A, None, Literal("y")]],
        (["value1", "value2", "value3"],
         [["<http://e/a>", "<http://e/b>", '"x"'], ["<http://e/a>", None, '"y"']]),
    ),
    (
        [[None, A, B], [None, None, B]],
        (["value1", "value2"], [["<http://e/a>", "<http://e/b>"], [None, "<http://e/b>"]]),
    ),
    ([[[A, None], [None, B]], [[A, B]]], (
        ["value1", "value2"],
        [["<http://e/a>", None], [None, "<http://e/b>"], ["<http://e/a>", "<http://e/b>"]],
    )),
    ([[None, Table(("a",), [{"a": A}])]], (["a"], [["<http://e/a>"]])),
    (
        [{"a b": A, "a_b": B, "": A, "} #": B}],
        (["a_b", "a_b_2", "value", "___"], [["<http://e/a>", "<http://e/b>"] * 2]),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("value", "rows"), ROWS)
def test_tables_rows_and_values_are_a_table(value: Value, rows: Any) -> None:
    assert ran(value) == rows


SEVERAL: list[tuple[list[Value], Any]] = [
    ([None, [A, B]], (["value"], [["<http://e/a>"], ["<http://e/b>"]])),
    ([[A], [B]], (["value"], [["<http://e/a>"], ["<http://e/b>"]])),
    ([None, [[A, B]]], (["value1", "value2"], [["<http://e/a>", "<http://e/b>"]])),
    ([A, B], (["value"], [["<http://e/a>"], ["<http://e/b>"]])),
    ([None, Table(("a",), [{"a": A}])], (["a"], [["<http://e/a>"]])),
    ([None, Literal(True)], True),
    ([None, [None, graph((A, P, B))], [None]], ["<http://e/a> <http://e/p> <http://e/b>"]),
]


@pytest.mark.parametrize(("results", "wanted"), SEVERAL)
def test_of_several_operations_each_has_a_result_of_its_own(
    results: list[Value], wanted: Any
) -> None:
    found = ox.Store().query(as_query(results, several=True))
    assert _plain(found) == wanted


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
        (None, "no-answer"),
        ([], "no-answer"),
        ([None, None], "no-answer"),
        (Table(("b",), [{"b": BNode()}]), "blank-node"),
        ([graph((A, P, B)), Literal("x")], "mixed-results"),
        (Table(("a",), [{"a": URIRef("relative")}]), "relative-iri"),
        ([Literal("x" * 200)] * 300, "too-many-rows"),
        (graph(*((A, P, Literal("x" * 200 + str(n))) for n in range(300))), "too-many-rows"),
    ],
)
def test_what_is_no_answer_is_told(value: Value, told: str) -> None:
    with raises(ProgramError, told):
        as_query(value)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
IRIS = st.text(st.characters(categories=["L", "N"]), max_size=8).map(
    lambda text: URIRef(f"http://e/{text}")
)
TERMS = st.one_of(
    IRIS,
    TEXTS.map(Literal),
    st.builds(Literal, TEXTS, lang=st.sampled_from(["en", "da", "en-gb"])),
    st.builds(lambda text: Literal(text, datatype=P), TEXTS),
    st.integers(-(2**62), 2**62).map(Literal),
)


@given(
    rows=st.lists(
        st.dictionaries(st.sampled_from("abc"), TERMS, min_size=1), min_size=1, max_size=5
    )
)
def test_a_table_comes_back_as_it_was(rows: list[dict[str, Any]]) -> None:
    found = ox.Store().query(as_query(Table(("a", "b", "c"), rows)))
    assert isinstance(found, ox.QuerySolutions)
    blanks = BlankNodes()
    back = [
        {name: from_oxigraph(row[name], blanks) for name in "abc" if row[name] is not None}
        for row in found
    ]
    assert back == rows


@given(triples=st.lists(st.tuples(IRIS, IRIS, TERMS), min_size=1, max_size=6))
def test_a_graph_comes_back_as_it_was(triples: list[Any]) -> None:
    found = ox.Store().query(as_query(graph(*triples)))
    assert isinstance(found, ox.QueryTriples)
    blanks = BlankNodes()
    back = {
        (*(from_oxigraph(part, blanks) for part in (t.subject, t.predicate, t.object)),)
        for t in found
    }
    assert back == set(triples)
