"""A small pack served over HTTP, with a server of documents beside it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import uvicorn
from trees import TREES

from reasoningbank.algebra import Limits
from reasoningbank.corpus import load_pack
from reasoningbank.ldp import LDPServer
from reasoningbank.mcp import Sessions, Settings, Shared, listening
from reasoningbank.mcp.server import PATH, http_server
from reasoningbank.memory import MemoryBank, MemoryItem

PACK = """
name = "Trees"
title = "Some trees"
endpoint = "https://trees.example/sparql/"
authority = "The Forest"
data = ["trees.ttl"]
schema = "schema.ttl"

[prefixes]
t = "http://e/"
"""
SCHEMA = """
@prefix : <http://e/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
:Tree a owl:Class ; rdfs:comment "A tall plant" .
:height a owl:DatatypeProperty ; rdfs:domain :Tree ; rdfs:comment "In metres" .
"""
HEAD = """
@prefix ex: <urn:trees/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix schema: <https://schema.org/> .
@prefix sh: <http://www.w3.org/ns/shacl#> .
"""
EXAMPLE = '''
ex:t{n:03} a sh:SPARQLExecutable, sh:SPARQLSelectExecutable ;
  rdfs:comment "Which plants are {n} steps away from each other?"@en ;
  sh:select """SELECT ?p0 ?p{n} WHERE {{ {steps} }}""" ;
  schema:target <https://trees.example/sparql/> .
'''


@dataclass
class Serving:
    """A server over HTTP, as clients find it, and what is behind it."""

    url: str
    shared: Shared
    sessions: Sessions

    def settled(self, wanted: Callable[[Sessions], bool]) -> bool:
        """Wait until the sessions are as wanted."""
        for _ in range(600):
            if wanted(self.sessions):
                return True
            time.sleep(0.05)
        return False


@dataclass
class Clock:
    """A clock that shows the given seconds."""

    now: float = 0.0
    calls: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        self.calls.append(self.now)
        return self.now


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def pack_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pack of four plants and twenty questions."""
    root = tmp_path_factory.mktemp("packs") / "trees"
    (root / "examples").mkdir(parents=True)
    (root / "pack.toml").write_text(PACK, encoding="utf-8")
    (root / "trees.ttl").write_text(TREES, encoding="utf-8")
    (root / "schema.ttl").write_text(SCHEMA, encoding="utf-8")
    steps = [f"?p{n} t:near ?p{n + 1} ." for n in range(20)]
    # Each has a form of its own, so that some are of the evaluation split.
    examples = HEAD + "".join(EXAMPLE.format(n=n, steps=" ".join(steps[:n])) for n in range(1, 21))
    (root / "examples" / "tasks.ttl").write_text(examples, encoding="utf-8")
    return root


@pytest.fixture(scope="session")
def bank_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bank of two items."""
    file = tmp_path_factory.mktemp("banks") / "bank.sqlite"
    items = [
        MemoryItem("Height of a tree", "How tall something is", "Ask t:height.", "success"),
        MemoryItem("Moss has no height", "Plants that are no trees", "Ask for t:Tree.", "failure"),
    ]
    with MemoryBank(file) as bank:
        bank.add(items)
    return file


@pytest.fixture(scope="session")
def documents() -> Iterator[LDPServer]:
    """A server of documents that programs may write to."""
    with LDPServer() as server:
        yield server


@pytest.fixture(scope="session")
def settings(pack_folder: Path, bank_file: Path, documents: LDPServer) -> Settings:
    """What the server of most tests serves and allows."""
    return Settings(
        pack=load_pack(pack_folder),
        bank=bank_file,
        allow_write=(documents.base,),
        limits=Limits(requests=40, rows=500, seconds=60.0),
    )


@contextlib.contextmanager
def serving(settings: Settings, clock: Callable[[], float] = time.monotonic) -> Iterator[Serving]:
    """Serve over HTTP from a thread."""
    with Shared(settings) as shared, listening("127.0.0.1:0") as bound:
        sessions = Sessions(shared, clock=clock)
        server: uvicorn.Server = http_server(shared, sessions)
        thread = threading.Thread(target=server.run, args=([bound],))
        thread.start()
        try:
            yield Serving(f"http://127.0.0.1:{bound.getsockname()[1]}{PATH}", shared, sessions)
        finally:
            server.should_exit = True
            thread.join(timeout=60)
            sessions.close()
            assert not thread.is_alive()


@pytest.fixture(scope="session")
def server(settings: Settings) -> Iterator[Serving]:
    """The server of most tests."""
    with serving(settings) as running:
        yield running


@pytest.fixture
def serve() -> Callable[..., contextlib.AbstractContextManager[Serving]]:
    """Return what serves with other settings."""
    return serving


@pytest.fixture
def make_clock() -> Callable[[], Clock]:
    """Return what makes a clock that stands still."""
    return Clock
