"""What the page on distillation shows is what comes out."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

import pytest

from reasoningbank import corpus
from reasoningbank.memory.search import item_text
from reasoningbank.sparql import EndpointConfig

PAGE = Path(__file__).parents[3] / "docs" / "distillation.md"


def test_the_walkthrough(endpoint: EndpointConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    text = PAGE.read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    # The sample is served already.
    monkeypatch.setattr(corpus, "open_endpoint", lambda _: contextlib.nullcontext(endpoint))
    names: dict[str, Any] = {}
    exec(code, names)

    assert "\n\n".join(map(item_text, names["distilled"].items)) == shown.strip()
