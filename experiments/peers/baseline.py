"""What a user of DSPy would write first: nearest training examples, and one prediction."""

from __future__ import annotations

import functools

import dspy

from experiments.peers.published import published
from reasoningbank.agents import Episode
from reasoningbank.retrieval import Vectors, open_embedder


class Baseline(dspy.Module):
    """Retrieve examples by the vectors of their questions, then predict the query.

    Args:
        k: Examples that are shown.
        per_template: Training examples of each template that it retrieves from.
        embedder: A model that `dspy.Embedder` knows; by default the bundled one, which needs no
            network.
    """

    def __init__(self, k: int = 3, per_template: int = 1, embedder: str = "") -> None:
        super().__init__()
        self.k, self.per_template, self.embedder = k, per_template, embedder
        fields = "endpoint, examples: list[str], question -> sparql"
        self.write = dspy.Predict(dspy.Signature(fields, "Write a SPARQL query that answers."))

    def forward(self, question: str, episode: Episode) -> dspy.Prediction:
        tasks = published(episode, self.per_template)
        search = _search(tuple(task.query for task in tasks), self.embedder, self.k)
        near = [tasks[index] for index in search(question).indices]
        shown = [f"{task.query}\n{task.expected_sparql}" for task in near]
        return self.write(endpoint=episode.endpoint.url, examples=shown, question=question)


@functools.lru_cache(maxsize=4)
def _search(questions: tuple[str, ...], embedder: str, k: int) -> dspy.Embeddings:
    model = dspy.Embedder(embedder or _bundled)
    return dspy.Embeddings(list(questions), model, k=min(k, len(questions)))


def _bundled(texts: list[str]) -> Vectors:
    return open_embedder().passages(texts)
