"""What a success teaches: when it applies, what to do, and the skeleton of its query."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from reasoningbank.corpus import query_features
from reasoningbank.errors import QueryError
from reasoningbank.judge.case import executed_queries
from reasoningbank.memory.demonstrations import turns_of
from reasoningbank.memory.experience import TITLE_CHARS, Draft, Experience, Rejected, uncertain
from reasoningbank.memory.facts import Facts
from reasoningbank.memory.grounding import services_names
from reasoningbank.memory.skeleton import (
    Skeleton,
    Slot,
    dummies,
    shortened,
    skeleton_of,
    slot_name,
)
from reasoningbank.schema import local_name
from reasoningbank.sparql.query import prepare
from reasoningbank.sparql.terms import RDF_TYPE
from reasoningbank.sparql.tokens import tokenize, without_comments
from reasoningbank.sparql.tree import outline, read_query

_NUMBERS = (
    ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    ("zero", "uno", "due", "tre", "quattro", "cinque", "sei", "sette", "otto", "nove", "dieci"),
)
#: Resources of one query that are looked up for their class, and names that a step explains.
_MOST_LOOKED_UP = 8
_MOST_GLOSSES = 4
#: What a feature of a query is for.
_FEATURES: Mapping[str, str] = {
    "aggregate": "Aggregate, with GROUP BY on every other column.",
    "not-exists": "FILTER NOT EXISTS { } leaves out what has the pattern.",
    "minus": "MINUS { } takes away what has the pattern.",
    "optional": "OPTIONAL { } for what not everything has.",
    "union": "UNION for one thing or the other.",
    "subquery": "An inner SELECT computes first; the outer patterns add to its rows.",
    "graph": "GRAPH names the graph that is asked.",
    "service": "SERVICE asks the other endpoint; shared variables join the two.",
}


@dataclass(frozen=True)
class Mention:
    """How a question refers to the value of a slot."""

    slot: Slot
    said: str = ""
    by: str = ""

    @property
    def line(self) -> str:
        """The value of the slot, and how the question refers to it."""
        values = ", ".join((self.slot.value, *self.slot.more))
        why = f' (its {self.by} is "{self.said}")' if self.by else ""
        return f"<<{self.slot.name}>> = {values}{why}"


@dataclass(frozen=True)
class Lesson:
    """What a right query teaches; `terms` are its classes and properties as written."""

    skeleton: Skeleton
    mentions: tuple[Mention, ...]
    terms: tuple[str, ...]

    @property
    def constants(self) -> frozenset[str]:
        """The values of the slots, and the question's words for them."""
        values = (v for s in self.skeleton.slots for v in (s.value, *s.more))
        return frozenset((*values, *(m.said for m in self.mentions if m.said)))

    @property
    def slots(self) -> str:
        """A line with the values of the slots; empty without slots."""
        lines = "; ".join(mention.line for mention in self.mentions)
        return f"Slots, as they were: {lines}." if lines else ""


def success_draft(experience: Experience, facts: Facts) -> Draft | Rejected:
    """Return the draft of what a success teaches, or why it teaches nothing certain."""
    query = experience.sparql or ""
    if doubt := why_uncertain(experience):
        return uncertain(experience, "success", "unproven", doubt)
    try:
        lesson = lesson_of(experience.question, query, facts)
        declared = prepare(query, prefixes=facts.namespaces).text
    except QueryError as error:
        return uncertain(experience, "success", error.code, error.what)
    return Draft(
        title=title_of(dummies(lesson.skeleton)),
        description=abstracted(experience.question, lesson.mentions),
        content=_content(lesson, facts),
        slots=lesson.slots,
        src="success",
        experience=experience,
        pattern=lesson.skeleton.text,
        tags=(*lesson.terms, *query_features(declared).features),
        constants=lesson.constants,
        question=experience.question,
        query=shortened(query, facts.namespaces),
        turns=turns_of(experience.trajectory, query),
    )


def why_uncertain(experience: Experience) -> str:
    """Return why a success does not show that its query is right; empty if it does."""
    if experience.sparql is None or not experience.sparql.strip():
        return "it was judged right, and no query was submitted"
    if experience.ran:
        return "it was judged right, and its query has no rows" if experience.rows == 0 else ""
    text = without_comments(experience.sparql)
    if any(ran.query == text and ran.n for ran in executed_queries(experience.trajectory)):
        return ""
    return "it was judged right, and nothing shows that its query ran"


def lesson_of(question: str, query: str, facts: Facts) -> Lesson:
    """Return what a right query teaches; raise `QueryError` if its structure cannot be read."""
    skeleton = made_skeleton(query, facts)
    mentions = tuple(_mention(question, slot, facts) for slot in skeleton.slots)
    return Lesson(skeleton, mentions, terms_in(skeleton.text, facts))


def made_skeleton(query: str, facts: Facts) -> Skeleton:
    """Return the skeleton of a query, its slots named after the classes of their values."""
    vocabulary = facts.vocabulary
    labels: dict[str, str] = {}
    looked_up = 0
    for token in tokenize(shortened(query, facts.namespaces)):
        if token.kind not in ("iri", "name") or token.text in labels:
            continue
        name = facts.iri_of(token.text)
        if name is None or facts.is_term(name) or looked_up == _MOST_LOOKED_UP:
            continue
        looked_up += 1
        if kind := facts.kind_of(name):
            labels[token.text] = slot_name(local_name(kind))
    terms = (*vocabulary.classes, *vocabulary.properties)
    return skeleton_of(query, facts.namespaces, terms=terms, names=labels)


def terms_in(query: str, facts: Facts) -> tuple[str, ...]:
    """Return the classes and properties in a query, as written, each once."""
    found: dict[str, None] = {}
    for token in tokenize(query):
        if token.kind in ("iri", "name"):
            name = facts.iri_of(token.text)
            if name is not None and name != RDF_TYPE and facts.is_term(name):
                found[token.text] = None
    return tuple(found)


def title_of(query: str) -> str:
    """Return a title for a query: its columns and paths."""
    shape = outline(query)
    columns = " ".join(f"?{name}" for name in shape.projected)
    head = columns if shape.form == "SELECT" and columns else shape.form
    paths: dict[str, None] = {}
    for pattern in read_query(query).triple_patterns():
        part = pattern.object if pattern.predicate in ("a", "rdf:type") else pattern.predicate
        if part[:1] not in "?$<":
            paths[part] = None
    title = f"{head} by {', '.join(paths)}" if paths else head
    if len(title) <= TITLE_CHARS:
        return title
    # A truncated name would be taken for one that does not exist.
    whole, comma, _ = title[: TITLE_CHARS - 1].rpartition(", ")
    return f"{whole if comma else title[: TITLE_CHARS - 1]}, …"


def abstracted(question: str, mentions: Sequence[Mention]) -> str:
    """Return a question with slots in place of what is mentioned."""
    # If one word refers to several slots, it becomes the first.
    places = {m.said: m.slot.name for m in reversed(mentions) if m.said}
    if not places:
        return question
    # In one pass: another mention may be a word of a slot's name.
    longest = sorted(places, key=len, reverse=True)
    said = re.compile("|".join(f"({_whole(one).pattern})" for one in longest), re.IGNORECASE)
    return said.sub(lambda found: f"<<{places[longest[(found.lastindex or 1) - 1]]}>>", question)


def _mention(question: str, slot: Slot, facts: Facts) -> Mention:
    for said in _names_of(slot):
        match = _whole(said).search(question)
        if match is not None:
            return Mention(slot, match[0])
    name = facts.iri_of(slot.value) if slot.kind == "resource" else None
    called = facts.called_in(name, question) if name is not None else None
    if called is not None:
        return Mention(slot, called[1], facts.show(called[0]))
    return Mention(slot)


def _names_of(slot: Slot) -> list[str]:
    """Return the words by which a question may refer to a constant itself, best first."""
    value = slot.value
    if slot.kind == "text":
        text = next((t.text for t in tokenize(value) if t.kind == "string"), "")
        quotes = 3 if text[:3] in ('"""', "'''") else 1
        inner = text[quotes:-quotes]
        return [inner] if inner.strip() else []
    if slot.kind in ("number", "count"):
        spelled = value.isdecimal() and int(value) < len(_NUMBERS[0]) and str(int(value)) == value
        return [value, *(words[int(value)] for words in _NUMBERS if spelled)]
    if value.startswith("<"):
        return [local_name(value[1:-1])]
    prefix, _, local = value.partition(":")
    # Questions write GO:0005634 and ECO:0000269, but not location:191.
    full = [f"{prefix}:{local}"] if prefix.isupper() else []
    return [*full, *([local] if len(local) > 2 else [])]


def _whole(said: str) -> re.Pattern[str]:
    left = r"(?<!\w)" if said[:1].isalnum() else ""
    right = r"(?!\w)" if said[-1:].isalnum() else ""
    return re.compile(f"{left}{re.escape(said)}{right}", re.IGNORECASE)


def _content(lesson: Lesson, facts: Facts) -> str:
    """Return numbered steps, first on names, then on features, and the values of the slots."""
    steps = []
    # The schema knows nothing about the names of another endpoint.
    elsewhere = services_names(lesson.skeleton.text)
    here = (name for name in lesson.terms if name not in elsewhere)
    glosses = [gloss for name in here if (gloss := _gloss(name, facts))]
    if glosses:
        steps.append(f"Names: {'; '.join(glosses[:_MOST_GLOSSES])}.")
    steps += _feature_steps(lesson.skeleton.text)
    lines = [f"{number}. {step}" for number, step in enumerate(steps, 1)]
    return "\n".join([*lines, *filter(None, [lesson.slots])]) or "Use the skeleton as it is."


def _gloss(written: str, facts: Facts) -> str:
    name = facts.iri_of(written)
    term = facts.vocabulary.properties.get(name or "")
    if name is None or term is None:
        return ""
    ends = [
        [facts.show(iri) for iri in iris if iri in facts.vocabulary.classes and facts.has_data(iri)]
        for iris in (term.domain, term.range)
    ]
    if ends[0] and ends[1]:
        return f"{written} from {' or '.join(ends[0][:2])} to {' or '.join(ends[1][:2])}"
    said = (term.comment or term.label).split(". ")[0].strip().rstrip(".")
    if not said:
        return ""
    return f"{written} is {said[0].lower()}{said[1:]}" if len(said) <= 70 else ""


def _feature_steps(skeleton: str) -> Iterator[str]:
    tokens = outline(skeleton).body
    words = {token.text.upper() for token in tokens if token.kind == "word"}
    features = {
        "aggregate": bool(words & {"COUNT", "SUM", "AVG", "MIN", "MAX"}) and "GROUP" in words,
        "not-exists": {"NOT", "EXISTS"} <= words,
        "subquery": sum(token.is_word("SELECT") for token in tokens) > 1,
        **{name: name.upper() in words for name in ("minus", "optional", "union", "graph")},
        "service": "SERVICE" in words,
    }
    yield from (step for feature, step in _FEATURES.items() if features[feature])
