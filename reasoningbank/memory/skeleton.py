"""Skeletons: what remains of a query for a similar question, with slots ``<<name>>`` for the rest.

Classes, properties, functions, graphs and services stay; resources, texts, compared numbers and
limits become slots. Constants are found by the grammar, on tokens.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from pyoxigraph import NamedNode

from reasoningbank.errors import QueryError
from reasoningbank.schema import is_label, local_name
from reasoningbank.sparql import STANDARD_PREFIXES, compact
from reasoningbank.sparql.terms import RDF_TYPE, absolute
from reasoningbank.sparql.tokens import Edit, Token, apply_edits, tokenize, without_comments
from reasoningbank.sparql.tree import outline, read_query


def shortened(query: str, namespaces: Mapping[str, str]) -> str:
    """Return a query without comments, and without the prefixes that need no declaration."""
    text = without_comments(query)
    shape = outline(text)
    start = shape.body[0].start
    if any(token.is_word("BASE") for token in tokenize(text[:start])):
        raise QueryError("the query has a BASE", hint="write names with prefixes", code="base")
    declared = {**namespaces, **shape.declared}
    edits, foreign = [], {}
    for token in shape.body:
        written = _written(token, declared, namespaces)
        if written != token.text:
            edits.append(Edit(token.start, token.end, written))
        elif token.kind == "name":
            prefix = token.text.partition(":")[0]
            if namespaces.get(prefix) != declared.get(prefix):
                foreign[prefix] = declared[prefix]
    head = "".join(f"PREFIX {prefix}: <{space}>\n" for prefix, space in foreign.items())
    return head + apply_edits(text, [Edit(0, start, ""), *edits]).strip()


def _written(token: Token, declared: Mapping[str, str], namespaces: Mapping[str, str]) -> str:
    name = absolute(token.text, declared) if token.kind in ("iri", "name") else None
    if name is None or (token.kind == "name" and absolute(token.text, namespaces) == name):
        return token.text
    short = str(compact(NamedNode(name), namespaces))
    # A name with a prefix of its own is kept with its declaration.
    return token.text if token.kind == "name" and short.startswith("<") else short


SlotKind = Literal["resource", "text", "number", "count"]

#: Kind of a token → kind of the slot that replaces it.
_KINDS: Mapping[str, SlotKind] = {
    "iri": "resource",
    "name": "resource",
    "string": "text",
    "number": "number",
}
_COMPARISONS = frozenset({"=", "!=", "<", ">", "<=", ">="})
_ARITHMETIC = frozenset({"+", "-", "*", "/"})
#: Functions whose second argument is the text to find.
_SEARCHES = ("CONTAINS", "STRSTARTS", "STRENDS", "REGEX")
#: Functions about the form of a value: what they are compared with belongs to the shape.
_OF_FORM = ("LANG", "LANGMATCHES", "DATATYPE")
#: Namespaces of vocabulary only.
_VOCABULARIES = tuple(STANDARD_PREFIXES[prefix] for prefix in ("rdf", "rdfs", "owl", "xsd"))


@dataclass(frozen=True)
class QueryConstant:
    """A constant; `more` are further values of the same column of VALUES, between the offsets."""

    kind: SlotKind
    value: str
    start: int
    end: int
    name: str
    more: tuple[str, ...] = ()


class _Finder:
    """Finds the constants of a query that another question would change, in written order."""

    def __init__(self, query: str, namespaces: Mapping[str, str], terms: frozenset[str]) -> None:
        self._query = query
        tree = read_query(query)
        self._tokens = tree.body
        self._declared = {**namespaces, **tree.declared}
        self._terms = terms
        patterns = tree.triple_patterns()
        #: The first pattern with each object.
        self._by_object = {pattern.object: pattern for pattern in reversed(patterns)}
        self._schema_words = {t.text for p in patterns for t in tokenize(p.predicate)} | {
            p.object for p in patterns if absolute(p.predicate, self._declared) == RDF_TYPE
        }
        #: By position: the parenthesis around a token, its argument there, and the one it closes.
        self._around: dict[int, int] = {}
        self._argument: dict[int, int] = {}
        self._closes: dict[int, int] = {}
        opened: list[tuple[int, int]] = []
        for at, token in enumerate(self._tokens):
            if token.text == ")" and opened:
                self._closes[at] = opened.pop()[0]
            if opened:
                opener, commas = opened[-1]
                self._around[at], self._argument[at] = opener, commas
                opened[-1] = opener, commas + (token.text == ",")
            if token.text == "(":
                opened.append((at, 0))

    def find(self) -> Iterator[QueryConstant]:
        at = 0
        while at < len(self._tokens):
            token = self._tokens[at]
            if token.is_word("VALUES"):
                found, at = self._values(at + 1)
                yield from found
            elif token.is_word("LIMIT", "OFFSET") and self._kind(at + 1) == "number":
                number = self._tokens[at + 1]
                name = token.text.lower()
                yield QueryConstant("count", number.text, number.start, number.end, name)
                at += 2
            elif token.is_word("SERVICE", "GRAPH", "FROM"):
                at += 1
                while self._is(at, "SILENT", "NAMED"):
                    at += 1
                at += self._text(at) != "{"
            else:
                last = self._last_of_term(at)
                kind = _KINDS.get(self._kind(at))
                if kind == "resource":
                    is_slot = self._is_resource(at)
                else:
                    is_slot = at not in self._around or self._is_compared(at, last)
                if kind is not None and is_slot:
                    signed = at in self._around and self._text(at - 1) in ("-", "+")
                    first = at - (kind == "number" and signed)
                    yield self._constant(kind, first, last, self._name(kind, at, first, last))
                at = last + 1

    def _text(self, at: int) -> str:
        return self._tokens[at].text if 0 <= at < len(self._tokens) else ""

    def _kind(self, at: int) -> str:
        return self._tokens[at].kind if 0 <= at < len(self._tokens) else ""

    def _is(self, at: int, *words: str) -> bool:
        return 0 <= at < len(self._tokens) and self._tokens[at].is_word(*words)

    def _last_of_term(self, at: int) -> int:
        """Return the position of a literal's tag or datatype, else the same position."""
        if self._kind(at) != "string":
            return at
        return at + 2 * (self._text(at + 1) == "^^") + (self._kind(at + 1) == "tag")

    def _is_resource(self, at: int) -> bool:
        text = self._text(at)
        name = absolute(text, self._declared)
        if name is None or text in self._schema_words or self._text(at + 1) == "(":
            return False
        return name not in self._terms and not name.startswith(_VOCABULARIES)

    def _is_compared(self, at: int, last: int) -> bool:
        before, after = self._text(at - 1), self._text(last + 1)
        if before in _ARITHMETIC and self._text(at - 2) in (*_COMPARISONS, "(", ","):
            before = self._text(at - 2)  # a sign
        if after in _ARITHMETIC or before in _ARITHMETIC:
            return False
        if before in _COMPARISONS:
            return not self._is(self._closes.get(at - 2, 0) - 1, *_OF_FORM)
        function = self._around[at] - 1
        if self._is(function, *_SEARCHES):
            return self._argument[at] == 1
        named = before == "(" and self._is(last + 1, "AS")
        return named or after in _COMPARISONS or self._is(function, "IN")

    def _constant(self, kind: SlotKind, first: int, last: int, name: str) -> QueryConstant:
        start, end = self._tokens[first].start, self._tokens[last].end
        return QueryConstant(kind, self._query[start:end], start, end, name)

    def _name(self, kind: SlotKind, at: int, first: int, last: int) -> str:
        token = self._tokens[at]
        if kind == "resource" and token.kind == "name":
            prefix = token.text.partition(":")[0]
            space = self._declared.get(prefix, "")
            if prefix and not any(term.startswith(space) for term in self._terms):
                return prefix
        if at in self._around:
            if self._is(self._around[at] - 1, *_SEARCHES):
                return "text"
            for position in range(at, at + 3):
                if self._is(position, "AS") and self._kind(position + 1) == "variable":
                    return self._text(position + 1)[1:]
            signed = self._text(at - 1) in ("-", "+")
            for position in (at - 2 - signed, at + 2):
                if self._kind(position) == "variable":
                    return self._text(position)[1:]
            return kind
        pattern = self._by_object.get(
            self._query[self._tokens[first].start : self._tokens[last].end]
        )
        if pattern is None:
            return kind
        steps = [t.text for t in tokenize(pattern.predicate) if t.kind in ("iri", "name")]
        names = [absolute(step, self._declared) for step in steps[-2:]] or [None]
        if names[-1] is None:
            return "value"
        if not is_label(names[-1]):
            return local_name(names[-1])
        if len(names) > 1 and names[0] is not None:
            return f"{local_name(names[0])}_name"
        subject = pattern.subject
        return f"{subject[1:]}_name" if subject[:1] in "?$" else "name"

    def _values(self, at: int) -> tuple[list[QueryConstant], int]:
        """Return the constants of VALUES, and the position after it."""
        names = []
        while self._text(at) not in ("{", ""):
            names += [self._text(at)[1:]] if self._kind(at) == "variable" else []
            at += 1
        single = len(names) == 1 and self._text(at - 1) != ")"
        column, found = 0, []
        at += 1
        while self._text(at) not in ("}", ""):
            signed = self._text(at) in ("-", "+") and self._kind(at + 1) == "number"
            last = self._last_of_term(at) + signed
            kind = "number" if signed else _KINDS.get(self._kind(at))
            if kind is not None:
                found.append((column, kind, at, last))
            if self._text(at) == "(":
                column = 0
            elif kind is not None or self._is(at, "UNDEF", "TRUE", "FALSE"):
                column += 1
            at = last + 1
        own = [
            self._constant(kind, first, last, "" if single else names[column])
            for column, kind, first, last in found
            if (single or column < len(names)) and (kind != "resource" or self._is_resource(first))
        ]
        if not single or not own:
            return own, at + 1
        # A single column is one constant, with its vocabulary if there is any.
        every = [self._constant(kind, first, last, names[0]) for _, kind, first, last in found]
        more = tuple(one.value for one in every[1:])
        return [replace(every[0], end=every[-1].end, more=more)], at + 1


_SLOT = re.compile(r"<<([a-z][a-z0-9_]*)>>")
#: Fills the slots to check that a skeleton parses.
_DUMMIES: Mapping[SlotKind, str] = {
    "resource": "<urn:slot>",
    "text": '"slot"',
    "number": "1",
    "count": "1",
}


@dataclass(frozen=True)
class Slot:
    """A slot: its name, what may fill it, and the value it replaced, as SPARQL."""

    name: str
    kind: SlotKind
    value: str
    more: tuple[str, ...] = ()


@dataclass(frozen=True)
class Skeleton:
    """A query with slots for its constants, in order; the endpoint's prefixes are not declared."""

    text: str
    slots: tuple[Slot, ...] = ()

    @property
    def dummy(self) -> str:
        """The skeleton with a value of the right kind in each slot."""
        return filled(self.text, {slot.name: _DUMMIES[slot.kind] for slot in self.slots})


def skeleton_of(
    query: str,
    namespaces: Mapping[str, str],
    *,
    terms: Iterable[str] = (),
    names: Mapping[str, str] | None = None,
) -> Skeleton:
    """Return the skeleton of a query; raise `QueryError` if its structure cannot be read."""
    text = shortened(query, namespaces)
    if _SLOT.search(text):
        raise QueryError("the query contains text that looks like a slot", code="slot-in-query")
    slots: dict[tuple[str, ...], Slot] = {}
    taken: set[str] = set()
    edits = []
    for one in _Finder(text, namespaces, frozenset(terms)).find():
        # What is filled in separately differs in this.
        said = one.name if one.kind in ("number", "count") else ""
        thing = (one.kind, said, str(one.start) if said == one.kind else "", one.value, *one.more)
        if thing not in slots:
            base = slot_name((names or {}).get(one.value) or one.name)
            numbered = (f"{base}{number}" for number in itertools.count(2))
            name = next(n for n in itertools.chain([base], numbered) if n not in taken)
            taken.add(name)
            slots[thing] = Slot(name, one.kind, one.value, one.more)
        edits.append(Edit(one.start, one.end, f"<<{slots[thing].name}>>"))
    return Skeleton(apply_edits(text, edits), tuple(slots.values()))


def slot_name(text: str) -> str:
    """Return a name in the form of slots."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|\W+|_+", "_", text).strip("_").lower()
    return parted if parted[:1].isalpha() and parted.isascii() else f"value_{parted}".strip("_")


def slot_names(text: str) -> tuple[str, ...]:
    """Return the names of the slots in a text, each once."""
    return tuple(dict.fromkeys(_SLOT.findall(text)))


def filled(text: str, values: Mapping[str, str]) -> str:
    """Return a skeleton with values in its slots; a slot without a value stays."""
    return _SLOT.sub(lambda slot: values.get(slot[1], slot[0]), text)
