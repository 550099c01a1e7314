"""Every example of `docs/extending.md` runs: as an experiment's own parts, and in plain DSPy."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.utils import DummyLM
from experiment.learning.orchard import STREAM, TEST, write_orchard

from reasoningbank.experiment import RunFolder, parse_experiment, run_experiment, runner

PAGE = (Path(__file__).parents[1] / "docs" / "extending.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
PARTS = [block for block in BLOCKS if block.startswith("# mine.py")]
PLAIN = [block for block in BLOCKS if block not in PARTS]
QUERY = "SELECT ?plant WHERE { ?plant t:height ?h . FILTER(?h > 3) }"


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    return write_orchard(tmp_path / "trees")


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The page's module, in the current folder."""
    (tmp_path / "mine.py").write_text("\n\n".join(PARTS), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("mine", None)


class Scripted(DummyLM):  # type: ignore[misc]
    """A scripted model that calls tools in turn and then answers, for any of DSPy's modules."""

    secrets = ()
    workers = 1
    fingerprint = {"model": "scripted"}  # noqa: RUF012

    def __init__(self, calls: tuple[tuple[str, dict[str, Any]], ...], code: str = "") -> None:
        super().__init__([])
        self.calls, self.code, self.prompts = calls, code, list[str]()

    def lm(self, **_: Any) -> Scripted:
        return self

    def forward(self, prompt: Any = None, messages: Any = None, **rest: Any) -> Any:
        text = "\n".join(str(message["content"]) for message in messages)
        self.prompts.append(text)
        turn = text.count("[[ ## observation_")
        tool, arguments = self.calls[turn] if turn < len(self.calls) else ("finish", {})
        said = {"next_thought": "on", "next_tool_name": tool, "reasoning": "so", "sparql": QUERY}
        said |= {"next_tool_args": json.dumps(arguments), "code": f"```python\n{self.code}\n```"}
        return DummyLM([said]).forward(prompt, messages, **rest)


def test_each_example_of_an_extension_has_at_most_fifteen_lines() -> None:
    assert len(PARTS) == 5
    for block in PARTS:
        code = [line for line in block.splitlines()[1:] if line.strip()]
        assert len(code) <= 15, block


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Callable[[Scripted], Scripted]:
    def use(model: Scripted) -> Scripted:
        class Open:
            def __init__(self, *_: Any, **__: Any) -> None: ...
            def __enter__(self) -> Scripted:
                return model

            def __exit__(self, *_: object) -> None: ...

        monkeypatch.setattr(runner, "open_lm", Open)
        return model

    return use


def run(mine: Path, pack: Path, **arm: Any) -> tuple[RunFolder, str]:
    data = tomllib.loads(re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[0])
    data |= {"pack": str(pack), "tasks": {"ids": TEST}, "learning": {"tasks": {"ids": STREAM}}}
    data["arms"][0] |= arm
    return run_experiment(parse_experiment(data), RunFolder(mine / "run")), data["arms"][0]["name"]


def test_all_five_extensions_in_one_run(
    mine: Path, pack: Path, opened: Callable[[Scripted], Scripted]
) -> None:
    calls = (("labels", {"uri": "t:oak"}), ("sparql_query", {"query": QUERY}))
    model = opened(Scripted(calls))
    folder, arm = run(mine, pack)
    records = list(folder.trials())
    assert {record.status for record in records} == {"submitted"}
    assert {record.sparql for record in records} == {QUERY}
    right = [record.key.task for record in records if record.strict]
    assert right, "all heights are above 3 m, so some questions have this answer"
    # The tool: the model saw its result, and not the parameter that the run gives it.
    assert "[[ ## observation_0 ## ]]\nOutput (7 chars):\n['Oak']" in model.prompts[1]
    assert "labels, whose description" in model.prompts[0]
    assert "'tools'" not in model.prompts[0]
    used = [c.data["tool"] for r in records for c in r.trajectory.of("tool_call")]
    assert used == ["labels", "sparql_query", "finish"] * len(records)
    # The judge.
    assert all(record.judgements["lm:mine:few_rows"]["success"] for record in records)
    # The distiller, and the retriever in the trials with the frozen bank.
    assert folder.taken(arm, 0)[-1].after
    kept = [r for r in records if r.memory and r.trajectory.of("memory_retrieved")]
    shown = [
        item
        for record in kept
        for event in record.trajectory.of("memory_retrieved")
        for item in record.trajectory.resolve(event.data)["items"]
    ]
    assert shown
    assert {item["title"] for item in shown} == {"A query that was right"}
    assert max(item["score"] for item in shown) == 1.0
    assert any("Follow the query that was right" in prompt for prompt in model.prompts)


def test_a_predictor_of_dspy_is_an_agent(
    mine: Path, pack: Path, opened: Callable[[Scripted], Scripted]
) -> None:
    opened(Scripted(()))
    plain: dict[str, Any] = {"agent": "mine:writer", "options": {}}
    folder, _ = run(mine, pack, **plain)
    assert {record.sparql for record in folder.trials()} == {QUERY}


def test_the_metric_and_an_agent_in_plain_dspy(
    pack: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with dspy.context(lm=Scripted(())):
        names: dict[str, Any] = {}
        exec(PLAIN[0].replace('"uniprot"', repr(str(pack))), names)
    assert (tmp_path / "compiled.json").exists()


def test_the_tools_in_plain_dspy(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = f"ref = sparql_query({QUERY!r})\nprint(ref.key, sparql_peek(ref, 1))\nSUBMIT({QUERY!r})"
    calls = (("sparql_query", {"query": QUERY}), ("sparql_peek", {"ref": "results_0"}))
    with dspy.context(lm=Scripted(calls, code)):
        exec(PLAIN[1].replace('"uniprot"', repr(str(pack))), {})
    assert capsys.readouterr().out.strip() == str([QUERY] * 3)
