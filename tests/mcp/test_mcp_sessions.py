"""Handles over HTTP: small, looked at part by part, and gone with the session they are of."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import pytest
from mcp import Client
from mcp_calls import answer, line

from reasoningbank.mcp import Settings

if TYPE_CHECKING:
    from conftest import Clock, Serving

pytestmark = pytest.mark.anyio

HEIGHTS = "SELECT ?plant ?h { ?plant t:height ?h } ORDER BY ?h"
MODES = pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])


@MODES
async def test_a_query_gives_a_handle_and_looking_gives_rows(server: Serving, mode: str) -> None:
    async with Client(server.url, mode=mode) as client:
        handle = await answer(client, "sparql_query", query=HEIGHTS)
        assert (handle["rows"], handle["dtype"], handle["source"]) == (3, "results", "Trees")
        key = handle["key"]
        first = await answer(client, "sparql_peek", ref=key, n=1)
        assert first["rows"] == [{"plant": "t:ash", "h": 12}]
        assert (first["total"], first["truncated"], first["source"]) == (3, True, "Trees")
        assert key in first["note"]
        # The whole handle is taken as well as its key.
        rest = await answer(client, "sparql_slice", ref=handle, start=1, end=3)
        assert [row["h"] for row in rest["rows"]] == [31, 40]
        stats = await answer(client, "sparql_stats", ref=key)
        assert stats["cols"] == ["plant", "h"]


@MODES
async def test_text_and_structure_say_the_same(server: Serving, mode: str) -> None:
    async with Client(server.url, mode=mode) as client:
        result = await client.call_tool("sparql_find", {"pattern": "tree"})
    assert json.loads(result.content[0].text) == result.structured_content
    assert {row["uri"] for row in result.structured_content["results"]} == {"t:pine", "t:ash"}


async def test_a_session_has_its_own_handles_which_end_with_it(server: Serving) -> None:
    before = len(server.sessions.stores)
    async with Client(server.url, mode="legacy") as one:
        async with Client(server.url, mode="legacy") as other:
            mine = await answer(one, "sparql_query", query=HEIGHTS)
            theirs = await answer(other, "sparql_query", query="SELECT ?m { ?m a t:Moss }")
            # Keys are counted anew in each session, and name other things.
            assert mine["key"] == theirs["key"] == "results_0"
            assert (mine["rows"], theirs["rows"]) == (3, 1)
            await answer(one, "sparql_query", query=HEIGHTS)
            reported = await line(other, "sparql_peek", ref="results_1")
            assert "unknown handle 'results_1'" in reported
            assert "handles at hand: results_0" in reported
            assert sorted(server.sessions.stores)[-2:] == [1, 2]
        assert server.settled(lambda sessions: len(sessions.stores) == before + 1)
        assert (await answer(one, "sparql_peek", ref="results_1"))["total"] == 3
    assert server.settled(lambda sessions: len(sessions.stores) == before)


async def test_without_sessions_a_handle_alone_leads_to_its_rows(server: Serving) -> None:
    async with Client(server.url, mode="2026-07-28") as one:
        first = await answer(one, "sparql_query", query=HEIGHTS)
        second = await answer(one, "sparql_query", query="SELECT ?m { ?m a t:Moss }")
    assert first["key"] != second["key"]
    # Nobody can guess it: 128 bits.
    assert len(first["key"].rpartition("-")[2]) == 32
    async with Client(server.url, mode="2026-07-28") as later:
        assert (await answer(later, "sparql_peek", ref=first["key"]))["total"] == 3
        assert (await answer(later, "sparql_peek", ref=second["key"]))["total"] == 1
        guessed = first["key"][:-1] + ("0" if first["key"][-1] != "0" else "1")
        assert "unknown handle" in await line(later, "sparql_peek", ref=guessed)
    async with Client(server.url, mode="legacy") as session:
        assert "unknown handle" in await line(session, "sparql_peek", ref=first["key"])


async def test_what_needs_no_handle_leaves_nothing_behind(server: Serving) -> None:
    before = len(server.sessions.stores)
    async with Client(server.url, mode="2026-07-28") as client:
        await answer(client, "sparql_classes")
        await line(client, "sparql_query", query="SELECT nonsense")
        await line(client, "sparql_peek", ref="results_7")
    # Sessions of earlier sessions may be given back meanwhile.
    assert len(server.sessions.stores) <= before


async def test_handles_of_no_session_end_unused_and_when_there_are_too_many(
    settings: Settings,
    serve: Callable[..., AbstractContextManager[Serving]],
    make_clock: Callable[[], Clock],
) -> None:
    clock = make_clock()
    few = replace(settings, most_sessions=2, idle_s=100.0)
    with serve(few, clock) as server:
        async with Client(server.url, mode="2026-07-28") as client:
            keys = [(await answer(client, "sparql_query", query=HEIGHTS))["key"] for _ in range(2)]
            # Being used keeps it.
            await answer(client, "sparql_stats", ref=keys[0])
            keys.append((await answer(client, "sparql_query", query=HEIGHTS))["key"])
            assert len(server.sessions.stores) == 2
            await line(client, "sparql_stats", ref=keys[1])
            clock.now = 90.0
            await answer(client, "sparql_stats", ref=keys[0])
            clock.now = 120.0
            await line(client, "sparql_stats", ref=keys[2])
            assert server.sessions.stores == (1,)
            await answer(client, "sparql_stats", ref=keys[0])


async def test_a_session_may_hold_so_many_handles(
    settings: Settings, serve: Callable[..., AbstractContextManager[Serving]]
) -> None:
    with serve(replace(settings, most_handles=2)) as server:
        async with Client(server.url, mode="legacy") as client:
            for _ in range(2):
                await answer(client, "sparql_query", query=HEIGHTS)
            reported = await line(client, "sparql_query", query=HEIGHTS)
            assert "holds 2 handles" in reported
            assert (await answer(client, "sparql_peek", ref="results_1"))["total"] == 3
        async with Client(server.url, mode="legacy") as client:
            assert (await answer(client, "sparql_query", query=HEIGHTS))["key"] == "results_0"


async def test_many_calls_at_once_are_all_answered(server: Serving) -> None:
    found: list[str] = []

    async def ask(client: Client, least: int) -> None:
        query = f"SELECT ?p {{ ?p t:height ?h . FILTER(?h > {least}) }}"
        handle = await answer(client, "sparql_query", query=query)
        rows = await answer(client, "sparql_peek", ref=handle["key"])
        assert rows["total"] == sum(height > least for height in (12, 31, 40))
        found.append(handle["key"])

    async with Client(server.url, mode="legacy") as client, anyio.create_task_group() as group:
        for number in range(12):
            group.start_soon(ask, client, number * 4)
    assert len(set(found)) == 12


async def test_one_handle_is_looked_at_in_several_ways_at_once(server: Serving) -> None:
    async with Client(server.url, mode="2026-07-28") as client:
        key = (await answer(client, "sparql_query", query=HEIGHTS))["key"]
        found: list[int] = []

        async def look(tool: str) -> None:
            found.append(len(await answer(client, tool, ref=key)))

        async with anyio.create_task_group() as group:
            for tool in ("sparql_peek", "sparql_stats") * 6:
                group.start_soon(look, tool)
    assert len(found) == 12
