"""`nl2sparql tables` and `calibration` over a run of the harness, with a scripted model."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from dspy.utils import DummyLM
from forest import write_forest

from reasoningbank.cli import nl2sparql
from reasoningbank.corpus import Pack
from reasoningbank.lm import asked_as
from reasoningbank.nl2sparql.confidence import load_calibration

from .conftest import Said

EXPERIMENT = """
name = "both"
pack = "{pack}"
[tasks]
ids = ["trees", "above", "is_tree"]
[[arms]]
name = "rag"
agent = "rag"
[[arms]]
name = "graph"
agent = "graph"
"""
TREES = {"sparql": "SELECT ?plant WHERE { ?plant a t:Tree }"}
ANALYSIS = {"patterns": '["KIND"]', "complexity": "simple", "dialects": "[]", "unclear": "none"}
SOUND = {"valid": "True", "issues": "[]"}

Cli = Callable[..., Said]


@dataclass
class Scripted:
    """Stands where an open model does: all roles share its replies."""

    model: DummyLM
    secrets: tuple[str, ...] = ()
    workers: int = 1
    fingerprint: dict[str, str] = field(default_factory=lambda: {"model": "scripted"})

    def lm(self, **_: Any) -> DummyLM:
        return self.model


@pytest.fixture
def forest(tmp_path: Path, trees_file: Path) -> Pack:
    return write_forest(tmp_path / "pack", trees_file.read_text("utf-8"))


@pytest.fixture
def run(cli: Cli, tmp_path: Path, forest: Pack, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of both agents that answer every question with all trees, right for one of three."""
    file = tmp_path / "both.toml"
    file.write_text(EXPERIMENT.format(pack=forest.root))
    for arm, replies in (("rag", [TREES] * 12), ("graph", [ANALYSIS, TREES, SOUND] * 4)):
        model = DummyLM(list(replies))

        @contextlib.contextmanager
        def opened(*_: Any, model: DummyLM = model, **__: Any) -> Iterator[Scripted]:
            yield Scripted(model)

        monkeypatch.setattr("reasoningbank.experiment.runner.open_lm", opened)
        said = cli("run", file, "--only", arm, "--out", tmp_path / "run")
        assert said.status == 0, said.err
    return tmp_path / "run"


def test_a_runs_records_become_tables_and_a_calibration(
    cli: Cli, run: Path, forest: Pack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reasoningbank.cli.app.app", nl2sparql.app)
    said = cli("tables", run, "--by", "agent")
    assert said.status == 0, said.err
    title, header, *rows = (line.split("\t") for line in said.out.splitlines())
    assert title == ["# by agent"]
    assert header[4:7] == ["n", "execution accuracy", "95% CI"]
    assert [(row[0], row[4], row[5], row[7]) for row in rows] == [
        ("rag", "3", "0.33", "1.00"),
        ("graph", "3", "0.33", "1.00"),
    ]
    everything = cli("tables", run).out
    for name in ("by agent", "by language", "by pattern", "when to use", "checking and repair"):
        assert f"# {name}" in everything
    found = json.loads(cli("tables", run, "--json").out)
    assert [one["arm"] for one in found] == ["rag", "graph"]
    assert all(one["calibration"]["n"] == 3 for one in found)

    said = cli("calibration", run)
    assert "# confidence: Brier score, 0 is best" in said.out
    assert "# confidence: reliability" in said.out
    file = forest.root / "hints" / "calibration.json"
    said = cli("calibration", run, "--arm", "graph", "--write", file)
    assert said.status == 0, said.err
    assert "of 3 trials" in said.err
    table = load_calibration(forest)
    assert table is not None
    assert (table.trials, table.model) == (3, asked_as("local"))

    for words, reported in (
        (("tables", "nowhere"), "holds no run"),
        (("calibration", run, "--arm", "rlm"), "there is no arm 'rlm'"),
        (("calibration", run, "--write", "x.json"), "--arm rag, graph"),
        (("calibration", run, "--arm", "rag", "--write", "no/x.json"), "no such folder"),
    ):
        said = cli(*words)
        assert (said.status, said.out) == (1, "")
        assert said.err.count("\n") == 1
        assert reported in said.err


def test_an_agent_that_does_not_say_how_sure_it_is(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reasoningbank.cli.app.app", nl2sparql.app)
    base = Path(__file__).parents[2] / "experiments" / "results" / "uniprot_floor"
    said = cli("calibration", base)
    assert said.status == 1
    assert "says how sure it is" in said.err
