"""Operations on scopes, rows and lists: Value, Variable, Current, ForEach, Execute, Filter, …"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from rdflib import XSD

from reasoningbank.algebra import values
from reasoningbank.algebra.evaluation import Evaluation, in_order
from reasoningbank.algebra.operation import (
    Anything,
    Block,
    Concurrency,
    Name,
    Position,
    Rows,
    RowsOrRow,
    Visible,
    define,
)
from reasoningbank.algebra.queries import RowFilter
from reasoningbank.algebra.terms import ProgramError, one_of
from reasoningbank.errors import QueryError

_SCOPE, _ROWS = "Order and scope", "Tables and lists"


def _no_column(name: str, columns: Sequence[str], where: str = "args.name") -> ProgramError:
    hint = f"it has {one_of(columns)}"
    what = f"the row has no {name!r}"
    return ProgramError(what, where=where, hint=hint, code="unknown-column", name=name)


def _value_reads(given: Mapping[str, Any]) -> Sequence[str]:
    name = given.get("name")
    return [name.removeprefix("?")] if isinstance(name, str) and name[:1] != "$" else []


def _check_value(given: Mapping[str, Any], visible: Visible) -> None:
    name = given["name"]
    if not isinstance(name, str) or not name.strip("$?"):
        return
    column = name.removeprefix("?")
    if name.startswith("$"):
        if name[1:] not in visible.variables:
            hint = f"known here: {one_of([f'${one}' for one in sorted(visible.variables)])}"
            what = f"the variable {name} is not set before it is read"
            raise ProgramError(what, where="args.name", hint=hint, code="unset-variable")
    elif not visible.has_item:
        what = f"there is no row to take {name!r} from outside of ForEach"
        hint = f"a variable is written ${name}"
        raise ProgramError(what, where="args.name", hint=hint, code="no-row")
    elif visible.columns is not None and column not in visible.columns:
        raise _no_column(column, visible.columns)


@define("Value", "any", _SCOPE, reads=_value_reads, check=_check_value)
def value_of(
    run: Evaluation,
    name: Annotated[Name, "$variable, or a variable of the current row"],
) -> values.Value:
    """Retrieves a variable, or a value of the current row.

    `$name` is the variable that a Variable operation set; `name` is the term that the current row
    of the innermost ForEach binds to ?name, with its type and language.
    """
    if name.startswith("$"):
        return run.variables[name[1:]]
    column, item = name.removeprefix("?"), run.item
    if not isinstance(item, Mapping):
        what = f"the current item is {values.describe_value(item)}, not a row"
        raise ProgramError(what, hint="use Current for the item itself", code="no-row")
    columns = tuple(item) if run.columns is None else run.columns
    if column not in item and column not in columns:
        raise _no_column(column, columns)
    return item.get(column)


def _variable_sets(given: Mapping[str, Any]) -> str | None:
    name = given.get("name")
    return name.removeprefix("$") if isinstance(name, str) else None


def _check_variable(given: Mapping[str, Any], visible: Visible) -> None:
    if ("value" in given) == ("select" in given):
        what = "Variable takes either value or select"
        raise ProgramError(what, where="args", code="exclusive-arguments")


@define("Variable", "nothing", _SCOPE, sets=_variable_sets, check=_check_variable)
def set_variable(
    run: Evaluation,
    name: Annotated[Name, "The variable's name, without $"],
    value: Annotated[Anything, "Its value"] = None,
    select: Annotated[Anything, "Its value: another name of `value`"] = None,
) -> values.Value:
    """Sets a variable in the current scope, for the operations that follow in the same list.

    It is computed once and read with Value and a `$` before its name. It cannot be seen outside of
    the list of operations, or the ForEach row, that it is set in.
    """
    run.variables[name.removeprefix("$")] = select if value is None else value
    return None


def _check_current(given: Mapping[str, Any], visible: Visible) -> None:
    if not visible.has_item:
        raise ProgramError("there is no current row outside of ForEach", code="no-row")


@define("Current", "any", _SCOPE, check=_check_current)
def current(run: Evaluation) -> values.Value:
    """Returns the current row (or item) of the innermost ForEach.

    Keep it with Variable, to use it inside a nested ForEach.
    """
    return run.item


@define("ForEach", "list", _SCOPE, goes_through="select")
def for_each(
    run: Evaluation,
    select: Annotated[Rows, "A SELECT, a table, a list of bindings, or any list"],
    operation: Annotated[Block, "What is done for each row: an operation or a list"],
    concurrency: Annotated[
        Concurrency, "Rows processed at the same time; results keep their order"
    ] = 1,
) -> values.Value:
    """Executes one or more operations for each row of a table, or each item of a list.

    A single operation is applied to each row; of a list of operations all are executed in order
    for a row before the next row. Returns a list with one result a row; for a list of operations
    that is the list of their results.
    """

    def result(placed: tuple[int, values.Value]) -> values.Value:
        at, item = placed
        return run.block(operation, item=item, columns=select.columns, rows=(*run.rows, at))

    return values.Stream(in_order(result, enumerate(run.counted(select.items)), concurrency))


@define("Execute", "any", _SCOPE)
def execute(
    run: Evaluation, operation: Annotated[Block, "An operation, or a list of them"]
) -> values.Value:
    """Executes an operation, or a list of them in order, in a scope of its own.

    It sees the current row and all variables; variables set inside stay inside.
    """
    return run.block(operation)


@define("Bindings", "list", _ROWS)
def bindings(
    run: Evaluation, table: Annotated[Rows, "A table, or the results of writes"]
) -> values.Value:
    """Returns the rows of a table as a list of bindings, which a Variable can keep."""

    def rows() -> Iterator[values.Value]:
        for member in table.items:
            # The results of writes are a table each.
            yield from member.rows if isinstance(member, values.Table) else [member]

    return values.Stream(run.counted(rows()), table.columns)


def _check_filter(given: Mapping[str, Any], visible: Visible) -> None:
    expression = given["expression"]
    if type(expression) is int or (isinstance(expression, str) and expression.isdecimal()):
        _check_position(int(expression))
    elif isinstance(expression, str) and not expression.lstrip("?$").isidentifier():
        _condition(expression)


@define("Filter", "any", _ROWS, check=_check_filter)
def filter_rows(
    run: Evaluation,
    input: Annotated[RowsOrRow, "A table, a list, or a row"],
    expression: Annotated[Position, "A position, a condition, or of a row a name"],
) -> values.Value:
    """Selects from a table, a list or a row.

    A whole number takes the item at that position, counted from 1. A condition, written as in
    SPARQL's FILTER, takes the rows for which it holds (`?population > 100000`). Of a row, a name
    takes the term of that variable.
    """
    text = str(expression)
    # The value of a --var is a text; a number is no condition.
    if expression.datatype == XSD.integer or text.isdecimal():
        return _item_at(run, values.as_stream(input), int(text))
    if isinstance(input, Mapping):
        name = text.lstrip("?$")
        if name not in input:
            raise _no_column(name, list(input), "args.expression")
        value: values.Value = input[name]
        return value
    try:
        table = values.as_table(input)
    except ProgramError:
        hint = "give a position, or use ForEach"
        what = "a condition needs rows"
        raise ProgramError(what, where="args.input", hint=hint, code="wrong-type") from None
    condition = _condition(text)
    odd = [name for name in condition.names if table.vars and name not in table.vars]
    if odd:
        raise _no_column(odd[0], table.vars, "args.expression")
    return values.Table(table.vars, filter(condition.holds, run.counted(table.rows)))


def _item_at(run: Evaluation, items: values.Stream, position: int) -> values.Value:
    _check_position(position)
    number = 0
    for number, item in enumerate(run.counted(items.items), start=1):
        if number == position:
            return item
    what = f"there is no item {position}, only {number}"
    raise ProgramError(what, where="args.expression", code="no-item", position=position)


def _check_position(number: int) -> None:
    if number < 1:
        what = "positions are counted from 1"
        raise ProgramError(what, where="args.expression", code="no-item", position=number)


def _condition(text: str) -> RowFilter:
    try:
        return RowFilter(text)
    except QueryError as error:
        raise error.at("args.expression") from None
