"""The page of the columns says what the code says, and messages keep their kind."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from reasoningbank.analysis.cell_text import error_form
from reasoningbank.analysis.columns import COLUMNS

ROOT = Path(__file__).resolve().parents[3]


def test_the_page_is_up_to_date() -> None:
    page = runpy.run_path(str(ROOT / "scripts" / "generate_sections.py"))["page"]
    text = (ROOT / "docs" / "analysis.md").read_text(encoding="utf-8")
    assert page("analysis.md") == text, "run scripts/generate_sections.py"


def test_names_are_unique_and_every_table_can_be_joined() -> None:
    for frame, columns in COLUMNS.items():
        names = [column.name for column in columns]
        assert len(set(names)) == len(names), frame
        assert names[:4] == ["run", "arm", "task", "seed"]
        assert all(column.meaning for column in columns)


@pytest.mark.parametrize(
    ("error", "form"),
    [
        ("ToolError: line 6, column 3: the query cannot be parsed near 'x'; write &&",
         "the query cannot be parsed near …"),
        ("ToolError: nothing is of class up:Toxin; sparql_classes() lists classes",
         "nothing is of class …"),
        ("ValueError: limit must be at most 50, got 700", "limit must be at most …, got …"),
        ("TypeError: missing argument", "missing argument"),
        ("", ""),
    ],
)  # fmt: skip
def test_errors_of_one_kind_have_one_form(error: str, form: str) -> None:
    assert error_form(error) == form
