"""The shape of a query: canonical text and hashes, independent of names, prefixes and order.

Two readers produce a tree of nodes, in which names are free and bags have no order: one reads the
algebra of a query that parses, the other the tokens of a pattern with slots ``<<name>>``.
`canonical_words` writes such a tree as every equivalent tree is written.

- `query_hashes`: the same query, whatever its wording; for the leakage filter.
- `shape_hash`: the same query with other constants.
- `pattern_key`: the same pattern with slots, for merging memory items.
- `group_id`: the stable id of a gold's template, on which splits depend.

Variables are distinguished by their context, by color refinement (Weisfeiler and Leman 1968). Among
those that still look the same, one is singled out (McKay 1981, without his exponential search).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any, TypeAlias

import rdflib
from rdflib.namespace import RDF
from rdflib.paths import Path, SequencePath
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.plugins.sparql.sparql import Query
from rdflib.term import BNode, Identifier, URIRef, Variable

from reasoningbank.cache import kept
from reasoningbank.errors import QueryError
from reasoningbank.sparql.query import prepare
from reasoningbank.sparql.terms import RDF_TYPE, STANDARD_PREFIXES, expanded
from reasoningbank.sparql.tokens import FORMS, Token, prologue, tokenize
from reasoningbank.sparql.tree import Clause, Group, TriplePattern, read_query

#: Part of the cache's keys: raised when a hash or a group id changes.
HASHES_VERSION = 4
#: Sorted pairs of prefix and namespace that a query may use without declaring them.
Prefixes = tuple[tuple[str, str], ...]

# -- canonical words ----------------------------------------------------------------------


@dataclass(frozen=True)
class Name:
    """A name that may be changed: of a variable, a blank node, a slot."""

    text: str
    mark: str = "?"


@dataclass(frozen=True)
class Row:
    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Bag:
    parts: tuple[Node, ...]


#: A string is written as it is.
Node: TypeAlias = str | Name | Row | Bag

#: Number of node visits after which only the first of several alike names is tried, and after
#: which names still alike keep their written order. Most queries take some hundreds.
_MOST_TRIED = 50_000
_MOST_SEEN = 150_000


def canonical_words(root: Node) -> tuple[str, ...]:
    """Return the words of a tree, its names numbered by their first use."""
    return tuple(_Canonical(root).words())


class _Canonical:
    """A tree as a list of nodes, parts before the node they belong to."""

    def __init__(self, root: Node) -> None:
        self._nodes: list[Node] = []
        self._parts: list[tuple[int, ...]] = []
        self._seen = 0
        self._root = self._add(root)
        self._names = dict.fromkeys(node for node in self._nodes if isinstance(node, Name))

    def words(self) -> Iterator[str]:
        digests = self._digests(self._colors())
        numbers: dict[Name, str] = {}

        def written(at: int) -> Iterator[str]:
            node, parts = self._nodes[at], self._parts[at]
            if isinstance(node, str):
                yield node
            elif isinstance(node, Name):
                yield numbers.setdefault(node, f"{node.mark}{len(numbers)}")
            for part in sorted(parts, key=digests.__getitem__) if isinstance(node, Bag) else parts:
                yield from written(part)

        return written(self._root)

    def _add(self, node: Node) -> int:
        parts = () if isinstance(node, (str, Name)) else tuple(map(self._add, node.parts))
        self._nodes.append(node)
        self._parts.append(parts)
        return len(self._nodes) - 1

    def _digests(self, colors: Mapping[Name, bytes]) -> list[bytes]:
        digests: list[bytes] = []
        for node, parts in zip(self._nodes, self._parts, strict=True):
            inner = [digests[part] for part in parts]
            if isinstance(node, str):
                digests.append(_digest(b"word", node.encode("utf-8", "replace")))
            elif isinstance(node, Name):
                digests.append(colors[node])
            elif isinstance(node, Bag):
                digests.append(_digest(b"bag", *sorted(inner)))
            else:
                digests.append(_digest(b"row", *inner))
        return digests

    def _refined(self, colors: dict[Name, bytes]) -> tuple[bytes, dict[Name, bytes]]:
        """Return the tree's digest and the colors, once refinement separates no more names."""
        while True:
            self._seen += len(self._nodes)
            digests = self._digests(colors)
            contexts = {self._root: b""}
            uses: dict[Name, list[bytes]] = defaultdict(list)
            for at in reversed(range(len(self._nodes))):
                node, context = self._nodes[at], contexts[at]
                if isinstance(node, Name):
                    uses[node].append(context)
                for number, part in enumerate(self._parts[at]):
                    place = (
                        (digests[part],) if isinstance(node, Bag) else (b"%d" % number, digests[at])
                    )
                    contexts[part] = _digest(context, *place)
            finer = {name: _digest(colors[name], *sorted(uses[name])) for name in colors}
            distinct = len(set(finer.values()))
            if distinct in (len(set(colors.values())), len(finer)) or self._seen > _MOST_SEEN:
                return self._digests(finer)[self._root], finer
            colors = finer

    def _colors(self) -> dict[Name, bytes]:
        """Return a different color for each name."""
        _, colors = self._refined({name: name.mark.encode() for name in self._names})
        while self._seen <= _MOST_SEEN:
            sizes = Counter(colors.values())
            alike = min(((n, color) for color, n in sizes.items() if n > 1), default=None)
            if alike is None:
                break
            names = [name for name in self._names if colors[name] == alike[1]]
            # One try visits the tree at least twice.
            cost = 2 * len(names) * len(self._nodes)
            tried = names if self._seen + cost <= _MOST_TRIED else names[:1]
            ways = (self._refined(colors | {one: _digest(b"one", alike[1])}) for one in tried)
            colors = min(ways, key=lambda way: way[0])[1]
        sizes = Counter(colors.values())
        return {
            name: colors[name] + (str(at).encode() if sizes[colors[name]] > 1 else b"")
            for at, name in enumerate(self._names)
        }


def _digest(*parts: bytes) -> bytes:
    return hashlib.blake2b(b"\0".join(parts), digest_size=12).digest()


# -- queries that parse -------------------------------------------------------------------

#: Keys of the algebra that do not belong to the shape; the text of a SERVICE is its pattern too.
_NO_SHAPE = ("_vars", "PV", "service_string")
#: Nodes that say how much of the answer is wanted, not which answer.
_OUTER = ("Slice", "Distinct", "Reduced", "Project", "OrderBy")
#: With fewer triple patterns, a WHERE clause is too common to identify a query.
LEAST_PATTERNS = 2
#: Start of the IRIs that stand for slots.
SLOT = "slot:"
#: ``<<name>>`` in a skeleton is the place of a constant.
_SLOT = re.compile(r"<<\s*([\w .-]+?)\s*>>")


def triples_of(node: CompValue) -> list[tuple[Any, Any, Any]]:
    """Return the triple patterns of an algebra's BGP or a parse tree's triples block."""
    if node.name == "BGP":
        return list(node.triples)
    rows = (zip(row[::3], row[1::3], row[2::3], strict=False) for row in node.triples)
    return list(chain.from_iterable(rows))


def group_id(algebra: CompValue) -> str:
    """Return the id that queries of the same shape share."""
    numbers: dict[str, str] = {}

    def words(node: Node) -> Iterator[str]:
        if isinstance(node, str):
            yield node
        elif isinstance(node, Name):
            yield numbers.setdefault(node.text, f"?{len(numbers)}")
        else:
            inner = [word for part in node.parts for word in words(part)]
            # The columns: rdflib keeps those of SELECT * in the order of a set.
            columns = all(isinstance(part, Name) for part in node.parts)
            yield from sorted(inner) if isinstance(node, Bag) and columns else inner

    text = " ".join(w for node in _nodes(algebra, shape=True, split=False) for w in words(node))
    return "template-" + hashlib.sha256(text.encode()).hexdigest()[:12]


def query_hashes(query: str, prefixes: Prefixes = ()) -> frozenset[str]:
    """Return the hashes that identify a query; empty if it does not parse."""
    return _hashes(query, prefixes)[1]


def shape_hash(query: str, prefixes: Prefixes = ()) -> str:
    """Return the hash of a query without its constants and slots; empty if it does not parse."""
    return _hashes(query, prefixes)[0]


def content_key(kind: str, query: str, prefixes: Prefixes = ()) -> str:
    """Return the key under which the user's cache keeps what is computed from a query."""
    used = [(name, space) for name, space in prefixes if f"{name}:" in query]
    whole = json.dumps([HASHES_VERSION, rdflib.__version__, kind, query, used])
    return hashlib.sha256(whole.encode()).hexdigest()


@lru_cache(maxsize=8192)
def _hashes(query: str, prefixes: Prefixes) -> tuple[str, frozenset[str]]:
    """Return a query's shape hash and identifying hashes; rdflib takes 6 ms, so they are cached."""
    key = content_key("hashes", query, prefixes)
    found = kept("queries", key, lambda: " ".join(_computed(query, prefixes)))
    shape, *identifying = found.split(" ")
    return shape, frozenset(identifying)


def _computed(query: str, prefixes: Prefixes) -> Iterator[str]:
    parsed = _parsed(query, prefixes)
    if parsed is None:
        return
    yield _hash("shape", *canonical_words(Row(tuple(_nodes(parsed.algebra, shape=True)))))
    root = parsed.algebra
    body = root.get("p")
    order: list[Any] = []
    while isinstance(body, CompValue) and body.name in _OUTER:
        if body.name == "OrderBy":
            order.append(body.expr)
        body = body.p
    columns = Bag((*_nodes(list(root.get("PV") or ())), *_nodes(list(root.get("var") or ()))))
    whole = (*_nodes(body), *_nodes(order), *_nodes(root.get("template")), columns)
    yield _hash("query", root.name, *canonical_words(Row(whole)))
    where = tuple(_nodes(_without_grouping(body)))
    if sum(len(node.parts) for node in where if isinstance(node, Bag)) >= LEAST_PATTERNS:
        yield _hash("where", *canonical_words(Row(where)))


def slots_as_iris(pattern: str) -> str:
    """Return a pattern with ``<slot:name>`` in place of each slot, so that it is a query."""
    return _SLOT.sub(rf"<{SLOT}\1>", pattern)


def _parsed(query: str, prefixes: Prefixes) -> Query | None:
    declared: Mapping[str, str] = {**STANDARD_PREFIXES, **dict(prefixes)}
    try:
        return prepare(slots_as_iris(query), prefixes=declared).parsed
    except QueryError:
        return None


def _without_grouping(body: Any) -> Any:
    """Return the pattern below grouping, aggregates, HAVING and computed columns."""
    node = body
    while isinstance(node, CompValue) and node.name in ("Extend", "Filter", "AggregateJoin"):
        if node.name == "AggregateJoin":
            return _without_grouping(node.p.p)
        node = node.p
    while isinstance(body, CompValue) and body.name == "Extend":
        body = body.p
    return body


def _hash(*words: str) -> str:
    return hashlib.sha256("\x1f".join(words).encode()).hexdigest()[:16]


def _nodes(part: Any, *, shape: bool = False, split: bool = True) -> Iterator[Node]:
    if isinstance(part, CompValue):
        yield f"({part.name}"
        for key in sorted(k for k in part if k not in _NO_SHAPE):
            yield key
            if key == "triples":
                triples = _steps(part) if split else triples_of(part)
                yield Bag(tuple(_triple(*triple, shape=shape) for triple in triples))
            else:
                yield from _nodes(part[key], shape=shape, split=split)
        if shape:
            # rdflib's `get` returns the name of a missing key, and group ids depend on that.
            yield Bag(tuple(_term(column, shape=True) for column in part.get("PV") or ()))
        yield ")"
    elif isinstance(part, (list, tuple)):
        yield "["
        # The number of rows of VALUES is a constant like the values themselves.
        rows = shape and bool(part) and type(part[0]) is dict
        for item in part[:1] if rows else part:
            yield from _nodes(item, shape=shape, split=split)
        yield "]"
    elif isinstance(part, dict):
        for key in part:
            yield _term(key)
            if not shape:
                yield _term(part[key])
    else:
        yield _term(part, shape=shape)


def _triple(subject: Any, predicate: Any, obj: Any, *, shape: bool) -> Row:
    is_class = shape and predicate == RDF.type and isinstance(obj, URIRef)
    last = str(obj) if is_class else _term(obj, shape=shape)
    return Row((_term(subject, shape=shape), _term(predicate), last))


def _steps(block: CompValue) -> list[tuple[Any, Any, Any]]:
    """Return the triple patterns of a block, one for each step of a sequence path."""
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
    if shape and (isinstance(term, Identifier) or type(term) is int):
        return "_"
    return str(term.n3()) if isinstance(term, (Path, Identifier)) else str(term)


# -- patterns with slots ------------------------------------------------------------------

#: A slot as the tokenizer reads it: a variable that nobody writes.
_SLOT_VARIABLE = "?slot\u00b7"
_SLOT_WITHIN = re.compile(rf"({re.escape(_SLOT_VARIABLE)}\w+)")
#: A prefixed name or an IRI in running text.
_IN_TEXT = re.compile(r"<([a-z][\w+.-]*:[^\s<>]+)>|(?<![\w:/-])([A-Za-z][\w-]*:[A-Za-z_][\w-]*)")
#: Clauses that are joined with what precedes them in their group, not with the whole group.
_IN_PLACE = ("optional", "minus")


def pattern_key(pattern: str, prefixes: Mapping[str, str] | None = None) -> str:
    """Return a key that two patterns share if they differ only in wording and order of triples."""
    return _pattern(pattern, tuple(sorted((prefixes or {}).items())))[0]


def pattern_names(pattern: str, prefixes: Mapping[str, str] | None = None) -> frozenset[str]:
    """Return the names in a pattern: IRIs if their prefix is known, otherwise as written."""
    return _pattern(pattern, tuple(sorted((prefixes or {}).items())))[1]


def names_in(text: str, prefixes: Mapping[str, str] | None = None) -> frozenset[str]:
    """Return the prefixed names and IRIs in running text, as IRIs if their prefix is known."""
    known = {**STANDARD_PREFIXES, **(prefixes or {})}
    found = (match[1] or expanded(match[2], known) for match in _IN_TEXT.finditer(text))
    return frozenset(found)


# Each pattern is read again at every step of a task permutation.
@lru_cache(maxsize=32_768)
def _pattern(pattern: str, declared: Prefixes) -> tuple[str, frozenset[str]]:
    text = _SLOT.sub(lambda slot: _SLOT_VARIABLE + re.sub(r"\W", "_", slot[1]), pattern)
    tokens = tokenize(text)
    own, start = prologue(tokens)
    if start >= len(tokens) or not tokens[start].is_word(*FORMS):
        numbers: dict[str, str] = {}
        words = _SLOT.sub(lambda s: numbers.setdefault(s[1], f"<<{len(numbers)}>>"), pattern)
        return " ".join(words.split()), names_in(pattern, dict(declared))
    reader = _PatternReader(text, tokens[start:], {**STANDARD_PREFIXES, **dict(declared), **own})
    return " ".join(canonical_words(Row(tuple(reader.nodes())))), reader.names()


class _PatternReader:
    def __init__(self, text: str, tokens: Sequence[Token], known: Mapping[str, str]) -> None:
        self._text = text
        self._tokens = tokens
        self._known = known

    def names(self) -> frozenset[str]:
        named = (token for token in self._tokens if token.kind in ("iri", "name"))
        return frozenset(expanded(token.text, self._known) for token in named)

    def nodes(self) -> Iterator[Node]:
        try:
            where = read_query(self._text).where
        except QueryError:
            where = None
        if where is None:
            for token, after in zip(self._tokens, (*self._tokens[1:], None), strict=True):
                if token.text != "." or after is None or after.text != "}":
                    yield from self._node(token)
            return
        yield from self._between(0, where.start)
        yield from self._group(where)
        yield from self._between(where.end, len(self._text))

    def _between(self, start: int, end: int) -> Iterator[Node]:
        for token in self._tokens:
            if start <= token.start < end and token.text not in (".", "{", "}"):
                yield from self._node(token)

    def _group(self, group: Group) -> Iterator[Node]:
        triples: list[Node] = []
        others: list[Node] = []
        yield "{"
        for clause in group.clauses:
            if clause.kind in _IN_PLACE:
                yield from (Bag(tuple(triples)), *others, *self._clause(clause))
                triples, others = [], []
            elif clause.kind == "triples":
                triples += map(self._triple, clause.patterns)
            else:
                others += self._clause(clause)
        yield from (Bag(tuple(triples)), *others, "}")

    def _clause(self, clause: Clause) -> Iterator[Node]:
        yield clause.kind
        at = clause.start
        for inner in clause.groups:
            yield from self._between(at, inner.start)
            yield from self._group(inner)
            at = inner.end
        yield from self._between(at, clause.end)

    def _triple(self, pattern: TriplePattern) -> Node:
        tokens = (token for part in pattern for token in tokenize(part))
        return Row((*(node for token in tokens for node in self._node(token)), "."))

    def _node(self, token: Token) -> Iterator[Node]:
        if token.kind == "variable":
            # $name and ?name are one variable.
            slot = token.text.startswith(_SLOT_VARIABLE)
            yield Name(token.text[1:], "<<" if slot else "?")
        elif token.kind == "blank":
            yield Name(token.text)
        elif token.kind in ("iri", "name", "string"):
            name = f"<{expanded(token.text, self._known)}>"
            text = token.text if token.kind == "string" else name
            for part in _SLOT_WITHIN.split(text):
                yield Name(part[1:], "<<") if part.startswith(_SLOT_VARIABLE) else part
        elif token.kind != "word":
            yield token.text
        elif token.text == "a":
            yield f"<{RDF_TYPE}>"
        elif not token.is_word("WHERE"):
            yield token.text.upper()
