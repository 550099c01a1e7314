"""What tools a server offers, that each answers, and what bad calls get: one line."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from lm.scripted import chat, failure, scripted
from mcp import Client
from mcp_calls import answer, line

from reasoningbank.corpus import load_pack, load_shacl_tasks, split_tasks
from reasoningbank.mcp import Settings
from reasoningbank.memory import MemoryBank, MemoryItem, Provenance
from reasoningbank.tools import EndpointTools, SPARQLTools

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Serving

pytestmark = pytest.mark.anyio


async def test_the_tools_are_those_that_agents_have(server: Serving) -> None:
    async with Client(server.url) as client:
        tools = (await client.list_tools()).tools
        assert client.server_info is not None
        assert client.server_info.name == "reasoningbank"
        assert "sparql_peek" in (client.instructions or "")
    agents = [*SPARQLTools.__dict__, *EndpointTools.__dict__]
    own = ["memory_search", "memory_get", "algebra_operations", "algebra_validate"]
    own += ["algebra_run", "algebra_slice"]
    names = [tool.name for tool in tools]
    assert names[-6:] == own
    assert len(names) == 26
    assert set(names[:-6]) <= set(agents)
    for tool in tools:
        assert tool.description
        assert tool.input_schema["additionalProperties"] is False
        assert tool.annotations is not None
        # This server may write documents, and only programs can.
        assert tool.annotations.read_only_hint is (tool.name != "algebra_run")
        assert all(one.get("description") for one in tool.input_schema["properties"].values())


async def test_every_tool_answers(server: Serving) -> None:
    async with Client(server.url, mode="legacy") as client:
        info = await answer(client, "endpoint_info")
        assert (info["name"], info["url"]) == ("Trees", "https://trees.example/sparql/")
        assert (await answer(client, "sparql_classes"))["classes"][0]["class"] == "t:Tree"
        found = await answer(client, "sparql_properties", class_uri="t:Moss")
        assert "rdfs:label" in {one["property"] for one in found["properties"]}
        assert (await answer(client, "sparql_describe", uri="t:oak"))["triples"]
        assert (await answer(client, "sparql_sample", class_uri="t:Tree"))["count"] == 3
        count = "SELECT (COUNT(*) AS ?n) { ?s a t:Tree }"
        assert (await answer(client, "sparql_count", query=count))["count"] == 3
        registry = await answer(client, "federated_endpoints")
        listed = await answer(client, "endpoints_list", ref=registry["key"])
        assert [one["name"] for one in listed["endpoints"]] == ["Trees"]
        detail = await answer(client, "endpoint_detail", ref=registry, name="Trees")
        assert detail["may_be_asked"] is True
        assert (await answer(client, "data_graphs", ref=registry["key"]))["total"] == 0
        described = await answer(client, "service_desc", url="https://trees.example/sparql/")
        for tool in ("stats", "graphs", "features", "sample"):
            assert (await answer(client, f"service_desc_{tool}", ref=described["key"]))["source"]
        heights = await answer(client, "memory_search", query="How tall is the oak?")
        assert heights["count"] == 2
        whole = await answer(client, "memory_get", item_id=heights["items"][0]["id"])
        assert whole["item"]["content"]


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("sparql_peek", {}, "ref"),
        ("sparql_peek", {"ref": "results_0", "rows": 3}, "rows"),
        ("sparql_peek", {"ref": 5}, "ref"),
        ("sparql_peek", {"ref": None}, "ref"),
        ("sparql_peek", {"ref": "results_0"}, "no handles exist yet"),
        ("sparql_query", {"query": "SELECT ?x {"}, "line 1"),
        ("sparql_query", {"query": "SELECT ?x { ?x no:such ?y }"}, "no"),
        ("sparql_query", {"query": "DELETE WHERE { ?s ?p ?o }"}, "update"),
        ("sparql_query", {"query": "ASK {}", "limit": "many"}, "limit"),
        ("sparql_query", {"query": "ASK {}", "limit": 0}, "limit"),
        ("sparql_query", {"query": "ASK { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }"}, "SERV"),
        ("sparql_find", {"pattern": ""}, "pattern"),
        ("service_desc", {"url": "http://169.254.169.254/"}, "169.254"),
        ("endpoint_detail", {"ref": "registry_9", "name": "x"}, "registry_9"),
        ("memory_search", {"query": " \n"}, "memory_search"),
        ("memory_get", {"item_id": "nope"}, "nope"),
        ("sparql_everything", {}, "sparql_query"),
        ("x" * 500, {}, "no tool"),
    ],
)
async def test_a_bad_call_gets_a_line(
    server: Serving, tool: str, arguments: dict[str, Any], said: str
) -> None:
    async with Client(server.url, mode="legacy") as client:
        assert said in await line(client, tool, **arguments)
        # The session lives.
        assert (await answer(client, "sparql_count", query="SELECT ?s { ?s a t:Tree }"))["count"]


async def test_limits_above_the_cap_are_lowered_and_said_so(server: Serving) -> None:
    async with Client(server.url, mode="legacy") as client:
        found = await answer(client, "sparql_find", pattern="a", limit=5_000)
        assert "lowered from 5000 to 50" in found["note"]


async def test_nothing_of_the_evaluation_split_is_shown(
    settings: Settings, serve: Callable[..., AbstractContextManager[Serving]], tmp_path: Path
) -> None:
    tasks = load_shacl_tasks(settings.pack)
    held = split_tasks(tasks).test
    assert 0 < len(held) < len(tasks)
    file = tmp_path / "bank.sqlite"
    with MemoryBank(file) as bank:
        leak = Provenance(task=held[0].id)
        bank.add([MemoryItem("Height", "How tall", "31", "success", provenance=leak)])
        (kept,) = bank.add([MemoryItem("Tall", "How tall is it", "t:height", "success")])
    with serve(replace(settings, bank=file)) as server:
        async with Client(server.url, mode="legacy") as client:
            found = await answer(client, "memory_search", query="How tall?")
            assert [item["id"] for item in found["items"]] == [kept]
            registry = await answer(client, "federated_endpoints")
            listed = await answer(client, "endpoints_list", ref=registry["key"])
            assert listed["endpoints"][0]["count"] == len(tasks) - len(held)


async def test_what_is_not_there_is_not_offered(
    settings: Settings, serve: Callable[..., AbstractContextManager[Serving]]
) -> None:
    with serve(replace(settings, bank=None)) as server:
        async with Client(server.url, mode="legacy") as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            assert not names & {"memory_search", "memory_get", "ask"}
            assert "no tool 'ask'" in await line(client, "ask", question="Which?")


async def test_a_pack_that_cannot_be_opened_is_reported_and_the_server_lives(
    settings: Settings, serve: Callable[..., AbstractContextManager[Serving]], tmp_path: Path
) -> None:
    broken = replace(load_pack(settings.pack.root), data=(tmp_path / "gone.ttl",))
    with serve(replace(settings, pack=broken)) as server:
        async with Client(server.url, mode="legacy") as client:
            for _ in range(2):
                reported = await line(client, "sparql_query", query="ASK {}")
                assert "data file is missing" in reported
            assert (await answer(client, "memory_search", query="oak"))["source"] == "memory"


async def test_a_question_is_answered_by_the_model_that_was_named(
    settings: Settings,
    serve: Callable[..., AbstractContextManager[Serving]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    query = "SELECT ?plant { ?plant t:height ?h . FILTER(?h > 20) } ORDER BY ?h"
    composed = "PREFIX t: <http://e/> SELECT ?tree { ?tree a t:Tree } ORDER BY ?tree"
    program = {
        "@op": "ForEach",
        "args": {
            "select": {
                "@op": "SELECT",
                "args": {
                    "endpoint": "https://trees.example/sparql/",
                    "query": {"@op": "SPARQLString", "args": {"question": "Which trees?"}},
                },
            },
            "operation": {
                "@op": "Str",
                "args": {"input": {"@op": "Value", "args": {"name": "tree"}}},
            },
        },
    }
    replies = [chat(f"```sparql\n{query}\n```"), chat(f"```sparql\n{composed}\n```")]
    with scripted(*replies, chat("I cannot."), failure(401, "bad key")) as model:
        monkeypatch.setenv("OPENAI_API_BASE", model.base)
        monkeypatch.setenv("OPENAI_API_KEY", "replayed")
        with serve(replace(settings, lm="openai/replay", agent="direct")) as server:
            async with Client(server.url, mode="legacy") as client:
                found = await answer(client, "ask", question="What is higher than 20 m?")
                assert found["sparql"] == query
                assert found["rows"] == [{"plant": "t:oak"}, {"plant": "t:pine"}]
                assert found["cost"]["tokens"] == 14
                assert (await answer(client, "sparql_peek", ref=found["ref"]))["total"] == 2
                trees = await answer(client, "algebra_run", program=program)
                assert trees["result"] == ["http://e/ash", "http://e/oak", "http://e/pine"]
                assert "?tree" in str(model.asked[1].body["messages"])
                reported = await line(client, "ask", question="What is higher than 30 m?")
                assert "wrote no query" in reported
                assert "1 to 2000" in await line(client, "ask", question=" ")
                assert len(model.asked) == 3
                await line(client, "ask", question="What is higher than 40 m?")
                # The model's key is not the client's to see.
                assert "replayed" not in reported


async def test_an_agent_that_needs_the_gold_cannot_be_asked(
    settings: Settings,
    serve: Callable[..., AbstractContextManager[Serving]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "replayed")
    with serve(replace(settings, lm="openai/replay", agent="oracle")) as server:
        async with Client(server.url, mode="legacy") as client:
            assert "gold" in await line(client, "ask", question="Which?")
