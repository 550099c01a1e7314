"""LinkedDataHub's documents: what is written, statement by statement, and how it is listed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from rdflib import Graph
from rdflib.compare import isomorphic

from reasoningbank.algebra import ProgramError, Runtime, mistakes, run_program, to_json
from reasoningbank.errors import ReasoningBankError
from reasoningbank.ldp import LDPServer

from .faults import raises, said

HUB = "https://localhost:4443/"
PREFIXES = """
@prefix dct: <http://purl.org/dc/terms/> .
@prefix dh: <https://www.w3.org/ns/ldt/document-hierarchy#> .
@prefix ldh: <https://w3id.org/atomgraph/linkeddatahub#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
"""


def op(name: str, /, **args: Any) -> dict[str, Any]:
    return {"@op": name, "args": args}


def turtle(text: str) -> Graph:
    return Graph().parse(data=PREFIXES + text, format="turtle")


def bindings(value: Any) -> list[dict[str, str]]:
    rows = to_json(value)["results"]["bindings"]
    return [{name: term["value"] for name, term in row.items()} for row in rows]


@pytest.fixture
def hub() -> Iterator[LDPServer]:
    with LDPServer(HUB) as running:
        yield running


@pytest.fixture
def runtime(hub: LDPServer) -> Iterator[Runtime]:
    with Runtime(addresses={HUB: hub.address}, allow_write=[HUB]) as made:
        yield made


def test_a_container_is_the_document_that_was_decided(runtime: Runtime) -> None:
    made = run_program(
        op(
            "ldh-CreateContainer",
            parent=f"{HUB}containers/",
            slug="European Cities",
            title="Cities Container",
            description="Container for city data",
        ),
        runtime,
    )
    url = f"{HUB}containers/European%20Cities/"
    assert bindings(made) == [{"status": "201", "url": url}]
    expected = turtle(f"""
        <{url}> a dh:Container ; dct:title "Cities Container" ;
            dct:description "Container for city data" ;
            rdf:_1 [ a ldh:Object ; rdf:value ldh:ChildrenView ] .
    """)
    assert isomorphic(runtime.get(url), expected)


@pytest.mark.parametrize(("name", "inside"), [("Item", "container"), ("Container", "parent")])
def test_what_exists_is_kept_where_only_new_documents_are_wanted(
    runtime: Runtime, name: str, inside: str
) -> None:
    call = op(f"ldh-Create{name}", **{inside: f"{HUB}items/"}, title="First", slug="a")
    run_program(call, runtime)
    again = op(f"ldh-Create{name}", **{**call["args"], "title": "Second", "only_new": True})
    with raises(ReasoningBankError, "write-refused"):
        run_program(again, runtime)
    assert "First" in {str(term) for term in runtime.get(f"{HUB}items/a/").objects()}
    (wrong,) = mistakes(op(f"ldh-Create{name}", **{**call["args"], "only_new": "yes"}))
    assert said(wrong) == "$.args.only_new wrong-type"


def test_an_item_is_the_document_that_was_decided(runtime: Runtime) -> None:
    made = run_program(
        op(
            "ldh-CreateItem",
            container=f"{HUB}items",
            title={"type": "literal", "value": "København", "xml:lang": "da"},
        ),
        runtime,
    )
    url = f"{HUB}items/K%C3%B8benhavn/"
    assert bindings(made) == [{"status": "201", "url": url}]
    expected = turtle(f'<{url}> a dh:Item ; dct:title "København"@da .')
    assert isomorphic(runtime.get(url), expected)


def test_children_are_listed_by_title(runtime: Runtime, hub: LDPServer) -> None:
    for title in ("Odense", "Aarhus", "Åbenrå"):
        run_program(op("ldh-CreateItem", container=HUB, title=title), runtime)
    run_program(op("ldh-CreateContainer", parent=HUB, title="More", slug="more"), runtime)
    run_program(op("ldh-CreateItem", container=f"{HUB}more/", title="Inside"), runtime)
    # A child without a title is one all the same, and one with two comes once.
    run_program(op("PUT", url=f"{HUB}plain", data={"@id": HUB, "http://e/p": 1}), runtime)
    titles = {"@id": f"{HUB}Odense/", "http://purl.org/dc/terms/title": "Othinsey"}
    run_program(op("POST", url=f"{HUB}Odense/", data=titles), runtime)
    for asked in ({"base": HUB}, {"endpoint": f"{HUB}sparql"}, {"base": HUB.rstrip("/")}):
        found = bindings(run_program(op("ldh-List", url=HUB, **asked), runtime))
        assert found == [
            {"child": f"{HUB}plain"},
            {"child": f"{HUB}Aarhus/", "title": "Aarhus"},
            {"child": f"{HUB}more/", "title": "More"},
            {"child": f"{HUB}Odense/", "title": "Odense"},
            {"child": f"{HUB}%C3%85benr%C3%A5/", "title": "Åbenrå"},
        ]
    inside = run_program(op("ldh-List", url=f"{HUB}more/", base=HUB), runtime)
    assert [row["title"] for row in bindings(inside)] == ["Inside"]


def test_children_can_be_gone_through(runtime: Runtime) -> None:
    for title in ("a", "b"):
        run_program(op("ldh-CreateItem", container=HUB, title=title), runtime)
    found = run_program(
        op(
            "ForEach",
            select=op("ldh-List", url=HUB, base=HUB),
            operation=op("GET", url=op("Value", name="child")),
        ),
        runtime,
    )
    assert len(to_json(found)) == 2


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        ({"url": HUB}, "$ exclusive-arguments"),
        ({"url": HUB, "base": HUB, "endpoint": f"{HUB}sparql"}, "$ exclusive-arguments"),
        ({"base": HUB}, "$.args missing-argument"),
        ({"url": "x", "base": HUB}, "$.args.url relative-iri"),
    ],
)
def test_lists_that_cannot_be(arguments: dict[str, str], reported: str) -> None:
    wrong = mistakes(op("ldh-List", **arguments))
    assert said(wrong[0]) == reported


@pytest.mark.parametrize("title", ["", ".", ".."])
def test_names_that_would_be_another_document(runtime: Runtime, hub: LDPServer, title: str) -> None:
    before = hub.documents.read(HUB)
    with raises(ProgramError, "bad-name"):
        run_program(op("ldh-CreateContainer", parent=f"{HUB}a/", title=title), runtime)
    assert hub.documents.read(HUB) == before


def test_slugs_cannot_lead_elsewhere(runtime: Runtime) -> None:
    made = run_program(
        op("ldh-CreateItem", container=f"{HUB}a/", title="x", slug="b/?c#d"), runtime
    )
    assert bindings(made)[0]["url"] == f"{HUB}a/b%2F%3Fc%23d/"
    # Percent-encoded it is a name, yet not for every server.
    with raises(ReasoningBankError, "bad-url"):
        run_program(op("ldh-CreateItem", container=f"{HUB}a/", title="../b"), runtime)


def test_writes_are_allowed_or_not(hub: LDPServer) -> None:
    runtime = Runtime(addresses={HUB: hub.address}, allow_write=[f"{HUB}mine/"])
    with runtime, raises(ReasoningBankError, "write-not-allowed"):
        run_program(op("ldh-CreateItem", container=HUB, title="x"), runtime)
