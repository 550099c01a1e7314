"""What others wrote is shown as it is: no brackets are lost, and a row is a line."""

from __future__ import annotations

import io

import pytest
from recorded import trial, verdict

from reasoningbank.cli import output
from reasoningbank.experiment.executors import Progress

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


def test_a_row_is_a_line_when_piped(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_table(("c", "n"), [("line one\nline\ttwo\r\n", 1)])
    assert capsys.readouterr().out == "c\tn\nline one line two \t1\n"


def test_progress_says_what_came_out_and_counts_each_arm_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    follow = output.follow_run(output.progress_bar(), output.TimeLeft({"oracle": 1, "rlm": 3}, {}))
    ended = (
        trial("oracle", "t1", 0, verdict=verdict(True)),
        trial("rlm", "t1", 0, verdict=verdict(False)),
        trial("rlm", "t2", 0, verdict=verdict(False), status="exhausted"),
        trial("rlm", "t3", 0, verdict=None, status="error"),
    )
    for n, record in enumerate(ended, 1):
        follow(Progress(4, n, n, record.key, record, float(n)))
    lines = [line.split(" · ") for line in capsys.readouterr().err.splitlines()]
    assert [[line[1].split(": ")[1], line[2]] for line in lines] == [
        ["right", "oracle 1/1 right"],
        ["wrong", "rlm 0/1 right"],
        ["wrong (exhausted)", "rlm 0/2 right"],
        ["infrastructure error", "rlm 0/2 right"],
    ]
