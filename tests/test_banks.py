"""The banks that learning experiments begin with: the script makes them again, byte for byte."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from reasoningbank.corpus import load_corpus, load_pack, split_tasks
from reasoningbank.experiment import load_experiment
from reasoningbank.experiment.plan import plan_run
from reasoningbank.memory import Snapshot

ROOT = Path(__file__).parent.parent
BANKS = ROOT / "experiments" / "banks"


@pytest.fixture(scope="module")
def script() -> Any:
    spec = importlib.util.spec_from_file_location(
        "make_examples_bank", ROOT / "scripts" / "make_examples_bank.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("pack", "number", "beside"),
    [
        ("liita", "26", ["--beside", "experiments/liita_memory.toml"]),
        ("uniprot", "24", []),
        ("uniprot-instances", "17", ["--beside", "experiments/uniprot_learning.toml"]),
        ("liita-instances", "10", ["--beside", "experiments/liita_learning.toml"]),
    ],
)
def test_a_bank_is_made_again(
    script: Any,
    pack: str,
    number: str,
    beside: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    name = f"{pack.replace('-', '_')}.jsonl"
    made = tmp_path / name
    assert script.main([pack, number, str(made), *beside]) == 0
    assert made.read_bytes() == (BANKS / name).read_bytes()


@pytest.mark.parametrize("pack", ["liita", "uniprot"])
def test_a_bank_holds_one_training_task_of_a_group(
    pack: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    items = Snapshot.read(BANKS / f"{pack}.jsonl").items
    split = split_tasks(load_corpus(load_pack(pack)).tasks)
    train = {task.id: task.group for task in split.train}
    assert {item.src for item in items} == {"gold"}
    assert {item.provenance.task for item in items} <= set(train)
    groups = [item.provenance.group for item in items]
    if pack == "liita":
        stream = plan_run(load_experiment(ROOT / "experiments" / "liita_memory.toml")).stream
        assert not set(groups) & {task.group for task in stream}
    assert len(groups) == len(set(groups)) >= 20
    assert not set(groups) & {task.group for task in (*split.dev, *split.test)}
