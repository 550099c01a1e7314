"""The audit finds what should not have been shown, wherever it was planted in the records."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from learned_run import GOLD, STREAM, asked, item, records, rollout, shown, trial, write
from typer.testing import CliRunner

from reasoningbank.analysis import (
    LeakageAudit,
    MemoryRecords,
    compare_runs,
    summarise,
    summarise_run,
)
from reasoningbank.analysis.leakage import contains_query, words_of
from reasoningbank.cli.app import app
from reasoningbank.corpus import load_corpus, load_pack
from reasoningbank.corpus.splits import split_tasks
from reasoningbank.experiment import RunFolder, TrialRecord
from reasoningbank.trajectory import Recorder, Trajectory

RESULTS = Path(__file__).parents[2] / "experiments" / "results"


def planted(tmp_path: Path, record: TrialRecord, *more: dict[str, Any]) -> list[tuple[str, ...]]:
    """Put a trial in the place of the one with its key; return the leaks that are found."""
    kept = [one for one in records() if one.key != record.key]
    folder = write(tmp_path / "run", [*kept, record])
    if more:
        bank = tmp_path / "run" / "memory" / f"{record.memory}.jsonl"
        extra = "\n".join(json.dumps(one) for one in more)
        bank.write_text(f"{bank.read_text()}\n{extra}", encoding="utf-8")
    found = summarise_run(folder).leakage
    return [(leak.trial, leak.kind, leak.item, leak.detail) for leak in found.leaks]


def test_a_sound_run_says_what_was_checked(tmp_path: Path) -> None:
    found = summarise_run(write(tmp_path / "run")).leakage
    assert found.leaks == ()
    # Three orders: three steps with one item, eight held-out tasks with two; and the control's.
    assert (found.showings, found.items) == (3 * (3 + 16) + 8, 4)
    assert (found.trials, found.with_memory, found.evaluation) == (56, 44, 8)
    assert found.prompts == 56
    assert found.filtered_out == {"own-task": 9}
    assert found.unproven == 0
    assert found.sentence() == (
        "65 showings of 4 items checked in 44 of 56 trials (the others have no memory) against "
        "8 held-out tasks; 56 first prompts searched for the gold query; "
        "removed by the leakage filter: 9 own-task: no leak"
    )


def test_a_run_without_memory_says_so() -> None:
    found = summarise([trial("a", "h1", 0, True)]).leakage
    assert found.sentence() == (
        "no memory in any of 1 trial; 1 first prompt searched for the gold query: no leak"
    )


@pytest.mark.parametrize(
    ("tasks", "part", "found"),
    [
        (["s1"], {}, set()),
        (["s1", "h2"], {}, {("evaluation", "", "h2")}),
        (
            ["s1"],
            {"demos": [{"question": "?", "sparql": "GOLD"}]},
            {("gold text", "self", "of h5")},
        ),
        (["s1"], {"demos": [{"trajectory": {"a": "GOLD"}}]}, {("gold text", "self", "of h5")}),
        (["s1"], {"instructions": "Say GOLD"}, {("gold text", "self", "of h5")}),
        (["s1"], {"instructions": "So: QUESTION"}, {("question text", "self", "of h5")}),
    ],
)
def test_what_was_compiled_holds_nothing_held_out(
    tmp_path: Path, tasks: list[str], part: dict[str, Any], found: set[tuple[str, ...]]
) -> None:
    held = next(one for one in records() if one.key.task == "h5")
    own = {"instructions": "Write a query.", "demos": [], **part}
    made = {"version": 1, "arm": "none", "seed": 0, "tasks": tasks, "before": {"self": own}}
    text = json.dumps({**made, "programs": {"": {"self": own}}})
    text = text.replace("GOLD", held.gold).replace("QUESTION", held.question)
    folder = write(tmp_path / "run")
    path = tmp_path / "run" / "compiled" / "none.0.json"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    audit = summarise_run(folder).leakage
    leaks = {(leak.kind, leak.item, leak.detail) for leak in audit.leaks}
    assert (leaks, audit.programs) == (found, 1)
    assert {leak.trial for leak in audit.leaks} <= {"compiled/none.0"}
    path.write_text("{", encoding="utf-8")
    assert not summarise_run(folder).leakage.proven


def test_a_question_that_was_linked_is_known_by_its_own_words(tmp_path: Path) -> None:
    held = next(one for one in records() if one.key.task == "h5").question
    words = held.split()
    text = " ".join([*words[:2], "(t:linked)", *words[2:]])
    for reported, found in (({}, []), ({"question": held}, ["question text"])):
        recorder = Recorder()
        one = {"id": "i1", "task": "s1", "text": f"Question: {text}\nQuery:\nASK {{}}", **reported}
        recorder.add("memory_retrieved", {"query": "", "items": [one]})
        seen = trial("learned", "h3", 1, True, memory="b14", trajectory=asked(recorder))
        leaks = planted(tmp_path / str(len(reported)), seen)
        assert [kind for _, kind, _, _ in leaks] == found


@pytest.mark.parametrize(
    ("origin", "kind", "detail"),
    [
        ({"task": "h3"}, "own task", "h3"),
        ({"task": "other", "group": "group h3"}, "own group", "other, group h3"),
        ({"task": "h5"}, "evaluation", "h5"),
        ({"task": "other", "group": "group h5"}, "evaluation", "other"),
    ],
)
def test_an_item_of_the_wrong_origin_is_found(
    tmp_path: Path, origin: dict[str, str], kind: str, detail: str
) -> None:
    bad = item("bad", origin["task"], provenance={"corpus": "trees", **origin})
    leaky = trial("learned", "h3", 1, True, memory="b14", trajectory=shown(bad))
    assert planted(tmp_path, leaky, bad) == [("learned/h3.1", kind, "bad", detail)]


def test_merged_evidence_is_an_origin_too(tmp_path: Path) -> None:
    # The retrieval names the first experience alone; the bank knows the others.
    bad = item("bad", "s1", evidence=[{"task": "h5", "group": "group h5", "corpus": "trees"}])
    leaky = trial("learned", "h3", 1, True, memory="b14", trajectory=shown(bad))
    assert planted(tmp_path, leaky, bad) == [("learned/h3.1", "evaluation", "bad", "h5")]


def test_evidence_that_came_later_was_not_shown(tmp_path: Path) -> None:
    # Shown to s2, the item had s1 for its only source; what s2 taught was merged into it then.
    folder = write(tmp_path / "run")
    for name in ("b02", "b03", "b04"):
        bank = folder.path / "memory" / f"{name}.jsonl"
        items = [json.loads(line) for line in bank.read_text().splitlines()]
        items[0]["evidence"] = [{"task": "s2", "group": "group s2", "corpus": "trees"}]
        bank.write_text("\n".join(json.dumps(one) for one in items))
    assert summarise_run(folder).leakage.leaks == ()


def test_a_held_out_task_in_a_stream_is_found_as_well(tmp_path: Path) -> None:
    bad = item("bad", "h5")
    leaky = trial("learned", "s2", 0, True, step=1, memory="b01", trajectory=shown(bad))
    assert planted(tmp_path, leaky, bad) == [("learned/s2.0", "evaluation", "bad", "h5")]


def test_the_task_of_another_pack_is_not_a_leak(tmp_path: Path) -> None:
    provenance = {"task": "h3", "group": "g", "corpus": "flowers", "trial": ""}
    other = item("other", "h3", provenance=provenance)
    event = {**other, "provenance": {}}
    fine = trial("learned", "h3", 1, True, memory="b14", trajectory=shown(event))
    assert planted(tmp_path, fine, other) == []


def test_a_gold_is_found_however_it_is_laid_out(tmp_path: Path) -> None:
    own = "Do this:\nselect ?tall {\n  ?tall a <http://e/Tree>.  ?tall t:height 1043\n}"
    leaky = trial("learned", "h3", 1, True, memory="b14", trajectory=shown(item("i0", "s1"),
                  text=own))  # fmt: skip
    assert planted(tmp_path, leaky) == [("learned/h3.1", "gold text", "i0", "of h3")]
    other = own.replace("1043", "1045")
    leaky = replace(leaky, trajectory=shown(item("i0", "s1"), text=other))
    assert planted(tmp_path, leaky) == [("learned/h3.1", "gold text", "i0", "of h5")]


def test_iris_are_compared_whole_and_prefixed_names_by_their_local_names() -> None:
    gold = words_of("SELECT ?w { ?w <http://e/of> <http://e/sicilian/lemma/Bank> }")
    same = [
        "select ?x {?x <http://e/of> <http://e/sicilian/lemma/Bank> }",
        "SELECT ?w { ?w e:of l:Bank }",
    ]
    other = "SELECT ?w { ?w <http://e/of> <http://e/parmigiano/lemma/Bank> }"

    assert all(contains_query(words_of(text), gold) for text in same)
    assert all(contains_query(gold, words_of(text)) for text in same)
    assert not contains_query(words_of(other), gold)


def test_a_held_out_question_is_found(tmp_path: Path) -> None:
    asks = "For: Which trees of the garden h5 are 1045 metres tall? Use t:height."
    leaky = trial("learned", "h3", 1, True, memory="b14", trajectory=shown(item("i0", "s1"),
                  text=asks))  # fmt: skip
    assert planted(tmp_path, leaky) == [("learned/h3.1", "question text", "i0", "of h5")]


def test_a_gold_in_the_first_prompt_is_found(tmp_path: Path) -> None:
    gold = GOLD.format(n=1043, task="h3")
    leaky = trial("none", "h3", 0, True, trajectory=asked(prompt=f"An example:\n{gold}\nNow you."))
    assert planted(tmp_path, leaky) == [("none/h3.0", "gold in prompt", "", "")]
    # What stands in a later prompt, the model may have written itself.
    recorder = Recorder(clock=lambda: 0.0)
    recorder.add("lm_call", {"messages": [{"role": "user", "content": "?"}], "response": gold})
    later = replace(leaky, trajectory=asked(recorder, prompt=f"You said {gold}"))
    assert planted(tmp_path, later) == []


def demonstration(task: str = "s1", text: str = "print(7)") -> dict[str, Any]:
    return {"id": "i0", "task": task, "trial": f"learned/{task}.0", "tokens": 700, "text": text}


def test_a_demonstration_is_audited_as_items_are(tmp_path: Path) -> None:
    def leaks(**said: str) -> list[tuple[str, ...]]:
        trajectory = shown(demonstrations=[demonstration(**said)])
        return planted(tmp_path, trial("learned", "h3", 1, True, memory="b14",
                       trajectory=trajectory))  # fmt: skip

    assert leaks() == []
    # A turn's code holds its query in a string, here of one line.
    query = r"""q = "SELECT ?t {\n ?t a t:Tree ;\n t:height {n} }"\nprint(sparql_query(q))"""
    gold = leaks(text=query.replace("{n}", "1043"))
    assert gold == [("learned/h3.1", "gold text", "i0", "of h3")]
    assert leaks(text=query.replace("{n}", "1044"))[0][3] == "of h4"
    assert leaks(text=query.replace("{n}", "44")) == []
    asks = "question: Which trees of the garden h5 are 1045 metres tall?"
    assert leaks(text=asks) == [("learned/h3.1", "question text", "i0", "of h5")]
    assert leaks(task="h3") == [("learned/h3.1", "own task", "i0", "h3")]
    assert leaks(task="h5") == [("learned/h3.1", "evaluation", "i0", "h5")]


def test_a_demonstration_rests_on_what_its_item_rests_on(tmp_path: Path) -> None:
    bad = item("i9", "s1", evidence=[{"task": "o", "group": "group h3", "corpus": "trees"}])
    trajectory = shown(demonstrations=[{**demonstration(), "id": "i9"}])
    leaky = trial("learned", "h3", 1, True, memory="b14", trajectory=trajectory)
    assert planted(tmp_path, leaky, bad) == [
        ("learned/h3.1", "own group", "i9", "o, group h3"),
    ]


def test_attempts_that_were_not_chosen_are_audited_too(tmp_path: Path) -> None:
    def leaks(trajectory: Trajectory) -> list[tuple[str, ...]]:
        others = (rollout(1, False), rollout(2, False, trajectory=trajectory.to_json()))
        return planted(tmp_path, trial("learned", "h3", 1, True, memory="b14", rollouts=others))

    assert leaks(shown(item("i0", "s1"))) == []
    gold = GOLD.format(n=1043, task="h3")
    assert leaks(shown(item("i0", "h3"))) == [("learned/h3.1", "own task", "i0", "h3")]
    assert leaks(shown(item("i0", "s1"), text=gold)) == [
        ("learned/h3.1", "gold text", "i0", "of h3"),
    ]
    assert leaks(asked(prompt=f"Try:\n{gold}")) == [("learned/h3.1", "gold in prompt", "", "")]
    recorder = Recorder(clock=lambda: 0.0)
    call = recorder.add("tool_call", {"tool": "memory_get", "arguments": {"id": "i7"}})
    recorder.add("tool_result", {"result": {"id": "i7"}}, parent=call)
    assert leaks(asked(recorder)) == [("learned/h3.1", "not recorded", "i7", "")]


def test_a_refinement_may_see_what_an_earlier_attempt_wrote(tmp_path: Path) -> None:
    gold = GOLD.format(n=1043, task="h3")
    refinement = asked(prompt=f"You answered before:\n{gold}\nIt runs.")

    def leaks(first: str) -> list[str]:
        other = rollout(0, True, sparql=first)
        refined = trial(
            "none", "h3", 0, True, sparql=gold, trajectory=refinement, rollouts=(other,)
        )
        return [kind for _, kind, _, _ in planted(tmp_path, refined)]

    assert leaks(gold) == []
    assert leaks("SELECT ?x { ?x a t:Tree }") == ["gold in prompt"]


@pytest.mark.parametrize("result", [{"items": [{"id": "i7"}]}, {"item": {"id": "i7"}}])
def test_an_item_from_a_tool_that_no_retrieval_tells_of_is_found(
    tmp_path: Path, result: dict[str, Any]
) -> None:
    recorder = Recorder(clock=lambda: 0.0)
    call = recorder.add("tool_call", {"tool": "memory_search", "arguments": {"query": "trees"}})
    reported = {**result, "source": "memory", "text": "x" * 900}
    recorder.add("tool_result", {"result": reported}, parent=call)
    leaky = trial("learned", "h3", 1, True, memory="b14", trajectory=asked(recorder))
    assert planted(tmp_path, leaky) == [("learned/h3.1", "not recorded", "i7", "")]


def test_a_bank_that_changes_while_it_is_evaluated_is_found(tmp_path: Path) -> None:
    changed = trial("learned", "h3", 1, True, memory="b11", trajectory=shown(item("i0", "s1")))
    ((name, kind, _, detail),) = planted(tmp_path, changed)
    assert (name, kind, detail) == ("learned/h3.1", "bank changed", "b14, then b11")


def test_what_the_manifest_holds_back_needs_no_trial_yet(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", [])
    audit = LeakageAudit({**(folder.manifest or {}), "tasks": ["s1"]}, MemoryRecords.read(folder))
    audit.add(trial("learned", "s2", 0, True, step=1, trajectory=shown(item("i0", "s1"))))
    (leak,) = audit.finish().leaks
    assert (leak.kind, leak.detail) == ("evaluation", "s1")


def test_an_item_that_no_snapshot_holds_is_counted_as_unproven(tmp_path: Path) -> None:
    nowhere = item("nowhere", "s1")
    people = item("people", "", src="seed", provenance={})
    record = trial("learned", "h3", 1, True, memory="b14", trajectory=shown(nowhere, people))
    kept = [one for one in records() if one.key != record.key]
    found = summarise_run(write(tmp_path / "run", [*kept, record])).leakage
    assert (found.unproven, found.leaks) == (1, ())
    assert "; 1 of unproven origin: no leak" in found.sentence()


def test_leaks_come_first_and_commands_fail(tmp_path: Path) -> None:
    bad = item("bad", "h3")
    planted(tmp_path, trial("learned", "h3", 1, True, memory="b14", trajectory=shown(bad)), bad)
    said = CliRunner().invoke(app, ["status", str(tmp_path / "run")])
    assert said.exit_code == 1
    first, second = said.stdout.splitlines()[:2]
    assert first == "LEAKAGE: 1 found; the numbers below prove nothing"
    assert second.strip() == "learned/h3.1: own task, item bad (h3)"
    reported = CliRunner().invoke(app, ["status", str(tmp_path / "run"), "--json"])
    assert reported.exit_code == 1
    data = json.loads(reported.stdout)
    assert next(iter(data)) == "leakage"
    assert data["leakage"]["leaks"][0]["kind"] == "own task"
    write(tmp_path / "sound")
    sound = CliRunner().invoke(app, ["status", str(tmp_path / "sound")])
    assert sound.exit_code == 0
    assert "LEAKAGE" not in sound.stdout
    assert "leakage: 65 showings of 4 items checked" in sound.stdout


def test_a_comparison_with_a_run_that_leaks_says_so(tmp_path: Path) -> None:
    bad = item("bad", "h3")
    planted(tmp_path, trial("learned", "h3", 1, True, memory="b14", trajectory=shown(bad)), bad)
    sound = write(tmp_path / "sound")
    notes = compare_runs(RunFolder(tmp_path / "run"), sound).notes
    assert "LEAKAGE: run has 1; its numbers prove nothing" in notes
    assert not any("LEAKAGE: sound" in note for note in notes)


def test_compressed_runs_are_audited_alike(tmp_path: Path) -> None:
    folder = write(tmp_path / "run")
    for path in [*folder.path.glob("memory/*"), *folder.path.glob("learning/*/*")]:
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert summarise_run(folder) == summarise_run(write(tmp_path / "plain"))


def test_what_is_damaged_is_reported(tmp_path: Path) -> None:
    folder = write(tmp_path / "run")
    (folder.path / "learning" / "learned.0" / "0001.json").write_text('{"arm": "learned", "ord')
    (folder.path / "learning" / "learned.1" / "0001.json").write_text('["no step"]')
    (folder.path / "memory" / "zz.jsonl").write_text("no json")
    memory = MemoryRecords.read(folder)
    names = [path.name for path, _ in memory.damaged]
    assert names == ["0001.json", "0001.json", "zz.jsonl"]
    assert [len(stream.steps) for stream in memory.streams] == [3, 3, 4]
    found = summarise_run(folder).leakage
    assert found.sentence().endswith(
        "; 3 files of memory cannot be read: no leak in what can be read"
    )
    said = CliRunner().invoke(app, ["status", str(folder.path)])
    assert said.exit_code == 1, "what cannot be read proves nothing"
    assert said.stdout.startswith("LEAKAGE: nothing is proven; 3 files of memory cannot be read")


def test_a_damaged_snapshot_hides_no_leak(tmp_path: Path) -> None:
    bad = {**item("bad", "h3"), "provenance": {"task": "x", "group": "group h3", "corpus": "trees"}}
    leaky = trial("learned", "h3", 1, True, memory="b14", trajectory=shown(bad))
    found = planted(tmp_path, leaky, bad)
    assert [kind for _, kind, *_ in found] == ["own group"]
    (tmp_path / "run" / "memory" / "a0.jsonl").write_text("no json")
    again = summarise_run(RunFolder(tmp_path / "run")).leakage
    assert [leak.kind for leak in again.leaks] == ["own group"]


def test_what_a_killed_process_left_half_written_is_not_a_snapshot(tmp_path: Path) -> None:
    folder = write(tmp_path / "run")
    (folder.path / "memory" / ".b14.jsonl.1.2.tmp").write_text('{"id": "i')
    found = summarise_run(folder)
    assert found.leakage.proven
    assert found == summarise_run(write(tmp_path / "other"))
    copy = folder.archive(tmp_path / "copy")
    assert not list(copy.path.glob("memory/.*"))


def test_an_evaluation_with_another_bank_than_its_streams_last_is_found(tmp_path: Path) -> None:
    early = [
        replace(one, memory="b13") if one.step is None and one.memory == "b14" else one
        for one in records()
    ]
    folder = write(tmp_path / "run", early)
    folder.write_manifest({**(folder.manifest or {}), "stream": list(STREAM)})
    found = [one for one in summarise_run(folder).leakage.leaks if one.kind == "other bank"]
    assert [(one.trial.split("/")[0], one.detail) for one in found] == [
        ("learned", "b13, and learned has b14")
    ]
    sound = write(tmp_path / "sound")
    sound.write_manifest({**(sound.manifest or {}), "stream": list(STREAM)})
    assert summarise_run(sound).leakage.proven


@pytest.mark.parametrize("pack", ["uniprot", "liita"])
def test_no_gold_of_one_split_holds_one_of_another(pack: str) -> None:
    # Otherwise an honest success on a training task would look like a leak.
    corpus = load_corpus(load_pack(pack))
    part = split_tasks(corpus.tasks).by_id()
    words = {task.id: words_of(task.expected_sparql) for task in corpus.tasks}
    alike = [
        (one, two)
        for one in words
        for two in words
        if part[one] == "train" and part[two] != "train" and contains_query(words[one], words[two])
    ]
    assert alike == []


@pytest.mark.parametrize("run", ["uniprot_baseline", "uniprot_tools"])
def test_no_first_prompt_of_a_committed_run_holds_its_gold(run: str) -> None:
    found = summarise_run(RunFolder(RESULTS / run)).leakage
    assert found.prompts >= 30
    assert found.leaks == ()
