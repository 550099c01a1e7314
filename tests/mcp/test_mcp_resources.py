"""What is read without a tool: sense card, schema, schema card, operations."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from rdflib import Graph

from reasoningbank.algebra import operations

if TYPE_CHECKING:
    from conftest import Serving

pytestmark = pytest.mark.anyio

ROOT = "reasoningbank://trees/"


async def read(client: Client, uri: str) -> tuple[str, str]:
    (content,) = (await client.read_resource(uri)).contents
    assert content.uri == uri
    return content.text, content.mime_type


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_all_that_is_listed_can_be_read(server: Serving, mode: str) -> None:
    async with Client(server.url, mode=mode) as client:
        listed = (await client.list_resources()).resources
        found = {one.uri: await read(client, one.uri) for one in listed}
    assert all(found[one.uri][1] == one.mime_type for one in listed)
    assert set(found) == {
        f"{ROOT}sense-card",
        f"{ROOT}schema",
        f"{ROOT}algebra/operations",
        f"{ROOT}algebra/schema",
    }
    assert "Trees <https://trees.example/sparql/>" in found[f"{ROOT}sense-card"][0]
    assert len(Graph().parse(data=found[f"{ROOT}schema"][0], format="turtle")) == 5
    assert set(operations()) <= set(json.loads(found[f"{ROOT}algebra/schema"][0])["$defs"])
    assert all(f"# {name}\n" in found[f"{ROOT}algebra/operations"][0] for name in operations())


async def test_the_schema_near_a_question_is_a_template(server: Serving) -> None:
    async with Client(server.url, mode="legacy") as client:
        (template,) = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == f"{ROOT}schema/{{question}}"
        text, _ = await read(client, f"{ROOT}schema/{quote('How tall is the oak?', safe='')}")
    assert "t:height" in text


@pytest.mark.parametrize("uri", [f"{ROOT}nothing", f"{ROOT}schema/", "file:///etc/passwd"])
async def test_what_is_not_there_is_reported_in_a_line(server: Serving, uri: str) -> None:
    async with Client(server.url, mode="legacy") as client:
        with pytest.raises(MCPError) as caught:
            await client.read_resource(uri)
        assert "\n" not in str(caught.value)
        assert await client.list_resources()
