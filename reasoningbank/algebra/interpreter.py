"""Running a program: arguments before operations, scopes by blocks, budgets all along."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from reasoningbank.algebra.contract import Block, LimitsOf, RuntimeOf
from reasoningbank.algebra.faults import located
from reasoningbank.algebra.nodes import Call
from reasoningbank.algebra.program import MOST_DEPTH, Program, read_program
from reasoningbank.algebra.scope import Scope
from reasoningbank.algebra.values import Stream, Table, Value, is_term, kept
from reasoningbank.errors import BudgetError, ReasoningBankError, UsageError

__all__ = ["run_program"]


def run_program(
    program: Program | Any, runtime: RuntimeOf, variables: Mapping[str, Value] | None = None
) -> Value:
    """Run a program.

    Args:
        program: A program that was read, or JSON data, which is read first.
        runtime: What reaches out of the process; one a run.
        variables: Values of variables that are given from outside (``$name``).

    Returns:
        What the operation yields; of a list of operations, the list of what each yields. A
        ForEach at the end runs while its results are read: they are a `Stream`, to be read once.

    Raises:
        ProgramError: The program, or a value in it, is at fault.
        BudgetError: A limit of the runtime is reached.
        ReasoningBankError: An operation failed; `where` begins with its JSON path.
    """
    given = dict(variables or {})
    ready = program if isinstance(program, Program) else read_program(program, given)
    lacking = sorted(ready.variables - set(given))
    if lacking:
        raise UsageError(f"the variable ${lacking[0]} is not given", hint="give it with --var")
    scope = Scope()
    for name, value in given.items():
        scope.set(name, kept(value))
    run = _Evaluation(runtime, "$", scope, _Budget(runtime.limits))
    if ready.block.single:
        return ready.block.nodes[0].value(run)
    return Stream(node.value(run) for node in ready.block.nodes)


@dataclass
class _Budget:
    limits: LimitsOf
    started: float = field(default_factory=time.monotonic)
    rows: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def check(self, depth: int) -> None:
        most = MOST_DEPTH if self.limits.depth is None else self.limits.depth
        if depth > most:
            hint = "set parts of the program with Variable first"
            raise BudgetError(f"more than {most} operations in one another", hint=hint)
        seconds = self.limits.seconds
        if seconds is not None and time.monotonic() - self.started > seconds:
            raise BudgetError(f"the program has run for more than {seconds:g} s")

    def count(self) -> None:
        with self.lock:
            self.rows += 1
        most = self.limits.rows
        if most is not None and self.rows > most:
            hint = "put a LIMIT into its query"
            raise BudgetError(f"the program has gone through its {most} rows", hint=hint)


@dataclass(frozen=True)
class _Evaluation:
    runtime: RuntimeOf
    path: str
    scope: Scope
    budget: _Budget
    names: frozenset[str] = frozenset()
    endpoint: str = ""
    base: str | None = None
    depth: int = 0

    def call(self, call: Call) -> Value:
        inner = replace(self, path=call.path, depth=self.depth + 1)
        try:
            self.budget.check(inner.depth)
            values: dict[str, Any] = {}
            around = inner
            for name, argument in call.args.items():
                if isinstance(argument, Block):
                    values[name] = argument
                    continue
                told = call.names if name == call.kind.goes_through else inner.names
                value = argument.value(replace(around, names=told))
                if value is None and not call.kind.model_fields[name].is_required():
                    continue  # an unbound variable leaves an optional argument out
                values[name] = value
                around = _knowing(around, call, name, value)
            made = call.kind.of(values, call.path)
            return _watched(made.run(inner), call.path)
        except ReasoningBankError as error:
            located(error, call.path)
            raise

    def block(self, block: Block, scope: Scope) -> Value:
        inner = replace(self, scope=scope, names=frozenset(), endpoint="")
        if block.single:
            return kept(block.nodes[0].value(inner))
        return [kept(node.value(inner)) for node in block.nodes]

    def counted(self, items: Iterable[Value]) -> Iterator[Value]:
        for item in items:
            self.budget.count()
            self.budget.check(self.depth)
            yield item


def _knowing(run: _Evaluation, call: Call, name: str, value: Value) -> _Evaluation:
    """Tell the arguments that follow what they may depend on."""
    if is_term(value) and name == "endpoint":
        return replace(run, endpoint=str(value))
    if is_term(value) and name == call.kind.base_argument:
        return replace(run, base=str(value))
    return run


def _watched(value: Value, path: str) -> Value:
    """Give errors of what is read later the path of the call that yields it."""
    if isinstance(value, Stream):
        return Stream(_reading(value.items, path), value.columns)
    if isinstance(value, Table) and not isinstance(value.rows, list):
        return Table(value.vars, _reading(value.rows, path))
    return value


def _reading(items: Iterable[Any], path: str) -> Iterator[Any]:
    try:
        yield from items
    except ReasoningBankError as error:
        located(error, path)
        raise
