"""The execution judge: a query is right if it returns what the gold returns.

An update is right if it leaves documents as the gold does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal

from reasoningbank.corpus import Task
from reasoningbank.errors import QueryError, QueryTimeoutError
from reasoningbank.findings import Finding
from reasoningbank.judge.answer import Answer, answer_of
from reasoningbank.judge.compare import Scores, contrast
from reasoningbank.judge.documents import DocumentChanges
from reasoningbank.judge.evidence import Evidence, evidence_of
from reasoningbank.judge.gold import Gold, GoldStore
from reasoningbank.sparql import SPARQLClient
from reasoningbank.sparql.tokens import is_update

VerdictStatus = Literal[
    "judged", "no_query", "query_error", "query_timeout", "wrong_form", "gold_defect"
]
#: Statuses of a verdict on a query that ran.
RAN: tuple[VerdictStatus, ...] = ("judged", "wrong_form")


@dataclass(frozen=True, kw_only=True)
class Verdict(Scores):
    """What the execution judge decides about a submitted query.

    The same answer always gets the same verdict, byte for byte.
    """

    #: `judged`, or why there was nothing to compare. All but `gold_defect` count.
    status: VerdictStatus = "judged"
    truncated: bool = False  #: Whether the judge's caps cut its result

    @property
    def counts(self) -> bool:
        """Whether it belongs in the denominator: always, unless the task itself is broken."""
        return self.status != "gold_defect"


def is_judged(verdict: Mapping[str, Any] | None) -> bool:
    """Return whether a recorded verdict counts, as `Verdict.counts`; a missing one does not."""
    return bool(verdict and verdict.get("status") != "gold_defect")


@dataclass(frozen=True)
class Judgement:
    """A verdict with its evidence, and the seconds of judging (and of computing a new gold)."""

    verdict: Verdict
    evidence: Evidence
    seconds: float


@dataclass(frozen=True, eq=False)
class ExecutionJudge:
    """Judges submitted queries by their results.

    Queries run without the caps that agents see: only these limits and the client's byte cap hold.
    """

    client: SPARQLClient  #: Speaks to the endpoint of the tasks
    golds: GoldStore  #: Keeps the gold results
    _: KW_ONLY
    #: Seconds a query may take. Golds get no more, so that a gold that an oracle could not submit
    #: is a defect of its task.
    timeout_s: float = 60.0
    max_rows: int = 5_000_000  #: Most rows that are read of a result
    #: Runs the updates of tasks that write; None if no task does
    documents: DocumentChanges | None = None

    def gold(self, task: Task) -> Gold:
        """Return the frozen gold of a task, computing it if need be; raises as `GoldStore.gold`."""
        return self.golds.gold(task, self._runner(task))

    def judge(self, task: Task, query: str | None) -> Verdict:
        """Judge the query submitted for a task; one that fails or takes too long scores 0.

        Raises:
            EndpointError: If the endpoint fails, so that nothing is known about the query.
            RecordError: If the gold cannot be kept.
        """
        return self.examine(task, query).verdict

    def examine(self, task: Task, query: str | None) -> Judgement:
        """Judge as `judge` does, and return the evidence too."""
        began = time.monotonic()
        verdict, evidence = self._examine(task, query)
        return Judgement(verdict, evidence, round(time.monotonic() - began, 4))

    def answer(self, query: str) -> Answer:
        """Run a query as it is judged, and return its result; of an update, what it changes.

        Raises:
            QueryError: If the query fails or takes too long.
            EndpointError: If the endpoint fails.
        """
        changes = self.documents is not None and is_update(query)
        return self._change(query) if changes else self._run(query)

    def _examine(self, task: Task, query: str | None) -> tuple[Verdict, Evidence]:
        gold = self.gold(task)
        if gold.defect is not None:
            return Verdict(status="gold_defect", findings=(gold.defect,)), Evidence()
        n_gold = gold.window.size(gold.answer.n_rows)

        def failed(status: VerdictStatus, finding: Finding) -> tuple[Verdict, Evidence]:
            verdict = Verdict(status=status, findings=(finding,), n_gold=n_gold)
            return verdict, evidence_of(gold, bag=task.bag, ordered=task.ordered)

        if query is None or not query.strip():
            return failed("no_query", Finding("no-query", "no query was submitted"))
        began = time.monotonic()
        try:
            answer = self._runner(task)(query)
        except QueryError as error:
            # The engine's own limit can be shorter than the judge's; its error says so.
            overran = time.monotonic() - began >= self.timeout_s
            late = overran or isinstance(error, QueryTimeoutError)
            code = "timed-out" if late else "query-error"
            facts = {**error.fields, "error": error.code}
            finding = replace(error.finding, code=code, fields=facts)
            return failed("query_timeout" if late else "query_error", finding)
        found = contrast(
            gold.answer, answer, bag=task.bag, ordered=task.ordered, window=gold.window
        )
        evidence = evidence_of(gold, answer, found, bag=task.bag, ordered=task.ordered)
        return _verdict(found.comparison, gold, answer), evidence

    def _runner(self, task: Task) -> Callable[[str], Answer]:
        return self._change if task.form == "UPDATE" else self._run

    def _change(self, update: str) -> Answer:
        if self.documents is None:
            raise QueryError(
                "the pack has no documents that an update can change",
                hint="add [documents] to its pack.toml",
                code="no-documents",
            )
        return self.documents.answer(update, timeout_s=self.timeout_s)

    def _run(self, query: str) -> Answer:
        return answer_of(self.client.query(query, timeout_s=self.timeout_s, max_rows=self.max_rows))


def _verdict(found: Scores, gold: Gold, answer: Answer) -> Verdict:
    cut = Finding("result-truncated", "the result was cut at the judge's cap")
    notes = (cut if answer.truncated else None, gold.note)
    scores = replace(found, findings=(*found.findings, *filter(None, notes)))
    if answer.truncated:
        scores = replace(scores, strict=False, lenient=False)
    status: VerdictStatus = "judged" if answer.form == gold.answer.form else "wrong_form"
    return Verdict(**vars(scores), status=status, truncated=answer.truncated)
