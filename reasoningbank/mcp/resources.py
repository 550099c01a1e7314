"""Resources that clients read without a tool: sense card, schema, operations of programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from reasoningbank.errors import UsageError
from reasoningbank.mcp.sessions import Settings, Shared


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
    found = [
        Page(
            f"{root}sense-card",
            "sense card",
            f"What {pack.name} is and holds, in a few lines: sizes, main classes, prefixes",
            "text/plain",
            lambda _: shared.cards().sense(),
        ),
        Page(
            f"{root}algebra/operations",
            "operations of programs",
            "Every operation of Web Algebra with its arguments and an example",
            "text/markdown",
            _operations,
        ),
        Page(
            f"{root}algebra/schema",
            "JSON Schema of programs",
            "The JSON Schema of Web Algebra programs",
            "application/json",
            _schema,
        ),
        Page(
            f"{root}schema/",
            "schema card",
            "The classes and properties near a question, with domains, ranges and usage",
            "text/plain",
            lambda question: shared.cards().schema(question),
            variable="question",
        ),
    ]
    if (schema := pack.schema) is not None:
        about = f"The classes and properties of {pack.name} with domains, ranges and comments"
        read = lambda _: schema.read_text(encoding="utf-8")  # noqa: E731
        found.insert(1, Page(f"{root}schema", "schema", about, "text/turtle", read))
    return found


def read_page(shared: Shared, uri: str) -> tuple[str, str]:
    """Return the text of a resource, and its media type."""
    there = pages(shared)
    for page in there:
        if page.uri == uri or (page.variable and uri.startswith(page.uri)):
            return page.read(unquote(uri.removeprefix(page.uri))), page.kind
    known = ", ".join(page.uri for page in there if not page.variable)
    raise UsageError("no such resource", where=uri[:200], hint=f"choose one of {known}")


def _operations(_: str) -> str:
    # Slow to load.
    from reasoningbank.algebra.reference import reference

    return reference()


def _schema(_: str) -> str:
    from reasoningbank.algebra.reference import program_schema

    return json.dumps(program_schema(), ensure_ascii=False, indent=1)
