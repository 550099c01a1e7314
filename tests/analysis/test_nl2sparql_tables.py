"""Tables of translators: read from records and reports, with every number counted by hand."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from forest import EXAMPLES, write_forest
from recorded import trial, verdict

from reasoningbank.analysis import (
    ArmRows,
    TranslationRow,
    calibration_figures,
    read_translations,
    translation_figures,
    translation_metrics,
)
from reasoningbank.analysis.tables import markdown
from reasoningbank.analysis.translators import (
    FAILED_FIRST,
    agent_table,
    brier_table,
    component_match,
    components,
    pattern_table,
    reliability_table,
    repair_table,
    scenario_table,
)
from reasoningbank.corpus import Pack
from reasoningbank.errors import RecordError, UsageError
from reasoningbank.experiment import RunFolder, TrialRecord
from reasoningbank.trajectory import Recorder, Trajectory, Usage

GOLDS = {one[0]: one[5] for one in EXAMPLES}
QUESTIONS = {one[0]: one[4].replace('\\"', '"') for one in EXAMPLES}


@pytest.fixture(scope="module")
def forest(tmp_path_factory: pytest.TempPathFactory, trees_file: Path) -> Pack:
    return write_forest(tmp_path_factory.mktemp("tables") / "trees", trees_file.read_text("utf-8"))


def steps(*done: tuple[str, dict[str, Any]]) -> Trajectory:
    recorder = Recorder()
    for name, data in done:
        recorder.add("step", {"step": name, **data})
    return recorder.trajectory()


def output(score: float) -> tuple[str, dict[str, Any]]:
    said = {"score": score, "confidence": score, "calibrated": False, "explanation": "Why not."}
    return "output", said


def record(arm: str, task: str, right: bool, **changes: Any) -> TrialRecord:
    return trial(
        arm,
        task,
        0,
        question=QUESTIONS[task],
        gold=GOLDS[task],
        sparql=changes.pop("sparql", GOLDS[task]),
        verdict=verdict(right, changes.pop("said", "judged")),
        **changes,
    )


@pytest.fixture
def run(tmp_path: Path, forest: Pack) -> Path:
    """A pipeline and a plain agent on three tasks; the last one of the pipeline was lost."""
    folder = RunFolder(tmp_path / "mixed")
    arms = [{"name": name, "agent": name, "lm": "local"} for name in ("rag", "direct")]
    folder.write_manifest({"experiment": {"name": "m", "pack": str(forest.root), "arms": arms}})
    stood = steps(("detect", {"patterns": {"KIND": 1.0}}), ("validate", {}), output(0.9))
    fixed = steps(
        ("detect", {"patterns": {"HEIGHT": 1.0, "NEAR": 0.5}}),
        ("validate", {}),
        ("validate", {}),
        output(0.6),
    )
    cost = Usage(lm_calls=2, cached_calls=1, prompt_tokens=90, completion_tokens=10, seconds=4.0)
    for one in (
        record("rag", "trees", True, trajectory=stood),
        record(
            "rag", "above", False, trajectory=fixed, status="fallback", usage=cost,
            sparql="SELECT ?plant WHERE { ?plant t:height ?metres }", complexity="moderate",
        ),
        replace(record("rag", "near_oak", False), verdict=None, status="error", sparql=None),
        record("direct", "trees", False, sparql="SELECT {", said="query_error"),
        record("direct", "above", True, complexity="moderate"),
        record("direct", "near_oak", False, said="gold_defect"),
        replace(record("direct", "is_tree", True), step=0),
    ):  # fmt: skip
        folder.write(one)
    return folder.path


def test_rows_are_what_the_records_and_the_pack_say(run: Path) -> None:
    rag, direct = read_translations([run])
    assert (rag.arm, rag.agent, rag.model, rag.left_out) == ("rag", "rag", "local", 1)
    assert (len(direct.rows), direct.left_out) == (2, 1)
    above, trees = sorted(rag.rows, key=lambda row: row.task)
    assert (above.patterns, above.detected, above.language) == (
        ("HEIGHT",),
        ("HEIGHT", "NEAR"),
        "en",
    )
    assert (above.calls, above.tokens, above.seconds) == (3, 100, 4.0)
    assert (above.valid, above.queries, above.first_passed) == (False, 2, False)
    assert (above.confidence, above.complexity) == (0.6, "moderate")
    # All of the gold's parts but its FILTER.
    assert 0 < above.components < 1
    assert (trees.right, trees.first_passed, trees.components) == (True, True, 1.0)
    broken = next(row for row in direct.rows if row.task == "trees")
    assert (broken.parses, broken.executes, broken.detected, broken.valid) == (
        False, False, None, None,
    )  # fmt: skip


def cells(table: Any, *key: str) -> dict[str, str]:
    found = [row for row in table.rows if row[: len(key)] == key]
    assert len(found) == 1, table
    return dict(zip(table.headers, found[0], strict=True))


def test_tables_count_what_was_measured(run: Path) -> None:
    arms = read_translations([run])
    rag = cells(agent_table(arms), "rag")
    assert (rag["n"], rag["execution accuracy"], rag["not judged"]) == ("2", "0.50", "1")
    assert (rag["pattern accuracy"], rag["s median"]) == ("0.50", "5.5")
    assert cells(agent_table(arms), "direct")["pattern accuracy"] == "-"
    assert cells(agent_table(arms), "direct")["syntax validity"] == "0.50"
    assert cells(pattern_table(arms), "HEIGHT", "rag")["execution accuracy"] == "0.00"
    assert cells(pattern_table(arms), "HEIGHT", "direct")["execution accuracy"] == "1.00"
    when = scenario_table(arms)
    assert cells(when, "moderate", "direct")["n"] == "1"
    assert cells(when, "one pattern", "rag")["n"] == "2"
    # What the pipeline's first query did not answer, asked of every agent.
    assert cells(when, FAILED_FIRST, "direct")["execution accuracy"] == "1.00"
    repair = cells(repair_table(arms), "rag")
    assert (repair["first query passed"], repair["of these right"]) == ("1", "1 of 1")
    assert (repair["first query failed"], repair["right in the end"]) == ("1", "0 of 1")
    assert (repair["a later one passed"], repair["queries per question"]) == ("0 of 1", "1.50")
    assert [row[0] for row in repair_table(arms).rows] == ["rag"]


def test_confidence_is_held_against_what_was_right(run: Path) -> None:
    arms = read_translations([run])
    assert cells(brier_table(arms), "rag") == {
        "arm": "rag", "n": "2", "no confidence": "0", "Brier score": "0.18",
        "of the base rate": "0.25", "calibrated on other tasks": "-",
    }  # fmt: skip
    assert [row[1:5] for row in reliability_table(arms).rows] == [
        ("0.6 to 0.8", "1", "0.60", "0.00"),
        ("0.8 to 1.0", "1", "0.90", "1.00"),
    ]


def row(**changed: Any) -> TranslationRow:
    known: dict[str, Any] = {
        "task": "t", "language": "en", "question": "?", "sparql": "ASK {}", "right": True,
        "status": "judged", "parses": True, "executes": True, "components": 1.0,
        "patterns": ("A",), "detected": ("A",), "valid": True, "confidence": 0.9, "score": 0.9,
        "calls": 1, "tokens": 10, "seconds": 1.0,
    }  # fmt: skip
    return TranslationRow(**known | changed)


def test_the_figures_count_what_was_measured() -> None:
    rows = [
        row(task="a"),
        row(task="b", right=False, confidence=0.5, language="it", detected=("A", "B")),
        row(
            task="c", right=False, confidence=1.0, patterns=("B",), detected=(), parses=False,
            seconds=9.0,
        ),
    ]  # fmt: skip
    found = translation_figures(rows)
    assert found["metrics"]["execution_accuracy"] == pytest.approx(1 / 3, abs=1e-4)
    assert found["metrics"]["interval_by"] == "Wilson"
    assert found["metrics"]["syntax_validity"] == pytest.approx(2 / 3, abs=1e-4)
    assert found["metrics"]["pattern_accuracy"] == pytest.approx(1 / 3, abs=1e-4)
    assert found["metrics"]["seconds_median"] == 1.0
    assert {name: one["n"] for name, one in found["by_pattern"].items()} == {"A": 2, "B": 1}
    assert {name: one["n"] for name, one in found["by_language"].items()} == {"en": 2, "it": 1}
    assert found["calibration"]["brier"] == pytest.approx((0.01 + 0.25 + 1.0) / 3, abs=1e-4)
    assert found["calibration"]["brier_base_rate"] == pytest.approx(2 / 9, abs=1e-4)
    assert [bin_["n"] for bin_ in found["calibration"]["reliability"]] == [1, 2]
    assert translation_figures([row(confidence=None)])["calibration"] == {}


def test_questions_of_one_task_are_not_independent() -> None:
    twice = [row(task=str(n // 2), right=n // 2 % 2 == 0, language="it" if n % 2 else "en")
             for n in range(24)]  # fmt: skip
    once = [row(task=str(n), right=n % 2 == 0) for n in range(24)]
    (low, high), (least, most) = (
        translation_metrics(rows)["execution_accuracy_interval"] for rows in (twice, once)
    )
    assert high - low > most - least
    assert "over tasks" in translation_metrics(twice)["interval_by"]
    grouped = translation_metrics([replace(one, group=str(n // 2)) for n, one in enumerate(once)])
    assert grouped["tasks"] == 24
    assert "over groups" in grouped["interval_by"]


def test_a_table_of_the_other_tasks_corrects_a_boast() -> None:
    # It is always sure, and right where its score is high.
    rows = [
        row(task=f"{n:02}", right=n % 2 == 0, confidence=1.0, score=0.9 if n % 2 == 0 else 0.4)
        for n in range(20)
    ]
    found = calibration_figures(rows)
    assert (found["brier"], found["brier_base_rate"]) == (0.5, 0.25)
    assert found["brier_calibrated"] < 0.1
    assert calibration_figures(rows[:9])["brier_calibrated"] is None


def test_components_are_read_off_the_algebra(forest: Pack) -> None:
    gold = "SELECT ?p WHERE { ?p a t:Tree ; t:height ?h . FILTER(?h > 30) }"
    assert ("property", "http://e/height") in components(gold, forest)
    assert ("class", "http://e/Tree") in components(gold, forest)
    assert component_match(gold, gold, forest) == 1.0
    assert 0 < component_match("SELECT ?x WHERE { ?x a t:Tree }", gold, forest) < 1
    assert component_match(None, gold, forest) == component_match("SELECT {", gold, forest) == 0.0


def test_a_report_is_read_as_a_run_is(tmp_path: Path, run: Path) -> None:
    report = tmp_path / "report.json"
    rows = [row(task="a"), row(task="b", detected=None, queries=2, complexity="simple")]
    head = {"agent": "graph", "model": "local", "pack": "liita-test"}
    report.write_text(json.dumps({**head, "questions": [asdict(one) for one in rows]}))
    assert read_translations([report]) == [
        ArmRows("graph", "graph", "local", "liita-test", tuple(rows))
    ]
    both = read_translations([run, report])
    assert [one.arm for one in both] == ["mixed/rag", "mixed/direct", "report/graph"]


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"questions": []}', '{"questions": [{"task": "t"}]}', '{"agent": "rag"}']
)
def test_what_is_not_a_report_is_reported_in_a_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "report.json").write_text(text)
    with pytest.raises(RecordError) as reported:
        read_translations([tmp_path / "report.json"])
    assert "report.json" in str(reported.value)
    assert "\n" not in str(reported.value)


def test_what_is_not_a_run_is_reported_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no run"):
        read_translations([tmp_path])
    gone = RunFolder(tmp_path / "gone")
    gone.write_manifest({"experiment": {"name": "g", "pack": "nowhere", "arms": []}})
    with pytest.raises(UsageError, match="--pack"):
        read_translations([gone.path])


def test_a_table_as_markdown(run: Path) -> None:
    lines = markdown(scenario_table(read_translations([run]))).splitlines()
    assert lines[0].startswith("| questions | arm | n | execution accuracy |")
    assert lines[1].startswith("| --- | --- | ---: | ---: |")
    assert any("| 0.50 | 0.09 to 0.91 |" in line for line in lines), lines
