"""Columns can be joined and say what they mean, and messages keep their kind."""

from __future__ import annotations

import pytest

from reasoningbank.analysis.cell_text import error_form
from reasoningbank.analysis.columns import COLUMNS


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
