"""Results go to standard output, everything else to standard error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
import typer

from reasoningbank.cli.app import app

from .conftest import Said

Cli = Callable[..., Said]


def commands(
    command: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    subcommands = getattr(command, "commands", None)
    if subcommands is None:
        yield path, command
        return
    context = command.context_class(command)
    for name in subcommands:
        yield from commands(command.resolve_command(context, [name])[1], (*path, name))


COMMANDS = dict(commands(typer.main.get_command(app)))


def test_every_command_is_walked() -> None:
    assert {("ask",), ("run",), ("doctor",), ("judge", "compare"), ("lm", "pull")} <= set(COMMANDS)


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_the_help_of_every_command_has_an_example_of_itself(
    cli: Cli, path: tuple[str, ...]
) -> None:
    said = cli(*path, "--help")
    assert said.status == 0
    assert f"Example: reasoningbank {' '.join(path)}" in " ".join(said.out.split())
    assert said.err == ""


def test_an_experiment_is_run_shown_and_gone_on_with(
    cli: Cli, experiment_file: Callable[..., Path], make_pack: Callable[..., Path]
) -> None:
    file = experiment_file(make_pack(2))
    first = cli("run", file, "--limit", 1)
    assert first.status == 0
    header, row, *_ = first.out.splitlines()
    assert header.startswith("arm\tn\ttasks\tstrict")
    assert row.split("\t")[:4] == ["one", "1", "1", "1 (100%)"]
    assert "[1/1]" in first.err
    # A run ends with its result; the tables of memory, streams and costs are those of `status`.
    assert "interval by" not in first.out
    assert "interval by" in cli("status", "runs/small").out
    assert "reasoningbank status runs/small" in first.out
    again = cli("run", file, "--json")
    assert json.loads(again.out)["arms"][0]["strict"] == 2
    assert "[2/2] one · t001: right" in again.err
    finished = cli("run", file, "--json")
    assert (json.loads(finished.out), finished.err) == (json.loads(again.out), "")
    summary = json.loads(cli("status", "runs/small", "--json").out)
    assert summary.pop("state")["status"] == "finished"
    assert summary.pop("streams") == []
    assert summary == json.loads(finished.out)
    assert json.loads(Path("runs/small/summary.json").read_text()) == summary


def test_an_archive_of_another_run_is_left_as_it_is(
    cli: Cli, experiment_file: Callable[..., Path], make_pack: Callable[..., Path]
) -> None:
    file = experiment_file(make_pack(2))
    cli("run", file)
    kept = Path("kept[v2]")
    reported = cli("archive", "runs/small", kept)
    assert (reported.status, reported.out) == (0, "kept[v2]\n")
    assert cli("archive", "runs/small", kept).status == 0
    before = (kept / "manifest.json").read_bytes()
    cli("run", file, "--out", "other", "--set", "seeds=[1]")
    said = cli("archive", "other", kept)
    assert (said.status, "holds another run" in said.err) == (1, True)
    assert (kept / "manifest.json").read_bytes() == before


def test_a_name_that_a_run_has_not_is_not_nothing_to_do(
    cli: Cli, experiment_file: Callable[..., Path], make_pack: Callable[..., Path]
) -> None:
    cli("run", experiment_file(make_pack(2)))
    assert cli("rerun", "runs/small", "--only", "one").status == 0
    for option, name in (("--only", "nonsense"), ("--task", "t999")):
        said = cli("rerun", "runs/small", option, name)
        assert (said.status, name in said.err) == (1, True)


def test_tasks_are_listed_shown_and_counted(cli: Cli, make_pack: Callable[..., Path]) -> None:
    pack = make_pack(2)
    listed = cli("tasks", "list", pack)
    assert [line.split("\t")[0] for line in listed.out.splitlines()] == ["id", "t000", "t001"]
    assert [task["id"] for task in json.loads(cli("tasks", "list", pack, "--json").out)] == [
        "t000",
        "t001",
    ]
    shown = cli("tasks", "show", "t001", "--pack", pack)
    assert "SELECT ?plant" in shown.out
    assert json.loads(cli("tasks", "show", "t001", "--pack", pack, "--json").out)["id"] == "t001"
    assert json.loads(cli("tasks", "stats", pack, "--json").out)["total"] == 2
    assert "total\t\t2" in cli("tasks", "stats", pack).out


def results(path: Path, *rows: str) -> Path:
    bindings = [{"x": {"type": "literal", "value": row}} for row in rows]
    path.write_text(
        json.dumps({"head": {"vars": ["x"]}, "results": {"bindings": bindings}}), encoding="utf-8"
    )
    return path


def test_two_results_are_compared_as_json(cli: Cli, tmp_path: Path) -> None:
    gold = results(tmp_path / "gold.srj", "a", "b")
    same = results(tmp_path / "same.srj", "b", "a")
    part = results(tmp_path / "part.srj", "a", "a")
    said = cli("judge", "compare", gold, same)
    assert (said.status, said.err) == (0, "")
    verdict = json.loads(said.out)
    assert (verdict["strict"], verdict["f1"]) == (True, 1.0)
    assert not json.loads(cli("judge", "compare", gold, same, "--ordered").out)["strict"]
    verdict = json.loads(cli("judge", "compare", gold, part).out)
    assert (verdict["strict"], verdict["precision"], verdict["recall"]) == (False, 1.0, 0.5)
    verdict = json.loads(cli("judge", "compare", gold, part, "--bag").out)
    assert verdict["precision"] == 0.5


def test_models_are_listed_with_their_state(cli: Cli) -> None:
    listed = json.loads(cli("lm", "list", "--json").out)
    assert {model["name"]: model["state"] for model in listed}["local"] == "absent"
    assert cli("lm", "list").out.startswith("name\tmodel\t")
