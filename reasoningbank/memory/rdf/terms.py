"""The names under which memory is told in RDF, and which field each stands for."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, unquote

from reasoningbank.corpus.examples import RB, RDF_TYPE, RDFS
from reasoningbank.sparql import STANDARD_PREFIXES

__all__ = [
    "AGENT",
    "COUNTERS",
    "DISTILLATION",
    "ITEM",
    "ITEM_TEXTS",
    "LABEL",
    "MEMORY_ITEM",
    "NAMESPACES",
    "ORIGIN",
    "ORIGIN_TEXTS",
    "POSITION",
    "PROV",
    "SCOPE_TEXTS",
    "SUPERSEDED_BY",
    "TAG",
    "TASK",
    "TASK_CLASS",
    "TRIAL",
    "TRIAL_CLASS",
    "TURN",
    "TURN_CLASS",
    "TURN_TEXTS",
    "TYPE",
    "VALUE",
    "name_of",
    "named",
]

PROV = "http://www.w3.org/ns/prov#"
_DCTERMS = STANDARD_PREFIXES["dcterms"]
_RDF = STANDARD_PREFIXES["rdf"]

#: What the things of memory are called; each is followed by a name, percent-encoded.
ITEM = "urn:reasoningbank:item:"
TRIAL = "urn:reasoningbank:trial:"
TASK = "urn:reasoningbank:task:"
AGENT = "urn:reasoningbank:agent:"

NAMESPACES: Mapping[str, str] = {
    "rb": RB,
    "prov": PROV,
    "dcterms": _DCTERMS,
    "rdf": _RDF,
    "rdfs": RDFS,
    "xsd": STANDARD_PREFIXES["xsd"],
}

TYPE = RDF_TYPE
LABEL = RDFS + "label"
VALUE = _RDF + "value"

MEMORY_ITEM = RB + "MemoryItem"
DISTILLATION = RB + "Distillation"
TURN_CLASS = RB + "Turn"
TRIAL_CLASS = RB + "Trial"
TASK_CLASS = RB + "Task"

TAG = RB + "tag"
TURN = RB + "turn"
ORIGIN = RB + "origin"
POSITION = RB + "position"
SUPERSEDED_BY = RB + "supersededBy"

#: Field of an item → property; what is empty is left out.
ITEM_TEXTS: Mapping[str, str] = {
    "title": _DCTERMS + "title",
    "description": _DCTERMS + "description",
    "content": RB + "content",
    "src": RB + "source",
    "pattern": RB + "pattern",
    "question": RB + "question",
    "query": RB + "query",
    "status": RB + "status",
}
SCOPE_TEXTS: Mapping[str, str] = {"pack": RB + "pack", "endpoint": RB + "endpoint"}
COUNTERS: Mapping[str, str] = {
    "retrieved": RB + "retrieved",
    "success": RB + "followedBySuccess",
    "failure": RB + "followedByFailure",
    "helped": RB + "helped",
    "hurt": RB + "hurt",
}
#: Field of an origin → property of the distillation.
ORIGIN_TEXTS: Mapping[str, str] = {
    "task": RB + "task",
    "group": RB + "group",
    "corpus": RB + "corpus",
    "trial": RB + "trial",
    "judge": RB + "judge",
    "model": RB + "model",
    "time": RB + "time",
    "author": RB + "author",
}
TURN_TEXTS: Mapping[str, str] = {
    "reasoning": RB + "reasoning",
    "code": RB + "code",
    "output": RB + "output",
}


def named(kind: str, *names: str) -> str:
    """Return the IRI of a thing.

    Examples:
        >>> named(TRIAL, "uniprot", "one/t1.0")
        'urn:reasoningbank:trial:uniprot:one%2Ft1.0'
    """
    return kind + ":".join(quote(name, safe="") for name in names)


def name_of(iri: str, kind: str) -> str:
    """Return the name in the IRI of a thing; `named` reversed.

    Examples:
        >>> name_of(named(ITEM, "a b:c"), ITEM)
        'a b:c'
    """
    return unquote(iri.removeprefix(kind))
