"""Loops and filters."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from rdflib import XSD, Graph, Literal
from work import memory

from reasoningbank.algebra import (
    ProgramError,
    Row,
    Stream,
    Table,
    evaluation,
    json_chunks,
    mistakes,
    read_program,
    run_program,
)
from reasoningbank.algebra.evaluation import in_order
from reasoningbank.errors import BudgetError, EndpointError

from .faults import raises, said
from .in_memory import Bounds, Ended, Memory, op, outcome, text, uri, value

ENDPOINT = "http://e/sparql"
DATA = "@prefix : <http://e/> . :a :n 'A' . :b :n 'B' ; :m 'only b' . :c :n 'C' ."
ALL = op("SELECT", endpoint=ENDPOINT, query="SELECT ?s ?n { ?s <http://e/n> ?n } ORDER BY ?n")
ROWS = [{"n": text("x")}, {"n": text("y")}]
N = value("n")

FORMS: list[tuple[str, Any, Any, Any]] = [
    ("a SELECT", ALL, N, ["A", "B", "C"]),
    ("results without head", {"results": {"bindings": ROWS}}, N, ["x", "y"]),
    ("results with head", {"head": {"vars": ["n"]}, "results": {"bindings": ROWS}}, N, ["x", "y"]),
    ("a list of bindings", ROWS, N, ["x", "y"]),
    ("one binding", ROWS[0], N, ["x"]),
    ("no rows", {"results": {"bindings": []}}, op("STRUUID"), []),
    ("an empty list", [], op("STRUUID"), []),
    ("a list of strings", ["x", "y"], op("Str", input=op("Current")), ["x", "y"]),
    ("a list of numbers and terms", [1, uri("http://e/")], op("Current"), ["1", "http://e/"]),
    (
        "a list of operations",
        [op("Str", input="x"), op("Concat", inputs=["y", "z"])],
        op("Current"),
        ["x", "yz"],
    ),
    (
        "rows with operations in them",
        [{"n": op("Str", input="x")}, {"n": text("y", "en")}],
        N,
        ["x", "y"],
    ),
    (
        "a list of lists",
        [["a", "b"], ["c"]],
        op("ForEach", select=op("Current"), operation=op("Current")),
        [["a", "b"], ["c"]],
    ),
    ("another ForEach", op("ForEach", select=ROWS, operation=N), op("Current"), ["x", "y"]),
    (
        "the tables of another ForEach",
        op("ForEach", select=["http://e/1", "http://e/2"], operation=op(
            "PUT", url=op("Current"), data={"@id": "", "http://e/p": 1})),
        op("Filter", input=op("Filter", input=op("Current"), expression=1), expression="url"),
        ["http://e/1", "http://e/2"],
    ),
    ("what a Filter leaves", op("Filter", input=ALL, expression="?n > 'A'"), N, ["B", "C"]),
    ("graphs", [{"@id": "http://e/a", "http://e/p": 1}], op("Merge", graphs=[op("Current")]), [
        {
            "@context": {"xsd": "http://www.w3.org/2001/XMLSchema#"},
            "@id": "http://e/a",
            "http://e/p": {"@value": "1", "@type": "xsd:integer"},
        }
    ]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("select", "operation", "result"), [c[1:] for c in FORMS], ids=[c[0] for c in FORMS]
)
def test_what_it_goes_through(select: Any, operation: Any, result: Any) -> None:
    program = op("ForEach", select=select, operation=operation)
    assert outcome(program, Memory(data=DATA)) == result


REFUSED: list[tuple[str, Any, str]] = [
    ("a graph", op("GET", url="http://e/"), "$.args.select wrong-type"),
    ("a string", "x", "$.args.select wrong-type"),
    ("a URI", uri("http://e/"), "$.args.select wrong-type"),
    ("JSON-LD", {"@id": "http://e/", "http://e/p": 1}, "$.args.select wrong-type"),
    ("null", None, "$.args.select wrong-type"),
    ("a binding without terms", [{"x": "y"}], "$.args.select[0].x unmapped-key"),
]


@pytest.mark.parametrize(
    ("select", "reported"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED]
)
def test_what_it_does_not_go_through(select: Any, reported: str) -> None:
    wrong = mistakes(op("ForEach", select=select, operation=op("STRUUID")))
    assert len(wrong) == 1
    assert str(wrong[0]).startswith("$.args.select")
    assert said(wrong[0]) == reported


def test_a_list_of_operations_yields_all_results_of_a_row_in_order() -> None:
    several = [op("Variable", name="v", value=N), op("Str", input=N), value("$v")]
    assert outcome(op("ForEach", select=ROWS, operation=several)) == [
        [None, "x", "x"],
        [None, "y", "y"],
    ]
    assert outcome(op("ForEach", select=ROWS, operation=[op("Str", input=N)])) == [["x"], ["y"]]


def test_the_columns_of_a_query_are_known_before_it_is_asked() -> None:
    program = op("ForEach", select=ALL, operation=value("name"))
    reported = "$.args.operation.args.name unknown-column"
    (wrong,) = mistakes(program)
    assert said(wrong) == reported
    star = op("SELECT", endpoint=ENDPOINT, query="SELECT * { ?s ?p ?o }")
    assert not mistakes(op("ForEach", select=star, operation=value("o")))


def test_a_column_that_no_row_has_is_reported_at_run_time() -> None:
    star = op("SELECT", endpoint=ENDPOINT, query="SELECT * { ?s ?p ?o }")
    with raises(ProgramError, "unknown-column") as failed:
        outcome(op("ForEach", select=star, operation=value("x")), Memory(data=DATA))
    assert failed.value.where == "$.args.operation.args.name"


class Long(Memory):
    """An endpoint whose rows are made while they are read."""

    def __init__(self, size: int, **options: Any) -> None:
        super().__init__(**options)
        self.size = size

    def select(self, endpoint: str, query: str) -> Table:
        def rows() -> Iterator[Row]:
            for number in range(self.size):
                self.served += 1
                yield {"n": Literal(str(number))}

        return Table(("n",), rows())


SELECT_N = op("SELECT", endpoint=ENDPOINT, query="SELECT ?n { ?s ?p ?n }")


def test_rows_are_asked_for_while_results_are_read() -> None:
    web = Long(1_000_000)
    found = run_program(op("ForEach", select=SELECT_N, operation=op("Str", input=N)), web)
    assert isinstance(found, Stream)
    results = iter(found.items)
    assert [str(next(results)) for _ in range(3)] == ["0", "1", "2"]
    assert web.served == 3


@pytest.mark.parametrize("workers", [1, 4])
def test_many_rows_do_not_lie_in_memory(workers: int) -> None:
    web = Long(5_000)
    loop = op("ForEach", select=SELECT_N, operation=op("Str", input=N), concurrency=workers)
    program = read_program([loop, op("Filter", input=SELECT_N, expression=5_000)])
    streamed = memory(lambda: sum(len(chunk) for chunk in json_chunks(run_program(program, web))))
    assert web.served == 3 * 10_000
    kept = memory(lambda: [*web.select("", "").rows])
    assert streamed < kept / 4


def test_concurrent_rows_keep_their_order() -> None:
    together = threading.Barrier(4, timeout=60)

    class Meeting(Long):
        def get(self, url: str) -> Graph:
            together.wait()  # passes only when four rows are worked on at the same time
            return Graph()

        def send(self, method: Any, url: str, body: Any, **_: Any) -> Ended:
            return Ended(200, url)

    put = op("PUT", url=op("Concat", inputs=["http://e/", N]), data=op("GET", url="http://e/"))
    url = op("Filter", input=op("Filter", input=put, expression=1), expression="url")
    found = outcome(op("ForEach", select=SELECT_N, operation=url, concurrency=4), Meeting(40))
    assert found == [f"http://e/{n}" for n in range(40)]


@pytest.mark.parametrize("workers", [1, 3])
def test_after_a_failure_nothing_more_is_begun(workers: int) -> None:
    class Failing(Long):
        def send(self, method: Any, url: str, body: Any, **_: Any) -> Ended:
            if url.endswith("/5"):
                raise EndpointError("connection lost", where=url)
            return super().send(method, url, body)

    web = Failing(1_000)
    put = op("PUT", url=op("Concat", inputs=["http://e/", N]), data={"@id": "", "http://e/p": N})
    with pytest.raises(EndpointError) as failed:
        outcome(op("ForEach", select=SELECT_N, operation=put, concurrency=workers), web)
    assert str(failed.value) == "$.args.operation: http://e/5: connection lost"
    done = {line.rpartition("/")[2] for line in web.log}
    assert {"0", "1", "2", "3", "4"} <= done
    assert len(web.log) == len(done) <= 5 + workers


def test_a_failure_of_a_later_row_is_seen_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    known = threading.Event()

    class Telling(ThreadPoolExecutor):
        def submit(self, work: Any, row: int) -> Any:  # type: ignore[override]
            made = super().submit(work, row)
            if row == 3:
                made.add_done_callback(lambda _: known.set())
            return made

    def work(row: int) -> int:
        begun.append(row)
        if row == 3:
            raise ValueError("no")
        known.wait()
        return row

    monkeypatch.setattr(evaluation, "ThreadPoolExecutor", Telling)
    with pytest.raises(ValueError, match="no"):
        list(in_order(work, range(100), 4))
    assert sorted(begun) == [0, 1, 2, 3]


@pytest.mark.parametrize("number", [0, 17, 1.5, "many", True])
def test_concurrency_is_a_small_number(number: Any) -> None:
    wrong = mistakes(op("ForEach", select=[], operation=op("STRUUID"), concurrency=number))
    assert [one.where for one in wrong] == ["$.args.concurrency"]


def test_the_rows_of_a_run_are_counted_over_all_loops() -> None:
    program = [op("ForEach", select=SELECT_N, operation=N), op("Bindings", table=SELECT_N)]
    with raises(BudgetError, "budget") as failed:
        outcome(program, Long(6, limits=Bounds(rows=10)))
    assert failed.value.where == "$[1]"
    assert failed.value.fields["budget"] == "rows"
    assert len(outcome(program, Long(5, limits=Bounds(rows=10)))[1]) == 5


def test_depth_is_bounded() -> None:
    deep: Any = op("Str", input="x")
    for _ in range(9):
        deep = op("Str", input=deep)
    assert outcome(deep, Memory(limits=Bounds(depth=10))) == "x"
    with raises(BudgetError, "budget"):
        outcome(deep, Memory(limits=Bounds(depth=9)))
    for _ in range(60):
        deep = op("Str", input=deep)
    wrong = mistakes(deep)
    assert len(wrong) == 1
    assert wrong[0].code == "too-deep"


def test_time_is_bounded() -> None:
    with raises(BudgetError, "budget"):
        outcome(op("STRUUID"), Memory(limits=Bounds(seconds=0)))


def test_errors_of_a_stream_are_reported_at_the_query() -> None:
    class Broken(Memory):
        def select(self, endpoint: str, query: str) -> Table:
            def rows() -> Iterator[Row]:
                yield {"n": Literal("x")}
                raise EndpointError("the answer was cut off", where=endpoint)

            return Table(("n",), rows())

    web = Broken()
    program = op("ForEach", select=SELECT_N, operation=op("Str", input=N))
    with pytest.raises(EndpointError) as failed:
        outcome(program, web)
    assert str(failed.value) == "$.args.select: http://e/sparql: the answer was cut off"


def number(words: str) -> dict[str, str]:
    return text(words, "", str(XSD.integer))


FILTER_ROWS = [
    {"name": text("Aarhus", "da"), "size": number("285273"), "city": uri("http://e/a")},
    {"name": text("Odense", "en"), "size": number("180863")},
    {"name": text("Ribe"), "size": number("8367"), "city": {"type": "bnode", "value": "r"}},
]
TABLE = {"head": {"vars": ["name", "size", "city"]}, "results": {"bindings": FILTER_ROWS}}

CONDITIONS = [
    ("?size > 100000", [0, 1]),
    ("?size > 100000 && LANG(?name) = 'da'", [0]),
    ("BOUND(?city)", [0, 2]),
    ("!BOUND(?city)", [1]),
    ("isIRI(?city)", [0]),
    ("isBlank(?city)", [2]),
    ("isIRI(?city) || ?size < 9000", [0, 2]),
    ("REGEX(?name, '^[ao]', 'i')", [0, 1]),
    ("STRLEN(STR(?name)) = 4", [2]),
    ("?name IN ('Ribe', 'Odense')", [2]),
    ("STR(?name) IN ('Ribe', 'Odense')", [1, 2]),
    ("DATATYPE(?size) = xsd:integer", [0, 1, 2]),
    ("?city = <http://e/a>", [0]),
    ("?size + ?name > 0", []),
    ("?size > 100000 # a comment", [0, 1]),
    ("true", [0, 1, 2]),
    ("'}' = '}'", [0, 1, 2]),
]


@pytest.mark.parametrize(("condition", "left"), CONDITIONS)
def test_a_condition_takes_rows(condition: str, left: list[int]) -> None:
    found = outcome(op("Filter", input=TABLE, expression=condition))
    assert found == {"head": TABLE["head"], "results": {"bindings": [FILTER_ROWS[n] for n in left]}}


@pytest.mark.parametrize("position", [1, 2, 3])
def test_a_position_takes_an_item(position: int) -> None:
    assert outcome(op("Filter", input=TABLE, expression=position)) == FILTER_ROWS[position - 1]
    # As text, as `--var` gives it.
    assert outcome(op("Filter", input=TABLE, expression=str(position))) == FILTER_ROWS[position - 1]
    assert (
        outcome(op("Filter", input=FILTER_ROWS, expression=position)) == FILTER_ROWS[position - 1]
    )


def test_a_table_that_is_kept_as_a_list_keeps_its_columns() -> None:
    empty = {"head": {"vars": ["size"]}, "results": {"bindings": []}}
    kept = [op("Variable", name="rows", value=op("Bindings", table=empty))]
    rows = op("Value", name="$rows")
    found = outcome([*kept, op("Filter", input=rows, expression="?size > 1")])
    assert found[-1] == empty
    listed = op("Filter", input=op("Bindings", table=empty), expression="?size > 1")
    assert outcome(listed) == empty
    # Where no row binds ?size, it is unbound and no mistake.
    table = {"head": {"vars": ["name", "size"]}, "results": {"bindings": [{"name": text("x")}]}}
    kept = [op("Variable", name="rows", value=op("Bindings", table=table))]
    each = op("ForEach", select=rows, operation=op("Value", name="size"))
    assert outcome([*kept, each])[-1] == [None]
    values = op("Values", query="SELECT ?size { ?s ?p ?size }", data=rows)
    kept = [op("Variable", name="rows", value=op("Bindings", table=empty))]
    assert "VALUES" in outcome([*kept, values])[-1]


def test_bindings_of_writes_are_their_rows() -> None:
    put = op(
        "PUT",
        url=op("Str", input=op("Value", name="city")),
        data={"@id": "", "@type": "http://e/T"},
    )
    cities = {"results": {"bindings": [{"city": uri("http://e/a")}, {"city": uri("http://e/b")}]}}
    written = op("ForEach", select=cities, operation=put)
    rows = outcome(op("Bindings", table=written))
    assert [row["url"]["value"] for row in rows] == ["http://e/a", "http://e/b"]
    again = op("ForEach", select=op("Bindings", table=written), operation=op("Value", name="url"))
    assert outcome(again) == ["http://e/a", "http://e/b"]
    found = outcome(op("Filter", input=written, expression="STRENDS(STR(?url), 'b')"))
    assert len(found["results"]["bindings"]) == 1


def test_items_of_other_lists() -> None:
    assert outcome(op("Filter", input=["x", "y"], expression=2)) == "y"
    loop = op("ForEach", select=["x", "y"], operation=op("Concat", inputs=[op("Current"), "!"]))
    assert outcome(op("Filter", input=loop, expression=2)) == "y!"


def test_a_position_may_be_computed() -> None:
    three = op("Filter", input=op("Filter", input=TABLE, expression=3), expression="name")
    assert (
        outcome(
            [op("Variable", name="n", value=3), op("Filter", input=TABLE, expression=value("$n"))]
        )[1]
        == FILTER_ROWS[2]
    )
    assert outcome(three) == "Ribe"


@pytest.mark.parametrize("name", ["name", "?name", "$name"])
def test_a_name_takes_a_term_of_a_row(name: str) -> None:
    assert outcome(op("Filter", input=FILTER_ROWS[0], expression=name)) == "Aarhus"


def test_where_a_write_went() -> None:
    put = op("PUT", url="http://e/a", data={"@id": "", "http://e/p": 1})
    url = op("Filter", input=op("Filter", input=put, expression=1), expression="url")
    assert (
        outcome(op("GET", url=url), Memory(documents={"http://e/a": "<> <http://e/p> 1 ."}))["@id"]
        == "http://e/a"
    )


def test_bindings_of_several_writes() -> None:
    put = op("PUT", url=op("Current"), data={"@id": "", "http://e/p": 1})
    each = op("ForEach", select=["http://e/1", "http://e/2"], operation=put)
    rows = op("Bindings", table=op("Filter", input=each, expression=2))
    assert [row["url"]["value"] for row in outcome(rows)] == ["http://e/2"]


FILTER_REFUSED: list[tuple[Any, Any, str]] = [
    (TABLE, 0, "$.args.expression no-item"),
    (TABLE, -1, "$.args.expression no-item"),
    (TABLE, "?size >", "$.args.expression bad-condition"),
    (TABLE, "?size > 1) } #", "$.args.expression bad-condition"),
    (TABLE, "?size > 1) || (true", "$.args.expression bad-condition"),
    (TABLE, "EXISTS { ?s ?p ?o }", "$.args.expression bad-condition"),
    (TABLE, "ex:f(?size)", "$.args.expression bad-condition"),
    (TABLE, 1.5, "$.args.expression wrong-type"),
    ("x", 1, "$.args.input wrong-type"),
]


@pytest.mark.parametrize(("given", "expression", "reported"), FILTER_REFUSED)
def test_what_is_refused_before_the_run(given: Any, expression: Any, reported: str) -> None:
    wrong = mistakes(op("Filter", input=given, expression=expression))
    assert len(wrong) == 1
    assert said(wrong[0]) == reported


FAILING: list[tuple[Any, Any, str]] = [
    (TABLE, 4, "$.args.expression no-item"),
    ([], 1, "$.args.expression no-item"),
    (FILTER_ROWS[0], "none", "$.args.expression unknown-column"),
    (["x"], "true", "$.args.input wrong-type"),
    (TABLE, "?size > ?none", "$.args.expression unknown-column"),
    (TABLE, "size", "$.args.expression bad-condition"),
]


@pytest.mark.parametrize(("given", "expression", "reported"), FAILING)
def test_what_fails_in_the_run(given: Any, expression: Any, reported: str) -> None:
    with pytest.raises(ProgramError) as failed:
        outcome(op("Filter", input=given, expression=expression))
    assert said(failed.value) == reported


def test_a_condition_is_not_a_way_out() -> None:
    service = "EXISTS { SERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }"
    assert mistakes(op("Filter", input=TABLE, expression=service))


@pytest.mark.parametrize("nested", ["(" * 50_000 + "1" + ")" * 50_000, "!" * 50_000 + "true"])
def test_a_condition_that_nests_too_deeply_does_not_end_the_process(nested: str) -> None:
    (wrong,) = mistakes(op("Filter", input=TABLE, expression=nested))
    assert str(wrong).startswith("$.args.expression: the query is nested too deeply")
