"""Write the reference pages that come from code: command-line help and schemas of the records.

Run `python scripts/generate_reference.py`; with `--check` nothing is written and the exit status
is 1 when a page is out of date, which is how the tests use it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import typer
from pydantic import TypeAdapter
from typer.core import TyperGroup
from typer.main import get_command

from reasoningbank.cli.app import app
from reasoningbank.cli.nl2sparql import app as nl2sparql
from reasoningbank.experiment import Experiment, TrialRecord

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference"


def command_pages(command: Any, path: str) -> list[str]:
    """Return the help of a command and of all below it, as Markdown."""
    context = typer.Context(command, info_name=path, max_content_width=96, terminal_width=96)
    text = command.get_help(context).rstrip()
    parts = [f"## `{path}`\n\n```text\n{text}\n```\n"]
    if isinstance(command, TyperGroup):
        for name in sorted(command.commands):
            parts += command_pages(command.commands[name], f"{path} {name}")
    return parts


def pages() -> dict[str, str]:
    """Return every generated page by file name."""
    programs = {"reasoningbank": app, "nl2sparql": nl2sparql}
    help_pages = "\n".join(
        page for name, one in programs.items() for page in command_pages(get_command(one), name)
    )
    return {
        "cli.md": f"# The command line\n\nGenerated from the code; do not edit.\n\n{help_pages}",
        "experiment.schema.json": _schema(Experiment.model_json_schema()),
        "trial.schema.json": _schema(TypeAdapter(TrialRecord).json_schema(mode="serialization")),
    }


def _schema(schema: object) -> str:
    return json.dumps(schema, indent=2, sort_keys=True) + "\n"


def main() -> int:
    """Write the pages, or check them; returns the exit status."""
    check = "--check" in sys.argv[1:]
    stale = []
    for name, text in pages().items():
        path = FOLDER / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
            if not check:
                FOLDER.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
    if check and stale:
        print(f"out of date: {', '.join(stale)}; run python scripts/generate_reference.py")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
