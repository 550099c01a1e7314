"""Tables and lists: Bindings, Filter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import Field
from rdflib import XSD

from reasoningbank.algebra.arguments import Position, Rows, RowsOrRow
from reasoningbank.algebra.coercion import Items, MismatchError, as_items, as_table
from reasoningbank.algebra.conditions import Condition
from reasoningbank.algebra.contract import Evaluation
from reasoningbank.algebra.faults import ProgramError, one_of
from reasoningbank.algebra.operation import Example, Operation, register
from reasoningbank.algebra.values import Row, Stream, Table, Value
from reasoningbank.algebra.visible import Visible
from reasoningbank.errors import QueryError

__all__ = ["Bindings", "Filter"]

_ROWS = {
    "results": {
        "bindings": [
            {"city": {"type": "literal", "value": "Aarhus"}},
            {"city": {"type": "literal", "value": "Odense"}},
        ]
    }
}


@register
class Bindings(Operation):
    """Returns the rows of a table as a list of bindings, which a Variable can keep."""

    op = "Bindings"
    yields = "list"
    examples = (Example({"table": _ROWS}, _ROWS["results"]["bindings"]),)

    table: Rows = Field(description="A table, or the results of writes")

    def run(self, run: Evaluation) -> Value:
        """Return the rows; of the results of writes, which are a table each, all of them."""
        return Stream(run.counted(_rows(self.table.members)), self.table.columns)


@register
class Filter(Operation):
    """Selects from a table, a list or a row.

    A whole number takes the item at that position, counted from 1. A condition, written as in
    SPARQL's FILTER, takes the rows for which it holds (`?population > 100000`). Of a row, a name
    takes the term of that variable.
    """

    op = "Filter"
    yields = "any"
    examples = (
        Example(
            {"input": _ROWS, "expression": 2}, {"city": {"type": "literal", "value": "Odense"}}
        ),
        Example(
            {"input": _ROWS, "expression": "STRSTARTS(?city, 'A')"},
            {
                "head": {"vars": ["city"]},
                "results": {"bindings": [{"city": {"type": "literal", "value": "Aarhus"}}]},
            },
        ),
    )

    input: RowsOrRow = Field(description="A table, a list, or a row")
    expression: Position = Field(description="A position, a condition, or of a row a name")

    @classmethod
    def check(cls, given: Mapping[str, Any], visible: Visible) -> None:
        """Refuse positions below 1 and what is no expression."""
        expression = given["expression"]
        if isinstance(expression, int) and not isinstance(expression, bool):
            _position(expression)
        elif isinstance(expression, str) and not expression.lstrip("?$").isidentifier():
            _condition(expression)

    def run(self, run: Evaluation) -> Value:
        """Return an item, the rows, or a term."""
        text = str(self.expression)
        number = self.expression.datatype == XSD.integer
        if isinstance(self.input, Mapping) and not number:
            return _member(self.input, text.lstrip("?$"))
        items = as_items(self.input)
        if number:
            return _at(run, items, int(text))
        if items.columns is None:
            items = _in_memory(items)
        condition = _condition(text)
        columns = items.columns or ()
        odd = [name for name in condition.names if columns and name not in columns]
        if odd:
            hint = f"they have {one_of(columns)}"
            what = f"the rows have no {odd[0]!r}"
            raise ProgramError(what, where="args.expression", hint=hint)
        return Table(columns, _holding(run, items, condition))


def _rows(members: Iterable[Value]) -> Iterator[Value]:
    for member in members:
        if isinstance(member, Table):
            yield from member.rows
        else:
            yield member


def _in_memory(items: Items) -> Items:
    """Read a list whose columns nobody knows; the results of writes are put together."""
    try:
        table = as_table(list(items.members))
    except MismatchError:
        hint = "give a position, or use ForEach"
        raise ProgramError("a condition needs rows", where="args.input", hint=hint) from None
    return Items(table.rows, table.vars)


def _holding(run: Evaluation, items: Items, condition: Condition) -> Iterator[Row]:
    for row in run.counted(items.members):
        if condition.holds(row):  # type: ignore[arg-type]
            yield row  # type: ignore[misc]


def _member(row: Row, name: str) -> Value:
    if name not in row:
        hint = f"it has {one_of(list(row))}"
        raise ProgramError(f"the row has no {name!r}", where="args.expression", hint=hint)
    return row[name]


def _at(run: Evaluation, items: Items, position: int) -> Value:
    _position(position)
    number = 0
    for number, item in enumerate(run.counted(items.members), start=1):
        if number == position:
            return item
    what = f"there is no item {position}: there are {number}"
    raise ProgramError(what, where="args.expression")


def _position(number: int) -> None:
    if number < 1:
        raise ProgramError("positions are counted from 1", where="args.expression")


def _condition(text: str) -> Condition:
    try:
        return Condition(text)
    except QueryError as error:
        raise ProgramError(error.what, where="args.expression", hint=error.hint) from None
