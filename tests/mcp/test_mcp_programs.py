"""Whole programs in one call: loops and scopes, limits, writes, long results, being called off."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import httpx
import pytest
from mcp import Client
from mcp_calls import answer, line

from reasoningbank.algebra import Limits
from reasoningbank.corpus import load_pack
from reasoningbank.ldp import LDPServer
from reasoningbank.mcp import Settings
from reasoningbank.tools.returns import MAX_CHARS

if TYPE_CHECKING:
    from conftest import Serving

pytestmark = pytest.mark.anyio

LDP = "http://www.w3.org/ns/ldp#"
ENDPOINT = "https://trees.example/sparql/"
PREFIX = "PREFIX t: <http://e/> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> "
LABELS = PREFIX + "SELECT ?tree ?name { ?tree a t:Tree ; rdfs:label ?name } ORDER BY ?name"


def op(name: str, /, **args: Any) -> dict[str, Any]:
    return {"@op": name, "args": args}


def select(query: Any, endpoint: str = ENDPOINT) -> dict[str, Any]:
    return op("SELECT", endpoint=endpoint, query=query)


def value(name: str) -> dict[str, Any]:
    return op("Value", name=name)


def writing(base: str) -> dict[str, Any]:
    """Return a program that writes a document for each tree."""
    url = op("ResolveURI", base=base, relative=op("EncodeForURI", input=value("name")))
    data = {"@id": value("tree"), "http://e/called": value("name")}
    return op("ForEach", select=select(LABELS), operation=op("PUT", url=url, data=data))


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_loop_in_a_loop_sees_both_rows(server: Serving, mode: str) -> None:
    near = PREFIX + "SELECT ?other { ?tree t:near ?other } ORDER BY ?other"
    inner = select(op("Substitute", query=near, var="tree", binding=value("tree")))
    outer = PREFIX + "SELECT ?tree { ?tree a t:Tree } ORDER BY ?tree"
    pair = op("Concat", inputs=[op("Str", input=value("other")), " by ", op("Str", input="t")])
    program = op(
        "ForEach",
        select=select(outer),
        operation=op("ForEach", select=inner, operation=pair),
    )
    async with Client(server.url, mode=mode) as client:
        found = await answer(client, "algebra_run", program=program)
    assert found["result"] == [
        [],
        ["http://e/ash by t", "http://e/pine by t"],
        ["http://e/oak by t"],
    ]
    assert found["requests"] == 4
    assert not found["truncated"]


async def test_a_variable_of_a_row_does_not_leave_it(server: Serving) -> None:
    shadowed = [
        op("Variable", name="v", value="outer"),
        op(
            "ForEach",
            select=[{"n": {"type": "literal", "value": word}} for word in ("one", "two")],
            operation=[
                op("Variable", name="v", value=value("n")),
                op("Value", name="$v"),
            ],
        ),
        op("Value", name="$v"),
    ]
    async with Client(server.url, mode="legacy") as client:
        found = await answer(client, "algebra_run", program=shadowed)
    assert found["result"] == [None, [[None, "one"], [None, "two"]], "outer"]


async def test_variables_are_given_and_no_call_sees_those_of_another(server: Serving) -> None:
    program = op("Concat", inputs=["a", op("Value", name="$what")])
    async with Client(server.url, mode="legacy") as client:
        found = await answer(client, "algebra_run", program=program, variables={"what": "b"})
        assert found["result"] == "ab"
        reported = await line(client, "algebra_run", program=program)
    assert reported.startswith("$.args.inputs[1]")
    assert "what" in reported


async def test_all_mistakes_are_reported_by_path_and_nothing_is_asked(server: Serving) -> None:
    program = [op("Gte"), op("GET", url=5), op("Str")]
    async with Client(server.url, mode="legacy") as client:
        reported = await line(client, "algebra_run", program=program)
        assert [path in reported for path in ("$[0]", "$[1].args.url", "$[2]")] == [True] * 3
        reported = await line(client, "algebra_run", program='{"@op": "STRUUID",}')
        assert reported.startswith("line 1, column ")
        assert "program" in await line(client, "algebra_run")


async def test_the_operations_are_listed_and_explained(server: Serving) -> None:
    async with Client(server.url, mode="legacy") as client:
        listed = await answer(client, "algebra_operations")
        assert any(one.startswith("GET(url: URL)") for one in listed["operations"])
        assert "t" in listed["prefixes"]
        explained = await answer(client, "algebra_operations", names=["ForEach", "Value"])
        assert "| `concurrency` (optional) |" in explained["reference"]
        assert "Value" in explained["reference"]
        assert "did you mean" in await line(client, "algebra_operations", names=["Foreach"])


async def test_a_program_is_validated(server: Serving) -> None:
    async with Client(server.url, mode="legacy") as client:
        asked = select("SELECT ?tree { ?tree a t:Tree }")
        found = await answer(client, "algebra_validate", program=asked)
        assert found == {"valid": True, "operations": ["SELECT"], "writes": False}
        wrong = [op("Gte"), select("SELECT ?x { ?x no:such ?y }")]
        found = await answer(client, "algebra_validate", program=wrong)
        assert [(one["path"].partition(":")[0], one["code"]) for one in found["mistakes"]] == [
            ("$[0]", "unknown-operation"),
            ("$[1].args.query", "unknown-prefix"),
        ]
        reported = await line(client, "algebra_validate", program=5)
        assert reported.startswith("program: not a program")


async def test_a_program_need_not_declare_what_the_pack_declares(server: Serving) -> None:
    program = select("SELECT ?tree { ?tree a t:Moss }")
    async with Client(server.url, mode="legacy") as client:
        found = await answer(client, "algebra_run", program=program)
    rows = found["result"]["results"]["bindings"]
    assert [row["tree"]["value"] for row in rows] == ["http://e/moss"]


async def test_the_resources_of_the_pack_are_read_offline(
    serve: Callable[..., AbstractContextManager[Serving]],
) -> None:
    riga = "http://dbpedia.org/resource/Riga"
    with serve(Settings(load_pack("algebra"))) as server:
        async with Client(server.url, mode="legacy") as client:
            found = await answer(client, "algebra_run", program=op("GET", url=riga))
            assert found["requests"] == 1
            assert riga.rpartition("/")[2] in str(found)
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert "http://dbpedia.org/resource/" in (tools["algebra_run"].description or "")


async def test_the_text_of_a_program_is_a_program(server: Serving) -> None:
    async with Client(server.url, mode="legacy") as client:
        found = await answer(
            client, "algebra_run", program='{"@op": "Str", "args": {"input": "x"}}'
        )
    assert found["result"] == "x"


@pytest.mark.parametrize("address", [ENDPOINT, ENDPOINT.rstrip("/")])
async def test_the_public_address_is_asked_where_it_is_served(
    server: Serving, address: str
) -> None:
    program = op("ASK", endpoint=address, query="ASK { <http://e/oak> ?p ?o }")
    async with Client(server.url, mode="legacy") as client:
        assert (await answer(client, "algebra_run", program=program))["result"] == "true"


@pytest.mark.parametrize(
    "program",
    [
        op("GET", url="http://127.0.0.1:9/secret"),
        op("GET", url="http://169.254.169.254/latest/meta-data/"),
        select("SELECT ?s { ?s ?p ?o }", "http://127.0.0.1:9/sparql"),
        op("GET", url="file:///etc/passwd"),
    ],
)
async def test_no_other_address_is_read(server: Serving, program: dict[str, Any]) -> None:
    async with Client(server.url, mode="legacy") as client:
        reported = await line(client, "algebra_run", program=program)
    assert reported.startswith("$")
    assert "may not be read" in reported or "is not an http or https address" in reported


async def test_services_lead_nowhere_else(server: Serving) -> None:
    query = "SELECT ?s { SERVICE <http://127.0.0.1:9/sparql> { ?s ?p ?o } }"
    async with Client(server.url, mode="legacy") as client:
        assert "SERVICE" in await line(client, "algebra_run", program=select(query))


async def test_documents_are_written_below_the_allowed_base(
    server: Serving, documents: LDPServer
) -> None:
    base = f"{documents.base}all/"
    async with Client(server.url, mode="legacy") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert documents.base in (tools["algebra_run"].description or "")
        found = await answer(client, "algebra_run", program=writing(base))
    assert found["writes_in_all"] == 3
    assert [one["url"] for one in found["wrote"]] == [
        f"{base}Mountain%20ash%20tree",
        f"{base}Oak",
        f"{base}Pine%20tree",
    ]
    text = httpx.get(f"{base}Oak", headers={"Accept": "text/turtle"}, trust_env=False).text
    assert "http://e/oak" in text
    assert "Oak" in text


async def test_a_dry_run_writes_nothing_and_says_what_it_would(
    server: Serving, documents: LDPServer
) -> None:
    base = f"{documents.base}dry/"
    async with Client(server.url, mode="legacy") as client:
        found = await answer(client, "algebra_run", program=writing(base), dry_run=True)
        other = writing("http://127.0.0.1:9/x/")
        forbidden = await answer(client, "algebra_run", program=other, dry_run=True)
    assert [(one["method"], one["allowed"]) for one in found["would_write"]] == [("PUT", True)] * 3
    assert "http://e/oak" in found["would_write"][1]["body"]
    assert [one["allowed"] for one in forbidden["would_write"]] == [False] * 3
    assert httpx.get(f"{base}Oak", trust_env=False).status_code == 404


async def test_elsewhere_nothing_is_written(server: Serving) -> None:
    async with Client(server.url, mode="legacy") as client:
        reported = await line(client, "algebra_run", program=writing("http://127.0.0.1:9/x/"))
    assert "may not be written" in reported


async def test_by_default_nothing_is_written(
    settings: Settings,
    documents: LDPServer,
    serve: Callable[..., AbstractContextManager[Serving]],
) -> None:
    with serve(replace(settings, allow_write=())) as server:
        async with Client(server.url, mode="legacy") as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            run = tools["algebra_run"]
            assert run.annotations is not None
            assert run.annotations.read_only_hint is True
            assert "It may write nothing." in (run.description or "")
            base = f"{documents.base}never/"
            assert "may not be written" in await line(client, "algebra_run", program=writing(base))
    assert httpx.get(f"{base}Oak", trust_env=False).status_code == 404


async def test_a_run_that_fails_half_way_says_what_was_written(
    server: Serving, documents: LDPServer
) -> None:
    base = f"{documents.base}half/"
    there = [f"{base}{name}" for name in ("a", "b")]
    program = [
        *(op("PUT", url=url, data={"@id": url, "http://e/p": "x"}) for url in there),
        op("GET", url=f"{documents.base}nowhere"),
        op("PUT", url=f"{base}c", data={"@id": f"{base}c", "http://e/p": "x"}),
    ]
    async with Client(server.url, mode="legacy") as client:
        reported = await line(client, "algebra_run", program=program)
    assert reported.startswith("$[2]")
    assert f"done: PUT {there[0]}; done: PUT {there[1]}" in reported
    assert f"{base}c" not in reported
    assert httpx.get(there[1], trust_env=False).status_code == 200
    assert httpx.get(f"{base}c", trust_env=False).status_code == 404


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_long_result_is_a_handle_that_is_looked_at(server: Serving, mode: str) -> None:
    numbers = " ".join(f'"{number:03} {"x" * 40}"' for number in range(300))
    rows = select(f"SELECT ?n {{ VALUES ?n {{ {numbers} }} }}")
    program = op("ForEach", select=rows, operation=value("n"))
    async with Client(server.url, mode=mode) as client:
        found = await answer(client, "algebra_run", program=program)
        assert (found["total"], found["truncated"], found["kind"]) == (300, True, "results")
        seen = list(found["items"])
        while found["truncated"]:
            start = len(seen)
            assert f"start={start}" in found["note"]
            ref = found.get("ref", found["note"].split('"')[1])
            found = await answer(client, "algebra_slice", ref=ref, start=start)
            assert sum(len(item) for item in found["items"]) <= MAX_CHARS
            seen += found["items"]
        assert [item[:3] for item in seen] == [f"{number:03}" for number in range(300)]
        assert "none from" in await line(client, "algebra_slice", ref=ref, start=300)
        assert "not of 'results" in await line(client, "sparql_peek", ref=ref)


async def test_tables_and_graphs_are_looked_at_too(server: Serving) -> None:
    numbers = " ".join(f'"{number:03} {"x" * 60}"' for number in range(90))
    values = f"VALUES ?n {{ {numbers} }}"
    table = select(f"SELECT ?n {{ {values} }}")
    query = (
        f"CONSTRUCT {{ ?s <http://e/n> ?n }} WHERE {{ {values} "
        'BIND(IRI(CONCAT("http://e/", SUBSTR(?n, 1, 3))) AS ?s) }'
    )
    graph = op("CONSTRUCT", endpoint=ENDPOINT, query=query)
    async with Client(server.url, mode="legacy") as client:
        rows = await answer(client, "algebra_run", program=table)
        assert (rows["kind"], rows["total"]) == ("rows", 90)
        assert rows["items"][0]["n"]["type"] == "literal"
        found = await answer(client, "algebra_run", program=graph)
        assert found["total"] == 90
        last = await answer(client, "algebra_slice", ref=found["ref"], start=89)
        assert last["items"][0]["@id"] == "http://e/089"
        small = await answer(client, "algebra_run", program=select(LABELS))
    assert small["result"]["head"]["vars"] == ["tree", "name"]
    assert len(small["result"]["results"]["bindings"]) == 3


@pytest.mark.parametrize(
    ("query", "limits", "said"),
    [
        (LABELS, Limits(requests=2), "requests"),
        ("SELECT ?s { ?s ?p ?o }", Limits(rows=4), "rows"),
    ],
)
async def test_a_program_has_limits(
    settings: Settings,
    serve: Callable[..., AbstractContextManager[Serving]],
    query: str,
    limits: Limits,
    said: str,
) -> None:
    again = op("ASK", endpoint=ENDPOINT, query="ASK {}")
    program = op("ForEach", select=select(query), operation=again)
    with serve(replace(settings, limits=limits)) as server:
        async with Client(server.url, mode="legacy") as client:
            reported = await line(client, "algebra_run", program=program)
            assert said in reported
            # The limits are of one program, not of the session.
            assert (await answer(client, "algebra_run", program=again))["result"] == "true"


async def test_what_is_called_off_sends_nothing_more(server: Serving, documents: LDPServer) -> None:
    base = f"{documents.base}slow/"
    rows = [{"n": {"type": "literal", "value": f"{number:03}"}} for number in range(38)]
    url = op("ResolveURI", base=base, relative=value("n"))
    put = op("PUT", url=url, data={"@id": url, "http://e/p": "x"})
    program = op("ForEach", select=rows, operation=put)

    def written() -> int:
        document = documents.documents.read(base)
        said = () if document is None else document.triples
        return sum(triple.predicate.value == f"{LDP}contains" for triple in said)

    async with Client(server.url, mode="legacy") as client:
        async with anyio.create_task_group() as group:

            async def run() -> None:
                await client.call_tool("algebra_run", {"program": program})

            group.start_soon(run)
            while not written():
                await anyio.sleep(0.005)
            group.cancel_scope.cancel()
        # The session goes on, and the next call is answered when the one before has ended.
        await answer(client, "algebra_run", program=op("Str", input="x"))
        before = -1
        while before != (now := written()):
            before = now
            await anyio.sleep(0.3)
    assert 0 < now < len(rows)
