"""Answering questions with a model; slow to import."""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reasoningbank.agents import Attempt
from reasoningbank.agents.registry import check_blind
from reasoningbank.algebra import QueryRequest
from reasoningbank.algebra.evaluation import naming_columns
from reasoningbank.errors import BudgetError, SetupError, ToolError, UsageError
from reasoningbank.experiment import Arm
from reasoningbank.experiment.ask import Solver
from reasoningbank.experiment.context import context_at
from reasoningbank.judge import GoldStore
from reasoningbank.lm import open_lm
from reasoningbank.mcp.sessions import MAX_QUESTION, Session, Settings
from reasoningbank.mcp.toolbox import shown
from reasoningbank.sparql import EndpointConfig
from reasoningbank.trajectory import Event

#: Seconds between checks whether a waiting question was cancelled.
_LOOK_S = 0.2


@dataclass(frozen=True)
class Asker:
    """An agent with its model, answering one question at a time."""

    solver: Solver
    lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(
        self, session: Session, question: str, stop: threading.Event | None = None
    ) -> dict[str, Any]:
        """Return the query for a question, a handle for its result, and the first rows."""
        attempt = self._attempt(question, stop)
        usage = attempt.usage
        answer: dict[str, Any] = {
            "source": self.solver.context.endpoint.source,
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
            ref = session.sparql.sparql_query(attempt.sparql or "")
            return answer | {"ref": ref.key, **shown(session.sparql.sparql_peek(ref))}
        except ToolError as error:
            return answer | {"rows": [], "note": f"the query does not run: {error}"}

    def compose(self, request: QueryRequest, stop: threading.Event | None = None) -> str:
        """Return a query for a question of a program."""
        own = self.solver.context.endpoint
        if request.endpoint and not own.is_at(request.endpoint):
            hint = f"write the query itself, or ask {own.url}"
            raise UsageError("not the server's endpoint", where=request.endpoint, hint=hint)
        form = f" (Answer with a {request.form} query.)" if request.form else ""
        wrong = "".join(f" (Not this, {why}: {query})" for query, why in request.rejected)
        return self._attempt(naming_columns(request) + form + wrong, stop).sparql or ""

    def _attempt(self, question: str, stop: threading.Event | None) -> Attempt:
        text = " ".join(question.split())
        if not text or len(text) > MAX_QUESTION:
            what = f"a question has 1 to {MAX_QUESTION} characters, this one has {len(text)}"
            raise ToolError(what, hint="ask in one or two sentences")
        task = self.solver.task(text)
        cancelled = (stop or threading.Event()).is_set

        def check() -> None:
            if cancelled():
                raise ToolError("the question was cancelled", hint="ask again")

        def watch(_: Event) -> None:
            if cancelled():
                raise BudgetError("the client cancelled the question")

        while not self.lock.acquire(timeout=_LOOK_S):
            check()
        try:
            check()
            attempt = self.solver.attempt(task, watch=watch)
        finally:
            self.lock.release()
        if attempt.sparql is None:
            what = f"the agent wrote no query ({attempt.error or attempt.status})"
            raise ToolError(what, hint="ask in other words, or explore with the sparql tools")
        return attempt


@contextlib.contextmanager
def open_asker(
    settings: Settings, endpoint: EndpointConfig, hidden: frozenset[str]
) -> Iterator[Asker]:
    if settings.lm is None:
        raise SetupError("the server has no model", hint="start it with --lm")
    check_blind(settings.agent)
    arm = Arm(name="ask", agent=settings.agent, lm=settings.lm)
    with (
        tempfile.TemporaryDirectory() as scratch,
        open_lm(settings.lm) as model,
        context_at(
            endpoint,
            settings.pack,
            GoldStore(Path(scratch), "none"),
            models={settings.lm: model},
            hidden=hidden,
        ) as world,
    ):
        yield Asker(Solver(world, settings.pack, arm, (), None))
