"""Which endpoints and packs the discovery tools reach, and that they reach no other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reasoningbank.corpus import known_packs
from reasoningbank.errors import ToolError
from reasoningbank.sparql import EndpointConfig, OxigraphServer
from reasoningbank.tools import EndpointTools
from reasoningbank.tools.endpoint_tools import is_public

from .forest import write_forest


@pytest.fixture
def forest(tmp_path: Path) -> Path:
    """A pack whose examples reach many endpoints, this machine among them."""
    write_forest(tmp_path / "forest")
    return tmp_path / "forest"


@pytest.fixture
def tools(forest: Path) -> EndpointTools:
    """The tools as in a run."""
    config = EndpointConfig("https://forest.example/sparql/", "Forest")
    return EndpointTools([config], packs=[forest])


@pytest.fixture(scope="module")
def plain(trees_file: Path) -> Iterator[str]:
    """An engine without statistics."""
    with OxigraphServer([trees_file]) as server:
        yield server.url


def test_in_a_run_only_its_own_packs_are_read(
    tools: EndpointTools, forest: Path, tmp_path: Path
) -> None:
    for path in ("forest", "ontology/forest", str(forest), ""):
        assert tools.federated_endpoints(path).source == "forest"
    # What is hidden are ids of this pack's tasks: of another pack it hides nothing.
    others = ("uniprot", "ontology/uniprot/", str(known_packs()["uniprot"]))
    wrong = (str(tmp_path), str(forest / "examples"), "../forest", "/etc", "forrest")
    for path in (*others, *wrong):
        with pytest.raises(ToolError, match=r"available packs: forest$"):
            tools.federated_endpoints(path)


def test_a_run_without_a_pack_reads_none() -> None:
    made = EndpointTools([EndpointConfig("https://any.example/sparql/", "Any")])
    for path in ("", "uniprot"):
        with pytest.raises(ToolError, match="available packs: none"):
            made.federated_endpoints(path)


def test_a_pack_that_breaks_while_it_is_read_is_a_line_for_the_agent(
    tools: EndpointTools, forest: Path
) -> None:
    (forest / "pack.toml").write_text("name =", encoding="utf-8")
    with pytest.raises(ToolError) as caught:
        tools.federated_endpoints("forest")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "host",
    ["printer.home.arpa", "1.0.0.10.in-addr.arpa", "wiki.corp", "db.localdomain", "x.CORP."],
)
def test_names_of_private_machines_are_not_public(host: str) -> None:
    assert not is_public(f"https://{host}/sparql")
    assert is_public(f"https://{host.strip('.')}.example.org/sparql")


def test_in_a_notebook_any_folder_is_read_and_what_it_names_may_be_asked(forest: Path) -> None:
    made = EndpointTools()
    with pytest.raises(ToolError, match="may not be asked"):
        made.service_desc("https://n03.example/sparql")
    ref = made.federated_endpoints(str(forest))
    asked = {e["name"]: e["may_be_asked"] for e in made.endpoints_list(ref, 50)["endpoints"]}
    assert asked["Forest"]
    assert asked["N03"]
    # An example can name this machine; that makes it no endpoint to ask.
    detail = made.endpoint_detail(ref, "http://127.0.0.1:5000/secrets")
    assert not detail["may_be_asked"]
    with pytest.raises(ToolError, match="may not be asked"):
        made.service_desc("http://127.0.0.1:5000/secrets")


def test_what_a_person_names_may_be_asked_on_this_machine_too(tmp_path: Path, plain: str) -> None:
    (tmp_path / "pack.toml").write_text(f'name = "Mine"\nendpoint = "{plain}"\n', encoding="utf-8")
    assert EndpointTools(packs=[tmp_path]).service_desc(plain).source == "Mine"
    with pytest.raises(ToolError, match="may not be asked"):
        EndpointTools().service_desc(plain)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9/sparql",
        "http://169.254.169.254/latest/meta-data",
        "http://localhost/sparql",
        "file:///etc/passwd",
        "ftp://any.example/sparql/",
        "https://user:word@any.example/sparql/",
        "https://any.example.evil.example/sparql/",
        "https://any.example/other",
        "any",
        "",
        "http://[::1",
        None,
        7,
    ],
)
def test_nothing_else_can_be_asked(url: Any) -> None:
    made = EndpointTools([EndpointConfig("https://any.example/sparql/", "Any Endpoint")])
    with pytest.raises(ToolError) as caught:
        made.service_desc(url)
    assert "Any Endpoint https://any.example/sparql/" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_spelling_leads_to_the_configured_address(plain: str) -> None:
    far = EndpointConfig("https://far.example/sparql", "Far", query_url=plain)
    near = EndpointConfig("https://near.example/sparql/", "Near", query_url=plain, federated=(far,))
    made = EndpointTools([near])
    for url in ("https://near.example/sparql/", "http://NEAR.example/sparql", "near"):
        assert made.service_desc(url).source == "Near"
    # Those it federates with may be asked too; asking again costs no request.
    first = made.service_desc("http://far.example/sparql/")
    assert (first.source, made.service_desc("Far").key) == ("Far", first.key)
