"""The pack's sample as the harness serves it, and a distiller that asks it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reasoningbank.corpus import Pack, load_pack
from reasoningbank.corpus.pack import endpoint_config
from reasoningbank.memory.distill import Distiller
from reasoningbank.memory.grounding import Facts
from reasoningbank.schema import Schema
from reasoningbank.sparql import EndpointConfig, OxigraphServer


@pytest.fixture(scope="session")
def pack() -> Pack:
    """The UniProt pack."""
    return load_pack("uniprot")


@pytest.fixture(scope="session")
def endpoint(pack: Pack) -> Iterator[EndpointConfig]:
    """Its whole sample with its statistics."""
    assert pack.void is not None
    with OxigraphServer([*pack.data, (pack.void, pack.void_graph)], timeout_s=20) as server:
        yield endpoint_config(pack, server.url)


@pytest.fixture(scope="session")
def vocabulary(pack: Pack, endpoint: EndpointConfig) -> Schema:
    """Its classes and properties."""
    return Schema.of(endpoint, pack.schema)


@pytest.fixture(scope="session")
def facts(vocabulary: Schema, endpoint: EndpointConfig) -> Facts:
    """What is known of its names."""
    return Facts(vocabulary, endpoint)


@pytest.fixture(scope="session")
def distiller(vocabulary: Schema, endpoint: EndpointConfig, pack: Pack) -> Distiller:
    """A distiller that works by rules alone."""
    return Distiller(vocabulary=vocabulary, endpoint=endpoint, pack=pack)
