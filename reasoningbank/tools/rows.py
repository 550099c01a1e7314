"""Rows as tools return them: a plain list that also says where it comes from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["Rows"]


class Rows(list[dict[str, Any]]):
    """A bounded list of rows, one dict of compact values a row.

    Attributes:
        source: Name of the endpoint the rows come from.
        total: Rows behind the handle.
        truncated: Whether rows or characters were left out.
        note: How to get the rest; empty when nothing is missing.

    Examples:
        >>> rows = Rows([{"n": 1}], source="UniProt", total=3, truncated=True, note="2 more")
        >>> rows
        [{'n': 1}]
        (2 more)
        >>> rows == [{"n": 1}], rows.total
        (True, 3)
    """

    def __init__(
        self,
        items: Iterable[dict[str, Any]] = (),
        *,
        source: str = "",
        total: int = 0,
        truncated: bool = False,
        note: str = "",
    ) -> None:
        super().__init__(items)
        self.source = source
        self.total = total
        self.truncated = truncated
        self.note = note

    def __repr__(self) -> str:
        shown = super().__repr__()
        return f"{shown}\n({self.note})" if self.note else shown

    __str__ = __repr__
