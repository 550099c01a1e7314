"""A real Oxigraph with a small graph, and an HTTP server that misbehaves on request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reasoningbank.sparql import EndpointConfig, OxigraphServer, SPARQLClient

from .faulty import FaultyServer

DATA = """
@prefix : <http://e/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix ec: <http://ec/> .
:oak a :Tree ; rdfs:label "oak"@en , "Eiche"@de ; :height 31 ; :mass 1.5 ; :rate 1.5e0 ;
    :evergreen false ; :note "two\\nlines\\tand a \\"quote\\" \\\\ end" ;
    :seen "2020-01-01"^^xsd:date .
:pine a :Tree ; rdfs:label "pine"@en ; :height 40 ; :near [ :name "nobody" ] .
:enzyme :class ec:1.1.1.1 .
:oak :says <<( :pine :near :oak )>> .
:g1 { :oak :in :forest . :pine :in :forest }
:g2 { :oak :in :forest . :oak :in :park }
"""


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("data") / "trees.trig"
    # The numbers keep an engine busy: it can be interrupted only while it reads its store.
    numbers = " ".join(f":n{n} :value {n} ." for n in range(2_000))
    file.write_text(f"{DATA}\n:numbers {{ {numbers} }}", encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def server(data: Path) -> Iterator[OxigraphServer]:
    with OxigraphServer([data], timeout_s=1) as running:
        yield running


@pytest.fixture(scope="session")
def config(server: OxigraphServer) -> EndpointConfig:
    return EndpointConfig(
        "https://trees.example/sparql/",
        "Trees",
        prefixes={"": "http://e/", "ec": "http://ec/"},
        query_url=server.url,
        aliases={"https://trees.example/sparql": server.url},
    )


@pytest.fixture(scope="session")
def client(config: EndpointConfig) -> Iterator[SPARQLClient]:
    with SPARQLClient(config) as made:
        yield made


@pytest.fixture
def faulty() -> Iterator[FaultyServer]:
    made = FaultyServer()
    yield made
    made.close()
