"""Scope and nesting: who sees which row and which variable."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from reasoningbank.algebra import ProgramError, mistakes, read_program
from reasoningbank.errors import UsageError

from .faults import raises, said
from .in_memory import Memory, op, outcome, text, uri, value

AB = [{"x": text("a")}, {"x": text("b")}]
OUTER = [{"x": text("1", "en"), "y": uri("http://e/1")}]


def set_to(name: str, what: Any) -> dict[str, Any]:
    return op("Variable", name=name, value=what)


CASES: list[tuple[str, Any, Any]] = [
    (
        "a variable of a list is seen by what follows it",
        [set_to("a", "x"), value("$a")],
        [None, "x"],
    ),
    (
        "a variable may be set again, and is then another",
        [set_to("a", "x"), set_to("a", op("Concat", inputs=[value("$a"), "y"])), value("$a")],
        [None, None, "xy"],
    ),
    (
        "a row sees the variables around the ForEach",
        [set_to("a", "x"), op("ForEach", select=AB, operation=value("$a"))],
        [None, ["x", "x"]],
    ),
    (
        "a variable set for one row is gone in the next: the outer one is seen again",
        [
            set_to("a", "outer"),
            op(
                "ForEach",
                select=AB,
                operation=[set_to("b", value("$a")), set_to("a", value("x")), value("$b")],
            ),
            value("$a"),
        ],
        [None, [[None, None, "outer"], [None, None, "outer"]], "outer"],
    ),
    (
        "the inner ForEach replaces the row",
        op("ForEach", select=OUTER, operation=op("ForEach", select=AB, operation=value("x"))),
        [["a", "b"]],
    ),
    (
        "Current keeps the outer row for the inner ForEach",
        op(
            "ForEach",
            select=OUTER,
            operation=[
                set_to("row", op("Current")),
                op(
                    "ForEach",
                    select=AB,
                    operation=op(
                        "Concat",
                        inputs=[op("Filter", input=value("$row"), expression="x"), value("x")],
                    ),
                ),
            ],
        ),
        [[None, ["1a", "1b"]]],
    ),
    (
        "after the inner ForEach the outer row is back",
        op(
            "ForEach",
            select=OUTER,
            operation=[op("ForEach", select=AB, operation=value("x")), value("x")],
        ),
        [[["a", "b"], "1"]],
    ),
    (
        "Execute sees row and variables",
        [
            set_to("a", "v"),
            op(
                "ForEach",
                select=AB,
                operation=op("Execute", operation=op("Concat", inputs=[value("$a"), value("x")])),
            ),
        ],
        [None, ["va", "vb"]],
    ),
    (
        "a variable set in Execute stays there",
        [
            set_to("a", "outer"),
            op("Execute", operation=[set_to("a", "inner"), value("$a")]),
            value("$a"),
        ],
        [None, [None, "inner"], "outer"],
    ),
    (
        "Execute inside Execute",
        op("Execute", operation=op("Execute", operation=op("Str", input="x"))),
        "x",
    ),
    (
        "a variable holds a table, which can be gone through twice",
        [
            set_to("rows", op("Bindings", table=AB)),
            op("ForEach", select=value("$rows"), operation=value("x")),
            op("ForEach", select=value("$rows"), operation=value("x")),
        ],
        [None, ["a", "b"], ["a", "b"]],
    ),
    (
        "a variable holds a graph",
        [
            set_to("g", {"@id": "http://e/a", "http://e/p": "x"}),
            op("Merge", graphs=[value("$g"), value("$g")]),
        ],
        [None, {"@id": "http://e/a", "http://e/p": "x"}],
    ),
    (
        "a variable by `select` instead of `value`",
        [op("Variable", name="a", select="x"), value("$a")],
        [None, "x"],
    ),
    (
        "a variable's name may be written with its $",
        [op("Variable", name="$a", value="x"), value("$a")],
        [None, "x"],
    ),
    (
        "a value keeps its type through a variable",
        [
            set_to("a", text("1", "", "http://www.w3.org/2001/XMLSchema#byte")),
            op("Substitute", query="ASK { ?s ?p ?o }", var="o", binding=value("$a")),
        ],
        [None, 'ASK { ?s ?p "1"^^<http://www.w3.org/2001/XMLSchema#byte> }'],
    ),
    (
        "a row may be named with a question mark",
        op("ForEach", select=AB, operation=value("?x")),
        ["a", "b"],
    ),
    (
        "a variable and a row's value of one name are two things",
        [set_to("x", "v"), op("ForEach", select=AB[:1], operation=[value("x"), value("$x")])],
        [None, [["a", "v"]]],
    ),
    (
        "a row made in place is a row",
        op(
            "ForEach",
            select=AB[:1],
            operation=op("ForEach", select=[{"z": value("x")}], operation=value("z")),
        ),
        [["a"]],
    ),
]


@pytest.mark.parametrize(
    ("program", "result"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_scope(program: Any, result: Any) -> None:
    assert outcome(program) == result


REFUSED: list[tuple[str, Any, str]] = [
    (
        "a variable before it is set",
        [value("$a"), set_to("a", "x")],
        "$[0].args.name unset-variable",
    ),
    (
        "a variable of a row, outside of it",
        [op("ForEach", select=AB, operation=[set_to("a", "x")]), value("$a")],
        "$[1].args.name unset-variable",
    ),
    (
        "a variable of Execute, outside of it",
        [op("Execute", operation=[set_to("a", "x")]), value("$a")],
        "$[1].args.name unset-variable",
    ),
    (
        "a variable in its own value",
        set_to("a", value("$a")),
        "$.args.value.args.name unset-variable",
    ),
    (
        "a row's value outside of ForEach",
        value("x"),
        "$.args.name no-row",
    ),
    (
        "a row's value in the sequence itself",
        op("ForEach", select=[value("x")], operation=op("STRUUID")),
        "$.args.select[0].args.name no-row",
    ),
    (
        "Current outside of ForEach",
        op("Current"),
        "$ no-row",
    ),
    (
        "the outer row's value inside of the inner ForEach",
        op("ForEach", select=OUTER, operation=op("ForEach", select=AB, operation=value("y"))),
        "$.args.operation.args.operation.args.name unknown-column",
    ),
    (
        "two values for a variable",
        op("Variable", name="a", value="x", select="y"),
        "$.args exclusive-arguments",
    ),
    (
        "no value for a variable",
        op("Variable", name="a"),
        "$.args exclusive-arguments",
    ),
    (
        "a variable where a value is wanted",
        op("Str", input=set_to("a", "x")),
        "$.args.input wrong-type",
    ),
    (
        "a name that is computed",
        op("Value", name=op("Str", input="x")),
        "$.args.name wrong-type",
    ),
]


@pytest.mark.parametrize(
    ("program", "reported"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED]
)
def test_scope_is_checked_before_the_run(program: Any, reported: str) -> None:
    (wrong,) = mistakes(program)
    assert said(wrong) == reported


def test_variables_from_outside() -> None:
    assert outcome(value("$city"), city=None) is None
    program = read_program(value("$city"), ["city"])
    with raises(UsageError, "missing-variable"):
        outcome(program)


def test_two_runs_share_nothing() -> None:
    program = read_program(
        op(
            "ForEach",
            select=[{"x": text(str(n))} for n in range(20)],
            operation=[set_to("a", op("Concat", inputs=[value("$who"), value("x")])), value("$a")],
        ),
        ["who"],
    )
    found: dict[str, Any] = {}

    def run(who: str) -> None:
        from rdflib import Literal

        found[who] = outcome(program, Memory(), who=Literal(who))

    threads = [threading.Thread(target=run, args=(who,)) for who in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {who: [[None, f"{who}{n}"] for n in range(20)] for who in "abcd"}


def test_an_unbound_value_leaves_an_optional_argument_out() -> None:
    rows = {"head": {"vars": ["x", "y"]}, "results": {"bindings": AB[:1]}}
    replaced = op("Replace", input=value("x"), pattern="A", replacement="b", flags=value("y"))
    assert outcome(op("ForEach", select=rows, operation=replaced)) == ["a"]
    kept = [set_to("v", value("y")), value("$v")]
    assert outcome(op("ForEach", select=rows, operation=kept)) == [[None, None]]


def test_an_unbound_value_is_nothing() -> None:
    rows = {"head": {"vars": ["x", "y"]}, "results": {"bindings": AB[:1]}}
    for select in (rows, op("Bindings", table=rows), op("Filter", input=rows, expression="true")):
        assert outcome(op("ForEach", select=select, operation=value("y"))) == [None]
    with pytest.raises(ProgramError) as failed:
        outcome(op("ForEach", select=rows, operation=op("Str", input=value("y"))))
    assert str(failed.value) == (
        "$.args.operation.args.input: expected a string, got nothing (an unbound variable?)"
    )
