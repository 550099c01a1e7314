"""Errors in tests are compared by place and code, never by their text."""

from __future__ import annotations

import resource
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


@contextmanager
def full_disk() -> Iterator[None]:
    """Let no file grow."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
