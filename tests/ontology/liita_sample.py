"""What the tests of the LiITA pack share: loading its files, and asking them."""

from __future__ import annotations

import gzip
import tomllib
from pathlib import Path

from pyoxigraph import RdfFormat, Store

PACK = Path(__file__).resolve().parents[2] / "ontology" / "liita"
_PREFIXES = tomllib.loads((PACK / "pack.toml").read_text(encoding="utf-8"))["prefixes"]
PREFIXES = "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in _PREFIXES.items())
#: The lemma banks and the lexicons of Sicilian and Parmigiano.
DIALECT = tuple(
    f"<http://liita.it/data/id/Dialetto{name}/lemma/LemmaBank>"
    for name in ("Siciliano", "Parmigiano")
)
LEXICON = (
    "<http://liita.it/data/id/LexicalResources/DialettoSiciliano/Wikizziunariu>",
    "<http://liita.it/data/id/LexicalReources/DialettoParmigiano/Lexicon>",
)


def load(file: Path) -> Store:
    """A store with one file of the pack."""
    store = Store()
    if file.suffix == ".ttl":
        store.load(path=str(file), format=RdfFormat.TURTLE)
    else:
        with gzip.open(file) as quads:
            store.bulk_load(quads, format=RdfFormat.N_QUADS)
    return store


def ask(store: Store, pattern: str) -> bool:
    """Whether a pattern matches."""
    return bool(store.query(f"{PREFIXES} ASK {{ {pattern} }}", use_default_graph_as_union=True))


def rows(store: Store, query: str) -> list[tuple[str, ...]]:
    """The rows of a query, as text."""
    found = store.query(PREFIXES + query, use_default_graph_as_union=True)
    return [tuple(term.value for term in row) for row in found]
