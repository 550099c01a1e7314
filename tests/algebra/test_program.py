"""Programs are validated before they run, each mistake at its JSON path."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rdflib import Literal, URIRef

from reasoningbank.algebra import (
    ProgramError,
    json_chunks,
    mistakes,
    operations,
    read_program,
    run_program,
)
from reasoningbank.algebra.queries import check_query, check_update
from reasoningbank.algebra.source import parse_program, with_prefixes
from reasoningbank.errors import QueryError, ReasoningBankError

from .faults import said
from .in_memory import Bounds, Memory, op, outcome, text, uri, value

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


@pytest.mark.parametrize(("program", "reported"), CASES)
def test_mistakes(program: Any, reported: list[str] | None) -> None:
    found = mistakes(program)
    assert found
    for one, expected in zip(found, reported or (), strict=reported is not None):
        assert said(one) == expected
    with pytest.raises(ProgramError):
        read_program(program)


def test_all_mistakes_are_reported_at_once() -> None:
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


@pytest.mark.parametrize(("name", "query", "reported"), QUERIES)
def test_queries_are_checked(name: str, query: str, reported: str) -> None:
    (wrong,) = mistakes(op(name, endpoint=E, query=query))
    assert said(wrong) == reported
    # A query that is computed is checked when it is there.
    web = Memory()
    with pytest.raises(QueryError) as failed:
        outcome(op(name, endpoint=E, query=op("Concat", inputs=[query])), web)
    assert said(failed.value) == reported
    assert not web.log


def test_prefixes_that_only_the_endpoint_knows() -> None:
    assert not mistakes(op("SELECT", endpoint=E, query="SELECT ?s { ?s a dbo:City }"))


def test_updates_are_checked() -> None:
    for update, reported in (
        ("ASK {}", "$.args.update wrong-form"),
        ("INSERT DATA { ?s ?p ?o }", "$.args.update: line 1, column 25 syntax"),
        ("LOAD <http://e/>", "$.args.update: line 1, column 1 load"),
        ("DELETE WHERE { ?s ?p ?o } ; LOAD <http://e/>", "$.args.update: line 1, column 29 load"),
    ):
        (wrong,) = mistakes(op("PATCH", url=E, update=update))
        assert said(wrong) == reported
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


@pytest.mark.parametrize(("text", "reported"), TEXTS)
def test_texts_that_are_no_programs(text: str, reported: str) -> None:
    with pytest.raises(ProgramError) as failed:
        parse_program(text)
    assert said(failed.value) == reported


def test_a_program_as_deep_as_json_allows_is_reported() -> None:
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


def test_the_place_of_a_mistake_in_an_update_is_reported() -> None:
    update = "PREFIX e: <http://e/>\nDELETE { ?s e:p } WHERE { ?s e:p ?o }"
    (wrong,) = mistakes(op("PATCH", url=E, update=update))
    assert str(wrong).startswith(
        "$.args.update: line 2, column 13: the query cannot be parsed near"
    )


MADE = op("Substitute", query="ASK { ?a a ?v }", var="v", binding=1)
UNSOUND = [
    (op("SELECT", endpoint=E, query="SELECT ?a { ?a my:p 1 }"), "query unknown-prefix"),
    (op("PATCH", url=E, update="INSERT DATA { <a:b> my:p 1 }"), "update unknown-prefix"),
    (op("Substitute", query="ASK { ?a my:p ?v }", var="v", binding=1), " invalid-result"),
    (op("Substitute", query="ASK { ?a a ?v", var="v", binding=value("$x")), " invalid-result"),
    (op("Substitute", query="ASK { ?a a ?v }", var="w", binding=value("$x")), " no-such-variable"),
    (op("Values", query="ASK { ?a a ", data=[{"a": text("x")}]), "query syntax-error"),
    (op("SELECT", endpoint=E, query=MADE), "query wrong-form"),
    (op("PATCH", url=E, update=MADE), "update wrong-form"),
    (op("Filter", input=[{"a": text("x")}], expression="?a = my:x"), "expression bad-condition"),
    (op("Replace", input="x", pattern="(", replacement=""), "pattern bad-pattern"),
    (op("URI", input="schema:name"), "input prefixed-name"),
    (
        op(
            "Substitute",
            query="ASK { ?a a ?v }",
            var="v",
            binding={"type": "uri", "value": "foaf:Agent"},
        ),
        "binding prefixed-name",
    ),
    (op("Replace", input="x", pattern="x", replacement="$"), "replacement bad-replacement"),
]


HELD = [
    (op("SELECT", endpoint=E, query=value("$q")), "SELECT ?a { ?a my:p 1 }", "unknown-prefix"),
    (op("PATCH", url=E, update=value("$q")), "INSERT DATA { <a:b> my:p 1 }", "unknown-prefix"),
    (op("Values", query=value("$q"), data=[{"a": text("x")}]), "ASK { ?a a ", "syntax-error"),
    (op("Substitute", query=value("$q"), var="v", binding=1), "ASK { ?a a 1 }", "no-such-variable"),
    (op("SELECT", endpoint=E, query=value("$q")), "ASK { ?a a ?v }", "wrong-form"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "query", "code"), HELD)
def test_a_query_that_a_variable_holds_is_checked_before_anything_is_written(
    wrong: Any, query: str, code: str
) -> None:
    put = op("PUT", url="http://e/a", data={"@id": "", "http://e/p": 1})
    runtime = Memory()
    with pytest.raises(ProgramError) as failed:
        outcome([op("Variable", name="q", value=query), put, wrong], runtime)
    assert (failed.value.code, runtime.log) == (code, [])


def test_a_variable_that_is_set_anew_holds_what_it_was_set_to_last() -> None:
    first = op("Variable", name="q", value="ASK { ?a my:p 1 }")
    asked = op("ASK", endpoint=E, query=value("$q"))
    assert not mistakes([first, asked], prefixes={"my": "http://my/"})
    assert not mistakes([first, op("Variable", name="q", value="ASK { ?a a 1 }"), asked])
    computed = op("Variable", name="q", value=op("Str", input="ASK { ?a a 1 }"))
    assert not mistakes([first, computed, asked])


@pytest.mark.parametrize(("wrong", "reported"), UNSOUND)
def test_nothing_is_written_before_all_queries_are_sound(wrong: Any, reported: str) -> None:
    runtime = Memory()
    program = [op("PUT", url="http://e/a", data={"@id": "", "http://e/p": 1}), wrong]
    with pytest.raises(ProgramError) as failed:
        outcome(program, runtime, x=Literal("y"))
    place, code = reported.split(" ")
    assert failed.value.code == code
    assert failed.value.where.startswith(f"$[1].args.{place}" if place else "$[1]")
    assert runtime.log == []


def test_the_prefixes_of_a_pack_are_declared() -> None:
    asked = op("SELECT", endpoint=E, query="SELECT ?a { ?a my:p 1 }")
    built = op("SELECT", endpoint=E, query=op("Concat", inputs=["SELECT ?a {", "?a my:p 1 }"]))
    kept = op("Filter", input=asked, expression="?a = my:a")
    put = op("PUT", url="http://e/d", data={"@id": "my:a", "my:p": 1})
    patch = op(
        "PATCH", url="http://e/d", update=op("Concat", inputs=["INSERT DATA { my:a a ", "my:b }"])
    )
    runtime = Memory(data="<http://my/a> <http://my/p> 1 .")
    program = read_program([asked, built, kept, put, patch], prefixes={"my": "http://my/"})
    results = json.loads("".join(json_chunks(run_program(program, runtime))))
    assert [one["results"]["bindings"] for one in results[:3]] == [[{"a": uri("http://my/a")}]] * 3
    assert (URIRef("http://my/a"), URIRef("http://my/p"), None) in runtime.written["http://e/d"]
    assert runtime.updates[0].startswith("PREFIX my: <http://my/>")


def test_what_is_sent_declares_the_prefixes_that_everybody_knows() -> None:
    runtime = Memory()
    outcome(op("PATCH", url="http://e/d", update="INSERT DATA { <> schema:name 'x' }"), runtime)
    assert runtime.updates[0].startswith("PREFIX schema: <http")


def test_a_prefix_of_a_pack_that_ends_in_a_letter_means_in_documents_what_it_means_in_queries() -> (
    None
):
    put = op("PUT", url="http://e/d", data={"@id": "GO:1", "http://p": "x"})
    runtime = Memory()
    run_program(read_program(put, prefixes={"GO": "http://obo/GO_"}), runtime)
    assert (URIRef("http://obo/GO_1"), URIRef("http://p"), None) in runtime.written["http://e/d"]


def test_what_substitution_makes_need_not_be_valid_before() -> None:
    made = op("Substitute", query="SELECT ?a FROM ?g { ?a a ?b }", var="g", binding=value("$x"))
    assert mistakes(op("SELECT", endpoint=E, query=made), ["x"]) == ()


@pytest.mark.parametrize("prefix", ["wdt", "wikibase", "dbp", "dc", "prov"])
def test_well_known_prefixes_need_no_declaration(prefix: str) -> None:
    assert not mistakes(op("ASK", endpoint=E, query=f"ASK {{ ?a {prefix}:x ?b }}"))


@pytest.mark.parametrize(
    ("data", "reported"),
    [
        (op("Str", input="\ud800"), "$ half-character"),
        (op("Str", input=object()), "$ bad-json"),
    ],
)
def test_data_that_is_not_json(data: Any, reported: str) -> None:
    (wrong,) = mistakes(data)
    assert said(wrong) == reported


def test_an_update_that_nests_too_deeply_does_not_end_the_process() -> None:
    (wrong,) = mistakes(op("PATCH", url=E, update="DELETE {} WHERE " + "{" * 5000 + "}" * 5000))
    assert str(wrong).startswith("$.args.update: the update is nested too deeply")


# rdflib warns of literals that are not of their datatype.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

ROW = {"city": uri("http://e/a"), "cityName": text("A", "da"), "monarchLabel": text("x")}
CALLS = [op(kind.op, **example.args) for kind in operations().values() for example in kind.examples]
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 3), st.floats(allow_nan=False),
    st.text(max_size=5), st.sampled_from(["http://e/", "city", "$v", "?city", "@id", "@op", "ø ø"]),
)  # fmt: skip
ODD = st.recursive(
    st.one_of(SCALARS, st.sampled_from([*CALLS, value("city"), value("$v"), ROW, ROW["city"]])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["@op", "args", "@id", "@type", "@value", "@context", "@graph", "@language", "type",
                 "value", "results", "bindings", "head", "vars", "http://e/p", "name", "x:y"]
            ),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=6,
)  # fmt: skip


def places(data: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Go through the places of JSON data, as keys from its root."""
    yield above
    if isinstance(data, dict | list):
        for key in data if isinstance(data, dict) else range(len(data)):
            yield from places(data[key], (*above, key))


@st.composite
def programs(draw: st.DrawFn) -> Any:
    """Draw a program of the examples in which some places hold something else."""
    call = draw(st.sampled_from(CALLS))
    program: Any = [
        op("Variable", name="v", value="x"),
        op("ForEach", select=[ROW], operation=[op("Variable", name="cityName", value="y"), call]),
    ]
    for _ in range(draw(st.integers(0, 3))):
        program = copy.deepcopy(program)
        inside = [place for place in places(program) if place]
        if not inside:
            break
        place = draw(st.sampled_from(inside))
        holder = program
        for key in place[:-1]:
            holder = holder[key]
        if draw(st.booleans()):
            holder[place[-1]] = draw(ODD)
        else:
            del holder[place[-1]]
    return program


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(programs(), ODD))
def test_the_check_never_breaks_and_what_passes_runs_or_says_why(program: Any) -> None:
    wrong = mistakes(program)
    for one in wrong:
        assert one.where.startswith("$")
        assert "\n" not in str(one)
    if wrong:
        return
    web = Memory(
        documents={"http://dbpedia.org/resource/Copenhagen": "<> <http://e/p> 1 ."},
        data="<http://e/a> <http://e/p> 1 .",
        composer=lambda *_: "SELECT ?city ?cityName { ?city ?p ?cityName }",
        limits=Bounds(rows=50, depth=30),
    )
    reported = ""
    try:
        "".join(json_chunks(run_program(read_program(program), web))).encode()
    except ReasoningBankError as error:
        reported = str(error)
    assert reported == "" or reported.startswith("$")
    assert "\n" not in reported


KNOWN = {"dct": "http://purl.org/dc/terms/", "ex": "http://example.org/"}
ENDPOINT = "http://e/sparql"


@pytest.mark.parametrize(
    ("program", "path", "wanted"),
    [
        (
            op("SELECT", endpoint=ENDPOINT, query="SELECT ?a WHERE { ?a ex:p 'dct:x' }"),
            ("args", "query"),
            "PREFIX ex: <http://example.org/>\nSELECT ?a WHERE { ?a ex:p 'dct:x' }",
        ),
        (
            op("PATCH", url="http://e/d", update="DELETE WHERE { ?a ex:p ?b }"),
            ("args", "update"),
            "PREFIX ex: <http://example.org/>\nDELETE WHERE { ?a ex:p ?b }",
        ),
        (op("URI", input="ex:a"), ("args", "input"), f"{KNOWN['ex']}a"),
        (
            op("Substitute", query="ASK { }", binding={"v": {"type": "uri", "value": "ex:a"}}),
            ("args", "binding", "v", "value"),
            f"{KNOWN['ex']}a",
        ),
        (
            op("PUT", url="http://e/d", data={"@id": "ex:a", "dct:title": "ex:b"}),
            ("args", "data", "@context"),
            {"ex": KNOWN["ex"], "dct": KNOWN["dct"]},
        ),
        (
            [op("Merge", graphs=[{"@id": "http://e/a", "@type": "ex:T"}])],
            (0, "args", "graphs", 0, "@context"),
            {"ex": KNOWN["ex"]},
        ),
        (
            op("ForEach", select=[1], operation=op("POST", url="http://e/", data={"ex:p": 1})),
            ("args", "operation", "args", "data", "@context"),
            {"ex": KNOWN["ex"]},
        ),
        (
            op("PUT", url="http://e/d", data={"@context": {"ex": "http://my/"}, "ex:p": 1}),
            ("args", "data", "@context"),
            {"ex": "http://my/"},
        ),
        (
            op("PUT", url="http://e/d", data={"ex:p": [{"@id": "dct:x"}, op("STRUUID")]}),
            ("args", "data", "@context"),
            {"ex": KNOWN["ex"], "dct": KNOWN["dct"]},
        ),
    ],
)
def test_known_prefixes_are_declared(program: Any, path: tuple[Any, ...], wanted: Any) -> None:
    made = with_prefixes(program, KNOWN)
    assert not mistakes(made)
    for step in path:
        made = made[step]
    assert made == wanted


def test_what_is_nested_too_deeply_is_left_to_the_check() -> None:
    program: Any = "x"
    for _ in range(900):
        program = op("Str", input=program)
    assert with_prefixes(program, KNOWN) is program
    assert mistakes(program)[0].code == "too-deep"


@pytest.mark.parametrize(
    "program",
    [
        op("SELECT", endpoint=ENDPOINT, query="SELECT ?a WHERE { ?a no:p 1 }"),
        op("Str", input="ex:a"),
        op("PUT", url="http://e/d", data={"@context": ["http://far/"], "ex:p": 1}),
        op("PUT", url="http://e/d", data={"@id": "http://e/a", "http://e/p": "ex:b"}),
        {"@op": "Gte", "args": {"url": "ex:a"}},
        {"@op": "GET", "args": "ex:a"},
        {"@op": 1},
        "ex:a",
        None,
    ],
)
def test_what_needs_none_stays_as_it_is(program: Any) -> None:
    assert with_prefixes(program, KNOWN) == program
