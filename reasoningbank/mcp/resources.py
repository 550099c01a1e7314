"""Resources that clients read without a tool: sense card, schema, operations of programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote, unquote

from reasoningbank.errors import UsageError
from reasoningbank.mcp.sessions import Settings, Shared

TEXT = "text/plain"
MARKDOWN = "text/markdown"
TURTLE = "text/turtle"
JSON = "application/json"


@dataclass(frozen=True)
class Page:
    """A resource."""

    uri: str
    name: str
    description: str
    kind: str
    read: Callable[[], str]


@dataclass(frozen=True)
class Template:
    """A resource with one variable in its address."""

    start: str
    variable: str
    name: str
    description: str
    kind: str
    read: Callable[[str], str]


def root_of(settings: Settings) -> str:
    """Return the base of the addresses of a server's resources."""
    return f"reasoningbank://{quote(settings.pack.key, safe='')}/"


def pages(shared: Shared) -> tuple[Page, ...]:
    """Return the resources of a server."""
    root, pack = root_of(shared.settings), shared.settings.pack
    found = [
        Page(
            f"{root}sense-card",
            "sense card",
            f"What {pack.name} is and holds, in a few lines: sizes, main classes, prefixes",
            TEXT,
            lambda: shared.cards().sense(),
        ),
        Page(
            f"{root}algebra/operations",
            "operations of programs",
            "Every operation of Web Algebra with its arguments and an example",
            MARKDOWN,
            _operations,
        ),
        Page(
            f"{root}algebra/schema",
            "JSON Schema of programs",
            "The JSON Schema of Web Algebra programs",
            JSON,
            _schema,
        ),
    ]
    if (schema := pack.schema) is not None:
        about = f"The classes and properties of {pack.name} with domains, ranges and comments"
        read = lambda: schema.read_text(encoding="utf-8")  # noqa: E731
        found.insert(1, Page(f"{root}schema", "schema", about, TURTLE, read))
    return tuple(found)


def templates(shared: Shared) -> tuple[Template, ...]:
    """Return the resources of a server that have a variable."""
    return (
        Template(
            f"{root_of(shared.settings)}schema/",
            "question",
            "schema card",
            "The classes and properties near a question, with domains, ranges and usage",
            TEXT,
            lambda question: shared.cards().schema(question),
        ),
    )


def read_page(shared: Shared, uri: str) -> tuple[str, str]:
    """Return the text of a resource, and its media type."""
    there = pages(shared)
    for page in there:
        if page.uri == uri:
            return page.read(), page.kind
    for template in templates(shared):
        if uri.startswith(template.start):
            return template.read(unquote(uri[len(template.start) :])), template.kind
    known = ", ".join(page.uri for page in there)
    raise UsageError("no such resource", where=uri[:200], hint=f"choose one of {known}")


def _operations() -> str:
    # Slow to load.
    from reasoningbank.algebra.reference import reference

    return reference()


def _schema() -> str:
    from reasoningbank.algebra.reference import program_schema

    return json.dumps(program_schema(), ensure_ascii=False, indent=1)
