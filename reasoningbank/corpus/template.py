"""The template of a query: what stays when variables are renamed and constants abstracted."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from rdflib.paths import Path
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.term import BNode, Identifier, Literal, Variable

from reasoningbank.corpus.vocabulary import RDF_TYPE

__all__ = ["template_of", "triples_of"]

#: What a node has beside its shape; the text of a SERVICE is there as its pattern, too.
_NO_SHAPE = ("_vars", "PV", "service_string")


def triples_of(node: CompValue) -> list[tuple[Any, Any, Any]]:
    """Return the triple patterns of an algebra's BGP or a parse tree's triples block."""
    if node.name == "BGP":
        return list(node.triples)
    return [
        (row[i], row[i + 1], row[i + 2]) for row in node.triples for i in range(0, len(row) - 2, 3)
    ]


def template_of(algebra: CompValue) -> str:
    """Return a short hash that queries of the same shape share.

    Predicates and classes are kept, since they are what a query is about; other IRIs and
    literals become slots, variables are numbered by their first use.

    Args:
        algebra: The algebra of a query, as rdflib builds it.
    """
    names: dict[str, str] = {}
    text = " ".join(_words(algebra, names))
    return "template-" + hashlib.sha256(text.encode()).hexdigest()[:12]


def _words(part: Any, names: dict[str, str]) -> Iterator[str]:
    if isinstance(part, CompValue):
        yield f"({part.name}"
        for key in sorted(k for k in part if k not in _NO_SHAPE):
            yield key
            if key == "triples":
                yield from _triples(part, names)
            else:
                yield from _words(part[key], names)
        # Of SELECT * rdflib keeps the columns in the order of a set: they come last, sorted.
        yield from sorted(_term(column, names) for column in part.get("PV") or ())
        yield ")"
    elif isinstance(part, (list, tuple)):
        yield "["
        # Rows of VALUES: how many there are is a constant like the values themselves.
        for item in part[:1] if part and _is_row(part[0]) else part:
            yield from _words(item, names)
        yield "]"
    elif isinstance(part, dict):
        # Columns of VALUES as they were written: sorted, they would stand by their names.
        for key in part:
            yield _term(key, names)
    else:
        yield _term(part, names)


def _is_row(part: Any) -> bool:
    return isinstance(part, dict) and not isinstance(part, CompValue)


def _triples(block: CompValue, names: dict[str, str]) -> Iterator[str]:
    for subject, predicate, obj in triples_of(block):
        yield _term(subject, names)
        yield _term(predicate, names) if isinstance(predicate, Variable) else _path(predicate)
        yield str(obj) if str(predicate) == RDF_TYPE and _is_iri(obj) else _term(obj, names)


def _path(predicate: Any) -> str:
    return predicate.n3() if isinstance(predicate, (Path, Identifier)) else str(predicate)


def _is_iri(term: Any) -> bool:
    return isinstance(term, Identifier) and not isinstance(term, (Variable, BNode, Literal))


def _term(term: Any, names: dict[str, str]) -> str:
    if isinstance(term, (Variable, BNode)):
        return names.setdefault(str(term), f"?{len(names)}")
    is_number = isinstance(term, int) and not isinstance(term, bool)
    return "_" if is_number or isinstance(term, Identifier) else str(term)
