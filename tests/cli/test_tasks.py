"""`reasoningbank tasks`: choosing, drawing and checking."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reasoningbank.sparql import OxigraphServer

from .conftest import Said

Cli = Callable[..., Said]
MakePack = Callable[..., Path]


def ids(said: Said) -> list[str]:
    assert said.status == 0, said.err
    return [line.split("\t")[0] for line in said.out.splitlines()[1:]]


def as_json(said: Said) -> Any:
    return json.loads(said.out)


def test_a_list_can_be_narrowed(cli: Cli) -> None:
    everything = ids(cli("tasks", "list"))
    parts = [ids(cli("tasks", "list", "uniprot", "--split", p)) for p in ("train", "dev", "test")]
    assert sorted(task for part in parts for task in part) == sorted(everything)
    some = as_json(
        cli(
            "tasks",
            "list",
            "--form",
            "ask",
            "--form",
            "DESCRIBE",
            "--complexity",
            "simple",
            "--json",
        )
    )
    assert {task["form"] for task in some} == {"ASK", "DESCRIBE"}
    assert {task["complexity"] for task in some} == {"simple"}
    group = some[0]["group"]
    grouped = as_json(cli("tasks", "list", "--group", group, "--json"))
    assert {task["group"] for task in grouped} == {group}
    assert len({task["split"] for task in grouped}) == 1


def test_samples_are_the_same_and_nested(cli: Cli) -> None:
    ten = ids(cli("tasks", "sample"))
    assert len(ten) == len(set(ten)) == 10
    assert ids(cli("tasks", "sample", "uniprot", "-n", 4)) == ten[:4]
    assert ids(cli("tasks", "sample", "-n", 10, "--seed", 1)) != ten
    drawn = as_json(cli("tasks", "sample", "-n", 5, "--split", "dev", "--json"))
    assert [task["split"] for task in drawn] == ["dev"] * 5
    assert ids(cli("tasks", "sample", "-n", 0)) == []


def test_show_takes_the_pack_either_way_and_knows_near_names(cli: Cli, make_pack: MakePack) -> None:
    pack = make_pack(2)
    assert (
        cli("tasks", "show", "t001", pack).out == cli("tasks", "show", "t001", "--pack", pack).out
    )
    wrong = cli("tasks", "show", "t01", pack)
    assert (wrong.status, wrong.out) == (1, "")
    assert "unknown task 't01'; did you mean t001" in wrong.err
    assert "Traceback" not in wrong.err


def test_stats_tell_splits(cli: Cli, make_pack: MakePack) -> None:
    found = as_json(cli("tasks", "stats", make_pack(9), "--json"))
    assert sum(found["by_split"].values()) == found["total"] == 9
    assert {f["severity"] for f in found["findings"]} == {"warning"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--split", "deev"), "--split: unknown value 'deev'; did you mean dev?"),
        (("--complexity", "hard"), "unknown value 'hard'; choose simple, moderate, complex"),
        (("--form", "slect"), "unknown value 'SLECT'; did you mean SELECT"),
        (("--group", "protein-name"), "did you mean protein-names"),
    ],
)
def test_a_wrong_word_is_one_line(cli: Cli, words: tuple[str, ...], said: str) -> None:
    got = cli("tasks", "list", "uniprot", *words)
    assert got.status == 1
    assert said in got.err


def test_validate_tells_warnings_and_ends_well(cli: Cli, make_pack: MakePack) -> None:
    said = cli("tasks", "validate", make_pack(2))
    assert said.status == 0
    header, *lines = said.out.splitlines()
    assert header == "file\tseverity\tcode\tmessage"
    assert [line.split("\t")[:3] for line in lines] == [
        ["tasks.ttl", "warning", "id-mismatch"],
        ["tasks.ttl", "warning", "id-mismatch"],
        ["tasks.ttl", "warning", "no-keywords"],
        ["tasks.ttl", "warning", "no-keywords"],
    ]
    assert "trees: 2 tasks, 0 errors, 4 warnings, 0 remarks" in said.err


def test_validate_ends_with_1_where_there_are_errors(cli: Cli, make_pack: MakePack) -> None:
    pack = make_pack(2)
    file = pack / "examples" / "tasks.ttl"
    file.write_text(file.read_text().replace("height ?h .", "hight ?h .", 1), encoding="utf-8")
    assert cli("tasks", "validate", pack).status == 0
    ran = cli("tasks", "validate", pack, "--run", "--json")
    assert ran.status == 1
    found = as_json(ran)
    assert (found["tasks"], found["errors"], found["ran"]) == (2, 1, True)
    (error,) = [f for f in found["findings"] if f["severity"] == "error"]
    assert (error["file"], error["code"]) == ("tasks.ttl", "empty-gold")
    assert error["fields"] == {"id": "t000"}


def test_validate_runs_golds_on_any_endpoint(cli: Cli, make_pack: MakePack) -> None:
    pack = make_pack(2)
    with OxigraphServer([pack / "trees.ttl"]) as server:
        ran = as_json(cli("tasks", "validate", pack, "--endpoint", server.url, "--json"))
        # A bare folder of examples declares no prefixes, and names no endpoint.
        bare = as_json(
            cli("tasks", "validate", pack / "examples", "--endpoint", server.url, "--json")
        )
    assert (ran["errors"], ran["ran"]) == (0, True)
    assert {f["code"] for f in bare["findings"] if f["severity"] == "error"} == {
        "gold-fails",
        "unknown-prefix",
    }
    gone = cli("tasks", "validate", pack, "--endpoint", "http://127.0.0.1:9/sparql")
    assert gone.status == 1
    assert "gold-fails" in gone.out
    both = cli("tasks", "validate", pack, "--run", "--endpoint", "http://127.0.0.1:9/sparql")
    assert (both.status, both.out) == (1, "")


def test_a_folder_without_an_endpoint_cannot_run(cli: Cli, tmp_path: Path) -> None:
    said = cli("tasks", "validate", tmp_path, "--run")
    assert said.status == 1
    assert "names no endpoint" in said.err


def test_an_empty_folder_is_an_error(cli: Cli, tmp_path: Path) -> None:
    said = cli("tasks", "validate", tmp_path)
    assert said.status == 1
    assert "no-examples" in said.out
