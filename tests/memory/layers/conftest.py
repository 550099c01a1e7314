"""The UniProt sample as the layers see it, opened once, and a wood with a schema of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from reasoningbank.corpus import Pack, load_pack, open_endpoint
from reasoningbank.memory.schema_card import SchemaIndex
from reasoningbank.schema import Schema, SchemaMap, observed_values
from reasoningbank.sparql import Discovery, EndpointConfig, SPARQLClient, discover


@dataclass(frozen=True)
class Known:
    """What is found out about an endpoint once."""

    pack: Pack
    endpoint: EndpointConfig
    discovery: Discovery
    vocabulary: Schema
    schema: SchemaMap
    index: SchemaIndex


@pytest.fixture(scope="session")
def uniprot() -> Iterator[Known]:
    """The pack, served."""
    pack = load_pack("uniprot")
    with open_endpoint(pack) as endpoint, SPARQLClient(endpoint) as client:
        vocabulary = Schema.of(endpoint, pack.schema)
        discovery = discover(client)
        seen = observed_values(client, vocabulary)
        schema = SchemaMap.of(vocabulary, seen)
        index = SchemaIndex(schema, [vocabulary, *vocabulary.services.values()])
        yield Known(pack, endpoint, discovery, vocabulary, schema, index)


WOOD = """
@prefix : <http://e/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:Tree a owl:Class . :Nest a owl:Class . :Bird a owl:Class ; rdfs:comment "A thing that sings." .
:height a owl:DatatypeProperty ; rdfs:domain :Tree ; rdfs:range xsd:int .
:holds a owl:ObjectProperty ; rdfs:domain :Tree ; rdfs:range :Nest .
:builtBy a owl:ObjectProperty ; rdfs:domain :Nest ; rdfs:range :Bird .
:song a owl:DatatypeProperty ; rdfs:domain :Bird ; rdfs:range xsd:string .
:near a owl:ObjectProperty ; rdfs:domain :Tree , :Bird ; rdfs:range :Tree , :Bird .
"""


@pytest.fixture
def wood(tmp_path: Path) -> Schema:
    """Trees that hold nests that birds built."""
    file = tmp_path / "wood.ttl"
    file.write_text(WOOD, encoding="utf-8")
    return Schema.of_files(file)
