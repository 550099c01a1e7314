"""Packs and their endpoints."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.request import urlopen

import pytest

from reasoningbank.corpus import (
    endpoint_config,
    known_packs,
    load_pack,
    load_shacl_tasks,
    open_endpoint,
)
from reasoningbank.corpus import pack as pack_module
from reasoningbank.corpus.registry import read_registry
from reasoningbank.errors import QueryError, UsageError
from reasoningbank.sparql import (
    BooleanResult,
    EndpointConfig,
    GraphResult,
    OxigraphServer,
    SPARQLClient,
    TableResult,
)

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
    config = endpoint_config(pack, "http://127.0.0.1:7/query", of=other)
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
    held_out = load_pack(spelling) if spelling != "folder" else load_pack(things).with_set("test")
    assert (held_out.key, held_out.data) == (pack.key, pack.data)
    assert held_out.examples == pack.test == things / "held-out"
    assert [t.id for t in load_shacl_tasks(held_out)] == ["b"]
    assert [t.id for t in load_shacl_tasks(pack)] == ["a"]
    assert read_registry(held_out).tasks == read_registry(pack).tasks == 1


def test_a_pack_without_a_test_set_says_so(things: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(things.parents[1])
    assert load_pack("things").test is None
    with pytest.raises(UsageError) as caught:
        load_pack("things-test")
    assert caught.value.code == "no-test-set"
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
    assert caught.value.fields["near"] == ["things"]
    assert "\n" not in str(caught.value)
    with pytest.raises(UsageError) as caught:
        load_pack("x")
    assert "choose " in caught.value.hint
    assert "things" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("endpoint = ", "cannot be read"),
        (f"endpoint = {'9' * 5000}", "cannot be read"),
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


@pytest.mark.parametrize(
    ("text", "wanted"),
    [('languages = "en"', "list"), ("examples = 3", "quotes"), ('prefixes = ["t"]', "table"),
     ("name = 4", "quotes"), ('union_default_graph = "perhaps"', "true or false")],
)  # fmt: skip
def test_a_value_of_another_kind_is_named_in_words_of_toml(
    tmp_path: Path, text: str, wanted: str
) -> None:
    (tmp_path / "pack.toml").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=f": write .*{wanted}"):
        load_pack(tmp_path)


def test_endpoint_config_keeps_the_public_address(things: Path) -> None:
    config = endpoint_config(load_pack(things), "http://127.0.0.1:7878/query")
    assert config.url == "https://example.org/sparql/"
    assert (config.name, config.authority) == ("Example", "Nobody")
    assert config.query_url == "http://127.0.0.1:7878/query"
    assert dict(config.prefixes) == {"t": "http://things/"}
    assert config.label_properties == ("http://www.w3.org/2000/01/rdf-schema#label",)


SERVED_TOML = """
title = "Trees"
name = "Trees"
endpoint = "https://trees.example/sparql/"
data = ["trees.ttl"]
[prefixes]
t = "http://trees/"
[[federated]]
name = "Fruits"
authority = "https://fruits.example/"
url = "https://fruits.example/sparql"
data = ["fruits.nq"]
void = "fruits.void.ttl"
void_graph = "https://fruits.example/.well-known/void"
label_properties = ["http://fruits/name"]
[federated.prefixes]
f = "http://fruits/"
[[federated]]
name = "Soils"
url = "http://soils.example/blazegraph/sparql"
data = ["soils.ttl"]
[[federated]]
name = "Weather"
url = "https://weather.example/sparql"
"""
TREES = """@prefix t: <http://trees/> .
t:apple t:bears <http://fruits/pome> ; t:grows <http://soils/loam> .
t:oak t:bears <http://fruits/nut> ; t:grows <http://soils/clay> .
t:pine t:bears <http://fruits/cone> .
"""
FRUITS = """<http://fruits/pome> <http://fruits/name> "pome" <http://fruits/graph> .
<http://fruits/nut> <http://fruits/name> "nut" <http://fruits/graph> .
<http://fruits/pome> <http://fruits/likes> <http://soils/loam> <http://fruits/graph> .
"""
SOILS = '<http://soils/loam> <http://soils/wet> true ; <http://soils/label> "loam" .'
VOID = """@prefix void: <http://rdfs.org/ns/void#> .
<https://fruits.example/#set> a void:Dataset ; void:triples 3 ."""

FRUIT = "<https://fruits.example/sparql>"
SOIL = "<http://soils.example/blazegraph/sparql>"


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("trees")
    for name, text in {
        "pack.toml": SERVED_TOML,
        "trees.ttl": TREES,
        "fruits.nq": FRUITS,
        "fruits.void.ttl": VOID,
        "soils.ttl": SOILS,
    }.items():
        (root / name).write_text(text)
    return root


@pytest.fixture(scope="module")
def config(trees: Path) -> Iterator[EndpointConfig]:
    with open_endpoint(load_pack(trees)) as config:
        yield config


@pytest.fixture(scope="module")
def client(config: EndpointConfig) -> Iterator[SPARQLClient]:
    with SPARQLClient(config) as client:
        yield client


def cells(client: SPARQLClient, query: str) -> list[tuple[str, ...]]:
    """Ask a SELECT; returns its rows as sorted tuples of plain values."""
    result = client.query(query)
    assert isinstance(result, TableResult)
    rows = result.rows(0, 50)
    return sorted(tuple(str(getattr(cell, "value", "")) for cell in row) for row in rows)


def test_every_endpoint_with_data_stands_on_its_own_port(config: EndpointConfig) -> None:
    assert [other.name for other in config.federated] == ["Fruits", "Soils"]
    assert config.aliases == {
        "https://trees.example/sparql/": config.address,
        "https://fruits.example/sparql": config.federated[0].address,
        "http://soils.example/blazegraph/sparql": config.federated[1].address,
    }
    assert len(set(config.aliases.values())) == 3
    fruits = config.federated[0]
    assert (fruits.url, fruits.authority) == (
        "https://fruits.example/sparql",
        "https://fruits.example/",
    )
    assert fruits.prefixes == {"t": "http://trees/", "f": "http://fruits/"}
    assert fruits.label_properties == ("http://fruits/name",)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            f"SELECT ?n {{ ?x t:bears ?y SERVICE {FRUIT} {{ ?y <http://fruits/name> ?n }} }}",
            [("nut",), ("pome",)],
        ),
        (
            "SELECT ?n { SERVICE <https://fruits.example/sparql/> "
            "{ ?y <http://fruits/name> ?n } t:oak t:bears ?y }",
            [("nut",)],
        ),
        (
            "PREFIX at: <https://fruits.example/> "
            "SELECT ?n { t:oak t:bears ?y SERVICE at:sparql { ?y <http://fruits/name> ?n } }",
            [("nut",)],
        ),
        (
            f"SELECT ?l {{ t:apple t:bears ?y SERVICE {FRUIT} {{ ?y <http://fruits/likes> ?s "
            f"SERVICE {SOIL} {{ ?s <http://soils/label> ?l }} }} }}",
            [("loam",)],
        ),
        (
            f"SELECT ?x {{ SERVICE {FRUIT} {{ ?y <http://fruits/name> 'nut' "
            "SERVICE <https://trees.example/sparql> { ?x <http://trees/bears> ?y } } }",
            [("http://trees/oak",)],
        ),
        (
            "SELECT ?x ?k { ?x t:bears ?y { SELECT ?y (COUNT(?n) AS ?k) "
            f"{{ SERVICE {FRUIT} {{ ?y <http://fruits/name> ?n }} }} GROUP BY ?y }} }}",
            [("http://trees/apple", "1"), ("http://trees/oak", "1")],
        ),
        (
            "SELECT ?x { ?x t:bears ?y FILTER NOT EXISTS "
            f"{{ SERVICE {FRUIT} {{ ?y <http://fruits/name> ?n }} }} }}",
            [("http://trees/pine",)],
        ),
        (
            "SELECT ?x { ?x t:bears ?y MINUS "
            f"{{ SERVICE {FRUIT} {{ ?y <http://fruits/name> ?n }} }} }}",
            [("http://trees/pine",)],
        ),
        (
            "SELECT ?x ?n { ?x t:bears ?y OPTIONAL "
            f"{{ SERVICE SILENT {FRUIT} {{ ?y <http://fruits/name> ?n }} }} }}",
            [
                ("http://trees/apple", "pome"),
                ("http://trees/oak", "nut"),
                ("http://trees/pine", ""),
            ],
        ),
        (
            f"SELECT ?x ?l {{ ?x t:bears ?y SERVICE {FRUIT} {{ ?y <http://fruits/likes> ?s }} "
            f"SERVICE {SOIL} {{ ?s <http://soils/label> ?l }} }}",
            [("http://trees/apple", "loam")],
        ),
        (
            f"SELECT ?g {{ SERVICE {FRUIT} {{ GRAPH ?g {{ ?y <http://fruits/name> 'nut' }} }} }}",
            [("http://fruits/graph",)],
        ),
        (
            f"SELECT ?k {{ SERVICE {FRUIT} {{ ?d <http://rdfs.org/ns/void#triples> ?k }} }}",
            [("3",)],
        ),
    ],
)
def test_a_query_for_the_public_endpoints_runs_unchanged(
    client: SPARQLClient, query: str, expected: list[tuple[str, ...]]
) -> None:
    assert cells(client, query) == expected


def test_other_forms_federate_too(client: SPARQLClient) -> None:
    where = f"{{ t:oak t:bears ?y SERVICE {FRUIT} {{ ?y <http://fruits/name> ?n }} }}"
    asked = client.query(f"ASK {where}")
    assert isinstance(asked, BooleanResult)
    assert asked.value
    built = client.query(f"CONSTRUCT {{ t:oak t:named ?n }} WHERE {where}")
    assert isinstance(built, GraphResult)
    assert [str(triple.object) for triple in built.triples()] == ['"nut"']


def test_a_federated_endpoint_is_asked_directly_and_federates_back(config: EndpointConfig) -> None:
    with SPARQLClient(config.federated[0]) as fruits:
        assert cells(fruits, "SELECT ?n { ?y f:name ?n }") == [("nut",), ("pome",)]
        back = "SELECT ?x { ?y f:name 'nut' SERVICE <https://trees.example/sparql/> { ?x ?p ?y } }"
        assert cells(fruits, back) == [("http://trees/oak",)]


class _Listener(BaseHTTPRequestHandler):
    asked: ClassVar[list[str]] = []

    def handle_one_request(self) -> None:
        self.asked.append(str(self.rfile.readline()))

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@pytest.mark.parametrize("silent", ["", "SILENT "])
@pytest.mark.parametrize("inside", [False, True])
def test_nothing_is_sent_to_an_address_that_is_not_allowed(
    client: SPARQLClient, silent: str, inside: bool
) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Listener)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        address = f"http://127.0.0.1:{server.server_address[1]}/sparql"
        clause = f"SERVICE {silent}<{address}> {{ ?y ?p ?n }}"
        if inside:
            clause = f"SERVICE {FRUIT} {{ ?y <http://fruits/name> ?n {clause} }}"
        with pytest.raises(QueryError, match="not among the allowed endpoints"):
            client.query(f"SELECT * {{ ?x t:bears ?y {clause} }}")
        assert _Listener.asked == []
    finally:
        server.shutdown()
        server.server_close()


def test_an_endpoint_without_data_is_refused_in_one_line(client: SPARQLClient) -> None:
    with pytest.raises(QueryError) as caught:
        client.query("SELECT * { SERVICE <https://weather.example/sparql> { ?s ?p ?o } }")
    said = str(caught.value)
    assert "SERVICE <https://weather.example/sparql> is not among the allowed endpoints" in said
    assert "allowed: http://soils.example/blazegraph/sparql, https://fruits.example/sparql" in said
    assert "127.0.0.1" not in said
    assert "\n" not in said


def test_a_service_that_fails_is_reported_by_its_public_address(
    config: EndpointConfig, client: SPARQLClient
) -> None:
    query = f"SELECT * {{ ?x t:bears ?y SERVICE {FRUIT} {{ ?y ?p ?n FILTER(<urn:none>(?n)) }} }}"
    with pytest.raises(QueryError, match="in its SERVICE") as caught:
        client.query(query)
    assert "https://fruits.example/sparql" in str(caught.value)
    assert "127.0.0.1" not in str(caught.value)
    # Nobody listens there: what the engine says then is the SERVICE's failure as well.
    fruits = "https://fruits.example/sparql"
    down = replace(config, aliases={**config.aliases, fruits: "http://127.0.0.1:61/query"})
    with SPARQLClient(down) as broken:
        asks = f"SELECT * {{ ?x t:bears ?y SERVICE {FRUIT} {{ ?y <http://fruits/name> ?n }} }}"
        with pytest.raises(QueryError, match="in its SERVICE"):
            broken.query(asks)
        assert len(cells(broken, asks.replace("SERVICE", "SERVICE SILENT"))) == 3


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("soils.ttl", None, "data file is missing"),
        ("soils.ttl", "<http://soils/loam> nonsense", "cannot be loaded"),
    ],
)
def test_a_bad_file_is_named_and_no_server_stays(
    trees: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    text: str | None,
    says: str,
) -> None:
    for file in trees.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    if text is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_text(text)
    started: list[OxigraphServer] = []
    start = OxigraphServer.start

    def recorded(server: OxigraphServer) -> OxigraphServer:
        started.append(server)
        return start(server)

    monkeypatch.setattr(OxigraphServer, "start", recorded)
    with pytest.raises(UsageError, match=says) as caught, open_endpoint(load_pack(tmp_path)):
        pytest.fail("it opened")
    assert name in str(caught.value)
    assert [server for server in started if server.running] == []


def test_a_running_endpoint_federates_with_the_public_ones(trees: Path) -> None:
    with open_endpoint(load_pack(trees), "https://mirror.example/sparql") as config:
        assert config.address == "https://mirror.example/sparql"
        assert [other.address for other in config.federated] == [
            "https://fruits.example/sparql",
            "http://soils.example/blazegraph/sparql",
            "https://weather.example/sparql",
        ]


def _is_up(url: str) -> bool:
    try:
        with urlopen(url, timeout=5):
            return True
    except OSError:
        return False


def test_all_servers_end_with_a_process_that_is_killed(trees: Path) -> None:
    script = (
        "import sys, time\n"
        "from reasoningbank.corpus import load_pack, open_endpoint\n"
        "with open_endpoint(load_pack(sys.argv[1])) as config:\n"
        "    print(*config.aliases.values(), flush=True)\n"
        "    time.sleep(60)\n"
    )
    opener = subprocess.Popen(
        [sys.executable, "-c", script, str(trees)], stdout=subprocess.PIPE, text=True
    )
    assert opener.stdout is not None
    urls = opener.stdout.readline().split()
    opener.stdout.close()
    assert [_is_up(url) for url in urls] == [True, True, True]
    os.kill(opener.pid, signal.SIGKILL)
    opener.wait()
    end = time.monotonic() + 120
    while any(map(_is_up, urls)) and time.monotonic() < end:
        time.sleep(0.1)
    assert [_is_up(url) for url in urls] == [False, False, False]


def test_at_a_running_endpoint_service_reaches_what_the_pack_names_alone(trees: Path) -> None:
    pack = load_pack(trees)
    named_too = ["https://x.example/s"]
    with open_endpoint(pack, "https://mirror.example/sparql", services=named_too) as config:
        client = SPARQLClient(config)
    for named in ("https://fruits.example/sparql", "http://Fruits.example/sparql/"):
        assert client.prepare(f"ASK {{ SERVICE <{named}> {{ ?s ?p ?o }} }}").services
    assert client.prepare("ASK { SERVICE <https://x.example/s> { ?s ?p ?o } }").services
    for other in ("<https://evil.example/collect>", "?anywhere"):
        with pytest.raises(QueryError, match="allowed"):
            client.prepare(f"ASK {{ SERVICE {other} {{ ?s ?p ?o }} }}")


@pytest.mark.parametrize(
    ("text", "field", "said"),
    [
        ('titel = "x"', "titel", "unknown key; did you mean title?"),
        ('license = "x"', "license", "unknown key; did you mean licence?"),
        ('[[federated]]\nurl = "http://e/"\nlabel = "x"', "federated.0.label", "known are"),
        ('[documents]\nbse = "http://e/"', "documents.bse", "mean base?"),
        ('[documents]\nbase = "http://e/"\ninital = "x"', "documents.inital", "mean initial?"),
    ],
)
def test_an_unknown_key_suggests_a_known_one(
    tmp_path: Path, text: str, field: str, said: str
) -> None:
    (tmp_path / "pack.toml").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        load_pack(tmp_path)
    assert (caught.value.code, caught.value.fields["field"]) == ("bad-pack", field)
    assert said in caught.value.what
