"""The one protocol of all agents: `agent.solve(task, episode) -> Attempt`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from reasoningbank.agents.budget import Budget, Meter
from reasoningbank.corpus import Pack, Task
from reasoningbank.errors import ReasoningBankError, UsageError
from reasoningbank.findings import Finding
from reasoningbank.sparql import EndpointConfig
from reasoningbank.trajectory import Recorder, Trajectory, Usage

if TYPE_CHECKING:
    import dspy

#: submitted: the agent gave its query. fallback: its loop ended and a query was extracted.
#: exhausted: a budget ended it. refused: the model gave no query. error: the harness or the
#: infrastructure failed, which never counts as the agent's failure.
AttemptStatus = Literal["submitted", "fallback", "exhausted", "refused", "error"]


@dataclass(frozen=True)
class Attempt:
    """The result of an agent's work on a task.

    Attributes:
        sparql: The query it answers with; None if it gave none.
        answer: Its answer in words, if it was asked for one.
        status: How the attempt ended.
        usage: What it consumed.
        trajectory: What it did.
        findings: Why it did not end with a clean submission, e.g. the code ``budget`` with the
            fields ``budget`` (a field of `Budget`, or ``context_window``) and ``limit``.
    """

    sparql: str | None
    answer: str
    status: AttemptStatus
    usage: Usage
    trajectory: Trajectory
    findings: tuple[Finding, ...] = ()

    @property
    def error(self) -> str:
        """The findings as one line."""
        return "; ".join(map(str, self.findings))

    @property
    def budget(self) -> str:
        """The budget that ended the attempt, as a field of `Budget`; empty if none did."""
        if self.status != "exhausted":
            return ""
        return next(
            (str(one.fields["budget"]) for one in self.findings if "budget" in one.fields), ""
        )


@dataclass(frozen=True)
class FewShotExample:
    """A question and the query that answered it.

    Attributes:
        question: The question, as the agent would be asked it.
        query: The query; the endpoint's own prefixes may be undeclared.
    """

    question: str
    query: str


@dataclass
class Episode:
    """Everything that one attempt may use.

    Attributes:
        endpoint: The endpoint the task asks about.
        tools: What the agent may call, by name.
        lm: The model, with its temperature and seed; None for agents without one.
        extractor: The same model for the extract step; a local server keeps that step's prompt in
            a slot of its own, so that it does not evict the cached prefix of the turns.
        budget: Limits of the attempt.
        recorder: Where events go.
        meter: Counts against the budget.
        context: Memory context (layers L0 to L3) put before the question; may be empty.
        sandbox: Makes the interpreter that the agent's code runs in.
        callbacks: DSPy callbacks active during the attempt.
        demonstrations: Worked examples of turns, from the pack.
        examples: Answered questions, the nearest first, for agents that write a query at once.
        pack: The domain pack, for agents that retrieve its examples and follow its rules.
        hidden: Ids of the pack's tasks of which no example may be shown.
    """

    endpoint: EndpointConfig
    tools: Mapping[str, Callable[..., Any]]
    lm: dspy.BaseLM | None = None
    extractor: dspy.BaseLM | None = None
    budget: Budget = field(default_factory=Budget)
    recorder: Recorder = field(default_factory=Recorder)
    meter: Meter = field(default_factory=lambda: Meter(Budget()))
    context: str = ""
    sandbox: Callable[[], Any] | None = None
    callbacks: list[Any] = field(default_factory=list)
    demonstrations: tuple[Any, ...] = ()
    examples: tuple[FewShotExample, ...] = ()
    pack: Pack | None = None
    hidden: frozenset[str] = frozenset()

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
    """A system that answers a question over an endpoint with a query.

    Attributes:
        name: Name in experiment files and records.
        uses_lm: Whether it needs a model.
        sees_gold: Whether it is given the gold query; only the oracle is.
    """

    name: str
    uses_lm: bool
    sees_gold: bool

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
    return Attempt(
        sparql=sparql,
        answer="",
        status=status,
        usage=episode.meter.usage(),
        trajectory=episode.recorder.trajectory(),
        findings=tuple(found),
    )


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
    """Return any exception as a finding; one that is not ours has the code ``unexpected``.

    Examples:
        >>> str(failure_of(ValueError("first\\nsecond")))
        'ValueError: first'
    """
    if isinstance(error, ReasoningBankError):
        return error.finding
    name = type(error).__name__
    lines = str(error).strip().splitlines()
    what = f"{name}: {lines[0][:300]}" if lines else name
    return Finding("unexpected", what, fields={"type": name})
