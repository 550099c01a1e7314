"""The vocabulary of an endpoint: from a schema, from statistics, from samples; computed once."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from reasoningbank.corpus import Pack
from reasoningbank.errors import UsageError
from reasoningbank.schema import EndpointProfile, Schema
from reasoningbank.schema.sampling import side_client
from reasoningbank.sparql import EndpointConfig

UP = "http://purl.uniprot.org/core/"
DEAD = EndpointConfig("http://127.0.0.1:9/sparql", "Nobody", retries=0)


def test_a_pack_joins_what_the_schema_tells_with_what_statistics_count(
    sample: EndpointConfig, uniprot: Pack
) -> None:
    names = Schema.of(sample, uniprot.schema)
    protein, mass = names.classes[UP + "Protein"], names.properties[UP + "mass"]
    assert (names.via, names.complete) == ("schema and void", True)
    assert protein.label == "protein"
    assert protein.in_data
    assert protein.count is not None
    assert protein.count > 900
    assert mass.domain == (UP + "Simple_Sequence",)
    assert UP + "organism" in names.properties_of(UP + "Protein")
    assert names.link(UP + "Protein", UP + "mass") == UP + "sequence"
    assert names.leading_to(UP + "Gene") == UP + "encodedBy"
    assert not names.classes[UP + "Citation"].in_data
    assert UP + "Journal_Citation" in names.below(UP + "Citation")


def test_statistics_alone_suffice(sample: EndpointConfig) -> None:
    names = Schema.of(sample)
    assert (names.via, names.complete) == ("void", True)
    assert UP + "Protein" in names.classes
    assert UP + "organism" in names.properties_of(UP + "Protein")


def test_a_small_store_without_both_is_looked_at_whole(trees: EndpointConfig) -> None:
    names = Schema.of(trees)
    assert names.via.startswith("all ")
    assert names.complete
    assert {"http://e/Tree", "http://e/Moss"} <= set(names.classes)
    assert names.properties["http://e/height"].count == 3


def test_looking_at_a_store_leaves_no_connection_open(
    trees: EndpointConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[EndpointProfile] = []
    monkeypatch.setattr(EndpointProfile, "close", lambda profile: closed.append(profile))
    assert Schema.of(trees).complete
    assert len(closed) == 1


def test_a_schema_by_itself_is_not_complete(uniprot: Pack) -> None:
    assert uniprot.schema is not None
    names = Schema.of_files(uniprot.schema)
    assert (names.via, names.complete) == ("schema", False)
    assert names.term(UP + "Protein") is not None
    assert names.term(UP + "protein") is None


def test_an_endpoint_that_is_down_leaves_the_schema(uniprot: Pack) -> None:
    names = Schema.of(DEAD, uniprot.schema)
    assert (names.via, names.complete) == ("schema", False)
    assert UP + "Protein" in names.classes


def test_an_endpoint_that_is_down_and_has_no_schema_gives_nothing() -> None:
    names = Schema.of(DEAD)
    assert not names.classes
    assert not names.complete


def test_it_is_computed_once_by_the_first_that_asks() -> None:
    filled = 0
    contents = Schema.of_terms(["http://e/A"], [])._fill()

    def fill() -> object:
        nonlocal filled
        time.sleep(0.05)
        filled += 1
        return contents

    names = Schema(fill)  # type: ignore[arg-type]
    assert filled == 0
    threads = [threading.Thread(target=lambda: names.classes) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert filled == 1
    with pytest.raises(TypeError):
        names.classes["http://e/B"] = names.classes["http://e/A"]  # type: ignore[index]


def test_a_schema_that_is_not_turtle_is_said(tmp_path: Path) -> None:
    broken = tmp_path / "schema.ttl"
    broken.write_text("a b", encoding="utf-8")
    for file in (broken, tmp_path / "missing.ttl"):
        with pytest.raises(UsageError) as error:
            list(Schema.of_files(file).classes)
        assert error.value.code == "unreadable-file"


def test_side_questions_are_not_tried_twice() -> None:
    config = side_client(EndpointConfig("https://e.example/", timeout_s=60), 3).config
    assert (config.retries, config.timeout_s, config.deadline_s) == (0, 3, 3)
