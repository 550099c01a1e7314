"""An operation: one small class, whose fields are its arguments, and the register of all.

```python
@register
class ResolveURI(Operation):
    '''Creates a new URI relative to the base URL.'''

    op = "ResolveURI"
    yields = "uri"
    examples = (...)

    base: Uri = Field(description="What it is relative to.")
    relative: Text = Field(description="A pre-encoded relative URI.")

    def run(self, run: Evaluation) -> Value: ...
```

The class is a pydantic model: an instance holds arguments that are evaluated and of their kinds.
From it come the check of programs, the JSON Schema, the documentation and the agent's prompt.
"""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.fields import FieldInfo

from reasoningbank.algebra.arguments import Kind, Yield
from reasoningbank.algebra.contract import Evaluation
from reasoningbank.algebra.faults import ProgramError, at_path, one_of
from reasoningbank.algebra.values import Value
from reasoningbank.algebra.visible import Visible

__all__ = ["Example", "Operation", "kind_of", "operation", "operations", "register"]


class Example(NamedTuple):
    """A call as it stands in a program, and what comes of it.

    Attributes:
        args: The arguments as JSON.
        result: The result as JSON; None where it is not told.
        row: The current row that the call reads, as a binding.
    """

    args: Mapping[str, Any]
    result: Any = None
    row: Mapping[str, Any] | None = None


class Operation(BaseModel, ABC):
    """Base of all operations; the class's docstring is what people and agents read of it.

    Attributes:
        op: The name in programs.
        yields: What a call yields.
        writes: Whether a call changes documents.
        goes_through: The argument whose items its block is run for.
        base_argument: The argument that relative IRIs in its graph are relative to; it comes
            before the graph.
        examples: Calls, the first of which stands in the agent's prompt.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    op: ClassVar[str]
    yields: ClassVar[Yield]
    writes: ClassVar[bool] = False
    goes_through: ClassVar[str | None] = None
    base_argument: ClassVar[str | None] = None
    examples: ClassVar[tuple[Example, ...]] = ()

    @abstractmethod
    def run(self, run: Evaluation) -> Value:
        """Do it, and return the result.

        Raises:
            ReasoningBankError: It cannot be done. The evaluation puts the JSON path before it.
        """

    @classmethod
    def check(cls, given: Mapping[str, Any], visible: Visible) -> None:
        """Refuse arguments that cannot do, before the program runs.

        Args:
            given: The arguments as JSON, not evaluated: all that are required, though they need
                not be of their kinds.
            visible: What can be seen from the call.

        Raises:
            QueryError: They cannot do; `where` may name an argument (``args.query``).
        """

    @classmethod
    def reads(cls, given: Mapping[str, Any]) -> Sequence[str]:
        """Return the variables of the current row that a call reads."""
        return ()

    @classmethod
    def sets(cls, given: Mapping[str, Any]) -> str | None:
        """Return the variable that a call sets for what follows it in its block."""
        return None

    @classmethod
    def columns(cls, given: Mapping[str, Any]) -> tuple[str, ...] | None:
        """Return the columns of what a call yields, where the program tells them."""
        return None

    @classmethod
    def of(cls, values: Mapping[str, Any], path: str) -> Operation:
        """Build a call of evaluated arguments.

        Raises:
            ProgramError: A value is not of its argument's kind.
        """
        try:
            return cls(**values)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = at_path(path, "args", *first["loc"])
            told = first.get("ctx", {}).get("error", first["msg"])
            what, _, hint = str(told).partition("; ")
            raise ProgramError(what, where=where, hint=hint) from None


_register: dict[str, type[Operation]] = {}
_Kind = TypeVar("_Kind", bound=Operation)


def register(cls: type[_Kind]) -> type[_Kind]:
    """Make an operation known by its name; a class decorator.

    Raises:
        ValueError: The name is taken, or an argument lacks its description or its kind.
    """
    if cls.op in _register:
        raise ValueError(f"two operations are called {cls.op}")
    for name, field in cls.model_fields.items():
        if not field.description:
            raise ValueError(f"{cls.op}: the argument {name} has no description")
        if not any(isinstance(part, Kind) for part in field.metadata):
            raise ValueError(f"{cls.op}: the argument {name} is of no kind (see arguments)")
    _register[cls.op] = cls
    return cls


def operations() -> Mapping[str, type[Operation]]:
    """Return all operations by name, in the order they were registered."""
    return MappingProxyType(_register)


def operation(name: str) -> type[Operation]:
    """Return an operation by name.

    Raises:
        ProgramError: There is none; a name that differs in case or is close to it is told.
    """
    try:
        return _register[name]
    except KeyError:
        pass
    spelt = {known.lower(): known for known in _register}
    near = difflib.get_close_matches(name.lower(), spelt, n=1)
    hint = f"did you mean {spelt[near[0]]!r}" if near else f"use {one_of(list(_register), 40)}"
    raise ProgramError(f"there is no operation {name!r}", hint=hint)


def kind_of(field: FieldInfo) -> Kind:
    """Return the kind of an argument."""
    return next(part for part in field.metadata if isinstance(part, Kind))
