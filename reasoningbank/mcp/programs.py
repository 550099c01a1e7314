"""Running a Web Algebra program for a session, with long results behind a handle."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, cast

from pydantic import Field

from reasoningbank import algebra
from reasoningbank.algebra.operation import summary
from reasoningbank.errors import BudgetError, ReasoningBankError, ToolError
from reasoningbank.mcp.sessions import Session
from reasoningbank.sparql.terms import cut
from reasoningbank.tools.returns import MAX_CHARS, bounded_limit, brief_repr, fit, noted, size_of

#: Characters kept of one result; further items are only counted.
MAX_KEPT = 16_000_000
#: Items in one answer.
MAX_SHOWN = 50
#: Characters of one item, and of each piece of a long text.
MAX_ITEM = 4_000


@dataclass(frozen=True)
class ProgramResult:
    items: list[Any]
    total: int
    chars: int
    whole: Any
    kind: str

    @property
    def is_whole(self) -> bool:
        return self.total == len(self.items)

    def part(self, key: str, start: int = 0, limit: int = MAX_SHOWN) -> dict[str, Any]:
        """Return items from `start`, as many as one answer holds."""
        limit, lowered = bounded_limit("algebra_slice", limit, MAX_SHOWN)
        if start < 0 or start >= max(1, len(self.items)):
            raise ToolError(
                f"{key} has {len(self.items)} items, none from {brief_repr(start)}",
                hint="give a start from 0 to the number of items",
            )
        shown = fit([_short(item) for item in self.items[start : start + limit]])
        following = start + len(shown)
        notes = [lowered]
        if following < len(self.items):
            notes.append(f'next: algebra_slice("{key}", start={following})')
        if not self.is_whole:
            notes.append(f"only the first {len(self.items)} were kept; use a LIMIT in the query")
        answer = {"kind": self.kind, "total": self.total, "items": shown}
        return noted(answer | {"truncated": following < self.total}, notes)


def gather(value: algebra.Value) -> ProgramResult:
    """Read a result to its end; a program's last loop is lazy."""
    if isinstance(value, algebra.Stream):
        return _kept(map(algebra.to_json, value.items), "results")
    if isinstance(value, algebra.Table):
        rows = _kept(map(algebra.to_json, value.rows), "rows")
        whole = {"head": {"vars": list(value.vars)}, "results": {"bindings": rows.items}}
        return replace(rows, whole=whole)
    data = algebra.to_json(value)
    if isinstance(data, list):
        return _kept(data, "results")
    if isinstance(data, dict) and isinstance(data.get("@graph"), list):
        resources = _kept(data["@graph"], "resources of a JSON-LD document")
        return replace(resources, whole=data)
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    pieces = [text[at : at + MAX_ITEM] for at in range(0, len(text), MAX_ITEM)] or [""]
    return ProgramResult(pieces, len(pieces), len(text), data, "pieces of a text")


def _kept(items: Iterable[Any], kind: str) -> ProgramResult:
    """Keep the first items that fit, and count all."""
    kept: list[Any] = []
    total = chars = 0
    for item in items:
        total += 1
        size = size_of(item)
        if len(kept) == total - 1 and chars + size <= MAX_KEPT:
            kept.append(item)
            chars += size
    return ProgramResult(kept, total, chars, kept, kind)


def _short(item: Any) -> Any:
    text = json.dumps(item, ensure_ascii=False)
    return item if len(text) <= MAX_ITEM else cut(text, MAX_ITEM)


#: Operations that are explained at once, and characters of their reference.
MAX_EXPLAINED = 5
MAX_REFERENCE = 12_000
#: Mistakes of a program and writes of a run in one answer.
MAX_MISTAKES = 5
MAX_WRITES = 20
#: Characters of an error before the list of writes.
MAX_ERROR = 1_000
#: Characters of a planned write's body.
MAX_BODY = 500
DTYPE = "program"


Names = Annotated[list[str], Field(default_factory=list)]
Program = Annotated[Any, Field(json_schema_extra={"type": ["object", "array", "string"]})]
Variables = Annotated[dict[str, Any], Field(default_factory=dict)]


class ServerTools:
    """The tools that agents do not have, for one call; `texts.toml` describes them."""

    def __init__(self, session: Session, stop: threading.Event) -> None:
        self._session = session
        self._shared = session.shared
        self._prefixes = session.shared.settings.pack.prefixes
        self._stop = stop

    def algebra_operations(self, names: Names) -> dict[str, Any]:
        if not names:
            kinds = algebra.operations().values()
            lines = [f"{algebra.signature(kind)}: {summary(kind)}" for kind in kinds]
            note = "give names for their arguments and examples"
            return {"operations": lines, "prefixes": sorted(self._prefixes), "note": note}
        answer = {"reference": cut(algebra.reference(names[:MAX_EXPLAINED]), MAX_REFERENCE)}
        if left := names[MAX_EXPLAINED:]:
            answer["note"] = f"at most {MAX_EXPLAINED} at once; left out: {', '.join(left)}"
        return answer

    def algebra_validate(self, program: Program, variables: Variables) -> dict[str, Any]:
        data, given = _read(program, variables)
        wrong = algebra.mistakes(data, given, self._prefixes)
        if not wrong:
            ready = algebra.read_program(data, given, self._prefixes)
            return {"valid": True, "operations": list(ready.calls), "writes": ready.writes}
        shown = fit([one.to_json() for one in wrong[:MAX_SHOWN]])
        return {"valid": False, "mistakes": shown, "total": len(wrong)}

    def algebra_run(
        self, program: Program, variables: Variables, dry_run: bool = False
    ) -> dict[str, Any]:
        data, given = _read(program, variables)
        if wrong := algebra.mistakes(data, given, self._prefixes):
            shown = [str(one) for one in wrong[:MAX_MISTAKES]]
            more = [f"{len(wrong) - len(shown)} more mistakes"] if len(wrong) > len(shown) else []
            raise ToolError("; ".join([*shown, *more]), code="invalid-program")
        with self._runtime(dry_run) as runtime:
            try:
                ready = algebra.read_program(data, given, self._prefixes)
                going = cast(algebra.Runtime, _Stoppable(runtime, self._stop))
                outcome = gather(algebra.run_program(ready, going, given))
            except ReasoningBankError as error:
                writes = [f"{w.state}: {w.method} {w.url}" for w in runtime.writes]
                if not writes:
                    raise
                left = len(writes) - MAX_WRITES
                more = [f"and {left} more writes"] if left > 0 else []
                text = "; ".join([cut(str(error), MAX_ERROR), *writes[:MAX_WRITES], *more])
                raise ToolError(text, code=error.code) from error
            answer = self._answer(outcome) | {"requests": runtime.requests}
            if runtime.dry_run:
                planned = [asdict(w) | {"body": cut(w.body, MAX_BODY)} for w in runtime.planned]
                return answer | {"would_write": fit(planned), "writes_in_all": len(planned)}
            if sent := runtime.writes:
                done = [{"method": w.method, "url": w.url, "status": w.status} for w in sent]
                answer |= {"wrote": fit(done[:MAX_WRITES]), "writes_in_all": len(done)}
            return answer

    def algebra_slice(self, ref: str, start: int = 0, limit: int = MAX_SHOWN) -> dict[str, Any]:
        handle = self._session.store.ref(ref)
        outcome: ProgramResult = self._session.store.get(handle, DTYPE)
        return outcome.part(handle.key, start, limit)

    def ask(self, question: str) -> dict[str, Any]:
        return self._shared.asker.ask(self._session, question, self._stop)

    def _runtime(self, dry_run: bool) -> algebra.Runtime:
        settings, real = self._shared.settings, self._shared.stage.addresses
        endpoints = dict.fromkeys(public.rstrip("/") for public in real)
        return algebra.Runtime(
            allow_write=settings.allow_write,
            allow_read=[*endpoints, *settings.allow_write, *settings.allow_read],
            limits=settings.limits,
            addresses={**real, **settings.addresses},
            credentials=algebra.credentials_from(file) if (file := settings.credentials) else (),
            compose=self._compose if settings.lm else None,
            dry_run=dry_run,
        )

    def _compose(self, request: algebra.QueryRequest) -> str:
        return self._shared.asker.compose(request, self._stop)

    def _answer(self, outcome: ProgramResult) -> dict[str, Any]:
        small = outcome.is_whole and outcome.chars <= MAX_CHARS
        if small and size_of(outcome.whole) <= MAX_CHARS:
            return {"result": outcome.whole, "truncated": False}
        ref = self._session.store.put(
            outcome, dtype=DTYPE, rows=outcome.total, sz=outcome.chars, source="program"
        )
        return {"ref": ref.key, **outcome.part(ref.key)}


def _read(program: Any, variables: Mapping[str, Any]) -> tuple[Any, dict[str, algebra.Value]]:
    if not isinstance(program, str | dict | list):
        hint = "give a JSON object, a list of them, or the text of one"
        raise ToolError("not a program", where="program", hint=hint, code="bad-program")
    data = algebra.parse_program(program) if isinstance(program, str) else program
    return data, {name.removeprefix("$"): algebra.from_json(v) for name, v in variables.items()}


@dataclass
class _Stoppable:
    """A runtime that sends nothing after the call was cancelled."""

    _runtime: algebra.Runtime
    _stop: threading.Event

    def __getattr__(self, name: str) -> Any:
        if self._stop.is_set():
            raise BudgetError("the client cancelled the program")
        return getattr(self._runtime, name)
