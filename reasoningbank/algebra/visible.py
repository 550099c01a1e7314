"""What can be seen from a place of a program before it runs: variables, and the row's columns."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

__all__ = ["Visible"]


@dataclass(frozen=True)
class Visible:
    """The static side of a scope.

    Attributes:
        variables: Names that a Variable has set before this place, or the caller.
        has_item: Whether a ForEach is around.
        columns: The variables of its rows, where the program tells them.
        based: Whether relative IRIs have something to be relative to.
        depth: Operations around.
        reads: Gathers the row variables that are read here.
    """

    variables: frozenset[str] = frozenset()
    has_item: bool = False
    columns: tuple[str, ...] | None = None
    based: bool = False
    depth: int = 0
    reads: set[str] = field(default_factory=set)

    def with_variable(self, name: str) -> Visible:
        """Return what is visible after a variable was set."""
        return replace(self, variables=self.variables | {name})

    def of_items(self, columns: tuple[str, ...] | None) -> Visible:
        """Return what is visible inside a ForEach over rows with these columns."""
        return replace(self, has_item=True, columns=columns, reads=set())

    def inside(self, *, based: bool = False) -> Visible:
        """Return what is visible in the arguments of an operation."""
        return replace(self, depth=self.depth + 1, based=self.based or based)
