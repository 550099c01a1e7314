"""Every bad input and fault ends in one clear line, within its time, with nothing lost."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyoxigraph import RdfFormat, parse

from reasoningbank.sparql import EndpointConfig, SPARQLClient

from .page import GROUPS, PAGE, render
from .scene import Fault, Scene, Seen, observe

FAULTS = [fault for faults in GROUPS.values() for fault in faults]
TRIPLES = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"


@pytest.fixture(scope="module")
def scene(trees: EndpointConfig, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    made = Scene(trees, tmp_path_factory.mktemp("faults") / "scene")
    made.folder.mkdir()
    yield made
    made.close()


@pytest.fixture(scope="module")
def seen(scene: Scene) -> Callable[[Fault], Seen]:
    """Return what acts a fault out, once."""
    known: dict[str, Seen] = {}

    def see(fault: Fault) -> Seen:
        key = f"{fault.name} {fault.through}"
        if key not in known:
            known[key] = observe(fault, scene)
        return known[key]

    return see


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_a_fault_is_one_clear_line(fault: Fault, seen: Callable[[Fault], Seen]) -> None:
    if "certificate" in fault.name and shutil.which("openssl") is None:
        pytest.skip("no openssl here to make a certificate with")
    came = seen(fault)
    assert came.kind == fault.kind, came.text
    assert re.search(fault.said, came.text, re.S), came.text
    if fault.kind != "result":
        assert "\n" not in came.text
        assert not re.search(r"Traceback|object at 0x|has no attribute", came.text)


def test_there_are_many_and_no_two_are_the_same() -> None:
    assert len(FAULTS) >= 45
    assert len({(fault.name, fault.through) for fault in FAULTS}) == len(FAULTS)


def test_the_store_is_the_same_after_all_of_them(
    trees: EndpointConfig, seen: Callable[[Fault], Seen], trees_file: Path
) -> None:
    for faults in ("Updates in query tools", "Addresses in queries", "Names and searches"):
        for fault in GROUPS[faults]:
            seen(fault)
    with SPARQLClient(trees) as client:
        found = client.query(TRIPLES).triples()
    assert set(found) == {quad.triple for quad in parse(trees_file.read_bytes(), RdfFormat.TURTLE)}


def test_the_page_shows_what_was_seen(seen: Callable[[Fault], Seen]) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl here to make a certificate with")
    assert PAGE.read_text(encoding="utf-8") == render(seen), (
        "run: python scripts/generate.py faults"
    )
