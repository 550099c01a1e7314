"""Finding packs by name and by path, from anywhere."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from reasoningbank.corpus import (
    endpoint_config,
    federated_config,
    known_packs,
    load_pack,
    load_shacl_tasks,
)
from reasoningbank.corpus import pack as pack_module
from reasoningbank.corpus.registry import read_registry
from reasoningbank.errors import UsageError

from .conftest import GOOD, HEAD

TOML = """
title = "Things"
endpoint = "https://example.org/sparql/"
name = "Example"
authority = "Nobody"
licence = "CC0-1.0"
label_properties = ["http://www.w3.org/2000/01/rdf-schema#label"]
examples = "questions"
data = ["data/things.nt"]
schema = "schema.ttl"
void = "void.ttl"
[prefixes]
t = "http://things/"
[[federated]]
name = "Other"
url = "https://other.example/sparql"
data = ["data/other.nt"]
void = "other.void.ttl"
void_graph = "https://other.example/.well-known/void"
union_default_graph = false
prefixes = { t = "http://other/things/", o = "http://other/" }
[[sources]]
name = "thin air"
"""


@pytest.fixture
def things(tmp_path: Path) -> Path:
    root = tmp_path / "ontology" / "things"
    (root / "questions").mkdir(parents=True)
    (root / "pack.toml").write_text(TOML)
    (root / "questions" / "a.ttl").write_text(HEAD + GOOD.replace("NAME", "a"))
    return root


def test_every_field_is_read_and_paths_are_absolute(things: Path) -> None:
    pack = load_pack(things)
    assert (pack.key, pack.name, pack.authority) == ("things", "Example", "Nobody")
    assert pack.data == (things / "data" / "things.nt",)
    assert pack.schema == things / "schema.ttl"
    assert pack.prefixes == {"t": "http://things/"}
    assert pack.union_default_graph
    (other,) = pack.federated
    assert (other.url, other.data) == (
        "https://other.example/sparql",
        (things / "data" / "other.nt",),
    )
    assert (other.void, other.void_graph) == (
        things / "other.void.ttl",
        "https://other.example/.well-known/void",
    )
    assert not other.union_default_graph
    assert pack.sources[0]["name"] == "thin air"


def test_a_federated_endpoint_takes_from_the_pack_what_it_does_not_say(things: Path) -> None:
    pack = load_pack(things)
    (other,) = pack.federated
    config = federated_config(pack, other, "http://127.0.0.1:7/query")
    assert (config.url, config.address) == (
        "https://other.example/sparql",
        "http://127.0.0.1:7/query",
    )
    assert config.prefixes == {"t": "http://other/things/", "o": "http://other/"}
    assert config.label_properties == pack.label_properties


@pytest.mark.parametrize("spelling", ["things", "ontology/things"])
def test_a_pack_of_the_working_directory_has_a_name(
    things: Path, monkeypatch: pytest.MonkeyPatch, spelling: str
) -> None:
    monkeypatch.chdir(things.parents[1])
    assert load_pack(spelling).root == things
    assert [t.id for t in load_shacl_tasks(spelling)] == ["a"]


@pytest.mark.parametrize("spelling", ["uniprot", "ontology/uniprot"])
def test_the_repository_s_pack_is_found_from_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spelling: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_pack(spelling).endpoint == "https://sparql.uniprot.org/sparql/"


def test_a_pack_inside_the_installed_package_is_found(
    things: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site-packages" / "reasoningbank"
    shutil.copytree(things.parent, package / "ontology")
    monkeypatch.setattr(pack_module, "__file__", str(package / "corpus" / "pack.py"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert list(known_packs()) == ["things"]
    assert load_pack("ontology/things").root == package / "ontology" / "things"


def test_a_folder_without_a_pack_file_is_a_pack_of_examples(things: Path) -> None:
    pack = load_pack(things / "questions")
    assert (pack.endpoint, pack.examples) == ("", things / "questions")
    assert [t.endpoint for t in load_shacl_tasks(pack)] == ["https://example.org/sparql/"]
    with pytest.raises(UsageError, match="names no endpoint"):
        endpoint_config(pack)


@pytest.mark.parametrize("spelling", ["things-test", "folder"])
def test_a_separate_test_set_is_the_same_pack_with_other_examples(
    things: Path, monkeypatch: pytest.MonkeyPatch, spelling: str
) -> None:
    (things / "pack.toml").write_text('test = "held-out"\n' + TOML)
    (things / "held-out").mkdir()
    (things / "held-out" / "b.ttl").write_text(HEAD + GOOD.replace("NAME", "b"))
    monkeypatch.chdir(things.parents[1])
    pack = load_pack("things")
    held_out = load_pack(spelling) if spelling != "folder" else load_pack(things).with_test_set()
    assert (held_out.key, held_out.data) == (pack.key, pack.data)
    assert held_out.examples == pack.test == things / "held-out"
    assert [t.id for t in load_shacl_tasks(held_out)] == ["b"]
    assert [t.id for t in load_shacl_tasks(pack)] == ["a"]
    assert read_registry(held_out).tasks == read_registry(pack).tasks == 1


def test_a_pack_without_a_test_set_says_so(things: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(things.parents[1])
    assert load_pack("things").test is None
    with pytest.raises(UsageError, match="no separate test set") as caught:
        load_pack("things-test")
    assert "pack.toml" in caught.value.hint
    with pytest.raises(UsageError, match="unknown pack 'nothing-test'"):
        load_pack("nothing-test")


def test_an_unknown_pack_is_one_line_that_lists_the_known(
    things: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(things.parents[1])
    with pytest.raises(UsageError) as caught:
        load_pack("thnigs")
    assert "unknown pack 'thnigs'" in str(caught.value)
    assert "things" in caught.value.hint
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("endpoint = ", "cannot be read"),
        ("endpont = 'x'", "endpont"),
        ("[[federated]]\nname = 'x'", r"federated\.0\.url"),
        ("[[federated]]\nurl = 'http://x/'\nlabels = []", r"federated\.0\.labels"),
        ("data = 'x'", "data"),
    ],
)
def test_a_broken_pack_file_is_one_line(things: Path, text: str, says: str) -> None:
    (things / "pack.toml").write_text(text)
    with pytest.raises(UsageError, match=says) as caught:
        load_pack(things)
    assert str(things / "pack.toml") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_endpoint_config_keeps_the_public_address(things: Path) -> None:
    config = endpoint_config(load_pack(things), "http://127.0.0.1:7878/query")
    assert config.url == "https://example.org/sparql/"
    assert (config.name, config.authority) == ("Example", "Nobody")
    assert config.query_url == "http://127.0.0.1:7878/query"
    assert dict(config.prefixes) == {"t": "http://things/"}
    assert config.label_properties == ("http://www.w3.org/2000/01/rdf-schema#label",)
