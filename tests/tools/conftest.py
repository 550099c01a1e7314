"""The endpoints that the tools are tried on: ours, a bare one, and a foreign engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from engines import VirtuosoServer

from reasoningbank.corpus import Pack, load_pack
from reasoningbank.corpus.pack import endpoint_config
from reasoningbank.sparql import EndpointConfig, OxigraphServer


@pytest.fixture(scope="session")
def uniprot() -> Pack:
    """The UniProt pack."""
    return load_pack("uniprot")


@pytest.fixture(scope="session")
def sample(uniprot: Pack) -> Iterator[EndpointConfig]:
    """The pack's whole sample with its statistics, as the harness serves it."""
    assert uniprot.void is not None
    data = [*uniprot.data, (uniprot.void, uniprot.void_graph)]
    with OxigraphServer(data, timeout_s=20) as server:
        yield endpoint_config(uniprot, server.url)


@pytest.fixture(scope="session")
def bare(uniprot: Pack, small_uniprot_file: Path) -> Iterator[EndpointConfig]:
    """A part of it without statistics, in named graphs only: nothing in the default graph."""
    with OxigraphServer([small_uniprot_file], union_default_graph=False, timeout_s=20) as server:
        yield endpoint_config(uniprot, server.url)


@pytest.fixture(scope="session")
def foreign(uniprot: Pack, virtuoso: VirtuosoServer) -> EndpointConfig:
    """The same part, served by Virtuoso."""
    return endpoint_config(uniprot, virtuoso.url)


@pytest.fixture(params=["sample", "bare", "foreign"])
def endpoint(request: pytest.FixtureRequest) -> EndpointConfig:
    """Each of the three in turn."""
    config: EndpointConfig = request.getfixturevalue(request.param)
    return config
