"""What others wrote is shown as it is: no brackets are lost, and a row is a line."""

from __future__ import annotations

import io
import json
import re

import pytest
from rich.console import Console

from reasoningbank.cli import output

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
