"""A question with slots where it names what the query's slots stand for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reasoningbank.memory.distillation.facts import Facts
from reasoningbank.memory.distillation.skeleton import Skeleton, Slot, slot_name
from reasoningbank.schema import local_name
from reasoningbank.sparql.tokens import tokenize

__all__ = ["Mention", "abstracted", "mentions_of", "slot_labels"]

_NUMBERS = (
    ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    ("zero", "uno", "due", "tre", "quattro", "cinque", "sei", "sette", "otto", "nove", "dieci"),
)
#: Resources of one query that are looked up for their class.
_MOST_LOOKED_UP = 8


@dataclass(frozen=True)
class Mention:
    """How a question speaks of what is in a slot.

    Attributes:
        slot: The slot.
        said: The question's words for it; empty where it has none.
        by: The property of the resource that holds these words; empty where they are its name.
    """

    slot: Slot
    said: str = ""
    by: str = ""

    @property
    def line(self) -> str:
        """What stood in the slot, and why, as an item tells it."""
        values = ", ".join((self.slot.value, *self.slot.more))
        why = f' (its {self.by} is "{self.said}")' if self.by else ""
        return f"<<{self.slot.name}>> = {values}{why}"


def slot_labels(query: str, facts: Facts) -> dict[str, str]:
    """Return what the resources of a query are, as names for their slots, by how they are written.

    Args:
        query: A query without prefixes of its own.
        facts: What is known of names.
    """
    found: dict[str, str] = {}
    looked_up = 0
    for token in tokenize(query):
        if token.kind not in ("iri", "name") or token.text in found:
            continue
        name = facts.iri_of(token.text)
        if name is None or facts.is_term(name) or looked_up == _MOST_LOOKED_UP:
            continue
        looked_up += 1
        kind = facts.kind_of(name)
        if kind:
            found[token.text] = slot_name(local_name(kind))
    return found


def mentions_of(question: str, skeleton: Skeleton, facts: Facts) -> tuple[Mention, ...]:
    """Find how a question speaks of what is in each slot of its query's skeleton."""
    return tuple(_mention(question, slot, facts) for slot in skeleton.slots)


def abstracted(question: str, mentions: Sequence[Mention]) -> str:
    """Return a question with slots in place of what is mentioned.

    Examples:
        >>> slot = Slot("protein", "resource", "uniprotkb:P1")
        >>> abstracted("What is the mass of P1?", [Mention(slot, "P1")])
        'What is the mass of <<protein>>?'
    """
    # Of slots that one word speaks of, the first one.
    places = {m.said: m.slot.name for m in reversed(mentions) if m.said}
    if not places:
        return question
    # In one pass: another mention may be a word of a slot's name.
    longest = sorted(places, key=len, reverse=True)
    said = re.compile("|".join(f"({_found(one).pattern})" for one in longest), re.IGNORECASE)
    return said.sub(lambda found: f"<<{places[longest[(found.lastindex or 1) - 1]]}>>", question)


def _mention(question: str, slot: Slot, facts: Facts) -> Mention:
    for said in _names_of(slot, facts.namespaces):
        match = _found(said).search(question)
        if match is not None:
            return Mention(slot, match[0])
    name = facts.iri_of(slot.value) if slot.kind == "resource" else None
    called = facts.called_in(name, question) if name is not None else None
    if called is not None:
        return Mention(slot, called[1], facts.show(called[0]))
    return Mention(slot)


def _names_of(slot: Slot, namespaces: Mapping[str, str]) -> list[str]:
    """Return the words by which a question may speak of a constant itself, the best first."""
    if slot.kind == "text":
        text = next((t.text for t in tokenize(slot.value) if t.kind == "string"), "")
        quotes = 3 if text[:3] in ('"""', "'''") else 1
        inner = text[quotes:-quotes]
        return [inner] if inner.strip() else []
    if slot.kind in ("number", "count"):
        spelt = (words[int(slot.value)] for words in _NUMBERS if slot.value in _SPELT)
        return [slot.value, *spelt]
    value = slot.value
    if value.startswith("<"):
        return [local_name(value[1:-1])]
    prefix, _, local = value.partition(":")
    # GO:0005634 and ECO:0000269 are named so in questions; location:191 is not.
    full = [f"{prefix}:{local}"] if prefix.isupper() else []
    return [*full, *([local] if len(local) > 2 else [])]


_SPELT = frozenset(str(number) for number in range(len(_NUMBERS[0])))


def _found(said: str) -> re.Pattern[str]:
    left = r"(?<!\w)" if said[:1].isalnum() else ""
    right = r"(?!\w)" if said[-1:].isalnum() else ""
    return re.compile(f"{left}{re.escape(said)}{right}", re.IGNORECASE)
