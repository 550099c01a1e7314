"""Mistakes that are found before a program runs, each at its JSON path."""

from __future__ import annotations

from typing import Any

import pytest

from reasoningbank.algebra import ProgramError, mistakes, read_program
from reasoningbank.algebra.queries import check_query, check_update
from reasoningbank.algebra.source import parse_program
from reasoningbank.errors import QueryError

from .faults import said
from .in_memory import Memory, op, outcome, value

E = "http://e/"
SELECT = op("SELECT", endpoint=E, query="SELECT ?s { ?s ?p ?o }")

CASES: list[tuple[Any, list[str]]] = [
    ([], ["$ not-an-operation"]),
    ({}, ["$ not-an-operation"]),
    ("x", ["$ not-an-operation"]),
    (None, ["$ not-an-operation"]),
    ([op("STRUUID"), "x"], ["$[1] not-an-operation"]),
    ({"ForEach": {}}, ["$ not-an-operation"]),
    ({"@op": "STRUUID", "arguments": {}}, [
        "$ unknown-member"]),
    ({"@op": 5}, ["$ not-an-operation"]),
    ({"@op": "STRUUID", "args": []}, ["$ not-an-operation"]),
    (op("struuid"), ["$ unknown-operation"]),
    (op("Selekt"), ["$ unknown-operation"]),
    (op("STRUUID", seed=1), ["$.args unknown-argument"]),
    (op("Str", inputs="x"), [
        "$.args unknown-argument",
        "$.args missing-argument"]),
    (op("Concat", inputs="x"), ["$.args.inputs wrong-type"]),
    (op("Concat", inputs=["x", 5, []]), ["$.args.inputs[2] wrong-type"]),
    (op("Concat", inputs=["x", SELECT]), [
        "$.args.inputs[1] wrong-type"]),
    (op("Str", input=None), ["$.args.input wrong-type"]),
    (op("Str", input=op("GET", url=E)), [
        "$.args.input wrong-type"]),
    (op("Str", input={"type": "literal"}), None),
    (op("Str", input={"type": "literal", "value": 5}), [
        "$.args.input.value bad-term"]),
    (op("Str", input={"type": "uri", "value": "x", "xml:lang": "en"}), [
        "$.args.input bad-term"]),
    (op("Str", input={"type": "literal", "value": "x", "xml:lang": "e n"}), [
        "$.args.input bad-language-tag"]),
    (op("Str", input={"type": "triple", "value": {}}), [
        "$.args.input unsupported-term"]),
    (op("PUT", url=E, data=op("URI", input=E)), [
        "$.args.data wrong-type"]),
    (op("PUT", url=E, data=op("Str", input=E)), [
        "$.args.data wrong-type"]),
    (op("Merge", graphs=[op("STRUUID")]), [
        "$.args.graphs[0] wrong-type"]),
    (op("ForEach", select=SELECT), [
        "$.args missing-argument"]),
    (op("ForEach", select=SELECT, operation=[]), [
        "$.args.operation not-an-operation"]),
    (op("ForEach", select=SELECT, operation=value("t")), [
        "$.args.operation.args.name unknown-column"]),
    (op("ForEach", select={"results": {"bindings": {}}}, operation=op("STRUUID")), [
        "$.args.select.results.bindings bad-results"]),
    (op("ForEach", select={"results": {"bindings": ["x"]}}, operation=op("STRUUID")), [
        "$.args.select.results.bindings[0] bad-results"]),
    (op("Execute", operation=op("Nothing")), None),
    (op("Value", name="$"), ["$.args.name bad-name"]),
]  # fmt: skip


@pytest.mark.parametrize(("program", "told"), CASES)
def test_mistakes(program: Any, told: list[str] | None) -> None:
    found = mistakes(program)
    assert found
    for one, expected in zip(found, told or (), strict=told is not None):
        assert said(one) == expected
    with pytest.raises(ProgramError):
        read_program(program)


def test_all_mistakes_are_told_at_once() -> None:
    program = op(
        "ForEach",
        select=op("SELECT", endpoint="e", query="ASK {}"),
        operation=[op("GTE", url=E), op("PUT", url=E, data="x"), value("$y")],
    )
    assert [one.where for one in mistakes(program)] == [
        "$.args.select.args.endpoint",
        "$.args.select.args.query",
        "$.args.operation[0]",
        "$.args.operation[1].args.data",
        "$.args.operation[2].args.name",
    ]


QUERIES = [
    ("SELECT", "ASK {}", "$.args.query wrong-form"),
    ("ASK", "SELECT ?s { ?s ?p ?o }", "$.args.query wrong-form"),
    ("DESCRIBE", "CONSTRUCT WHERE { ?s ?p ?o }", "$.args.query wrong-form"),
    ("CONSTRUCT", "DESCRIBE <http://e/>", "$.args.query wrong-form"),
    ("SELECT", "DELETE WHERE { ?s ?p ?o }", "$.args.query: line 1, column 1 update-refused"),
    ("SELECT", "SELECT ?s { ?s ?p ", "$.args.query: line 1, column 16 syntax-error"),
    ("SELECT", "", "$.args.query empty-query"),
    ("SELECT", "cities in Denmark", "$.args.query: line 1, column 1 syntax-error"),
]


@pytest.mark.parametrize(("name", "query", "told"), QUERIES)
def test_queries_are_checked(name: str, query: str, told: str) -> None:
    (wrong,) = mistakes(op(name, endpoint=E, query=query))
    assert said(wrong) == told
    # A query that is computed is checked when it is there.
    web = Memory()
    with pytest.raises(QueryError) as failed:
        outcome(op(name, endpoint=E, query=op("Concat", inputs=[query])), web)
    assert said(failed.value) == told
    assert not web.log


def test_prefixes_that_only_the_endpoint_knows() -> None:
    assert not mistakes(op("SELECT", endpoint=E, query="SELECT ?s { ?s a dbo:City }"))


def test_updates_are_checked() -> None:
    for update, told in (
        ("ASK {}", "$.args.update wrong-form"),
        ("INSERT DATA { ?s ?p ?o }", "$.args.update: line 1, column 25 syntax"),
        ("LOAD <http://e/>", "$.args.update: line 1, column 1 load"),
        ("DELETE WHERE { ?s ?p ?o } ; LOAD <http://e/>", "$.args.update: line 1, column 29 load"),
    ):
        (wrong,) = mistakes(op("PATCH", url=E, update=update))
        assert said(wrong) == told
    web = Memory()
    insert = op("Substitute", query="INSERT DATA { <> <a:p> ?v }", var="v", binding="x")
    outcome(op("PATCH", url=E, update=insert), web)
    assert web.updates == ['INSERT DATA { <> <a:p> "x" }']


def test_what_a_program_does() -> None:
    read = read_program(op("ForEach", select=SELECT, operation=op("GET", url=value("s"))))
    assert read.calls == ("ForEach", "SELECT", "GET", "Value")
    assert not read.writes
    assert read_program(op("Execute", operation=op("PUT", url=E, data=[]))).writes


TEXTS = [
    ("", "line 1, column 1 bad-json"),
    ("```json\n{}\n```", "line 1, column 1 bad-json"),
    ('{"@op": "STRUUID"} x', "line 1, column 20 bad-json"),
    ('{"@op": "Str", "@op": "URI"}', "$ duplicate-key"),
    ('{"@op": NaN}', "$ bad-json"),
    ("9" * 5_000, "$ bad-json"),
    ("[" * 100_000, "$ too-deep"),
]


@pytest.mark.parametrize(("text", "told"), TEXTS)
def test_texts_that_are_no_programs(text: str, told: str) -> None:
    with pytest.raises(ProgramError) as failed:
        parse_program(text)
    assert said(failed.value) == told


def test_a_program_as_deep_as_json_allows_is_told_of() -> None:
    deep: Any = "x"
    for _ in range(5_000):
        deep = op("Str", input=deep)
    (wrong,) = mistakes(deep)
    assert said(wrong) == "$ too-deep"


def test_an_update_is_not_carried_out_to_be_checked() -> None:
    # As many solutions would take for ever.
    rows = " ".join(f"VALUES ?v{n} {{ {' '.join(map(str, range(100)))} }}" for n in range(8))
    check_update(f"INSERT {{ <a:s> <a:p> ?v0 }} WHERE {{ {rows} }}")
    check_query(f"ASK {{ {rows} FILTER(false) }}", "ASK")


def test_the_place_of_a_mistake_in_an_update_is_told() -> None:
    update = "PREFIX e: <http://e/>\nDELETE { ?s e:p } WHERE { ?s f:p ?o }"
    (wrong,) = mistakes(op("PATCH", url=E, update=update))
    assert str(wrong).startswith(
        "$.args.update: line 2, column 13: the query cannot be parsed near"
    )


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (op("Str", input="\ud800"), "$ half-character"),
        (op("Str", input=object()), "$ bad-json"),
    ],
)
def test_data_that_is_no_json(data: Any, told: str) -> None:
    (wrong,) = mistakes(data)
    assert said(wrong) == told


def test_an_update_that_nests_too_deeply_does_not_end_the_process() -> None:
    (wrong,) = mistakes(op("PATCH", url=E, update="DELETE {} WHERE " + "{" * 5000 + "}" * 5000))
    assert str(wrong).startswith("$.args.update: the update is nested too deeply")
