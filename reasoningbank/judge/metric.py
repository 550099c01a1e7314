"""Tasks as `dspy.Example`s, and the execution judge as a metric of DSPy."""

from __future__ import annotations

import contextlib
import functools
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import dspy

from reasoningbank.corpus import Pack, Task, load_pack, open_endpoint
from reasoningbank.errors import UsageError
from reasoningbank.judge.case import shown_row
from reasoningbank.judge.documents import DocumentChanges
from reasoningbank.judge.execution import ExecutionJudge, Judgement
from reasoningbank.judge.gold import GoldStore
from reasoningbank.lm.reply import is_query, query_in
from reasoningbank.schema import Schema, explainer
from reasoningbank.sparql import SPARQLClient
from reasoningbank.sparql.tokens import is_update

#: Rows in the feedback of those that are missing, and of those that are wrong.
MAX_FEEDBACK_ROWS = 3
#: What the judge must know of a task besides its question and gold.
_FACTS = ("endpoint", "form", "bag", "ordered")

Score = Literal["strict", "lenient", "f1"]


def to_examples(tasks: Iterable[Task], inputs: Sequence[str] = ("question",)) -> list[dspy.Example]:
    """Return tasks as examples for DSPy, with the fields that a module is called with as `inputs`.

    The fields are `question`, `sparql` (the gold query), `task` (the id), `endpoint`, `form`, `bag`
    and `ordered`.

    Examples:
        >>> example = to_examples([Task("t1", "Which taxa?", "ASK {}", "http://e/")])[0]
        >>> example.inputs().toDict(), example.sparql
        ({'question': 'Which taxa?'}, 'ASK {}')
    """
    return [
        dspy.Example(
            question=task.query,
            sparql=task.expected_sparql,
            task=task.id,
            **{name: getattr(task, name) for name in _FACTS},
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
        if score not in get_args(Score):
            what = f"unknown score {score!r}; choose {', '.join(get_args(Score))}"
            raise UsageError(what, where="score", code="unknown-score")
        self._judge, self._score = judge, score
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
        """Return the score; for `dspy.GEPA`, which names a predictor, with `feedback`.

        Raises:
            EndpointError: If the endpoint fails, so that nothing is known about the query.
            UsageError: If the prediction is no empty one, and has no field `sparql`.
        """
        if prediction and not hasattr(prediction, "sparql"):
            # A score of 0 would hide it.
            what = f"a prediction has no field sparql: {' '.join(repr(prediction).split())[:80]}"
            raise UsageError(what, hint="return dspy.Prediction(sparql=…)", code="no-sparql-field")
        query = str(getattr(prediction, "sparql", None) or "").strip()
        if not is_query(query) and not is_update(query):
            query = query_in(query) or query
        facts = {name: example[name] for name in _FACTS if name in example}
        name = str(example.get("task") or example.question)
        task = Task(name, example.question, example.sparql, **{"endpoint": "", **facts})
        judgement = self._examine(task, query)
        score = float(getattr(judgement.verdict, self._score))
        if pred_name is None:
            return score
        said = feedback(judgement, query, self._explain, self._judge.client.config.namespaces)
        return dspy.Prediction(score=score, feedback="\n".join(said))


def feedback(
    judgement: Judgement,
    query: str,
    explain: Callable[[str, bool], Sequence[str]],
    prefixes: Mapping[str, str],
    *,
    rows: bool = True,
) -> Iterator[str]:
    """Yield in lines what is wrong with a judged query.

    Args:
        judgement: The verdict with its evidence.
        query: The query.
        explain: Explains a query; `reasoningbank.schema.explainer` makes one.
        prefixes: Prefixes of the endpoint.
        rows: Whether rows that are missing, or too many, are shown.
    """
    verdict, evidence = judgement.verdict, judgement.evidence
    if verdict.strict:
        yield "Right: the query returns what was asked for."
        return
    yield f"{'Wrong' if verdict.counts else 'The task is broken'}: {verdict.reason}."
    if columns := " ".join(f"?{name}" for name in evidence.gold.variables):
        yield f"The right answer has the columns {columns}; rows: {verdict.n_gold}."
    for title, some, n in (
        ("Missing", evidence.missing, evidence.n_missing),
        ("Wrong or too many", evidence.surplus, evidence.n_surplus),
    ):
        texts = [shown_row(row, prefixes) for row in some[:MAX_FEEDBACK_ROWS]]
        if texts and rows:
            yield f"{title}, {len(texts)} of {n} rows: {'; '.join(texts)}"
    shown = evidence.predicted
    # Nothing is also false, and a row of zero counts.
    nothing = not shown.n or (shown.n == 1 and set(*shown.rows) <= {None, "0", "false"})
    if query and verdict.counts:
        yield from explain(query, verdict.status == "judged" and nothing)


@contextlib.contextmanager
def open_metric(
    pack: str | Path | Pack, url: str | None = None, score: Score = "strict"
) -> Iterator[ExecutionMetric]:
    """Open a pack's endpoint, or the one at `url`, and make its metric for the length of a block.

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
