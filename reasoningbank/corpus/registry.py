"""The registry of a corpus: which endpoints and graphs its examples reach, and how often.

It is read from the examples' queries (`query_scopes`), targets and ``spex:federatesWith``; what the
pack says (its own endpoint, ``[[federated]]``) comes first. It shows questions and never gold
queries, and nothing of hidden tasks. The scopes of a query are the endpoints and graphs it reaches.
"""

from __future__ import annotations

import ipaddress
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import cycle, pairwise
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from reasoningbank.corpus.pack import Pack, known_packs, load_pack
from reasoningbank.corpus.shacl import example_files, load_corpus
from reasoningbank.corpus.task import LoadedTask
from reasoningbank.errors import QueryError
from reasoningbank.sparql import address_key
from reasoningbank.sparql.terms import absolute
from reasoningbank.sparql.tokens import Token, closing
from reasoningbank.sparql.tree import outline

#: Questions kept for each endpoint.
QUESTIONS = 3
_UNREAD = "close its brackets, and name addresses and graphs as IRIs"


class Identity(NamedTuple):
    """An endpoint's name for people, and who runs it."""

    name: str
    authority: str


#: Well-known endpoints by host without ``www.``; a ``*`` in the name is replaced by the dataset in
#: the path.
_BY_HOST = {
    host: Identity(**known)
    for host, known in json.loads(
        Path(__file__).with_name("well_known.json").read_text("utf-8")
    ).items()
}
#: Parts of hosts and paths that do not identify the data.
_GENERIC = frozenset(
    (
        "www", "sparql", "rdf", "data", "query", "api", "endpoint", "endpoints", "services",
        "service", "repositories", "repository", "blazegraph", "bigdata", "namespace", "virtuoso",
        "fuseki", "ds", "sib", "lod", "linked-data", "kb", "public", "store", "beta", "default",
    )
)  # fmt: skip
#: Second-level domains of registrars: the name comes before both levels.
_SECOND_LEVEL = frozenset(["ac", "co", "com", "edu", "go", "gov", "ne", "net", "or", "org"])


@dataclass(frozen=True)
class RegistryEndpoint:
    """One endpoint, as the pack and the examples know it."""

    url: str  #: The canonical spelling: the pack's, else the most frequent
    name: str  #: Its name for people; unique in its registry
    authority: str  #: Who runs it
    spellings: tuple[str, ...]  #: Every spelling that occurs, `url` first
    tasks: int = 0  #: Examples that reach it: `as_target`, `by_service`, or `declared` as federated
    as_target: int = 0
    by_service: int = 0
    declared: int = 0
    #: Prefix and namespace used in its parts of queries, the most used first
    prefixes: tuple[tuple[str, str], ...] = ()
    #: Graphs named in its parts of queries, the most used first, and how many examples name each
    graphs: Mapping[str, int] = field(default_factory=dict)
    questions: tuple[str, ...] = ()  #: Up to three questions of those examples


@dataclass(frozen=True)
class Registry:
    """The endpoints of a corpus, the most used first."""

    source: str  #: The corpus, e.g. ``ontology/uniprot``.
    endpoints: tuple[RegistryEndpoint, ...]  #: What it reaches
    tasks: int  #: Examples that were read
    #: Of these, examples whose queries could not be parsed; only their targets and
    #: ``spex:federatesWith`` are counted
    unread: int = 0

    def at(self, url: str) -> RegistryEndpoint | None:
        """Return the endpoint at an address, in any spelling."""
        key = address_key(url)
        return next((e for e in self.endpoints if key and address_key(e.url) == key), None)


@dataclass
class QueryScope:
    """What a query names in the part that one endpoint answers, in written order."""

    endpoint: str
    graphs: dict[str, None] = field(default_factory=dict)
    prefixes: dict[str, str] = field(default_factory=dict)


def query_scopes(query: str) -> tuple[QueryScope, ...]:
    """Return the scopes of a query, that of the queried endpoint first."""
    shape = outline(query)
    body, declared = shape.body, shape.declared
    braces = Counter(token.text for token in body)
    if braces["{"] != braces["}"]:
        raise QueryError("a '{' is not closed, or a '}' closes nothing", hint=_UNREAD)
    constants = _constants(body, declared)
    scopes = {"": QueryScope("")}

    def named(at: int) -> tuple[str, ...]:
        """Return the IRIs that the token at a place stands for."""
        text = body[at].text if at < len(body) else ""
        if text.startswith(("?", "$")):
            return tuple(constants[text[1:]])
        if (found := absolute(text, declared)) is None:
            raise QueryError("SERVICE, GRAPH or FROM is not followed by an IRI", hint=_UNREAD)
        return (found,)

    def read(at: int, end: int, here: Sequence[QueryScope]) -> None:
        """Note what the tokens up to `end` name that the endpoints of the scopes `here` answer."""
        while at < end:
            token = body[at]
            at += 1
            prefix = token.text.partition(":")[0]
            if token.kind == "name" and prefix in declared:
                for scope in here:
                    scope.prefixes[prefix] = declared[prefix]
            elif token.is_word("GRAPH", "FROM"):
                at += at < end and body[at].is_word("NAMED")
                for scope in here:
                    scope.graphs |= dict.fromkeys(named(at))
            elif token.is_word("SERVICE"):
                at += at < end and body[at].is_word("SILENT")
                addresses = [one for one in named(at) if address_key(one) and "#" not in one]
                if at + 1 >= end or body[at + 1].text != "{":
                    what = "SERVICE is not followed by an address and a '{'"
                    raise QueryError(what, hint=_UNREAD)
                there = [scopes.setdefault(one, QueryScope(one)) for one in addresses]
                # The content of a SERVICE with an unknown variable belongs to no scope.
                inside = there if there or body[at].kind == "variable" else here
                after = closing(body, at + 1)
                read(at + 2, after - 1, inside)
                at = after

    read(0, len(body), [scopes[""]])
    return tuple(scopes.values())


def _constants(tokens: Sequence[Token], declared: Mapping[str, str]) -> dict[str, dict[str, None]]:
    """Return the IRIs that VALUES and BIND give each variable, in written order."""
    given: list[tuple[str, str]] = []
    for at, token in enumerate(tokens):
        if token.is_word("BIND"):
            bound = tokens[at + 2 : at + 5]
            if len(bound) == 3 and bound[1].is_word("AS"):
                given.append((bound[2].text, bound[0].text))
        elif token.is_word("VALUES"):
            begin = next((i for i in range(at, len(tokens)) if tokens[i].text == "{"), len(tokens))
            names = [t.text for t in tokens[at:begin] if t.kind == "variable"]
            if names and begin < len(tokens):
                data = _data(tokens[begin : closing(tokens, begin)])
                given += zip(cycle(names), data, strict=False)
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for variable, written in given:
        if (iri := absolute(written, declared)) is not None:
            found[variable[1:]].setdefault(iri)
    return found


def _data(tokens: Sequence[Token]) -> list[str]:
    """Return the terms of the data of VALUES, without datatypes and language tags."""
    kinds = ("iri", "name", "string", "number")
    return [
        token.text
        for before, token in pairwise(tokens)
        if before.text != "^^" and (token.kind in kinds or token.is_word("UNDEF", "TRUE", "FALSE"))
    ]


#: An example and its scopes; None if its query could not be parsed.
_Use = tuple[LoadedTask, tuple[QueryScope, ...] | None]


def read_registry(pack: Pack, hidden: Collection[str] = ()) -> Registry:
    """Read what the examples of a pack reach."""
    files = (*pack.root.glob("pack.toml"), *example_files(pack.examples))
    stamp = tuple((f, s.st_mtime_ns, s.st_size) for f in files for s in [f.stat()])
    unseen = frozenset(hidden)
    uses = [use for use in _uses(pack.root, pack.examples, stamp) if use[0].id not in unseen]
    #: By endpoint: the examples that reach it, how and at which address; and their scopes.
    reached: dict[str | None, list[tuple[LoadedTask, str, str]]] = defaultdict(list)
    scopes: dict[str | None, list[tuple[LoadedTask, QueryScope]]] = defaultdict(list)
    for task, own in uses:
        targets = task.targets or (task.endpoint,)
        services = [scope.endpoint for scope in own or () if scope.endpoint]
        ways = {"target": targets, "declared": task.federates_with, "service": services}
        for way, addresses in ways.items():
            for address in addresses:
                reached[address_key(address)].append((task, way, address))
        for scope in own or ():
            for address in [scope.endpoint] if scope.endpoint else targets:
                scopes[address_key(address)].append((task, scope))
    from_pack = _of_pack(pack)
    endpoints = [
        _endpoint(reached[key], scopes[key], from_pack.get(key))
        for key in dict.fromkeys((*reached, *from_pack))
        if key
    ]
    endpoints.sort(key=lambda e: (e.url != pack.endpoint, -e.tasks, e.url))
    known = known_packs().get(pack.key) == pack.root
    source = f"ontology/{pack.key}" if known else pack.key
    unread = sum(own is None for _, own in uses)
    return Registry(source, tuple(_with_unique_names(endpoints)), len(uses), unread)


@lru_cache(maxsize=8)
def _uses(root: Path, examples: Path, stamp: tuple[tuple[Path, int, int], ...]) -> tuple[_Use, ...]:
    """Read the examples of a pack; the stamp makes a changed folder be read again."""
    uses: list[_Use] = []
    for task in load_corpus(replace(load_pack(root), examples=examples)).tasks:
        try:
            uses.append((task, query_scopes(task.expected_sparql)))
        except QueryError:
            uses.append((task, None))
    return tuple(uses)


def _of_pack(pack: Pack) -> dict[str, tuple[str, Identity]]:
    """Return address and identity of the endpoints that the pack itself names, by key."""
    found: dict[str, tuple[str, Identity]] = {}
    for url, one in [(pack.endpoint, pack), *((other.url, other) for other in pack.federated)]:
        if key := address_key(url):
            known = identity_of(url)
            said = Identity(one.name or known.name, one.authority or known.authority)
            found.setdefault(key, (url, said))
    return found


def _endpoint(
    reached: Sequence[tuple[LoadedTask, str, str]],
    scopes: Sequence[tuple[LoadedTask, QueryScope]],
    from_pack: tuple[str, Identity] | None,
) -> RegistryEndpoint:
    spellings = Counter(address for _, _, address in reached)
    common = sorted(spellings, key=lambda one: (-spellings[one], one))
    url, identity = from_pack or (common[0], identity_of(common[0]))
    tasks = {task.id: task.query for task, _, _ in reached}
    ways = Counter(way for way, _ in {(way, task.id) for task, way, _ in reached})
    prefixes = Counter(pair for _, scope in scopes for pair in scope.prefixes.items())
    named = {(graph, task.id) for task, scope in scopes for graph in scope.graphs}
    graphs = Counter(graph for graph, _ in named)
    # The corpus is sorted by topic: take questions from all over it.
    questions = list(dict.fromkeys(tasks.values()))
    step = max(1, len(questions) // QUESTIONS)
    return RegistryEndpoint(
        url=url,
        name=identity.name,
        authority=identity.authority,
        spellings=tuple(dict.fromkeys((url, *common))),
        tasks=len(tasks),
        as_target=ways["target"],
        by_service=ways["service"],
        declared=ways["declared"],
        prefixes=tuple(sorted(prefixes, key=lambda one: (-prefixes[one], one))),
        graphs=dict(sorted(graphs.items(), key=lambda one: (-one[1], one[0]))),
        questions=tuple(questions[::step][:QUESTIONS]),
    )


def _with_unique_names(endpoints: Sequence[RegistryEndpoint]) -> list[RegistryEndpoint]:
    """Make names unique by the dataset in the path, else by the whole address."""
    taken: set[str] = set()
    out = []
    for endpoint in endpoints:
        name, more = endpoint.name, (dataset_of(endpoint.url), f"({address_key(endpoint.url)})")
        choices = (name, *(f"{name} {one}" for one in more if one))
        name = next(c for c in choices if c.casefold() not in taken)
        taken.add(name.casefold())
        out.append(replace(endpoint, name=name))
    return out


def identity_of(url: str) -> Identity:
    """Return name and publisher of an endpoint."""
    parts = urlsplit(url if address_key(url) else "")
    host = (parts.hostname or "").removeprefix("www.").rstrip(".")
    known = _BY_HOST.get(host)
    if known is None:
        return _derived(host or url)
    dataset = dataset_of(url)
    if known.name.startswith(f"{dataset.upper()} ") or not dataset:
        return known._replace(name=known.name.removesuffix(" *"))
    return known._replace(name=known.name.replace("*", dataset))


def dataset_of(url: str) -> str:
    """Return the part of an address's path that identifies the data, or ``''``."""
    parts = [part for part in urlsplit(url).path.split("/") if part]
    telling = [part for part in parts if part.lower() not in _GENERIC]
    return telling[-1] if telling else ""


def _derived(host: str) -> Identity:
    try:
        return Identity(str(ipaddress.ip_address(host)), host)
    except ValueError:
        labels = host.split(".")
    suffix = 2 if len(labels) > 2 and labels[-2] in _SECOND_LEVEL and len(labels[-1]) == 2 else 1
    rest = labels[:-suffix] or labels
    telling = [label for label in rest if label not in _GENERIC]
    name = (telling or rest)[-1]
    authority = ".".join(labels[-suffix - 1 :])
    return Identity(name if "-" in name else name.capitalize(), authority)
