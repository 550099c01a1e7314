"""Errors in tests are compared by place and code, never by their text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from reasoningbank.errors import ReasoningBankError


def said(error: BaseException) -> str:
    """Return where an error happened, and its code."""
    assert isinstance(error, ReasoningBankError)
    return f"{error.where} {error.code}".strip()


@contextmanager
def raises(kind: type[ReasoningBankError], code: str) -> Iterator[pytest.ExceptionInfo[Any]]:
    """Expect an error with a code."""
    with pytest.raises(kind) as failed:
        yield failed
    assert failed.value.code == code
