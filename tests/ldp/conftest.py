"""A server whose documents live in memory, in files, or in a store."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from reasoningbank.ldp import LDPServer

TURTLE = {"Content-Type": "text/turtle"}


@pytest.fixture
def server() -> Iterator[LDPServer]:
    with LDPServer() as running:
        yield running


@pytest.fixture
def web(server: LDPServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.base, trust_env=False) as client:
        yield client
