"""The execution judge: a query is right when it returns what the gold returns.

An update, of an instruction that writes, is right when it leaves documents as the gold does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from reasoningbank.corpus import Task
from reasoningbank.errors import QueryError, QueryTimeoutError
from reasoningbank.judge.answer import Answer, answer_of
from reasoningbank.judge.compare import Comparison, Contrast, contrast
from reasoningbank.judge.documents import DocumentChanges
from reasoningbank.judge.evidence import Evidence, evidence_of
from reasoningbank.judge.gold import Gold, GoldStore
from reasoningbank.judge.sample import Sample, sample_of
from reasoningbank.sparql import SPARQLClient
from reasoningbank.sparql.tokens import is_update

__all__ = ["ExecutionJudge", "Judgement", "Verdict", "VerdictStatus"]

VerdictStatus = Literal[
    "judged", "no_query", "query_error", "query_timeout", "wrong_form", "gold_defect"
]


@dataclass(frozen=True)
class Verdict:
    """What the execution judge says of a submitted query.

    The same answer always gets the same verdict, byte for byte.

    Attributes:
        strict: Whether it returns the right answer and nothing besides: the headline.
        lenient: Whether it does when columns that add no rows are looked over.
        precision: Share of its rows that are right, in [0, 1].
        recall: Share of the right rows that it returns, in [0, 1].
        f1: Harmonic mean of the two, in [0, 1]; for a graph, of triples.
        status: `judged`, or why there was nothing to compare. All but `gold_defect` count.
        reason: What decided, in a line.
        n_gold: Rows of the right answer.
        n_predicted: Rows that the query returned, repeated ones counted as the task does.
        column_mapping: Its column for each gold column that has one.
        extra_columns: Its columns that were not asked for.
        truncated: Whether the caps of the judge cut its result.
    """

    strict: bool
    lenient: bool
    precision: float
    recall: float
    f1: float
    status: VerdictStatus
    reason: str
    n_gold: int = 0
    n_predicted: int = 0
    column_mapping: Mapping[str, str] = field(default_factory=dict)
    extra_columns: tuple[str, ...] = ()
    truncated: bool = False

    @property
    def counts(self) -> bool:
        """Whether it belongs in the denominator: always, unless the task itself is broken."""
        return self.status != "gold_defect"


@dataclass(frozen=True)
class Judgement:
    """A verdict with what it rests on.

    Attributes:
        verdict: What was decided.
        evidence: Rows of both answers, and rows that differ.
        seconds: How long judging took, computing the gold included where it was not frozen yet.
    """

    verdict: Verdict
    evidence: Evidence
    seconds: float


class ExecutionJudge:
    """Judges submitted queries by their results.

    Queries run without the caps that agents see, under these alone, and under the byte cap of
    the client.

    Args:
        client: Speaks to the endpoint of the tasks.
        golds: Keeps the gold results.
        timeout_s: Seconds a query may take. Golds get no more, so that a gold that an oracle
            could not submit is a defect of its task.
        max_rows: Most rows that are read of a result.
        documents: Runs the updates of tasks that write; None where no task does.
    """

    def __init__(
        self,
        client: SPARQLClient,
        golds: GoldStore,
        *,
        timeout_s: float = 60.0,
        max_rows: int = 5_000_000,
        documents: DocumentChanges | None = None,
    ) -> None:
        self._client = client
        self._golds = golds
        self._timeout_s = timeout_s
        self._max_rows = max_rows
        self._documents = documents

    def gold(self, task: Task) -> Gold:
        """Return the frozen gold of a task, computing it if need be.

        Raises:
            EndpointError: If the endpoint fails.
            RecordError: If the gold cannot be kept.
        """
        return self._golds.gold(task, self._runner(task))

    def judge(self, task: Task, query: str | None) -> Verdict:
        """Judge the query submitted for a task.

        Args:
            task: The task, with its gold query.
            query: The submitted query; None where there is none.

        Returns:
            The verdict. A query that fails or takes too long scores 0.

        Raises:
            EndpointError: If the endpoint fails: nothing can be said about the query.
            RecordError: If the gold cannot be kept.
        """
        return self.examine(task, query).verdict

    def examine(self, task: Task, query: str | None) -> Judgement:
        """Judge as `judge` does, and say what the verdict rests on.

        Raises:
            EndpointError: If the endpoint fails: nothing can be said about the query.
            RecordError: If the gold cannot be kept.
        """
        began = time.monotonic()
        verdict, evidence = self._examine(task, query)
        return Judgement(verdict, evidence, round(time.monotonic() - began, 4))

    def sample(self, query: str) -> Sample:
        """Run a query as it is judged, and return the first rows of its result.

        Raises:
            QueryError: If the query fails or takes too long.
            EndpointError: If the endpoint fails.
        """
        return sample_of(self.answer(query))

    def answer(self, query: str) -> Answer:
        """Run a query as it is judged, and return its result; of an update, what it changes.

        Raises:
            QueryError: If the query fails or takes too long.
            EndpointError: If the endpoint fails.
        """
        changes = self._documents is not None and is_update(query)
        return self._change(query) if changes else self._run(query)

    def _examine(self, task: Task, query: str | None) -> tuple[Verdict, Evidence]:
        gold = self.gold(task)
        if gold.defect:
            return _zero("gold_defect", gold.defect), Evidence()
        n_gold = gold.window.size(gold.answer.n_rows)
        if query is None or not query.strip():
            return _zero("no_query", "no query was submitted", n_gold), _evidence(gold, task)
        began = time.monotonic()
        try:
            answer = self._runner(task)(query)
        except QueryError as error:
            # The engine can have less patience than the judge; the error then says so.
            late = time.monotonic() - began >= self._timeout_s or isinstance(
                error, QueryTimeoutError
            )
            status: VerdictStatus = "query_timeout" if late else "query_error"
            return _zero(status, str(error), n_gold), _evidence(gold, task)
        found = contrast(
            gold.answer,
            answer,
            bag=task.bag,
            ordered=task.ordered,
            window=gold.window,
        )
        verdict = _verdict(found.comparison, gold, answer)
        return verdict, _evidence(gold, task, answer, found)

    def _runner(self, task: Task) -> Callable[[str], Answer]:
        return self._change if task.form == "UPDATE" else self._run

    def _change(self, update: str) -> Answer:
        if self._documents is None:
            hint = "write [documents] into its pack.toml"
            raise QueryError("the pack has no documents that an update can change", hint=hint)
        return self._documents.answer(update, timeout_s=self._timeout_s)

    def _run(self, query: str) -> Answer:
        return answer_of(
            self._client.query(query, timeout_s=self._timeout_s, max_rows=self._max_rows)
        )


def _evidence(
    gold: Gold, task: Task, answer: Answer | None = None, found: Contrast | None = None
) -> Evidence:
    return evidence_of(gold, answer, found, bag=task.bag, ordered=task.ordered)


def _verdict(found: Comparison, gold: Gold, answer: Answer) -> Verdict:
    notes = [found.reason]
    if answer.truncated:
        notes.append("the result was cut at the judge's cap")
    if gold.note:
        notes.append(gold.note)
    whole = not answer.truncated
    return Verdict(
        strict=found.strict and whole,
        lenient=found.lenient and whole,
        precision=found.precision,
        recall=found.recall,
        f1=found.f1,
        status="judged" if answer.form == gold.answer.form else "wrong_form",
        reason="; ".join(notes),
        n_gold=found.n_gold,
        n_predicted=found.n_predicted,
        column_mapping=dict(found.column_mapping),
        extra_columns=found.extra_columns,
        truncated=answer.truncated,
    )


def _zero(status: VerdictStatus, reason: str, n_gold: int = 0) -> Verdict:
    return Verdict(
        strict=False,
        lenient=False,
        precision=0.0,
        recall=0.0,
        f1=0.0,
        status=status,
        reason=reason,
        n_gold=n_gold,
    )
