"""The SPARQL tools against a real endpoint: bounded, attributed, safe, silent."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import dspy
import pytest
from sparql.faulty import Answer, FaultyServer

from reasoningbank.errors import ToolError
from reasoningbank.refs import Ref, RefStore
from reasoningbank.sparql import BooleanResult, EndpointConfig, OxigraphServer, SPARQLClient
from reasoningbank.tools import CAPS, Rows, SPARQLTools
from reasoningbank.tools.returns import MAX_CHARS

from .calls import ALL, CALLS


def test_a_query_gives_a_handle_that_every_form_names(few: SPARQLTools) -> None:
    ref = few.sparql_query("SELECT ?h WHERE { t:oak t:height ?h }")
    assert repr(ref) == "Ref('results_0', 'results', 1 items from Trees)"
    as_json = json.loads(json.dumps(ref))
    for given in (ref, ref.key, as_json, Ref(**as_json)):
        assert few.sparql_peek(given) == [{"h": 31}]


def test_stats_say_rows_columns_and_source(few: SPARQLTools) -> None:
    ref = few.sparql_query("SELECT ?s ?h WHERE { ?s t:height ?h }")
    assert few.sparql_stats(ref) == {
        "source": "Trees",
        "rows": 3,
        "sz": ref.sz,
        "cols": ["s", "h"],
        "truncated": False,
    }


def test_a_result_cut_by_the_limit_says_so_everywhere(tools: SPARQLTools) -> None:
    ref = tools.sparql_query(ALL, limit=5)
    stats, rows = tools.sparql_stats(ref), tools.sparql_peek(ref)
    assert ref.rows == stats["rows"] == len(rows) == 5
    assert stats["truncated"]
    assert rows.truncated
    assert "sparql_query(query, limit=200) gives up to 200" in stats["note"]
    assert stats["note"] == rows.note


def test_a_limit_above_the_endpoints_own_is_lowered(tools: SPARQLTools) -> None:
    ref = tools.sparql_query(ALL, limit=100_000)
    assert ref.rows == 200
    assert tools.sparql_stats(ref)["truncated"]


def test_rows_are_capped_and_name_the_next_call(tools: SPARQLTools) -> None:
    ref = tools.sparql_query("SELECT ?m WHERE { ?m a :Many } ORDER BY ?m", limit=60)
    peeked = tools.sparql_peek(ref, 500)
    assert isinstance(peeked, Rows)
    assert (len(peeked), peeked.total, peeked.source, peeked.truncated) == (20, 60, "Wide", True)
    assert "lowered from 500 to 20" in peeked.note
    assert "sparql_slice('results_0', 20, 70)" in peeked.note
    rest = tools.sparql_slice(ref, 20, 70)
    assert len(rest) == 40
    assert not rest.truncated
    sliced = tools.sparql_slice(ref, 0, 500)
    assert len(sliced) == CAPS["sparql_slice"].most
    assert "lowered from 500 to 50" in sliced.note


def test_wide_rows_are_cut_in_characters_and_none_is_lost(tools: SPARQLTools) -> None:
    columns = " ".join(f"?c{i}" for i in range(5))
    binds = " ".join(f"BIND(?o AS ?c{i})" for i in range(5))
    query = f"SELECT {columns} WHERE {{ :hub ?p ?o {binds} }} ORDER BY ?o"
    ref = tools.sparql_query(query, limit=60)
    seen: list[dict[str, Any]] = []
    while len(seen) < ref.rows:
        part = tools.sparql_slice(ref, len(seen), len(seen) + 50)
        assert 0 < len(json.dumps(part)) <= MAX_CHARS + 100
        seen += part
    assert len({row["c0"] for row in seen}) == 60


@pytest.mark.parametrize(
    ("start", "end"), [(-1, 3), (3, 1), (-5, -1), ("0", 3), (0, 2.5), (None, 3), (60, 70)]
)
def test_a_slice_that_is_none_is_a_line_for_the_agent(
    tools: SPARQLTools, start: Any, end: Any
) -> None:
    ref = tools.sparql_query("SELECT ?m WHERE { ?m a :Many }")
    with pytest.raises(ToolError, match=r"0 <= start < end|slice from 0 to 60") as caught:
        tools.sparql_slice(ref, start, end)
    assert "\n" not in str(caught.value)


def test_an_empty_result_has_no_rows_and_no_error(few: SPARQLTools) -> None:
    ref = few.sparql_query("SELECT ?x WHERE { t:nothing t:height ?x }")
    assert few.sparql_peek(ref) == []
    assert few.sparql_slice(ref) == []
    assert few.sparql_stats(ref)["rows"] == 0


@pytest.mark.parametrize("look", ["sparql_peek", "sparql_slice", "sparql_stats"])
def test_an_unknown_handle_names_those_at_hand(few: SPARQLTools, look: str) -> None:
    few.sparql_query("ASK { t:oak ?p ?o }")
    with pytest.raises(ToolError, match=r"unknown handle 'results_7'.*boolean_0"):
        getattr(few, look)("results_7")


def test_a_handle_of_another_kind_is_refused(trees: EndpointConfig) -> None:
    with RefStore() as store:
        other = store.put({}, dtype="registry", rows=1, sz=2, source="x")
        with pytest.raises(ToolError, match="handle of 'registry'"):
            SPARQLTools(trees, store=store).sparql_peek(other)


def test_ask_construct_and_describe_have_handles_too(few: SPARQLTools) -> None:
    ask = few.sparql_query("ASK { t:oak t:near t:pine }")
    assert few.sparql_peek(ask) == [{"boolean": True}]
    assert few.sparql_stats(ask)["boolean"] is True
    built = few.sparql_query("CONSTRUCT { ?s t:high true } WHERE { ?s t:height ?h }")
    assert repr(built) == "Ref('graph_0', 'graph', 3 items from Trees)"
    assert few.sparql_stats(built)["cols"] == ["subject", "predicate", "object"]
    assert {"subject": "t:oak", "predicate": "t:high", "object": True} in few.sparql_peek(built)
    described = few.sparql_query("DESCRIBE t:moss")
    assert few.sparql_slice(described, 0, 10).source == "Trees"
    assert described.rows == 2


@pytest.mark.parametrize(
    "update",
    [
        "DELETE WHERE { ?s ?p ?o }",
        "INSERT DATA { <http://e/x> <http://e/y> 1 }",
        "DROP ALL",
        "LOAD <http://127.0.0.1:9/x>",
        "SELECT * WHERE { ?s ?p ?o } ; DELETE WHERE { ?s ?p ?o }",
    ],
)
@pytest.mark.parametrize("tool", ["sparql_query", "sparql_count"])
def test_updates_are_refused_and_change_nothing(few: SPARQLTools, tool: str, update: str) -> None:
    before = few.sparql_count(ALL)["count"]
    with pytest.raises(ToolError):
        getattr(few, tool)(update)
    assert few.sparql_count(ALL)["count"] == before > 0


def test_addresses_outside_the_run_cannot_be_reached(few: SPARQLTools) -> None:
    with pytest.raises(ToolError, match="not among the allowed endpoints"):
        few.sparql_query("SELECT * { SERVICE <http://127.0.0.1:9/sparql> { ?s ?p ?o } }")


@pytest.mark.parametrize("query", ["", "   ", None, "SELECT ?x WHERE { ?x", "hello"])
def test_a_query_that_is_none_is_one_line(few: SPARQLTools, query: Any) -> None:
    with pytest.raises(ToolError) as caught:
        few.sparql_query(query)
    assert caught.value.hint
    assert "\n" not in str(caught.value)


def test_classes_and_properties_are_capped_and_counted(tools: SPARQLTools) -> None:
    classes = tools.sparql_classes(500)
    assert len(classes["classes"]) == classes["count"] == 100
    assert classes["classes"][0] == {"class": ":Many", "count": 60}
    assert classes["truncated"]
    assert "lowered from 500 to 100" in classes["note"]
    properties = tools.sparql_properties(500)
    assert len(properties["properties"]) == 100
    assert "lowered from 500 to 100" in properties["note"]
    assert tools.sparql_classes(3)["truncated"]


def test_the_properties_of_one_class(few: SPARQLTools) -> None:
    found = few.sparql_properties(class_uri="t:Moss")
    assert {row["property"] for row in found["properties"]} == {"rdf:type", "rdfs:label"}
    assert "there is no class t:Fern" in few.sparql_properties(class_uri="t:Fern")["note"]


def test_describe_shows_the_triples_and_what_points_there(few: SPARQLTools) -> None:
    found = few.sparql_describe("t:oak")
    assert few.sparql_describe('"t:oak"') == found
    assert found["uri"] == "t:oak"
    assert {"p": "t:height", "o": 31} in found["triples"]
    assert {"p": "t:near", "s": "t:pine"} in found["triples"]
    near = [row["o"] for row in found["triples"] if row["p"] == "t:near" and "o" in row]
    assert sorted(near) == ["t:ash", "t:pine"]
    assert (found["truncated"], "note" in found) == (False, False)
    few_triples = few.sparql_describe("t:oak", found["count"] - 1)
    assert {"p": "t:near", "o": near[0], "count": 2} in few_triples["triples"]
    assert few_triples["truncated"]
    assert (
        'raise limit (at most 50), or sparql_query("SELECT ?o { t:oak t:near ?o }")'
        in (few_triples["note"])
    )
    assert few.sparql_describe("<http://e/oak>") == few.sparql_describe("http://e/oak") == found
    assert "sparql_find" in few.sparql_describe("t:nothing")["note"]
    assert "did you mean t:Tree?" in few.sparql_describe("t:Treee")["note"]


def test_counts_of_all_properties_are_exact_below_the_bound(tools: SPARQLTools) -> None:
    found = tools.sparql_describe(":hub", 5)
    assert [row["p"] for row in found["triples"]] == [":p0", ":p1", ":p10", ":p11", ":p12"]
    assert "first 10,000" not in found["note"]


def test_describe_says_how_to_list_more_of_what_points_there(few: SPARQLTools) -> None:
    found = few.sparql_describe("t:Tree")
    assert found["truncated"]
    assert 'sparql_query("SELECT ?s { ?s rdf:type t:Tree }")' in found["note"]
    assert "raise limit" not in found["note"]


def test_describe_is_capped_in_rows_and_characters(tools: SPARQLTools) -> None:
    found = tools.sparql_describe(":hub", 500)
    assert len(found["triples"]) <= 50
    assert found["truncated"]
    assert "lowered from 500 to 50" in found["note"]
    assert len(json.dumps(found)) <= MAX_CHARS


def test_find_ranks_and_is_capped(tools: SPARQLTools, few: SPARQLTools) -> None:
    found = few.sparql_find("tree")
    assert [row["uri"] for row in found["results"]] == ["t:pine", "t:ash"]
    many = tools.sparql_find("node", 500)
    assert len(many["results"]) == 50
    assert many["truncated"]
    assert "lowered from 500 to 50" in many["note"]
    assert "shorter or another word" in few.sparql_find("fern")["note"]


def test_sample_lists_instances_and_shows_the_first(tools: SPARQLTools, few: SPARQLTools) -> None:
    found = few.sparql_sample("t:Tree", 2)
    assert len(found["instances"]) == 2
    assert found["truncated"]
    assert {row["p"] for row in found["example"]} >= {"rdf:type", "rdfs:label", "t:height"}
    many = tools.sparql_sample(":Many", 500)
    assert len(many["instances"]) == 50
    assert "lowered from 500 to 50" in many["note"]
    for look in (few.sparql_sample, lambda name: few.sparql_properties(class_uri=name)):
        assert "there is no class t:Treee; try t:Tree" in look("t:Treee")["note"]
        with pytest.raises(ToolError, match="Tree: not an IRI; did you mean t:Tree"):
            look("Tree")


INJECTIONS = [
    'x") } } ; DROP ALL #',
    "http://e/oak> ?p ?o } ; DELETE WHERE { ?s ?p ?o } #",
    "<http://e/oak> ?p ?o . ?a ?b <http://e/x>",
    "t:oak } UNION { ?s ?p ?o",
    "http://e/oak\n} #",
    "\\u003E",
    "\ud800",
]


@pytest.mark.parametrize("text", INJECTIONS)
@pytest.mark.parametrize("tool", ["sparql_describe", "sparql_sample", "sparql_find"])
def test_text_cannot_become_query(few: SPARQLTools, tool: str, text: str) -> None:
    before = few.sparql_count(ALL)["count"]
    found = {"count": 0}
    with contextlib.suppress(ToolError):
        found = getattr(few, tool)(text)
    assert found["count"] == 0
    assert few.sparql_count(ALL)["count"] == before


def test_quotes_and_backslashes_are_found_as_written(tools: SPARQLTools) -> None:
    assert [r["uri"] for r in tools.sparql_find('"hi" \\ }')["results"]] == [":odd"]


@pytest.mark.parametrize("tool", ["sparql_describe", "sparql_sample", "sparql_find"])
@pytest.mark.parametrize("wrong", [None, 7, "", {"key": "results_0"}])
def test_what_is_not_text_is_a_line_for_the_agent(few: SPARQLTools, tool: str, wrong: Any) -> None:
    with pytest.raises(ToolError):
        getattr(few, tool)(wrong)


def test_count_returns_the_number_or_the_rows(few: SPARQLTools) -> None:
    counted = few.sparql_count("SELECT (COUNT(*) AS ?n) WHERE { ?s a t:Tree }")
    assert counted == {"source": "Trees", "count": 3, "truncated": False}
    with pytest.raises(ToolError, match="needs a SELECT"):
        few.sparql_count("ASK { ?s ?p ?o }")


@pytest.mark.parametrize(
    ("query", "count", "note"),
    [
        ("SELECT ?s { ?s a t:Tree }", 3, "the number of rows: the query has no COUNT"),
        ("SELECT ?n { VALUES ?n { 42 } }", 42, "the value of ?n, which is not a COUNT"),
        ("SELECT (AVG(?n) AS ?a) { VALUES ?n { 1 2 2 } }", 5 / 3, "the value of ?a"),
        ("SELECT (SUM(?n) AS ?a) { VALUES ?n { 1 2 } }", 3, "the value of ?a"),
        ("SELECT (MIN(?l) AS ?a) { ?s rdfs:label ?l }", 1, "the number of rows"),
        ("SELECT ?a { VALUES ?a { 2.5 } }", 2.5, "the value of ?a"),
        ("SELECT ?a { VALUES ?a { 'no'^^xsd:decimal } }", 1, "the number of rows"),
        ("SELECT (MAX(?s) AS ?m) (COUNT(*) AS ?n) { ?s a t:Tree }", 3, "this is ?n"),
        ("SELECT (COUNT(*) AS ?n) (COUNT(?x) AS ?m) { ?s a t:Tree }", 3, "?n; ?m is 0"),
        ("SELECT ?c (COUNT(*) AS ?n) { ?s a ?c } GROUP BY ?c", 2, "the number of groups"),
        ("SELECT (COUNT(DISTINCT STR(?s)) AS ?n) { ?s a t:Tree }", 3, ""),
        ("SELECT (COUNT(IF(STRLEN(STR(?s)) > 1, 1, ?u)) AS ?n) { ?s a t:Tree }", 3, ""),
        ("SELECT ?n { { SELECT (COUNT(*) AS ?n) { ?s a t:Tree } } }", 3, ""),
    ],
)
def test_count_says_what_it_counted(few: SPARQLTools, query: str, count: float, note: str) -> None:
    counted = few.sparql_count(query)
    assert counted["count"] == pytest.approx(count)
    assert note in counted.get("note", "")
    assert note or "not a COUNT" not in counted.get("note", "")


@pytest.mark.parametrize("head", ["CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }", "DESCRIBE :hub"])
def test_the_limit_of_a_query_is_that_of_triples_too(wide: EndpointConfig, head: str) -> None:
    with_hub = SPARQLTools(replace(wide, max_rows=10_000))
    assert with_hub.sparql_query(head, 10).rows == 10
    assert "sparql_query(query, limit=10000)" in with_hub.sparql_stats("graph_0")["note"]
    assert with_hub.sparql_query(head).rows == (60 if "hub" in head else 100)
    assert with_hub.sparql_query(head, 9_000).rows == (60 if "hub" in head else 481)


def test_count_of_more_rows_than_the_cap_says_so(tools: SPARQLTools) -> None:
    counted = tools.sparql_count(ALL)
    assert counted["count"] == 200
    assert counted["truncated"]
    assert "cap" in counted["note"]


def test_endpoint_info_names_the_public_address(few: SPARQLTools) -> None:
    info = few.endpoint_info()
    assert info["url"] == "https://trees.example/sparql/"
    assert next(iter(info["prefixes"].items())) == ("t", "http://e/")
    assert info["prefixes"] == few.config.namespaces
    assert (info["name"], info["authority"]) == ("Trees", "The Forest")
    assert not info["truncated"]
    assert "note" not in info


def test_every_tool_is_json_names_its_source_and_prints_nothing(
    few: SPARQLTools, capfd: pytest.CaptureFixture[str]
) -> None:
    assert CALLS.keys() == few.as_dspy_tools().keys()
    for name, call in CALLS.items():
        value = call(few)
        json.dumps(value, allow_nan=False)
        source = value["source"] if isinstance(value, dict) else value.source
        assert source == "Trees", name
        if name != "sparql_query":
            assert hasattr(value, "truncated") or "truncated" in value, name
    assert capfd.readouterr() == ("", "")


def test_tools_are_called_positionally_and_by_name(few: SPARQLTools) -> None:
    tools = few.as_dspy_tools()
    query = "SELECT ?h { ?s t:height ?h }"
    ref = tools["sparql_query"](query, 2)
    assert tools["sparql_query"](query=query, limit=2).rows == ref.rows == 2
    assert tools["sparql_peek"](ref, 1) == tools["sparql_peek"](ref=ref, n=1)


def test_dspy_takes_them_with_names_types_and_descriptions(few: SPARQLTools) -> None:
    for name, function in few.as_dspy_tools().items():
        tool = dspy.Tool(function)
        assert tool.name == name
        assert tool.desc
        assert all(tool.args.values())
    tools = {name: dspy.Tool(function) for name, function in few.as_dspy_tools().items()}
    ref = tools["sparql_query"](query="SELECT ?h { t:oak t:height ?h }")
    assert tools["sparql_peek"](ref=ref) == [{"h": 31}]
    assert tools["sparql_peek"](ref=ref.key, n=1) == [{"h": 31}]


def test_they_work_in_dspys_local_interpreter(few: SPARQLTools) -> None:
    code = (
        "ref = sparql_query('SELECT ?h { ?s t:height ?h } ORDER BY ?h', 2)\n"
        "print(ref['key'], sparql_peek(ref, 1), sparql_peek(ref=ref['key'], n=1))\n"
        "print(sparql_count(query='SELECT * { ?s a t:Tree }')['count'])\n"
        "print(sparql_find(pattern='moss')['results'][0]['uri'])\n"
        "try:\n    sparql_query('DROP ALL')\n"
        "except RuntimeError as error:\n    print(str(error)[:9])\n"
    )
    with dspy.LocalInterpreter(tools=few.as_dspy_tools()) as interpreter:
        said = interpreter.execute(code)
    assert said == "results_0 [{'h': 12}] [{'h': 12}]\n3\nt:moss\nToolError"


def test_large_results_leave_memory_and_are_read_back(wide: EndpointConfig) -> None:
    store = RefStore(memory_bytes=1)
    tools = SPARQLTools(wide, store=store)
    ref = tools.sparql_query("SELECT ?m WHERE { ?m a :Many } ORDER BY ?m", 60)
    assert store.resident_bytes == 0 < store.spilled_bytes
    assert tools.sparql_peek(ref, 1) == [{"m": ":m0"}]
    store.close()
    assert store.spilled_bytes == 0


def test_closing_releases_what_is_its_own_and_nothing_else(trees: EndpointConfig) -> None:
    own = SPARQLTools(trees)
    own.sparql_query("ASK {}")
    own.close()
    assert len(own.store) == 0
    with pytest.raises(ToolError, match="the client is closed"):
        own.sparql_query("ASK {}")
    with RefStore() as store, SPARQLClient(trees) as client:
        sharing = SPARQLTools(trees, store=store, client=client)
        ref = sharing.sparql_query("ASK {}")
        sharing.close()
        for kept in (store.get(ref), client.query("ASK {}")):
            assert isinstance(kept, BooleanResult)
            assert kept.value


def test_a_lowered_limit_is_said_wherever_the_rows_are_looked_at(tools: SPARQLTools) -> None:
    above = tools.sparql_query(ALL, limit=100_000)
    for note in (tools.sparql_stats(above)["note"], tools.sparql_peek(above).note):
        assert "limit lowered from 100000 to 200, the maximum of sparql_query" in note
    own = tools.sparql_query(ALL + " LIMIT 50", limit=10)
    assert own.rows == 10
    for note in (tools.sparql_stats(own)["note"], tools.sparql_slice(own).note):
        assert "LIMIT lowered from 50 to 10" in note
    fits = tools.sparql_query("SELECT ?m { ?m a :Many } LIMIT 90", limit=80)
    assert fits.rows == 60
    assert "note" not in tools.sparql_stats(fits)


def test_full_terms_are_lossless_and_bounded(tools: SPARQLTools) -> None:
    ref = tools.sparql_query('SELECT ?o ("a\\nb"@de AS ?t) (2.5 AS ?n) { :hub :p0 ?o }')
    row = tools.sparql_peek(ref, full=True)[0]
    assert row["t"] == '"a\\nb"@de'
    assert row["n"] == '"2.5"^^<http://www.w3.org/2001/XMLSchema#decimal>'
    assert row["o"] == f'"{"x" * 190}0"'
    assert tools.sparql_slice(ref, 0, 1, full=True) == [row]
    long = tools.sparql_query('SELECT (REPLACE("x", "x", "' + "y" * 9_000 + '") AS ?long) {}')
    shown = tools.sparql_peek(long, full=True)[0]["long"]
    assert len(shown) < MAX_CHARS
    assert "(9002 characters; SUBSTR" in shown


def test_a_row_too_wide_for_one_return_loses_columns_and_says_which(tools: SPARQLTools) -> None:
    columns = " ".join(f'("{"z" * 190}" AS ?c{i})' for i in range(80))
    rows = tools.sparql_peek(tools.sparql_query(f"SELECT {columns} {{}}"))
    assert len(json.dumps(rows)) <= MAX_CHARS
    assert "columns left out, too long: c" in rows.note
    assert rows.truncated


def test_one_odd_term_hides_no_other(tmp_path: Path) -> None:
    """Stores hold IRIs and language tags that RDF forbids."""
    rows = '?s\t?o\n<http://e/a b>\t"ok"\n<http://e/c>\t"x"@12\n'
    faulty = FaultyServer()
    try:
        faulty.script(Answer(200, rows.encode()))
        tools = SPARQLTools(EndpointConfig(faulty.url, "Odd"))
        shown = tools.sparql_peek(tools.sparql_query("SELECT ?s ?o { ?s ?p ?o }"))
        assert [row["o"] for row in shown] == ["ok", "x"]
        media = {"Content-Type": "application/sparql-results+json"}
        here = Answer(200, b'{"boolean": true}', media)
        faulty.script(
            here, Answer(200, b"?s\n<http://e/a b>\n"), Answer(200, b"?p\t?example\t?count\n")
        )
        found = tools.sparql_sample("http://e/Tree")
        assert "http://e/a b" in str(found["instances"])
    finally:
        faulty.close()


def test_a_column_without_any_value_is_explained(few: SPARQLTools) -> None:
    ref = few.sparql_query("SELECT ?s ?h { ?s a t:Tree OPTIONAL { ?s t:heigth ?h } }")
    assert "t:height" in few.sparql_peek(ref).note
    fine = few.sparql_query("SELECT ?s ?h { ?s a t:Tree OPTIONAL { ?s t:height ?h } }")
    assert few.sparql_peek(fine).note == ""


def test_an_empty_result_is_explained_once(
    trees: EndpointConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = SPARQLTools(trees)
    ref = tools.sparql_query("SELECT ?s { ?s a t:Trees }")
    first = tools.sparql_peek(ref)
    assert "t:Tree" in first.note
    tools.sparql_query("ASK {}")
    monkeypatch.setattr(tools, "_explained", lambda *_: pytest.fail("asked twice"))
    assert tools.sparql_slice(ref).note == tools.sparql_stats(ref)["note"] == first.note


def test_a_count_of_nothing_is_explained(few: SPARQLTools) -> None:
    found = few.sparql_count("SELECT (COUNT(*) AS ?n) { ?s a t:Trees }")
    assert found["count"] == 0
    assert "t:Tree" in found["note"]


def test_an_unknown_prefix_is_answered_with_what_was_meant(few: SPARQLTools) -> None:
    with pytest.raises(ToolError, match="did you mean") as caught:
        few.sparql_query("SELECT ?s { ?s a tt:Tree }")
    assert "\n" not in str(caught.value)


def test_data_in_named_graphs_are_explored_all_the_same(tmp_path: Path) -> None:
    file = tmp_path / "named.nq"
    label = "http://www.w3.org/2000/01/rdf-schema#label"
    typing = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
    file.write_text(
        f"<http://e/a> <{typing}> <http://e/C> <http://e/g> .\n"
        f'<http://e/a> <{label}> "Apple" <http://e/g> .\n',
        encoding="utf-8",
    )
    with OxigraphServer([file], union_default_graph=False) as server:
        tools = SPARQLTools(EndpointConfig(server.url))
        classes = tools.sparql_classes()
        assert classes["classes"] == [{"class": "<http://e/C>", "count": 1}]
        assert "put GRAPH ?g" in classes["note"]
        assert tools.sparql_find("apple")["results"][0]["uri"] == "<http://e/a>"
        assert tools.sparql_describe("http://e/a")["count"] == 2
        assert tools.sparql_sample("http://e/C")["example"]


def test_tools_say_what_they_do_in_one_short_line(few: SPARQLTools) -> None:
    for name, function in few.as_dspy_tools().items():
        lines = (function.__doc__ or "").strip().splitlines()
        assert len(lines) == 1, name
        assert len(lines[0]) <= 110, name
