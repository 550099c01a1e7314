"""Several attempts at one task, of which one is submitted: by agreement or by refinement.

The gold is used only where a teacher is given, and every agent can be sampled. Memory-aware
test-time scaling of ReasoningBank (arXiv 2509.25140, section 3.3); agreement by results instead of
texts as in execution-based self-consistency (arXiv 2203.11171).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from reasoningbank.agents import UNJUDGED, Attempt, Budget
from reasoningbank.corpus import Task
from reasoningbank.errors import EndpointError, QueryError
from reasoningbank.experiment.settings import SamplingSettings
from reasoningbank.judge import Answer, ExecutionJudge, compare, feedback
from reasoningbank.judge.case import shown_row
from reasoningbank.judge.evidence import sample_of
from reasoningbank.lm import STUCK_TEMPERATURE
from reasoningbank.schema.patterns import PatternSearch
from reasoningbank.sparql import EntityLinker, SPARQLClient
from reasoningbank.sparql.terms import string_literal
from reasoningbank.trajectory import Usage

#: Rows of a result that the next refinement sees.
_ROWS = 3
Explain = Callable[[str, bool], Sequence[Any]]
REFINE = """

You answered before with this query:
{query}
{outcome}
Correct it, or give it again if it already answers the question."""
AGAIN = """

You answered before with this query:
{query}
{feedback}
Write the right query."""
HINT = """

Write {form}."""
PATHS = "In the data, these triple patterns lead to the right rows, and to others{graph}:"
EXACT = "In the data, these triple patterns have exactly the right rows{graph}:"
COUNTED = "In the data, the right number is that of different ?each in these patterns{graph}:"
HOLDS = "In the data, these triple patterns are there, so the answer is true{graph}:"
NO_GRAPH = " (without GRAPH)"
_TAG = re.compile(r'"@([\w-]+)$')
_STRING = re.compile(r'"([^"\\]+)"')


@dataclass(frozen=True)
class Rollout:
    """One of several attempts at a task."""

    number: int
    attempt: Attempt
    answer: Answer | None = None
    failure: str = ""
    agreed: int = 0


@dataclass(frozen=True)
class Sampled:
    """The submitted attempt and the others, in their order."""

    chosen: Rollout
    others: tuple[Rollout, ...] = ()

    @functools.cached_property
    def attempt(self) -> Attempt:
        """The chosen attempt, with the usage of all of them."""
        whole = sum((one.attempt.usage for one in self.others), self.chosen.attempt.usage)
        return replace(self.chosen.attempt, usage=whole)


@dataclass
class Teacher:
    """Judges attempts at one training task, and says what the next one sees.

    It shows no row and no part of the gold query: what is wrong, as the execution judge sees it,
    and triple patterns in the data that lead to the right rows. Small models repeat what they see,
    so every other note holds the columns and patterns alone.
    """

    judge: ExecutionJudge
    client: SPARQLClient
    task: Task
    metric: str
    linker: EntityLinker
    explain: Explain
    #: Whether the last note should be seen without few-shot examples: its patterns are right, and
    #: examples of other queries only mislead.
    alone: bool = False

    def __post_init__(self) -> None:
        # The same query is judged by `right`, and then by `note`.
        self._examine = functools.lru_cache(self.judge.examine)
        self._search = functools.cache(self._found)

    def right(self, query: str | None) -> bool:
        """Return whether a query is right."""
        verdict = self._examine(self.task, query or "").verdict
        return verdict.lenient if self.metric == "lenient" else verdict.strict

    def note(self, number: int, query: str | None) -> str:
        """Return what an attempt after a wrong query sees."""
        query, prefixes = query or "", self.client.config.namespaces
        judgement = self._examine(self.task, query)
        # Texts that the question quotes, and words of it that the query takes for text.
        texts = [one for one in _STRING.findall(query) if one in self.task.query]
        texts = list(dict.fromkeys([*_STRING.findall(self.task.query), *texts]))
        head, where = self._search(*texts)
        lines = [head.format(graph=NO_GRAPH if "GRAPH" in query else ""), where] if where else []
        is_boolean = self.judge.gold(self.task).answer.form == "boolean"
        hints = number % 2 == 1 and (bool(where) or is_boolean)
        self.alone = hints and bool(where) and head != PATHS
        if hints:
            columns = " ".join(f"?{name}" for name in judgement.evidence.gold.variables)
            form = "an ASK query" if is_boolean else f"a query with the columns {columns}"
            return "\n".join([HINT.format(form=form), *lines])
        said = [*feedback(judgement, query, self.explain, prefixes, rows=False), *lines]
        return AGAIN.format(query=query or "(none)", feedback="\n".join(said))

    def _found(self, *texts: str) -> tuple[str, str]:
        """Return what is said of patterns, and their WHERE clause; empty if none are found."""
        gold = self.judge.gold(self.task)
        answer, is_boolean = gold.answer, gold.answer.form == "boolean"
        if answer.form == "graph" or not (answer.value if is_boolean else answer.variables):
            return PATHS, ""
        columns = answer.table.group_by(answer.variables).aggregate([]).to_pydict()
        if gold.window.is_slice:
            # The rows that LIMIT keeps.
            shown = self._examine(self.task, "").evidence.gold
            columns = dict(
                zip(shown.variables, map(list, zip(*shown.rows, strict=True)), strict=True)
            )
        tags = {
            tag for values in columns.values() for one in values for tag in _TAG.findall(one or "")
        }
        # A text that is quoted may be a resource's name: both are one mention.
        starts = {one.words: list(one.names) for one in self.linker.mentions(self.task.query)}
        for text in texts:
            known = starts.setdefault(text, [])
            known += [string_literal(text, tag) for tag in (None, *sorted(tags))]
        own, head, some = self.client.config, PATHS, None
        for config in (own, *own.federated):
            with nullcontext(self.client) if config is own else SPARQLClient(config) as client:
                search = PatternSearch(client, columns, [*starts.values()], self.task.query, texts)
                patterns, exact = (not is_boolean and search.found()) or (None, False)
                if is_boolean:
                    says, right = HOLDS, search.connected()
                else:
                    says, right = (EXACT, patterns) if exact else (COUNTED, search.counted())
            found = right or patterns
            if found and config is not own:
                found = replace(found, service=config.url)
            if right:
                head, some = says, found
                break
            some = some or found
        if some is None:
            return PATHS, ""
        where = f"WHERE {{ {some.text(own.namespaces)} }}"
        return head, f"{where} {some.order}".rstrip()


def rollout_seed(seed: int, number: int) -> int:
    """Return the seed of one of several attempts; the first has the trial's seed."""
    return seed + 1000 * number


def sample(
    settings: SamplingSettings,
    attempt: Callable[[int, str, Budget, float | None], Attempt],
    run: Callable[[str], Answer],
    *,
    budget: Budget,
    tokens: int | None = None,
    prefixes: Mapping[str, str] | None = None,
    explain: Explain | None = None,
    teacher: Teacher | None = None,
) -> Sampled:
    """Attempt a task several times and choose one attempt; with a teacher the first right one."""
    sequential, done = settings.kind == "sequential", list[Rollout]()
    for number in range(settings.k):
        spent = sum((one.attempt.usage for one in done), Usage())
        left = _left(budget, spent)
        if number and (left is None or (tokens is not None and spent.tokens >= tokens)):
            break
        note = ""
        if done and teacher:
            note = teacher.note(number, done[-1].attempt.sparql)
        elif done and sequential:
            note = _refinement(done[-1], prefixes or {}, explain)
        warm = STUCK_TEMPERATURE if note and _repeats(done) else None
        made = attempt(number, note, left or budget, warm)
        if made.status in UNJUDGED:
            return Sampled(Rollout(number, made), tuple(done))
        answer, failure = None, "no query was given"
        try:
            if made.sparql and made.sparql.strip():
                answer, failure = run(made.sparql), ""
        except QueryError as error:
            failure = str(error)
        except EndpointError as error:
            spoiled = replace(made, status="error", findings=(error.finding,))
            return Sampled(Rollout(number, spoiled), tuple(done))
        done.append(Rollout(number, made, answer, failure))
        if teacher:
            if teacher.right(made.sparql):
                return Sampled(done[-1], tuple(done[:-1]))
            continue
        settled = settings.kind == "retry" or (sequential and _repeats(done))
        if settled and _has_rows(done[-1]):
            break
    voted, parallel = _voted(done), settings.kind == "parallel"

    def rank(one: Rollout) -> tuple[bool, int, bool, int]:
        counts, later = (one.agreed, -1) if parallel else (one.answer is not None, 1)
        return _has_rows(one), counts, bool(one.attempt.sparql), later * one.number

    # The most frequent result, the first of those; or the last one with rows.
    best = max(voted, key=rank)
    return Sampled(best, tuple(one for one in voted if one is not best))


# Seconds are not shared, so that the number of attempts does not depend on the machine's load.
def _left(budget: Budget, spent: Usage) -> Budget | None:
    """Return what is left of a budget; None if a part of it is, or may be, used up."""
    if budget.dollars is not None and spent.unpriced:
        return None
    used = {
        "lm_calls": spent.lm_calls + spent.cached_calls,
        "tool_calls": spent.tool_calls,
        "tokens": spent.tokens,
        "dollars": spent.dollars or 0.0,
    }
    limits = {name: getattr(budget, name) for name in used}
    left = {name: max(0, limit - used[name]) for name, limit in limits.items() if limit is not None}
    # An agent can write a query without tool calls.
    if any(amount == 0 for name, amount in left.items() if name != "tool_calls"):
        return None
    return budget.model_copy(update=left)


def _voted(done: list[Rollout]) -> list[Rollout]:
    groups: list[tuple[Answer, list[int]]] = []
    for one in done:
        if one.answer is None:
            continue
        for first, numbers in groups:
            if compare(first, one.answer).strict:
                numbers.append(one.number)
                break
        else:
            groups.append((one.answer, [one.number]))
    agreed = {number: len(numbers) for _, numbers in groups for number in numbers}
    return [replace(one, agreed=agreed.get(one.number, 0)) for one in done]


def _has_rows(one: Rollout) -> bool:
    return one.answer is not None and not one.answer.is_empty


def _repeats(done: list[Rollout]) -> bool:
    queries = [" ".join((one.attempt.sparql or "").split()) for one in done[-2:]]
    return len(queries) == 2 and queries[0] == queries[1] != ""


def _refinement(last: Rollout, prefixes: Mapping[str, str], explain: Explain | None) -> str:
    """Return what a refinement sees of the last query and its result."""
    answer = last.answer
    if answer is None:
        outcome = f"It does not run: {last.failure}"
    elif answer.is_empty:
        outcome = "It runs and returns no rows."
    else:
        found = sample_of(answer)
        rows = [" | ".join(found.variables), *(shown_row(r, prefixes) for r in found.rows[:_ROWS])]
        more = f"the first of {found.n} rows" if found.n > _ROWS else "its rows"
        outcome = "\n".join([f"It runs; {more}:", *rows])
    if explain is not None and last.attempt.sparql:
        empty = answer is not None and answer.is_empty
        outcome = "\n".join([outcome, *map(str, explain(last.attempt.sparql, empty))])
    return REFINE.format(query=last.attempt.sparql or "(none)", outcome=outcome)
