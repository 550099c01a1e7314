"""What lies in a container: the statements that the server makes, and nobody else.

They stand in the container's document: `ldp:contains` as LDP has it, and `sioc:has_parent` (of
a container) or `sioc:has_container` (of any other document) as LinkedDataHub has them.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyoxigraph import NamedNode, Triple

from reasoningbank.ldp.faults import Refused
from reasoningbank.ldp.names import is_folder

__all__ = [
    "CONTAINS",
    "HAS_CONTAINER",
    "HAS_PARENT",
    "ITEM",
    "TYPE",
    "is_item",
    "links",
    "without_links",
]

CONTAINS = NamedNode("http://www.w3.org/ns/ldp#contains")
HAS_PARENT = NamedNode("http://rdfs.org/sioc/ns#has_parent")
HAS_CONTAINER = NamedNode("http://rdfs.org/sioc/ns#has_container")
TYPE = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
ITEM = NamedNode("https://www.w3.org/ns/ldt/document-hierarchy#Item")


def is_item(url: str, triples: Iterable[Triple]) -> bool:
    """Say whether a document is no container: its address tells, or that it calls itself an item.

    Examples:
        >>> is_item("http://e/a", []), is_item("http://e/a/", [])
        (True, False)
    """
    stated = Triple(NamedNode(url), TYPE, ITEM)
    return not is_folder(url) or any(triple == stated for triple in triples)


def links(container: str, member: str, *, item: bool) -> tuple[Triple, Triple]:
    """Return the two statements that put a member into a container."""
    outer, inner = NamedNode(container), NamedNode(member)
    back = HAS_CONTAINER if item else HAS_PARENT
    return Triple(outer, CONTAINS, inner), Triple(inner, back, outer)


def without_links(url: str, triples: Iterable[Triple], members: Iterable[str]) -> list[Triple]:
    """Return a document without the server's statements.

    Whoever gets a container, changes it and puts it back sends them along; they are left out.

    Raises:
        Refused: It says that the container holds what it does not (409).

    Examples:
        >>> stated = links("http://e/", "http://e/a", item=True)
        >>> without_links("http://e/", stated, ["http://e/a"])
        []
    """
    inside = set(members)
    kept: list[Triple] = []
    for triple in triples:
        subject, predicate, object_ = triple
        if predicate == CONTAINS and subject == NamedNode(url):
            if not isinstance(object_, NamedNode) or object_.value not in inside:
                raise Refused(409, f"only the server says what {url} contains; put it there")
            continue
        if (
            predicate in (HAS_PARENT, HAS_CONTAINER)
            and object_ == NamedNode(url)
            and isinstance(subject, NamedNode)
            and subject.value in inside
        ):
            continue
        kept.append(triple)
    return kept
