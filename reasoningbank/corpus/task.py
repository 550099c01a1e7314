"""A task: one question over one endpoint, with the gold query that answers it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

__all__ = ["Complexity", "QueryForm", "Task"]

#: An UPDATE says what documents hold once the instruction was carried out.
QueryForm = Literal["SELECT", "ASK", "CONSTRUCT", "DESCRIBE", "UPDATE"]
Complexity = Literal["simple", "moderate", "complex"]


@dataclass(frozen=True)
class Task:
    """One competency question of a corpus.

    Attributes:
        id: Unique across the corpus, e.g. ``'121_proteins_and_diseases'``.
        query: The question in natural language (the seed calls it `query`).
        expected_sparql: The gold query, prefixes included; ``''`` in a blind task.
        endpoint: The public address of the endpoint the gold is written for.
        keywords: Free keywords of the example.
        complexity: How hard the gold is, by its features and not by its length.
        form: The query form of the gold.
        resource: The IRI of the example itself.
        federates_with: Addresses that the gold reaches with SERVICE.
        features: What makes the gold hard, e.g. ``('path', 'optional', 'aggregate')``.
        source_file: The file the example was read from, relative to the corpus.
        corpus: The name of the pack or folder.
        group: Tasks of one group share a template; splits and leakage guards keep it together.
        bag: Whether duplicate rows count when results are compared.
        ordered: Whether the question asks for an order.
        language: Language tag of the question.
    """

    id: str
    query: str
    expected_sparql: str
    endpoint: str
    keywords: tuple[str, ...] = ()
    complexity: Complexity = "simple"
    form: QueryForm = "SELECT"
    resource: str = ""
    federates_with: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    source_file: str = ""
    corpus: str = ""
    group: str = ""
    bag: bool = False
    ordered: bool = False
    language: str = field(default="en")

    def blind(self) -> Task:
        """Return the task as an agent may see it: without the gold and what is derived from it.

        Examples:
            >>> t = Task("t1", "Which taxa?", "SELECT * WHERE {}", "http://e/", ("taxon",))
            >>> t.blind().expected_sparql, t.blind().keywords
            ('', ())
        """
        return replace(
            self,
            expected_sparql="",
            keywords=(),
            complexity="simple",
            form="SELECT",
            federates_with=(),
            features=(),
            group="",
        )
