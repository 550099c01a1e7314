"""What a question must contain, every constant of its gold, and must not: names of the schema.

A question without one of the constants cannot be answered; one with the schema's own names gives
half of the query away.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyoxigraph as ox
from rdflib import RDF, RDFS, SKOS
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.plugins.sparql.sparql import Query
from rdflib.term import Literal, URIRef

from reasoningbank.corpus.pack import Pack
from reasoningbank.errors import QueryError, UsageError
from reasoningbank.schema import local_name
from reasoningbank.sparql.query import parse_algebra
from reasoningbank.sparql.shape import triples_of
from reasoningbank.sparql.terms import XSD

#: The objects of these properties are classes or properties.
_VOCABULARY_BEHIND = (str(RDF.type), str(RDF.predicate))
_NAMING = (str(RDFS.label), str(SKOS.altLabel))
#: Parts of rdflib's nodes that hold no constant of the question, by node; those of all under "".
_SKIPPED = {
    "": ("_vars", "template", "separator", "flags"),
    **dict.fromkeys(("Graph", "GraphGraphPattern", "ServiceGraphPattern"), ("term",)),
    **dict.fromkeys(("Slice", "Builtin_SUBSTR"), ("length", "start")),
}
_NUMBER_WORDS = {
    "en": (
        "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    ),
    "it": (
        "zero", "un", "due", "tre", "quattro", "cinque", "sei", "sette", "otto", "nove", "dieci",
    ),
}  # fmt: skip


def constants_of(query: str | Query) -> list[URIRef | Literal]:
    """Return the constants that a query's answer depends on, each once."""
    if isinstance(query, str):
        try:
            query = parse_algebra(query)
        except Exception as error:  # rdflib raises plain Exception among others
            raise QueryError(f"the query does not parse: {error}") from None
    return list(dict.fromkeys(_constants(query.algebra)))


def _constants(part: Any) -> Iterator[URIRef | Literal]:
    if isinstance(part, CompValue):
        yield from _of_node(part)
    elif isinstance(part, dict | list | tuple):
        for value in part.values() if isinstance(part, dict) else part:
            yield from _constants(value)
    elif isinstance(part, Literal) or (isinstance(part, URIRef) and not part.startswith(XSD)):
        yield part


def _of_node(node: CompValue) -> Iterator[URIRef | Literal]:
    if node.name in ("BGP", "TriplesBlock"):
        for subject, predicate, obj in triples_of(node):
            yield from _constants(subject)
            if str(predicate) not in _VOCABULARY_BEHIND:
                yield from _constants(obj)
    elif node.name == "UnaryMinus" and isinstance(node.expr, Literal):
        yield Literal(f"-{node.expr}")
    elif node.name == "AdditiveExpression":
        # ?end - ?begin + 1 is a length and holds no constant of the question.
        yield from (c for c in _constants([node.expr, *node.other]) if str(c) != "1")
    else:
        if node.name == "Slice":
            yield from (
                Literal(one) for one in (node.length, node.start or None) if one is not None
            )
        skip = {*_SKIPPED[""], *_SKIPPED.get(node.name, ())}
        yield from _constants([value for key, value in node.items() if key not in skip])


def unmentioned(
    question: str,
    query: str | Query,
    names: Callable[[URIRef], Iterable[str]],
    *,
    language: str = "en",
) -> list[URIRef | Literal]:
    """Return the constants of a query that its question does not mention."""
    said = _words(question)
    return [
        constant
        for constant in constants_of(query)
        # No word expresses a truth value.
        if str(constant) not in ("true", "false")
        and not any(_says(said, way, language) for way in _ways(constant, names, language))
    ]


def _ways(
    constant: URIRef | Literal, names: Callable[[URIRef], Iterable[str]], language: str
) -> Iterator[str]:
    if isinstance(constant, Literal):
        text = str(constant)
        yield from (text, text.replace("_", " "))
        words = _NUMBER_WORDS.get(language, ())
        if text.isdigit() and int(text) < len(words):
            yield words[int(text)]
        return
    local = local_name(str(constant).rstrip("/#"))
    yield from (local, local.replace("_", " "), local.replace("_", ":"))
    first, _, last = local.rpartition("_")
    if first and last.isalpha():
        # Taxonomic_Rank_Phylum is a phylum, Predicted_Existence is predicted.
        yield from (last, first.replace("_", " "))
    yield from names(constant)


def _words(text: str) -> str:
    kept = re.sub(r"[^\w.:%+-]+", " ", text.casefold())
    return f" {re.sub(r'[.:]+(?= |$)', '', kept)} "


def _says(said: str, name: str, language: str) -> bool:
    # A word may have an ending (kinase, kinases), a number or an identifier may not.
    wanted = _words(name).strip()
    if language == "it":
        wanted = re.sub(r"(?<=\w{3})[aeio]$", "", wanted)
    end = " " if wanted[-1:].isdigit() else ""
    return bool(wanted) and f" {wanted}{end}" in said


def schema_names(pack: Pack) -> dict[URIRef, list[str]]:
    """Return the labels of IRIs in a pack's schema, in all languages."""
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
