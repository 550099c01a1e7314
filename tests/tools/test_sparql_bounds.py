"""What the SPARQL tools say is short, whatever was asked, and says how to get the rest."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from reasoningbank.errors import ToolError
from reasoningbank.sparql import EndpointConfig
from reasoningbank.tools import CAPS, SPARQLTools
from reasoningbank.tools.returns import MAX_CHARS

from .calls import ALL, DEAD


def test_endpoint_info_is_bounded_and_says_what_is_missing() -> None:
    prefixes = {f"p{i}": f"http://e/{'n' * 90}{i}/" for i in range(90)}
    labels = tuple(f"http://e/{'l' * 90}{i}" for i in range(60))
    config = EndpointConfig(DEAD, "Dead", "A" * 9_000, prefixes=prefixes, label_properties=labels)
    info = SPARQLTools(config).endpoint_info()
    assert len(json.dumps(info)) <= MAX_CHARS
    assert info["truncated"]
    left = len(config.namespaces) - len(info["prefixes"])
    assert f"{left} more prefixes are declared; a full IRI needs none" in info["note"]
    assert "more label properties" in info["note"]
    assert config.namespaces.items() >= info["prefixes"].items()


def test_at_the_most_a_list_does_not_ask_for_a_larger_limit(tools: SPARQLTools) -> None:
    most = {
        "sparql_classes": lambda n: tools.sparql_classes(n),
        "sparql_properties": lambda n: tools.sparql_properties(n),
        "sparql_find": lambda n: tools.sparql_find("node", n),
        "sparql_sample": lambda n: tools.sparql_sample(":Many", n),
    }
    for name, call in most.items():
        cap = CAPS[name]
        assert f"raise {cap.parameter} (at most {cap.most})" in call(2)["note"]
        for n in (CAPS[name].most, 5_000):
            note = call(n)["note"]
            assert f"there may be more; {CAPS[name].most} is the maximum of {name}" in note
            assert "use sparql_query with LIMIT and OFFSET" in note
            assert "raise" not in note


def test_where_characters_end_a_list_a_larger_limit_is_not_asked_for(tools: SPARQLTools) -> None:
    found = tools.sparql_describe(":hub", 45)
    assert found["count"] < 45
    assert "one return holds no more" in found["note"]
    assert "raise limit" not in found["note"]


def test_at_the_endpoints_most_rows_a_larger_limit_is_not_asked_for(tools: SPARQLTools) -> None:
    ref = tools.sparql_query(ALL, limit=200)
    for note in (tools.sparql_stats(ref)["note"], tools.sparql_slice(ref, 190, 200).note):
        assert "more rows than 200, the maximum of sparql_query" in note
        assert "gives up to" not in note


def test_where_bytes_cut_a_result_a_larger_limit_is_not_asked_for(wide: EndpointConfig) -> None:
    tools = SPARQLTools(replace(wide, max_bytes=2_000))
    ref = tools.sparql_query(ALL, limit=150)
    assert 0 < ref.rows < 150
    for note in (tools.sparql_stats(ref)["note"], tools.sparql_slice(ref, ref.rows - 1).note):
        assert "too large for one answer" in note
        assert "limit" not in note


def test_columns_are_bounded_in_characters_and_counted(few: SPARQLTools) -> None:
    names = [f"{'c' * 40}{i:03}" for i in range(300)]
    binds = " ".join(f"(1 AS ?{name})" for name in names)
    stats = few.sparql_stats(few.sparql_query(f"SELECT {binds} {{}}"))
    assert len(json.dumps(stats)) < MAX_CHARS
    assert stats["cols"] == names[: len(stats["cols"])]
    assert stats["truncated"]
    assert f"{300 - len(stats['cols'])} more columns" in stats["note"]


def test_a_column_with_an_endless_name_is_left_out(few: SPARQLTools) -> None:
    ref = few.sparql_query(f"SELECT (1 AS ?{'c' * 20_000}) (2 AS ?b) {{}}")
    assert few.sparql_peek(ref) == [{"b": 2}]
    assert "columns left out, too long: cccc" in few.sparql_peek(ref).note
    assert len(few.sparql_peek(ref).note) < 300
    assert len(json.dumps(few.sparql_stats(ref))) < 1_000


HUGE: dict[str, Callable[[SPARQLTools, Any], Any]] = {
    "peek": lambda t, x: t.sparql_peek(t.sparql_query("ASK {}"), x),
    "slice from": lambda t, x: t.sparql_slice(t.sparql_query(ALL), x, 10),
    "slice to": lambda t, x: t.sparql_slice(t.sparql_query(ALL), x, x),
    "limit": lambda t, x: t.sparql_query(ALL, x),
    "describe": lambda t, x: t.sparql_describe(x),
    "properties": lambda t, x: t.sparql_properties(class_uri=x),
    "sample": lambda t, x: t.sparql_sample(x),
}


@pytest.mark.parametrize("call", HUGE.values(), ids=HUGE.keys())
@pytest.mark.parametrize(
    "given",
    [
        "x" * 100_000,
        ["x" * 1_000] * 100,
        10**6_000,
        -(10**6_000),
        "http://e/" + "x" * 20_000,
        "x" * 9_000 + ":a",
    ],
    ids=["text", "list", "number", "negative", "iri", "prefix"],
)
def test_what_is_given_is_never_repeated_whole(
    few: SPARQLTools, call: Callable[[SPARQLTools, Any], Any], given: Any
) -> None:
    try:
        answer = call(few, given)
    except ToolError as error:
        answer = str(error)
    said = answer if isinstance(answer, str) else str(getattr(answer, "note", answer))
    assert len(said) < 3_000
