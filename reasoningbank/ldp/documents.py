"""The documents of a server: named graphs of one store, each change whole or not at all."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyoxigraph import (
    NamedNode,
    QueryBoolean,
    QuerySolutions,
    QueryTriples,
    Store,
    Triple,
)

from reasoningbank.errors import UsageError
from reasoningbank.ldp.changes import added, gone, quads, unlinked
from reasoningbank.ldp.faults import Refused
from reasoningbank.ldp.folder import Folder
from reasoningbank.ldp.membership import CONTAINS, ITEM, TYPE, is_item, links, without_links
from reasoningbank.ldp.names import ancestors, checked_base, checked_document, parent_of
from reasoningbank.sparql.terms import full

__all__ = ["Document", "Documents"]

Check = Callable[[str | None], None]
#: How often a change is computed anew because the document was changed meanwhile.
_MOST_TRIES = 20


@dataclass(frozen=True)
class Document:
    """A document as it is at one moment.

    Attributes:
        url: Its address.
        triples: What it holds, the server's statements on its members included.
        version: A digest of these triples.
    """

    url: str
    triples: tuple[Triple, ...]
    version: str

    @property
    def is_container(self) -> bool:
        """Whether other documents may lie in it."""
        return not is_item(self.url, self.triples)


class Documents:
    """Documents below a base address; safe to share between threads.

    Every document is a named graph of an Oxigraph store, and the default graph holds each triple
    of any document once. A change is one transaction. Containers above a document come with it.

    Args:
        base: The address of the topmost container.
        folder: Where each document is kept as a Turtle file; read here.
        store: A folder where an Oxigraph store is kept instead.
        initial: Documents that it begins with, by address, where they are not kept anywhere.

    Raises:
        UsageError: The base is no address, several places are given, one cannot be used, or
            something is no address of a document here.

    Examples:
        >>> documents = Documents("http://localhost/")
        >>> a = NamedNode("http://e/a")
        >>> documents.put("http://localhost/x/y", [Triple(a, a, a)])
        True
        >>> len(documents.read("http://localhost/x/y").triples)
        1
        >>> [str(t.object) for t in documents.read("http://localhost/x/").triples
        ...  if t.predicate == CONTAINS]
        ['<http://localhost/x/y>']
    """

    def __init__(
        self,
        base: str,
        *,
        folder: Path | None = None,
        store: Path | None = None,
        initial: Mapping[str, Sequence[Triple]] | None = None,
    ) -> None:
        if (folder, store, initial).count(None) < 2:
            raise UsageError("documents are given, or kept in files or in a store: one of these")
        self.base = checked_base(base)
        self._lock = threading.RLock()
        try:
            self._store = Store() if store is None else Store(str(store))
        except OSError as error:
            raise UsageError(f"no store can be opened: {error}", where=str(store)) from error
        self._folder = None if folder is None else Folder(folder, self.base)
        if self._folder is not None:
            self._load(dict(self._folder.documents()))
        if initial is not None:
            self._load({checked_document(self.base, url): held for url, held in initial.items()})
        try:
            self._make_containers([self.base])
        except Refused as refused:
            raise UsageError(f"cannot be used: {refused.why}", where=str(folder)) from refused

    def close(self) -> None:
        """Give up the store, so that another server may open it; nothing can be asked any more."""
        with self._lock:
            del self._store

    def read(self, url: str) -> Document | None:
        """Return a document, or None where there is none."""
        with self._lock:
            return self._read(url)

    def written(self) -> dict[str, list[Triple]]:
        """Return what was written to each document that holds something, by address."""
        with self._lock:
            urls = sorted(graph.value for graph in self._store.named_graphs())
            held = {url: self._own(self._read(url)) for url in urls}
        return {url: triples for url, triples in held.items() if triples}

    def put(self, url: str, triples: Sequence[Triple], check: Check = lambda _: None) -> bool:
        """Create or replace a document.

        Args:
            url: Its address, at the base or below.
            triples: What it shall hold.
            check: Called with the version that it has, or None; what it raises ends it here.

        Returns:
            Whether it was created.

        Raises:
            Refused: It cannot be kept under this name, or claims members that it does not have.
        """
        with self._lock:
            before = self._read(url)
            check(None if before is None else before.version)
            return self._write(url, before, triples)

    def append(self, url: str, triples: Sequence[Triple], check: Check = lambda _: None) -> bool:
        """Add triples to a document, which is created where there is none; see `put`."""
        with self._lock:
            before = self._read(url)
            check(None if before is None else before.version)
            return self._write(url, before, [*self._own(before), *triples])

    def change(
        self,
        url: str,
        change: Callable[[Sequence[Triple]], Sequence[Triple]],
        check: Check = lambda _: None,
    ) -> None:
        """Replace a document by what a function makes of it; see `put`.

        Raises:
            Refused: There is no such document (404).
        """
        for _ in range(_MOST_TRIES):
            with self._lock:
                before = self._read(url)
                own = self._own(before)
            if before is None:
                raise Refused(404, f"there is no document {url}")
            check(before.version)
            # What takes long to compute keeps nobody else waiting.
            changed = change(own)
            with self._lock:
                now = self._read(url)
                if now is not None and now.version == before.version:
                    self._write(url, now, changed)
                    return
        raise Refused(503, f"{url} is changed all the time", {"Retry-After": "1"})

    def delete(self, url: str, check: Check = lambda _: None) -> None:
        """Remove a document.

        Raises:
            Refused: There is none (404), it has members (409), or it is the base (405).
        """
        with self._lock:
            document = self._read(url)
            if document is None:
                raise Refused(404, f"there is no document {url}")
            check(document.version)
            parent = parent_of(self.base, url)
            if parent is None:
                raise Refused(405, "the base cannot be removed", {"Allow": "GET, HEAD, PUT"})
            if self._members(url):
                raise Refused(409, f"{url} is not empty; remove what it contains first")
            if self._folder is not None:
                self._folder.remove(url)
            self._store.update(f"{gone(url)}{unlinked(parent, url)}")

    def query(
        self,
        text: str,
        *,
        default_graphs: Sequence[str] = (),
        named_graphs: Sequence[str] = (),
    ) -> QuerySolutions | QueryTriples | QueryBoolean:
        """Ask all documents, as they are at this moment.

        Raises:
            SyntaxError, ValueError: It is no query.
        """
        # From a snapshot, and each change is one transaction: a long query keeps nobody waiting.
        return self._store.query(
            text,
            base_iri=self.base,
            default_graph=[NamedNode(name) for name in default_graphs] or None,
            named_graphs=[NamedNode(name) for name in named_graphs] or None,
        )

    def _exists(self, url: str) -> bool:
        return self._store.contains_named_graph(NamedNode(url))

    def _is_item(self, url: str) -> bool:
        # Not by reading the document: a container can have very many members.
        node = NamedNode(url)
        said = self._store.quads_for_pattern(node, TYPE, ITEM, node)
        return is_item(url, (quad.triple for quad in said))

    def _triples(self, url: str) -> list[Triple]:
        return [
            quad.triple for quad in self._store.quads_for_pattern(None, None, None, NamedNode(url))
        ]

    def _read(self, url: str) -> Document | None:
        if not self._exists(url):
            return None
        triples = self._triples(url)
        lines = sorted(" ".join(full(part) for part in triple) for triple in triples)
        digest = hashlib.blake2b("\n".join(lines).encode(), digest_size=16)
        return Document(url, tuple(triples), digest.hexdigest())

    def _members(self, url: str) -> list[str]:
        graph = NamedNode(url)
        found = self._store.quads_for_pattern(graph, CONTAINS, None, graph)
        return [quad.object.value for quad in found if isinstance(quad.object, NamedNode)]

    def _own(self, document: Document | None) -> list[Triple]:
        """Return what was written to a document: all but the server's statements."""
        if document is None:
            return []
        return without_links(document.url, document.triples, self._members(document.url))

    def _write(self, url: str, before: Document | None, triples: Iterable[Triple]) -> bool:
        members = self._members(url)
        own = list(dict.fromkeys(without_links(url, triples, members)))
        if members and is_item(url, own):
            raise Refused(409, f"{url} has members, so it can be no dh:Item")
        above = parent_of(self.base, url)
        if above is not None:
            self._make_containers([parent for parent, _ in reversed(ancestors(self.base, url))])
        if self._folder is not None:
            self._folder.write(url, own, new=before is None)
        kept = [triple for member in members for triple in self._links(url, member)]
        update = f"{gone(url)}CREATE SILENT GRAPH <{url}> ;\n{added(url, [*own, *kept])}"
        if above is not None:
            link = links(above, url, item=is_item(url, own))
            update += f"{unlinked(above, url)}{added(above, link)}"
            if any(triple in own for triple in link):
                # What the document says itself went with the link of the same words.
                update += added(url, [triple for triple in link if triple in own])
        self._store.update(update)
        return before is None

    def _links(self, container: str, member: str) -> tuple[Triple, Triple]:
        return links(container, member, item=self._is_item(member))

    def _make_containers(self, urls: Iterable[str]) -> None:
        for url in urls:
            if self._exists(url):
                if self._is_item(url):
                    raise Refused(409, f"{url} is a dh:Item, and no documents lie in one")
                continue
            if self._folder is not None:
                self._folder.write(url, [], new=True)
            update = f"CREATE SILENT GRAPH <{url}> ;\n"
            above = parent_of(self.base, url)
            if above is not None:
                update += added(above, links(above, url, item=False))
            self._store.update(update)

    def _load(self, known: Mapping[str, Sequence[Triple]]) -> None:
        pairs = dict.fromkeys(pair for url in known for pair in ancestors(self.base, url))
        stated = {url: list(triples) for url, triples in known.items()}
        for container, member in pairs:
            item = is_item(member, known.get(member, ()))
            stated.setdefault(container, []).extend(links(container, member, item=item))
        for url in stated:
            self._store.add_graph(NamedNode(url))
        self._store.bulk_extend(quads(stated.items()))
