"""Expecting an error by its code and fields."""

from __future__ import annotations

from typing import TypeVar

import pytest

from reasoningbank.errors import ReasoningBankError

E = TypeVar("E", bound=ReasoningBankError)


def raises(kind: type[E], code: str, **fields: object) -> pytest.RaisesExc[E]:
    """Expect an error of a class with a code and, among others, these fields; in one line."""

    def check(error: E) -> bool:
        found = {name: error.fields.get(name) for name in fields}
        assert (error.code, found) == (code, fields), str(error)
        assert "\n" not in str(error)
        return True

    return pytest.raises(kind, check=check)
