"""Operations on scopes, rows and lists: Value, Variable, Current, ForEach, Execute, Filter, …"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import Field
from rdflib import XSD

from reasoningbank.algebra.evaluation import Evaluation, in_order
from reasoningbank.algebra.operation import (
    Anything,
    Block,
    Concurrency,
    Name,
    Operation,
    Position,
    Rows,
    RowsOrRow,
    Visible,
    call_json,
    register,
)
from reasoningbank.algebra.queries import RowFilter
from reasoningbank.algebra.terms import ProgramError, one_of
from reasoningbank.algebra.values import (
    Row,
    Stream,
    Table,
    Value,
    as_stream,
    as_table,
    describe_value,
)
from reasoningbank.errors import QueryError

_SCOPE, _ROWS = "Order and scope", "Tables and lists"
_AMBIORIX = {"monarchLabel": {"type": "literal", "value": "Ambiorix", "xml:lang": "en"}}
_CITIES = {
    "results": {
        "bindings": [
            {"city": {"type": "literal", "value": "Aarhus"}},
            {"city": {"type": "literal", "value": "Odense"}},
        ]
    }
}
_DBPEDIA_CITIES = call_json(
    "SELECT",
    endpoint="https://dbpedia.org/sparql",
    query="SELECT ?city WHERE { ?city a <http://dbpedia.org/ontology/City> }",
)


def _no_column(name: str, columns: Sequence[str], where: str = "args.name") -> ProgramError:
    hint = f"it has {one_of(columns)}"
    what = f"the row has no {name!r}"
    return ProgramError(what, where=where, hint=hint, code="unknown-column", name=name)


@register
class ValueOf(Operation):
    """Retrieves a variable, or a value of the current row.

    `$name` is the variable that a Variable operation set; `name` is the term that the current row
    of the innermost ForEach binds to ?name, with its type and language.
    """

    op = "Value"
    yields = "any"
    group = _SCOPE

    name: Name = Field(description="$variable, or a variable of the current row")

    @classmethod
    def reads(cls, given: Mapping[str, Any]) -> Sequence[str]:
        name = given.get("name")
        if not isinstance(name, str) or name.startswith("$"):
            return []
        return [name.removeprefix("?")]

    @classmethod
    def check(cls, given: Mapping[str, Any], visible: Visible) -> None:
        name = given["name"]
        if not isinstance(name, str) or not name.strip("$?"):
            return
        if name.startswith("$"):
            if name[1:] not in visible.variables:
                hint = f"known here: {one_of([f'${one}' for one in sorted(visible.variables)])}"
                what = f"the variable {name} is not set before it is read"
                raise ProgramError(what, where="args.name", hint=hint, code="unset-variable")
        elif not visible.has_item:
            what = f"there is no row to take {name!r} from outside of ForEach"
            hint = f"a variable is written ${name}"
            raise ProgramError(what, where="args.name", hint=hint, code="no-row")
        elif visible.columns is not None and name.removeprefix("?") not in visible.columns:
            raise _no_column(name.removeprefix("?"), visible.columns)

    def run(self, run: Evaluation) -> Value:
        """Return the value; nothing if the row leaves the variable unbound."""
        if self.name.startswith("$"):
            return run.scope.variables()[self.name[1:]]
        name, item = self.name.removeprefix("?"), run.scope.item
        if not isinstance(item, Mapping):
            what = f"the current item is {describe_value(item)}, not a row"
            raise ProgramError(what, hint="use Current for the item itself", code="no-row")
        columns = run.scope.columns if run.scope.columns is not None else tuple(item)
        if name not in item and name not in columns:
            raise _no_column(name, columns)
        return item.get(name)


@register
class Variable(Operation):
    """Sets a variable in the current scope, for the operations that follow in the same list.

    It is computed once and read with Value and a `$` before its name. It cannot be seen outside of
    the list of operations, or the ForEach row, that it is set in.
    """

    op = "Variable"
    yields = "nothing"
    group = _SCOPE

    name: Name = Field(description="The variable's name, without $")
    value: Anything = Field(default=None, description="Its value")
    select: Anything = Field(default=None, description="Its value: another name of `value`")

    @classmethod
    def sets(cls, given: Mapping[str, Any]) -> str | None:
        name = given.get("name")
        return name.removeprefix("$") if isinstance(name, str) else None

    @classmethod
    def check(cls, given: Mapping[str, Any], visible: Visible) -> None:
        if ("value" in given) == ("select" in given):
            what = "Variable takes either value or select"
            raise ProgramError(what, where="args", code="exclusive-arguments")

    def run(self, run: Evaluation) -> Value:
        value = self.select if "select" in self.model_fields_set else self.value
        run.scope.set(self.name.removeprefix("$"), value)
        return None


@register
class Current(Operation):
    """Returns the current row (or item) of the innermost ForEach.

    Keep it with Variable, to use it inside a nested ForEach.
    """

    op = "Current"
    yields = "any"
    group = _SCOPE

    @classmethod
    def check(cls, given: Mapping[str, Any], visible: Visible) -> None:
        if not visible.has_item:
            raise ProgramError("there is no current row outside of ForEach", code="no-row")

    def run(self, run: Evaluation) -> Value:
        return run.scope.item


@register
class ForEach(Operation):
    """Executes one or more operations for each row of a table, or each item of a list.

    A single operation is applied to each row; of a list of operations all are executed in order
    for a row before the next row. Returns a list with one result a row; for a list of operations
    that is the list of their results.
    """

    op = "ForEach"
    yields = "list"
    group = _SCOPE
    goes_through = "select"

    select: Rows = Field(description="A SELECT, a table, a list of bindings, or any list")
    operation: Block = Field(description="What is done for each row: an operation or a list")
    concurrency: Concurrency = Field(
        default=1, description="Rows processed at the same time; results keep their order"
    )

    def run(self, run: Evaluation) -> Value:
        """Return the results, computed while they are read."""

        def result(placed: tuple[int, Value]) -> Value:
            at, item = placed
            return run.block(self.operation, run.scope.of_item(item, self.select.columns, at))

        items = enumerate(run.counted(self.select.items))
        return Stream(in_order(result, items, self.concurrency))


@register
class Execute(Operation):
    """Executes an operation, or a list of them in order, in a scope of its own.

    It sees the current row and all variables; variables set inside stay inside.
    """

    op = "Execute"
    yields = "any"
    group = _SCOPE

    operation: Block = Field(description="An operation, or a list of them")

    def run(self, run: Evaluation) -> Value:
        return run.block(self.operation, run.scope.inside())


@register
class Bindings(Operation):
    """Returns the rows of a table as a list of bindings, which a Variable can keep."""

    op = "Bindings"
    yields = "list"
    group = _ROWS

    table: Rows = Field(description="A table, or the results of writes")

    def run(self, run: Evaluation) -> Value:
        """Return the rows; the results of writes, which are a table each, are concatenated."""
        return Stream(run.counted(_rows(self.table.items)), self.table.columns)


def _rows(members: Iterable[Value]) -> Iterator[Value]:
    for member in members:
        if isinstance(member, Table):
            yield from member.rows
        else:
            yield member


@register
class Filter(Operation):
    """Selects from a table, a list or a row.

    A whole number takes the item at that position, counted from 1. A condition, written as in
    SPARQL's FILTER, takes the rows for which it holds (`?population > 100000`). Of a row, a name
    takes the term of that variable.
    """

    op = "Filter"
    yields = "any"
    group = _ROWS

    input: RowsOrRow = Field(description="A table, a list, or a row")
    expression: Position = Field(description="A position, a condition, or of a row a name")

    @classmethod
    def check(cls, given: Mapping[str, Any], visible: Visible) -> None:
        expression = given["expression"]
        if isinstance(expression, int) and not isinstance(expression, bool):
            _check_position(expression)
        elif isinstance(expression, str) and not expression.lstrip("?$").isidentifier():
            _condition(expression)

    def run(self, run: Evaluation) -> Value:
        """Return an item, the rows, or a term."""
        text = str(self.expression)
        number = self.expression.datatype == XSD.integer
        if isinstance(self.input, Mapping) and not number:
            name = text.lstrip("?$")
            if name not in self.input:
                raise _no_column(name, list(self.input), "args.expression")
            value: Value = self.input[name]
            return value
        items = as_stream(self.input)
        if number:
            return _item_at(run, items, int(text))
        if items.columns is None:
            items = _in_memory(items)
        condition = _condition(text)
        columns = items.columns or ()
        odd = [name for name in condition.names if columns and name not in columns]
        if odd:
            raise _no_column(odd[0], columns, "args.expression")
        return Table(columns, _holding(run, items, condition))


def _in_memory(items: Stream) -> Stream:
    """Read a list whose columns are unknown; the results of writes are concatenated."""
    try:
        table = as_table(list(items.items))
    except ProgramError:
        hint = "give a position, or use ForEach"
        what = "a condition needs rows"
        raise ProgramError(what, where="args.input", hint=hint, code="wrong-type") from None
    return Stream(table.rows, table.vars)


def _holding(run: Evaluation, items: Stream, condition: RowFilter) -> Iterator[Row]:
    for row in run.counted(items.items):
        if condition.holds(row):  # type: ignore[arg-type]
            yield row  # type: ignore[misc]


def _item_at(run: Evaluation, items: Stream, position: int) -> Value:
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
