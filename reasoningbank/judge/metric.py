"""Tasks as `dspy.Example`s, and the execution judge as a metric of DSPy.

The metric works in `dspy.Evaluate` and in all optimizers: it returns a number, and for `dspy.GEPA`,
which names the predictor that it asks about, also feedback made from the verdict's evidence.
"""

from __future__ import annotations

import contextlib
import functools
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import dspy

from reasoningbank.corpus import Pack, Task, load_pack, open_endpoint
from reasoningbank.judge.case import shown_row
from reasoningbank.judge.documents import DocumentChanges
from reasoningbank.judge.evidence import Evidence, Row
from reasoningbank.judge.execution import ExecutionJudge, Judgement
from reasoningbank.judge.gold import GoldStore
from reasoningbank.lm.reply import is_query, query_in
from reasoningbank.schema import Schema, explainer
from reasoningbank.sparql import SPARQLClient
from reasoningbank.sparql.tokens import is_update

#: Rows in the feedback of those that are missing, and of those that are wrong.
MAX_FEEDBACK_ROWS = 3

Score = Literal["strict", "lenient", "f1"]


def to_examples(tasks: Iterable[Task], inputs: Sequence[str] = ("question",)) -> list[dspy.Example]:
    """Return tasks as examples for DSPy.

    The fields are `question`, `sparql` (the gold query), `endpoint`, `task` (the id), `form`, `bag`
    and `ordered`.

    Args:
        tasks: The tasks of a corpus.
        inputs: The fields that a module is called with; the other ones are labels.

    Examples:
        >>> task = Task("t1", "Which taxa?", "ASK {}", "http://e/")
        >>> example = to_examples([task])[0]
        >>> example.inputs().toDict(), example.labels().sparql
        ({'question': 'Which taxa?'}, 'ASK {}')
    """
    return [
        dspy.Example(
            question=task.query,
            sparql=task.expected_sparql,
            endpoint=task.endpoint,
            task=task.id,
            form=task.form,
            bag=task.bag,
            ordered=task.ordered,
        ).with_inputs(*inputs)
        for task in tasks
    ]


class ExecutionMetric:
    """Scores a program's query by what it returns; `open_metric` makes one from a pack.

    An example needs `question` and the gold query `sparql`; see `to_examples`. The prediction's
    `sparql` may be a reply with sentences and code fences. An example whose gold is broken scores
    0. One query for one task is judged once. Safe to use from several threads.

    Args:
        judge: The judge of the tasks' endpoint.
        schema: Classes and properties of the endpoint, for the diagnosis in the feedback.
        score: Which score of the verdict is the metric: ``strict`` and ``lenient`` are 1 or 0.
    """

    def __init__(
        self, judge: ExecutionJudge, schema: Schema | None = None, score: Score = "strict"
    ) -> None:
        self._judge = judge
        self._score = score
        self._explain = explainer(judge.client, schema)
        self._examine = functools.lru_cache(1_000)(judge.examine)

    def __call__(
        self,
        example: dspy.Example,
        prediction: dspy.Prediction,
        trace: Any = None,
        pred_name: str | None = None,
        pred_trace: Any = None,
    ) -> float | dspy.Prediction:
        """Return the score, with `feedback` if a predictor is named.

        Raises:
            EndpointError: If the endpoint fails, so that nothing is known about the query.
        """
        query = _query_of(prediction)
        judgement = self._examine(_task_of(example), query)
        score = float(getattr(judgement.verdict, self._score))
        if pred_name is None:
            return score
        return dspy.Prediction(score=score, feedback=self._feedback(judgement, query))

    def _feedback(self, judgement: Judgement, query: str | None) -> str:
        verdict, evidence = judgement.verdict, judgement.evidence
        if verdict.status == "gold_defect":
            return f"The task is broken, whatever the query is: {verdict.reason}."
        if verdict.strict:
            return "Right: the query returns what was asked for."
        lines = [f"Wrong: {verdict.reason}."]
        if columns := " ".join(f"?{name}" for name in evidence.gold.variables):
            lines.append(f"The right answer has the columns {columns}; rows: {verdict.n_gold}.")
        lines += self._sample("Missing", evidence.missing, evidence.n_missing)
        lines += self._sample("Wrong or too many", evidence.surplus, evidence.n_surplus)
        if query is not None:
            lines += self._explain(query, verdict.status == "judged" and _is_empty(evidence))
        return "\n".join(lines)

    def _sample(self, title: str, rows: Sequence[Row], n: int) -> Iterator[str]:
        prefixes = self._judge.client.config.namespaces
        texts = [shown_row(row, prefixes) for row in rows[:MAX_FEEDBACK_ROWS]]
        if texts:
            yield f"{title}, {len(texts)} of {n} rows: {'; '.join(texts)}"


@contextlib.contextmanager
def open_metric(
    pack: str | Path | Pack, url: str | None = None, score: Score = "strict"
) -> Iterator[ExecutionMetric]:
    """Open a pack's endpoint and make its metric for the length of a block.

    Args:
        pack: The pack, its name or its folder.
        url: A running endpoint to query instead of the pack's own.
        score: See `ExecutionMetric`.

    Examples:
        >>> from reasoningbank.corpus import load_shacl_tasks
        >>> example = to_examples(load_shacl_tasks("uniprot"))[0]
        >>> with open_metric("uniprot") as metric:
        ...     metric(example, dspy.Prediction(sparql=example.sparql))
        1.0
    """
    loaded = pack if isinstance(pack, Pack) else load_pack(pack)
    with (
        open_endpoint(loaded, url) as config,
        SPARQLClient(config) as client,
        tempfile.TemporaryDirectory() as folder,
    ):
        golds = GoldStore(Path(folder), loaded.name)
        judge = ExecutionJudge(client, golds, documents=DocumentChanges.of(loaded))
        yield ExecutionMetric(judge, Schema.of(config, loaded.schema), score)


def _query_of(prediction: Any) -> str | None:
    """Return the query of a prediction, out of its code fence."""
    text = str(getattr(prediction, "sparql", None) or "").strip()
    if not text or is_query(text) or is_update(text):
        return text or None
    return query_in(text) or text


def _task_of(example: dspy.Example) -> Task:
    return Task(
        str(example.get("task") or example.question),
        example.question,
        example.sparql,
        example.get("endpoint") or "",
        form=example.get("form") or "SELECT",
        bag=bool(example.get("bag")),
        ordered=bool(example.get("ordered")),
    )


def _is_empty(evidence: Evidence) -> bool:
    """Return whether an answer holds nothing: no rows, false, or only zero counts."""
    shown = evidence.predicted
    return not shown.n or (shown.n == 1 and set(*shown.rows) <= {None, "0", "false"})
