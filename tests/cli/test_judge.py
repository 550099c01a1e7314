"""`judge run` on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from reasoningbank.experiment import RunFolder

from .conftest import Said

Cli = Callable[..., Said]


@pytest.fixture
def run(
    cli: Cli,
    experiment_file: Callable[..., Path],
    make_pack: Callable[..., Path],
    tmp_path: Path,
) -> RunFolder:
    assert cli("run", experiment_file(make_pack(2)), "--out", "run").status == 0
    return RunFolder(tmp_path / "run")


def test_the_rule_and_its_agreement(cli: Cli, run: RunFolder) -> None:
    said = cli("judge", "run", run.path, "--with", "rule")
    assert said.status == 0
    header, row, line, records = said.out.splitlines()
    assert header.split("\t")[:3] == ["judge", "n", "both yes"]
    assert row.split("\t") == ["rule", "2", "2", "0", "0", "0", "1.00", "1.00", "-"]
    assert line.startswith("2 judged")
    assert records == f"records: {run.path}"
    assert "[1/2] one · t000 · 0" in said.err
    again = cli("judge", "run", run.path, "--with", "rule", "--json")
    assert (json.loads(again.out)["judged"], json.loads(again.out)["known"]) == (0, 2)


def test_a_verdict_that_changed_is_reported_and_fails(cli: Cli, run: RunFolder) -> None:
    record = next(run.trials())
    verdict = {**(record.verdict or {}), "strict": False, "f1": 0.5}
    run.write(replace(record, verdict=verdict))
    said = cli("judge", "run", run.path, "--with", "execution")
    assert said.status == 1
    change, line, _ = said.out.splitlines()
    assert change.startswith(
        "one · t000 · 0: was judged (F1 0.50), now strict (F1 1.00); not written"
    )
    assert "1 changed" in line
    assert not run.read(record.key).strict
    said = cli("judge", "run", run.path, "--with", "execution", "--replace", "--arm", "one")
    assert said.status == 0
    assert run.read(record.key).strict


def test_a_copy_of_a_compressed_run(cli: Cli, run: RunFolder, tmp_path: Path) -> None:
    assert cli("archive", run.path, "small").status == 0
    said = cli("judge", "run", "small", "--with", "execution")
    assert (said.status, said.out) == (1, "")
    assert (said.status, "--out" in said.err) == (1, True)
    said = cli("judge", "run", "small", "--with", "execution", "--out", "copy", "--limit", 1)
    assert said.status == 0
    assert sum(bool(r.evidence) for r in RunFolder(tmp_path / "copy").trials()) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nowhere", "--with", "rule"), "nowhere: holds no run"),
        (("run", "--with", "me"), "unknown judge 'me'; choose execution, rule or lm:NAME"),
        (("run", "--with", "lm:nonsense"), "unknown model 'nonsense'"),
        (("run", "--with", "rule", "--arm", "two"), "unknown arm 'two'; choose from one"),
    ],
)
def test_what_cannot_be_is_one_line(
    cli: Cli, run: RunFolder, words: tuple[str, ...], said: str
) -> None:
    result = cli("judge", "run", *words)
    assert (result.status, result.out) == (1, "")
    assert said in result.err
    assert result.err.count("\n") == 1
