"""Feedback for an agent between its attempts at a training task."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence

from reasoningbank.corpus import Task
from reasoningbank.judge import ExecutionJudge, feedback
from reasoningbank.schema.links import paths_to
from reasoningbank.sparql import EntityLinker, SPARQLClient
from reasoningbank.sparql.terms import string_literal

AGAIN = """

You answered before with this query:
{query}
{feedback}
Write the right query."""
HINT = """

Write a query with the columns {columns}. {paths}"""
PATHS = "In the data, these triple patterns lead to the right rows:"
_STRING = re.compile(r'"([^"\\]+)"')


class Teacher:
    """Judges attempts at one training task, and says what the next one sees.

    It shows no row and no part of the gold query: what is wrong, as the execution judge sees it,
    and paths in the data from what the question names to the right rows. Small models repeat a
    query that they see, so every other note holds the columns and paths alone.
    """

    def __init__(
        self,
        judge: ExecutionJudge,
        client: SPARQLClient,
        task: Task,
        *,
        metric: str,
        linker: EntityLinker,
        explain: Callable[[str, bool], Sequence[str]],
    ) -> None:
        self._judge, self._client, self._task = judge, client, task
        # The same query is judged by `right`, and then by `note`.
        self._examine = functools.lru_cache(judge.examine)
        self._lenient, self._linker, self._explain = metric == "lenient", linker, explain
        self._paths: dict[str, tuple[str, ...]] = {}

    def right(self, query: str | None) -> bool:
        """Return whether a query is right."""
        verdict = self._examine(self._task, query or "").verdict
        return verdict.lenient if self._lenient else verdict.strict

    def note(self, number: int, query: str | None) -> str:
        """Return what an attempt after a wrong query sees."""
        query, prefixes = query or "", self._client.config.namespaces
        judgement = self._examine(self._task, query)
        starts = [one for found in self._linker.mentions(self._task.query) for one in found.names]
        # Words of the question that the query takes for text.
        texts = dict.fromkeys(_STRING.findall(query))
        starts += [string_literal(text) for text in texts if text in self._task.query]
        paths = [path for start in starts for path in self._from(start)]
        if self.hints(number) and paths:
            columns = " ".join(f"?{name}" for name in judgement.evidence.gold.variables)
            return HINT.format(columns=columns, paths="\n".join([PATHS, *paths]))
        lines = [*feedback(judgement, query, self._explain, prefixes, rows=False)]
        lines += [PATHS, *paths] if paths else []
        return AGAIN.format(query=query or "(none)", feedback="\n".join(lines))

    @staticmethod
    def hints(number: int) -> bool:
        """Return whether an attempt sees columns and paths alone, and no few-shot examples."""
        return number % 2 == 1

    def _from(self, start: str) -> tuple[str, ...]:
        if start not in self._paths:
            self._paths[start] = tuple(self._search(start))
        return self._paths[start]

    def _search(self, start: str) -> Iterator[str]:
        answer = self._judge.gold(self._task).answer
        if answer.form != "table":
            return
        for name in answer.variables:
            values = [one for one in answer.table[name].to_pylist() if one is not None]
            for path in paths_to(self._client, start, values):
                yield path.pattern(name, self._client.config.namespaces)
