"""The packs stand beside the library: `ontology.<pack>` is imported from the repository."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import pytest
from pyoxigraph import RdfFormat, Store

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))


@pytest.fixture(scope="session")
def pack() -> Path:
    """The folder of the UniProt pack."""
    return ROOT / "ontology" / "uniprot"


@pytest.fixture(scope="session")
def sample(pack: Path) -> Store:
    """The embedded sample, loaded."""
    store = Store()
    with gzip.open(pack / "data" / "uniprot.nq.gz") as quads:
        store.bulk_load(quads, format=RdfFormat.N_QUADS)
    return store
