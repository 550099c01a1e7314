"""Where programs run: documents as they were, and what was done to them as an update."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from towns import write_towns

from reasoningbank.algebra import Runtime, read_program, run_program
from reasoningbank.algebra.stage import Scene, Stage, open_stage
from reasoningbank.algebra.values import kept
from reasoningbank.corpus import Pack
from reasoningbank.errors import ReasoningBankError, UsageError
from reasoningbank.judge import DocumentChanges
from reasoningbank.ldp import LDPServer
from reasoningbank.sparql import EndpointConfig

BASE = "http://docs.example/"
OLD = f"{BASE}old"
NOWHERE = EndpointConfig("http://127.0.0.1:9/sparql")


@pytest.fixture(scope="module")
def towns(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    return write_towns(tmp_path_factory.mktemp("stage") / "towns")


def with_initial(pack: Pack, folder: Path, text: str) -> Pack:
    assert pack.documents is not None
    file = folder / "documents.trig"
    file.write_text(text, "utf-8")
    return replace(pack, documents=replace(pack.documents, initial=file, resources=""))


def run(scene: Scene, *calls: Any) -> None:
    program = [{"@op": name, "args": args} for name, args in calls]
    kept(run_program(read_program(program), scene.runtime))


def scene_of(pack: Pack, *calls: Any) -> str:
    with open_stage(pack, NOWHERE) as stage, stage.scene() as scene:
        run(scene, *calls)
        return scene.update()


def test_documents_that_nobody_wrote_are_unchanged_however_they_are_spelled(
    towns: Pack, tmp_path: Path
) -> None:
    held = f'<{OLD}> {{ <{OLD}> <http://e/p> 007 , 1.50 , "colour"@en-GB }}'
    pack = with_initial(towns, tmp_path, held)
    assert scene_of(pack, ("GET", {"url": OLD})) == ""
    back = {"@op": "GET", "args": {"url": OLD}}
    assert scene_of(pack, ("PUT", {"url": OLD, "data": back})) == ""
    new = {"@id": "", "http://e/p": "new"}
    update = scene_of(
        pack, ("POST", {"url": OLD, "data": back}), ("POST", {"url": OLD, "data": new})
    )
    changes = DocumentChanges.of(pack)
    assert changes is not None
    assert changes.answer(update, timeout_s=20).n_rows == 1


@pytest.mark.parametrize(
    ("initial", "reported"),
    [
        ("<http://elsewhere.example/x> { <http://e/a> a <http://e/T> }", "no document can have"),
        (f"<{BASE}Køge> {{ <http://e/a> a <http://e/T> }}", "percent-encoded"),
        (f"<{OLD}> {{ [] a <http://e/T> }}", "there is a blank node in"),
        (f"<{OLD}> {{ <http://e/a> a", "cannot be read"),
    ],
)
def test_initial_documents_that_cannot_be_used_are_reported(
    towns: Pack, tmp_path: Path, initial: str, reported: str
) -> None:
    pack = with_initial(towns, tmp_path, initial)
    with pytest.raises(UsageError, match=reported):
        scene_of(pack, ("GET", {"url": OLD}))
    assert pack.documents is not None
    gone = replace(pack, documents=replace(pack.documents, initial=tmp_path / "none.trig"))
    with pytest.raises(UsageError, match="cannot be read"):
        scene_of(gone, ("GET", {"url": OLD}))


def test_resources_without_an_address_are_left_out(towns: Pack, tmp_path: Path) -> None:
    data = tmp_path / "odd.ttl"
    here = "http://towns.example/id/"
    names = ["a", "b?c", "d#e", "..", "f//g"]
    data.write_text("".join(f"<{here}{name}> a <http://e/T> .\n" for name in names), "utf-8")
    with open_stage(replace(towns, data=(data,)), NOWHERE) as stage, stage.scene() as scene:
        run(scene, ("GET", {"url": f"{here}a"}))


@pytest.mark.parametrize(
    "call",
    [
        ("GET", {"url": "http://docs.example.evil/"}),
        ("GET", {"url": "http://127.0.0.1:9/"}),
        ("GET", {"url": "http://towns.example/other"}),
        ("PUT", {"url": "http://towns.example/id/Ribe", "data": {"@id": "", "http://e/p": 1}}),
        (
            "SELECT",
            {
                "endpoint": f"{BASE}sparql",
                "query": "SELECT ?s WHERE { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }",
            },
        ),
        ("PATCH", {"url": OLD, "update": "INSERT { ?s ?p ?o } WHERE { GRAPH ?g { ?s ?p ?o } }"}),
    ],
)
def test_nothing_else_is_reached(towns: Pack, call: Any) -> None:
    with open_stage(towns, NOWHERE) as stage, stage.scene() as scene:
        with pytest.raises(ReasoningBankError, match=r"may not be|not among the allowed|beyond"):
            run(scene, call)
        assert scene.update() == ""


PARTS = st.one_of(
    st.sampled_from([ox.NamedNode(f"http://e/{name}") for name in "abc"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8).map(ox.Literal),
    st.integers(-9, 9).map(ox.Literal),
    st.builds(lambda text: ox.Literal(text, language="en-GB"), st.text("ab", max_size=2)),
)
NAMES = st.sampled_from([ox.NamedNode(f"http://e/{name}") for name in "abc"])
BLANKS = st.sampled_from([ox.BlankNode(name) for name in "xyz"])
URLS = st.sampled_from([f"{BASE}{name}" for name in ("a", "b/", "b/c", "M%C3%B8", "x(1)")])


def documents(blank: bool) -> st.SearchStrategy[dict[str, list[ox.Triple]]]:
    subjects = st.one_of(NAMES, BLANKS) if blank else NAMES
    objects = st.one_of(PARTS, BLANKS) if blank else PARTS
    triples = st.builds(ox.Triple, subjects, NAMES, objects)
    return st.dictionaries(URLS, st.lists(triples, min_size=0, max_size=4), max_size=4)


def canonical(store: ox.Store) -> dict[str, set[str]]:
    """Return what each document holds; blank nodes are its own."""
    held = {}
    for graph in store.named_graphs():
        dataset = ox.Dataset(store.quads_for_pattern(None, None, None, graph))
        dataset.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
        held[str(graph)] = {str(quad) for quad in dataset}
    return {name: quads for name, quads in held.items() if quads}


def stored(held: dict[str, list[ox.Triple]]) -> ox.Store:
    store = ox.Store()
    store.extend(
        ox.Quad(one.subject, one.predicate, one.object, ox.NamedNode(url))
        for url, all_ in held.items()
        for one in all_
    )
    return store


@given(before=documents(blank=False), after=documents(blank=True))
@settings(deadline=None, max_examples=30)
def test_an_update_does_what_was_done(
    before: dict[str, list[ox.Triple]], after: dict[str, list[ox.Triple]]
) -> None:
    with LDPServer(BASE, initial=before) as home, Runtime() as runtime:
        scene = Scene(runtime, home, home.documents.written())
        assert scene.update() == ""
        for url, triples in after.items():
            home.documents.put(url, triples)
        update = scene.update()
    store = stored(before)
    if update:
        store.update(update)
    assert canonical(store) == canonical(stored({**before, **after}))


def test_a_stage_without_documents_writes_nowhere() -> None:
    with open_stage(None, NOWHERE) as stage, stage.scene() as scene:
        assert isinstance(stage, Stage)
        with pytest.raises(UsageError, match="may not be written"):
            run(scene, ("PUT", {"url": OLD, "data": {"@id": "", "http://e/p": 1}}))
        assert scene.update() == ""
