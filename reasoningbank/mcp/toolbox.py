"""What a server offers: tools, with checked arguments and one JSON answer, and resources.

Clients read resources without a tool: sense card, schema, operations of programs.
"""

from __future__ import annotations

import inspect
import json
import threading
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from urllib.parse import quote, unquote

from mcp import types
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model

from reasoningbank.algebra import program_schema, reference
from reasoningbank.errors import ToolError, UsageError
from reasoningbank.mcp.programs import ServerTools
from reasoningbank.mcp.sessions import Session, Settings, Shared, key_of
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
    """A tool: a method of an object that a session holds, or that serves one call."""

    about: types.Tool  #: What clients read of it
    arguments: type[BaseModel]
    held_by: Callable[[Session, threading.Event], Any]

    def answer(
        self, session: Session, given: Mapping[str, Any], stop: threading.Event
    ) -> dict[str, Any]:
        """Answer a call, unless `stop` is set before it ends."""
        name = self.about.name
        try:
            arguments = dict(self.arguments.model_validate(dict(given)))
        except ValidationError as error:
            wrong = [
                ": ".join(filter(None, (".".join(map(str, one["loc"])), one["msg"])))
                for one in error.errors(include_url=False)[:MAX_MISTAKES]
            ]
            names = ", ".join(self.arguments.model_fields) or "no arguments"
            raise ToolError("; ".join(wrong), where=name, hint=f"{name} takes {names}") from None
        if name in _GIVE_HANDLES:
            session.check_room()
        return shown(getattr(self.held_by(session, stop), name)(**arguments))


def arguments_of(kind: type[Any], name: str) -> type[BaseModel]:
    """Return the arguments of a tool, from the signature of its method."""
    about = TEXTS["parameters"] | TEXTS["parameters"].get(name, {})
    fields: dict[str, Any] = {}
    for one in list(inspect.signature(getattr(kind, name), eval_str=True).parameters.values())[1:]:
        wanted = HandleKey if one.name == "ref" else one.annotation
        given = {} if one.default is inspect.Parameter.empty else {"default": one.default}
        fields[one.name] = (wanted, Field(description=about.get(one.name), **given))
    return create_model(name, __config__=ConfigDict(extra="forbid"), **fields)


_GIVE_HANDLES = frozenset(
    {"sparql_query", "federated_endpoints", "service_desc", "algebra_run", "ask"}
)


def toolbox(settings: Settings, resources: str) -> dict[str, Tool]:
    """Return the tools of a server by name, in the order that clients need them."""
    held: list[tuple[type[Any], Sequence[str], Callable[[Session, threading.Event], Any]]] = [
        (SPARQLTools, SPARQL_TOOLS, lambda session, _: session.sparql),
        (EndpointTools, ENDPOINT_TOOLS, lambda session, _: session.endpoints),
    ]
    if settings.bank is not None:
        # Slow to load.
        from reasoningbank.memory import MemoryTools

        memory = ("memory_search", "memory_get")
        held.append((MemoryTools, memory, lambda session, _: session.memory))
    own = ["algebra_operations", "algebra_validate", "algebra_run", "algebra_slice"]
    held.append((ServerTools, own if settings.lm is None else [*own, "ask"], ServerTools))
    below = ", ".join(settings.allow_write)
    documents = settings.pack.documents
    served = [documents.resources] if documents is not None and documents.resources else []
    reads = ", ".join([*served, *settings.allow_write, *settings.allow_read])
    facts = {
        "lm": settings.lm,
        "algebra": f"{resources}algebra",
        "endpoint": settings.pack.endpoint or settings.url or "",
        "where": f"below {reads}" if reads else "no other address",
        "writes": f"It may write below {below}." if below else "It may write nothing.",
    }
    found = {}
    for kind, names, holder in held:
        for name in names:
            own_text = TEXTS["tools"].get(name, "").format(**facts)
            arguments = arguments_of(kind, name)
            runs = name == "algebra_run"
            hints = types.ToolAnnotations(
                read_only_hint=not (runs and below),
                destructive_hint=bool(runs and below),
                # The model may be anywhere, and a program reaches what it may.
                open_world_hint=name == "ask" or bool(runs and (below or settings.allow_read)),
            )
            about = types.Tool(
                name=name,
                description=own_text or inspect.cleandoc(getattr(kind, name).__doc__ or ""),
                input_schema=arguments.model_json_schema(),
                annotations=hints,
            )
            found[name] = Tool(about, arguments, holder)
    return found


def shown(value: Any) -> dict[str, Any]:
    """Return a tool's result as a JSON object."""
    if isinstance(value, Rows):
        found = {"source": value.source, "total": value.total, "rows": list(value)}
        found["truncated"] = value.truncated
        return found | ({"note": value.note} if value.note else {})
    return dict(value)


class Page(NamedTuple):
    """A resource; if it is a template, `read` is given the text of the address behind `uri`."""

    about: types.Resource | types.ResourceTemplate  #: What clients read of it
    uri: str
    read: Callable[[str], str]


def root_of(settings: Settings) -> str:
    """Return the base of the addresses of a server's resources."""
    return f"reasoningbank://{quote(settings.pack.key, safe='')}/"


def pages(shared: Shared) -> list[Page]:
    """Return the resources of a server; the last one has a variable in its address."""
    root, pack = root_of(shared.settings), shared.settings.pack
    reads: dict[str, Callable[[str], str]] = {
        "sense-card": lambda _: shared.sense_card,
        **({} if (file := pack.schema) is None else {"schema": lambda _: file.read_text("utf-8")}),
        "algebra/operations": lambda _: reference(),
        "algebra/schema": lambda _: json.dumps(program_schema(), ensure_ascii=False, indent=1),
        "schema/": shared.schema_card,
    }
    found = []
    for path, read in reads.items():
        uri = root + path
        said = {key: text.format(name=pack.name) for key, text in TEXTS["pages"][path].items()}
        found.append(
            Page(types.ResourceTemplate(uri_template=f"{uri}{{question}}", **said), uri, read)
            if path.endswith("/")
            else Page(types.Resource(uri=uri, **said), uri, read)
        )
    return found


def read_page(shared: Shared, uri: str) -> tuple[str, str]:
    """Return the text of a resource, and its media type."""
    there = pages(shared)
    for about, start, read in there:
        if start == uri or (start.endswith("/") and uri.startswith(start)):
            return read(unquote(uri.removeprefix(start))), about.mime_type or ""
    known = ", ".join(page.uri for page in there if not page.uri.endswith("/"))
    raise UsageError("no such resource", where=uri[:200], hint=f"choose one of {known}")
