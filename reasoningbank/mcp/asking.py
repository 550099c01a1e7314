"""Answering questions with the model that the server was given: one question at a time."""

from __future__ import annotations

import contextlib
import tempfile
import threading
from pathlib import Path
from typing import Any

from reasoningbank.agents import Attempt, make_agent
from reasoningbank.agents.algebra import naming_columns
from reasoningbank.corpus import Task
from reasoningbank.errors import BudgetError, ModelError, SetupError, ToolError, UsageError
from reasoningbank.experiment import Arm, Experiment
from reasoningbank.experiment.context import context_at
from reasoningbank.experiment.trial import attempt_task
from reasoningbank.judge import GoldStore
from reasoningbank.lm import open_lm
from reasoningbank.mcp.desk import Desk
from reasoningbank.mcp.settings import Settings
from reasoningbank.mcp.shared import Opened
from reasoningbank.mcp.tool import shown
from reasoningbank.trajectory import Event

__all__ = ["Asker"]

#: Characters of a question.
MOST_QUESTION = 2_000
#: Seconds after which a question that waits looks whether it is still wanted.
_LOOK_S = 0.2


class Asker:
    """An agent with its model; one question at a time, since each costs.

    Args:
        settings: Which model and which agent.
        opened: The endpoint.
        hidden: Ids of the tasks whose examples no tool shows.

    Raises:
        UsageError: The agent cannot answer what has no gold.
        SetupError: The model cannot be opened.
    """

    def __init__(self, settings: Settings, opened: Opened, hidden: frozenset[str]) -> None:
        if settings.lm is None:
            raise SetupError("the server has no model", hint="start it with --lm")
        if make_agent(settings.agent).sees_gold:
            what = f"{settings.agent} answers only tasks that have a gold"
            raise UsageError(what, hint="choose rlm, react or direct")
        self._settings = settings
        self._arm = Arm(name="ask", agent=settings.agent, lm=settings.lm)
        self._experiment = Experiment(name="ask", pack=str(settings.pack.root), arms=(self._arm,))
        self._lock = threading.Lock()
        self._stack = contextlib.ExitStack()
        with contextlib.ExitStack() as stack:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            model = stack.enter_context(open_lm(settings.lm))
            self._world = stack.enter_context(
                context_at(
                    opened.endpoint,
                    settings.pack,
                    GoldStore(scratch, "none"),
                    models={settings.lm: model},
                    hidden=hidden,
                )
            )
            self._stack = stack.pop_all()

    def close(self) -> None:
        """Let the model go."""
        self._stack.close()

    def ask(self, desk: Desk, question: str, stop: threading.Event | None = None) -> dict[str, Any]:
        """Return the query that answers a question, a handle for its result, and the first rows.

        Args:
            desk: Where the handle is kept.
            question: The question.
            stop: Set when the client calls it off: it is not begun then, or ends with its next
                step, so that nobody pays for, or waits behind, an answer that nobody reads.

        Raises:
            ToolError: The question is none, was called off, or no query came out.
            ModelError: The model failed.
        """
        attempt = self._attempt(question, stop)
        usage = attempt.usage
        answer: dict[str, Any] = {
            "source": self._world.endpoint.source,
            "sparql": attempt.sparql,
            "status": attempt.status,
            "cost": {
                "turns": usage.iterations,
                "tool_calls": usage.tool_calls,
                "tokens": usage.tokens,
                "seconds": round(usage.seconds, 1),
                "dollars": usage.dollars,
            },
        }
        try:
            ref = desk.sparql.sparql_query(attempt.sparql or "")
            return answer | {"ref": ref.key, **shown(desk.sparql.sparql_peek(ref))}
        except ToolError as error:
            return answer | {"rows": [], "note": f"the query does not run: {error}"}

    def compose(self, question: str, endpoint: str, names: frozenset[str]) -> str:
        """Return a query that answers a question and projects the names, for a program.

        Raises:
            UsageError: The endpoint is another one than the server's.
            ToolError: No query came out.
            ModelError: The model failed.
        """
        own = self._world.endpoint
        if endpoint and not own.is_at(endpoint):
            hint = f"write the query itself, or ask {own.url}"
            raise UsageError("the model knows another endpoint", where=endpoint, hint=hint)
        return self._attempt(naming_columns(question, names)).sparql or ""

    def _attempt(self, question: str, stop: threading.Event | None = None) -> Attempt:
        text = " ".join(question.split())
        if not text or len(text) > MOST_QUESTION:
            what = f"a question has 1 to {MOST_QUESTION} characters, and this has {len(text)}"
            raise ToolError(what, hint="ask in one or two sentences")
        task = Task("ask", text, "", self._world.endpoint.url)

        called_off = (stop or threading.Event()).is_set

        def check() -> None:
            if called_off():
                raise ToolError("the question was called off", hint="ask it again")

        def watch(_: Event) -> None:
            if called_off():
                raise BudgetError("the client called the question off")

        while not self._lock.acquire(timeout=_LOOK_S):
            check()
        try:
            check()
            attempt = attempt_task(self._world, self._experiment, self._arm, task, watch=watch)
        finally:
            self._lock.release()
        if attempt.status == "error":
            raise ModelError(attempt.error)
        if attempt.sparql is None:
            what = f"no query came out ({attempt.error or attempt.status})"
            raise ToolError(what, hint="ask in other words, or explore with the sparql tools")
        return attempt
