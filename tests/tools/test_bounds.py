"""Limits are lowered and said so; returns are cut in characters."""

from __future__ import annotations

import json

import pytest

from reasoningbank.errors import ToolError
from reasoningbank.tools import CAPS
from reasoningbank.tools.returns import MAX_CHARS, bounded_limit, fit


@pytest.mark.parametrize("tool", CAPS)
def test_the_most_passes_and_more_is_lowered_and_said(tool: str) -> None:
    cap = CAPS[tool]
    assert bounded_limit(tool, cap.most) == (cap.most, "")
    limit, note = bounded_limit(tool, cap.most + 1)
    assert limit == cap.most
    assert f"from {cap.most + 1} to {cap.most}" in note


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "5", True, None])
def test_a_limit_that_is_not_a_positive_whole_number_is_refused(wrong: object) -> None:
    with pytest.raises(ToolError, match=r"sparql_peek.*number from 1"):
        bounded_limit("sparql_peek", wrong)  # type: ignore[arg-type]


def test_what_fits_is_kept_and_the_first_always() -> None:
    items = [{"text": "x" * 900} for _ in range(20)]
    kept = fit(items)
    assert 0 < len(kept) < 20
    assert sum(len(json.dumps(item)) for item in kept) <= MAX_CHARS
    assert fit([{"text": "x" * 10_000}, {"text": "y"}]) == [{"text": "x" * 10_000}]
    assert fit([]) == []
    assert fit(["x" * 10_000, "y"], least=0) == []


@pytest.mark.parametrize(
    "wrong",
    ["x" * 100_000, [["x" * 900] * 90] * 90, 1e9, -(10**6_000)],
    ids=["text", "list", "float", "number"],
)
def test_a_limit_of_any_size_is_reported_in_a_short_line(wrong: object) -> None:
    with pytest.raises(ToolError) as caught:
        bounded_limit("sparql_peek", wrong)  # type: ignore[arg-type]
    assert len(str(caught.value)) < 160
    assert len(bounded_limit("sparql_peek", 10**6_000)[1]) < 160
