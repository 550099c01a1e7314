"""`reasoningbank report`, as people call it."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import pytest
from typer.testing import CliRunner

from reasoningbank.cli.app import app
from reasoningbank.errors import UsageError
from reasoningbank.experiment import RunFolder


def test_it_says_where_the_page_is_and_what_was_left_out(run: RunFolder, tmp_path: Path) -> None:
    out = tmp_path / "pages" / "trees.html"
    done = CliRunner().invoke(app, ["report", str(run.path), "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert done.stdout.strip() == str(out)
    assert "trials/first/d_task.0.json: cannot be read and is left out" in done.stderr
    assert out.read_text("utf-8").startswith("<!doctype html>")


def test_it_opens_the_page_where_asked(
    run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address) or True)
    out = tmp_path / "page.html"
    done = CliRunner().invoke(app, ["report", str(run.path), "--out", str(out), "--open"])
    assert done.exit_code == 0, done.output
    assert opened == [out.as_uri()]


def test_a_folder_without_a_run_is_one_clear_line(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert isinstance(done.exception, UsageError)
    assert str(done.exception).endswith("holds no run; give a folder with manifest.json")
