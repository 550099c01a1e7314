"""What made the difference between a right and a wrong attempt at one task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reasoningbank.errors import QueryError
from reasoningbank.memory.experience import Draft, Experience, shortened_title
from reasoningbank.memory.facts import Facts
from reasoningbank.memory.skeleton import Slot, shortened
from reasoningbank.memory.success import abstracted, lesson_of, terms_in, why_uncertain
from reasoningbank.schema.names import used_names
from reasoningbank.sparql.tokens import tokenize
from reasoningbank.sparql.tree import QueryTree, TriplePattern, read_query

#: Patterns that are shown of one side.
_MOST = 3
_TYPES = ("a", "rdf:type")
#: Keyword → how it is shown.
_KEYWORDS = {
    "OPTIONAL": "OPTIONAL { }",
    "EXISTS": "FILTER NOT EXISTS { }",
    "MINUS": "MINUS { }",
    "UNION": "UNION",
    "GROUP": "GROUP BY",
    **{word: word for word in ("HAVING", "LIMIT", "GRAPH", "SERVICE", "FILTER")},
}


@dataclass(frozen=True)
class _Side:
    """One of the two queries."""

    text: str
    query: QueryTree
    terms: tuple[str, ...]

    @classmethod
    def of(cls, query: str, facts: Facts) -> _Side:
        text = shortened(query, facts.namespaces)
        return cls(text, read_query(text), terms_in(text, facts))

    @property
    def words(self) -> frozenset[str]:
        return frozenset(t.text.upper() for t in tokenize(self.text) if t.kind == "word")

    def lacking(self, other: _Side) -> list[TriplePattern]:
        """Return the patterns that another query lacks, whatever its variables are called."""
        have = {_plain(pattern) for pattern in other.query.triple_patterns()}
        return [pattern for pattern in self.query.triple_patterns() if _plain(pattern) not in have]


def contrast_draft(
    experiences: Sequence[Experience], facts: Facts, *, skeleton: bool = True
) -> Draft | None:
    """Return what differs between a right and a wrong query for the same question."""
    right = next((e for e in experiences if e.success and not why_uncertain(e)), None)
    if right is None:
        return None
    try:
        lesson = lesson_of(right.question, right.sparql or "", facts)
        good = _Side.of(right.sparql or "", facts)
    except QueryError:
        return None
    bad = _nearest(good, [e for e in experiences if not e.success], facts)
    if bad is None:
        return None
    prologue = "".join(f"PREFIX {p}: <{iri}>\n" for p, iri in facts.namespaces.items())
    used = used_names(read_query(prologue + bad.text))
    missing = list(dict.fromkeys(n.written for n in used if facts.exists(n.iri) is False))
    lines = list(_differences(good, bad, missing, lesson.skeleton.slots if skeleton else ()))
    if not lines:
        return None
    return Draft(
        title=_title(good, bad),
        description=abstracted(right.question, lesson.mentions)
        if skeleton
        else f"Questions such as: {right.question}",
        content="\n".join(lines),
        src="contrast",
        experience=right,
        pattern=lesson.skeleton.text if skeleton else "",
        tags=lesson.terms,
        denied=frozenset(missing),
        constants=lesson.constants | {token.text for token in tokenize(bad.text)},
    )


def _nearest(good: _Side, failures: Sequence[Experience], facts: Facts) -> _Side | None:
    """Return the wrong query with most names in common; one without any teaches nothing."""
    sides: list[_Side] = []
    for experience in failures:
        try:
            side = _Side.of(experience.sparql or "", facts)
        except QueryError:
            continue
        if set(side.terms) & set(good.terms) and side.text.split() != good.text.split():
            sides.append(side)
    return max(sides, key=lambda side: len(set(side.terms) & set(good.terms)), default=None)


def _title(good: _Side, bad: _Side) -> str:
    # A wrong name is left to the text, which says that it is wrong.
    right = dict.fromkeys(
        p.object if p.predicate in _TYPES else p.predicate for p in good.lacking(bad)
    )
    if not right and bad.lacking(good):
        return "What decides: to ask no more"
    return shortened_title(f"What decides: {', '.join([*right][:_MOST]) or good.query.form}")


def _differences(
    good: _Side, bad: _Side, missing: Sequence[str], slots: Sequence[Slot]
) -> Iterator[str]:
    right, wrong = good.query, bad.query
    if right.form != wrong.form:
        yield f"Right: {right.form}, not {wrong.form}."
    lacking = good.lacking(bad)
    # To give the class of something does no harm if the class exists.
    surplus = [
        pattern
        for pattern in bad.lacking(good)
        if pattern.predicate not in _TYPES or pattern.object in missing
    ]
    if lacking:
        yield f"Right: {_written(lacking, slots)} ."
    if surplus:
        yield f"Not: {_written(surplus, slots)} ."
    shown = [name for name in missing if any(name in str(pattern) for pattern in surplus[:_MOST])]
    if shown:
        yield f"There is no {', no '.join(shown)}."
    if len(right.projected) != len(wrong.projected) and right.form == wrong.form == "SELECT":
        columns = " ".join(f"?{name}" for name in right.projected)
        yield f"Right: the columns {columns or '*'}, no more and no less."
    for word, text in _KEYWORDS.items():
        if (word in good.words) != (word in bad.words):
            yield f"Right: {'with' if word in good.words else 'without'} {text}."


def _written(patterns: Sequence[TriplePattern], slots: Sequence[Slot]) -> str:
    # Slots of VALUES have several values, and equal numbers are ambiguous.
    times = Counter(slot.value for slot in slots if not slot.more)
    named = {s.value: f"<<{s.name}>>" for s in slots if not s.more and times[s.value] == 1}
    return " . ".join(
        " ".join((named.get(p.subject, p.subject), p.predicate, named.get(p.object, p.object)))
        for p in patterns[:_MOST]
    )


def _plain(pattern: TriplePattern) -> str:
    predicate = "a" if pattern.predicate in _TYPES else pattern.predicate
    ends = ["?" if end[:1] in "?$" else end for end in (pattern.subject, pattern.object)]
    return f"{ends[0]} {predicate} {ends[1]}"
