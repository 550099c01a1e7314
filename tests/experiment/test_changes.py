"""Settings from the command line."""

from __future__ import annotations

from typing import Any

import pytest

from reasoningbank.errors import UsageError
from reasoningbank.experiment.changes import apply_changes

FILE: dict[str, Any] = {"name": "x", "arms": [{"name": "qwen-1.5b", "lm": "local"}, {"name": "b"}]}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("seeds=[1, 2]", {**FILE, "seeds": [1, 2]}),
        ("title=a plain text", {**FILE, "title": "a plain text"}),
        ("executor.workers=16", {**FILE, "executor": {"workers": 16}}),
        ("endpoint.url=https://e/?a=b", {**FILE, "endpoint": {"url": "https://e/?a=b"}}),
        (
            "arms.qwen-1.5b.budget.tokens=5",
            {"name": "x", "arms": [{**FILE["arms"][0], "budget": {"tokens": 5}}, {"name": "b"}]},
        ),
        (
            "arms.*.temperature=0.5",
            {"name": "x", "arms": [{**arm, "temperature": 0.5} for arm in FILE["arms"]]},
        ),
    ],
)
def test_a_path_leads_to_what_it_names(change: str, expected: dict[str, Any]) -> None:
    before = str(FILE)
    assert apply_changes(FILE, [change]) == expected
    assert str(FILE) == before


@pytest.mark.parametrize("change", ["seeds", "=1", "a..b=1", "arms.c.lm=x", "name.first=x"])
def test_what_leads_nowhere_is_told(change: str) -> None:
    with pytest.raises(UsageError, match=r"--set: .*(no setting|leads nowhere)"):
        apply_changes(FILE, [change])
