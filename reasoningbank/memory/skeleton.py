"""Skeletons: what remains of a query for a similar question, with slots ``<<name>>`` for the rest.

Classes, properties, functions, graphs and services stay; resources, texts, compared numbers and
limits become slots. Constants are found by the grammar, on tokens.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from reasoningbank.errors import QueryError
from reasoningbank.schema import is_label, local_name
from reasoningbank.sparql import STANDARD_PREFIXES
from reasoningbank.sparql.terms import RDF_TYPE, absolute, written
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
    short = written(name, namespaces)
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
class Slot:
    """A slot: its name, what may fill it, and the value it replaced, as SPARQL."""

    name: str
    kind: SlotKind
    value: str
    more: tuple[str, ...] = ()  #: Further values of the same column of VALUES


class _Found(NamedTuple):
    """A constant, as the slot that replaces it, between two offsets."""

    slot: Slot
    start: int
    end: int


class _Finder:
    """Finds the constants of a query that another question would change, in written order."""

    def __init__(self, query: str, namespaces: Mapping[str, str], terms: frozenset[str]) -> None:
        self._query = query
        tree = read_query(query)
        nothing = Token("other", "", 0, 0)
        #: Padded: three places before and after each token there is a token.
        self._tokens = (*tree.body, nothing, nothing, nothing)
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

    def find(self) -> Iterator[_Found]:
        tokens, at = self._tokens, 0
        while at < len(tokens) - 3:
            token = tokens[at]
            if token.is_word("VALUES"):
                found, at = self._values(at + 1)
                yield from found
            elif token.is_word("LIMIT", "OFFSET") and tokens[at + 1].kind == "number":
                yield self._constant("count", at + 1, at + 1, token.text.lower())
                at += 2
            elif token.is_word("SERVICE", "GRAPH", "FROM"):
                at += 1
                while tokens[at].is_word("SILENT", "NAMED"):
                    at += 1
                at += tokens[at].text != "{"
            else:
                last = self._last_of_term(at)
                kind = _KINDS.get(token.kind)
                inside = at in self._around
                if kind == "resource":
                    is_slot = self._is_resource(at)
                else:
                    is_slot = not inside or self._is_compared(at, last)
                if kind is not None and is_slot:
                    signed = kind == "number" and inside and tokens[at - 1].text in ("-", "+")
                    name = self._name(kind, at, at - signed, last)
                    yield self._constant(kind, at - signed, last, name)
                at = last + 1

    def _last_of_term(self, at: int) -> int:
        """Return the position of a literal's tag or datatype, else the same position."""
        after = self._tokens[at + 1]
        if self._tokens[at].kind != "string":
            return at
        return at + 2 * (after.text == "^^") + (after.kind == "tag")

    def _is_resource(self, at: int) -> bool:
        text = self._tokens[at].text
        name = absolute(text, self._declared)
        if name is None or text in self._schema_words or self._tokens[at + 1].text == "(":
            return False
        return name not in self._terms and not name.startswith(_VOCABULARIES)

    def _is_compared(self, at: int, last: int) -> bool:
        tokens = self._tokens
        before, after = tokens[at - 1].text, tokens[last + 1].text
        if before in _ARITHMETIC and tokens[at - 2].text in (*_COMPARISONS, "(", ","):
            before = tokens[at - 2].text  # a sign
        if after in _ARITHMETIC or before in _ARITHMETIC:
            return False
        if before in _COMPARISONS:
            return not tokens[self._closes.get(at - 2, 0) - 1].is_word(*_OF_FORM)
        function = tokens[self._around[at] - 1]
        if function.is_word(*_SEARCHES):
            return self._argument[at] == 1
        named = before == "(" and tokens[last + 1].is_word("AS")
        return named or after in _COMPARISONS or function.is_word("IN")

    def _constant(self, kind: SlotKind, first: int, last: int, name: str) -> _Found:
        start, end = self._tokens[first].start, self._tokens[last].end
        return _Found(Slot(name, kind, self._query[start:end]), start, end)

    def _name(self, kind: SlotKind, at: int, first: int, last: int) -> str:
        tokens = self._tokens
        if kind == "resource" and tokens[at].kind == "name":
            prefix = tokens[at].text.partition(":")[0]
            space = self._declared.get(prefix, "")
            if prefix and not any(term.startswith(space) for term in self._terms):
                return prefix
        if at in self._around:
            if tokens[self._around[at] - 1].is_word(*_SEARCHES):
                return "text"
            signed = tokens[at - 1].text in ("-", "+")
            named = [tokens[n + 1] for n in range(at, at + 3) if tokens[n].is_word("AS")]
            beside = [*named, tokens[at - 2 - signed], tokens[at + 2]]
            return next((one.text[1:] for one in beside if one.kind == "variable"), kind)
        pattern = self._by_object.get(self._query[tokens[first].start : tokens[last].end])
        if pattern is None:
            return kind
        steps = [t.text for t in tokenize(pattern.predicate) if t.kind in ("iri", "name")]
        *before, name = [None, *(absolute(step, self._declared) for step in steps[-2:])]
        if name is None:
            return "value"
        if not is_label(name):
            return local_name(name)
        if before[-1] is not None:
            return f"{local_name(before[-1])}_name"
        subject = pattern.subject
        return f"{subject[1:]}_name" if subject[:1] in "?$" else "name"

    def _values(self, at: int) -> tuple[list[_Found], int]:
        """Return the constants of VALUES, and the position after it."""
        tokens, names = self._tokens, []
        while tokens[at].text not in ("{", ""):
            names += [tokens[at].text[1:]] if tokens[at].kind == "variable" else []
            at += 1
        single = len(names) == 1 and tokens[at - 1].text != ")"
        column, found = 0, []
        at += 1
        while (token := tokens[at]).text not in ("}", ""):
            signed = token.text in ("-", "+") and tokens[at + 1].kind == "number"
            last = self._last_of_term(at) + signed
            kind = "number" if signed else _KINDS.get(token.kind)
            if kind is not None:
                found.append((column, kind, at, last))
            if token.text == "(":
                column = 0
            elif kind is not None or token.is_word("UNDEF", "TRUE", "FALSE"):
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
        more = tuple(one.slot.value for one in every[1:])
        return [_Found(replace(every[0].slot, more=more), every[0].start, every[-1].end)], at + 1


_SLOT = re.compile(r"<<([a-z][a-z0-9_]*)>>")
#: Fills the slots to check that a skeleton parses.
_DUMMIES: Mapping[SlotKind, str] = {
    "resource": "<urn:slot>",
    "text": '"slot"',
    "number": "1",
    "count": "1",
}


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
    for one, start, end in _Finder(text, namespaces, frozenset(terms)).find():
        # What is filled in separately differs in this.
        said = one.name if one.kind in ("number", "count") else ""
        thing = (one.kind, said, str(start) if said == one.kind else "", one.value, *one.more)
        if thing not in slots:
            name = unused(slot_name((names or {}).get(one.value) or one.name), taken)
            taken.add(name)
            slots[thing] = replace(one, name=name)
        edits.append(Edit(start, end, f"<<{slots[thing].name}>>"))
    return Skeleton(apply_edits(text, edits), tuple(slots.values()))


def unused(name: str, taken: Collection[str]) -> str:
    """Return a name, numbered if it is taken."""
    numbered = (f"{name}{number}" for number in itertools.count(2))
    return next(one for one in itertools.chain([name], numbered) if one not in taken)


def slot_name(text: str) -> str:
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|\W+|_+", "_", text).strip("_").lower()
    return parted if parted[:1].isalpha() and parted.isascii() else f"value_{parted}".strip("_")


def slot_names(text: str) -> tuple[str, ...]:
    """Return the names of the slots in a text, each once."""
    return tuple(dict.fromkeys(_SLOT.findall(text)))


def filled(text: str, values: Mapping[str, str]) -> str:
    """Return a skeleton with values in its slots; a slot without a value stays."""
    return _SLOT.sub(lambda slot: values.get(slot[1], slot[0]), text)
