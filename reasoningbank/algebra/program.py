"""Programs: JSON is validated in full and becomes a tree of nodes, which can be run.

Validation finds every mistake before anything runs and locates it by JSON path: unknown
operations, missing, unknown or ill-typed arguments, unset variables, queries of the wrong form.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rdflib import Graph, Literal, URIRef

from reasoningbank.algebra.evaluation import (
    MOST_DEPTH,
    Block,
    Evaluation,
    Node,
    RunBudget,
    RuntimeOf,
    VariableScope,
)
from reasoningbank.algebra.jsonld import PREFIXES, check_jsonld, graph_from_jsonld
from reasoningbank.algebra.operation import (
    YIELDED,
    Kind,
    Operation,
    Visible,
    kind_of,
    operation,
)
from reasoningbank.algebra.templates import fill_template
from reasoningbank.algebra.terms import (
    ProgramError,
    Term,
    at_path,
    is_term_json,
    json_path,
    located,
    one_of,
)
from reasoningbank.algebra.values import (
    Stream,
    Table,
    Value,
    describe_value,
    from_json,
    is_results_json,
    is_row_json,
    is_term,
    kept,
    table_from_json,
)
from reasoningbank.errors import QueryError, ReasoningBankError, UsageError

#: Replaces addresses that only a run knows while a document is checked.
_PLACEHOLDER = "http://address.invalid/"


@dataclass(frozen=True)
class Program:
    """A program that may run.

    Attributes:
        block: Its operations.
        variables: The variables that the caller has to give.
        calls: The names of its operations in order.
        writes: Whether it can change documents.
    """

    block: Block
    variables: frozenset[str] = frozenset()
    calls: tuple[str, ...] = ()
    writes: bool = False


def read_program(data: Any, variables: Iterable[str] = ()) -> Program:
    """Validate a program and make it ready to run.

    Args:
        data: The program as JSON data: an operation, or a list of them.
        variables: Names of the variables that the caller gives.

    Raises:
        ProgramError: Its first mistake, at its JSON path.

    Examples:
        >>> read_program({"@op": "STRUUID"}).calls
        ('STRUUID',)
        >>> read_program({"@op": "Str", "args": {"inptu": "x"}})
        Traceback (most recent call last):
        ...
        reasoningbank.algebra.terms.ProgramError: $.args: Str has no argument 'inptu'; ...
    """
    program, wrong = _validated(data, variables)
    if wrong:
        raise wrong[0]
    return program


def mistakes(data: Any, variables: Iterable[str] = ()) -> tuple[ProgramError, ...]:
    """Return all mistakes of a program that can be found without running it.

    Examples:
        >>> for mistake in mistakes([{"@op": "Gte"}, {"@op": "GET", "args": {"url": 5}}]):
        ...     print(mistake)
        $[0]: unknown operation 'Gte'; did you mean 'GET'
        $[1].args.url: '5' is not a URL; write it in full, percent-encoded
    """
    return _validated(data, variables)[1]


def run_program(
    program: Program | Any, runtime: RuntimeOf, variables: Mapping[str, Value] | None = None
) -> Value:
    """Run a program.

    Args:
        program: A validated program, or JSON data, which is validated first.
        runtime: The runtime; one per run.
        variables: Values of the variables that the caller gives (``$name``).

    Returns:
        The result of the operation; for a list of operations, the list of their results. A ForEach
        at the end runs while its results are read: they are a `Stream`, which can be read once.

    Raises:
        ProgramError: If the program, or a value in it, is wrong.
        BudgetError: If a limit of the runtime is reached.
        ReasoningBankError: If an operation fails; `where` begins with its JSON path.
    """
    given = dict(variables or {})
    ready = program if isinstance(program, Program) else read_program(program, given)
    lacking = sorted(ready.variables - set(given))
    if lacking:
        what = f"the variable ${lacking[0]} is not given"
        hint = "give it with --var"
        raise UsageError(what, hint=hint, code="missing-variable", name=lacking[0])
    scope = VariableScope()
    for name, value in given.items():
        scope.set(name, kept(value))
    run = Evaluation(runtime, "$", scope, RunBudget(runtime.limits))
    if ready.block.single:
        return ready.block.nodes[0].value(run)
    return Stream(node.value(run) for node in ready.block.nodes)


@dataclass(frozen=True)
class OperationCall:
    """A call; its arguments are values that may hold further calls, documents, and blocks."""

    path: str
    kind: type[Operation]
    args: Mapping[str, Any]
    names: frozenset[str] = frozenset()

    def value(self, run: Evaluation) -> Value:
        """Evaluate the arguments in order, then run the operation."""
        inner = replace(run, path=self.path, depth=run.depth + 1)
        try:
            inner.budget.check(inner.depth)
            values: dict[str, Any] = {}
            around = inner
            for name, argument in self.args.items():
                if isinstance(argument, Block):
                    values[name] = argument
                    continue
                names = self.names if name == self.kind.goes_through else inner.names
                where = at_path(self.path, "args", name)
                value = _evaluated(argument, replace(around, names=names), where)
                if value is None and not self.kind.model_fields[name].is_required():
                    continue  # an unbound variable omits an optional argument
                values[name] = value
                if is_term(value) and name == "endpoint":
                    around = replace(around, endpoint=str(value))
                elif is_term(value) and name == self.kind.base_argument:
                    around = replace(around, base=str(value))
            return _located_stream(self.kind.of(values, self.path).run(inner), self.path)
        except ReasoningBankError as error:
            located(error, self.path)
            raise


def _located_stream(value: Value, path: str) -> Value:
    """Give errors that occur while a stream is read the path of the call that yields it."""
    if isinstance(value, Stream):
        return Stream(_located_items(value.items, path), value.columns)
    if isinstance(value, Table) and not isinstance(value.rows, list):
        return Table(value.vars, _located_items(value.rows, path))
    return value


def _located_items(items: Iterable[Any], path: str) -> Iterator[Any]:
    try:
        yield from items
    except ReasoningBankError as error:
        located(error, path)
        raise


@dataclass(frozen=True)
class DocumentTemplate:
    """A JSON-LD document in which operations take the place of values."""

    path: str
    template: Any = field(repr=False)

    def value(self, run: Evaluation) -> Value:
        """Evaluate its operations and read it relative to the address that it is written to."""
        data = fill_template(self.template, self.path, lambda node, _: node.value(run))
        return graph_from_jsonld(data, base=run.base, path=self.path)


def _evaluated(part: Any, run: Evaluation, path: str) -> Value:
    """Return a value of the program with the calls and documents in it evaluated."""
    if isinstance(part, OperationCall | DocumentTemplate):
        return part.value(run)
    if isinstance(part, list):
        return [kept(_evaluated(p, run, json_path(path, at))) for at, p in enumerate(part)]
    if not isinstance(part, dict):
        return part  # type: ignore[no-any-return]
    row: dict[str, Term] = {}
    for name, member in part.items():
        term = _evaluated(member, run, json_path(path, name))
        if is_term(term):
            row[name] = term  # type: ignore[assignment]
        elif term is not None:
            what = f"a row holds terms, not {describe_value(term)}"
            raise ProgramError(what, where=json_path(path, name), code="wrong-type")
    return row


def _is_evaluated(part: Any) -> bool:
    if isinstance(part, list | dict):
        return all(map(_is_evaluated, part.values() if isinstance(part, dict) else part))
    return not isinstance(part, OperationCall | DocumentTemplate)


def _validated(data: Any, variables: Iterable[str]) -> tuple[Program, tuple[ProgramError, ...]]:
    names = frozenset(variables)
    checker = _Checker()
    block = Block("$", (), True)
    try:
        # Text that cannot be encoded could not be written either, and would fail half-way.
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        checker.reject("half-character", "a string holds half of a character", "$")
    except RecursionError:
        checker.wrong = [_too_deep("$")]
    except (TypeError, ValueError) as error:
        checker.reject("bad-json", f"not JSON: {error}", "$")
    if not checker.wrong:
        try:
            block = checker.block(data, "$", Visible(names))
        except RecursionError:
            checker.wrong = [_too_deep("$")]
    calls = tuple(kind.op for kind in checker.calls)
    program = Program(block, names, calls, any(kind.writes for kind in checker.calls))
    return program, tuple(checker.wrong)


def _too_deep(path: str) -> ProgramError:
    what = f"operations are nested more than {MOST_DEPTH} deep"
    hint = "set parts of it with Variable first"
    return ProgramError(what, where=path, hint=hint, code="too-deep", limit=MOST_DEPTH)


@dataclass
class _Checker:
    wrong: list[ProgramError] = field(default_factory=list)
    calls: list[type[Operation]] = field(default_factory=list)

    def reject(self, code: str, what: str, path: str, hint: str = "", **fields: Any) -> None:
        self.wrong.append(ProgramError(what, where=path, hint=hint, code=code, **fields))

    def block(self, data: Any, path: str, visible: Visible) -> Block:
        """Read one operation or a list of them; each sees the variables set before it."""
        nodes: list[Node] = []
        single = not isinstance(data, list)
        if data == []:
            self.reject("not-an-operation", "expected an operation, got an empty list", path)
        for at, item in enumerate([data] if single else data):
            node = self.call(item, path if single else json_path(path, at), visible)
            if node is None:
                continue
            nodes.append(node)
            name = node.kind.sets(item.get("args", {}))
            if name:
                visible = visible.with_variable(name)
        return Block(path, tuple(nodes), single)

    def call(self, data: Any, path: str, visible: Visible) -> OperationCall | None:
        """Read a call; None, and one more mistake, if the data is not a call."""
        if not isinstance(data, Mapping) or "@op" not in data:
            hint = 'write {"@op": "NAME", "args": {…}}'
            self.reject("not-an-operation", "expected an operation", path, hint)
            return None
        odd = sorted(key for key in data if key not in ("@op", "args"))
        if odd:
            what = f"an operation has no member {odd[0]!r}"
            hint = "put arguments into args"
            self.reject("unknown-member", what, path, hint, member=odd[0])
        given = data.get("args", {})
        if not isinstance(data["@op"], str) or not isinstance(given, Mapping):
            what = "@op must be a name and args an object"
            self.reject("not-an-operation", what, path)
            return None
        try:
            kind = operation(data["@op"])
        except ProgramError as error:
            self._keep(error, path)
            return None
        self.calls.append(kind)
        if visible.depth >= MOST_DEPTH:
            self.wrong.append(_too_deep(path))
            return None
        return self._call_of(kind, given, path, visible)

    def _call_of(
        self, kind: type[Operation], given: Mapping[str, Any], path: str, visible: Visible
    ) -> OperationCall:
        inner = visible.inside(based=kind.base_argument in given)
        visible.reads.update(kind.reads(given))
        self._names(kind, given, json_path(path, "args"))
        args: dict[str, Any] = {}
        names: set[str] = set()
        for name, member in kind.model_fields.items():
            if name not in given:
                continue
            where = at_path(path, "args", name)
            wanted = kind_of(member)
            if wanted.reading == "block":
                seen = inner
                if kind.goes_through:
                    seen = inner.of_items(_columns(given.get(kind.goes_through)))
                args[name] = self.block(given[name], where, seen)
                names |= seen.reads if kind.goes_through else set()
            else:
                args[name] = self._argument(given[name], wanted, where, inner)
        if all(name in given for name, m in kind.model_fields.items() if m.is_required()):
            try:
                kind.check(given, visible)
            except QueryError as error:
                self._keep(error, path)
        return OperationCall(path, kind, args, frozenset(names))

    def _names(self, kind: type[Operation], given: Mapping[str, Any], path: str) -> None:
        known = list(kind.model_fields)
        hint = f"it takes {one_of(known)}" if known else "it takes no arguments"
        for name in given:
            if name not in kind.model_fields:
                what = f"{kind.op} has no argument {name!r}"
                self.reject("unknown-argument", what, path, hint, op=kind.op, name=name)
        for name, member in kind.model_fields.items():
            if member.is_required() and name not in given:
                what = f"{kind.op} lacks the argument {name} ({kind_of(member).expected})"
                self.reject("missing-argument", what, path, op=kind.op, name=name)

    def _argument(self, data: Any, wanted: Kind, path: str, visible: Visible) -> Any:
        try:
            if isinstance(data, Mapping) and "@op" in data:
                call = self.call(data, path, visible)
                if call is not None:
                    _check_yield(call.kind, wanted, path)
                return call
            return _Reader(self, visible).read(data, wanted, path)
        except ProgramError as error:
            self._keep(error, path)
            return None

    def inner(self, data: Any, path: str, visible: Visible) -> OperationCall:
        """Read an operation inside a value."""
        before = len(self.wrong)
        node = self.call(data, path, visible)
        if node is None:
            raise self.wrong.pop(before)
        return node

    def _keep(self, error: QueryError, path: str) -> None:
        kept = ProgramError(error.what, where=error.where, hint=error.hint)
        kept.finding = error.finding
        located(kept, path)
        self.wrong.append(kept)


def _check_yield(kind: type[Operation], wanted: Kind, path: str, *more: str) -> None:
    if kind.yields in (*wanted.takes, *more):
        return
    hint = ""
    if wanted.reading == "graph" and kind.yields in ("uri", "text", "term"):
        hint = "fetch it with GET"
    if wanted.reading == "constant":
        hint = "write it as a string"
    what = f"expected {wanted.expected}, but {kind.op} yields {YIELDED[kind.yields][0]}"
    raise ProgramError(
        what, where=path, hint=hint, code="wrong-type", expected=wanted.expected, op=kind.op
    )


def _columns(data: Any) -> tuple[str, ...] | None:
    """Return the columns of the rows that JSON data yields; None if the program cannot say."""
    if isinstance(data, Mapping) and isinstance(data.get("@op"), str):
        try:
            given = data.get("args", {})
            return operation(data["@op"]).columns(given) if isinstance(given, Mapping) else None
        except QueryError:
            return None
    rows: Any = data
    named: list[str] = []
    if isinstance(data, Mapping) and isinstance(data.get("results"), Mapping):
        rows = data["results"].get("bindings")
        head = data.get("head")
        names = head.get("vars") if isinstance(head, Mapping) else None
        named = [n for n in names if isinstance(n, str)] if isinstance(names, list) else []
    if not isinstance(rows, list) or not rows or not all(isinstance(r, Mapping) for r in rows):
        return None
    if any("@op" in row for row in rows):
        return None
    return tuple(dict.fromkeys([*named, *(name for row in rows for name in row)]))


@dataclass(frozen=True)
class _Reader:
    """Reads JSON that is not an operation itself, though it may hold some."""

    checker: _Checker
    visible: Visible

    def read(self, data: Any, wanted: Kind, path: str) -> Any:
        """Read an argument of a kind."""
        if data is None:
            what = f"expected {wanted.expected}, got null"
            raise ProgramError(what, where=path, code="wrong-type", expected=wanted.expected)
        if wanted.reading == "graph":
            if isinstance(data, str | bool | int | float) or is_term_json(data):
                _fit(from_json(data, path), wanted, path)
            return self._document(data, path)
        if wanted.reading == "list":
            return self._members(data, wanted, path)
        if wanted.reading == "constant" and not isinstance(data, str):
            what = f"expected {wanted.expected}"
            raise ProgramError(what, where=path, hint="write a string", code="wrong-type")
        part = self.value(data, path)
        if _is_evaluated(part):
            _fit(part, wanted, path)
        else:
            form = (
                "list" if isinstance(part, list) else "row" if isinstance(part, dict) else "graph"
            )
            if not isinstance(part, OperationCall) and form not in wanted.takes:
                what = f"expected {wanted.expected}, got a {form}"
                raise ProgramError(what, where=path, code="wrong-type", expected=wanted.expected)
        return part

    def value(self, data: Any, path: str) -> Any:
        """Read a value of any form."""
        if isinstance(data, list):
            return [self.value(item, json_path(path, at)) for at, item in enumerate(data)]
        if not isinstance(data, Mapping):
            return from_json(data, path)
        if "@op" in data:
            return self.checker.inner(data, path, self.visible)
        if not _holds_operations(data):
            plain = is_term_json(data) or is_results_json(data) or is_row_json(data)
            return from_json(data, path) if plain else self._document(data, path)
        if is_results_json(data):
            rows = data["results"]["bindings"]
            if not isinstance(rows, list):
                table_from_json(data, path)
            return self.value(rows, at_path(path, "results", "bindings"))
        if _is_row(data):
            return {name: self.value(m, json_path(path, name)) for name, m in data.items()}
        return self._document(data, path)

    def _document(self, data: Any, path: str) -> DocumentTemplate:
        template = self._template(data, path)
        trial = fill_template(template, path, _sample)
        base = _PLACEHOLDER if self.visible.based else None
        check_jsonld(trial, path, base, PREFIXES)
        graph_from_jsonld(trial, base=base, path=path)
        return DocumentTemplate(path, template)

    def _template(self, data: Any, path: str) -> Any:
        if isinstance(data, list):
            return [self._template(item, json_path(path, at)) for at, item in enumerate(data)]
        if not isinstance(data, Mapping):
            return data
        if "@op" in data:
            return self.checker.inner(data, path, self.visible)
        return {key: self._template(member, json_path(path, key)) for key, member in data.items()}

    def _members(self, data: Any, wanted: Kind, path: str) -> list[Any]:
        if not isinstance(data, list) or wanted.of is None:
            what = f"expected {wanted.expected}"
            raise ProgramError(what, where=path, code="wrong-type", expected=wanted.expected)
        members: list[Any] = []
        for at, item in enumerate(data):
            where = json_path(path, at)
            if isinstance(item, Mapping) and "@op" in item:
                node = self.checker.inner(item, where, self.visible)
                nested = ("list",) if wanted.of.reading == "graph" else ()
                _check_yield(node.kind, wanted.of, where, *nested)
                members.append(node)
            else:
                members.append(self.read(item, wanted.of, where))
        return members


def _fit(content: Value, wanted: Kind, path: str) -> None:
    try:
        wanted.convert(content)
    except ProgramError as error:
        raise error.at(path) from None


def _holds_operations(data: Any) -> bool:
    if isinstance(data, list):
        return any(_holds_operations(item) for item in data)
    if isinstance(data, Mapping):
        return "@op" in data or any(_holds_operations(member) for member in data.values())
    return False


def _is_row(data: Mapping[str, Any]) -> bool:
    """Return whether an object that holds operations is a row: variable → term or operation."""
    return all(
        not key.startswith("@")
        and ":" not in key
        and isinstance(member, Mapping)
        and ("@op" in member or is_term_json(member))
        for key, member in data.items()
    )


def _sample(node: Node, key: str) -> Value:
    """Return a value of the type that a node yields."""
    if key in ("@language", "@direction"):
        return Literal("en" if key == "@language" else "ltr")
    if isinstance(node, OperationCall) and node.kind.yields == "graph":
        return Graph()
    if isinstance(node, OperationCall) and node.kind.yields in ("nothing", "row", "table"):
        what = f"JSON-LD cannot hold {YIELDED[node.kind.yields][0]}, which {node.kind.op} yields"
        raise ProgramError(what, where=node.path, hint="use Value or Str", code="wrong-type")
    return URIRef(_PLACEHOLDER)
