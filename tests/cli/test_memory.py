"""`reasoningbank memory`: banks, snapshots and runs, looked at and taken care of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reasoningbank.experiment.records import RunFolder, Step
from reasoningbank.memory import (
    Counters,
    MemoryBank,
    MemoryItem,
    Provenance,
    Scope,
    Snapshot,
    Turn,
)
from reasoningbank.memory.consolidate import consolidate

from .conftest import Said

Cli = Callable[..., Said]

MASS = MemoryItem(
    "Mass is on the sequence",
    "Questions for the mass of a protein",
    "Two steps:\n1. up:sequence\n2. up:mass",
    "success",
    pattern="SELECT ?m { <<protein>> up:sequence/up:mass ?m }",
    tags=("up:sequence", "up:mass"),
    scope=Scope("uniprot", "https://sparql.uniprot.org/sparql"),
    provenance=Provenance("t1", "masses", "uniprot", "one/t1.0", "execution", "local"),
    evidence=(Provenance("t2", "masses", "uniprot", "one/t2.0", "execution", "local"),),
    counters=Counters(5, 4, 1, 2, 1),
    turns=(Turn("Look first.", "print(1)", "1"),),
)
RANK = MemoryItem("Ranks of a taxon", "Taxonomy [b]", "Never use up:ranks.", "failure")
GONE = MemoryItem("Old", "Old", "Old.", "seed", status="superseded", superseded_by=MASS.id)
ITEMS = (MASS, RANK, GONE)


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    path = tmp_path / "bank.sqlite"
    with MemoryBank(path) as made:
        made.add(ITEMS, reason="for the test")
    return path


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a run of one arm's two streams, of two steps and one."""
    folder = tmp_path / "run"
    states = [Snapshot.of(ITEMS[:n]) for n in range(3)]
    for state in states:
        state.write(folder / "memory")
    hashes = [state.hash for state in states]
    changes = ({"action": "retire", "item": RANK.id, "reason": "consolidation: hurt 6 tasks"},)
    for order, number, item, more in ((0, 0, MASS, ()), (0, 1, RANK, changes), (1, 0, MASS, ())):
        RunFolder(folder).write_step(
            Step("learned", order, number, f"t{number}", f"learned/t{number}.{order}",
                 hashes[number], hashes[number + 1], added=(item.id,), changes=more)
        )  # fmt: skip
    return folder


def state_of(path: Path) -> list[tuple[str, int, str]]:
    """Return all that is in a folder, when it was written, and what."""
    return [
        (str(one), one.stat().st_mtime_ns, hashlib.sha256(one.read_bytes()).hexdigest())
        for one in sorted(path.rglob("*"))
        if one.is_file()
    ]


def rows(said: Said) -> list[list[str]]:
    assert (said.status, said.err) == (0, ""), said.err
    return [line.split("\t") for line in said.out.splitlines()][1:]


def data(said: Said) -> Any:
    assert said.status == 0, said.err
    return json.loads(said.out)


def refused(said: Said) -> str:
    assert (said.status, said.out) == (1, "")
    (line,) = said.err.splitlines()
    assert line.startswith("reasoningbank: ")
    return line.removeprefix("reasoningbank: ")


def test_a_list_shows_what_is_active_unless_asked_otherwise(cli: Cli, bank: Path) -> None:
    active = rows(cli("memory", "list", bank))
    assert {row[0] for row in active} == {MASS.id, RANK.id}
    assert next(row for row in active if row[0] == MASS.id)[1:] == [
        "success", "active", "2", "5", "2", "1", MASS.title,
    ]  # fmt: skip
    everything = data(cli("memory", "list", bank, "--status", "all", "--json"))
    assert [MemoryItem.from_json(one) for one in everything] == sorted(ITEMS, key=lambda i: i.id)
    assert [row[0] for row in rows(cli("memory", "list", bank, "--src", "failure"))] == [RANK.id]
    for option, word in (("--src", "luck"), ("--status", "dead")):
        assert cli("memory", "list", bank, option, word).code == "unknown-value"


def test_an_item_is_shown_whole_and_found_by_its_beginning(cli: Cli, bank: Path) -> None:
    said = cli("memory", "show", bank, MASS.id[:6])
    for text in (*MASS.content.splitlines(), MASS.pattern, "up:sequence, up:mass", "print(1)"):
        assert text in said.out
    assert "helped 2 and hurt 1" in said.out
    assert "task uniprot/t2" in said.out
    assert "Taxonomy [b]" in cli("memory", "show", bank, RANK.id).out
    assert f"superseded by {MASS.id}" in cli("memory", "show", bank, GONE.id).out
    assert MemoryItem.from_json(data(cli("memory", "show", bank, MASS.id, "--json"))) == MASS
    assert MASS.id in refused(cli("memory", "show", bank, MASS.id[:-1] + "x"))


@pytest.mark.parametrize("command", ["show", "retire"])
@pytest.mark.parametrize("unknown", ["", "  ", "zzzz", "Old", "f" * 16])
def test_an_unknown_id_is_not_answered_with_others(
    cli: Cli, bank: Path, command: str, unknown: str
) -> None:
    said = refused(cli("memory", command, bank, unknown))
    assert "there is no memory item" in said
    assert [item.id for item in ITEMS if item.id in said] == []


def test_search_ranks_and_says_by_what(cli: Cli, bank: Path) -> None:
    found = rows(cli("memory", "search", bank, "quanto pesa una proteina?"))
    assert [row[3] for row in found] == [MASS.id, RANK.id]
    (first,) = data(cli("memory", "search", bank, "ranks", "-n", "1", "--json"))
    assert first["id"] == RANK.id
    assert first["lexical"] > 0
    only = rows(cli("memory", "search", bank, "protein mass", "--src", "failure"))
    assert [row[3] for row in only] == [RANK.id]
    for query in ("", " \t"):
        assert "the query is empty" in refused(cli("memory", "search", bank, query))


@pytest.mark.parametrize(
    "words",
    [
        ("list", "{}"),
        ("show", "{}", MASS.id),
        ("search", "{}", "mass"),
        ("history", "{}"),
        ("diff", "{}", "{}"),
        ("export", "{}"),
    ],
)
def test_reading_never_writes(cli: Cli, bank: Path, words: tuple[str, ...]) -> None:
    with MemoryBank(bank) as opened, opened._store.writing() as database:
        database.execute("DELETE FROM embeddings")
    before = state_of(bank.parent)
    assert cli("memory", *(word.format(bank) for word in words)).status == 0
    assert state_of(bank.parent) == before


def test_what_was_changed_is_reported_and_taken_back(cli: Cli, bank: Path) -> None:
    before = cli("memory", "list", bank, "--json").out
    said = cli("memory", "retire", bank, MASS.id[:6], "--reason", "of one release only")
    assert said.out == f"retired {MASS.id}: {MASS.title}\n"
    assert [row[0] for row in rows(cli("memory", "list", bank))] == [RANK.id]
    assert cli("memory", "retire", bank, MASS.id).code == "not-active"
    *_, last = data(cli("memory", "history", bank, MASS.id, "--json"))
    assert (last["action"], last["reason"]) == ("retire", "of one release only")
    assert last["changed"] == {"status": ["active", "retired"]}
    assert [row[2] for row in rows(cli("memory", "history", bank))] == ["add"] * 3 + ["retire"]
    undone = cli("memory", "undo", bank, last["number"]).out
    assert undone == f"undo of change 4 (of one release only): {MASS.id}\n"
    assert cli("memory", "list", bank, "--json").out == before
    reported = data(cli("memory", "undo", bank, "--json"))
    assert (reported["undone"], reported["reason"]) == ([5], "undo of change 4")
    assert [one["changed"]["status"] for one in reported["changes"]] == [["active", "retired"]]
    assert "no change 99" in refused(cli("memory", "undo", bank, 99))


def test_a_difference_names_what_changed(cli: Cli, bank: Path, tmp_path: Path) -> None:
    counted = replace(MASS, counters=Counters(6, 5, 1, 2, 1), evidence=())
    other = Snapshot.of([counted, GONE, replace(GONE, title="New")]).write(tmp_path)
    found = rows(cli("memory", "diff", bank, other))
    assert [row[:2] for row in found] == [
        ["added", replace(GONE, title="New").id],
        ["removed", RANK.id],
        ["changed", MASS.id],
    ]
    assert found[-1][3] == "retrieved 5 → 6, success 4 → 5, evidence 2 → 1"
    reported = data(cli("memory", "diff", bank, other, "--json"))
    assert [len(reported[part]) for part in ("added", "removed", "changed")] == [1, 1, 1]
    assert reported["changed"][0]["fields"]["evidence"] == [2, 1]
    assert rows(cli("memory", "diff", bank, bank)) == []


def test_the_time_of_an_experience_is_not_a_difference(
    cli: Cli, bank: Path, tmp_path: Path
) -> None:
    first, *others = (
        replace(origin, time=f"2026-01-0{day}T00:00:00+00:00")
        for day, origin in zip((2, 1), MASS.origins, strict=True)
    )
    # The bank sorts evidence by time, so its order does not count either.
    for origins in ((first, *others), (*others, first)):
        later = replace(MASS, provenance=origins[0], evidence=tuple(origins[1:]))
        file = Snapshot.of([later, RANK, GONE]).write(tmp_path)
        assert rows(cli("memory", "diff", bank, file)) == []
    other = replace(MASS, provenance=replace(first, judge="rule"), evidence=tuple(others))
    file = Snapshot.of([other, RANK, GONE]).write(tmp_path)
    assert [row[:2] for row in rows(cli("memory", "diff", bank, file))] == [["changed", MASS.id]]


@pytest.mark.parametrize("name", ["i.jsonl", "i.jsonl.gz", "i.ttl", "i.nq", "i.ttl.gz"])
def test_there_and_back_nothing_is_lost(cli: Cli, bank: Path, tmp_path: Path, name: str) -> None:
    file, copy = tmp_path / name, tmp_path / "copy.sqlite"
    said = cli("memory", "export", bank, file)
    assert (said.status, said.out) == (0, "")
    assert cli("memory", "import", copy, file).out == "3 added, 0 merged, 0 unchanged\n"
    assert rows(cli("memory", "diff", bank, copy)) == rows(cli("memory", "diff", file, copy)) == []
    before = cli("memory", "history", copy).out
    assert cli("memory", "import", copy, file).out == "0 added, 0 merged, 3 unchanged\n"
    assert cli("memory", "history", copy).out == before
    cli("memory", "undo", copy)
    assert rows(cli("memory", "list", copy, "--status", "all")) == []


def test_exports_go_to_the_output_too(cli: Cli, bank: Path, tmp_path: Path) -> None:
    lines = cli("memory", "export", bank, "--status", "active").out.splitlines()
    assert {MemoryItem.from_json(json.loads(line)) for line in lines} == {MASS, RANK}
    assert "prov:wasGeneratedBy" in cli("memory", "export", bank, "--format", "turtle").out
    assert cli("memory", "export", bank, tmp_path / "items.txt").code == "no-format"
    assert cli("memory", "export", bank, tmp_path / "i.txt", "--format", "nquads").status == 0
    assert (tmp_path / "i.txt").read_text(encoding="utf-8").startswith("<urn:reasoningbank:item:")


def test_an_export_never_takes_the_place_of_a_bank_or_of_its_source(
    cli: Cli, bank: Path, run: Path, tmp_path: Path
) -> None:
    other, link, hidden = tmp_path / "other.sqlite", tmp_path / "link.jsonl", tmp_path / "b.jsonl"
    for copy in (other, hidden):
        copy.write_bytes(bank.read_bytes())
    link.symlink_to(bank)
    lines = tmp_path / "items.jsonl"
    assert cli("memory", "export", bank, lines).status == 0
    before = state_of(tmp_path)
    for target in (bank, other, tmp_path / "new.sqlite", tmp_path / "new.db"):
        for words in ((), ("--format", "jsonl")):
            assert cli("memory", "export", bank, target, *words).code == "target-is-bank"
    assert cli("memory", "export", bank, link).code == "target-is-source"
    assert cli("memory", "export", lines, lines).code == "target-is-source"
    assert cli("memory", "export", bank, hidden).code == "target-is-bank"
    kept = next((run / "memory").glob("*.jsonl"))
    said = cli("memory", "export", run, kept, "--snapshot", "learned.0")
    assert said.code == "target-is-run"
    assert state_of(tmp_path) == before
    assert cli("memory", "export", bank, lines, "--src", "failure").status == 0
    assert len(lines.read_text(encoding="utf-8").splitlines()) == 1


def test_an_export_is_in_the_format_of_its_name_and_makes_no_folder(
    cli: Cli, bank: Path, tmp_path: Path
) -> None:
    for name, wanted in (("a.ttl", "nquads"), ("a.nq.gz", "jsonl"), ("a.jsonl", "turtle")):
        said = cli("memory", "export", bank, tmp_path / name, "--format", wanted)
        assert said.code == "format-mismatch"
    assert cli("memory", "export", bank, tmp_path / "no" / "a.ttl").code == "no-folder"
    folder = tmp_path / "a.nq"
    folder.mkdir()
    assert "is a folder" in refused(cli("memory", "export", bank, folder))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.nq", "bank.sqlite"]
    assert cli("memory", "export", bank, tmp_path / "a.ttl", "--format", "turtle").status == 0


def test_an_import_is_taken_back_with_all_its_items(cli: Cli, bank: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.sqlite"
    cli("memory", "import", copy, bank)
    said = cli("memory", "undo", copy, 2)
    assert said.out == f"undo of changes 1-3 (import of {bank}): 3 items\n"
    again = data(cli("memory", "undo", copy, "--json"))
    assert again["undone"] == [4, 5, 6]
    assert {change["item"] for change in again["changes"]} == {item.id for item in ITEMS}
    assert rows(cli("memory", "diff", bank, copy)) == []


def test_a_merge_is_reported_as_one(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "bank.sqlite"
    same = replace(RANK, description="Other taxa", provenance=Provenance("t9"))
    with MemoryBank(path) as bank:
        bank.add([RANK, same])
        consolidate(bank)
    reported = {row[3]: row[2] for row in rows(cli("memory", "history", path))[2:]}
    assert reported == {same.id: "merge", RANK.id: f"merged into {same.id}"}
    actions = [change["action"] for change in data(cli("memory", "history", path, "--json"))]
    assert actions == ["add", "add", "replace", "supersede"]


@pytest.mark.parametrize("name", ["e.sqlite", "e.jsonl", "e.ttl"])
def test_a_file_with_nothing_in_it_is_refused(
    cli: Cli, bank: Path, tmp_path: Path, name: str
) -> None:
    empty = tmp_path / name
    empty.touch()
    before = state_of(tmp_path)
    for words in (
        ("list", empty),
        ("import", bank, empty),
        ("import", empty, bank),
        ("history", empty),
        ("retire", empty, MASS.id),
        ("undo", empty),
        ("diff", bank, empty),
    ):
        assert cli("memory", *words).code == "empty-file"
    assert state_of(tmp_path) == before


def test_a_bad_line_is_named(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "items.jsonl"
    for line in ({}, {**MASS.to_json(), "title": None}):
        file.write_text(json.dumps(line) + "\n", encoding="utf-8")
        assert refused(cli("memory", "list", file)).startswith(f"{file}:1: ")
        assert "title" in refused(cli("memory", "list", file))


def test_import_takes_over_what_is_new_of_what_is_known(
    cli: Cli, bank: Path, tmp_path: Path
) -> None:
    later = replace(MASS, evidence=(*MASS.evidence, Provenance("t3")), counters=Counters(7, 6, 1))
    elsewhere = replace(RANK, provenance=Provenance("t9"), counters=Counters(2, 0, 2))
    file = Snapshot.of([later, elsewhere]).write(tmp_path)
    assert data(cli("memory", "import", bank, file, "--json")) == {
        "added": [],
        "merged": sorted([MASS.id, RANK.id]),
        "same": [],
    }
    with MemoryBank(bank) as opened:
        assert opened.get(MASS.id).counters == Counters(7, 6, 1, 2, 1)
        assert {origin.task for origin in opened.get(MASS.id).origins} == {"t1", "t2", "t3"}
        assert opened.get(RANK.id).counters == Counters(2, 0, 2)


@pytest.mark.parametrize("name", ["bad.ttl", "bad.nq", "bad.jsonl", "bad.ttl.gz", "bad.sqlite"])
@pytest.mark.parametrize("there", [True, False])
def test_of_a_bad_file_nothing_is_imported(
    cli: Cli, bank: Path, tmp_path: Path, name: str, there: bool
) -> None:
    bad = tmp_path / name
    bad.write_text('{"title": 5}\n', encoding="utf-8")
    target = bank if there else tmp_path / "new.sqlite"
    before = state_of(tmp_path)
    assert name in refused(cli("memory", "import", target, bad))
    assert state_of(tmp_path) == before


def test_one_bad_item_keeps_out_the_good(cli: Cli, bank: Path, tmp_path: Path) -> None:
    file = tmp_path / "items.ttl"
    cli("memory", "export", bank, file)
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('"Old"', '"Older"'), encoding="utf-8")
    copy = tmp_path / "copy.sqlite"
    assert "was changed" in refused(cli("memory", "import", copy, file))
    assert not copy.exists()


def test_only_a_bank_is_changed(cli: Cli, bank: Path, run: Path, tmp_path: Path) -> None:
    file = tmp_path / "items.jsonl"
    cli("memory", "export", bank, file)
    before = state_of(tmp_path)
    for where in (file, run):
        for words in (("retire", where, MASS.id), ("undo", where), ("import", where, file)):
            assert cli("memory", *words).code == "not-a-bank"
    assert cli("memory", "import", tmp_path / "new.jsonl", file).code == "not-a-bank"
    assert cli("memory", "history", file).code == "no-history"
    assert state_of(tmp_path) == before


@pytest.mark.parametrize("command", ["list", "history", "undo", "export"])
def test_what_is_not_there_is_not_made(cli: Cli, tmp_path: Path, command: str) -> None:
    assert cli("memory", command, "none.sqlite").code == "no-such-source"
    assert list(tmp_path.iterdir()) == []


def test_a_run_is_read_by_stream_step_or_hash(cli: Cli, run: Path) -> None:
    before = state_of(run)
    last = [row[0] for row in rows(cli("memory", "list", run, "--snapshot", "learned.0"))]
    assert sorted(last) == sorted([MASS.id, RANK.id])
    for name in ("learned.1", "learned.0/0", Snapshot.of([MASS]).hash[:5]):
        assert [row[0] for row in rows(cli("memory", "list", run, "--snapshot", name))] == [MASS.id]
    assert "Two steps" in cli("memory", "show", run, MASS.id, "--snapshot", "learned.1").out
    found = rows(cli("memory", "diff", run, run, "--from", "learned.1", "--to", "learned.0"))
    assert [row[:2] for row in found] == [["added", RANK.id]]
    assert state_of(run) == before


def test_which_snapshot_has_to_be_said_where_there_are_several(cli: Cli, run: Path) -> None:
    said = cli("memory", "list", run)
    assert said.code == "several-snapshots"
    assert f"learned.0 ({Snapshot.of([MASS, RANK]).hash})" in said.err
    for name in ("learned.7", "learned.0/9", "learned.9/0", "zzz"):
        assert str(run) in refused(cli("memory", "list", run, "--snapshot", name))
    assert cli("memory", "list", run, "--snapshot", "learned.0/99").code == "no-such-step"
    empty = run / "memory" / f"{Snapshot.of([]).hash}.jsonl"
    assert cli("memory", "list", empty, "--snapshot", "x").code == "not-a-run"


def test_the_history_of_a_run_is_that_of_a_stream(cli: Cli, run: Path) -> None:
    reported = data(cli("memory", "history", run, "--snapshot", "learned.0", "--json"))
    assert [(row["step"], row["task"], row["action"], row["item"]) for row in reported] == [
        (0, "t0", "add", MASS.id),
        (1, "t1", "add", RANK.id),
        (1, "t1", "retire", RANK.id),
    ]
    only = rows(cli("memory", "history", run, RANK.id[:8], "--snapshot", "learned.0"))
    assert [row[2] for row in only] == ["add", "retire"]
    assert "no step changed an item 'zzzz'" in refused(
        cli("memory", "history", run, "zzzz", "--snapshot", "learned.0")
    )
    assert "learned.0, learned.1" in refused(cli("memory", "history", run))


def test_a_damaged_snapshot_is_reported(cli: Cli, run: Path) -> None:
    name = Snapshot.of([MASS]).hash
    path = run / "memory" / f"{name}.jsonl"
    path.write_text(path.read_text(encoding="utf-8").replace("Two", "Three"), encoding="utf-8")
    assert str(path) in refused(cli("memory", "list", run, "--snapshot", name))


def test_what_strategies_make_in_pairs_is_added_once(
    cli: Cli, make_pack: Callable[..., Path], tmp_path: Path
) -> None:
    def answered(question: str, query: str) -> MemoryItem:
        return MemoryItem(query, question, "Ask so.", "success", question=question, query=query)

    path = tmp_path / "trees.sqlite"
    with MemoryBank(path) as bank:
        bank.add([answered("What is near the Oak?", "SELECT ?x WHERE { t:oak t:near ?x }")])
        bank.add([answered("How high is the Oak?", "SELECT ?h WHERE { t:oak t:height ?h }")])
    command = ("memory", "compose", str(path), "--pack", str(make_pack()), "--json")
    first, again = (json.loads(cli(*command).out) for _ in range(2))
    with MemoryBank(path, readonly=True) as bank:
        made = {item.id: item for item in bank.items() if item.src == "composed"}
    assert set(first["added"]) == set(made) == set(again["known"])
    assert again["added"] == []
    (high,) = (i for i in made.values() if i.query.startswith("SELECT DISTINCT ?x ?h "))
    assert high.question == "What is near the Oak? How high is the it?"
