"""`reasoningbank compare`, and the tables of `status`, on committed records."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from reasoningbank.cli import output

from .conftest import Said

Cli = Callable[..., Said]
RESULTS = Path(__file__).parents[2] / "experiments" / "results"
BASE, TOOLS, FLOOR = (RESULTS / f"uniprot_{name}" for name in ("baseline", "tools", "floor"))
OTHERS = RESULTS / "nl2sparql"


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Return what is written to a terminal of 100 columns."""
    screen = io.StringIO()
    shown = Console(file=screen, width=100, force_terminal=True, highlight=False, color_system=None)
    monkeypatch.setattr(output, "console", shown)
    return screen


def test_results_go_to_standard_output_and_notes_beside_it(cli: Cli) -> None:
    said = cli("compare", BASE, TOOLS)
    assert said.status == 0
    header, row, sentence, shared = said.out.splitlines()
    assert header.split("\t")[:4] == ["first", "second", "tasks", "difference"]
    assert row.split("\t")[:3] == ["uniprot_baseline:rlm", "uniprot_tools:rlm", row.split("\t")[2]]
    # The second run has half of its tasks.
    assert row.endswith("\tincomplete")
    assert "incomplete, 10 trials missing" in sentence
    assert shared.startswith("20 shared tasks; 0 ")
    assert "note: the stores differ" in said.err


def test_as_json(cli: Cli) -> None:
    said = cli("compare", FLOOR, FLOOR, "--arm", "oracle", "--with", "direct", "--json",
               "--metric", "f1", "--unit", "group")  # fmt: skip
    reported = json.loads(said.out)
    (found,) = reported["comparisons"]
    assert (reported["metric"], reported["unit"], reported["shared"]) == ("f1", "group", 10)
    assert (found["first"], found["second"], found["difference"]) == ("oracle", "direct", 1.0)
    # Ten tasks of seven groups: seven signs alike have p = 2/128.
    assert (found["groups"], found["p"]) == (7, 2 / 128)


def test_bad_usage_is_one_line(cli: Cli, tmp_path: Path) -> None:
    for words, reported in (
        ((FLOOR, OTHERS), "the runs share no task"),
        ((BASE, tmp_path), "holds no run"),
        ((BASE, BASE, "--with", "rlm"), "--arm, --with: only the second arm is named"),
        ((BASE, TOOLS, "--arm", "nobody"), "--arm, --with: uniprot_baseline has no arm 'nobody'"),
    ):
        said = cli("compare", *words)
        assert (said.status, said.out, len(said.err.splitlines())) == (1, "", 1)
        assert reported in said.err
    assert cli("compare", BASE, TOOLS, "--metric", "taste").status == 2


def test_tables_fit_into_a_hundred_columns(cli: Cli, terminal: io.StringIO) -> None:
    cli("status", FLOOR)
    cli("compare", BASE, TOOLS)
    lines = terminal.getvalue().splitlines()
    tables = [line for line in lines if line[:1] in set("┏┃┡│└")]
    assert max(map(len, tables)) <= 100
    assert not any("…" in line for line in tables), "nothing is cut"
    text = " ".join(terminal.getvalue().split())
    assert "│ oracle │ 10 │ 10 │ 10 (100%) │ 0.72 to 1.00" in text
    assert "pre-registered: rlm against direct, strict, 3 tasks" in text
    assert "also: oracle against direct, strict, 10 tasks" in text


def test_in_a_pipe_one_table_has_everything(cli: Cli) -> None:
    said = cli("status", FLOOR)
    header, *rows = [line.split("\t") for line in said.out.splitlines() if "\t" in line]
    assert header[:3] == ["arm", "n", "strict"]
    assert {"cached calls", "dollars", "retried", "interval by"} <= set(header)
    assert [row[0] for row in rows] == ["oracle", "direct", "rlm"]
    assert {len(row) for row in rows} == {len(header)}
