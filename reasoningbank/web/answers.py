"""Answering questions for the page: open solvers, steps as they happen, and the answer as data."""

from __future__ import annotations

import contextlib
import secrets
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from reasoningbank.agents.registry import AGENTS, asks_model
from reasoningbank.corpus import load_shacl_tasks
from reasoningbank.errors import BudgetError, UsageError
from reasoningbank.experiment.ask import (
    AskResult,
    EarlierQuestion,
    ShownStep,
    Solver,
    StepReader,
    open_solver,
    sentence_of,
)
from reasoningbank.experiment.memory_sources import Feedback, task_of_question, write_feedback
from reasoningbank.experiment.plan import hidden_tasks
from reasoningbank.lm import parse_name
from reasoningbank.memory.experience import Experience
from reasoningbank.nl2sparql.confidence import confidence_in
from reasoningbank.schema import explain_query
from reasoningbank.trajectory import Event, Usage

#: Called with the name of an event and its data.
Emit = Callable[[str, Mapping[str, Any]], None]

#: Earlier questions that a follow-up is rewritten from.
MOST_EARLIER = 8
#: Answers that can still be rated.
MOST_RATED = 200
#: Example questions of a pack, and characters of one.
MOST_EXAMPLES, MOST_EXAMPLE_CHARS = 8, 110


class Asked(BaseModel):
    """What answers (a pack or endpoint, an agent, its model, its memory), and what is asked."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    pack: str = Field(default="uniprot", max_length=500)
    url: str = Field(default="", max_length=2_000, pattern=r"^(https?://\S+)?$")
    agent: str = Field(default="rag", max_length=500)
    lm: str = Field(default="local", min_length=1, max_length=500)
    memory: str = Field(default="", max_length=500)
    question: str = Field(default="", max_length=2_000)
    sparql: str = Field(default="", max_length=100_000)
    earlier: tuple[EarlierQuestion, ...] = ()


def agents_of(default: Asked) -> list[str]:
    """Return the agents that readers may choose: the default, and those that see no gold query.

    Only who starts the server may name one of their own by its import path.
    """
    return list(dict.fromkeys((default.agent, *(name for name in AGENTS if name != "oracle"))))


@dataclass
class _Entry:
    solver: Solver
    close: Callable[[], None]
    users: int = 0


class Answers:
    """Answers questions, and keeps what people say of the answers in the folder `feedback`.

    Endpoint, model and memory are opened when a question needs them; the last ones stay open.
    """

    def __init__(
        self, feedback: Path, memory: Callable[[str], tuple[Path, str]], agents: Sequence[str]
    ) -> None:
        #: `memory` returns the path and the snapshot that a name stands for.
        self._feedback, self._memory, self._agents = feedback, memory, agents
        self._entries: dict[tuple[str, ...], _Entry] = {}
        self._opening = threading.Lock()
        # Questions wait for each other: models and sandboxes share this machine.
        self._asking = threading.Lock()
        self._given: dict[str, Feedback] = {}
        self._no_pack = tempfile.TemporaryDirectory(prefix="reasoningbank-")

    def close(self) -> None:
        for entry in self._entries.values():
            entry.close()
        self._no_pack.cleanup()

    def ask(self, asked: Asked, emit: Emit, stop: threading.Event) -> dict[str, Any]:
        """Answer a question: emit notices and steps, and return the answer."""
        read = StepReader()

        def check(event: Event | None = None) -> None:
            if stop.is_set():
                raise BudgetError("the question was stopped", code="stopped")
            if event is not None and (step := read(event)) is not None:
                emit("step", {**asdict(step), "at": round(event.at + event.seconds, 1)})

        def notice(text: str) -> None:
            emit("notice", {"text": text})

        if self._asking.locked():
            notice("waiting for another question …")
        with self._asking:
            # Who waited may have left, and nothing is opened for them.
            check()
            with self._using(asked, notice) as solver:
                notice("thinking …")
                rewriting = Usage()
                if asked.earlier and asks_model(asked.agent):
                    earlier = asked.earlier[-MOST_EARLIER:]
                    question, rewriting = solver.stand_alone(asked.question, earlier)
                    asked = asked.model_copy(update={"question": question})
                    check()
                    step = ShownStep("follow-up", f"understood as: {question}")
                    emit("step", {**asdict(step), "at": round(rewriting.seconds, 1)})
                result = solver.ask(asked.question, check)
                usage = result.attempt.usage + rewriting
                result = replace(result, attempt=replace(result.attempt, usage=usage))
                check()
                number = secrets.token_hex(6)
                self._given[number] = _unrated(number, asked, solver, result)
                while len(self._given) > MOST_RATED:
                    self._given.pop(next(iter(self._given)))
                return {"id": number, "question": asked.question, **_answer(solver, result)}

    def run(self, asked: Asked) -> dict[str, Any]:
        """Run a query that a person wrote, and return what the page shows of it."""
        with self._using(asked, lambda _: None) as solver:
            return _table(solver, asked.sparql, *solver.rows(asked.sparql))

    def rate(self, number: str, good: bool) -> Path:
        """Keep a verdict on an answer, and return its file."""
        given = self._given.get(number)
        if given is None:
            hint = "ask the question again"
            raise UsageError("this answer is no longer known", hint=hint, code="unknown-answer")
        experience = replace(given.experience, success=good)
        return write_feedback(self._feedback, replace(given, experience=experience))

    @contextlib.contextmanager
    def _using(self, asked: Asked, notice: Callable[[str], None]) -> Iterator[Solver]:
        if asked.agent not in self._agents:
            hint = f"choose {', '.join(self._agents)}"
            raise UsageError(f"unknown agent {asked.agent!r}", hint=hint, code="unknown-agent")
        if not asked.pack and not asked.url:
            hint = "choose a pack, or give the address of an endpoint"
            raise UsageError("neither a pack nor an endpoint", hint=hint, code="no-endpoint")
        key = (asked.pack, asked.url, asked.lm, asked.memory)
        with self._opening:
            if key not in self._entries:
                # One model at a time fits the memory of a laptop.
                for idle in [key for key, entry in self._entries.items() if not entry.users]:
                    self._entries.pop(idle).close()
                self._entries[key] = self._opened(asked, notice)
            entry = self._entries[key]
            entry.users += 1
        try:
            arm = entry.solver.arm.model_copy(update={"agent": asked.agent})
            yield replace(entry.solver, arm=arm)
        finally:
            with self._opening:
                entry.users -= 1

    def _opened(self, asked: Asked, notice: Callable[[str], None]) -> _Entry:
        memory, snapshot = self._memory(asked.memory) if asked.memory else (None, "")
        opening = open_solver(
            asked.agent,
            pack=asked.pack or self._no_pack.name,
            lm=asked.lm,
            url=asked.url or None,
            memory=memory,
            snapshot=snapshot,
            on_notice=notice,
        )
        stack = contextlib.ExitStack()
        return _Entry(stack.enter_context(opening), stack.close)


def example_questions(pack: str) -> list[str]:
    """Return short questions of a pack that an agent may be shown, from different groups."""
    corpus = load_shacl_tasks(pack)
    hidden = hidden_tasks(corpus, ())
    short = [t for t in corpus if t.id not in hidden and len(t.query) <= MOST_EXAMPLE_CHARS]
    found = list({task.group or task.id: task.query for task in reversed(short)}.values())
    return found[:: max(1, len(found) // MOST_EXAMPLES)][:MOST_EXAMPLES]


def _table(solver: Solver, sparql: str, rows: Sequence[Any], note: str) -> dict[str, Any]:
    """Return what a query returned, and what speaks against it."""
    context, total = solver.context, getattr(rows, "total", None)
    found = explain_query(sparql, context.client, context.schema, empty=total == 0)
    known = context.endpoint.namespaces
    used = {str(value).partition(":")[0] for row in rows for value in row.values()}
    # The note of rows that came is written for agents, who page with tools.
    failed = note if total is None else ""
    return {
        "sparql": sparql,
        "columns": list(dict.fromkeys(name for row in rows for name in row)),
        "rows": list(rows),
        "total": total,
        "prefixes": {prefix: known[prefix] for prefix in used if prefix in known},
        "sentence": failed or sentence_of(rows, total or 0),
        "findings": [{"code": one.code, "text": str(one)} for one in found],
    }


def _answer(solver: Solver, result: AskResult) -> dict[str, Any]:
    attempt, usage = result.attempt, result.attempt.usage
    trust, is_free = confidence_in(attempt.trajectory), parse_name(solver.arm.lm).is_local
    table = _table(solver, result.sparql or "", result.rows, result.note)
    if result.sparql is None:
        said = f"The agent wrote no query ({attempt.error or attempt.status})."
        table |= {"sentence": said, "findings": []}
    table["findings"] += [{"code": one.code, "text": str(one)} for one in attempt.findings]
    return {
        **table,
        "status": attempt.status,
        "memory": list(result.memory),
        "confidence": trust.confidence if trust and trust.calibrated else None,
        "explanation": trust.explanation if trust else "",
        **{name: value for name, value in asdict(usage).items() if name != "dollars"},
        "dollars": usage.dollars or 0.0 if is_free or not usage.unpriced else None,
    }


def _unrated(number: str, asked: Asked, solver: Solver, result: AskResult) -> Feedback:
    task = task_of_question(asked.question, solver.corpus)
    total = getattr(result.rows, "total", None)
    experience = Experience(
        task=task.id,
        group=task.group,
        corpus=task.corpus,
        question=asked.question,
        sparql=result.sparql,
        success=False,
        judge="person",
        ran=total is not None,
        rows=total,
        trajectory=result.attempt.trajectory,
        trial=f"ask/{number}.0",
        model=asked.lm,
        time=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    return Feedback(number, asked.pack, asked.url, experience)
