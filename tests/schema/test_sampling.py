"""Vocabularies: statistics where published, else everything that can be looked at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reasoningbank.schema import EndpointProfile, sampling
from reasoningbank.sparql import EndpointConfig, OxigraphServer

VOID = """
@prefix : <http://e/> .
@prefix void: <http://rdfs.org/ns/void#> .
@prefix sd: <http://www.w3.org/ns/sparql-service-description#> .
:set void:classPartition :trees , [ void:class :Moss ; void:entities 70 ] ;
    void:propertyPartition [ void:property :height ; void:triples 2900 ] .
:trees void:class :Tree ; void:entities 3000 ;
    void:propertyPartition [ void:property :height ; void:triples 2900 ] .
:other void:classPartition [ void:class :Tree ; void:entities 5 ] .
:oak a :Shrub .
[] sd:graph [ void:propertyPartition [ void:property :weight ; void:triples 10 ] ] .
[] sd:graph [ void:propertyPartition [ void:property :weight ; void:triples 20 ] ] .
"""
DECLARED = """
@prefix : <http://e/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
:Rare a owl:Class . :Unused a owl:Class . :rare a owl:ObjectProperty . :r :rare :r ; a :Rare .
""" + "".join(f":n{i} a :Many .\n" for i in range(60))


@pytest.fixture(params=["", "http://e/void"])
def published(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EndpointConfig]:
    """A store with statistics in the default graph, and one with them in a named graph."""
    file = tmp_path / "void.ttl"
    file.write_text(VOID, encoding="utf-8")
    data = (file, request.param) if request.param else file
    with OxigraphServer([data], union_default_graph=False) as server:
        yield EndpointConfig(server.url)


def test_published_statistics_are_taken_and_summed(published: EndpointConfig) -> None:
    profile = EndpointProfile(published)
    classes = sampling.classes(profile, 10)
    properties = sampling.properties(profile, 10)
    assert classes.via == properties.via == "void"
    assert classes.items == (("http://e/Tree", 3005), ("http://e/Moss", 70))
    assert properties.items == (("http://e/height", 2900), ("http://e/weight", 30))
    of_trees = sampling.properties_of(profile, "http://e/Tree", 10)
    assert (of_trees.items, of_trees.via) == ((("http://e/height", 2900),), "void")


def test_without_statistics_a_small_store_is_counted_whole(trees: EndpointConfig) -> None:
    profile = EndpointProfile(trees)
    classes = sampling.classes(profile, 1)
    assert (classes.items, classes.via, classes.notes) == (
        (("http://e/Tree", 3),),
        "all 4 triples",
        (),
    )
    of_moss = sampling.properties_of(profile, "http://e/Moss", 10)
    assert {iri.rpartition("#")[2]: count for iri, count in of_moss.items} == {
        "label": 1,
        "type": 1,
    }
    assert of_moss.via == "sample of 200 instances"
    assert sampling.properties_of(profile, "http://e/Fern", 10).items == ()


def test_a_large_store_is_sampled_and_its_declared_names_are_added(tmp_path: Path) -> None:
    file = tmp_path / "declared.ttl"
    file.write_text(DECLARED, encoding="utf-8")
    with OxigraphServer([file]) as server:
        profile = EndpointProfile(EndpointConfig(server.url), look=30)
        classes = sampling.classes(profile, 10)
        properties = sampling.properties(profile, 10)
    counts = dict(classes.items)
    assert classes.via.startswith("sample of 30 triples")
    assert "http://e/Rare" in counts
    assert "http://e/Unused" not in counts
    assert "http://e/rare" in dict(properties.items)
    assert classes.notes == ("counts are those in the sample",)


def test_classes_out_of_the_samples_sight_are_reached(tmp_path: Path) -> None:
    file = tmp_path / "far.ttl"
    lines = [f":a{i} a :First ; :of :z{i} ." for i in range(90)]
    lines += [f":z{i} a :Last ." for i in range(90)]
    file.write_text("@prefix : <http://e/> .\n" + "\n".join(lines), encoding="utf-8")
    with OxigraphServer([file]) as server:
        found = sampling.classes(EndpointProfile(EndpointConfig(server.url), look=40), 10)
    assert dict(found.items).keys() == {"http://e/First", "http://e/Last"}
    assert found.via in (
        "sample of 40 triples, neighbours and declarations",
        "sample of 40 triples",
    )


def test_the_numbers_of_names_is_bounded(trees: EndpointConfig) -> None:
    profile = EndpointProfile(trees)
    assert len(sampling.properties(profile, 2).items) == 2
