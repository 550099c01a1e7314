"""The documents of a server: named graphs of one store, changed atomically."""

from __future__ import annotations

import contextlib
import errno
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import quote, urlsplit

import pyoxigraph as ox

from reasoningbank.cache import write_bytes_atomically
from reasoningbank.errors import RecordError, UsageError
from reasoningbank.ldp.exchange import Refused, fingerprint

_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
_SAFE = "/!$&'()*+,;=:@%~"


def checked_base(base: str) -> str:
    """Return a base address, which ends with a slash and has neither query nor fragment."""
    hint = "give one such as http://localhost:4443/"
    try:
        parts = urlsplit(base)
        # An invalid port raises only when it is read.
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        odd = parts.query or parts.fragment or "@" in parts.netloc
        ox.NamedNode(f"{parts.scheme}://{parts.netloc}/")
    except ValueError as error:
        raise UsageError(f"not a base address: {base!r}: {error}", hint=hint) from None
    if not known or odd:
        raise UsageError(f"not a base address: {base!r}", hint=hint)
    path = f"{parts.path}/" if not parts.path.endswith("/") else parts.path
    # Spelled as documents' addresses are, so that they begin with it.
    clean = document_url(f"{parts.scheme}://{parts.netloc.lower()}/", path)
    if clean is None:
        raise UsageError(f"not a base address: {base!r}", hint="leave . and .. and // out of it")
    return clean


def checked_document(base: str, url: str) -> str:
    """Return the address of a document, spelled as `document_url` does."""
    if document_url(base, urlsplit(url).path) != url:
        hint = f"give one at {base} or below, percent-encoded"
        raise UsageError("no document can have this address", where=url, hint=hint)
    return url


def document_url(base: str, target: str) -> str | None:
    """Return the address of the document at a request's path; None if the path is invalid."""
    path = re.sub(r"%([0-9A-Fa-f]{2})", _normal, quote(target, safe=_SAFE))
    root = urlsplit(base)
    segments = path.split("/")
    if not path.startswith(root.path) or any(part in (".", "..") for part in segments):
        return None
    if "" in segments[1:-1] or re.search(r"%(?![0-9A-F]{2})", path) or "%00" in path:
        return None
    return f"{root.scheme}://{root.netloc}{path}"


def _normal(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    return character if _UNRESERVED.fullmatch(character) else f"%{match[1].upper()}"


def parent_of(base: str, url: str) -> str | None:
    """Return the container of a document; None for the base itself."""
    return None if url == base else url.removesuffix("/").rpartition("/")[0] + "/"


def ancestors(base: str, url: str) -> list[tuple[str, str]]:
    """Return the pairs of container and member from a document up to the base."""
    pairs = []
    while (parent := parent_of(base, url)) is not None:
        pairs.append((parent, url))
        url = parent
    return pairs


CONTAINS = ox.NamedNode("http://www.w3.org/ns/ldp#contains")
HAS_PARENT = ox.NamedNode("http://rdfs.org/sioc/ns#has_parent")
HAS_CONTAINER = ox.NamedNode("http://rdfs.org/sioc/ns#has_container")
TYPE = ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
ITEM = ox.NamedNode("https://www.w3.org/ns/ldt/document-hierarchy#Item")


def is_item(url: str, triples: Iterable[ox.Triple]) -> bool:
    """Return whether a document is an item, not a container, by its address or its type."""
    stated = ox.Triple(ox.NamedNode(url), TYPE, ITEM)
    return not url.endswith("/") or any(triple == stated for triple in triples)


def links(container: str, member: str, *, item: bool) -> tuple[ox.Triple, ox.Triple]:
    """Return the two triples that link a member to its container."""
    outer, inner = ox.NamedNode(container), ox.NamedNode(member)
    back = HAS_CONTAINER if item else HAS_PARENT
    return ox.Triple(outer, CONTAINS, inner), ox.Triple(inner, back, outer)


def without_links(
    url: str, triples: Iterable[ox.Triple], members: Iterable[str]
) -> list[ox.Triple]:
    """Return a document's triples without the membership triples."""
    inside = set(members)
    own = ox.NamedNode(url)
    kept: list[ox.Triple] = []
    for triple in triples:
        subject, predicate, object_ = triple
        if predicate == CONTAINS and subject == own:
            if not isinstance(object_, ox.NamedNode) or object_.value not in inside:
                raise Refused(409, f"only the server says what {url} contains; put it there")
            continue
        back = predicate in (HAS_PARENT, HAS_CONTAINER) and object_ == own
        if not (back and isinstance(subject, ox.NamedNode) and subject.value in inside):
            kept.append(triple)
    return kept


def _lines(triples: Iterable[ox.Triple]) -> str:
    return "".join(f"{triple} .\n" for triple in triples)


def added(url: str, triples: Sequence[ox.Triple]) -> str:
    """Return the update that adds triples to a document and to the default graph."""
    if not triples:
        return ""
    # Within one INSERT DATA a label is one blank node, in both graphs.
    lines = _lines(triples)
    return f"INSERT DATA {{\n{lines}GRAPH <{url}> {{\n{lines}}} }} ;\n"


def gone(url: str) -> str:
    """Return the update that removes a document, and from the default graph its own triples."""
    return (
        f"DELETE {{ ?s ?p ?o }} WHERE {{ GRAPH <{url}> {{ ?s ?p ?o }}\n"
        f"FILTER NOT EXISTS {{ GRAPH ?g {{ ?s ?p ?o }} FILTER(?g != <{url}>) }} }} ;\n"
        f"DROP SILENT GRAPH <{url}> ;\n"
    )


def unlinked(container: str, member: str) -> str:
    """Return the update that removes a member's links from its container."""
    lines = _lines([*links(container, member, item=True), *links(container, member, item=False)])
    return f"DELETE DATA {{\n{lines}GRAPH <{container}> {{\n{lines}}} }} ;\n"


_SUFFIX = ".ttl"
_INDEX = "index.ttl"


class Folder:
    """Keeps each document in a Turtle file below one folder."""

    def __init__(self, root: Path, base: str) -> None:
        self._root = root
        self._base = base
        try:
            root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot be made: {error.strerror}", where=str(root)) from error

    def documents(self) -> Iterator[tuple[str, list[ox.Triple]]]:
        for file in sorted(self._root.rglob(f"*{_SUFFIX}")):
            if file.is_dir():
                continue  # a container whose name ends so
            place = file.relative_to(self._root).as_posix()
            name = place.removesuffix(_INDEX if file.name == _INDEX else _SUFFIX)
            url = document_url(self._base, urlsplit(self._base).path + name)
            if url != self._base + name:
                hint, code = "percent-encode its name, or move it elsewhere", "bad-file-name"
                what = "no document can have this file name"
                raise UsageError(what, where=str(file), hint=hint, code=code)
            try:
                data = file.read_bytes()
                read = ox.parse(data, ox.RdfFormat.TURTLE, base_iri=url, rename_blank_nodes=True)
                yield url, [quad.triple for quad in read]
            except SyntaxError as error:
                raise UsageError(
                    f"not Turtle: {error}", where=str(file), code="not-turtle"
                ) from error
            except OSError as error:
                raise UsageError(f"cannot be read: {error.strerror}", where=str(file)) from error

    def write(self, url: str, triples: Sequence[ox.Triple], *, new: bool) -> None:
        """Write a document's file atomically."""
        file = self._file(url)
        try:
            # Two documents can want one file: `a` and `A` on some disks, `a/index` and `a/`.
            if new and file.exists():
                raise Refused(409, f"another document is kept in the file {file.name}")
            write_bytes_atomically(file, ox.serialize(triples, format=ox.RdfFormat.TURTLE) or b"")
        except (OSError, RecordError) as error:
            cause = error.__cause__ if isinstance(error, RecordError) else error
            assert isinstance(cause, OSError)
            if isinstance(cause, FileExistsError | NotADirectoryError | IsADirectoryError):
                raise Refused(409, f"a file is in the way of {url}") from error
            status = 414 if cause.errno == errno.ENAMETOOLONG else 507
            raise Refused(status, f"the file cannot be written: {cause.strerror}") from error

    def remove(self, url: str) -> None:
        """Remove a document's file, and a container's folder if empty."""
        file = self._file(url)
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            raise Refused(507, f"the file cannot be removed: {error.strerror}") from error
        if url.endswith("/"):
            with contextlib.suppress(OSError):
                file.parent.rmdir()

    def _file(self, url: str) -> Path:
        name = url.removeprefix(self._base)
        return self._root / (f"{name}{_INDEX}" if url.endswith("/") or not name else name + _SUFFIX)


Check = Callable[[str | None], None]
#: How often a change is computed anew because the document was changed meanwhile.
_MAX_TRIES = 20


@dataclass(frozen=True)
class Document:
    """A document at one moment."""

    url: str  #: Its address
    triples: tuple[ox.Triple, ...]  #: Its triples, including the server's membership triples

    @cached_property
    def version(self) -> str:
        """A digest of its triples, whatever the labels of its blank nodes are."""
        return fingerprint(self.triples)

    @property
    def is_container(self) -> bool:
        """Whether it can contain other documents."""
        return not is_item(self.url, self.triples)


class Documents:
    """Documents below a base address; thread-safe.

    Every document is a named graph of an Oxigraph store, and the default graph is their union.
    A change is one transaction. Writing a document creates the containers above it.

    Args:
        base: The address of the topmost container.
        folder: Where to keep each document as a Turtle file.
        store: A folder for an Oxigraph store instead.
        initial: The first documents, by address, if they live in memory.
    """

    def __init__(
        self,
        base: str,
        *,
        folder: Path | None = None,
        store: Path | None = None,
        initial: Mapping[str, Sequence[ox.Triple]] | None = None,
    ) -> None:
        if (folder, store, initial).count(None) < 2:
            raise UsageError("give one of: initial documents, a folder, a store")
        self.base = checked_base(base)
        self._lock = threading.RLock()
        try:
            self._store = ox.Store() if store is None else ox.Store(str(store))
        except OSError as error:
            raise UsageError(f"cannot open the store: {error}", where=str(store)) from error
        self._folder = None if folder is None else Folder(folder, self.base)
        if self._folder is not None:
            self._load(dict(self._folder.documents()))
        if initial is not None:
            self._load({checked_document(self.base, url): held for url, held in initial.items()})
        try:
            self._make_container(self.base)
        except Refused as refused:
            raise UsageError(f"cannot be used: {refused.why}", where=str(folder)) from refused

    def close(self) -> None:
        """Release the store, so that another server can open it."""
        with self._lock:
            del self._store

    def read(self, url: str) -> Document | None:
        """Return a document, or None."""
        graph = ox.NamedNode(url)
        with self._lock:
            if not self._store.contains_named_graph(graph):
                return None
            held = self._store.quads_for_pattern(None, None, None, graph)
            return Document(url, tuple(quad.triple for quad in held))

    def existing(self, url: str) -> Document:
        """Return a document, or raise `Refused` (404)."""
        document = self.read(url)
        if document is None:
            raise Refused(404, f"no document at {url}")
        return document

    def written(self) -> dict[str, list[ox.Triple]]:
        """Return the written triples of every document that is not empty, by address."""
        with self._lock:
            urls = sorted(graph.value for graph in self._store.named_graphs())
            return {url: own for url in urls if (own := self._own(self.existing(url)))}

    def put(
        self,
        url: str,
        triples: Sequence[ox.Triple],
        check: Check = lambda _: None,
        *,
        add: bool = False,
    ) -> bool:
        """Create, replace or `add` to a document at the base or below; return whether it is new.

        `check` is called with the current version or None, and may raise to refuse the write.
        """
        with self._lock:
            before = self.read(url)
            check(None if before is None else before.version)
            own = self._own(before) if add and before else []
            self._write(url, [*own, *triples], new=before is None)
            return before is None

    def change(
        self,
        url: str,
        change: Callable[[Sequence[ox.Triple]], Sequence[ox.Triple]],
        check: Check = lambda _: None,
    ) -> None:
        """Replace a document by a function of its triples; see `put`."""
        for _ in range(_MAX_TRIES):
            with self._lock:
                before = self.existing(url)
                own = self._own(before)
            check(before.version)
            # A long computation must not hold the lock.
            changed = change(own)
            with self._lock:
                now = self.read(url)
                if now is not None and now.version == before.version:
                    self._write(url, changed, new=False)
                    return
        raise Refused(503, f"{url} keeps changing", {"Retry-After": "1"})

    def delete(self, url: str, check: Check = lambda _: None) -> None:
        """Remove a document."""
        with self._lock:
            check(self.existing(url).version)
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
    ) -> ox.QuerySolutions | ox.QueryTriples | ox.QueryBoolean:
        """Query a snapshot of all documents."""
        # Each change is one transaction, so a long query blocks nobody.
        return self._store.query(
            text,
            base_iri=self.base,
            default_graph=[ox.NamedNode(name) for name in default_graphs] or None,
            named_graphs=[ox.NamedNode(name) for name in named_graphs] or None,
        )

    def _is_item(self, url: str) -> bool:
        # Do not read the document: a container can have very many members.
        node = ox.NamedNode(url)
        said = self._store.quads_for_pattern(node, TYPE, ITEM, node)
        return is_item(url, (quad.triple for quad in said))

    def _members(self, url: str) -> list[str]:
        graph = ox.NamedNode(url)
        found = self._store.quads_for_pattern(graph, CONTAINS, None, graph)
        return [quad.object.value for quad in found if isinstance(quad.object, ox.NamedNode)]

    def _own(self, document: Document) -> list[ox.Triple]:
        """Return a document's triples without the server's membership triples."""
        return without_links(document.url, document.triples, self._members(document.url))

    def _write(self, url: str, triples: Iterable[ox.Triple], *, new: bool) -> None:
        members = self._members(url)
        own = list(dict.fromkeys(without_links(url, triples, members)))
        if members and is_item(url, own):
            raise Refused(409, f"{url} has members, so it cannot be a dh:Item")
        for container, _ in reversed(ancestors(self.base, url)):
            self._make_container(container)
        self._replace(url, own, members, new=new)

    def _make_container(self, url: str) -> None:
        if not self._store.contains_named_graph(ox.NamedNode(url)):
            self._replace(url, [], [], new=True)
        elif self._is_item(url):
            raise Refused(409, f"{url} is a dh:Item, which cannot contain documents")

    def _replace(
        self, url: str, own: Sequence[ox.Triple], members: Sequence[str], *, new: bool
    ) -> None:
        if self._folder is not None:
            self._folder.write(url, own, new=new)
        kept = [t for member in members for t in links(url, member, item=self._is_item(member))]
        update = "" if new else gone(url)
        update += f"CREATE SILENT GRAPH <{url}> ;\n{added(url, [*own, *kept])}"
        if (parent := parent_of(self.base, url)) is not None:
            link = links(parent, url, item=is_item(url, own))
            # What the document itself states of the links was removed with the old ones.
            stated = [triple for triple in link if triple in own]
            update += "" if new else unlinked(parent, url)
            update += added(parent, link) + added(url, stated)
        self._store.update(update)

    def _load(self, known: Mapping[str, Sequence[ox.Triple]]) -> None:
        pairs = dict.fromkeys(pair for url in known for pair in ancestors(self.base, url))
        stated = {url: list(triples) for url, triples in known.items()}
        for container, member in pairs:
            item = is_item(member, known.get(member, ()))
            stated.setdefault(container, []).extend(links(container, member, item=item))
        for url in stated:
            self._store.add_graph(ox.NamedNode(url))
        self._store.bulk_extend(
            ox.Quad(triple.subject, triple.predicate, triple.object, graph)
            for url, triples in stated.items()
            for triple in triples
            for graph in (ox.NamedNode(url), ox.DefaultGraph())
        )
