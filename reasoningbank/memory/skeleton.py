"""Skeletons: what remains of a query for a similar question, with slots ``<<name>>`` for the rest.

Classes, properties, functions, graphs and services stay; resources, texts, compared numbers and
limits become slots. Constants are found by the grammar, on tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pyoxigraph import NamedNode

from reasoningbank.errors import QueryError
from reasoningbank.schema import is_label, local_name
from reasoningbank.sparql import STANDARD_PREFIXES, compact
from reasoningbank.sparql.query import PreparedQuery, prepare
from reasoningbank.sparql.terms import RDF_TYPE, absolute
from reasoningbank.sparql.tokens import Edit, Token, apply_edits, tokenize, without_comments
from reasoningbank.sparql.tree import outline, read_query

__all__ = [
    "Skeleton",
    "Slot",
    "SlotKind",
    "dummies",
    "filled",
    "parsed_skeleton",
    "shortened",
    "skeleton_of",
    "slot_name",
    "slot_names",
]


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
    if token.kind not in ("iri", "name"):
        return token.text
    name = absolute(token.text, declared)
    if name is None:
        return token.text
    if token.kind == "name" and absolute(token.text, namespaces) == name:
        return token.text
    short = str(compact(NamedNode(name), namespaces))
    # A name with a prefix of its own is kept with its declaration.
    return token.text if token.kind == "name" and short.startswith("<") else short


SlotKind = Literal["resource", "text", "number", "count"]

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
        shape = outline(query)
        self._tokens = shape.body
        self._declared = {**namespaces, **shape.declared}
        self._terms = terms
        self._patterns = [p for c in read_query(query).statements() for p in c.patterns]
        self._verbs = {
            token.text for pattern in self._patterns for token in tokenize(pattern.predicate)
        }

    def find(self) -> Iterator[QueryConstant]:
        opened: list[int] = []
        at = 0
        while at < len(self._tokens):
            token = self._tokens[at]
            if token.is_word("VALUES"):
                found, at = self._values(at + 1)
                yield from found
                continue
            if token.is_word("LIMIT", "OFFSET") and self._kind(at + 1) == "number":
                number = self._tokens[at + 1]
                name = token.text.lower()
                yield QueryConstant("count", number.text, number.start, number.end, name)
                at += 2
                continue
            if token.is_word("SERVICE", "GRAPH", "FROM"):
                at = self._behind_target(at)
                continue
            if token.text == "(":
                opened.append(at)
            elif token.text == ")" and opened:
                opened.pop()
            last = self._last_of_term(at)
            kind = self._slot_kind(at, last, opened)
            if kind is not None:
                yield self._constant(kind, at, last, opened)
            at = last + 1

    # -- position -----------------------------------------------------------------------

    def _text(self, at: int) -> str:
        return self._tokens[at].text if 0 <= at < len(self._tokens) else ""

    def _kind(self, at: int) -> str:
        return self._tokens[at].kind if 0 <= at < len(self._tokens) else ""

    def _is(self, at: int, *words: str) -> bool:
        return 0 <= at < len(self._tokens) and self._tokens[at].is_word(*words)

    def _last_of_term(self, at: int) -> int:
        """Return the position of a literal's tag or datatype, else the same position."""
        if self._kind(at) == "string":
            if self._text(at + 1) == "^^":
                return at + 2
            if self._kind(at + 1) == "tag":
                return at + 1
        return at

    def _behind_target(self, at: int) -> int:
        at += 1
        while self._is(at, "SILENT", "NAMED"):
            at += 1
        return at if self._text(at) == "{" else at + 1

    def _written(self, first: int, last: int) -> str:
        return self._query[self._tokens[first].start : self._tokens[last].end]

    # -- constants -----------------------------------------------------------------------

    def _slot_kind(self, at: int, last: int, opened: Sequence[int]) -> SlotKind | None:
        token = self._tokens[at]
        if token.kind in ("iri", "name"):
            return "resource" if self._is_resource(token, at) else None
        if token.kind not in ("string", "number"):
            return None
        kind: SlotKind = "text" if token.kind == "string" else "number"
        if not opened:
            return kind
        return kind if self._is_compared(at, last, opened) else None

    def _is_resource(self, token: Token, at: int) -> bool:
        if token.text in self._verbs or self._text(at + 1) == "(":
            return False
        name = absolute(token.text, self._declared)
        if name is None or name in self._terms or name.startswith(_VOCABULARIES):
            return False
        return not any(
            pattern.object == token.text and absolute(pattern.predicate, self._declared) == RDF_TYPE
            for pattern in self._patterns
        )

    def _is_compared(self, at: int, last: int, opened: Sequence[int]) -> bool:
        before, after = self._text(at - 1), self._text(last + 1)
        if before in _ARITHMETIC and self._text(at - 2) in (*_COMPARISONS, "(", ","):
            before = self._text(at - 2)  # a sign
        if after in _ARITHMETIC or before in _ARITHMETIC:
            return False
        if before in _COMPARISONS:
            return not self._asks_form(at - 2)
        if after in _COMPARISONS:
            return True
        opener = opened[-1]
        if self._is(opener - 1, "IN"):
            return True
        if self._is(opener - 1, *_SEARCHES):
            return self._argument(opener, at) == 1
        return before == "(" and self._is(last + 1, "AS")

    def _asks_form(self, at: int) -> bool:
        """Return whether the call that ends here asks for a language or a datatype."""
        if self._text(at) != ")":
            return False
        depth = 0
        for position in range(at, -1, -1):
            depth += (self._text(position) == ")") - (self._text(position) == "(")
            if depth == 0:
                return self._is(position - 1, *_OF_FORM)
        return False

    def _argument(self, opener: int, at: int) -> int:
        """Return the number of a function's argument, from 0."""
        depth = number = 0
        for position in range(opener + 1, at):
            depth += (self._text(position) == "(") - (self._text(position) == ")")
            number += depth == 0 and self._text(position) == ","
        return number

    # -- names ---------------------------------------------------------------------------

    def _constant(self, kind: SlotKind, at: int, last: int, opened: Sequence[int]) -> QueryConstant:
        first = at
        if kind == "number" and opened and self._text(at - 1) in ("-", "+"):
            first = at - 1
        value = self._written(first, last)
        start, end = self._tokens[first].start, self._tokens[last].end
        name = self._name(kind, value, at, opened)
        return QueryConstant(kind, value, start, end, name)

    def _name(self, kind: SlotKind, value: str, at: int, opened: Sequence[int]) -> str:
        token = self._tokens[at]
        if kind == "resource" and token.kind == "name":
            prefix = token.text.partition(":")[0]
            space = self._declared.get(prefix, "")
            if prefix and not any(term.startswith(space) for term in self._terms):
                return prefix
        if opened:
            return self._name_in_expression(kind, at, opened[-1])
        for pattern in self._patterns:
            if pattern.object == value:
                return self._name_by_property(pattern.subject, pattern.predicate)
        return kind

    def _name_by_property(self, subject: str, predicate: str) -> str:
        steps = [t.text for t in tokenize(predicate) if t.kind in ("iri", "name")]
        name = absolute(steps[-1], self._declared) if steps else None
        if name is None:
            return "value"
        if not is_label(name):
            return local_name(name)
        above = absolute(steps[-2], self._declared) if len(steps) > 1 else None
        if above is not None:
            return f"{local_name(above)}_name"
        return f"{subject[1:]}_name" if subject[:1] in "?$" else "name"

    def _name_in_expression(self, kind: SlotKind, at: int, opener: int) -> str:
        if self._is(opener - 1, *_SEARCHES):
            return "text"
        for position in range(at, min(at + 3, len(self._tokens))):
            if self._is(position, "AS") and self._kind(position + 1) == "variable":
                return self._text(position + 1)[1:]
        signed = self._text(at - 1) in ("-", "+")
        for position in (at - 2 - signed, at + 2):
            if self._kind(position) == "variable":
                return self._text(position)[1:]
        return kind

    # -- VALUES ---------------------------------------------------------------------------

    def _values(self, at: int) -> tuple[list[QueryConstant], int]:
        names = []
        while self._text(at) not in ("{", ""):
            names += [self._text(at)[1:]] if self._kind(at) == "variable" else []
            at += 1
        end = at + 1
        while self._text(end) not in ("}", ""):
            end += 1
        if len(names) == 1 and self._text(at - 1) != ")":
            return self._column(names[0], at + 1, end), end + 1
        return self._rows(names, at + 1, end), end + 1

    def _terms_between(self, at: int, end: int) -> list[tuple[int, int]]:
        found = []
        while at < end:
            last = self._last_of_term(at)
            signed = self._text(at) in ("-", "+") and self._kind(at + 1) == "number"
            last += signed
            if self._kind(at) in ("iri", "name", "string", "number") or signed:
                found.append((at, last))
            at = last + 1
        return found

    def _value_kind(self, at: int) -> SlotKind:
        kinds: dict[str, SlotKind] = {"iri": "resource", "name": "resource", "string": "text"}
        return kinds.get(self._kind(at), "number")

    def _column(self, name: str, at: int, end: int) -> list[QueryConstant]:
        spans = self._terms_between(at, end)
        if not spans or self._is_vocabulary(spans):
            return []
        values = [self._written(*span) for span in spans]
        start, stop = self._tokens[spans[0][0]].start, self._tokens[spans[-1][1]].end
        kind = self._value_kind(spans[0][0])
        return [QueryConstant(kind, values[0], start, stop, name, tuple(values[1:]))]

    def _rows(self, names: Sequence[str], at: int, end: int) -> list[QueryConstant]:
        """Return the constants of rows with several columns."""
        found = []
        column = 0
        ends = dict(self._terms_between(at, end))
        while at < end:
            if self._text(at) == "(":
                column = 0
            elif at in ends or self._is(at, "UNDEF", "TRUE", "FALSE"):
                last = ends.get(at, at)
                if at in ends and column < len(names) and not self._is_vocabulary([(at, last)]):
                    start, stop = self._tokens[at].start, self._tokens[last].end
                    value = self._written(at, last)
                    kind = self._value_kind(at)
                    found.append(QueryConstant(kind, value, start, stop, names[column]))
                column += 1
                at = last
            at += 1
        return found

    def _is_vocabulary(self, spans: Sequence[tuple[int, int]]) -> bool:
        """Return whether all terms are classes or properties."""
        return all(
            self._kind(first) in ("iri", "name") and not self._is_resource(self._tokens[first], -9)
            for first, _ in spans
        )


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
    def query(self) -> str:
        """The query that the skeleton was made of."""
        return filled(self.text, {slot.name: slot.value for slot in self.slots})


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
    found = list(_Finder(text, namespaces, frozenset(terms)).find())
    slots = _slots(found, names or {})
    edits = [Edit(one.start, one.end, f"<<{slots[_thing(one)].name}>>") for one in found]
    return Skeleton(apply_edits(text, edits), tuple(slots.values()))


def _thing(one: QueryConstant) -> tuple[str, ...]:
    """Return what identifies a constant among those that are filled in separately."""
    name = one.name if one.kind in ("number", "count") else ""
    where = str(one.start) if name == one.kind else ""
    return (one.kind, name, where, one.value, *one.more)


def _slots(found: Iterable[QueryConstant], names: Mapping[str, str]) -> dict[tuple[str, ...], Slot]:
    slots: dict[tuple[str, ...], Slot] = {}
    taken: set[str] = set()
    for one in found:
        if _thing(one) in slots:
            continue
        base = slot_name(names.get(one.value) or one.name)
        name, number = base, 1
        while name in taken:
            number += 1
            name = f"{base}{number}"
        taken.add(name)
        slots[_thing(one)] = Slot(name, one.kind, one.value, one.more)
    return slots


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


def dummies(skeleton: Skeleton) -> str:
    """Return a skeleton with a dummy value of the right kind in each slot."""
    return filled(skeleton.text, {slot.name: _DUMMIES[slot.kind] for slot in skeleton.slots})


def parsed_skeleton(skeleton: Skeleton, namespaces: Mapping[str, str]) -> PreparedQuery:
    """Return a skeleton parsed with dummies; raise `QueryError` if it does not parse."""
    query = dummies(skeleton)
    left = slot_names(query)
    if left:
        raise QueryError(f"the slot <<{left[0]}>> is unknown", code="unknown-slot")
    return prepare(query, prefixes=namespaces)
