"""Errors by code and fields, for tests that must not read their text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from reasoningbank.errors import ReasoningBankError

__all__ = ["fails"]


@contextmanager
def fails(
    kind: type[ReasoningBankError], code: str, **fields: Any
) -> Iterator[pytest.ExceptionInfo[ReasoningBankError]]:
    """Expect an error with this code and, among others, these fields; its text is one line."""
    with pytest.raises(kind) as caught:
        yield caught
    assert caught.value.code == code
    assert {name: caught.value.fields.get(name) for name in fields} == fields
    assert "\n" not in str(caught.value)
