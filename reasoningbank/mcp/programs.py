"""Running a whole program for a session: within limits, what is long behind a handle."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any, Literal

from rdflib import Graph

from reasoningbank.algebra import (
    Limits,
    Planned,
    Runtime,
    Sent,
    Table,
    from_json,
    mistakes,
    read_program,
)
from reasoningbank.algebra.addresses import credentials_from
from reasoningbank.algebra.program import run_program
from reasoningbank.algebra.source import parse_program
from reasoningbank.errors import BudgetError, ReasoningBankError, ToolError
from reasoningbank.mcp.desk import Desk
from reasoningbank.mcp.outcome import Outcome, gather
from reasoningbank.sparql.terms import cut
from reasoningbank.tools.bounds import MAX_CHARS, fit

__all__ = ["run", "show"]

#: Mistakes of a program and writes of a run that one answer tells.
MOST_MISTAKES = 5
MOST_WRITES = 20
#: Characters of an error line before what was written.
MOST_SAID = 1_000
#: Characters of a planned write's body.
MOST_BODY = 500
DTYPE = "program"


def run(desk: Desk, given: Mapping[str, Any], stop: threading.Event) -> dict[str, Any]:
    """Run a program and return its result, or a handle for it with its first items.

    Args:
        desk: The session's.
        given: ``program``, ``variables`` and ``dry_run``.
        stop: Once it is set, nothing more is sent.

    Raises:
        ReasoningBankError: The program is wrong or failed; the line begins with the JSON path,
            and ends with what was written before.
    """
    program = given["program"]
    data = parse_program(program) if isinstance(program, str) else program
    variables = {name.removeprefix("$"): from_json(v) for name, v in given["variables"].items()}
    if wrong := mistakes(data, variables):
        told = [str(one) for one in wrong[:MOST_MISTAKES]]
        more = [f"{len(wrong) - len(told)} more mistakes"] if len(wrong) > len(told) else []
        raise ToolError("; ".join([*told, *more]))
    with _runtime(desk, dry_run=given["dry_run"]) as runtime:
        try:
            ready = read_program(data, variables)
            outcome = gather(run_program(ready, _Stoppable(runtime, stop), variables))
        except ReasoningBankError as error:
            writes = [f"{w.state}: {w.method} {w.url}" for w in runtime.writes]
            if not writes:
                raise
            said = "; ".join([cut(str(error), MOST_SAID), *_some(writes)])
            raise ToolError(said) from error
        answer = _answer(desk, outcome) | {"requests": runtime.requests}
        if runtime.dry_run:
            planned = [_planned(one) for one in runtime.planned]
            return answer | {"would_write": fit(planned), "writes_in_all": len(planned)}
        if runtime.writes:
            done = [{"method": w.method, "url": w.url, "status": w.status} for w in runtime.writes]
            answer |= {"wrote": fit(done[:MOST_WRITES]), "writes_in_all": len(done)}
        return answer


def show(desk: Desk, given: Mapping[str, Any], _: threading.Event) -> dict[str, Any]:
    """Return some items of a program's long result.

    Raises:
        ToolError: There is no such handle, or there are no such items.
    """
    handle = desk.store.ref(given["ref"])
    outcome: Outcome = desk.store.get(handle, DTYPE)
    return outcome.part(handle.key, given["start"], given["limit"])


def _runtime(desk: Desk, *, dry_run: bool) -> Runtime:
    settings = desk.shared.settings
    real = desk.shared.opened.endpoint.reached
    endpoints = dict.fromkeys(public.rstrip("/") for public in real)
    limits = settings.limits
    return Runtime(
        allow_write=settings.allow_write,
        allow_read=[*endpoints, *settings.allow_write, *settings.allow_read],
        limits=Limits(requests=limits.requests, rows=limits.rows, seconds=limits.seconds),
        addresses={**real, **settings.addresses},
        credentials=credentials_from(settings.credentials) if settings.credentials else (),
        compose=(lambda *asked: desk.shared.asker().compose(*asked)) if settings.lm else None,
        dry_run=dry_run,
    )


def _answer(desk: Desk, outcome: Outcome) -> dict[str, Any]:
    if outcome.is_whole and outcome.chars <= MAX_CHARS:
        text = json.dumps(outcome.whole, ensure_ascii=False)
        if len(text) <= MAX_CHARS:
            return {"result": outcome.whole, "truncated": False}
    ref = desk.store.put(
        outcome, dtype=DTYPE, rows=outcome.total, sz=outcome.chars, source="program"
    )
    return {"ref": ref.key, **outcome.part(ref.key)}


def _some(writes: list[str]) -> list[str]:
    left = len(writes) - MOST_WRITES
    return [*writes[:MOST_WRITES], *([f"and {left} more writes"] if left > 0 else [])]


def _planned(one: Planned) -> dict[str, Any]:
    body = cut(one.body, MOST_BODY)
    return {"method": one.method, "url": one.url, "allowed": one.allowed, "body": body}


class _Stoppable:
    """A runtime that sends nothing more once the call was called off."""

    def __init__(self, runtime: Runtime, stop: threading.Event) -> None:
        self._runtime = runtime
        self._stop = stop

    @property
    def limits(self) -> Limits:
        return self._runtime.limits

    def get(self, url: str) -> Graph:
        return self._going.get(url)

    def send(self, method: Literal["PUT", "POST", "PATCH"], url: str, body: Graph | str) -> Sent:
        return self._going.send(method, url, body)

    def select(self, endpoint: str, query: str) -> Table:
        return self._going.select(endpoint, query)

    def graph(self, endpoint: str, query: str) -> Graph:
        return self._going.graph(endpoint, query)

    def ask(self, endpoint: str, query: str) -> bool:
        return self._going.ask(endpoint, query)

    def compose(self, question: str, endpoint: str, names: frozenset[str]) -> str:
        return self._going.compose(question, endpoint, names)

    def uuid(self, place: str) -> str:
        return self._going.uuid(place)

    @property
    def _going(self) -> Runtime:
        if self._stop.is_set():
            raise BudgetError("the client called the program off")
        return self._runtime
