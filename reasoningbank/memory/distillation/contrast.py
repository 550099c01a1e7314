"""From several attempts at one task, one right and one wrong: what made the difference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reasoningbank.errors import QueryError
from reasoningbank.memory.distillation.experience import Draft, Experience
from reasoningbank.memory.distillation.facts import Facts
from reasoningbank.memory.distillation.question import abstracted
from reasoningbank.memory.distillation.shortened import shortened
from reasoningbank.memory.distillation.skeleton import Slot
from reasoningbank.memory.distillation.success import Lesson, lesson_of, terms_in, why_unsure
from reasoningbank.schema.names import used_names
from reasoningbank.sparql.tokens import tokenize
from reasoningbank.sparql.tree import QueryTree, TriplePattern, outline, read_query

__all__ = ["contrast_draft"]

#: Patterns that are told of one side, and characters of a title.
_MOST = 3
_TITLE_CHARS = 110
_TYPES = ("a", "rdf:type")


@dataclass(frozen=True)
class _Side:
    """One of the two queries."""

    text: str
    query: QueryTree
    terms: tuple[str, ...]

    @property
    def patterns(self) -> list[TriplePattern]:
        return [p for clause in self.query.statements() for p in clause.patterns]

    @property
    def words(self) -> frozenset[str]:
        return frozenset(t.text.upper() for t in tokenize(self.text) if t.kind == "word")

    def lacking(self, other: _Side) -> list[TriplePattern]:
        """Return the patterns that another query lacks, names of variables apart."""
        have = {_plain(pattern) for pattern in other.patterns}
        return [pattern for pattern in self.patterns if _plain(pattern) not in have]


def contrast_draft(
    experiences: Sequence[Experience], facts: Facts, *, skeleton: bool = True
) -> Draft | None:
    """Return what differs between a right and a wrong query for the same question.

    Args:
        experiences: The attempts at one task.
        facts: What is known of the endpoint's names.
        skeleton: Whether it carries the right query's skeleton, as the strategy does.

    Returns:
        The draft; None where no two queries can be compared, nothing shows that the right one
        ran, or nothing differs that can be told.
    """
    right = next((e for e in experiences if e.success and not why_unsure(e)), None)
    if right is None:
        return None
    try:
        lesson = lesson_of(right.question, right.sparql or "", facts)
        good = _side(right.sparql or "", facts)
    except QueryError:
        return None
    bad = _nearest(good, [e for e in experiences if not e.success], facts)
    if bad is None:
        return None
    missing = _missing(bad, facts)
    lines = list(_differences(good, bad, missing, lesson.skeleton.slots if skeleton else ()))
    if not lines:
        return None
    return Draft(
        title=_title(good, bad),
        description=_description(right, lesson, skeleton=skeleton),
        content="\n".join(lines),
        src="contrast",
        experience=right,
        pattern=lesson.skeleton.text if skeleton else "",
        tags=lesson.terms,
        denied=frozenset(missing),
        constants=lesson.constants | {token.text for token in tokenize(bad.text)},
    )


def _side(query: str, facts: Facts) -> _Side:
    text = shortened(query, facts.namespaces)
    return _Side(text, read_query(text), terms_in(text, facts))


def _nearest(good: _Side, failures: Sequence[Experience], facts: Facts) -> _Side | None:
    """Return the wrong query that has most in common with the right one, and differs.

    One that shares no name with it missed everything: what decided cannot be told.
    """
    sides: list[_Side] = []
    for experience in failures:
        try:
            side = _side(experience.sparql or "", facts)
        except QueryError:
            continue
        if set(side.terms) & set(good.terms) and side.text.split() != good.text.split():
            sides.append(side)
    return max(sides, key=lambda side: len(set(side.terms) & set(good.terms)), default=None)


def _missing(bad: _Side, facts: Facts) -> tuple[str, ...]:
    """Return the names of the wrong query that do not exist."""
    prologue = "".join(f"PREFIX {p}: <{iri}>\n" for p, iri in facts.namespaces.items())
    used = used_names(read_query(prologue + bad.text))
    return tuple(dict.fromkeys(name.written for name in used if facts.exists(name.iri) is False))


def _title(good: _Side, bad: _Side) -> str:
    right, wrong = (
        list(dict.fromkeys(_telling(pattern) for pattern in one.lacking(other)))
        for one, other in ((good, bad), (bad, good))
    )
    decides = ", ".join(right[:_MOST]) or outline(good.text).form
    # A name that is wrong stands in the text, where it is told to be.
    title = f"What decides: {decides}" if right or not wrong else "What decides: to ask no more"
    return title if len(title) <= _TITLE_CHARS else f"{title[: _TITLE_CHARS - 1]}…"


def _telling(pattern: TriplePattern) -> str:
    return pattern.object if pattern.predicate in _TYPES else pattern.predicate


def _description(right: Experience, lesson: Lesson, *, skeleton: bool) -> str:
    if skeleton:
        return abstracted(right.question, lesson.mentions)
    return f"Questions such as: {right.question}"


def _differences(
    good: _Side, bad: _Side, missing: Sequence[str], slots: Sequence[Slot]
) -> Iterator[str]:
    right, wrong = outline(good.text), outline(bad.text)
    if right.form != wrong.form:
        yield f"Right: {right.form}, not {wrong.form}."
    lacking = good.lacking(bad)
    # To say of what kind a thing is does no harm, where the kind exists.
    surplus = [
        pattern
        for pattern in bad.lacking(good)
        if pattern.predicate not in _TYPES or pattern.object in missing
    ]
    if lacking:
        yield f"Right: {_written(lacking, slots)} ."
    if surplus:
        yield f"Not: {_written(surplus, slots)} ."
    told = [name for name in missing if any(name in str(pattern) for pattern in surplus[:_MOST])]
    if told:
        yield f"There is no {', no '.join(told)}."
    if len(right.projected) != len(wrong.projected) and right.form == wrong.form == "SELECT":
        columns = " ".join(f"?{name}" for name in right.projected)
        yield f"Right: the columns {columns or '*'}, no more and no less."
    yield from _words(good, bad)


def _written(patterns: Sequence[TriplePattern], slots: Sequence[Slot]) -> str:
    # Several values stand in VALUES, and which of two equal numbers it is cannot be told.
    times = Counter(slot.value for slot in slots if not slot.more)
    named = {s.value: f"<<{s.name}>>" for s in slots if not s.more and times[s.value] == 1}
    return " . ".join(
        " ".join((named.get(p.subject, p.subject), p.predicate, named.get(p.object, p.object)))
        for p in patterns[:_MOST]
    )


def _words(good: _Side, bad: _Side) -> Iterator[str]:
    for word, told in (
        ("OPTIONAL", "OPTIONAL { }"),
        ("EXISTS", "FILTER NOT EXISTS { }"),
        ("MINUS", "MINUS { }"),
        ("UNION", "UNION"),
        ("GROUP", "GROUP BY"),
        ("HAVING", "HAVING"),
        ("LIMIT", "LIMIT"),
        ("GRAPH", "GRAPH"),
        ("SERVICE", "SERVICE"),
        ("FILTER", "FILTER"),
    ):
        if (word in good.words) != (word in bad.words):
            yield f"Right: {'with' if word in good.words else 'without'} {told}."


def _plain(pattern: TriplePattern) -> str:
    predicate = "a" if pattern.predicate in _TYPES else pattern.predicate
    ends = ["?" if end[:1] in "?$" else end for end in (pattern.subject, pattern.object)]
    return f"{ends[0]} {predicate} {ends[1]}"
