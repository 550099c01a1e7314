"""The endpoints that the tools are tried on: ours, a bare one, and a foreign engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from engines import VirtuosoServer

from reasoningbank.corpus import Pack, load_pack
from reasoningbank.corpus.pack import endpoint_config
from reasoningbank.sparql import EndpointConfig, OxigraphServer
from reasoningbank.tools import SPARQLTools


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


@pytest.fixture(scope="session")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EndpointConfig]:
    """More of everything than a tool may return."""
    head = "@prefix : <http://e/> .\n@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"
    lines = [f':n{i} a :Class{i} ; :p{i} {i} ; rdfs:label "Node {i}" .' for i in range(120)]
    lines += [f':hub :p{i} "{"x" * 190}{i}" .' for i in range(60)]
    lines += [f":m{i} a :Many ." for i in range(60)]
    lines.append(r':odd rdfs:label "say \"hi\" \\ }" .')
    file = tmp_path_factory.mktemp("wide") / "wide.ttl"
    file.write_text(head + "\n".join(lines), encoding="utf-8")
    with OxigraphServer([file], timeout_s=10) as server:
        yield EndpointConfig(
            "https://wide.example/sparql/",
            "Wide",
            "Us",
            prefixes={"": "http://e/"},
            query_url=server.url,
            max_rows=200,
        )


@pytest.fixture
def tools(wide: EndpointConfig) -> Iterator[SPARQLTools]:
    """The tools of the endpoint that has more than they may return."""
    made = SPARQLTools(wide)
    yield made
    made.close()


@pytest.fixture
def few(trees: EndpointConfig) -> Iterator[SPARQLTools]:
    """The tools of a small endpoint."""
    made = SPARQLTools(trees)
    yield made
    made.close()
