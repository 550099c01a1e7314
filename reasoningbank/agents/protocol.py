"""The one protocol of all agents, `agent.solve(task, episode) -> Attempt`, and its budgets.

Budgets that affect verdicts count turns, calls and tokens; the limit in seconds only stops a
trial that hangs. What was done before a limit was reached is kept and judged.
"""

from __future__ import annotations

import functools
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from reasoningbank.corpus import Pack, Task
from reasoningbank.errors import (
    BudgetError,
    ReasoningBankError,
    ToolError,
    UsageError,
    invalid_data,
)
from reasoningbank.findings import Finding
from reasoningbank.sparql import EndpointConfig
from reasoningbank.trajectory import Recorder, Trajectory, Usage

if TYPE_CHECKING:
    import dspy

#: The fixed texts that agents read, by agent.
PROMPTS: Mapping[str, Mapping[str, str]] = tomllib.loads(
    Path(__file__).with_name("prompts.toml").read_text("utf-8")
)


class Budget(BaseModel):
    """Limits of one trial; None means no limit."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    iterations: int = Field(default=6, ge=1, le=100)  #: Turns of the agent's loop
    lm_calls: int | None = Field(default=12, ge=1)  #: Model calls, sub-calls included
    tool_calls: int | None = Field(default=40, ge=0)  #: Tool calls in total
    tool_calls_each: int | None = Field(default=None, ge=0)  #: Calls of any one tool
    tokens: int | None = Field(default=None, ge=1)  #: Tokens sent and generated
    seconds: float | None = Field(default=600.0, gt=0)  #: Wall-clock time; stops a trial that hangs
    dollars: float | None = Field(default=None, gt=0)  #: Cost by the model's price table


class Meter:
    """Counts what a trial consumes and raises when a budget is used up.

    The error's fields name the budget: `budget` (a field of `Budget`) and `limit`. `usage` returns
    what the models have consumed so far.
    """

    def __init__(self, budget: Budget, usage: Callable[[], Usage] = Usage) -> None:
        self.budget = budget
        self._usage = usage
        self._began = time.monotonic()
        self._tools: Counter[str] = Counter()
        self._iterations = 0
        self._lock = threading.Lock()

    def turn(self) -> None:
        """Count one turn that is about to begin."""
        self.check()
        self._iterations += 1

    def check(self) -> None:
        """Check that the model may be called once more."""
        usage, budget = self.usage(), self.budget
        if budget.dollars is not None and usage.unpriced:
            what = f"the budget of {budget.dollars:g} dollars cannot be enforced"
            raise BudgetError(
                f"{what}: a call has no known price",
                code="unknown-price",
                budget="dollars",
                limit=budget.dollars,
            )
        spent = {
            "lm_calls": usage.lm_calls + usage.cached_calls,
            "tokens": usage.tokens,
            "seconds": usage.seconds,
            "dollars": usage.dollars or 0.0,
        }
        for name, used in spent.items():
            limit = getattr(budget, name)
            if limit is not None and used >= limit:
                raise used_up(name, limit)

    def metered(self, tools: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
        """Return the tools with their calls counted, names and signatures kept."""
        return {name: self._metered(name, tool) for name, tool in tools.items()}

    def count(self, tool: str) -> None:
        """Count one call of a tool that is about to begin."""
        every, each = self.budget.tool_calls, self.budget.tool_calls_each

        def refuse(what: str, hint: str, **fields: Any) -> ToolError:
            return ToolError(f"the budget of {what} is used up", hint=hint, code="budget", **fields)

        with self._lock:
            if every is not None and self._tools.total() >= every:
                what, hint = f"{every} tool calls", "submit your best query now"
                raise refuse(what, hint, budget="tool_calls", limit=every)
            if each is not None and self._tools[tool] >= each:
                what, hint = f"{each} calls of {tool}", "use another tool or submit your query"
                raise refuse(what, hint, budget="tool_calls_each", limit=each, tool=tool)
            self._tools[tool] += 1

    def usage(self) -> Usage:
        """Return what the trial has consumed so far."""
        return replace(
            self._usage(),
            tool_calls=self._tools.total(),
            iterations=self._iterations,
            seconds=round(time.monotonic() - self._began, 3),
        )

    def _metered(self, name: str, tool: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(tool)
        def call(*args: Any, **kwargs: Any) -> Any:
            self.count(name)
            return tool(*args, **kwargs)

        return call


def used_up(budget: str, limit: float) -> BudgetError:
    """Return the error of a used-up budget, named as a field of `Budget`."""
    unit = budget.replace("lm_calls", "LM calls").replace("_", " ")
    what = f"the budget of {limit:g} {unit} is used up"
    return BudgetError(what, budget=budget, limit=limit)


#: submitted: the agent gave its query. fallback: its loop ended and a query was extracted.
#: exhausted: a budget ended it. refused: the model gave no query. error: the infrastructure
#: failed. bug: code failed, usually the agent's own. The last two are not judged.
AttemptStatus = Literal["submitted", "fallback", "exhausted", "refused", "error", "bug"]
#: Statuses of attempts that never count as the agent's answer.
UNJUDGED = ("error", "bug")


@dataclass(frozen=True)
class Attempt:
    """The result of an agent's work on a task."""

    sparql: str | None  #: The query it answers with; None if it gave none
    answer: str  #: Its answer in words, if it was asked for one
    status: AttemptStatus  #: How the attempt ended
    usage: Usage  #: What it consumed
    trajectory: Trajectory  #: What it did
    #: Why it did not end with a clean submission, e.g. the code ``budget`` with the fields
    #: ``budget`` (a field of `Budget`, or ``context_window``) and ``limit``.
    findings: tuple[Finding, ...] = ()

    @property
    def error(self) -> str:
        """The findings as one line."""
        return "; ".join(map(str, self.findings))

    @property
    def budget(self) -> str:
        """The budget that ended the attempt, as a field of `Budget`; empty if none did."""
        named = (str(one.fields["budget"]) for one in self.findings if "budget" in one.fields)
        return next(named, "") if self.status == "exhausted" else ""


@dataclass(frozen=True)
class FewShotExample:
    """A question and the query that answered it."""

    question: str  #: The question, as the agent would be asked it
    query: str  #: The query; the endpoint's own prefixes may be undeclared


@dataclass
class Episode:
    """Everything that one attempt may use."""

    endpoint: EndpointConfig  #: The endpoint the task asks about
    tools: Mapping[str, Callable[..., Any]]  #: What the agent may call, by name
    #: The model, with its temperature and seed; None for agents without one
    lm: dspy.BaseLM | None = None
    #: The same model for the extract step; a local server keeps that step's prompt in a slot of its
    #: own, so that it does not evict the cached prefix of the turns
    extractor: dspy.BaseLM | None = None
    recorder: Recorder = field(default_factory=Recorder)  #: Where events go
    meter: Meter = field(default_factory=lambda: Meter(Budget()))  #: Limits, and what is used
    context: str = ""  #: Memory context (layers L0 to L3) put before the question; may be empty
    sandbox: Callable[[], Any] | None = None  #: Makes the interpreter that the agent's code runs in
    callbacks: list[Any] = field(default_factory=list)  #: DSPy callbacks active during the attempt
    demonstrations: tuple[Demonstration, ...] = ()  #: Worked examples of turns, from the pack
    #: Answered questions, the nearest first, for agents that write a query at once
    examples: tuple[FewShotExample, ...] = ()
    #: Called with the agent's DSPy module before it runs, to give its predictors compiled
    #: instructions and demonstrations
    adopt: Callable[[Any], None] = lambda _: None
    #: The domain pack, for agents that retrieve its examples and follow its rules
    pack: Pack | None = None
    #: Ids of the pack's tasks of which no example may be shown
    hidden: frozenset[str] = frozenset()

    @property
    def budget(self) -> Budget:
        """Limits of the attempt."""
        return self.meter.budget

    def required_pack(self, agent: str) -> Pack:
        """Return the pack.

        Raises:
            UsageError: If there is none, and so neither examples nor rules.
        """
        if self.pack is None:
            raise UsageError(
                "needs a domain pack, for its examples and rules",
                where=f"agent {agent}",
                hint="run it over a pack, or choose direct, react or rlm",
                code="no-pack",
            )
        return self.pack


class Agent(Protocol):
    """A system that answers a question over an endpoint with a query."""

    uses_lm: bool  #: Whether it needs a model
    sees_gold: bool  #: Whether it is given the gold query; only the oracle is

    def solve(self, task: Task, episode: Episode) -> Attempt:
        """Answer the task's question.

        Raises:
            EndpointError: If the endpoint fails.
            ModelError: If the model cannot be reached.
        """
        ...


def conclude(
    episode: Episode,
    sparql: str | None,
    status: AttemptStatus,
    findings: Iterable[Finding | ReasoningBankError] = (),
) -> Attempt:
    """Return the attempt; without a query, use the last one that ran and had rows."""
    found = [one if isinstance(one, Finding) else one.finding for one in findings]
    if sparql is None:
        sparql = last_query_with_rows(episode.recorder.trajectory())
        if sparql is None and status != "exhausted":
            status = "refused"
            found = found or [Finding("no-query", "no query was submitted or could be extracted")]
        elif status == "submitted":
            status = "fallback"
    if sparql is not None:
        episode.recorder.add("submit", {"sparql": sparql, "status": status})
    usage, trajectory = episode.meter.usage(), episode.recorder.trajectory()
    return Attempt(sparql, "", status, usage, trajectory, tuple(found))


def last_query_with_rows(trajectory: Trajectory) -> str | None:
    """Return the last query that the agent ran and that had rows; None if there is none."""
    found: str | None = None
    calls = {e.index: e.data for e in trajectory.of("tool_call")}
    for event in trajectory.of("tool_result"):
        call = calls.get(event.parent if event.parent is not None else -1)
        ref = event.data.get("ref")
        if call is not None and call["tool"] == "sparql_query" and ref and ref["rows"]:
            found = str(trajectory.resolve(call["arguments"]).get("query") or "") or found
    return found


def failure_of(error: BaseException) -> Finding:
    """Return any exception as a finding; one that is not ours has the code ``unexpected``."""
    if isinstance(error, ReasoningBankError):
        return error.finding
    name = type(error).__name__
    lines = str(error).strip().splitlines()
    what = f"{name}: {lines[0][:300]}" if lines else name
    return Finding("unexpected", what, fields={"type": name})


_T = TypeVar("_T")


class Shown(BaseModel):
    """An example from a file, which has no other keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class CodeTurn(Shown):
    """One turn: the reason, the code, and what it printed."""

    reasoning: str
    code: str
    output: str = ""


class ToolCall(Shown):
    """One tool call: the reason, the tool with its arguments, and what it returned."""

    thought: str
    tool: str
    arguments: dict[str, Any] = {}
    observation: str = ""


class Demonstration(Shown):
    """A question that belongs to no corpus, answered by turns of code and by tool calls."""

    question: str
    turns: tuple[CodeTurn, ...]
    calls: tuple[ToolCall, ...] = ()


def load_demonstrations(path: Path) -> tuple[Demonstration, ...]:
    """Read demonstrations from a JSON file; a missing file holds none."""
    return read_json(path, tuple[Demonstration, ...]) or ()


def read_json(path: Path, kind: type[_T]) -> _T | None:
    """Read a JSON file of a kind that pydantic validates; None if it is missing."""
    if not path.is_file():
        return None
    try:
        return TypeAdapter(kind).validate_json(path.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot be read: {error}", where=str(path)) from error
    except ValidationError as error:
        raise invalid_data(error, str(path)) from error
