"""Order and scope: Value, Variable, Current, ForEach, Execute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import Field

from reasoningbank.algebra.arguments import Anything, Block, Concurrency, Name, Rows
from reasoningbank.algebra.coercion import told
from reasoningbank.algebra.concurrent import in_order
from reasoningbank.algebra.contract import Evaluation
from reasoningbank.algebra.faults import ProgramError, one_of
from reasoningbank.algebra.operation import Example, Operation, register
from reasoningbank.algebra.values import Stream, Value
from reasoningbank.algebra.visible import Visible

__all__ = ["Current", "Execute", "ForEach", "ValueOf", "Variable"]


@register
class ValueOf(Operation):
    """Retrieves a variable, or a value of the current row.

    `$name` is the variable that a Variable operation set; `name` is the term that the current row
    of the innermost ForEach binds to ?name, with its type and language.
    """

    op = "Value"
    yields = "any"
    examples = (
        Example(
            {"name": "cityName"},
            "Copenhagen",
            {"cityName": {"type": "literal", "value": "Copenhagen"}},
        ),
        Example({"name": "$cityName"}),
    )

    name: Name = Field(description="$variable, or a variable of the current row")

    @classmethod
    def reads(cls, given: Mapping[str, Any]) -> Sequence[str]:
        """Return the variable of the row."""
        name = given.get("name")
        return [_bare(name)] if isinstance(name, str) and not name.startswith("$") else []

    @classmethod
    def check(cls, given: Mapping[str, Any], visible: Visible) -> None:
        """Refuse names that nothing can have set."""
        name = given["name"]
        if not isinstance(name, str) or not name.strip("$?"):
            return
        if name.startswith("$"):
            if name[1:] not in visible.variables:
                known = one_of([f"${known}" for known in sorted(visible.variables)])
                what = f"nothing before it sets the variable {name}"
                raise ProgramError(what, where="args.name", hint=f"known here: {known}")
        elif not visible.has_item:
            hint = f"${name} would be a variable"
            what = f"there is no row to take {name!r} from outside of ForEach"
            raise ProgramError(what, where="args.name", hint=hint)
        elif visible.columns is not None and _bare(name) not in visible.columns:
            raise _no_column(_bare(name), visible.columns)

    def run(self, run: Evaluation) -> Value:
        """Return the value; nothing where the row leaves the variable unbound."""
        if self.name.startswith("$"):
            return run.scope.variables()[self.name[1:]]
        name, item = _bare(self.name), run.scope.item
        if not isinstance(item, Mapping):
            hint = "use Current for the item itself"
            raise ProgramError(f"the current item is {told(item)}, not a row", hint=hint)
        columns = run.scope.columns if run.scope.columns is not None else tuple(item)
        if name not in item and name not in columns:
            raise _no_column(name, columns)
        return item.get(name)


def _bare(name: str) -> str:
    return name.removeprefix("?")


def _no_column(name: str, columns: Sequence[str]) -> ProgramError:
    hint = f"it has {one_of(columns)}"
    return ProgramError(f"the row has no {name!r}", where="args.name", hint=hint)


@register
class Variable(Operation):
    """Sets a variable in the current scope, for the operations that follow in the same list.

    It is computed once and read with Value and a `$` before its name. It cannot be seen outside of
    the list of operations, or the ForEach row, that it is set in.
    """

    op = "Variable"
    yields = "nothing"
    examples = (
        Example(
            {
                "name": "monarchName",
                "value": {
                    "@op": "Str",
                    "args": {"input": {"@op": "Value", "args": {"name": "monarchLabel"}}},
                },
            },
            None,
            {"monarchLabel": {"type": "literal", "value": "Ambiorix", "xml:lang": "en"}},
        ),
    )

    name: Name = Field(description="The variable's name, without $")
    value: Anything = Field(default=None, description="Its value")
    select: Anything = Field(default=None, description="Its value: the other name of `value`")

    @classmethod
    def sets(cls, given: Mapping[str, Any]) -> str | None:
        """Return the variable."""
        name = given.get("name")
        return name.removeprefix("$") if isinstance(name, str) else None

    @classmethod
    def check(cls, given: Mapping[str, Any], visible: Visible) -> None:
        """Refuse two values, and none."""
        if ("value" in given) == ("select" in given):
            raise ProgramError("Variable takes one of value and select", where="args")

    def run(self, run: Evaluation) -> Value:
        """Set it, and return nothing."""
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
    examples = (
        Example(
            {},
            {"monarchLabel": {"type": "literal", "value": "Ambiorix", "xml:lang": "en"}},
            {"monarchLabel": {"type": "literal", "value": "Ambiorix", "xml:lang": "en"}},
        ),
    )

    @classmethod
    def check(cls, given: Mapping[str, Any], visible: Visible) -> None:
        """Refuse it where there is no item."""
        if not visible.has_item:
            raise ProgramError("there is no current row outside of ForEach")

    def run(self, run: Evaluation) -> Value:
        """Return the item."""
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
    goes_through = "select"
    examples = (
        Example(
            {
                "select": {
                    "@op": "SELECT",
                    "args": {
                        "endpoint": "https://dbpedia.org/sparql",
                        "query": "SELECT ?city WHERE { ?city a "
                        "<http://dbpedia.org/ontology/City> }",
                    },
                },
                "operation": {
                    "@op": "GET",
                    "args": {
                        "url": {
                            "@op": "Str",
                            "args": {"input": {"@op": "Value", "args": {"name": "city"}}},
                        }
                    },
                },
            }
        ),
    )

    select: Rows = Field(description="A SELECT, a table, a list of bindings, or any list")
    operation: Block = Field(description="What is done for each row: an operation or a list")
    concurrency: Concurrency = Field(
        default=1, description="Rows that are worked on at the same time; results keep their order"
    )

    def run(self, run: Evaluation) -> Value:
        """Return the results, made while they are read."""
        return Stream(self._results(run))

    def _results(self, run: Evaluation) -> Iterator[Value]:
        def result(placed: tuple[int, Value]) -> Value:
            at, item = placed
            scope = run.scope.of_item(item, self.select.columns, at)
            return run.block(self.operation, scope)

        items = enumerate(run.counted(self.select.members))
        yield from in_order(result, items, self.concurrency)


@register
class Execute(Operation):
    """Executes an operation, or a list of them in order, in a scope of its own.

    It sees the current row and all variables; variables set inside stay inside.
    """

    op = "Execute"
    yields = "any"
    examples = (
        Example(
            {
                "operation": {
                    "@op": "GET",
                    "args": {"url": "http://dbpedia.org/resource/Copenhagen"},
                }
            }
        ),
    )

    operation: Block = Field(description="An operation, or a list of them")

    def run(self, run: Evaluation) -> Value:
        """Return what the operation yields."""
        return run.block(self.operation, run.scope.inside())
