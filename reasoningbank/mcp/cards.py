"""Short texts on the endpoint: the sense card, and the schema near a question."""

from __future__ import annotations

import threading

from reasoningbank.corpus import Pack
from reasoningbank.errors import UsageError
from reasoningbank.mcp.shared import Opened
from reasoningbank.memory.context import Budgets, ContextBuilder

__all__ = ["Cards"]

#: Tokens of each card: it is read once, not with every question.
BUDGETS = Budgets(L0=300, L1=800)
#: Characters of a question.
MOST_QUESTION = 2_000


class Cards:
    """What layers L0 and L1 say of an endpoint; each is made when it is first asked for.

    Args:
        pack: Its pack.
        opened: The endpoint.
        hidden: Ids of the tasks of which nothing may be shown.

    Raises:
        EndpointError: The endpoint does not answer.
    """

    def __init__(self, pack: Pack, opened: Opened, hidden: frozenset[str]) -> None:
        self._pack = pack
        self._opened = opened
        self._hidden = hidden
        self._lock = threading.Lock()
        self._builders: dict[str, ContextBuilder] = {}

    def sense(self) -> str:
        """Return the sense card: what the endpoint is and holds."""
        return self._builder("L0").static

    def schema(self, question: str) -> str:
        """Return the classes and properties near a question.

        Raises:
            UsageError: The question is none.
        """
        text = " ".join(question.split())
        if not text or len(text) > MOST_QUESTION:
            raise UsageError("the question is empty or too long", hint="give a sentence")
        return self._builder("L1").build(text).text

    def _builder(self, layer: str) -> ContextBuilder:
        with self._lock:
            if layer not in self._builders:
                self._builders[layer] = ContextBuilder(
                    [layer],
                    endpoint=self._opened.endpoint,
                    vocabulary=self._opened.vocabulary,
                    pack=self._pack,
                    budgets=BUDGETS,
                    hidden=self._hidden,
                    tools=True,
                )
            return self._builders[layer]
