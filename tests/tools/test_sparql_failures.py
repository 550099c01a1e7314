"""Whatever fails below the SPARQL tools leaves them as a line for the agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reasoningbank.errors import EndpointError, ToolError
from reasoningbank.sparql import EndpointConfig, SPARQLClient
from reasoningbank.tools import SPARQLTools

from .calls import CALLS, DEAD


def test_a_dead_endpoint_is_a_line_and_keeps_its_cause() -> None:
    tools = SPARQLTools(EndpointConfig(DEAD, "Dead", prefixes={"t": "http://e/"}, retries=0))
    for name, call in CALLS.items():
        if name == "endpoint_info":
            continue
        with pytest.raises(ToolError, match=r"127\.0\.0\.1:9.*again once") as caught:
            call(tools)
        assert type(caught.value.__cause__).__name__ == "EndpointError"


class Gone:
    """Lets so many requests through; then the endpoint is down."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = 0
        real = SPARQLClient.query

        def query(client: SPARQLClient, *args: Any, **kwargs: Any) -> Any:
            self.left -= 1
            if self.left < 0:
                raise EndpointError("no connection", where="http://127.0.0.1:9/")
            return real(client, *args, **kwargs)

        monkeypatch.setattr(SPARQLClient, "query", query)


def test_an_endpoint_that_goes_down_at_any_time_is_a_tool_error(
    trees: EndpointConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = Gone(monkeypatch)
    empty = {
        "empty": lambda t: t.sparql_peek(t.sparql_query("SELECT ?s { ?s a t:Trees }")),
        "no count": lambda t: t.sparql_count("SELECT (COUNT(*) AS ?n) { ?s a t:Trees }"),
        "of class": lambda t: t.sparql_properties(class_uri="t:Tree"),
        "no class": lambda t: t.sparql_sample("t:oak"),
    }
    causes: dict[str, list[object]] = {}
    for name, call in {**CALLS, **empty}.items():
        for gone.left in range(12):
            try:
                call(SPARQLTools(trees))
            except ToolError as error:
                causes.setdefault(name, []).append(error.__cause__)
    assert causes.keys() == {*CALLS, *empty} - {"endpoint_info"}
    assert all(isinstance(one, EndpointError) for found in causes.values() for one in found)


def test_an_endpoint_that_goes_down_after_its_statistics_is_a_tool_error(
    sample: EndpointConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = Gone(monkeypatch)
    gone.left = 1
    with pytest.raises(ToolError, match="again once") as caught:
        SPARQLTools(sample).sparql_classes()
    assert isinstance(caught.value.__cause__, EndpointError)


def test_a_schema_that_is_broken_leaves_no_tool_as_it_is(
    trees: EndpointConfig, tmp_path: Path
) -> None:
    broken = tmp_path / "schema.ttl"
    broken.write_text("a b", encoding="utf-8")
    tools = SPARQLTools(trees, schema=broken)
    for call in (tools.sparql_classes, tools.sparql_properties):
        with pytest.raises(ToolError, match="file cannot be read"):
            call()
    with pytest.raises(ToolError, match=r"prefix 'tt:' is not declared.*file cannot be read"):
        tools.sparql_query("SELECT ?s { ?s a tt:Tree }")
    empty = tools.sparql_query("SELECT ?s { ?s a t:Trees }")
    assert "file cannot be read" in tools.sparql_peek(empty).note
    bare = tools.sparql_query("SELECT ?s ?h { ?s a t:Tree OPTIONAL { ?s t:heigth ?h } }")
    assert "file cannot be read" in tools.sparql_peek(bare).note
    assert tools.sparql_count("SELECT (COUNT(*) AS ?n) { ?s a t:Trees }")["count"] == 0
