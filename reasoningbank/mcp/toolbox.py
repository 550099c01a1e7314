"""What a server offers: tools, with checked arguments and one JSON answer, and resources.

Clients read resources without a tool: sense card, schema, operations of programs.
"""

from __future__ import annotations

import inspect
import json
import threading
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, unquote

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model

from reasoningbank.errors import ToolError, UsageError
from reasoningbank.mcp.sessions import Session, Settings, Shared, key_of
from reasoningbank.refs import Ref
from reasoningbank.tools import EndpointTools, Rows, SPARQLTools
from reasoningbank.tools.endpoint_tools import TOOL_NAMES as ENDPOINT_TOOLS
from reasoningbank.tools.sparql import TOOL_NAMES as SPARQL_TOOLS

#: Mistakes of one call that are reported.
MAX_MISTAKES = 3

TEXTS = tomllib.loads(Path(__file__).with_name("texts.toml").read_text("utf-8"))

#: A handle, given by its key or as a whole.
HandleKey = Annotated[str, BeforeValidator(lambda ref: key_of(ref) or ref)]


@dataclass(frozen=True)
class Tool:
    """A tool."""

    name: str
    description: str
    arguments: type[BaseModel]
    call: Callable[[Session, dict[str, Any], threading.Event], dict[str, Any]]
    makes_handle: bool = False
    writes: bool = False
    open_world: bool = False

    def answer(
        self, session: Session, given: Mapping[str, Any], stop: threading.Event
    ) -> dict[str, Any]:
        """Answer a call."""
        try:
            arguments = dict(self.arguments.model_validate(dict(given)))
        except ValidationError as error:
            wrong = [
                ": ".join(filter(None, (".".join(map(str, one["loc"])), one["msg"])))
                for one in error.errors(include_url=False)[:MAX_MISTAKES]
            ]
            names = ", ".join(self.arguments.model_fields) or "no arguments"
            hint = f"{self.name} takes {names}"
            raise ToolError("; ".join(wrong), where=self.name, hint=hint) from None
        if self.makes_handle:
            session.check_room()
        return self.call(session, arguments, stop)


def method_tool(
    kind: type[Any], name: str, held_by: Callable[[Session], Any], **traits: bool
) -> Tool:
    """Return a tool that calls a method of an object of the session."""
    method = getattr(kind, name)
    fields: dict[str, Any] = {}
    for one in list(inspect.signature(method, eval_str=True).parameters.values())[1:]:
        wanted = HandleKey if one.name == "ref" else one.annotation
        default = ... if one.default is inspect.Parameter.empty else one.default
        fields[one.name] = (wanted, Field(default, description=TEXTS["parameters"].get(one.name)))
    arguments = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)

    def call(session: Session, given: dict[str, Any], _: threading.Event) -> dict[str, Any]:
        return shown(getattr(held_by(session), name)(**given))

    return Tool(name, inspect.cleandoc(method.__doc__ or ""), arguments, call, **traits)


def shown(value: Any) -> dict[str, Any]:
    """Return a tool's result as a JSON object."""
    if isinstance(value, Ref):
        return asdict(Ref(value.key, value.dtype, value.rows, value.sz, value.source))
    if isinstance(value, Rows):
        found = {"source": value.source, "total": value.total, "rows": list(value)}
        found["truncated"] = value.truncated
        return found | ({"note": value.note} if value.note else {})
    return dict(value)


_GIVE_HANDLES = ("sparql_query", "federated_endpoints", "service_desc")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Names(_Strict):
    names: list[str] = Field(
        default_factory=list, description="Operations to explain in full; none lists all"
    )


class _Checked(_Strict):
    program: Any = Field(
        description="The program: a JSON object, a list of them, or the text of one",
        json_schema_extra={"type": ["object", "array", "string"]},
    )
    variables: dict[str, Any] = Field(
        default_factory=dict, description="Values of the program's variables, by name"
    )


class _Program(_Checked):
    dry_run: bool = Field(False, description="Read, and list what would be written")


class _Slice(_Strict):
    ref: HandleKey = Field(description="The handle's key, as algebra_run gave it, e.g. program_0")
    start: int = Field(0, description="The first item, from 0")
    limit: int = Field(50, description="Maximum number, at most 50")


class _Question(_Strict):
    question: str = Field(description="A question in natural language")


def toolbox(settings: Settings, resources: str) -> dict[str, Tool]:
    """Return the tools of a server by name, in the order that clients need them."""
    held: list[tuple[type[Any], Sequence[str], str]] = [
        (SPARQLTools, SPARQL_TOOLS, "sparql"),
        (EndpointTools, ENDPOINT_TOOLS, "endpoints"),
    ]
    if settings.bank is not None:
        # Slow to load.
        from reasoningbank.memory import MemoryTools

        held.append((MemoryTools, ("memory_search", "memory_get"), "memory"))
    tools = [
        method_tool(kind, name, attrgetter(holder), makes_handle=name in _GIVE_HANDLES)
        for kind, names, holder in held
        for name in names
    ]
    tools += _algebra(settings, resources)
    if settings.lm is not None:
        tools.append(_ask(settings))
    return {tool.name: tool for tool in tools}


def _algebra(settings: Settings, resources: str) -> Iterator[Tool]:
    below = ", ".join(settings.allow_write)
    documents = settings.pack.documents
    served = [documents.resources] if documents is not None and documents.resources else []
    reads = ", ".join([*served, *settings.allow_write, *settings.allow_read])
    description = (
        TEXTS["run"]
        .replace("ALGEBRA", f"{resources}algebra")
        .replace("ENDPOINT", settings.pack.endpoint or settings.url or "")
        .replace("WHERE", f"below {reads}" if reads else "no other address")
        .replace("WRITES", f"It may write below {below}." if below else "It may write nothing.")
    )
    yield _program_tool("explain", "algebra_operations", TEXTS["explain"], _Names)
    yield _program_tool("validate", "algebra_validate", TEXTS["validate"], _Checked)
    world = bool(settings.allow_write or settings.allow_read)
    traits = {"makes_handle": True, "writes": bool(below), "open_world": world}
    yield _program_tool("run", "algebra_run", description, _Program, **traits)
    yield _program_tool("show", "algebra_slice", TEXTS["show"], _Slice)


def _program_tool(
    function: str, name: str, description: str, arguments: type[BaseModel], **traits: bool
) -> Tool:
    def call(session: Session, given: dict[str, Any], stop: threading.Event) -> dict[str, Any]:
        # Slow to load.
        from reasoningbank.mcp import programs

        answer: dict[str, Any] = getattr(programs, function)(session, given, stop)
        return answer

    return Tool(name, description, arguments, call, **traits)


def _ask(settings: Settings) -> Tool:
    def call(session: Session, given: dict[str, Any], stop: threading.Event) -> dict[str, Any]:
        return session.shared.asker.ask(session, given["question"], stop)

    description = TEXTS["ask"].format(lm=settings.lm)
    return Tool("ask", description, _Question, call, makes_handle=True, open_world=True)


@dataclass(frozen=True)
class Page:
    """A resource; `read` is given the text of the address behind `uri` if there is a `variable`."""

    uri: str
    name: str
    description: str
    kind: str
    read: Callable[[str], str]
    variable: str = ""

    @property
    def about(self) -> dict[str, Any]:
        """Its name, description and media type, as the protocol calls them."""
        return {"name": self.name, "description": self.description, "mime_type": self.kind}


def root_of(settings: Settings) -> str:
    """Return the base of the addresses of a server's resources."""
    return f"reasoningbank://{quote(settings.pack.key, safe='')}/"


def pages(shared: Shared) -> list[Page]:
    """Return the resources of a server; the last one has a variable in its address."""
    root, pack = root_of(shared.settings), shared.settings.pack
    reads: dict[str, Callable[[str], str]] = {"sense-card": lambda _: shared.sense_card}
    if (schema := pack.schema) is not None:
        reads["schema"] = lambda _: schema.read_text(encoding="utf-8")
    reads["algebra/operations"] = lambda _: _about_programs("operations")
    reads["algebra/schema"] = lambda _: _about_programs("schema")
    reads["schema/"] = shared.schema_card
    found = []
    for path, read in reads.items():
        name, about, kind = TEXTS["pages"][path]
        variable = "question" if path.endswith("/") else ""
        found.append(Page(root + path, name, about.format(name=pack.name), kind, read, variable))
    return found


def read_page(shared: Shared, uri: str) -> tuple[str, str]:
    """Return the text of a resource, and its media type."""
    there = pages(shared)
    for page in there:
        if page.uri == uri or (page.variable and uri.startswith(page.uri)):
            return page.read(unquote(uri.removeprefix(page.uri))), page.kind
    known = ", ".join(page.uri for page in there if not page.variable)
    raise UsageError("no such resource", where=uri[:200], hint=f"choose one of {known}")


def _about_programs(what: str) -> str:
    # Slow to load.
    from reasoningbank.algebra import program_schema, reference

    if what == "operations":
        return reference()
    return json.dumps(program_schema(), ensure_ascii=False, indent=1)
