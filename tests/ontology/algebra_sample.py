"""What the tests of the algebra pack share: its data and documents as a dataset, and its tasks."""

from __future__ import annotations

import functools
import gzip
from pathlib import Path

from pyoxigraph import DefaultGraph, Quad, RdfFormat, Store

from reasoningbank.corpus import Task, load_corpus

PACK = Path(__file__).resolve().parents[2] / "ontology" / "algebra"
BASE = "http://localhost/"


def load(*, documents: bool) -> Store:
    """A store whose default graph is the data; with the initial documents as named graphs."""
    store = Store()
    with gzip.open(PACK / "data" / "cities.nt.gz") as triples:
        store.load(triples, format=RdfFormat.N_TRIPLES)
    if documents:
        store.load(path=str(PACK / "documents.trig"), format=RdfFormat.TRIG)
    return store


def tasks(*, writing: bool) -> list[Task]:
    """The tasks of one kind."""
    return [t for t in load_corpus("algebra").tasks if (t.form == "UPDATE") is writing]


@functools.cache
def changes(update: str) -> tuple[frozenset[Quad], frozenset[Quad]]:
    """What an update adds and removes."""
    store = load(documents=True)
    before = frozenset(store)
    store.update(update)
    after = frozenset(store)
    return after - before, before - after


def document(quad: Quad) -> str:
    """The document that a quad is in; `''` for the data."""
    return "" if isinstance(quad.graph_name, DefaultGraph) else quad.graph_name.value
