"""What a graph does and does not do: each of its own steps can be switched off."""

from __future__ import annotations

from dataclasses import dataclass

from reasoningbank.errors import UsageError
from reasoningbank.nl2sparql.prompting import MOST_CHARS
from reasoningbank.retrieval import DEFAULT_EMBEDDER, DEFAULT_INDEX

__all__ = ["GraphSettings"]


@dataclass(frozen=True)
class GraphSettings:
    """Which steps a graph takes.

    Attributes:
        analyze: Whether a model is asked what the question needs; else the pack's rules decide.
        plan: Whether a question that is not simple is broken into steps.
        verify: Whether a model is asked if the rows answer the question; validation stays.
        explore: Whether the schema is looked at after an empty result.
        specialists: Whether each pattern family has a writer of its own.
        human: Whether an unclear question is asked back; the graph waits for the answer.
        max_attempts: Queries that are written at most.
        top_k: Examples that are retrieved.
        shown: Examples that the writer sees.
        retrieval: How they are found: ``hybrid``, ``semantic``, ``bm25``, ``pattern``, ``random``.
        embedding: The embedding model, as `retrieval.open_embedder` names them.
        index: What compares vectors, one of `retrieval.INDEXES`.
        most_chars: Characters of the rules.
        timeout_s: Seconds a query may take.
        whole_groups: Whether the groups of hidden tasks are hidden, too: leave-group-out.

    Raises:
        UsageError: A number is out of bounds.
    """

    analyze: bool = True
    plan: bool = True
    verify: bool = True
    explore: bool = True
    specialists: bool = True
    human: bool = False
    max_attempts: int = 3
    top_k: int = 5
    shown: int = 3
    retrieval: str = "hybrid"
    embedding: str = DEFAULT_EMBEDDER
    index: str = DEFAULT_INDEX
    most_chars: int = MOST_CHARS
    timeout_s: float = 30.0
    whole_groups: bool = True

    def __post_init__(self) -> None:
        if self.max_attempts < 1 or min(self.top_k, self.shown) < 0 or self.timeout_s <= 0:
            raise UsageError(
                "max_attempts is at least 1, top_k and shown at least 0, timeout_s above 0",
                where="GraphSettings",
            )
