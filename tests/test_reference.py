"""Pages that are generated say what the code and the records say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("script", ["reference", "sections"])
def test_generated_pages_are_up_to_date(script: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "generate.py"), "--check", script],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_command_has_its_help() -> None:
    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    for command in ("run", "tasks validate", "endpoint describe", "lm pull", "judge compare"):
        assert f"## `reasoningbank {command}`" in page
