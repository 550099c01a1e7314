"""XML entities that blow up: a document of a kilobyte that unfolds to gigabytes.

The parser of RDF/XML and of SPARQL's XML results expands the entities that a document declares,
without a bound. Honest documents use them for namespaces.
"""

from __future__ import annotations

import re

__all__ = ["blows_up"]

_BEGUN = re.compile(rb"<!DOCTYPE", re.IGNORECASE)
_DECLARED = re.compile(rb"<!ENTITY\s+([^\s\"'>%]+)\s+(?:\"([^\"]*)\"|'([^']*)')", re.IGNORECASE)
#: Bytes that entities may add to a document.
MOST_ADDED = 16 * 1024 * 1024


def blows_up(document: bytes) -> bool:
    """Say whether an XML document's entities are nested or unfold to too much.

    Examples:
        >>> blows_up(b'<!DOCTYPE r [<!ENTITY e "http://e/">]><r a="&e;a" b="&e;b"/>')
        False
        >>> blows_up(b'<!DOCTYPE r [<!ENTITY a "lol"><!ENTITY b "&a;&a;">]><r>&b;</r>')
        True
    """
    # Parsers differ in whether they take these words in small letters.
    begun = _BEGUN.search(document)
    if begun is None:
        return False
    declared = _DECLARED.findall(document, begun.start())
    values = {name: double or single for name, double, single in declared}
    # References to characters (&#38;) are nested too: they can spell an entity's.
    if any(b"&" in value for value in values.values()):
        return True
    return sum(document.count(b"&%s;" % name) * len(v) for name, v in values.items()) > MOST_ADDED
