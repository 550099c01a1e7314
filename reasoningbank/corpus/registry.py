"""The registry of a corpus: which endpoints and graphs its examples reach, and how often.

It is read from the examples' queries (`query_scopes`), targets and ``spex:federatesWith``; what the
pack says (its own endpoint, ``[[federated]]``) comes first. It shows questions and never gold
queries, and nothing of hidden tasks.
"""

from __future__ import annotations

import ipaddress
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from reasoningbank.corpus.pack import Pack, known_packs, load_pack
from reasoningbank.corpus.scopes import QueryScope, query_scopes
from reasoningbank.corpus.shacl import load_corpus
from reasoningbank.corpus.task import LoadedTask
from reasoningbank.errors import QueryError
from reasoningbank.sparql import address_key

#: Questions kept for each endpoint.
QUESTIONS = 3


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
class UsedGraph:
    """A graph that examples name, and how many do."""

    graph: str
    tasks: int


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
    graphs: tuple[UsedGraph, ...] = ()  #: Graphs named in its parts of queries, the most used first
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


class _Use(NamedTuple):
    """An example and its scopes; None if its query could not be parsed."""

    task: LoadedTask
    scopes: tuple[QueryScope, ...] | None


@dataclass
class _Counted:
    """An endpoint while it is counted, in sets of task ids."""

    spellings: Counter[str] = field(default_factory=Counter)
    ways: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    prefixes: Counter[tuple[str, str]] = field(default_factory=Counter)
    graphs: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    questions: dict[str, str] = field(default_factory=dict)


def read_registry(pack: Pack, hidden: Collection[str] = ()) -> Registry:
    """Read what the examples of a pack reach."""
    unseen = frozenset(hidden)
    uses = [use for use in _uses(pack) if use.task.id not in unseen]
    found: dict[str, _Counted] = defaultdict(_Counted)
    for use in uses:
        _count(use, found)
    from_pack = _of_pack(pack)
    for key in from_pack:
        found[key]
    endpoints = [_endpoint(counted, from_pack.get(key)) for key, counted in found.items()]
    endpoints.sort(key=lambda e: (e.url != pack.endpoint, -e.tasks, e.url))
    known = known_packs().get(pack.key) == pack.root
    return Registry(
        f"ontology/{pack.key}" if known else pack.key,
        tuple(_with_unique_names(endpoints)),
        len(uses),
        sum(use.scopes is None for use in uses),
    )


def _uses(pack: Pack) -> tuple[_Use, ...]:
    files = (*pack.root.glob("pack.toml"), *sorted(pack.examples.rglob("*.ttl")))
    stamp = tuple((f, s.st_mtime_ns, s.st_size) for f in files for s in [f.stat()])
    return _read_uses(pack.root, pack.examples, stamp)


@lru_cache(maxsize=8)
def _read_uses(
    root: Path, examples: Path, stamp: tuple[tuple[Path, int, int], ...]
) -> tuple[_Use, ...]:
    # The stamp is an argument so that a changed folder is read again.
    pack = replace(load_pack(root), examples=examples)
    uses = []
    for task in load_corpus(pack).tasks:
        try:
            uses.append(_Use(task, query_scopes(task.expected_sparql)))
        except QueryError:
            uses.append(_Use(task, None))
    return tuple(uses)


def _count(use: _Use, found: dict[str, _Counted]) -> None:
    def note(address: str, way: str) -> _Counted | None:
        key = address_key(address)
        if key is None:
            return None
        endpoint = found[key]
        endpoint.spellings[address] += 1
        endpoint.ways[way].add(use.task.id)
        endpoint.questions.setdefault(use.task.id, use.task.query)
        return endpoint

    own = [
        e for target in use.task.targets or (use.task.endpoint,) if (e := note(target, "target"))
    ]
    for address in use.task.federates_with:
        note(address, "declared")
    for scope in use.scopes or ():
        asked = own
        if scope.endpoint:
            served = note(scope.endpoint, "service")
            asked = [served] if served else []
        for endpoint in asked:
            endpoint.prefixes.update(scope.prefixes)
            for graph in scope.graphs:
                endpoint.graphs[graph].add(use.task.id)


def _of_pack(pack: Pack) -> dict[str, tuple[str, Identity]]:
    """Return address and identity of the endpoints that the pack itself names, by key."""
    own = [(pack.endpoint, pack.name, pack.authority)] if pack.endpoint else []
    named = [*own, *((f.url, f.name, f.authority) for f in pack.federated)]
    found: dict[str, tuple[str, Identity]] = {}
    for url, name, authority in named:
        known = identity_of(url)
        if key := address_key(url):
            found.setdefault(key, (url, Identity(name or known.name, authority or known.authority)))
    return found


def _endpoint(found: _Counted, from_pack: tuple[str, Identity] | None) -> RegistryEndpoint:
    common = [url for url, _ in sorted(found.spellings.items(), key=lambda i: (-i[1], i[0]))]
    url, identity = from_pack or (common[0], identity_of(common[0]))
    prefixes = sorted(found.prefixes.items(), key=lambda item: (-item[1], item[0]))
    graphs = [UsedGraph(graph, len(tasks)) for graph, tasks in found.graphs.items()]
    # The corpus is sorted by topic: take questions from all over it.
    questions = list(dict.fromkeys(found.questions.values()))
    step = max(1, len(questions) // QUESTIONS)
    return RegistryEndpoint(
        url=url,
        name=identity.name,
        authority=identity.authority,
        spellings=tuple(dict.fromkeys((url, *common))),
        tasks=len(found.questions),
        as_target=len(found.ways["target"]),
        by_service=len(found.ways["service"]),
        declared=len(found.ways["declared"]),
        prefixes=tuple(pair for pair, _ in prefixes),
        graphs=tuple(sorted(graphs, key=lambda g: (-g.tasks, g.graph))),
        questions=tuple(questions[::step][:QUESTIONS]),
    )


def _with_unique_names(endpoints: Iterable[RegistryEndpoint]) -> list[RegistryEndpoint]:
    """Make names unique by the dataset in the path, else by the whole address."""
    taken: set[str] = set()
    out = []
    for endpoint in endpoints:
        dataset = dataset_of(endpoint.url)
        choices = (
            endpoint.name,
            f"{endpoint.name} {dataset}" if dataset else endpoint.name,
            f"{endpoint.name} ({address_key(endpoint.url)})",
        )
        name = next(c for c in choices if c.casefold() not in taken)
        taken.add(name.casefold())
        out.append(endpoint if name == endpoint.name else replace(endpoint, name=name))
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
