"""The arms that a claim about memory needs beside it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lm.scripted import chat, scripted

from reasoningbank.agents import AGENTS, Attempt, Episode
from reasoningbank.agents.protocol import conclude
from reasoningbank.analysis import summarise_run
from reasoningbank.corpus import Task
from reasoningbank.errors import UsageError
from reasoningbank.experiment import Experiment, RunFolder, TrialKey, TrialRecord
from reasoningbank.experiment.memory_sources import read_snapshot
from reasoningbank.experiment.plan import plan_run
from reasoningbank.experiment.records import snapshot_name
from reasoningbank.memory import MemoryItem, Provenance, Snapshot, Turn
from reasoningbank.trajectory import Usage

from .orchard import STREAM, TEST, Pupil

Make = Callable[..., Experiment]
Run = Callable[..., RunFolder]
EVALUATE: dict[str, Any] = {"mode": "evaluate", "tasks": {"ids": [*TEST, "t004"]}}


def arm(name: str, source: str | dict[str, Any] = "none", **rest: Any) -> dict[str, Any]:
    return {"name": name, "agent": "pupil", "memory": source, **rest}


def shown(record: TrialRecord) -> list[dict[str, Any]]:
    found = []
    for event in record.trajectory.of("memory_retrieved"):
        found += record.trajectory.resolve(event.data)["items"]
    return found


def test_few_shot_examples_of_the_training_split_help_and_are_made_once(
    learning: Make, run: Run
) -> None:
    experiment = learning(arm("none"), arm("gold", "gold"), **EVALUATE, learning={})
    folder = run(experiment, limit=2)
    (snapshot,) = {record.memory for record in folder.trials() if record.key.arm == "gold"}
    made = (folder.path / "learning" / "gold.bank.json").stat().st_mtime_ns
    run(experiment)
    assert (folder.path / "learning" / "gold.bank.json").stat().st_mtime_ns == made
    gold = [record for record in folder.trials() if record.key.arm == "gold"]
    assert all(record.strict and record.memory == snapshot for record in gold)
    items = read_snapshot(folder, snapshot).items
    assert {item.src for item in items} == {"gold"}
    # All of the training split, whether or not a stream would take it.
    assert {o.task for item in items for o in item.origins} == {*STREAM, "t013"}
    assert folder.manifest is not None
    assert "stream" in folder.manifest["hashes"]["memory"]


def test_a_lost_note_of_the_few_shot_examples_is_made_again(learning: Make, run: Run) -> None:
    experiment = learning(arm("gold", "gold"), **EVALUATE)
    folder = run(experiment, limit=2)
    (folder.path / "learning" / "gold.bank.json").write_text("{", encoding="utf-8")
    run(experiment)
    assert len({record.memory for record in folder.trials()}) == 1


def test_few_shot_examples_that_an_earlier_version_wrote_keep_their_name(
    learning: Make, run: Run
) -> None:
    experiment = learning(arm("gold", "gold"), **EVALUATE)
    folder = run(experiment, limit=1)
    note = folder.path / "learning" / "gold.bank.json"
    said = json.loads(note.read_text(encoding="utf-8"))
    file = folder.file(snapshot_name(said["after"]))
    items = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    lines = "".join(json.dumps({**one, "query": ""}) + "\n" for one in items)
    name = hashlib.sha256(lines.encode()).hexdigest()[:16]
    file.unlink()
    file.with_name(f"{name}.jsonl").write_text(lines, encoding="utf-8")
    note.write_text(json.dumps({**said, "after": name}), encoding="utf-8")
    run(experiment)
    (first, *rest) = sorted(folder.trials(), key=lambda record: record.started)
    assert first.memory == said["after"] != name
    assert {record.memory for record in rest} == {name}


@pytest.mark.parametrize("distiller", ["locla", "the rules"])
def test_a_distiller_that_is_not_a_model_is_reported_before_anything_runs(
    learning: Make, distiller: str
) -> None:
    experiment = learning(arm("learned", {"source": "learned", "distiller": distiller}))
    with pytest.raises(UsageError, match=r"arm learned, memory\.distiller: unknown model"):
        plan_run(experiment)


def test_no_exemplar_is_made_of_another_split(learning: Make) -> None:
    from reasoningbank.experiment.plan import plan_run

    with pytest.raises(UsageError) as caught:
        plan_run(learning(arm("g", "gold"), **EVALUATE, learning={"tasks": {"ids": ["t005"]}}))
    assert caught.value.code == "held-out-task"


def bank_file(path: Path, *items: MemoryItem) -> Path:
    path.write_bytes(Snapshot.of(items).lines())
    return path


def hint(title: str, task: str = "", content: str = "Use t:height.") -> MemoryItem:
    group = f"g{int(task[1:]):02}" if task else ""
    where = Provenance(task, group, "Trees", trial="a/x.0") if task else Provenance()
    return MemoryItem(title, "Which plants are higher", content, "success", provenance=where)


def test_a_bank_on_file_is_hashed_and_guarded(learning: Make, run: Run, tmp_path: Path) -> None:
    leak = MemoryItem(
        "Higher plants",
        "Which plants are higher",
        "Ask so.",
        "seed",
        pattern="PREFIX t: <http://e/> SELECT ?x { ?x t:height ?m FILTER(?m > 7) }",
    )
    own, other = hint("Heights of one", "t004"), hint("Heights of another", "t002")
    file = bank_file(tmp_path / "bank.jsonl", own, other, leak)
    experiment = learning(arm("bank", {"source": "bank", "bank": str(file)}), **EVALUATE)
    folder = run(experiment)
    for record in folder.trials():
        ids = {item["id"] for item in shown(record)}
        # t004 is of the evaluation; the gold of t007 is caught by what it asks.
        assert ids == {other.id}
        (event,) = record.trajectory.of("memory_retrieved")
        filtered = {one["id"]: one["code"] for one in event.data["filtered_out"]}
        assert set(filtered) == {own.id, leak.id}
        assert filtered[leak.id] in ("gold-query", "gold-shape")
    bank_file(file, other)
    with pytest.raises(UsageError, match="memory banks changed"):
        run(experiment)
    file.unlink()
    with pytest.raises(UsageError, match=r"arm bank: there is no bank .*bank\.jsonl"):
        run(experiment, "new")


def test_a_random_control_has_as_many_tokens_of_other_items(
    learning: Make, run: Run, tmp_path: Path
) -> None:
    items = [hint(f"Thing {n}", content=f"Number {n} of the kind.") for n in range(30)]
    file = bank_file(tmp_path / "bank.jsonl", *items, hint("Plants that are higher"))
    of = arm("bank", {"source": "bank", "bank": str(file), "items": 2})
    control = arm("random", {"source": "random", "of": "bank", "items": 2})
    folder = run(learning(of, control, **EVALUATE))
    pairs = 0
    for task in TEST:
        one, two = (folder.read(TrialKey(name, task, 0)) for name in ("bank", "random"))
        assert one.memory == two.memory
        (real,), (drawn,) = (r.trajectory.of("memory_retrieved") for r in (one, two))
        assert drawn.data["at_random"]
        assert 0 <= real.data["tokens"] - drawn.data["tokens"] < 30
        pairs += {i["id"] for i in shown(one)} == {i["id"] for i in shown(two)}
    assert pairs < len(TEST)
    drawn = {
        task: [i["id"] for i in shown(folder.read(TrialKey("random", task, 0)))] for task in TEST
    }
    assert len({json.dumps(ids) for ids in drawn.values()}) > 1


def test_tokens_are_matched_with_another_arms_on_the_same_task(learning: Make, run: Run) -> None:
    sampling = {"tokens_of": "learned", "k": 9}  # old spelling
    matched = arm("matched", temperature=0.7, sampling=sampling)
    folder = run(learning(matched, arm("learned", "learned")))
    most = 0
    for task in TEST:
        learned, other = (folder.read(TrialKey(name, task, 0)) for name in ("learned", "matched"))
        assert other.tokens_wanted == learned.usage.tokens <= other.usage.tokens
        assert learned.tokens_wanted is None
        assert other.usage.lm_calls == 1 + len(other.rollouts)
        most = max(most, len(other.rollouts))
        for rollout in other.rollouts:
            assert rollout["verdict"]["status"] == "judged"
            assert rollout["usage"]["lm_calls"] == 1
    assert most >= 1


class Coder(Pupil):
    """One whose agent could run code, and so is shown turns of it."""

    uses = ("context", "tools", "sandbox")


class Guesser(Pupil):
    """Writes another query with each seed; the third is right."""

    def solve(self, task: Task, episode: Episode) -> Attempt:
        query = ["ASK {", "SELECT ?x { ?x t:size ?y }", "SELECT ?x { ?x t:height ?y }"][
            self.turn % 3
        ]
        type(self).turn += 1
        self.asked.append(task.query)
        recorder = episode.recorder
        usage = Usage(lm_calls=1)
        return Attempt(query, "", "submitted", usage, recorder.trajectory())

    turn = 0
    asked: list[str] = []  # noqa: RUF012


@pytest.mark.parametrize("kind", ["parallel", "sequential"])
def test_all_rollouts_of_a_stream_teach(
    kind: str, learning: Make, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    Guesser.turn, Guesser.asked = 0, []
    monkeypatch.setitem(AGENTS, "pupil", Guesser)
    matts = arm("matts", "learned", temperature=0.7, sampling={"kind": kind, "k": 3})
    folder = run(learning(matts, tasks={"ids": ["t001"]}), limit=1)
    records = [r for r in folder.trials() if r.step is not None]
    assert all(len(r.rollouts) == 2 and r.usage.lm_calls == 3 for r in records)
    assert all(r.sparql == "SELECT ?x { ?x t:height ?y }" for r in records)
    step = folder.taken("matts", 0)[0]
    items = {item.id: item for item in read_snapshot(folder, step.after).items}
    sources = {items[name].src for name in step.added}
    assert {"success", "failure"} <= sources
    if kind == "sequential":
        assert ["You answered before" in one for one in Guesser.asked] == [False, True, True]
        assert "does not run" in Guesser.asked[1]
        assert "no rows" in Guesser.asked[2]


def test_layers_reach_the_agent_without_any_memory(
    learning: Make, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, str] = {}

    class Reader(Pupil):
        def solve(self, task: Task, episode: Episode) -> Attempt:
            seen.setdefault(episode.context, task.id)
            return super().solve(task, episode)

    monkeypatch.setitem(AGENTS, "pupil", Reader)
    arms = [arm("none"), arm("L0", layers=["L0"]), arm("L1", layers=["L1"])]
    folder = run(learning(*arms, **EVALUATE))
    assert "" in seen
    assert any("Trees" in text or "t:Tree" in text for text in seen)
    assert all(record.memory == "" for record in folder.trials())
    assert not any(record.trajectory.of("memory_retrieved") for record in folder.trials())


def test_memory_reaches_an_agent_as_tools_and_as_demonstrations(
    learning: Make, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = (Turn("look", "print(1)", "1"), Turn("answer", "SUBMIT('x')"))
    item = MemoryItem(
        "Heights", "Which plants are higher", "Use t:height.", "success",
        question="Which tree is tall?", turns=turns,
    )  # fmt: skip
    file = bank_file(tmp_path / "bank.jsonl", item)
    seen: list[Episode] = []

    class Searcher(Coder):
        def solve(self, task: Task, episode: Episode) -> Attempt:
            seen.append(episode)
            if "memory_search" in episode.tools:
                found = episode.tools["memory_search"](task.query)
                episode.tools["memory_get"](found["items"][0]["id"])
            return super().solve(task, episode)

    monkeypatch.setitem(AGENTS, "rlm", Searcher)
    common = {"source": "bank", "bank": str(file)}
    arms: list[dict[str, Any]] = [
        {"name": "tools", "agent": "rlm", "tools": [], "memory": {**common, "show": "tools"}},
        {"name": "turns", "agent": "rlm", "memory": {**common, "demonstrations": True}},
    ]
    for one in arms:
        one["lm"] = "openai/none"
    folder = run(learning(*arms, mode="evaluate", tasks={"ids": ["t001"]}))
    tools, demonstrated = seen
    assert sorted(tools.tools) == ["memory_get", "memory_search"]
    assert tools.context == ""
    record = folder.read(TrialKey("tools", "t001", 0))
    assert [i["id"] for i in shown(record)] == [item.id, item.id]
    assert record.memory == Snapshot.of([item]).hash
    (demonstration,) = demonstrated.demonstrations
    assert demonstration.question == "Which tree is tall?"
    assert [turn.code for turn in demonstration.turns] == ["print(1)", "SUBMIT('x')"]
    assert "t:height" in demonstrated.context


def test_a_retry_sees_another_item_as_turns_beside_the_same_texts(
    learning: Make, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "SELECT ?p {{ ?p t:height {} }}"
    items = [
        MemoryItem(f"?p by {n}", f"Which plant is {n} high?", "Use t:height.", "success",
                   question=f"Which plant is {n} high?", query=query.format(n))
        for n in range(2)
    ]  # fmt: skip
    file = bank_file(tmp_path / "bank.jsonl", *items)
    seen: list[Episode] = []

    class Nothing(Coder):
        def solve(self, task: Task, episode: Episode) -> Attempt:
            seen.append(episode)
            return conclude(episode, "SELECT ?x { ?x t:height <urn:no> }", "submitted")

    monkeypatch.setitem(AGENTS, "rlm", Nothing)
    memory = {"source": "bank", "bank": str(file), "demonstrations": True}
    arm = {"name": "arm", "agent": "rlm", "lm": "openai/none", "memory": memory}
    retry = {"kind": "retry", "k": 3}
    folder = run(learning({**arm, "sampling": retry}, mode="evaluate", tasks={"ids": ["t001"]}))
    shown = [[one.question for one in episode.demonstrations] for episode in seen]
    assert [len(one) for one in shown] == [1, 1, 1]
    assert shown[0] != shown[1] == shown[2]
    assert all(query.format(n) in one.context for one in seen for n in range(2))
    attempts = folder.read(TrialKey("arm", "t001", 0)).attempts()
    events = [
        a.trajectory.resolve(e.data) for a in attempts for e in a.trajectory.of("memory_retrieved")
    ]
    assert [len(one["demonstrations"]) for one in events] == [1, 1, 1]
    # Those of the texts, which are the same.
    assert len({one["tokens"] - one["demonstrations"][0]["tokens"] for one in events}) == 1


def test_a_random_control_shows_turns_where_turns_are_found_and_all_are_reported(
    learning: Make, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tried(title: str, *turns: Turn) -> MemoryItem:
        return MemoryItem(title, f"When it is about {title}", "Use t:height.", "success",
                          question=f"What of {title}?", turns=turns)  # fmt: skip

    turns = (Turn("look", 'r = sparql_query("SELECT")', "1"), Turn("answer", "SUBMIT('x')"))
    best = tried("plants that are higher than others", *turns)
    others = [tried(f"thing number {n}", *turns) for n in range(12)]
    bare = tried("plants that are higher than others")
    monkeypatch.setitem(AGENTS, "rlm", Coder)
    seen: dict[str, list[tuple[str, ...]]] = {}
    for name, items in (("turns", [best, *others]), ("bare", [bare, *others])):
        file = bank_file(tmp_path / f"{name}.jsonl", *items)
        memory = {"source": "bank", "bank": str(file), "items": 1, "demonstrations": True}
        common = {"agent": "rlm", "lm": "openai/none"}
        arms = [
            {"name": "bank", "memory": memory, **common},
            {"name": "random", **common, "memory": {"source": "random", "of": "bank",
             "items": 1, "demonstrations": True}},
        ]  # fmt: skip
        folder = run(learning(*arms, **EVALUATE), name)
        for record in folder.trials():
            (event,) = record.trajectory.of("memory_retrieved")
            data = record.trajectory.resolve(event.data)
            seen.setdefault(f"{name} {record.key.arm}", []).append(
                tuple(one["id"] for one in data["demonstrations"])
            )
            for one in data["demonstrations"]:
                assert 'r = sparql_query("SELECT")' in one["text"]
                assert data["tokens"] > one["tokens"] > 0
    trials = len(EVALUATE["tasks"]["ids"])
    assert seen["turns bank"] == [(best.id,)] * trials
    drawn = seen["turns random"]
    assert len(drawn) == trials
    assert all(len(ids) == 1 and ids[0] != best.id for ids in drawn)
    assert len(set(drawn)) > 1
    # What was found has no turns: none are drawn, though other items have some.
    assert seen["bare bank"] == seen["bare random"] == [()] * trials


def test_a_stream_may_begin_with_a_bank(learning: Make, run: Run, tmp_path: Path) -> None:
    file = bank_file(tmp_path / "bank.jsonl", hint("Higher plants"))
    folder = run(learning(arm("learned", {"source": "learned", "bank": str(file)})))
    first, *_, last = folder.taken("learned", 0)
    assert first.before == Snapshot.read(file).hash
    assert first.retrieved
    assert all(record.strict for record in folder.trials())
    titles = {item.title for item in read_snapshot(folder, last.after).items}
    assert "Higher plants" in titles


def test_an_arm_may_add_what_strategies_make_in_pairs(
    learning: Make, run: Run, tmp_path: Path
) -> None:
    def answered(question: str, query: str) -> MemoryItem:
        where = Provenance("t013", "g13", "Trees", trial="a/t013.0")
        return MemoryItem(
            query, question, "Ask so.", "success", question=question, query=query, provenance=where
        )

    near = answered("What is near the Oak?", "SELECT ?x WHERE { t:oak t:near ?x }")
    high = answered("How high is the Oak?", "SELECT ?h WHERE { t:oak t:height ?h }")
    file = bank_file(tmp_path / "bank.jsonl", near, high)
    both = {"source": "shared", "of": "learned", "compose": True}
    experiment = learning(
        arm("learned", {"source": "learned", "bank": str(file)}), arm("composed", both)
    )
    folder = run(experiment)
    (name,) = {r.memory for r in folder.trials() if r.key.arm == "learned" and r.step is None}
    (composed,) = {r.memory for r in folder.trials() if r.key.arm == "composed"}
    assert folder.composed() == {name: composed}
    single, more = read_snapshot(folder, name).items, read_snapshot(folder, composed).items
    made = [item for item in more if item.src == "composed"]
    assert {item.id for item in more} == {item.id for item in (*single, *made)}
    assert "SELECT DISTINCT ?x ?h WHERE { t:oak t:near ?x . ?x t:height ?h }" in {
        item.query for item in made
    }
    # Made once; and every item that was shown has its origins.
    note = folder.path / "learning" / f"{name}.composed.json"
    before = note.stat().st_mtime_ns
    folder.path.joinpath("trials", "composed", f"{TEST[0]}.0.json").unlink()
    run(experiment)
    assert note.stat().st_mtime_ns == before
    assert summarise_run(folder).leakage.leaks == ()


def test_a_model_may_word_what_is_learned(
    learning: Make, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scripted(chat("I would rather not say.")) as model:
        monkeypatch.setenv("OPENAI_API_BASE", model.base)
        monkeypatch.setenv("OPENAI_API_KEY", "replayed")
        memory = {"source": "learned", "distiller": "openai/replay"}
        folder = run(learning(arm("learned", memory)), limit=2)
        assert model.asked
    steps = folder.taken("learned", 0)
    assert sum(step.usage.lm_calls for step in steps) == len(model.asked)
    # What cannot be read leaves the rules' own words.
    assert any(step.added for step in steps)
    assert folder.manifest is not None
    assert "openai/replay" in folder.manifest["hashes"]["models"]
