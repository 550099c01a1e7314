"""Calling tools as a client does."""

from __future__ import annotations

from typing import Any

from mcp import Client


async def answer(client: Client, tool: str, /, **arguments: Any) -> dict[str, Any]:
    """Return what a tool answers."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    found: dict[str, Any] = result.structured_content
    return found


async def line(client: Client, tool: str, /, **arguments: Any) -> str:
    """Return the error of a call, which is one line of text and nothing else."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert result.structured_content is None
    (content,) = result.content
    assert content.type == "text"
    assert "\n" not in content.text
    assert 0 < len(content.text) < 2_000
    return content.text
