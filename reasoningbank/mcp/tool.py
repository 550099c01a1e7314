"""A tool as a client sees it: a name, what it does, arguments that are checked, one JSON answer."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model

from reasoningbank.errors import ToolError
from reasoningbank.mcp.desk import Desk
from reasoningbank.mcp.desks import key_of
from reasoningbank.refs import Ref
from reasoningbank.tools import Rows

__all__ = ["Tool", "method_tool", "shown"]

#: Mistakes of one call that are told; the first mends most.
MOST_MISTAKES = 3

_ABOUT = {
    "ref": "A handle's key, as a tool gave it, e.g. results_0",
    "query": "The text",
    "limit": "How many at most; lowered to the tool's own most, and said so",
    "n": "How many at most; lowered to the tool's own most, and said so",
    "start": "The first of them, from 0",
    "end": "The one after the last",
    "full": "Whether terms are given in full, as N-Triples writes them",
    "uri": "A resource: an IRI, or a prefixed name",
    "class_uri": "A class: an IRI, or a prefixed name",
    "pattern": "A part of a name",
    "path": "A pack; may be left out",
    "name": "A name or an address",
    "url": "The address of an endpoint",
    "item_id": "An id that memory_search gave",
}


@dataclass(frozen=True)
class Tool:
    """A tool.

    Attributes:
        name: Its name.
        description: What it does, for the model that calls it.
        arguments: Checks what it is given; its JSON Schema is told to clients.
        call: Answers a call; the event is set when the client calls the call off.
        makes_handle: Whether the answer is, or may be, a new handle.
        writes: Whether it may change anything outside of the session.
        open_world: Whether it reaches beyond what the server itself holds.
    """

    name: str
    description: str
    arguments: type[BaseModel]
    call: Callable[[Desk, dict[str, Any], threading.Event], dict[str, Any]]
    makes_handle: bool = False
    writes: bool = False
    open_world: bool = False

    def answer(self, desk: Desk, given: Mapping[str, Any], stop: threading.Event) -> dict[str, Any]:
        """Answer a call.

        Raises:
            ToolError: The arguments are not what the tool takes, or it failed.
            ReasoningBankError: It failed.
        """
        arguments = self._checked(given)
        if self.makes_handle:
            desk.check_room()
        return self.call(desk, arguments, stop)

    def _checked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        try:
            model = self.arguments.model_validate(dict(given))
        except ValidationError as error:
            wrong = [_mistake(one) for one in error.errors(include_url=False)[:MOST_MISTAKES]]
            names = ", ".join(self.arguments.model_fields) or "no arguments"
            hint = f"{self.name} takes {names}"
            raise ToolError("; ".join(wrong), where=self.name, hint=hint) from None
        return {name: getattr(model, name) for name in self.arguments.model_fields}


def method_tool(kind: type[Any], name: str, held_by: Callable[[Desk], Any], **traits: bool) -> Tool:
    """Return the tool that calls a method of what a desk holds.

    Args:
        kind: The class whose method it is: signature and docstring are what clients are told.
        name: The method.
        held_by: Returns the desk's own object of that class.
        traits: What else there is to say, as `Tool` takes it.

    Examples:
        >>> from reasoningbank.tools import SPARQLTools
        >>> tool = method_tool(SPARQLTools, "sparql_peek", lambda desk: desk.sparql)
        >>> tool.arguments.model_json_schema()["properties"]["n"]["default"], tool.description
        (5, 'Return the first n rows of a handle (at most 20); full=True gives uncut terms.')
    """
    method = getattr(kind, name)
    fields: dict[str, Any] = {}
    for one in list(inspect.signature(method, eval_str=True).parameters.values())[1:]:
        wanted = Annotated[str, BeforeValidator(_key)] if one.name == "ref" else one.annotation
        default = ... if one.default is inspect.Parameter.empty else one.default
        fields[one.name] = (wanted, Field(default, description=_ABOUT.get(one.name)))
    arguments = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)

    def call(desk: Desk, given: dict[str, Any], _: threading.Event) -> dict[str, Any]:
        return shown(getattr(held_by(desk), name)(**given))

    return Tool(name, inspect.cleandoc(method.__doc__ or ""), arguments, call, **traits)


def shown(value: Any) -> dict[str, Any]:
    """Return what a tool gave as a JSON object.

    Examples:
        >>> shown(Ref("results_0", "results", 3, 20, "UniProt"))["key"]
        'results_0'
        >>> shown(Rows([{"n": 1}], source="UniProt", total=3, truncated=True, note="2 more"))
        {'source': 'UniProt', 'total': 3, 'rows': [{'n': 1}], 'truncated': True, 'note': '2 more'}
    """
    if isinstance(value, Ref):
        return asdict(Ref(value.key, value.dtype, value.rows, value.sz, value.source))
    if isinstance(value, Rows):
        told = {"source": value.source, "total": value.total, "rows": list(value)}
        told["truncated"] = value.truncated
        return told | ({"note": value.note} if value.note else {})
    return dict(value)


def _key(value: object) -> object:
    return key_of(value) or value


def _mistake(error: Mapping[str, Any]) -> str:
    where = ".".join(str(part) for part in error["loc"])
    said = str(error["msg"])
    return f"{where}: {said}" if where else said
