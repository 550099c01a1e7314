"""One run of a program: its runtime and budgets, lexical scopes, and the evaluation of blocks."""

from __future__ import annotations

import threading
import time
from collections import ChainMap, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from reasoningbank.algebra.values import Value, kept
from reasoningbank.corpus.shacl import complete_prefixes
from reasoningbank.errors import BudgetError, UsageError

if TYPE_CHECKING:
    from reasoningbank.algebra.runtime import Runtime

#: Nesting of operations; deeper programs are rejected, since they would overflow the stack.
MOST_DEPTH = 64
Method = Literal["PUT", "POST", "PATCH"]
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Limits:
    """The budgets of a run; None is no limit."""

    #: HTTP requests, retries and redirects included; a query counts as one
    requests: int | None = 10_000
    #: Rows of one result, triples of one graph, and items of all loops together
    rows: int | None = 1_000_000
    seconds: float | None = 3_600.0  #: Wall time
    depth: int | None = 100  #: Nesting of operations
    #: Seconds that one exchange may take, connecting and reading included
    request_seconds: float = 60.0
    #: Seconds that all tries of one request may take together, pauses included
    wait_seconds: float = 180.0
    document_bytes: int = 64 * 1024 * 1024  #: Most bytes of one document
    #: Most bytes of the result of one query, which goes to disk if it is large
    result_bytes: int = 1024 * 1024 * 1024
    tries: int = 4  #: Most times that one request is sent

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if value is not None and not value > 0:
                raise UsageError("must be above 0", where=f"Limits.{one.name}", code="limits")


@dataclass(frozen=True)
class Sent:
    """The outcome of a write: the HTTP status (0 in a dry run) and the document."""

    status: int
    url: str


@dataclass(frozen=True)
class QueryRequest:
    """A question whose query a program leaves to a model."""

    question: str = ""  #: The question
    #: The endpoint that the query is sent to; empty if the program does not name it
    endpoint: str = ""
    #: Variables that the query must project if it is a SELECT
    columns: frozenset[str] = frozenset()
    form: str = ""  #: The form that the query must have; empty if any will do
    #: Queries that were written for it, each with what is wrong with it
    rejected: tuple[tuple[str, str], ...] = ()


def naming_columns(request: QueryRequest) -> str:
    """Return the question of a SPARQLString with the columns that its program reads."""
    wanted = ", ".join(f"?{name}" for name in sorted(request.columns))
    return request.question + (f" (Name the columns {wanted}.)" if wanted else "")


@dataclass(frozen=True)
class Block:
    """Operations that an operation runs by itself: one, or several in order."""

    nodes: tuple[Any, ...]
    single: bool


@dataclass
class RunBudget:
    """The rows, seconds and depth that a run has used; threads may share it."""

    limits: Limits
    started: float = field(default_factory=time.monotonic)
    rows: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def check(self, depth: int) -> None:
        """Raise BudgetError if the nesting is too deep or the time is used up."""
        limits = self.limits
        most = MOST_DEPTH if limits.depth is None else limits.depth
        if depth > most:
            hint = "set parts of the program with Variable first"
            what = f"operations are nested more than {most} deep"
            raise BudgetError(what, hint=hint, budget="depth", limit=most)
        if limits.seconds is not None and time.monotonic() - self.started > limits.seconds:
            what = f"the program has run for more than {limits.seconds:g} s"
            raise BudgetError(what, budget="seconds", limit=limits.seconds)

    def count(self) -> None:
        """Count an item of a loop."""
        with self.lock:
            self.rows += 1
        most = self.limits.rows
        if most is not None and self.rows > most:
            what = f"the program's loops have used up its {most} rows"
            raise BudgetError(what, hint="add a LIMIT to its query", budget="rows", limit=most)


@dataclass(frozen=True)
class Evaluation:
    """The context in which an operation runs."""

    runtime: Runtime
    path: str
    budget: RunBudget
    variables: ChainMap[str, Value]  #: Those of the block, inside those around it
    item: Value = None  #: The current item of the innermost ForEach
    columns: tuple[str, ...] | None = None  #: The variables that its rows may have
    rows: tuple[int, ...] = ()  #: The positions of the current items, of the outermost first
    #: What a query has to be that this operation's result is, or is put into
    wanted: QueryRequest = QueryRequest()
    base: str | None = None  #: The address against which relative IRIs of JSON-LD are resolved
    depth: int = 0
    #: Prefixes that queries use without declaring them, besides the well-known ones
    prefixes: Mapping[str, str] = field(default_factory=dict)

    def wanting(self, **changes: Any) -> Evaluation:
        return replace(self, wanted=replace(self.wanted, **changes))

    def declared(self, query: str) -> str:
        """Return a query that declares the program's prefixes that it uses."""
        return complete_prefixes(query, self.prefixes).text if self.prefixes else query

    def block(self, block: Block, **item: Any) -> Value:
        """Run a block in a scope of its own and return its result, read into memory."""
        variables = self.variables.new_child()
        inner = replace(self, variables=variables, wanted=QueryRequest(), **item)
        if block.single:
            return kept(block.nodes[0].value(inner))
        return [kept(node.value(inner)) for node in block.nodes]

    def counted(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield items, each counted against the run's budgets."""
        for item in items:
            self.budget.count()
            self.budget.check(self.depth)
            yield item


def in_order(
    work: Callable[[Item], Result], items: Iterable[Item], workers: int
) -> Iterator[Result]:
    """Yield the results for items in their order, computed by several threads."""
    if workers == 1:
        yield from map(work, items)
        return
    pool = ThreadPoolExecutor(workers, thread_name_prefix="foreach")
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            if any(one.done() and one.exception() is not None for one in waiting):
                break
            waiting.append(pool.submit(work, item))
            if len(waiting) >= workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
