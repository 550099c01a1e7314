"""What a query is, whatever its wording: hashes that survive new names, prefixes and layout.

The leakage guard knows a gold by them, wherever it stands: alone, in prose, or in code.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from rdflib.namespace import RDF
from rdflib.paths import Path, SequencePath
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.plugins.sparql.sparql import Query
from rdflib.term import BNode, Identifier, URIRef, Variable

from reasoningbank.corpus.template import triples_of
from reasoningbank.errors import QueryError
from reasoningbank.memory.naming import Bag, Name, Node, Row, words_of
from reasoningbank.sparql.query import prepare
from reasoningbank.sparql.terms import STANDARD_PREFIXES
from reasoningbank.sparql.tokens import Token, tokenize

__all__ = ["Prefixes", "queries_in", "query_hashes", "template_hash"]

#: Prefix and namespace, sorted: what a query may use without declaring it.
Prefixes = tuple[tuple[str, str], ...]

#: Below this number of triple patterns a WHERE clause is no one's own.
LEAST_PATTERNS = 2

_START = re.compile(r"\b(?:PREFIX|BASE|SELECT|ASK|CONSTRUCT|DESCRIBE)\b", re.IGNORECASE)
_FORMS = ("SELECT", "ASK", "CONSTRUCT", "DESCRIBE")
_MODIFIERS = ("GROUP", "BY", "HAVING", "ORDER", "ASC", "DESC", "LIMIT", "OFFSET", "VALUES")
#: ``<<name>>`` in a skeleton stands for a constant.
_SLOT = re.compile(r"<<\s*([\w .-]+?)\s*>>")
#: What says how much of an answer is wanted, not which.
_OUTER = ("Slice", "Distinct", "Reduced", "Project", "OrderBy")
#: A prologue and a head are no longer than so many tokens, a query than so many characters.
_HEAD_TOKENS = 400
_MOST_CHARS = 40_000
#: Prose that says "select" is told from a query by so many characters, mostly.
_NEAR_CHARS = 300


@lru_cache(maxsize=4096)
def query_hashes(query: str, prefixes: Prefixes = ()) -> frozenset[str]:
    """Return the hashes by which a query is known again; none for what does not parse.

    One is of the whole query, its LIMIT and DISTINCT apart; one, where that holds two triple
    patterns or more, of its WHERE clause alone, without what is grouped or computed over it.
    Prefixes, names of variables, layout, comments, and the order of the patterns of a group are
    no part of either.

    Args:
        query: SPARQL text.
        prefixes: Prefixes that need no declaration, beside the common ones.

    Examples:
        >>> one = query_hashes("SELECT ?a { ?a a <http://e/T> ; <http://e/p> 1 }")
        >>> other = query_hashes(
        ...     "PREFIX e: <http://e/> SELECT DISTINCT ?x WHERE { ?x e:p 1 . ?x a e:T } LIMIT 9")
        >>> one == other, len(one)
        (True, 2)
    """
    parsed = _parsed(query, prefixes)
    if parsed is None:
        return frozenset()
    root = parsed.algebra
    body = root.get("p")
    order: list[Any] = []
    while isinstance(body, CompValue) and body.name in _OUTER:
        if body.name == "OrderBy":
            order.append(body.expr)
        body = body.p
    columns = Bag((*_nodes(list(root.get("PV") or ())), *_nodes(list(root.get("var") or ()))))
    told = (*_nodes(body), *_nodes(order), *_nodes(root.get("template")), columns)
    hashes = {_hash("query", root.name, *words_of(Row(told)))}
    where = _where(body)
    if _count(where) >= LEAST_PATTERNS:
        hashes.add(_hash("where", *words_of(Row(tuple(_nodes(where))))))
    return frozenset(hashes)


@lru_cache(maxsize=4096)
def template_hash(query: str, prefixes: Prefixes = ()) -> str:
    """Return the hash of a query's shape; empty if it does not parse.

    It is what is left without constants, slots of a skeleton among them; properties and classes
    stay, and so do LIMIT and DISTINCT.

    Examples:
        >>> template_hash("SELECT ?m { <<protein>> up:mass ?m }", (("up", "http://u/"),)) == (
        ...     template_hash("SELECT ?x { <http://e/1> <http://u/mass> ?x }"))
        True
    """
    parsed = _parsed(query, prefixes)
    if parsed is None:
        return ""
    root = parsed.algebra
    columns = Bag(tuple(_nodes(list(root.get("PV") or ()))))
    return _hash("shape", *words_of(Row((*_nodes(root, shape=True), columns))))


@lru_cache(maxsize=4096)
def queries_in(text: str) -> tuple[str, ...]:
    """Return what may be queries in a text: SPARQL alone, in prose, or in strings of code.

    Examples:
        >>> queries_in("Select one. Then run('ASK { ?s ?p ?o }') and look.")
        ('ASK { ?s ?p ?o }',)
        >>> queries_in("Ask for the mass.")
        ()
    """
    found: dict[str, None] = {}
    unescaped = text.replace("\\n", "\n").replace('\\"', '"') if "\\" in text else text
    for written in dict.fromkeys((text, unescaped)):
        done = 0
        for start in _START.finditer(written):
            if start.start() < done:
                continue
            query = _query_at(written[start.start() :])
            if query:
                done = start.start() + len(query)
                found[query] = None
    return tuple(found)


def _query_at(text: str) -> str:
    """Return the query that a text begins with; empty where it begins with none."""
    # The last token of a window may be cut.
    if _is_prose([token for token in tokenize(text[:_NEAR_CHARS]) if token.end < _NEAR_CHARS - 80]):
        return ""
    tokens = tokenize(text[:_MOST_CHARS])
    head = _head(tokens)
    if head is None:
        return ""
    at, depth = head, 0
    end = tokens[head - 1].end
    while at < len(tokens):
        token = tokens[at]
        if token.text == "{":
            depth += 1
        elif token.text == "}":
            depth -= 1
            end = token.end
        elif not depth and not token.is_word("WHERE"):
            break
        at += 1
    if depth > 0:
        # What was cut short is known by what there is of it.
        return f"{text[: tokens[-1].end]} {'}' * depth}"
    return text[: _modified(tokens, at, end)]


def _is_prose(tokens: Sequence[Token]) -> bool:
    """Tell whether the beginning of a text shows already that it begins no query."""
    formed = False
    for token in tokens:
        if token.text == "{" or token.is_word("DESCRIBE"):
            return not formed and token.text == "{"
        form = token.is_word(*_FORMS)
        if (form and formed) or token.kind == "other" or token.text in ("}", ";"):
            return True
        formed = formed or form
    return False


def _head(tokens: tuple[Token, ...]) -> int | None:
    """Return where the first group or the end of a DESCRIBE stands; None if it is no query."""
    described = False
    formed = 0
    for at, token in enumerate(tokens[:_HEAD_TOKENS]):
        if token.is_word(*_FORMS):
            formed += 1
            described = token.is_word("DESCRIBE")
            if formed > 1:
                return None
        elif token.text == "{":
            return at if formed else None
        elif described and token.kind not in ("iri", "name", "variable", "punct"):
            return at if token.is_word("WHERE", "FROM") or tokens[at - 1].kind != "word" else None
        elif token.kind == "other" or token.text in ("}", ";"):
            return None
    return len(tokens) if described and len(tokens) < _HEAD_TOKENS else None


def _modified(tokens: tuple[Token, ...], at: int, end: int) -> int:
    """Return where the solution modifiers end that begin at a token."""
    while at < len(tokens) and tokens[at].is_word(*_MODIFIERS):
        at += 1
        while at < len(tokens) and not tokens[at].is_word(*_MODIFIERS):
            token = tokens[at]
            bracket = token.text in ("(", "{")
            if not bracket and token.kind not in ("variable", "number") and not token.is_word("BY"):
                return end
            at = _closed(tokens, at) if bracket else at + 1
            end = tokens[at - 1].end
    return end


def _closed(tokens: tuple[Token, ...], at: int) -> int:
    """Return the place after the bracket that closes the one at a token."""
    depth = 0
    for place in range(at, len(tokens)):
        depth += (tokens[place].text in ("(", "{")) - (tokens[place].text in (")", "}"))
        if not depth:
            return place + 1
    return len(tokens)


def _parsed(query: str, prefixes: Prefixes) -> Query | None:
    declared: Mapping[str, str] = {**STANDARD_PREFIXES, **dict(prefixes)}
    try:
        return prepare(_SLOT.sub(r"<slot:\1>", query), prefixes=declared).parsed
    except QueryError:
        return None


def _where(body: Any) -> Any:
    """Return the pattern below grouping, aggregates, HAVING and computed columns."""
    node = body
    while isinstance(node, CompValue) and node.name in ("Extend", "Filter", "AggregateJoin"):
        if node.name == "AggregateJoin":
            return _where(node.p.p)
        node = node.p
    while isinstance(body, CompValue) and body.name == "Extend":
        body = body.p
    return body


def _hash(*words: str) -> str:
    return hashlib.sha256("\x1f".join(words).encode()).hexdigest()[:16]


def _count(part: Any) -> int:
    """Return the number of triple patterns, steps of a path counted each."""
    if isinstance(part, CompValue):
        own = len(_steps(part)) if "triples" in part else 0
        return own + sum(_count(value) for key, value in part.items() if key != "triples")
    if isinstance(part, (list, tuple)):
        return sum(_count(item) for item in part)
    return 0


def _nodes(part: Any, *, shape: bool = False) -> Iterator[Node]:
    if isinstance(part, CompValue):
        yield f"({part.name}"
        for key in sorted(k for k in part if k not in ("_vars", "PV", "lazy", "service_string")):
            yield key
            if key == "triples":
                yield Bag(tuple(_triple(*triple, shape=shape) for triple in _steps(part)))
            else:
                yield from _nodes(part[key], shape=shape)
        yield ")"
    elif isinstance(part, (list, tuple)):
        yield "["
        # How many rows of VALUES there are is a constant like the values themselves.
        rows = shape and bool(part) and type(part[0]) is dict
        for item in part[:1] if rows else part:
            yield from _nodes(item, shape=shape)
        yield "]"
    elif isinstance(part, dict):
        for key in part:
            yield from (_term(key), _term(part[key], shape=shape))
    else:
        yield _term(part, shape=shape)


def _triple(subject: Any, predicate: Any, obj: Any, *, shape: bool) -> Row:
    constant = shape and not (predicate == RDF.type and isinstance(obj, URIRef))
    return Row((_term(subject, shape=shape), _term(predicate), _term(obj, shape=constant)))


def _steps(block: CompValue) -> list[tuple[Any, Any, Any]]:
    """Return the triple patterns of a block, sequence paths written out."""
    steps: list[tuple[Any, Any, Any]] = []
    for subject, predicate, obj in triples_of(block):
        if isinstance(predicate, SequencePath):
            between = [BNode() for _ in predicate.args[1:]]
            ends = [subject, *between, obj]
            steps += zip(ends, predicate.args, ends[1:], strict=False)
        else:
            steps.append((subject, predicate, obj))
    return steps


def _term(term: Any, *, shape: bool = False) -> Node:
    if isinstance(term, (Variable, BNode)):
        return Name(str(term))
    constant = isinstance(term, Identifier) or type(term) is int
    return "_" if shape and constant else _written(term)


def _written(term: Any) -> str:
    return str(term.n3()) if isinstance(term, (Path, Identifier)) else str(term)
