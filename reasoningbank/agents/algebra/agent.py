"""The agent that answers with a program: written, checked, planned, run."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from reasoningbank.agents.algebra.shown import shown_programs
from reasoningbank.agents.algebra.stage import Scene, Stage, open_stage
from reasoningbank.agents.algebra.writing import Writing
from reasoningbank.agents.direct import written_query
from reasoningbank.agents.protocol import Attempt, AttemptStatus, Episode, conclude
from reasoningbank.algebra import Program, operations, read_program, run_program
from reasoningbank.algebra.answers import as_query, is_empty
from reasoningbank.algebra.builtin.endpoints import ASKING
from reasoningbank.algebra.jsonld import PREFIXES
from reasoningbank.algebra.values import kept
from reasoningbank.corpus import Task
from reasoningbank.corpus.prefixes import complete_prefixes
from reasoningbank.errors import (
    BudgetError,
    ModelError,
    QueryError,
    ReasoningBankError,
    UsageError,
)
from reasoningbank.findings import Finding
from reasoningbank.sparql import EndpointConfig

__all__ = ["AlgebraAgent", "composer", "naming_columns"]

#: Characters of what a planned write sends, in the record.
_BODY = 2_000


@dataclass(frozen=True)
class _Outcome:
    """What running a program came to.

    Attributes:
        answer: The query or update that says it; None where there is none.
        problems: What was wrong.
    """

    answer: str | None
    problems: tuple[str, ...] = ()


@dataclass
class _Asking:
    """Has the model write a program's queries, and knows what ended that.

    Attributes:
        compose: Returns a query.
        ended: What ends the attempt: the model is gone, or a budget of the episode used up.
    """

    compose: Callable[[str, str, frozenset[str]], str]
    ended: BudgetError | ModelError | None = None

    def __call__(self, question: str, endpoint: str, names: frozenset[str]) -> str:
        if self.ended is not None:
            raise self.ended
        try:
            return self.compose(question, endpoint, names)
        except (BudgetError, ModelError) as error:
            self.ended = error
            raise


class AlgebraAgent:
    """Translates the question into a Web Algebra program, and answers with what it returned.

    A program is checked in full; what is wrong goes back to the model. A dry run tells what would
    be written, which is recorded as the plan, and only then it runs: on servers that stand for the
    public ones, with the documents of the pack as they were. A program that asks one query answers
    with it. Any other is answered with a query that holds its result, and one that writes with an
    update that says what documents hold then, so that judges treat all agents alike.

    Args:
        constrained: Whether the model's output is held to the JSON Schema of programs.
        max_repairs: How often a program that is wrong, or fails, is written again.
        operations: Names of the operations that the model is told, separated by commas; all where
            empty.

    Raises:
        UsageError: There is no such operation, or `max_repairs` is negative.
    """

    name = "algebra"
    uses_lm = True
    sees_gold = False

    def __init__(
        self, constrained: bool = True, max_repairs: int = 2, operations: str = ""
    ) -> None:
        if max_repairs < 0:
            raise UsageError("max_repairs is at least 0", where="agent algebra")
        self._constrained = constrained
        self._max_repairs = max_repairs
        self._names = _known(operations)

    def solve(self, task: Task, episode: Episode) -> Attempt:
        """Answer with the first program that runs and yields something, or the last that ran.

        Raises:
            ModelError: The model cannot be reached.
        """
        best: str | None = None
        problems: tuple[str, ...] = ()
        status: AttemptStatus = "fallback"
        try:
            with open_stage(episode.pack, episode.endpoint) as stage:
                writing = Writing(
                    episode,
                    task.query,
                    constrained=self._constrained,
                    names=self._names,
                    shown=shown_programs(episode.pack),
                )
                draft = writing.first()
                repairs = min(self._max_repairs, episode.budget.iterations - 1)
                for left in range(repairs, -1, -1):
                    problems = draft.problems
                    told = {"program": draft.text, "problems": list(problems)}
                    episode.recorder.add(
                        "step", {"step": "write", "constrained": writing.is_constrained, **told}
                    )
                    if not problems:
                        outcome = _carried_out(episode, stage, draft.program)
                        best, problems = outcome.answer or best, outcome.problems
                    if not problems:
                        status = "submitted"
                        break
                    if left:
                        draft = writing.mended(draft, problems)
        except BudgetError as spent:
            return conclude(episode, best, "exhausted", [spent])
        return conclude(episode, best, status, [Finding("invalid", one) for one in problems])


def naming_columns(question: str, names: Collection[str]) -> str:
    """Return the question of a SPARQLString with the columns that its program reads.

    Examples:
        >>> naming_columns("Which cities?", {"name", "city"})
        'Which cities? (Name the columns ?city, ?name.)'
    """
    wanted = ", ".join(f"?{name}" for name in sorted(names))
    return question + (f" (Name the columns {wanted}.)" if wanted else "")


def composer(episode: Episode) -> Callable[[str, str, frozenset[str]], str]:
    """Return what turns the question of a SPARQLString into a query, with the episode's model.

    The same question is asked once: a program that was planned runs with the query of its plan.
    It raises a BudgetError where a budget of the episode is used up.
    """

    @functools.cache
    def compose(question: str, endpoint: str, names: frozenset[str]) -> str:
        episode.meter.check()
        query = written_query(episode, naming_columns(question, names))
        if query is None:
            raise QueryError("the model wrote no query", where=question, hint="write it yourself")
        return complete_prefixes(query, episode.endpoint.prefixes).text

    return compose


def _known(text: str) -> tuple[str, ...]:
    names = tuple(filter(None, (name.strip() for name in text.split(","))))
    for name in names:
        if name not in operations():
            hint = "see `reasoningbank algebra ops`"
            raise UsageError(f"there is no operation {name!r}", where="agent algebra", hint=hint)
    return names


def _carried_out(episode: Episode, stage: Stage, data: Any) -> _Outcome:
    """Plan a program, run it, and say what came of it; what was written stays, where it failed.

    Raises:
        BudgetError: A budget of the episode is used up; what the program may do is its own affair.
        ModelError: The model cannot be reached.
    """
    program = read_program(data)
    asking = _Asking(composer(episode))
    if program.writes:
        _plan(episode, stage, program, asking)
    with stage.scene(compose=asking, record=functools.partial(_record, episode)) as scene:
        answer: str | None = None
        problems: tuple[str, ...]
        try:
            answer, problems = _answer(program, data, scene, stage.endpoint)
        except ReasoningBankError as error:
            if asking.ended is not None:
                raise asking.ended from None
            answer, problems = _left_behind(program, scene), (str(error),)
    said = {"step": "run", "answer": answer, "problems": list(problems)}
    episode.recorder.add("step", said)
    return _Outcome(answer or None, problems)


def _plan(episode: Episode, stage: Stage, program: Program, compose: Callable[..., str]) -> None:
    """Record what a program would write; a dry run can lack what a write would have made."""
    with stage.scene(compose=compose, dry_run=True) as scene:
        error = ""
        try:
            kept(run_program(program, scene.runtime))
        except ReasoningBankError as failure:
            error = str(failure)
        writes = [
            {"method": one.method, "url": one.url, "allowed": one.allowed, "body": one.body[:_BODY]}
            for one in scene.runtime.planned
        ]
    episode.recorder.add("step", {"step": "plan", "writes": writes, "error": error})


def _answer(
    program: Program, data: Any, scene: Scene, endpoint: EndpointConfig
) -> tuple[str, tuple[str, ...]]:
    """Run a program; return its answer, and what is odd about it."""
    # Reading a result is what runs a ForEach.
    result = kept(run_program(program, scene.runtime))
    if program.writes:
        update = scene.update()
        return update, () if update else ("the program ran, and no document was changed",)
    answer = _only_query(data, endpoint) or as_query(result, several=not program.block.single)
    if is_empty(result):
        hint = "check the names, and which way round the properties go"
        return answer, (f"the program ran, and its result is empty; {hint}",)
    return answer, ()


def _left_behind(program: Program, scene: Scene) -> str | None:
    return scene.update() or None if program.writes else None


def _only_query(data: Any, endpoint: EndpointConfig) -> str | None:
    """Return the query of a program that asks the task's endpoint and does nothing else."""
    if isinstance(data, list) and len(data) == 1:
        data = data[0]
    if not isinstance(data, Mapping) or data["@op"] not in ASKING:
        return None
    asked, query = data["args"]["endpoint"], data["args"]["query"]
    if not isinstance(asked, str) or not isinstance(query, str):
        return None
    if not endpoint.is_at(asked):
        return None
    # It ran with more prefixes than those of the pack.
    return complete_prefixes(query, PREFIXES).text


def _record(episode: Episode, event: Mapping[str, Any]) -> None:
    episode.recorder.add("step", {"step": "request", **event})
