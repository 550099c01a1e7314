"""An operation is a small class whose fields are its arguments; all are registered by name.

The class is a pydantic model; an instance holds evaluated arguments of the right kinds. The
validation of programs, the JSON Schema (for editors and constrained decoding), the reference and
the agent's prompt are derived from it.
`define` makes the class of a function:

```python
@define("ResolveURI", "uri", "Making URIs")
def resolve_uri(run: Evaluation, base: Annotated[Uri, "The base URL"]) -> Value:
    '''Creates a new URI relative to the base URL.'''
```
"""

from __future__ import annotations

import difflib
import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar, get_args
from typing import Literal as OneOf

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, create_model
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema
from rdflib import Graph, Literal, URIRef

from reasoningbank.algebra import values as convert
from reasoningbank.algebra.evaluation import Block as BlockOf
from reasoningbank.algebra.evaluation import Evaluation
from reasoningbank.algebra.terms import ProgramError, Term, json_path, locating, one_of
from reasoningbank.algebra.values import Row, Stream, Table, Value, kept
from reasoningbank.corpus.shacl import complete_prefixes

#: What an operation yields. `any` is known at run time only.
Yield = OneOf["text", "uri", "term", "row", "table", "graph", "list", "nothing", "any"]
#: Its names in error messages and in signatures.
YIELDED: Mapping[Yield, tuple[str, str]] = {
    "text": ("a string", "str"),
    "uri": ("a URI", "URI"),
    "term": ("an RDF term", "Term"),
    "row": ("a row", "Row"),
    "table": ("a table", "Table"),
    "graph": ("a graph", "Graph"),
    "list": ("a list", "List"),
    "nothing": ("nothing", "None"),
    "any": ("a value", "any"),
}
#: The forms of an argument that is not an operation.
Form = OneOf["string", "number", "boolean", "count", "term", "row", "results", "graph", "list"]


@dataclass(frozen=True)
class Kind:
    """A kind of argument, the metadata of an operation's field."""

    name: str
    expected: str
    takes: frozenset[Yield]
    convert: Callable[[Any], Any]
    forms: tuple[Form, ...]
    reading: OneOf["value", "graph", "list", "constant", "block"] = "value"
    of: Kind | None = None

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Accept any value: `Operation.of` has converted it."""
        return core_schema.any_schema()


_NONE: frozenset[Yield] = frozenset()
_TERMS: frozenset[Yield] = frozenset({"text", "uri", "term", "any"})
_LISTS: frozenset[Yield] = frozenset({"list", "any"})
_ROWS: frozenset[Yield] = frozenset({"list", "table", "row", "any"})
_GRAPHS: frozenset[Yield] = frozenset({"graph", "any"})
_IN_ROWS: tuple[Form, ...] = ("results", "list")
_IN_TERMS: tuple[Form, ...] = ("string", "number", "boolean", "term", "row")


def _list(name: str, expected: str, takes: frozenset[Yield], of: Kind, flat: bool = False) -> Kind:
    members = partial(convert.as_list, of.convert, expected, flat)
    return Kind(name, expected, takes, members, ("list",), "list", of)


_TEXT = Kind("str", "a string", _TERMS, convert.as_text, ("string", "term"))
_GRAPH = Kind("Graph", "a graph (JSON-LD)", _GRAPHS, convert.as_graph, ("graph",), "graph")
_NAME = Kind("str", "a name", _NONE, convert.as_name, ("string",), "constant")
#: A string, not a URI: what SPARQL's functions on strings take.
String = Annotated[
    Literal,
    Kind("str", "a string", _TERMS - {"uri"}, convert.as_string, ("string", "term")),
]
#: A string; of a term, its text with its language.
Text = Annotated[Literal, _TEXT]
PlainText = Annotated[str, Kind("str", "a string", _TERMS, convert.as_plain, ("string",))]
#: A query or an update.
Query = Annotated[str, Kind("Query", "a SPARQL text", _TERMS, convert.as_plain, ("string",))]
#: An absolute IRI.
Uri = Annotated[URIRef, Kind("URI", "a URI", _TERMS, convert.as_uri, ("string", "term"))]
#: An http or https address.
Url = Annotated[str, Kind("URL", "a URL", _TERMS, convert.as_url, ("string", "term"))]
#: A term, or a whole row of them.
RowOrTerm = Annotated[
    Term | Row,
    Kind("Term | Row", "an RDF term or a row", _TERMS | {"row"}, convert.as_binding, _IN_TERMS),
]
GraphLike = Annotated[Graph, _GRAPH]
Graphs = Annotated[list[Graph], _list("List[Graph]", "a list of graphs", _LISTS, _GRAPH, flat=True)]
Texts = Annotated[list[Literal], _list("List[str]", "a list of strings", _LISTS, _TEXT)]
#: A sequence to iterate over: a table, results without ``head``, bindings, any list.
Rows = Annotated[
    Stream, Kind("Table | List", "a table or a list", _ROWS, convert.as_stream, _IN_ROWS)
]
TableLike = Annotated[Table, Kind("Table", "a table", _ROWS, convert.as_table, _IN_ROWS)]
_ROWS_OR_ROW = ("Table | List | Row", "a table, a list or a row")
RowsOrRow = Annotated[
    Any, Kind(*_ROWS_OR_ROW, _ROWS, convert.as_sequence, ("results", "list", "row"))
]
Anything = Annotated[
    Any,
    Kind(
        "any", "a value", _TERMS | _ROWS | _GRAPHS, kept, (*_IN_TERMS, "results", "graph", "list")
    ),
]
#: A name, written in the program itself.
Name = Annotated[str, _NAME]
Names = Annotated[Sequence[str], _list("List[str]", "a list of names", _NONE, _NAME)]
#: A whole number, or an expression.
_POSITION = ("int | str", "a whole number or an expression")
Position = Annotated[Literal, Kind(*_POSITION, _TERMS, convert.as_position, ("string", "count"))]
Concurrency = Annotated[int, Kind("int", "a number", _NONE, convert.as_workers, ("count",))]
#: True or false, written in the program itself.
Flag = Annotated[bool, Kind("bool", "true or false", _NONE, convert.as_flag, ("boolean",))]
#: One operation, or several in order, that the operation runs by itself.
_OPERATIONS = ("Operation | List[Operation]", "an operation or a list of operations")
Block = Annotated[BlockOf, Kind(*_OPERATIONS, _NONE, lambda block: block, (), "block")]


@dataclass(frozen=True)
class Visible:
    """What a place of a program sees before the run: the static counterpart of a scope."""

    variables: frozenset[str] = frozenset()
    texts: Mapping[str, str] = field(default_factory=dict)  #: What variables hold, where written
    has_item: bool = False
    columns: tuple[str, ...] | None = None
    based: bool = False
    depth: int = 0
    prefixes: Mapping[str, str] = field(default_factory=dict)  #: Those of `read_program`
    reads: set[str] = field(default_factory=set)

    def after_setting(self, name: str, value: Any) -> Visible:
        """Return what the operations behind one that sets a variable see."""
        texts = {one: text for one, text in self.texts.items() if one != name}
        texts |= {name: value} if isinstance(value, str) else {}
        return replace(self, variables=self.variables | {name}, texts=texts)

    def query(self, data: Any) -> Any:
        """Return the query that a Value reads, if a variable holds its text; else the data."""
        call = isinstance(data, Mapping) and data.get("@op") == "Value"
        args = data.get("args") if call else None
        name = args.get("name") if isinstance(args, Mapping) else None
        if not isinstance(name, str) or name[:1] != "$" or name[1:] not in self.texts:
            return data
        return complete_prefixes(self.texts[name[1:]], self.prefixes).text


class Example(NamedTuple):
    """A call and its result as JSON (None if not shown), with the current row that it reads."""

    args: Mapping[str, Any]
    result: Any = None
    row: Mapping[str, Any] | None = None


class Operation(BaseModel, ABC):
    """Base of all operations; people and agents read the class's docstring."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    op: ClassVar[str]  #: The name in programs
    yields: ClassVar[Yield]  #: What a call yields
    group: ClassVar[str] = "Operations"  #: The heading in the reference
    writes: ClassVar[bool] = False  #: Whether a call changes documents
    #: The argument whose items the operation's block is run for
    goes_through: ClassVar[str | None] = None
    asks: ClassVar[str] = ""  #: The form of the query that it sends; empty if it sends none
    #: The argument against which relative IRIs in its graph are resolved; it comes before the graph
    base_argument: ClassVar[str | None] = None
    examples: ClassVar[tuple[Example, ...]] = ()  #: Calls; the first is in the agent's prompt

    @abstractmethod
    def run(self, run: Evaluation) -> Value:
        """Carry it out and return the result; the evaluation adds the JSON path to errors."""

    @classmethod
    def check(cls, given: Mapping[str, Any], visible: Visible) -> None:
        """Raise QueryError for arguments that are wrong before the program runs.

        `given` holds the arguments as JSON, not evaluated; all required ones are there, but they
        need not have the right types. The error's `where` may name an argument (``args.query``).
        """

    @classmethod
    def reads(cls, given: Mapping[str, Any]) -> Sequence[str]:
        """Return the variables of the current row that a call reads."""
        return ()

    @classmethod
    def sets(cls, given: Mapping[str, Any]) -> str | None:
        """Return the variable that a call sets for the rest of its block."""
        return None

    @classmethod
    def columns(cls, given: Mapping[str, Any]) -> tuple[str, ...] | None:
        """Return the columns of a call's result; None if they are not known before the run."""
        return None

    @classmethod
    def of(cls, values: Mapping[str, Any], path: str) -> Operation:
        """Build a call from evaluated arguments."""
        fitting: dict[str, Any] = {}
        for name, value in values.items():
            with locating(json_path(path, "args", name)):
                fitting[name] = kind_of(cls.model_fields[name]).convert(value)
        return cls(**fitting)


_register: dict[str, type[Operation]] = {}
_Kind = TypeVar("_Kind", bound=Operation)
_Function = TypeVar("_Function", bound=Callable[..., Value])


def register(cls: type[_Kind]) -> type[_Kind]:
    """Register an operation by its name; a class decorator."""
    if cls.op in _register:
        raise ValueError(f"two operations are called {cls.op}")
    for name, field_ in cls.model_fields.items():
        if not field_.description:
            raise ValueError(f"{cls.op}: the argument {name} has no description")
        if not any(isinstance(part, Kind) for part in field_.metadata):
            raise ValueError(f"{cls.op}: the argument {name} has no kind (annotate it with one)")
    _register[cls.op] = cls
    return cls


class _Defined(Operation):
    function: ClassVar[Callable[..., Value]]

    def run(self, run: Evaluation) -> Value:
        return type(self).function(run, **dict(self))


def define(op: str, yields: Yield, group: str, **traits: Any) -> Callable[[_Function], _Function]:
    """Register the operation that a function carries out; `traits` go into its `Operation`."""

    def made(function: _Function) -> _Function:
        arguments = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        fields: dict[str, Any] = {}
        for one in arguments:
            default = ... if one.default is one.empty else one.default
            description = get_args(one.annotation)[-1]
            fields[one.name] = (one.annotation, Field(default, description=description))
        kind = create_model(op, __base__=_Defined, __doc__=function.__doc__, **fields)
        attributes = {"op": op, "yields": yields, "group": group, "function": function, **traits}
        for name, value in attributes.items():
            setattr(kind, name, staticmethod(value) if inspect.isfunction(value) else value)
        register(kind)
        return function

    return made


def operations() -> Mapping[str, type[Operation]]:
    """Return all operations by name, in the order of their registration."""
    return MappingProxyType(_register)


def operation(name: str) -> type[Operation]:
    """Return an operation by name; the error for an unknown one suggests a similar one."""
    if name in _register:
        return _register[name]
    spelt = {known.lower(): known for known in _register}
    near = [spelt[one] for one in difflib.get_close_matches(name.lower(), spelt, n=1)]
    hint = f"did you mean {near[0]!r}" if near else f"use {one_of(list(_register), 40)}"
    what = f"unknown operation {name!r}"
    raise ProgramError(what, hint=hint, code="unknown-operation", name=name, replacements=near)


def kind_of(field: FieldInfo) -> Kind:
    return next(part for part in field.metadata if isinstance(part, Kind))


# -- operations described -----------------------------------------------------------------------

#: Shorter JSON is written on one line.
_LINE = 96
_RULES = Path(__file__).with_name("rules.txt").read_text("utf-8")


def _kinds(names: Iterable[str] | None) -> list[type[Operation]]:
    return [*operations().values()] if names is None else [operation(name) for name in names]


def signature(kind: type[Operation]) -> str:
    """Return an operation's signature."""
    arguments = ", ".join(
        f"{name}{'' if field.is_required() else '?'}: {kind_of(field).name}"
        for name, field in kind.model_fields.items()
    )
    return f"{kind.op}({arguments}) → {YIELDED[kind.yields][1]}"


def summary(kind: type[Operation]) -> str:
    """Return the first sentence of an operation's description."""
    return _text(kind).partition("\n")[0]


def _text(kind: type[Operation]) -> str:
    return inspect.cleandoc(kind.__doc__ or "")


def reference(names: Iterable[str] | None = None) -> str:
    """Return the reference of operations (all by default) in Markdown, made from their classes."""
    if names is not None:
        return "\n".join(_section(kind, 3) for kind in _kinds(names))
    parts: list[str] = []
    for group, kinds in groupby(_kinds(None), lambda kind: kind.group):
        parts.append(f"### {group}\n")
        parts += [_section(kind, 4) for kind in kinds]
    return "\n".join(parts)


def agent_prompt(names: Iterable[str] | None = None) -> str:
    """Return the instructions by which an agent writes a program of these operations, or of all."""
    lines = [_RULES, "Operations"]
    for kind in _kinds(names):
        lines += [signature(kind), *(f"  {line}" for line in _text(kind).splitlines() if line)]
        lines += [f"  {convert.json_text(_call(kind, one))}" for one in kind.examples[:1]]
    return "\n".join(lines) + "\n"


def _section(kind: type[Operation], level: int) -> str:
    lines = [f"{'#' * level} {kind.op}", "", f"`{signature(kind)}`", "", _text(kind), ""]
    if kind.model_fields:
        lines += ["| argument | kind | meaning |", "|---|---|---|"]
        for name, field in kind.model_fields.items():
            needed = "" if field.is_required() else " (optional)"
            wanted = kind_of(field).name.replace("|", "\\|")
            lines.append(f"| `{name}`{needed} | {wanted} | {field.description} |")
        lines.append("")
    for example in kind.examples:
        if example.row is not None:
            lines += ["With the current row", "", *_fenced(example.row), ""]
        lines += [*_fenced(_call(kind, example)), ""]
        if example.result is not None:
            lines += ["yields", "", *_fenced(example.result), ""]
    return "\n".join(lines)


def _fenced(data: Any) -> list[str]:
    short = convert.json_text(data)
    text = short if len(short) <= _LINE else json.dumps(data, ensure_ascii=False, indent=2)
    return ["```json", text, "```"]


def _call(kind: type[Operation], example: Example) -> dict[str, Any]:
    return {"@op": kind.op, **({"args": example.args} if example.args else {})}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def _any_of(*forms: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": list(forms)}


def _list_of(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _object(members: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": members,
        "required": required,
        "additionalProperties": False,
    }


_FORMS: dict[Form, dict[str, Any]] = {
    "string": {"type": "string"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "count": {"type": "integer", "minimum": 1},
    "term": _ref("term"),
    "row": _ref("row"),
    "results": _ref("results"),
    "graph": _ref("jsonld"),
    "list": _list_of(_ref("any")),
}
#: Terms, rows, results and JSON-LD. It uses only what llama.cpp can convert to a grammar: `$ref`,
#: `anyOf`, `const`, `enum`, and plain object, array and scalar schemas. An operation is no JSON-LD;
#: not every engine can forbid a key, so ``@op`` is allowed there only as null.
_SHARED = json.loads(Path(__file__).with_name("shared_schema.json").read_text(encoding="utf-8"))


def program_schema(names: Iterable[str] | None = None) -> dict[str, Any]:
    """Return the JSON Schema of a program that may hold these operations, or all."""
    kinds = _kinds(names)
    defs: dict[str, Any] = {"operation": _any_of(*(_ref(kind.op) for kind in kinds))}
    for kind in kinds:
        members: dict[str, Any] = {"@op": {"const": kind.op}}
        args = {
            name: {"description": field.description, **_argument(kind_of(field), kinds, defs)}
            for name, field in kind.model_fields.items()
        }
        needed = [name for name, field in kind.model_fields.items() if field.is_required()]
        members["args"] = _object(args, needed)
        needed = list(members) if args else ["@op"]
        defs[kind.op] = {"description": summary(kind), **_object(members, needed)}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Web Algebra program",
        **_any_of(_ref("operation"), _ref("operations")),
        "$defs": {**defs, **_SHARED},
    }


def _argument(wanted: Kind, kinds: list[type[Operation]], defs: dict[str, Any]) -> dict[str, Any]:
    if wanted.reading == "block":
        return _any_of(_ref("operation"), _ref("operations"))
    forms = [_FORMS[form] for form in wanted.forms]
    if wanted.forms == ("count",):
        forms = [{**_FORMS["count"], "maximum": convert.MOST_WORKERS}]
    if wanted.of is not None:
        forms = [_list_of(_argument(wanted.of, kinds, defs))]
    if fitting := [_ref(kind.op) for kind in kinds if kind.yields in wanted.takes]:
        name = "-or-".join(["yields", *sorted(wanted.takes - {"any"})])
        defs[name] = _any_of(*fitting)
        forms.append(_ref(name))
    return forms[0] if len(forms) == 1 else _any_of(*forms)
