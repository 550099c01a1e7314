"""A task whose features are computed when somebody asks for them."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Self

from reasoningbank.corpus.features import query_features
from reasoningbank.corpus.task import Complexity, Task

__all__ = ["LoadedTask"]


class LoadedTask(Task):
    """A task read from a corpus.

    `complexity`, `features` and, where the example names none, `group` come from the gold's
    algebra. Parsing takes about 18 ms a query, so that they wait until they are looked at.
    """

    @cached_property
    def complexity(self) -> Complexity:
        """How hard the gold is."""
        return query_features(self.expected_sparql).complexity

    @cached_property
    def features(self) -> tuple[str, ...]:
        """What makes the gold hard."""
        return query_features(self.expected_sparql).features

    @cached_property
    def group(self) -> str:
        """The gold's template: its algebra with the constants abstracted."""
        return query_features(self.expected_sparql).template

    def deferred(self) -> Self:
        """Forget the derived fields, so that the next look computes them."""
        # cached_property is no data descriptor: __init__ has put the defaults over it.
        for name in ("complexity", "features", "group"):
            if name != "group" or not self.group:
                del self.__dict__[name]
        return self

    def renamed(self, task_id: str) -> Self:
        """Return the task under another id; `replace` would compute the derived fields."""
        other = copy(self)
        other.__dict__["id"] = task_id
        return other
