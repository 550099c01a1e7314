"""The picture of the graph: the seed's nodes and edges, as text and as PNG."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from reasoningbank.corpus import Pack
from reasoningbank.errors import SetupError, UsageError
from reasoningbank.nl2sparql import Pattern, PatternSet
from reasoningbank.nl2sparql.graph import GraphSettings, mermaid_picture, save_picture
from reasoningbank.nl2sparql.graph.build import families_of

EDGES = (
    "__start__ --> analyze", "analyze --> plan", "plan --> retrieve", "retrieve --> generate",
    "generate --> execute", "execute --> verify", "verify -.-> output", "verify -.-> refine",
    "verify -.-> explore", "refine --> retrieve", "explore --> generate", "output --> __end__",
)  # fmt: skip


def test_it_has_the_nodes_and_edges_of_the_design(forest: Pack) -> None:
    text = mermaid_picture(forest)
    assert all(f"{edge};" in text for edge in EDGES)
    assert text.count("-->") + text.count("-.->") == len(EDGES)


def test_what_is_switched_off_is_not_drawn(forest: Pack) -> None:
    text = mermaid_picture(forest, GraphSettings(explore=False, human=True))
    assert "explore" not in text
    assert "analyze --> clarify;" in text
    assert "clarify --> plan;" in text


def test_each_family_has_its_writer(forest: Pack) -> None:
    text = mermaid_picture(forest, inside=True)
    assert [f"subgraph {name}" in text for name in ("general", "kinds", "measures", "places")] == [
        True
    ] * 4
    assert text.count("(focus)") == text.count("(write)") == 4


@pytest.mark.parametrize(("name", "begins"), [("g.png", b"\x89PNG"), ("g.svg", b"<svg")])
def test_it_is_rendered_offline(forest: Pack, tmp_path: Path, name: str, begins: bytes) -> None:
    pytest.importorskip("mermaid_render", reason="pictures are an extra")
    save_picture(tmp_path / name, forest)
    assert (tmp_path / name).read_bytes().startswith(begins)


def test_without_the_renderer_the_text_is_still_to_be_had(
    forest: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mermaid_render", None)
    with pytest.raises(SetupError, match="pip install mermaid-render"):
        save_picture(tmp_path / "g.png", forest)
    save_picture(tmp_path / "g.mmd", forest)
    assert (tmp_path / "g.mmd").read_text() == mermaid_picture(forest)


def test_a_form_that_cannot_be_drawn_is_told(forest: Pack, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="end the name in"):
        save_picture(tmp_path / "g.gif", forest)


def test_langgraph_is_not_loaded_with_the_agents() -> None:
    code = (
        "import sys, reasoningbank.agents, reasoningbank.nl2sparql\n"
        "print([m for m in sys.modules if m.startswith('langgraph') or m == 'mermaid_render'])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


@pytest.mark.parametrize("family", ["general", "a:b"])
def test_a_family_that_cannot_be_a_node_is_told(family: str) -> None:
    patterns = PatternSet(patterns=(Pattern(name="A", family=family),))
    with pytest.raises(UsageError, match="the family of A cannot be called"):
        families_of(patterns)
