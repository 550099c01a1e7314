"""The console script `nl2sparql`, with a scripted model over a small pack's real endpoint."""

from __future__ import annotations

import importlib.util
import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forest import write_forest

from reasoningbank.cli import nl2sparql_main
from reasoningbank.cli.nl2sparql import questions_of
from reasoningbank.corpus import Pack, load_pack
from reasoningbank.experiment import ask, runner
from reasoningbank.memory import MemoryItem
from reasoningbank.nl2sparql import translator

from .conftest import Said, scripting

QUESTION = "Which plants near the pine are trees, and how tall are they?"
QUERY = "SELECT ?plant ?metres WHERE { ?plant a t:Tree ; t:height ?metres }"
EMPTY = "SELECT ?plant WHERE { ?plant a t:Moss ; t:near ?other }"
ANALYSIS = {"patterns": '["KIND"]', "complexity": "simple", "dialects": "[]", "unclear": "none"}
SOUND = ({"sparql": QUERY}, {"valid": "True", "issues": "[]"})


@pytest.fixture(scope="module")
def forest(tmp_path_factory: pytest.TempPathFactory, trees_file: Path) -> Pack:
    return write_forest(tmp_path_factory.mktemp("cli") / "trees", trees_file.read_text("utf-8"))


@pytest.fixture
def replies(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    scripts = [scripting(monkeypatch, module) for module in (ask, translator, runner)]

    def script(*written: Any, **rest: Any) -> None:
        for one in scripts:
            one(*written, **rest)

    return script


@pytest.fixture
def nl2sparql(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Said]:
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["nl2sparql", *map(str, words)])
        capsys.readouterr()
        status = 0
        try:
            nl2sparql_main()
        except SystemExit as ended:
            status = int(ended.code or 0)
        said = capsys.readouterr()
        return Said(status, said.out, said.err)

    return run


Run = Callable[..., Said]


def test_the_pipeline_translates(nl2sparql: Run, replies: Any, forest: Pack) -> None:
    replies({"sparql": QUERY})
    said = nl2sparql("translate", QUESTION, "--pack", forest.root)
    assert said.status == 0, said.err
    assert "SELECT ?plant ?metres" in said.out
    assert "plant\tmetres" in said.out
    assert "{" not in said.out.partition("}")[2]
    assert "confidence" not in said.out
    assert "3 of 3 rows" in said.out
    words = ("translate", QUESTION, "--pack", forest.root, "--lm", "openai/x", "--language", "en")
    replies({"sparql": QUERY})
    said = nl2sparql(*words, "--json", "--stream")
    found = json.loads(said.out)
    assert (found["sparql"], found["is_valid"], found["calls"]) == (QUERY, True, 1)
    assert (found["confidence"], found["calibrated"]) == (None, False)
    assert len(found["rows"]) == found["result_count"] == 3
    steps = [line.split("]")[0][1:] for line in said.err.splitlines() if line.startswith("[")]
    assert steps[:3] == ["detect", "retrieve", "constrain"]
    replies({"sparql": QUERY})
    assert "2 of 3 rows" in nl2sparql(*words, "--rows", 2).out


def test_the_pipeline_is_shown_a_memorys_items(
    nl2sparql: Run, replies: Any, forest: Pack, tmp_path: Path
) -> None:
    item = MemoryItem(
        title="Heights", description="heights of trees", content="Heights are metres", src="success"
    )
    (tmp_path / "items.jsonl").write_text(json.dumps(item.to_json()) + "\n")
    replies({"sparql": QUERY})
    words = ("--memory", "items.jsonl", "--json", "--stream", "--pack", forest.root)
    said = nl2sparql("translate", QUESTION, *words)
    assert said.status == 0, said.err
    assert json.loads(said.out)["memory"]
    assert "[memory] Heights" in said.err


def test_the_graph_shows_its_steps_and_says_why(nl2sparql: Run, replies: Any, forest: Pack) -> None:
    replies(ANALYSIS, {"sparql": EMPTY}, *SOUND)
    said = nl2sparql("agent", "--stream", QUESTION, "--pack", forest.root)
    assert said.status == 0, said.err
    steps = [line.split("]")[0][1:] for line in said.err.splitlines() if line.startswith("[")]
    assert steps == [
        "analyze", "plan", "retrieve", "generate", "execute", "verify", "explore",
        "generate", "execute", "verify", "output",
    ]  # fmt: skip
    assert "SELECT ?plant ?metres" in said.out
    assert "confidence" not in said.out
    assert "Written by" in said.out


def test_words_of_another_emotion_are_no_answer(nl2sparql: Run, replies: Any) -> None:
    nouns = """SELECT ?word { GRAPH <http://liita.it/data> {
    ?lemma lila:hasPOS lila:noun ; ontolex:writtenRep ?word } ?entry ontolex:canonicalForm ?lemma
    GRAPH <http://w3id.org/elita> { ?entry elita:HasEmotion %s } }"""
    sad = {"sparql": nouns % "elita:Tristezza"}
    replies(ANALYSIS, {"sparql": nouns % "elita:Disgusto"}, sad, SOUND[1])
    said = nl2sparql("agent", "Find nouns expressing sadness", "--json")
    assert said.status == 0, said.err
    found = json.loads(said.out)
    assert found["is_valid"]
    assert "Tristezza" in found["sparql"]
    assert [one["code"] for one in found["refinement_history"][0]["problems"]] == ["missing-value"]
    assert found["result_count"] == len(found["rows"]) > 10


def test_a_run_that_waits_goes_on_with_the_answer(
    nl2sparql: Run, replies: Any, forest: Pack
) -> None:
    unclear = ANALYSIS | {"unclear": "Which plant?"}
    replies(unclear, *SOUND)
    keep = ("--pack", forest.root, "--checkpoints", "c.sqlite", "--thread", "t")
    said = nl2sparql("agent", "How tall is it?", "--ask-back", *keep)
    assert (said.status, said.out.strip()) == (0, "Which plant?")
    replies(*SOUND)
    command = said.err.rpartition("answer: ")[2].strip()
    assert command.endswith(" --answer ANSWER")
    said = nl2sparql(*shlex.split(command.replace("ANSWER", "'the oak'"))[1:])
    assert said.status == 0, said.err
    assert "3 of 3 rows" in said.out


@pytest.mark.parametrize(
    ("file", "reported"), [("other.sqlite", "no such file"), ("c.sqlite", "no thread 'other'")]
)
def test_what_cannot_be_resumed_is_reported_before_anything_is_opened(
    nl2sparql: Run, replies: Any, forest: Pack, tmp_path: Path, file: str, reported: str
) -> None:
    replies(ANALYSIS, *SOUND)
    keep = ("--pack", forest.root, "--checkpoints")
    said = nl2sparql("agent", QUESTION, *keep, "c.sqlite", "--thread", "t")
    assert said.status == 0, said.err
    said = nl2sparql("agent", "--resume", *keep, file, "--thread", "other")
    assert (said.status, said.err.count("\n")) == (1, 1)
    assert reported in said.err
    assert not (tmp_path / "other.sqlite").exists()


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (("agent", " "), "the question is empty"),
        (("translate", ""), "the question is empty"),
        (("translate", "x", "--language", "fr"), "unknown value 'fr'"),
        (("translate", "x", "--lm", "local", "-m", "y"), "--lm alone"),
        (("evaluate", "--split", "tset"), "--split"),
        (("evaluate", "--pattern", "EMOTIONS"), "unknown pattern 'EMOTIONS'"),
        (("agent", "--resume"), "needs --thread and --checkpoints"),
        (("agent", "x", "-p", "nobody"), "no default model is known for 'nobody'"),
        (("translate", "x", "--pack", "nowhere"), "nowhere"),
        (("evaluate", "-o", "no/such/folder/report.json"), "no such folder"),
        (("translate", "x", "--index", "annoy"), "annoy"),
        (("agent", "x", "--embedding", "word2vec"), "unknown embedding model 'word2vec'"),
        (("evaluate", "--embedding", "sentence-transformers:"), "no model is named"),
        (("agent-viz", "-o", "graph.gif"), "end the name in .png"),
    ],
)
def test_what_cannot_be_is_reported_in_a_line(
    nl2sparql: Run, replies: Any, words: tuple[str, ...], reported: str
) -> None:
    replies()
    said = nl2sparql(*words)
    assert said.status == 1
    assert said.err.count("\n") == 1
    assert said.err.startswith("nl2sparql: ")
    assert reported in said.err


def test_the_picture(nl2sparql: Run, forest: Pack, tmp_path: Path) -> None:
    said = nl2sparql("agent-viz", "--pack", forest.root, "--inside")
    assert "verify -.-> explore;" in said.out
    assert "subgraph places" in said.out
    said = nl2sparql("agent-viz", "--pack", forest.root, "-o", "graph.mmd")
    assert (said.status, said.out) == (0, "")
    assert (tmp_path / "graph.mmd").read_text().startswith("---")


@pytest.mark.parametrize("words", [("agent-viz",), ("agent", QUESTION)])
def test_a_missing_extra_is_reported_in_a_line(
    nl2sparql: Run, forest: Pack, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "langgraph" else found(name)
    )
    said = nl2sparql(*words, "--pack", forest.root)
    assert (said.status, said.out) == (1, "")
    hint = 'pip install "reasoningbank[graph]"'
    assert said.err == f"nl2sparql: the package langgraph is not installed; {hint}\n"


@pytest.mark.parametrize("system", ["rag", "graph"])
def test_an_evaluation_is_judged_by_what_queries_return(
    nl2sparql: Run, replies: Any, forest: Pack, tmp_path: Path, system: str
) -> None:
    tree = {"sparql": "SELECT ?plant WHERE { ?plant a t:Tree }"}
    each = [tree] if system == "rag" else [ANALYSIS, tree, SOUND[1]]
    replies(*each * 20)
    words = ("--agent", system, "--sample", 3, "--pack", forest.root, "-o", "report.json")
    said = nl2sparql("evaluate", *words)
    assert said.status == 0, said.err
    assert "execution accuracy" in said.out
    report = json.loads((tmp_path / "report.json").read_text())
    rows = report["questions"]
    assert report["metrics"]["n"] == len(rows) == 3
    right = {row["task"] for row in rows if row["right"]}
    # The one query is right for the one question that asks for trees.
    assert right == {row["task"] for row in rows} & {"trees"}
    assert report["metrics"]["execution_accuracy"] == pytest.approx(len(right) / 3, abs=1e-3)
    assert report["metrics"]["syntax_validity"] == 1.0
    assert sum(one["n"] for one in report["calibration"]["reliability"]) == 3
    assert set(report["by_language"]) == {"en"}
    # The same command finds its trials again and asks no model.
    replies()
    assert "[1/" not in nl2sparql("evaluate", *words).err
    assert json.loads((tmp_path / "report.json").read_text())["questions"] == rows


def test_its_help_lists_the_commands(nl2sparql: Run) -> None:
    said = nl2sparql("--help")
    assert said.status == 0
    assert all(
        name in said.out
        for name in ("translate", "agent", "agent-viz", "evaluate", "tables", "calibration")
    )


def test_packs_questions_can_be_evaluated_in_both_languages() -> None:
    pack = load_pack("liita-test")
    found = questions_of(pack, {"sample": 4})
    assert {language: len(ids) for language, ids in found.items()} == {"it": 4, "en": 4}
    assert set(found["it"]) == set(found["en"])
    emotions = questions_of(pack, {"complexity": ["complex"]}, "it", ["emotion"])
    assert 0 < len(emotions["it"]) < len(questions_of(pack, {}, "it", ["EMOTION"])["it"]) < 125
