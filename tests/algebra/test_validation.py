"""Mistakes that are found before a program runs, each at its JSON path."""

from __future__ import annotations

from typing import Any

import pytest

from reasoningbank.algebra import ProgramError, mistakes, read_program
from reasoningbank.algebra.queries import check_query, check_update
from reasoningbank.algebra.source import parse_program

from .faults import check
from .in_memory import Memory, op, outcome, value

E = "http://e/"
SELECT = op("SELECT", endpoint=E, query="SELECT ?s { ?s ?p ?o }")

CASES: list[tuple[Any, list[str]]] = [
    ([], ["$: expected an operation, got an empty list"]),
    ({}, ['$: expected an operation; write {"@op": "NAME", "args": {…}}']),
    ("x", ['$: expected an operation; write {"@op": "NAME", "args": {…}}']),
    (None, ['$: expected an operation; write {"@op": "NAME", "args": {…}}']),
    ([op("STRUUID"), "x"], ['$[1]: expected an operation; write {"@op": "NAME", "args": {…}}']),
    ({"ForEach": {}}, ['$: expected an operation; write {"@op": "NAME", "args": {…}}']),
    ({"@op": "STRUUID", "arguments": {}}, [
        "$: an operation has no member 'arguments'; put arguments into args"]),
    ({"@op": 5}, ["$: @op is a name and args an object"]),
    ({"@op": "STRUUID", "args": []}, ["$: @op is a name and args an object"]),
    (op("struuid"), ["$: there is no operation 'struuid'; did you mean 'STRUUID'"]),
    (op("Selekt"), ["$: there is no operation 'Selekt'; did you mean 'SELECT'"]),
    (op("STRUUID", seed=1), ["$.args: STRUUID has no argument 'seed'; it takes none"]),
    (op("Str", inputs="x"), [
        "$.args: Str has no argument 'inputs'; it takes input",
        "$.args: Str lacks the argument input (a string)"]),
    (op("Concat", inputs="x"), ["$.args.inputs: expected a list of strings"]),
    (op("Concat", inputs=["x", 5, []]), ["$.args.inputs[2]: expected a string, got a list"]),
    (op("Concat", inputs=["x", SELECT]), [
        "$.args.inputs[1]: expected a string, but SELECT yields a table"]),
    (op("Str", input=None), ["$.args.input: expected a string, got null"]),
    (op("Str", input=op("GET", url=E)), [
        "$.args.input: expected a string, but GET yields a graph"]),
    (op("Str", input={"type": "literal"}), None),
    (op("Str", input={"type": "literal", "value": 5}), [
        "$.args.input.value: a term's value is a string"]),
    (op("Str", input={"type": "uri", "value": "x", "xml:lang": "en"}), [
        "$.args.input: a term of type uri has no 'xml:lang'"]),
    (op("Str", input={"type": "literal", "value": "x", "xml:lang": "e n"}), [
        "$.args.input: 'e n' is no language tag"]),
    (op("Str", input={"type": "triple", "value": {}}), [
        "$.args.input: triple terms are not supported"]),
    (op("PUT", url=E, data=op("URI", input=E)), [
        "$.args.data: expected a graph (JSON-LD), but URI yields a URI; fetch it with GET"]),
    (op("PUT", url=E, data=op("Str", input=E)), [
        "$.args.data: expected a graph (JSON-LD), but Str yields a string; fetch it with GET"]),
    (op("Merge", graphs=[op("STRUUID")]), [
        "$.args.graphs[0]: expected a graph (JSON-LD), but STRUUID yields a string"]),
    (op("ForEach", select=SELECT), [
        "$.args: ForEach lacks the argument operation (an operation or a list of operations)"]),
    (op("ForEach", select=SELECT, operation=[]), [
        "$.args.operation: expected an operation, got an empty list"]),
    (op("ForEach", select=SELECT, operation=value("t")), [
        "$.args.operation.args.name: the row has no 't'; it has s"]),
    (op("ForEach", select={"results": {"bindings": {}}}, operation=op("STRUUID")), [
        "$.args.select.results.bindings: expected a list of bindings"]),
    (op("ForEach", select={"results": {"bindings": ["x"]}}, operation=op("STRUUID")), [
        "$.args.select.results.bindings[0]: expected a binding: variable → term"]),
    (op("Execute", operation=op("Nothing")), None),
    (op("Value", name="$"), ["$.args.name: the name is empty"]),
]  # fmt: skip


@pytest.mark.parametrize(("program", "told"), CASES)
def test_mistakes(program: Any, told: list[str] | None) -> None:
    found = mistakes(program)
    assert found
    for one, expected in zip(found, told or (), strict=told is not None):
        check(one, expected)
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
    ("SELECT", "ASK {}", "expected a SELECT query, got ASK; use the operation ASK"),
    ("ASK", "SELECT ?s { ?s ?p ?o }", "expected a ASK query, got SELECT"),
    ("DESCRIBE", "CONSTRUCT WHERE { ?s ?p ?o }", "expected a DESCRIBE query, got CONSTRUCT"),
    ("CONSTRUCT", "DESCRIBE <http://e/>", "expected a CONSTRUCT query, got DESCRIBE"),
    ("SELECT", "DELETE WHERE { ?s ?p ?o }", "line 1, column 1: DELETE is an update"),
    ("SELECT", "SELECT ?s { ?s ?p ", "line 1, column "),
    ("SELECT", "", "the query is empty"),
    ("SELECT", "cities in Denmark", "line 1, column 1: unexpected 'cities'"),
]


@pytest.mark.parametrize(("name", "query", "told"), QUERIES)
def test_queries_are_checked(name: str, query: str, told: str) -> None:
    (wrong,) = mistakes(op(name, endpoint=E, query=query))
    check(wrong, told)
    # A query that is computed is checked when it is there.
    web = Memory()
    with pytest.raises(QueryError) as failed:
        outcome(op(name, endpoint=E, query=op("Concat", inputs=[query])), web)
    check(failed.value, told)
    assert not web.log


def test_prefixes_that_only_the_endpoint_knows() -> None:
    assert not mistakes(op("SELECT", endpoint=E, query="SELECT ?s { ?s a dbo:City }"))


def test_updates_are_checked() -> None:
    for update, told in (
        ("ASK {}", "expected a SPARQL Update; begin with INSERT, DELETE or WITH"),
        ("INSERT DATA { ?s ?p ?o }", "line 1, column 25: Variables are not allowed in INSERT DATA"),
        ("LOAD <http://e/>", "line 1, column 1: LOAD is not allowed"),
        ("DELETE WHERE { ?s ?p ?o } ; LOAD <http://e/>", "line 1, column 29: LOAD is not allowed"),
    ):
        (wrong,) = mistakes(op("PATCH", url=E, update=update))
        check(wrong, told)
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
    ("", "line 1, column 1: this is no JSON"),
    ("```json\n{}\n```", "line 1, column 1: this is no JSON"),
    ('{"@op": "STRUUID"} x', "line 1, column 20: this is no JSON"),
    ('{"@op": "Str", "@op": "URI"}', "$: the key '@op' stands twice in an object"),
    ('{"@op": NaN}', "$: NaN is no JSON"),
    ("9" * 5_000, "$: this is no JSON: Exceeds the limit"),
    ("[" * 100_000, "$: the program is nested too deeply"),
]


@pytest.mark.parametrize(("text", "told"), TEXTS)
def test_texts_that_are_no_programs(text: str, told: str) -> None:
    with pytest.raises(ProgramError) as failed:
        parse_program(text)
    check(failed.value, told)


def test_a_program_as_deep_as_json_allows_is_told_of() -> None:
    deep: Any = "x"
    for _ in range(5_000):
        deep = op("Str", input=deep)
    (wrong,) = mistakes(deep)
    assert "operations in one another" in str(wrong)


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
        (op("Str", input="\ud800"), "$: a string holds half of a character"),
        (op("Str", input=object()), "$: this is no JSON"),
    ],
)
def test_data_that_is_no_json(data: Any, told: str) -> None:
    (wrong,) = mistakes(data)
    check(wrong, told)


def test_an_update_that_nests_too_deeply_does_not_end_the_process() -> None:
    (wrong,) = mistakes(op("PATCH", url=E, update="DELETE {} WHERE " + "{" * 5000 + "}" * 5000))
    assert str(wrong).startswith("$.args.update: the update is nested too deeply")
