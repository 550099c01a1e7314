"""The RDF formats of items, told by the names of files."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pyoxigraph as ox

__all__ = ["RdfName", "rdf_format", "rdf_name"]

RdfName = Literal["turtle", "nquads"]

_FORMATS: dict[RdfName, ox.RdfFormat] = {
    "turtle": ox.RdfFormat.TURTLE,
    "nquads": ox.RdfFormat.N_QUADS,
}
_NAMES: dict[str, RdfName] = {".ttl": "turtle", ".nq": "nquads"}


def rdf_name(path: Path) -> RdfName | None:
    """Return the RDF format that a file's name tells, gzipped or not; None if it tells none.

    Examples:
        >>> rdf_name(Path("items.nq.gz")), rdf_name(Path("items.ttl")), rdf_name(Path("items"))
        ('nquads', 'turtle', None)
    """
    return _NAMES.get(Path(path.name.removesuffix(".gz")).suffix)


def rdf_format(name: RdfName) -> ox.RdfFormat:
    """Return pyoxigraph's name of a format."""
    return _FORMATS[name]
