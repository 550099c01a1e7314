"""Filter and Bindings: positions, names, and conditions as in SPARQL's FILTER."""

from __future__ import annotations

from typing import Any

import pytest
from rdflib import XSD

from reasoningbank.algebra import ProgramError, mistakes

from .faults import said
from .in_memory import Memory, op, outcome, text, uri, value


def number(words: str) -> dict[str, str]:
    return text(words, "", str(XSD.integer))


ROWS = [
    {"name": text("Aarhus", "da"), "size": number("285273"), "city": uri("http://e/a")},
    {"name": text("Odense", "en"), "size": number("180863")},
    {"name": text("Ribe"), "size": number("8367"), "city": {"type": "bnode", "value": "r"}},
]
TABLE = {"head": {"vars": ["name", "size", "city"]}, "results": {"bindings": ROWS}}

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
    assert found == {"head": TABLE["head"], "results": {"bindings": [ROWS[n] for n in left]}}


@pytest.mark.parametrize("position", [1, 2, 3])
def test_a_position_takes_an_item(position: int) -> None:
    assert outcome(op("Filter", input=TABLE, expression=position)) == ROWS[position - 1]
    assert outcome(op("Filter", input=ROWS, expression=position)) == ROWS[position - 1]


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
        == ROWS[2]
    )
    assert outcome(three) == "Ribe"


@pytest.mark.parametrize("name", ["name", "?name", "$name"])
def test_a_name_takes_a_term_of_a_row(name: str) -> None:
    assert outcome(op("Filter", input=ROWS[0], expression=name)) == "Aarhus"


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


REFUSED: list[tuple[Any, Any, str]] = [
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


@pytest.mark.parametrize(("given", "expression", "told"), REFUSED)
def test_what_is_refused_before_the_run(given: Any, expression: Any, told: str) -> None:
    wrong = mistakes(op("Filter", input=given, expression=expression))
    assert len(wrong) == 1
    assert said(wrong[0]) == told


FAILING: list[tuple[Any, Any, str]] = [
    (TABLE, 4, "$.args.expression no-item"),
    ([], 1, "$.args.expression no-item"),
    (ROWS[0], "none", "$.args.expression unknown-column"),
    (["x"], "true", "$.args.input wrong-type"),
    (TABLE, "?size > ?none", "$.args.expression unknown-column"),
    (TABLE, "size", "$.args.expression bad-condition"),
]


@pytest.mark.parametrize(("given", "expression", "told"), FAILING)
def test_what_fails_in_the_run(given: Any, expression: Any, told: str) -> None:
    with pytest.raises(ProgramError) as failed:
        outcome(op("Filter", input=given, expression=expression))
    assert said(failed.value) == told


def test_a_condition_is_no_way_out() -> None:
    service = "EXISTS { SERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }"
    assert mistakes(op("Filter", input=TABLE, expression=service))


@pytest.mark.parametrize("nested", ["(" * 50_000 + "1" + ")" * 50_000, "!" * 50_000 + "true"])
def test_a_condition_that_nests_too_deeply_does_not_end_the_process(nested: str) -> None:
    (wrong,) = mistakes(op("Filter", input=TABLE, expression=nested))
    assert str(wrong).startswith("$.args.expression: the query is nested too deeply")
