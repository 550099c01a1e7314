"""Lexical scope: the variables that can be seen from a place, and the current item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reasoningbank.algebra.values import Value

__all__ = ["Scope"]


@dataclass
class Scope:
    """The variables of one block, inside those around it, with the current item of a ForEach.

    A variable is set in the innermost scope and disappears with it; two runs, and two rows of a
    ForEach, never see each other's.

    Attributes:
        item: The current item: a row, or any other member of the sequence.
        has_item: Whether there is a ForEach (or Filter) around this place.
        columns: The variables that the current row may have; None where the sequence tells none.
        outer: The scope around.
        rows: The places of the current items in their sequences, the outermost first.

    Examples:
        >>> outer = Scope(); outer.set("a", None)
        >>> inner = outer.inside(); inner.set("b", None)
        >>> sorted(inner.variables()), sorted(outer.variables())
        (['a', 'b'], ['a'])
    """

    item: Value = None
    has_item: bool = False
    columns: tuple[str, ...] | None = None
    outer: Scope | None = None
    rows: tuple[int, ...] = ()
    _own: dict[str, Value] = field(default_factory=dict)

    def inside(self) -> Scope:
        """Open a scope in this one with the same item."""
        return Scope(self.item, self.has_item, self.columns, self, self.rows)

    def of_item(self, item: Value, columns: tuple[str, ...] | None, at: int = 0) -> Scope:
        """Open a scope for the item of a sequence that is at a place in it."""
        return Scope(item, True, columns, self, (*self.rows, at))

    def set(self, name: str, value: Value) -> None:
        """Set a variable in this scope."""
        self._own[name] = value

    def variables(self) -> Mapping[str, Value]:
        """Return all variables that can be seen here, the innermost of a name."""
        around = self.outer.variables() if self.outer else {}
        return {**around, **self._own}
