"""What others wrote is shown as it is: no brackets are lost, and a row is a line."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from typing import Any

import pytest
from rich.console import Console

from reasoningbank.cli import output
from reasoningbank.experiment import Progress, TrialKey, TrialRecord
from reasoningbank.trajectory import Trajectory, Usage

TEXTS = (
    "Hb Tsukumi [beta117(G19)His-->Tyr] found in a Moroccan woman",
    "3-oxoacyl-[acyl-carrier-protein] synthase",
    "[/INST] and [/b]",
    "urn:key:1",
)


@pytest.mark.parametrize("text", TEXTS)
def test_brackets_and_colons_are_text_on_a_terminal(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for console in (output.console, output.progress_console):
        shown = io.StringIO()
        monkeypatch.setattr(console, "_force_terminal", True)
        monkeypatch.setattr(console, "_width", 200)
        monkeypatch.setattr(console, "_file", shown)
        console.print(text)
        assert text in shown.getvalue()
    shown = io.StringIO()
    monkeypatch.setattr(output.console, "_file", shown)
    output.print_table(("title",), [(text,)])
    assert text in shown.getvalue()


def test_a_program_on_a_narrow_terminal_can_be_copied() -> None:
    text = json.dumps({"query": "SELECT ?x WHERE { ?x a ?y } # [b]" * 9}, indent=2)
    written = io.StringIO()
    output.print_query(text, Console(file=written, force_terminal=True, width=40), "json")
    assert re.sub(r"\x1b\[[0-9;]*m", "", written.getvalue()) == f"{text}\n"


def test_a_row_is_a_line_when_piped(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_table(("c", "n"), [("line one\nline\ttwo\r\n", 1)])
    assert capsys.readouterr().out == "c\tn\nline one line two \t1\n"


def test_the_time_left_is_a_lower_bound_while_an_arm_is_unknown() -> None:
    left = output.TimeLeft({"oracle": 4, "direct": 10, "rlm": 10}, {"direct": 100.0})
    left.began(50.0)
    left.finished("oracle", 51.0)
    assert str(left) == "at least 1 min 43 s left, without rlm"
    left.finished("rlm", 111.0)
    assert str(left) == "about 10 min 43 s left"
    # This machine takes twice as long as the one of the past runs.
    left.finished("direct", 131.0)
    assert str(left) == "about 12 min 3 s left"
    # A trial of milliseconds that starts slowly says nothing of the others.
    left = output.TimeLeft({"oracle": 3, "rag": 3}, {"oracle": 0.03, "rag": 60.0})
    left.finished("oracle", 2.0)
    assert str(left) == "about 1 min 15 s left"


def test_a_line_a_trial_says_whether_it_is_right_by_arm(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def record(
        arm: str, status: Any = "submitted", judged: str = "judged", strict: bool = True
    ) -> TrialRecord:
        found = None if status == "bug" else {"status": judged, "strict": strict}
        return TrialRecord(
            key=TrialKey(arm, "t1", 0), question="", complexity="", form="", group="",
            status=status, sparql=None, answer="", error="", verdict=found, usage=Usage(),
            trajectory=Trajectory(), started="", model={},
        )  # fmt: skip

    ended = [
        record("oracle"),
        record("direct"),
        record("direct", strict=False),
        record("direct", "exhausted", strict=False),
        record("direct", judged="gold_defect", strict=False),
        record("direct", "bug"),
    ]
    with output.follow_run(output.TimeLeft({}, {})) as follow:
        for number, one in enumerate(ended):
            follow(Progress(6, number + 1, number, one.key, one, float(number)))
    said = [line.split(": ", 1)[1] for line in capsys.readouterr().err.splitlines()]
    assert [line.split(" · ")[0] for line in said] == [
        "right", "right", "wrong", "wrong (exhausted)", "gold defect", "bug",
    ]  # fmt: skip
    assert "oracle 1 of 1 right" in said[0]
    assert "direct 1 of 3 right" in said[-1]


def test_warnings_of_dspy_do_not_stand_among_the_lines_of_progress() -> None:
    code = """
import logging, sys
from reasoningbank.cli import main
sys.argv = ["reasoningbank", "--help"]
try:
    main()
except SystemExit:
    pass
import dspy.predict.rlm
assert not dspy.predict.rlm.logger.isEnabledFor(logging.WARNING)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
