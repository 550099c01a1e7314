"""Errors in tests are compared by place and code, never by their words."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from reasoningbank.errors import ReasoningBankError


def said(error: BaseException) -> str:
    """Return where an error happened, and its code."""
    assert isinstance(error, ReasoningBankError)
    return f"{error.where} {error.code}".strip()


class SNAP(str):
    pass


def check(error: BaseException, told: str) -> None:
    got = said(error)
    if "SNAP" in os.environ:
        with open(os.environ["SNAP"], "a") as f:
            f.write(json.dumps([told, got, str(error)]) + "\n")
        return
    assert got == told


@contextmanager
def raises(kind: type[ReasoningBankError], code: str) -> Iterator[pytest.ExceptionInfo[Any]]:
    """Expect an error with a code."""
    with pytest.raises(kind) as failed:
        yield failed
    if "SNAP" in os.environ:
        with open(os.environ["SNAP"], "a") as f:
            f.write(json.dumps(["raises:" + code, failed.value.code, str(failed.value)]) + "\n")
        return
    assert failed.value.code == code
