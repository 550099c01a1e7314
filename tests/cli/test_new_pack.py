"""`init` makes a pack of any endpoint that loads, validates and runs; `packs` lists it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reasoningbank.corpus import load_pack, load_shacl_tasks
from reasoningbank.errors import QueryTimeoutError
from reasoningbank.sparql import OxigraphServer, PreparedQuery, Result, SPARQLClient

from .conftest import Said

Cli = Callable[..., Said]
DATA = """\
@prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix b: <https://boats.example/vocabulary#> .
<https://boats.example/> sh:declare
    [ sh:prefix "b" ; sh:namespace "https://boats.example/vocabulary#"^^xsd:anyURI ] .
<https://boats.example/id/1> a b:SailingBoat ; rdfs:label "Anna \\"the old\\""@en ;
    b:builtIn 1902 ; b:lengthOverAll 12.5 .
<https://boats.example/id/2> a b:SailingBoat ; rdfs:label "Berta"@en ; b:builtIn 1933 .
<https://boats.example/id/3> a <http://other.example/core/Harbour> ;
    <http://other.example/core/depth> 7 .
"""
BARE = "<http://e/1> a <http://e/Thing> ; <http://e/part> <http://e/2> ."


def serving(folder: Path, text: str, *, suffix: str = "ttl", union: bool = True) -> OxigraphServer:
    file = folder / f"data.{suffix}"
    file.write_text(text, encoding="utf-8")
    return OxigraphServer([file], union_default_graph=union, timeout_s=10)


@pytest.fixture
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("elsewhere")


@pytest.fixture
def boats(elsewhere: Path) -> Iterator[str]:
    with serving(elsewhere, DATA) as server:
        yield server.url


def test_a_new_pack_loads_validates_and_runs(cli: Cli, boats: str) -> None:
    said = cli("init", "boats", "--endpoint", boats)
    assert said.status == 0, said.err
    written = said.out.split()
    assert sorted(written) == sorted(str(p) for p in Path().rglob("*") if p.is_file())
    assert len([p for p in written if "/examples/" in p and "prefixes" not in p]) == 5

    pack = load_pack("boats")
    assert pack.endpoint == boats
    assert pack.prefixes["b"] == "https://boats.example/vocabulary#"
    assert "http://other.example/core/" in pack.prefixes.values()
    assert pack.label_properties == ("http://www.w3.org/2000/01/rdf-schema#label",)
    schema = Path("ontology/boats/schema.ttl").read_text(encoding="utf-8")
    assert "b:SailingBoat a owl:Class" in schema
    assert "b:builtIn a rdf:Property" in schema

    checked = cli("tasks", "validate", "boats", "--run", "--json")
    assert (checked.status, json.loads(checked.out)["findings"]) == (0, [])
    assert len(load_shacl_tasks("boats")) == 5
    dry = cli("run", "experiments/boats.toml", "--dry-run", "--only", "oracle")
    assert dry.status == 0, dry.err
    refused = [cli("run", "experiments/boats.toml", "--lm", "openai/gpt-41", *dry_run)
               for dry_run in ((), ("--dry-run",))]  # fmt: skip
    assert [one.status for one in refused] == [1, 0]
    assert refused[0].err.removeprefix("reasoningbank: ") in refused[1].err
    ran = cli("run", "experiments/boats.toml", "--only", "oracle", "--json")
    arm = json.loads(ran.out)["arms"][0]
    assert (arm["judged"], arm["strict"]) == (5, 5)
    listed = {one["name"]: one for one in json.loads(cli("packs", "--json").out)}
    assert {"boats", "uniprot", "liita", "algebra"} <= set(listed)
    assert listed["boats"]["data"] == "remote"
    assert "uniprot-instances" in listed["uniprot"]["sets"]


APART = (
    '<http://e/1> a <http://e/Thing> ; <http://www.w3.org/2000/01/rdf-schema#label> "x" . '
    "<http://e/2> a <http://e/Thing> ; <http://e/part> 1 ."
)
BLANK_LABEL = (
    "<http://e/1> a <http://e/Thing> ; <http://e/part> 1 ; "
    "<http://www.w3.org/2000/01/rdf-schema#label> [] ."
)
NAMELESS = "[] a <http://e/Thing> ; <http://e/part> 1 . [] a <http://e/Thing> ; <http://e/part> 2 ."


@pytest.mark.parametrize(
    ("text", "suffix", "union", "examples"),
    [
        (BARE, "ttl", True, 5),
        (f"<http://e/g> {{ {BARE} }}", "trig", False, 5),
        (APART, "ttl", True, 5),
        (BLANK_LABEL, "ttl", True, 5),
        (NAMELESS, "ttl", True, 4),
    ],
    ids=["bare", "in named graphs only", "label and property apart", "blank label", "blank nodes"],
)
def test_a_plain_endpoint_is_enough(
    cli: Cli, elsewhere: Path, text: str, suffix: str, union: bool, examples: int
) -> None:
    with serving(elsewhere, text, suffix=suffix, union=union) as server:
        assert cli("init", "plain", "--endpoint", server.url).status == 0
        checked = cli("tasks", "validate", "plain", "--run", "--json")
        findings = json.loads(checked.out)["findings"]
        ran = cli("run", "experiments/plain.toml", "--only", "oracle", "--json")
    assert [f for f in findings if f["severity"] == "error"] == []
    arm = json.loads(ran.out)["arms"][0]
    assert (arm["judged"], arm["strict"]) == (examples, examples)
    tasks = load_shacl_tasks("ontology/plain/examples")
    assert not [task for task in tasks if "_:" in task.expected_sparql]
    prefixes = tomllib.loads(Path("ontology/plain/pack.toml").read_text("utf-8"))["prefixes"]
    assert prefixes.pop("e") == "http://e/"
    assert prefixes.keys() <= {"rdfs"}


def test_an_example_that_takes_too_long_is_left_out(
    cli: Cli, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = SPARQLClient.query

    def slow(self: SPARQLClient, text: str | PreparedQuery, **settings: Any) -> Result:
        if "isBlank" in str(text):
            raise QueryTimeoutError("the time limit is over")
        return query(self, text, **settings)

    monkeypatch.setattr(SPARQLClient, "query", slow)
    with serving(elsewhere, BARE) as server:
        said = cli("init", "plain", "--endpoint", server.url)
    assert said.status == 0, said.err
    assert len(load_shacl_tasks("ontology/plain/examples")) == 4


def test_nothing_is_written_that_is_there_or_wrong(cli: Cli, boats: str) -> None:
    for name, code in {"uniprot": "exists", "Boats": "bad-name", "a-test": "bad-name"}.items():
        said = cli("init", name, "--endpoint", boats)
        assert (said.status, said.code) == (1, code)
    Path("experiments").mkdir()
    Path("experiments/mine.toml").write_text("mine", encoding="utf-8")
    assert cli("init", "mine", "--endpoint", boats).code == "exists"
    assert Path("experiments/mine.toml").read_text(encoding="utf-8") == "mine"
    assert not Path("ontology").exists()


def test_an_endpoint_that_gives_nothing_is_one_line(cli: Cli, elsewhere: Path) -> None:
    with serving(elsewhere, "") as server:
        said = cli("init", "nothing", "--endpoint", server.url)
    assert (said.status, said.code) == (1, "no-classes")
    for address in ("http://127.0.0.1:9/sparql", "nonsense"):
        said = cli("init", "nothing", "--endpoint", address)
        assert (said.status, len(said.err.splitlines())) == (1, 1), said.err
    assert list(Path().iterdir()) == []
