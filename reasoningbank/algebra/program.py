"""Reading a program: JSON is checked in full, and becomes a tree that can be run.

Every mistake is found before anything runs, and named by its JSON path: unknown operations,
missing, unknown or ill-typed arguments, variables that nothing sets, queries of a wrong form.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reasoningbank.algebra.arguments import YIELDED, Kind
from reasoningbank.algebra.contract import Block, Node
from reasoningbank.algebra.faults import ProgramError, json_path, located, one_of
from reasoningbank.algebra.nodes import Call
from reasoningbank.algebra.operation import Operation, kind_of, operation
from reasoningbank.algebra.reading import Reader
from reasoningbank.algebra.visible import Visible
from reasoningbank.errors import QueryError

__all__ = ["MOST_DEPTH", "Program", "mistakes", "read_program"]

#: Operations inside one another; more is a mistake, and would overflow the stack.
MOST_DEPTH = 64


@dataclass(frozen=True)
class Program:
    """A program that may run.

    Attributes:
        block: Its operations.
        variables: The variables that the caller has to give.
        calls: The operations in it by name, in the order they stand.
        writes: Whether it can change documents.
    """

    block: Block
    variables: frozenset[str] = frozenset()
    calls: tuple[str, ...] = ()
    writes: bool = False


def read_program(data: Any, variables: Iterable[str] = ()) -> Program:
    """Check a program and make it ready to run.

    Args:
        data: The program as JSON data: an operation, or a list of them.
        variables: Names of variables that are given from outside.

    Raises:
        ProgramError: Its first mistake, at its JSON path.

    Examples:
        >>> read_program({"@op": "STRUUID"}).calls
        ('STRUUID',)
        >>> read_program({"@op": "Str", "args": {"inptu": "x"}})
        Traceback (most recent call last):
        ...
        reasoningbank.algebra.faults.ProgramError: $.args: Str has no argument 'inptu'; ...
    """
    program, wrong = _checked(data, variables)
    if wrong:
        raise wrong[0]
    return program


def mistakes(data: Any, variables: Iterable[str] = ()) -> tuple[ProgramError, ...]:
    """Return all mistakes of a program that can be found without running it.

    Examples:
        >>> for mistake in mistakes([{"@op": "Gte"}, {"@op": "GET", "args": {"url": 5}}]):
        ...     print(mistake)
        $[0]: there is no operation 'Gte'; did you mean 'GET'
        $[1].args.url: '5' is no URL; write it in full, percent-encoded
    """
    return _checked(data, variables)[1]


def _checked(data: Any, variables: Iterable[str]) -> tuple[Program, tuple[ProgramError, ...]]:
    names = frozenset(variables)
    checker = _Checker()
    try:
        # Text that cannot be sent could not be written either, and would fail half-way.
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        what = "a string holds half of a character"
        return _refused(ProgramError(what, where="$", hint="write it whole"))
    except (TypeError, ValueError) as error:
        return _refused(ProgramError(f"this is no JSON: {error}", where="$"))
    except RecursionError:
        return _refused(_too_deep("$"))
    try:
        block = checker.block(data, "$", Visible(names))
    except RecursionError:
        return _refused(_too_deep("$"))
    calls = tuple(kind.op for kind in checker.calls)
    program = Program(block, names, calls, any(kind.writes for kind in checker.calls))
    return program, tuple(checker.wrong)


def _refused(wrong: ProgramError) -> tuple[Program, tuple[ProgramError, ...]]:
    return Program(Block("$", (), True)), (wrong,)


def _too_deep(path: str) -> ProgramError:
    hint = "set parts of it with Variable first"
    return ProgramError(f"more than {MOST_DEPTH} operations in one another", where=path, hint=hint)


@dataclass
class _Checker:
    wrong: list[ProgramError] = field(default_factory=list)
    calls: list[type[Operation]] = field(default_factory=list)

    def block(self, data: Any, path: str, visible: Visible) -> Block:
        """Read one operation or a list of them, each seeing the variables set before it."""
        nodes: list[Node] = []
        single = not isinstance(data, list)
        if data == []:
            self._refuse("expected an operation, got an empty list", path)
        for at, item in enumerate([data] if single else data):
            where = path if single else json_path(path, at)
            node = self.call(item, where, visible)
            if node is None:
                continue
            nodes.append(node)
            name = node.kind.sets(item.get("args", {}))
            if name:
                visible = visible.with_variable(name)
        return Block(path, tuple(nodes), single)

    def call(self, data: Any, path: str, visible: Visible) -> Call | None:
        """Read a call; None (and a mistake more) where it is none."""
        if not isinstance(data, Mapping) or "@op" not in data:
            hint = 'write {"@op": "NAME", "args": {…}}'
            self._refuse("expected an operation", path, hint)
            return None
        odd = sorted(key for key in data if key not in ("@op", "args"))
        if odd:
            hint = "put arguments into args"
            self._refuse(f"an operation has no member {odd[0]!r}", path, hint)
        given = data.get("args", {})
        if not isinstance(data["@op"], str) or not isinstance(given, Mapping):
            self._refuse("@op is a name and args an object", path)
            return None
        try:
            kind = operation(data["@op"])
        except ProgramError as error:
            self._keep(error, path)
            return None
        self.calls.append(kind)
        if visible.depth >= MOST_DEPTH:
            self._keep(_too_deep(path), path)
            return None
        return self._arguments(kind, given, path, visible)

    def _arguments(
        self, kind: type[Operation], given: Mapping[str, Any], path: str, visible: Visible
    ) -> Call:
        inner = visible.inside(based=kind.base_argument in given)
        visible.reads.update(kind.reads(given))
        self._named(kind, given, json_path(path, "args"))
        args: dict[str, Node | Block] = {}
        names: set[str] = set()
        for name, member in kind.model_fields.items():
            if name not in given:
                continue
            where = json_path(json_path(path, "args"), name)
            wanted = kind_of(member)
            if wanted.reading == "block":
                seen = inner
                if kind.goes_through:
                    seen = inner.of_items(_columns(given.get(kind.goes_through)))
                args[name] = self.block(given[name], where, seen)
                names |= seen.reads if kind.goes_through else set()
            else:
                node = self._argument(given[name], wanted, where, inner)
                if node is not None:
                    args[name] = node
        if all(name in given for name, m in kind.model_fields.items() if m.is_required()):
            try:
                kind.check(given, visible)
            except QueryError as error:
                self._keep(error, path)
        return Call(path, kind, args, frozenset(names))

    def _named(self, kind: type[Operation], given: Mapping[str, Any], path: str) -> None:
        known = list(kind.model_fields)
        takes = f"it takes {one_of(known)}" if known else "it takes none"
        for name in given:
            if name not in kind.model_fields:
                self._refuse(f"{kind.op} has no argument {name!r}", path, takes)
        for name, member in kind.model_fields.items():
            if member.is_required() and name not in given:
                wanted = f"{name} ({kind_of(member).expected})"
                self._refuse(f"{kind.op} lacks the argument {wanted}", path)

    def _argument(self, data: Any, wanted: Kind, path: str, visible: Visible) -> Node | None:
        if isinstance(data, Mapping) and "@op" in data:
            node = self.call(data, path, visible)
            if node is not None and node.kind.yields not in wanted.takes:
                self._mismatch(node.kind, wanted, path)
                return None
            return node
        try:
            return Reader(lambda d, p: self._inner(d, p, visible), visible.based).read(
                data, wanted, path
            )
        except ProgramError as error:
            self._keep(error, path)
            return None

    def _inner(self, data: Any, path: str, visible: Visible) -> Node:
        """Read an operation that stands inside a value."""
        before = len(self.wrong)
        node = self.call(data, path, visible)
        if node is None:
            raise self.wrong.pop(before)
        return node

    def _mismatch(self, kind: type[Operation], wanted: Kind, path: str) -> None:
        hint = ""
        if wanted.reading == "graph" and kind.yields in ("uri", "text", "term"):
            hint = "fetch it with GET"
        if wanted.reading == "constant":
            hint = "write it as a string"
        what = f"expected {wanted.expected}, but {kind.op} yields {YIELDED[kind.yields]}"
        self._refuse(what, path, hint)

    def _refuse(self, what: str, path: str, hint: str = "") -> None:
        self.wrong.append(ProgramError(what, where=path, hint=hint))

    def _keep(self, error: QueryError, path: str) -> None:
        told = ProgramError(error.what, where=error.where, hint=error.hint)
        self.wrong.append(located(told, path))  # type: ignore[arg-type]


def _columns(data: Any) -> tuple[str, ...] | None:
    """Return the columns of the rows that JSON data yields, where it tells them."""
    if isinstance(data, Mapping) and isinstance(data.get("@op"), str):
        try:
            kind = operation(data["@op"])
            given = data.get("args", {})
            return kind.columns(given) if isinstance(given, Mapping) else None
        except QueryError:
            return None
    rows: Sequence[Any] | Any = data
    named: list[str] = []
    if isinstance(data, Mapping) and isinstance(data.get("results"), Mapping):
        rows = data["results"].get("bindings")
        head = data.get("head")
        told = head.get("vars") if isinstance(head, Mapping) else None
        named = [name for name in told if isinstance(name, str)] if isinstance(told, list) else []
    if not isinstance(rows, list) or not rows or not all(isinstance(r, Mapping) for r in rows):
        return None
    if any("@op" in row for row in rows):
        return None
    return tuple(dict.fromkeys([*named, *(name for row in rows for name in row)]))
