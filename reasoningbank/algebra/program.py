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

from reasoningbank.algebra.evaluation import (
    MOST_DEPTH,
    Block,
    Evaluation,
    RunBudget,
    VariableScope,
)
from reasoningbank.algebra.operation import (
    PLAIN,
    YIELDED,
    Kind,
    Operation,
    Visible,
    kind_of,
    operation,
)
from reasoningbank.algebra.runtime import Runtime
from reasoningbank.algebra.source import fill_template, with_prefixes
from reasoningbank.algebra.terms import (
    PREFIXES,
    ProgramError,
    Term,
    graph_from_jsonld,
    is_term_json,
    is_term_template,
    json_path,
    locating,
    one_of,
    term_from_json,
)
from reasoningbank.algebra.values import (
    RowList,
    Stream,
    Table,
    Value,
    as_plain,
    describe_value,
    from_json,
    is_results_json,
    is_row_json,
    kept,
    names_in,
    table_from_json,
)
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
        hint = "give it with --var"
        raise UsageError(what, hint=hint, code="missing-variable", name=lacking[0])
    scope = VariableScope(ChainMap({name: kept(value) for name, value in given.items()}))
    run = Evaluation(runtime, "$", scope, RunBudget(runtime.limits), prefixes=ready.prefixes)
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
                if isinstance(argument, Block):
                    values[name] = argument
                    continue
                read = self.names if name == self.kind.goes_through else inner.wanted.columns
                where = json_path(self.path, "args", name)
                value = _evaluated(argument, around.wanting(columns=read), where)
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
class DocumentTemplate:
    """A JSON-LD document in which operations take the place of values."""

    path: str
    template: Any = field(repr=False)

    def value(self, run: Evaluation) -> Value:
        """Evaluate its operations and read it relative to the address that it is written to."""
        data = fill_template(self.template, self.path, lambda node, _: node.value(run))
        return graph_from_jsonld(data, base=run.base, path=self.path)


@dataclass(frozen=True)
class TermTemplate:
    """A term in JSON some of whose members are operations."""

    path: str
    members: Mapping[str, Any] = field(repr=False)

    def value(self, run: Evaluation) -> Value:
        """Evaluate its operations; a term whose value is unbound is unbound."""
        made: dict[str, Any] = dict(self.members)
        for name, member in self.members.items():
            if isinstance(member, OperationCall):
                if (text := member.value(run)) is None:
                    return None
                with locating(json_path(self.path, name)):
                    made[name] = as_plain(text)
        return term_from_json(made, self.path)


def _evaluated(part: Any, run: Evaluation, path: str) -> Value:
    """Return a value of the program with the calls and documents in it evaluated."""
    if isinstance(part, OperationCall | DocumentTemplate | TermTemplate):
        return part.value(run)
    if isinstance(part, list):
        return [kept(_evaluated(p, run, json_path(path, at))) for at, p in enumerate(part)]
    if not isinstance(part, dict):
        return part  # type: ignore[no-any-return]
    row: dict[str, Term] = {}
    for name, member in part.items():
        term = _evaluated(member, run, json_path(path, name))
        if isinstance(term, Term):
            row[name] = term
        elif term is not None:
            what = f"a row holds terms, not {describe_value(term)}"
            raise ProgramError(what, where=json_path(path, name), code="wrong-type")
    return row


def _is_evaluated(part: Any) -> bool:
    if isinstance(part, list | dict):
        return all(map(_is_evaluated, part.values() if isinstance(part, dict) else part))
    return not isinstance(part, OperationCall | DocumentTemplate | TermTemplate)


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
        block = found.block(data, "$", Visible(names))
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
                if name := nodes[-1].kind.sets(item.get("args", {})):
                    visible = replace(visible, variables=visible.variables | {name})
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
        if all(name in given for name, one in kind.model_fields.items() if one.is_required()):
            with self.keeping(path):
                kind.check(given, visible)
        with contextlib.suppress(QueryError):
            return OperationCall(path, kind, args, frozenset(names), kind.columns(given))
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
            if wanted.reading == "block" and kind.goes_through:
                columns = _columns(args.get(kind.goes_through))
                seen = replace(inner, has_item=True, columns=columns, reads=set())
                args[name] = self.block(given[name], where, seen)
                names |= seen.reads
            elif wanted.reading == "block":
                args[name] = self.block(given[name], where, inner)
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
        if wanted.reading == "graph":
            if is_term_template(data):
                raise _unexpected(wanted, path, ", got a term")
            if isinstance(data, str | bool | int | float) or is_term_json(data):
                with locating(path):
                    wanted.convert(from_json(data, path))
            return self._document(data, path, visible)
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
        part = self._value(data, path, visible)
        if _is_evaluated(part):
            with locating(path):
                wanted.convert(part)
            return part
        forms = {list: "list", dict: "row", TermTemplate: "term"}
        form = next((name for kind, name in forms.items() if isinstance(part, kind)), "graph")
        if form not in wanted.takes:
            raise _unexpected(wanted, path, f", got a {form}")
        return part

    def _value(self, data: Any, path: str, visible: Visible) -> Any:
        """Read a value of any form."""
        if isinstance(data, list):
            return [self._value(one, json_path(path, at), visible) for at, one in enumerate(data)]
        if not isinstance(data, Mapping):
            return from_json(data, path)
        if "@op" in data:
            return self.call(data, path, visible)
        if not _holds_operations(data):
            plain = is_term_json(data) or is_results_json(data) or is_row_json(data)
            return from_json(data, path) if plain else self._document(data, path, visible)
        if is_term_template(data):
            members = dict(data)
            for name in (name for name, member in data.items() if not isinstance(member, str)):
                members[name] = self._read(data[name], PLAIN, json_path(path, name), visible)
            return TermTemplate(path, members)
        if is_results_json(data):
            rows = data["results"]["bindings"]
            if not isinstance(rows, list):
                table_from_json(data, path)
            read = self._value(rows, json_path(path, "results", "bindings"), visible)
            empty = {**data, "results": {"bindings": []}}
            return RowList(read, names_in(read, table_from_json(empty, path).vars))
        if _is_row(data):
            return {
                name: self._value(member, json_path(path, name), visible)
                for name, member in data.items()
            }
        return self._document(data, path, visible)

    def _document(self, data: Any, path: str, visible: Visible) -> DocumentTemplate:
        template = self._template(data, path, visible)
        trial = fill_template(template, path, _sample)
        base = _PLACEHOLDER if visible.based else None
        graph_from_jsonld(trial, base=base, path=path, prefixes=PREFIXES)
        return DocumentTemplate(path, template)

    def _template(self, data: Any, path: str, visible: Visible) -> Any:
        if isinstance(data, list):
            return [
                self._template(one, json_path(path, at), visible) for at, one in enumerate(data)
            ]
        if not isinstance(data, Mapping):
            return data
        if "@op" in data:
            return self.call(data, path, visible)
        return {
            key: self._template(one, json_path(path, key), visible) for key, one in data.items()
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
    if isinstance(part, OperationCall | RowList):
        return part.columns
    if isinstance(part, Table):
        return part.vars
    rows = isinstance(part, list) and part and all(isinstance(row, Mapping) for row in part)
    return names_in(part) if rows else None


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


def _sample(node: Any, key: str) -> Value:
    """Return a value of the type that a node yields."""
    if key in ("@language", "@direction"):
        return Literal("en" if key == "@language" else "ltr")
    if isinstance(node, OperationCall) and node.kind.yields == "graph":
        return Graph()
    if isinstance(node, OperationCall) and node.kind.yields in ("nothing", "row", "table"):
        what = f"JSON-LD cannot hold {YIELDED[node.kind.yields][0]}, which {node.kind.op} yields"
        raise ProgramError(what, where=node.path, hint="use Value or Str", code="wrong-type")
    return URIRef(_PLACEHOLDER)
