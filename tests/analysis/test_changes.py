"""Questions before and after, and levels in a summary."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reasoningbank.analysis import changed_answers
from reasoningbank.analysis.summary import summarise
from reasoningbank.analysis.tables import tables_of
from reasoningbank.cli.summary import print_changes
from reasoningbank.experiment import TrialKey, TrialRecord
from reasoningbank.trajectory import Trajectory, Usage


def record(arm: str, task: str, right: bool, level: str = "iid", **rest: Any) -> TrialRecord:
    verdict = {"status": "judged", "strict": right, "lenient": right, "f1": float(right)}
    evidence = {"predicted": {"variables": ["n"], "rows": [["1"], [None], ["3"], ["4"]], "n": 9}}
    return TrialRecord(
        key=TrialKey(arm, task, 0),
        question=f"{task}?",
        complexity="simple",
        form="SELECT",
        group=task,
        template=task[0],
        level=level,
        status="submitted",
        sparql=f"SELECT {arm}",
        answer="",
        error="",
        verdict={**verdict, "reason": "" if right else "1 of 1 rows missing"},
        usage=Usage(prompt_tokens=100),
        trajectory=Trajectory(),
        started="2026-01-01T00:00:00Z",
        model={},
        evidence=evidence,
        **rest,
    )


RECORDS = [
    record("none", "a1", False, "zero-shot"),
    record("learned", "a1", True, "zero-shot"),
    record("none", "b1", False),
    record("learned", "b1", True),
    record("none", "b2", True),
    record("learned", "b2", True),
    record("none", "c1", False, "compositional"),
    record("learned", "c1", False, "compositional"),
    record("learned", "d1", True, step=0),
]


def test_changes_are_questions_that_only_the_first_arm_answers() -> None:
    changes = changed_answers(RECORDS, "learned", "none")
    assert [(str(before.key), str(after.key)) for before, after in changes] == [
        ("none/b1.0", "learned/b1.0"),
        ("none/a1.0", "learned/a1.0"),
    ]
    assert len(changed_answers(RECORDS, "learned", "none", most=1)) == 1


def test_changes_are_printed_with_their_first_rows(capsys: pytest.CaptureFixture[str]) -> None:
    summary = summarise(RECORDS, comparison=("learned", "none"))
    print_changes(summary, changed_answers(RECORDS, "learned", "none", most=1))
    assert capsys.readouterr().out.splitlines()[:9] == [
        "", "b1? (iid)", "  none: 1 of 1 rows missing", "    SELECT none", "    → 1", "    → ",
        "    → 3", "    → 6 more rows", "  learned: right",
    ]  # fmt: skip


def test_plain_words_count_the_questions_that_are_compared(
    capsys: pytest.CaptureFixture[str],
) -> None:
    manifest = {"experiment": {"level": "iid"}}
    print_changes(summarise(RECORDS, comparison=("learned", "none"), manifest=manifest), ())
    said = capsys.readouterr().out
    assert "learned answered 2 of 2 iid questions right, none 1 of 2: 50 percentage points" in said
    print_changes(summarise(RECORDS, comparison=("learned", "none"), metric="f1"), ())
    assert capsys.readouterr().out == ""


def test_a_question_with_a_defective_gold_in_one_arm_is_not_a_change() -> None:
    broken = record("none", "e1", False)
    broken = replace(broken, verdict={**(broken.verdict or {}), "status": "gold_defect"})
    assert changed_answers([broken, record("learned", "e1", True)], "learned", "none") == []


def test_a_summary_has_a_line_for_each_level_and_arm() -> None:
    summary = summarise(RECORDS, ["none", "learned"], ("learned", "none"), unit="group")
    found = {(one.level, one.arm): (one.strict, one.judged) for one in summary.levels}
    assert found == {
        ("iid", "none"): (1, 2),
        ("iid", "learned"): (2, 2),
        ("compositional", "none"): (0, 1),
        ("compositional", "learned"): (0, 1),
        ("zero-shot", "none"): (0, 1),
        ("zero-shot", "learned"): (1, 1),
    }
    assert {one.templates for one in summary.levels} == {1}
    assert len(tables_of(summary)["levels"].rows) == 6


def test_registered_pairs_are_compared_at_their_level() -> None:
    manifest = {"experiment": {"level": "iid"}}
    summary = summarise(RECORDS, comparison=("learned", "none"), manifest=manifest)
    assert summary.comparison is not None
    assert (summary.comparison.tasks, summary.comparison.difference) == (2, 0.5)
    assert summary.preregistered_lines()[0].startswith("pre-registered, iid:")


def test_records_without_levels_have_no_table() -> None:
    old = [record(arm, "a1", False, "") for arm in ("none", "learned")]
    assert tables_of(summarise(old))["levels"].rows == []
