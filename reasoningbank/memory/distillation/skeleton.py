"""The skeleton of a query: what stays of it on a similar question, with slots for the rest.

Classes, properties, functions, graphs and services stay; resources, texts, numbers that are
compared, and limits become slots ``<<name>>``. It is read from the tokens by the grammar, so a
text that looks like a name stays what it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from reasoningbank.errors import QueryError
from reasoningbank.memory.distillation.constants import Constant, SlotKind, constants_of
from reasoningbank.memory.distillation.shortened import shortened
from reasoningbank.sparql.query import PreparedQuery, prepare
from reasoningbank.sparql.tokens import Edit, apply_edits

__all__ = ["Skeleton", "Slot", "dummies", "filled", "parsed_skeleton", "skeleton_of", "slot_names"]

_SLOT = re.compile(r"<<([a-z][a-z0-9_]*)>>")
#: What a slot is filled with to see whether the skeleton parses.
_DUMMIES: Mapping[SlotKind, str] = {
    "resource": "<urn:slot>",
    "text": '"slot"',
    "number": "1",
    "count": "1",
}


@dataclass(frozen=True)
class Slot:
    """A place in a skeleton.

    Attributes:
        name: Its name, as it stands between ``<<`` and ``>>``.
        kind: `resource`, `text`, `number`, or `count` for what only a whole number can be.
        value: What stood there, as SPARQL.
        more: Further values that stood beside it, in VALUES.
    """

    name: str
    kind: SlotKind
    value: str
    more: tuple[str, ...] = ()


@dataclass(frozen=True)
class Skeleton:
    """A query with slots for its constants.

    Attributes:
        text: The query, slots as ``<<name>>``; prefixes of the endpoint are not declared.
        slots: Its slots, in the order in which they come.
    """

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
    """Return the skeleton of a query.

    Args:
        query: A query that parses.
        namespaces: Prefix → namespace of the endpoint.
        terms: IRIs of classes and properties, which stay wherever they stand.
        names: Constant as written → what its slot is to be called, where more is known of it.

    Raises:
        QueryError: Its structure cannot be read.

    Examples:
        >>> made = skeleton_of(
        ...     'SELECT ?n { <http://u/P1> up:name ?n . FILTER(CONTAINS(?n, "DNA")) } LIMIT 5',
        ...     {"up": "http://core/", "u": "http://u/"})
        >>> made.text
        'SELECT ?n { <<u>> up:name ?n . FILTER(CONTAINS(?n, <<text>>)) } LIMIT <<limit>>'
        >>> [slot.value for slot in made.slots]
        ['u:P1', '"DNA"', '5']
    """
    text = shortened(query, namespaces)
    if _SLOT.search(text):
        raise QueryError("the query holds what looks like a slot")
    found = constants_of(text, namespaces, frozenset(terms))
    slots = _slots(found, names or {})
    edits = [Edit(one.start, one.end, f"<<{slots[_thing(one)].name}>>") for one in found]
    return Skeleton(apply_edits(text, edits), tuple(slots.values()))


def _thing(one: Constant) -> tuple[str, ...]:
    """Return what tells a constant from others that are filled in separately.

    A resource is the same thing wherever it stands. Numbers may be equal by chance: they are one
    only where they are called the same, and by more than what kind they are of.
    """
    name = one.name if one.kind in ("number", "count") else ""
    where = str(one.start) if name == one.kind else ""
    return (one.kind, name, where, one.value, *one.more)


def _slots(found: Iterable[Constant], names: Mapping[str, str]) -> dict[tuple[str, ...], Slot]:
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
    """Return a name as slots have them.

    Examples:
        >>> slot_name("Subcellular_Location"), slot_name("scientificName"), slot_name("GO")
        ('subcellular_location', 'scientific_name', 'go')
    """
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|\W+|_+", "_", text).strip("_").lower()
    return parted if parted[:1].isalpha() and parted.isascii() else f"value_{parted}".strip("_")


def slot_names(text: str) -> tuple[str, ...]:
    """Return the names of the slots in a text, each once.

    Examples:
        >>> slot_names("?p up:organism <<taxon>> ; up:mass <<mass>> . LIMIT <<taxon>>")
        ('taxon', 'mass')
    """
    return tuple(dict.fromkeys(_SLOT.findall(text)))


def filled(text: str, values: Mapping[str, str]) -> str:
    """Return a skeleton with values in its slots; a slot without a value stays.

    Examples:
        >>> filled("ASK { ?p up:organism <<taxon>> }", {"taxon": "taxon:9606"})
        'ASK { ?p up:organism taxon:9606 }'
    """
    return _SLOT.sub(lambda slot: values.get(slot[1], slot[0]), text)


def dummies(skeleton: Skeleton) -> str:
    """Return a skeleton with a dummy of its kind in each slot."""
    return filled(skeleton.text, {slot.name: _DUMMIES[slot.kind] for slot in skeleton.slots})


def parsed_skeleton(skeleton: Skeleton, namespaces: Mapping[str, str]) -> PreparedQuery:
    """Return a skeleton, parsed with dummies in its slots.

    Raises:
        QueryError: It does not parse, or a slot of it has no kind.
    """
    query = dummies(skeleton)
    left = slot_names(query)
    if left:
        raise QueryError(f"nothing is known of the slot <<{left[0]}>>")
    return prepare(query, prefixes=namespaces)
