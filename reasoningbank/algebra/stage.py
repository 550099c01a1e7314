"""The offline world of a pack: its endpoint and resources served locally, and its documents.

Programs reach them under their public addresses. Each run gets the documents as they were.
"""

from __future__ import annotations

import contextlib
import functools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pyoxigraph import BlankNode, NamedNode, RdfFormat, Triple, parse

from reasoningbank.algebra.evaluation import Limits
from reasoningbank.algebra.runtime import Compose, Runtime
from reasoningbank.algebra.web import checked
from reasoningbank.corpus import DocumentSpace, Pack
from reasoningbank.errors import UsageError
from reasoningbank.ldp import LDPServer
from reasoningbank.ldp.documents import checked_base, checked_document
from reasoningbank.sparql import EndpointConfig
from reasoningbank.sparql.server import open_data

#: Limits of one run of a program.
LIMITS = Limits(requests=2_000, rows=100_000, seconds=120.0)


@dataclass(frozen=True)
class Stage:
    """The servers that all runs of a task's programs share."""

    endpoint: EndpointConfig
    pack: Pack | None
    addresses: Mapping[str, str]

    @contextlib.contextmanager
    def scene(
        self,
        *,
        compose: Compose | None = None,
        dry_run: bool = False,
        record: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> Iterator[Scene]:
        """Open a runtime with the initial documents, for one run."""
        with contextlib.ExitStack() as stack:
            home, addresses = None, dict(self.addresses)
            initial: Mapping[str, list[Triple]] = {}
            space = self.pack.documents if self.pack else None
            if space is not None:
                home = stack.enter_context(LDPServer(space.base, initial=_initial(space)))
                addresses[space.base] = home.address
                # As its store serializes them, so that only changes differ.
                initial = home.documents.written()
            runtime = stack.enter_context(
                Runtime(
                    allow_write=[space.base] if space else (),
                    allow_read=list(addresses),
                    limits=LIMITS,
                    addresses=addresses,
                    compose=compose,
                    dry_run=dry_run,
                    record=record,
                    pause=lambda _: None,
                )
            )
            yield Scene(runtime, home, initial)


@dataclass(frozen=True)
class Scene:
    """One run: its runtime, and the documents that it writes."""

    runtime: Runtime
    home: LDPServer | None
    initial: Mapping[str, list[Triple]]

    def update(self) -> str:
        """Return a SPARQL Update with the same changes of documents; empty if there are none."""
        now = self.home.documents.written() if self.home else {}
        changes = []
        for url in sorted(now.keys() | self.initial.keys()):
            before, after = self.initial.get(url, []), now.get(url, [])
            if set(before) == set(after):
                continue
            if before:
                changes.append(f"CLEAR SILENT GRAPH <{url}>")
            if after:
                held = "".join(f"  {line} .\n" for line in sorted(map(str, after)))
                changes.append(f"INSERT DATA {{ GRAPH <{url}> {{\n{held}}} }}")
        return " ;\n".join(changes)


@contextlib.contextmanager
def open_stage(pack: Pack | None, endpoint: EndpointConfig) -> Iterator[Stage]:
    """Serve the resources that the programs of a pack's tasks read, for the length of a block."""
    space = pack.documents if pack else None
    addresses = endpoint.reached
    with contextlib.ExitStack() as stack:
        if pack is not None and space is not None and space.resources:
            parts = urlsplit(space.resources)
            site = checked_base(f"{parts.scheme}://{parts.netloc}/")
            about = _about(pack.data, space.resources, site)
            server = stack.enter_context(LDPServer(site, initial=about))
            addresses[space.resources] = server.address + parts.path.lstrip("/")
        yield Stage(endpoint, pack, addresses)


@functools.lru_cache(maxsize=4)
def _about(data: tuple[Path, ...], prefix: str, site: str) -> dict[str, list[Triple]]:
    """Return the triples of each resource under the prefix, by the URL of its document."""
    found: dict[str, list[Triple]] = defaultdict(list)
    for file in data:
        with open_data(file) as (media_type, stream):
            for quad in parse(stream, format=RdfFormat.from_media_type(media_type)):
                if isinstance(quad.subject, NamedNode) and quad.subject.value.startswith(prefix):
                    with contextlib.suppress(UsageError):
                        url = checked_document(site, checked(quad.subject.value))
                        found[url].append(quad.triple)
    return dict(found)


def _initial(space: DocumentSpace) -> dict[str, list[Triple]]:
    found: dict[str, list[Triple]] = defaultdict(list)
    if space.initial is None:
        return {}
    try:
        for quad in parse(path=str(space.initial)):
            if any(isinstance(part, BlankNode) for part in quad):
                what = f"there is a blank node in {quad.graph_name}"
                hint = "give it an IRI: an update could not remove it"
                raise UsageError(what, where=str(space.initial), hint=hint)
            if isinstance(quad.graph_name, NamedNode):
                found[quad.graph_name.value].append(quad.triple)
    except (OSError, SyntaxError) as error:
        raise UsageError(f"cannot be read: {error}", where=str(space.initial)) from None
    return dict(found)
