"""What a pack's schema calls things: classes, properties, and values that questions name."""

from __future__ import annotations

from collections import defaultdict

import pyoxigraph as ox
from rdflib.term import URIRef

from reasoningbank.corpus.pack import Pack
from reasoningbank.errors import UsageError

__all__ = ["schema_names"]

_NAMING = (
    "http://www.w3.org/2000/01/rdf-schema#label",
    "http://www.w3.org/2004/02/skos/core#altLabel",
)


def schema_names(pack: Pack) -> dict[URIRef, list[str]]:
    """Return the labels that a pack's schema gives IRIs, in all languages.

    People say *joy* and *gioia* where the data have a resource with a name in one language at
    most; a schema may therefore label such values, too.

    Args:
        pack: The pack; one without a schema names nothing.

    Raises:
        UsageError: The schema cannot be read.
    """
    if pack.schema is None:
        return {}
    found: dict[URIRef, list[str]] = defaultdict(list)
    try:
        for quad in ox.parse(path=str(pack.schema), format=ox.RdfFormat.TURTLE):
            named = isinstance(quad.subject, ox.NamedNode) and quad.predicate.value in _NAMING
            if named and isinstance(quad.object, ox.Literal):
                found[URIRef(quad.subject.value)].append(quad.object.value)
    except (OSError, SyntaxError, ValueError) as error:
        raise UsageError(f"the schema cannot be read: {error}", where=str(pack.schema)) from None
    return dict(found)
