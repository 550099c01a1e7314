"""The discovery tools: attributed, bounded, silent, and never beyond what may be asked."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import dspy
import pytest
from engines import VirtuosoServer
from sparql.faulty import Answer, FaultyServer

from reasoningbank.agents.sandbox.interpreter import Sandbox
from reasoningbank.corpus import Pack, load_corpus, load_pack
from reasoningbank.corpus.registry import RegistryEndpoint
from reasoningbank.errors import ToolError
from reasoningbank.refs import Ref, RefStore
from reasoningbank.sparql import EndpointConfig, OxigraphServer
from reasoningbank.tools import CAPS, EndpointTools
from reasoningbank.tools.endpoint_tools import endpoint_in_full
from reasoningbank.tools.returns import MAX_CHARS

from .forest import MANY, write_forest
from .guard import guarded

VOID = """
@prefix void: <http://rdfs.org/ns/void#> .
@prefix sd: <http://www.w3.org/ns/sparql-service-description#> .
@prefix e: <http://e/> .
e:void {{
e:all a void:Dataset ; void:triples 900 ; void:classPartition
    [ void:class e:Tree ; void:entities 7 ; void:propertyPartition [ void:property e:height ] ] .
{graphs}
}}
"""


@pytest.fixture
def forest(tmp_path: Path) -> Path:
    """A pack whose examples reach many endpoints and graphs."""
    write_forest(tmp_path / "forest")
    return tmp_path / "forest"


@pytest.fixture
def tools(forest: Path) -> Iterator[EndpointTools]:
    config = EndpointConfig("https://forest.example/sparql/", "Forest")
    made = EndpointTools([config], packs=[forest], hidden=["secret"])
    yield made
    made.close()


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory, trees_file: Path) -> Iterator[str]:
    graphs = "\n".join(
        f"[] sd:namedGraph [ sd:name <http://g/{'y' * 150}{i:02}> ; void:triples {i} ]."
        for i in range(MANY)
    )
    file = tmp_path_factory.mktemp("void") / "void.trig"
    file.write_text(VOID.format(graphs=graphs), encoding="utf-8")
    with OxigraphServer([trees_file, file]) as server:
        yield server.url


@pytest.fixture(scope="module")
def plain(trees_file: Path) -> Iterator[str]:
    """An engine of ours without statistics, schema or description of the data."""
    with OxigraphServer([trees_file]) as server:
        yield server.url


@pytest.fixture(params=["described", "plain", "foreign"])
def any_engine(request: pytest.FixtureRequest) -> EndpointConfig:
    """Endpoints of ours with and without statistics, and one that is not ours."""
    found = request.getfixturevalue("virtuoso" if request.param == "foreign" else request.param)
    url = found.url if isinstance(found, VirtuosoServer) else found
    return EndpointConfig("https://any.example/sparql/", "Any", query_url=url, retries=0)


def check(returned: Mapping[str, Any], source: str) -> None:
    """What holds of every return."""
    text = json.dumps(returned, ensure_ascii=False)
    assert len(text) < MAX_CHARS + 1_000
    assert returned["source"] == source
    assert isinstance(returned["truncated"], bool)
    if returned["truncated"]:
        assert returned["note"]


def test_a_registry_is_a_handle_in_every_form(tools: EndpointTools) -> None:
    ref = tools.federated_endpoints("forest")
    assert isinstance(ref, Ref)
    assert repr(ref) == f"Ref('registry_0', 'registry', {MANY + 3} items from forest)"
    as_json = json.loads(json.dumps(ref))
    for given in (ref, ref.key, as_json):
        assert tools.endpoints_list(given)["total"] == ref.rows


def test_endpoints_are_listed_in_pages_that_lose_none(tools: EndpointTools) -> None:
    ref = tools.federated_endpoints("forest")
    first = tools.endpoints_list(ref)
    check(first, "forest")
    assert (first["count"], first["total"]) == (10, MANY + 3)
    assert first["endpoints"][0] == {
        "name": "Forest",
        "url": "https://forest.example/sparql/",
        "authority": "The Foresters",
        "count": MANY + 4,
        "may_be_asked": True,
    }
    assert first["note"] == f'{MANY - 7} more: endpoints_list("registry_0", limit=50, start=10)'
    urls: list[str] = []
    while len(urls) < ref.rows:
        part = tools.endpoints_list(ref, limit=500, start=len(urls))
        check(part, "forest")
        assert 0 < part["count"] <= CAPS["endpoints_list"].most
        assert "lowered from 500 to 50" in part["note"]
        urls += [item["url"] for item in part["endpoints"]]
    assert len(set(urls)) == ref.rows


def test_examples_that_cannot_be_parsed_are_reported(tools: EndpointTools) -> None:
    assert tools.endpoints_list(tools.federated_endpoints("forest"))["unread_examples"] == 1


@pytest.mark.parametrize(
    "name",
    ["River", "rIVER", "http://river.example/sparql", "<https://RIVER.example:443/sparql/>",
     "river.example/sparql", "river.example"],
)  # fmt: skip
def test_an_endpoint_is_shown_by_name_or_any_spelling(tools: EndpointTools, name: str) -> None:
    detail = tools.endpoint_detail(tools.federated_endpoints("forest"), name)
    check(detail, "forest")
    assert detail == {
        "source": "forest",
        "name": "River",
        "url": "https://river.example/sparql",
        "authority": "river.example",
        "spellings": ["https://river.example/sparql", "http://river.example/sparql/"],
        "tasks": {"all": 1, "as_target": 0, "by_service": 1, "declared": 0},
        "prefixes": {"t": "http://e/"},
        "graphs": [],
        "questions": ["What of river?"],
        "may_be_asked": False,
        "truncated": False,
    }


def test_an_unknown_endpoint_names_the_nearest(tools: EndpointTools) -> None:
    ref = tools.federated_endpoints("forest")
    with pytest.raises(ToolError, match="did you mean River"):
        tools.endpoint_detail(ref, "Rivers")
    with pytest.raises(ToolError, match=r"it names Forest, .* and 53 more"):
        tools.endpoint_detail(ref, "zzzz")
    with pytest.raises(ToolError, match="names no endpoint"):
        tools.endpoint_detail(ref, "")


def test_graphs_are_bounded_in_characters_and_none_is_lost(tools: EndpointTools) -> None:
    ref = tools.federated_endpoints("forest")
    graphs: list[str] = []
    while len(graphs) < MANY:
        part = tools.data_graphs(ref, limit=50, start=len(graphs))
        check(part, "forest")
        graphs += [item["graph"] for item in part["graphs"]]
    assert len(set(graphs)) == MANY
    detail = tools.endpoint_detail(ref, "Forest")
    check(detail, "forest")
    assert "53 more graphs: data_graphs" in detail["note"]


def test_hidden_tasks_and_golds_show_nowhere(tools: EndpointTools) -> None:
    ref = tools.federated_endpoints("forest")
    shown = json.dumps(
        [
            *(tools.endpoints_list(ref, 50, start) for start in (0, 50)),
            *(tools.data_graphs(ref, 50, start) for start in (0, 40)),
            *(tools.endpoint_detail(ref, name) for name in ("Forest", "River")),
        ]
    )
    assert "secret.example" not in shown
    assert "What of secret" not in shown
    assert "?gold" not in shown
    with pytest.raises(ToolError):
        tools.endpoint_detail(ref, "https://secret.example/")


def test_hidden_tasks_of_a_real_split_show_nowhere() -> None:
    tasks = load_corpus(load_pack("uniprot")).tasks
    hidden = {task.id for task in tasks[::2]}
    shown = {task.query for task in tasks if task.id not in hidden}
    made = EndpointTools(hidden=hidden)
    ref = made.federated_endpoints("uniprot")
    own = made.endpoint_detail(ref, "UniProt")
    assert own["tasks"]["all"] <= len(shown)
    for item in made.endpoints_list(ref, 50)["endpoints"]:
        assert set(made.endpoint_detail(ref, item["name"])["questions"]) <= shown


def test_an_endpoint_is_described_whatever_the_engine(any_engine: EndpointConfig) -> None:
    made = EndpointTools([any_engine])
    ref = made.service_desc("https://any.example/sparql")
    assert (ref.dtype, ref.source) == ("service_desc", "Any")
    assert ref.rows > 5
    assert ref.sz > ref.rows
    stats = made.service_desc_stats(ref)
    check(stats, "Any")
    assert (stats["described"], stats["triples"]) == (True, ref.rows)
    features = made.service_desc_features(ref)
    check(features, "Any")
    assert {"kind": "language", "feature": "sd:SPARQL10Query"} in features["features"]
    assert any(item["feature"].startswith("formats:") for item in features["features"])
    graphs = made.service_desc_graphs(ref)
    check(graphs, "Any")
    assert graphs["total"] == stats["graphs"]
    sample = made.service_desc_sample(ref)
    check(sample, "Any")
    assert sample["count"] == 10
    assert {"p": "rdf:type", "o": "sd:Service"}.items() <= sample["triples"][0].items()
    assert "127.0.0.1" not in json.dumps([stats, features, graphs, sample])


def test_every_tool_answers_from_an_index_on_every_engine(
    endpoint: EndpointConfig, uniprot: Pack
) -> None:
    with guarded(endpoint.address) as guard:
        made = EndpointTools([replace(endpoint, query_url=guard.url)], packs=[uniprot])
        ref = made.federated_endpoints("ontology/uniprot")
        sd = made.service_desc("https://sparql.uniprot.org/sparql/")
        returns = {
            "endpoints_list": made.endpoints_list(ref.key, limit=10),
            "endpoint_detail": made.endpoint_detail(ref.key, "Rhea"),
            "data_graphs": made.data_graphs(ref.key),
            "service_desc_stats": made.service_desc_stats(sd.key),
            "service_desc_graphs": made.service_desc_graphs(sd.key),
            "service_desc_features": made.service_desc_features(sd.key),
            "service_desc_sample": made.service_desc_sample(sd.key, n=10),
        }
    assert guard.passed
    assert guard.refused == []
    assert (ref.dtype, sd.dtype) == ("registry", "service_desc")
    assert set(returns) | {"federated_endpoints", "service_desc"} == set(made.as_dspy_tools())
    for name, returned in returns.items():
        check(returned, "UniProt" if name.startswith("service") else "ontology/uniprot")
        assert returned.get("count", 1) > 0
    graphs = [item["graph"] for item in returns["service_desc_graphs"]["graphs"]]
    assert "http://sparql.uniprot.org/uniprot" in graphs


def test_statistics_are_reported_where_there_are_any(described: str) -> None:
    made = EndpointTools([EndpointConfig("https://any.example/", "Any", query_url=described)])
    ref = made.service_desc("https://any.example/")
    stats = made.service_desc_stats(ref)
    assert stats["statistics"] == "store"
    assert stats["data"] == {"triples": 900, "classes": 1, "properties": 1}
    assert "tried" not in stats
    graphs: list[str] = []
    while len(graphs) < MANY:
        part = made.service_desc_graphs(ref, 50, len(graphs))
        check(part, "Any")
        assert part["via"] == "description"
        graphs += [item["graph"] for item in part["graphs"]]
    assert len(set(graphs)) == MANY
    assert made.service_desc_graphs(ref, 1)["graphs"][0]["triples"] == MANY - 1


def test_where_there_are_none_it_is_said_what_was_tried(plain: str) -> None:
    made = EndpointTools([EndpointConfig("https://any.example/", "Any", query_url=plain)])
    ref = made.service_desc("https://any.example/")
    stats = made.service_desc_stats(ref)
    assert stats["statistics"] == "none"
    assert "data" not in stats
    assert stats["tried"] == [
        "statistics: the store holds no VoID statistics",
        "statistics: /.well-known/void: HTTP 404",
    ]
    graphs = made.service_desc_graphs(ref)
    assert (graphs["total"], graphs["graphs"]) == (0, [])
    assert "names no graphs" in graphs["note"]


@pytest.fixture
def faulty() -> Iterator[FaultyServer]:
    made = FaultyServer()
    yield made
    made.close()


@pytest.mark.parametrize(
    ("answer", "reported"),
    [
        (Answer(404, b"nothing"), "service description: HTTP 404"),
        (Answer(200, b"<html>hi</html>", {"Content-Type": "text/html"}), "a web page came"),
        (Answer(200, b"", {"Content-Type": "text/turtle"}), "the answer is empty"),
        (Answer(200, b"%PDF", {"Content-Type": "application/pdf"}), "application/pdf, not RDF"),
    ],
    ids=["404", "page", "empty", "pdf"],
)
def test_an_endpoint_that_tells_nothing_gives_a_handle_of_nothing(
    faulty: FaultyServer, answer: Answer, reported: str
) -> None:
    faulty.script(answer)
    made = EndpointTools([EndpointConfig(faulty.url, "Silent", retries=0)])
    ref = made.service_desc(faulty.url)
    assert (ref.rows, ref.sz) == (0, 0)
    stats = made.service_desc_stats(ref)
    check(stats, "Silent")
    assert (stats["described"], stats["statistics"], stats["triples"]) == (False, "none", 0)
    assert reported in stats["tried"][0]
    for listing in (made.service_desc_features(ref), made.service_desc_sample(ref)):
        check(listing, "Silent")
        assert (listing["total"], listing["count"]) == (0, 0)
        assert "service_desc_stats says what came" in listing["note"]


def test_an_endpoint_that_is_down_is_an_error_and_asked_again(plain: str) -> None:
    config = EndpointConfig("https://any.example/", "Any", query_url="http://127.0.0.1:9/sparql")
    made = EndpointTools([config])
    for _ in range(2):
        with pytest.raises(ToolError, match=r"Any: no connection.*try again once"):
            made.service_desc("https://any.example/")


@pytest.mark.parametrize(
    "call",
    [
        lambda t, ref: t.endpoints_list(ref, 0),
        lambda t, ref: t.endpoints_list(ref, "ten"),
        lambda t, ref: t.endpoints_list(ref, 10, -1),
        lambda t, ref: t.endpoints_list(ref, 10, 500),
        lambda t, ref: t.endpoints_list("nope"),
        lambda t, ref: t.service_desc_stats(ref),
        lambda t, ref: t.data_graphs(ref, True),
        lambda t, ref: t.service_desc_sample(ref, 3),
        lambda t, ref: t.federated_endpoints("nope"),
        lambda t, ref: t.federated_endpoints(None),
    ],
)
def test_mistakes_are_one_line_that_says_what_to_do(
    tools: EndpointTools, call: Callable[[EndpointTools, Ref], Any]
) -> None:
    ref = tools.federated_endpoints("forest")
    with pytest.raises(ToolError) as caught:
        call(tools, ref)
    assert caught.value.hint
    assert "\n" not in str(caught.value)


def test_nothing_prints(tools: EndpointTools, capfd: pytest.CaptureFixture[str]) -> None:
    ref = tools.federated_endpoints("forest")
    tools.endpoints_list(ref)
    tools.data_graphs(ref)
    with contextlib.suppress(ToolError):
        tools.service_desc("https://nobody.example/")
    assert capfd.readouterr() == ("", "")


def test_one_store_serves_both_kinds_of_tools(forest: Path) -> None:
    with RefStore() as store:
        made = EndpointTools(packs=[forest], store=store)
        ref = made.federated_endpoints("forest")
        assert store.ref(ref.key).dtype == "registry"


def test_closing_releases_its_own_store_only(forest: Path) -> None:
    own = EndpointTools(packs=[forest])
    own.federated_endpoints("forest")
    own.close()
    assert len(own.store) == 0
    with RefStore() as store:
        shared = EndpointTools(packs=[forest], store=store)
        ref = shared.federated_endpoints("forest")
        shared.close()
        assert store.get(ref).source == "forest"


def test_an_endpoint_is_shown_within_bounds_whatever_the_examples_hold() -> None:
    endpoint = RegistryEndpoint(
        url="https://wide.example/sparql",
        name="W" * 5_000,
        authority="A" * 5_000,
        spellings=tuple(f"https://wide.example/{'s' * 900}{i}" for i in range(9)),
        prefixes=tuple((f"p{i}", f"http://e/{'n' * 300}{i}/") for i in range(30)),
        graphs={f"http://g/{'g' * 700}{i}": 1 for i in range(9)},
        questions=("Q" * 9_000,) * 3,
    )
    shown, notes = endpoint_in_full(endpoint)
    assert len(json.dumps([shown, notes])) <= MAX_CHARS
    left = 30 - len(shown["prefixes"])
    assert 0 < left < 30
    assert f"{left} more prefixes: less used; a full IRI needs none" in notes
    assert f"{9 - len(shown['graphs'])} more graphs: data_graphs(ref) lists them" in notes
    assert "9 more spellings: all are the same endpoint" in notes


@pytest.mark.parametrize(
    "given", ["x" * 100_000, ["x" * 900] * 90, 10**6_000], ids=["text", "list", "number"]
)
def test_what_is_given_is_never_repeated_whole(tools: EndpointTools, given: Any) -> None:
    ref = tools.federated_endpoints("forest")
    calls: list[Callable[[], Any]] = [
        lambda: tools.federated_endpoints(given),
        lambda: tools.service_desc(given),
        lambda: tools.endpoint_detail(ref, given),
        lambda: tools.endpoints_list(ref, 10, given),
    ]
    for call in calls:
        with pytest.raises(ToolError) as caught:
            call()
        assert len(str(caught.value)) < 1_500


def test_dspy_takes_them_with_short_descriptions(tools: EndpointTools) -> None:
    named = tools.as_dspy_tools()
    assert set(CAPS) & set(named) == {
        "endpoints_list",
        "data_graphs",
        "service_desc_graphs",
        "service_desc_features",
        "service_desc_sample",
    }
    for name, tool in named.items():
        made = dspy.Tool(tool, name=name)
        assert made.args
        assert "\n" not in made.desc
        assert len(made.desc) <= 110


@pytest.mark.sandbox
def test_the_sandbox_calls_them_positionally_and_by_name(forest: Path, plain: str) -> None:
    near = EndpointConfig("https://near.example/sparql/", "Near", query_url=plain)
    tools = EndpointTools([near], packs=[forest], hidden=["secret"])
    box = Sandbox(timeout_s=20)
    box.tools.update(tools.as_dspy_tools())
    try:
        said = box.execute(
            "ref = federated_endpoints('forest')\n"
            "print(ref, ref.key, ref['dtype'])\n"
            "print(endpoints_list(ref, 1)['endpoints'][0]['name'])\n"
            "print(endpoints_list(ref=ref.key, limit=1, start=1)['count'])\n"
            "print(endpoint_detail(ref, 'river')['questions'])\n"
            "sd = service_desc(url='https://near.example/sparql')\n"
            "print(sd.source, service_desc_stats(sd)['described'])\n"
            "print(service_desc_sample(sd, n=1)['count'], service_desc_features(sd, 2)['count'])\n"
            "try:\n    service_desc('http://127.0.0.1:1/')\n"
            "except ToolError as error:\n    print('caught', 'may not be asked' in str(error))"
        )
    finally:
        box.shutdown()
    assert said.splitlines() == [
        f"Ref('registry_0', 'registry', {MANY + 3} items from forest) registry_0 registry",
        "Forest",
        "1",
        "['What of river?']",
        "Near True",
        "1 2",
        "caught True",
    ]
