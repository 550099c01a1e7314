"""The page of the public API runs, and shows every name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import reasoningbank

PAGE = Path(__file__).parents[1] / "docs" / "api.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_every_public_name_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    missing = [n for n in reasoningbank.__all__ if not re.search(rf"\b{n}\b", text)]
    assert missing == []
    assert all(getattr(reasoningbank, name) is not None for name in reasoningbank.__all__)


def test_the_examples_run_in_order() -> None:
    names: dict[str, Any] = {}
    for block in BLOCKS[:-1]:
        exec(block, names)
    assert names["ref"].rows == 10


@pytest.mark.model
def test_the_example_with_a_model_runs() -> None:
    exec(BLOCKS[-1], {"pack": reasoningbank.load_pack("uniprot")})
