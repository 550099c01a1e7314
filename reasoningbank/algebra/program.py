"""Programs: JSON is validated in full and becomes a tree of nodes, which can be run.

Validation finds every mistake before anything runs and locates it by JSON path: unknown
operations, missing, unknown or ill-typed arguments, unset variables, queries of the wrong form.
"""

from __future__ import annotations

import contextlib
import json
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rdflib import Graph, Literal, URIRef

from reasoningbank.algebra.evaluation import MOST_DEPTH, Block, Evaluation, RunBudget
from reasoningbank.algebra.operation import (
    YIELDED,
    Kind,
    Operation,
    Visible,
    Yield,
    kind_of,
    operation,
)
from reasoningbank.algebra.runtime import Runtime
from reasoningbank.algebra.source import Reader, with_prefixes
from reasoningbank.algebra.terms import (
    PREFIXES,
    ProgramError,
    Term,
    is_term_json,
    json_path,
    locating,
    one_of,
)
from reasoningbank.algebra.values import Stream, Table, Value, as_stream, flattened, form_of, kept
from reasoningbank.errors import QueryError, UsageError

#: Replaces addresses that only a run knows while a document is checked.
_PLACEHOLDER = "http://address.invalid/"


@dataclass(frozen=True)
class Program:
    """A program that may run."""

    block: Block  #: Its operations
    variables: frozenset[str] = frozenset()  #: The variables that the caller has to give
    calls: tuple[str, ...] = ()  #: The names of its operations in order
    writes: bool = False  #: Whether it can change documents
    #: Prefixes that it need not declare, besides the well-known ones
    prefixes: Mapping[str, str] = field(default_factory=dict)


def read_program(
    data: Any, variables: Iterable[str] = (), prefixes: Mapping[str, str] | None = None
) -> Program:
    """Validate a program and make it ready to run.

    Args:
        data: The program as JSON data: an operation, or a list of them.
        variables: Names of the variables that the caller gives.
        prefixes: Prefixes that its queries and documents need not declare, e.g. those of a pack.
            Queries need not declare well-known ones in any case.

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
    program, wrong = _validated(data, variables, prefixes)
    if wrong:
        raise wrong[0]
    return program


def mistakes(
    data: Any, variables: Iterable[str] = (), prefixes: Mapping[str, str] | None = None
) -> tuple[ProgramError, ...]:
    """Return all mistakes of a program that can be found without running it; see `read_program`."""
    return tuple(_validated(data, variables, prefixes)[1])


def run_program(
    program: Program | Any, runtime: Runtime, variables: Mapping[str, Value] | None = None
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
        raise UsageError(what, hint="give it with --var", code="missing-variable", name=lacking[0])
    scope = ChainMap({name: kept(value) for name, value in given.items()})
    run = Evaluation(runtime, "$", RunBudget(runtime.limits), scope, prefixes=ready.prefixes)
    if ready.block.single:
        result: Value = ready.block.nodes[0].value(run)
        return result
    return Stream(node.value(run) for node in ready.block.nodes)


@dataclass(frozen=True)
class OperationCall:
    """A call; its arguments are values that may hold further calls, documents, and blocks."""

    path: str
    kind: type[Operation]
    args: Mapping[str, Any]
    names: frozenset[str] = frozenset()
    columns: tuple[str, ...] | None = None

    def value(self, run: Evaluation) -> Value:
        """Evaluate the arguments in order, then run the operation."""
        inner = replace(run, path=self.path, depth=run.depth + 1)
        with locating(self.path):
            inner.budget.check(inner.depth)
            values: dict[str, Any] = {}
            around = inner.wanting(form=self.kind.asks or inner.wanted.form)
            for name, argument in self.args.items():
                read = self.names if name == self.kind.goes_through else inner.wanted.columns
                value = _evaluated(argument, around.wanting(columns=read))
                if value is None and not self.kind.model_fields[name].is_required():
                    continue  # an unbound variable omits an optional argument
                values[name] = value
                if isinstance(value, Term) and name == "endpoint":
                    around = around.wanting(endpoint=str(value))
                elif isinstance(value, Term) and name == self.kind.base_argument:
                    around = replace(around, base=str(value))
            value = self.kind.of(values, self.path).run(inner)
        if isinstance(value, Stream):
            return Stream(self._located(value.items), value.columns)
        if isinstance(value, Table) and not isinstance(value.rows, list):
            return Table(value.vars, self._located(value.rows))
        return value

    def _located(self, items: Iterable[Any]) -> Iterator[Any]:
        """Give errors that occur while a stream is read the path of the call that yields it."""
        with locating(self.path):
            yield from items


@dataclass(frozen=True)
class Part:
    """A value that holds calls, or is a document: it is read anew each time it is used."""

    path: str
    data: Any = field(repr=False)
    is_document: bool
    columns: tuple[str, ...] | None = None

    def value(self, run: Evaluation) -> Value:
        """Read it, relative to the address that it is written to."""
        return self.read(Reader(lambda call, _: call.value(run), run.base))

    def read(self, reader: Reader) -> Value:
        return (reader.document if self.is_document else reader.value)(self.data, self.path)


def _evaluated(part: Any, run: Evaluation) -> Value:
    """Return a value of the program with the calls and documents in it evaluated."""
    if isinstance(part, OperationCall | Part):
        return part.value(run)
    return [kept(_evaluated(one, run)) for one in part] if isinstance(part, list) else part


def _validated(
    data: Any, variables: Iterable[str], prefixes: Mapping[str, str] | None
) -> tuple[Program, list[ProgramError]]:
    names = frozenset(variables)
    found = _Validation()
    block = Block((), True)
    try:
        # Text that cannot be encoded could not be written either, and would fail half-way.
        json.dumps(data, ensure_ascii=False).encode()
        data = with_prefixes(data, prefixes) if prefixes else data
        block = found.block(data, "$", Visible(names, prefixes=prefixes or {}))
    except UnicodeEncodeError:
        what = "a string holds half of a character"
        found.wrong.append(ProgramError(what, where="$", code="half-character"))
    except RecursionError:
        found.wrong = [_too_deep("$")]
    except (TypeError, ValueError) as error:
        found.wrong.append(ProgramError(f"not JSON: {error}", where="$", code="bad-json"))
    calls = tuple(kind.op for kind in found.calls)
    writes = any(kind.writes for kind in found.calls)
    return Program(block, names, calls, writes, prefixes or {}), found.wrong


def _too_deep(path: str) -> ProgramError:
    what = f"operations are nested more than {MOST_DEPTH} deep"
    hint = "set parts of it with Variable first"
    return ProgramError(what, where=path, hint=hint, code="too-deep", limit=MOST_DEPTH)


def _unexpected(
    wanted: Kind, path: str, got: str = "", hint: str = "", **more: Any
) -> ProgramError:
    what = f"expected {wanted.expected}{got}"
    return ProgramError(
        what, where=path, hint=hint, code="wrong-type", expected=wanted.expected, **more
    )


@dataclass
class _Validation:
    """Reads the JSON of a program; each mistake is kept, and reading goes on behind it."""

    wrong: list[ProgramError] = field(default_factory=list)
    calls: list[type[Operation]] = field(default_factory=list)

    @contextlib.contextmanager
    def keeping(self, path: str) -> Iterator[None]:
        """Keep a mistake in a part of the program as a `ProgramError`, and go on behind it."""
        try:
            with locating(path):
                yield
        except QueryError as error:
            mistake = ProgramError(error.what)
            mistake.finding = error.finding
            self.wrong.append(mistake)

    def block(self, data: Any, path: str, visible: Visible) -> Block:
        """Read one operation or a list of them; each sees the variables set before it."""
        nodes: list[OperationCall] = []
        single = not isinstance(data, list)
        if data == []:
            what = "expected an operation, got an empty list"
            self.wrong.append(ProgramError(what, where=path, code="not-an-operation"))
        for at, item in enumerate([data] if single else data):
            where = path if single else json_path(path, at)
            with self.keeping(where):
                nodes.append(self.call(item, where, visible))
                given = item.get("args", {})
                if name := nodes[-1].kind.sets(given):
                    visible = visible.after_setting(name, given.get("value", given.get("select")))
        return Block(tuple(nodes), single)

    def call(self, data: Any, path: str, visible: Visible) -> OperationCall:
        """Read a call; raise if the data is not one, and keep mistakes in its arguments."""
        if not isinstance(data, Mapping) or "@op" not in data:
            hint = 'write {"@op": "NAME", "args": {…}}'
            raise ProgramError(
                "expected an operation", where=path, hint=hint, code="not-an-operation"
            )
        odd = sorted(key for key in data if key not in ("@op", "args"))
        if odd:
            what = f"an operation has no member {odd[0]!r}"
            hint = "put arguments into args"
            about = {"where": path, "hint": hint, "code": "unknown-member", "member": odd[0]}
            self.wrong.append(ProgramError(what, **about))
        given = data.get("args", {})
        if not isinstance(data["@op"], str) or not isinstance(given, Mapping):
            what = "@op must be a name and args an object"
            raise ProgramError(what, where=path, code="not-an-operation")
        with locating(path):
            kind = operation(data["@op"])
        self.calls.append(kind)
        if visible.depth >= MOST_DEPTH:
            raise _too_deep(path)
        visible.reads.update(kind.reads(given))
        self._check_names(kind, given, json_path(path, "args"))
        args, names = self._arguments(kind, given, path, visible)
        known = dict(given)
        for name in given.keys() & kind.model_fields.keys():
            if kind_of(kind.model_fields[name]).name == "Query":
                known[name] = visible.query(given[name])
        if all(name in given for name, one in kind.model_fields.items() if one.is_required()):
            with self.keeping(path):
                kind.check(known, visible)
        with contextlib.suppress(QueryError):
            return OperationCall(path, kind, args, frozenset(names), kind.columns(known))
        return OperationCall(path, kind, args, frozenset(names))

    def _check_names(self, kind: type[Operation], given: Mapping[str, Any], path: str) -> None:
        known = list(kind.model_fields)
        hint = f"it takes {one_of(known)}" if known else "it takes no arguments"
        about: dict[str, Any] = {"where": path, "op": kind.op}
        for name in given:
            if name not in known:
                what = f"{kind.op} has no argument {name!r}"
                mistake = ProgramError(what, hint=hint, code="unknown-argument", name=name, **about)
                self.wrong.append(mistake)
        for name, member in kind.model_fields.items():
            if member.is_required() and name not in given:
                what = f"{kind.op} lacks the argument {name} ({kind_of(member).expected})"
                self.wrong.append(ProgramError(what, code="missing-argument", name=name, **about))

    def _arguments(
        self, kind: type[Operation], given: Mapping[str, Any], path: str, visible: Visible
    ) -> tuple[dict[str, Any], set[str]]:
        """Return the arguments, and the variables that a block of them reads of its rows."""
        based = visible.based or kind.base_argument in given
        inner = replace(visible, depth=visible.depth + 1, based=based)
        args: dict[str, Any] = {}
        names: set[str] = set()
        for name, member in kind.model_fields.items():
            if name not in given:
                continue
            where, wanted = json_path(path, "args", name), kind_of(member)
            if wanted.reading == "block":
                seen = inner
                if kind.goes_through:
                    columns = _columns(args.get(kind.goes_through))
                    seen = replace(inner, has_item=True, columns=columns, reads=set())
                args[name] = self.block(given[name], where, seen)
                names |= seen.reads
            else:
                with self.keeping(where):
                    args[name] = self._read(given[name], wanted, where, inner)
        return args, names

    def _read(self, data: Any, wanted: Kind, path: str, visible: Visible, *more: str) -> Any:
        """Read a value of a kind; a call in its place may also yield one of `more`."""
        if isinstance(data, Mapping) and "@op" in data:
            call = self.call(data, path, visible)
            _check_yield(call.kind, wanted, path, *more)
            return call
        if data is None:
            raise _unexpected(wanted, path, ", got null")
        if wanted.reading == "list":
            if not isinstance(data, list) or wanted.of is None:
                raise _unexpected(wanted, path)
            nested = ["list"] if wanted.of.reading == "graph" else []
            return [
                self._read(item, wanted.of, json_path(path, at), visible, *nested)
                for at, item in enumerate(data)
            ]
        if wanted.reading == "constant" and not isinstance(data, str):
            raise _unexpected(wanted, path, hint="write a string")
        before = len(self.calls)
        plain = isinstance(data, str | bool | int | float) or is_term_json(data)
        is_document = wanted.reading == "graph" and not plain
        if is_document and isinstance(data, Mapping) and set(data) - {"@context"} == {"@id"}:
            # Written to a document, it would empty it.
            what, hint = "the document says nothing about its subject", "write properties, too"
            raise ProgramError(what, where=path, hint=hint, code="no-statements")
        part = Part(path, self._with_calls(data, path, visible), is_document)
        trial = part.read(Reader(_sample, _PLACEHOLDER if visible.based else None, PREFIXES))
        has_calls = len(self.calls) > before
        if not has_calls and not any(isinstance(one, Graph) for one in flattened([trial])):
            with locating(path):
                wanted.convert(trial)
            return trial
        form = "term" if isinstance(trial, Term) else form_of(trial) or "nothing"
        if form not in wanted.takes:
            raise _unexpected(wanted, path, f", got a {form}")
        return replace(part, columns=_columns(trial))

    def _with_calls(self, data: Any, path: str, visible: Visible) -> Any:
        """Return JSON data with a call in the place of each operation."""
        if isinstance(data, list):
            return [
                self._with_calls(one, json_path(path, at), visible) for at, one in enumerate(data)
            ]
        if not isinstance(data, Mapping):
            return data
        if "@op" in data:
            return self.call(data, path, visible)
        return {
            key: self._with_calls(one, json_path(path, key), visible) for key, one in data.items()
        }


def _check_yield(kind: type[Operation], wanted: Kind, path: str, *more: str) -> None:
    if kind.yields in (*wanted.takes, *more):
        return
    hint = ""
    if wanted.reading == "graph" and kind.yields in ("uri", "text", "term"):
        hint = "fetch it with GET"
    if wanted.reading == "constant":
        hint = "write it as a string"
    if kind.yields == "uri" and "text" in wanted.takes:
        hint = "take its text with Str"
    got = f", but {kind.op} yields {YIELDED[kind.yields][0]}"
    raise _unexpected(wanted, path, got, hint, op=kind.op)


def _columns(part: Any) -> tuple[str, ...] | None:
    """Return the columns of the rows that a value yields; None if the program cannot say."""
    if isinstance(part, OperationCall | Part):
        return part.columns
    return as_stream(part).columns if isinstance(part, Table | list) else None


def _sample(call: OperationCall, key: str | None) -> Value:
    """Return a value of the type that a call yields."""
    if key in ("@language", "@direction"):
        return Literal("en" if key == "@language" else "ltr")
    if key == "bindings":
        return {}
    yields = call.kind.yields
    if key is not None and yields in ("nothing", "row", "table"):
        what = f"JSON-LD cannot hold {YIELDED[yields][0]}, which {call.kind.op} yields"
        raise ProgramError(what, where=call.path, hint="use Value or Str", code="wrong-type")
    like: dict[Yield, Value] = {"graph": Graph()}
    if key is None:
        like |= {"table": Table((), []), "row": {}, "list": [], "nothing": None}
    return like.get(yields, URIRef(_PLACEHOLDER))
