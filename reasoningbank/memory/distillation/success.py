"""From a success: when it applies, what to do, and the skeleton of the query that did it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from reasoningbank.corpus import query_features
from reasoningbank.errors import QueryError
from reasoningbank.judge.case import executed_queries
from reasoningbank.memory.demonstrations import turns_of
from reasoningbank.memory.distillation.experience import Draft, Experience, Rejected
from reasoningbank.memory.distillation.facts import Facts
from reasoningbank.memory.distillation.grounding import services_names
from reasoningbank.memory.distillation.question import (
    Mention,
    abstracted,
    mentions_of,
    slot_labels,
)
from reasoningbank.memory.distillation.shortened import shortened
from reasoningbank.memory.distillation.skeleton import Skeleton, dummies, skeleton_of
from reasoningbank.sparql.query import prepare
from reasoningbank.sparql.terms import RDF_TYPE
from reasoningbank.sparql.tokens import tokenize, without_comments
from reasoningbank.sparql.tree import outline, read_query

__all__ = ["Lesson", "lesson_of", "made_skeleton", "success_draft", "terms_in", "why_unsure"]

#: Names that a step explains, and characters of a title.
_MOST_GLOSSES = 4
_TITLE_CHARS = 110

#: What a feature of a query is good for, told where a query has it.
_SHAPES: Mapping[str, str] = {
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
class Lesson:
    """What a right query teaches.

    Attributes:
        skeleton: Its skeleton.
        mentions: How the question speaks of what is in the slots.
        terms: Its classes and properties as written, in their order.
    """

    skeleton: Skeleton
    mentions: tuple[Mention, ...]
    terms: tuple[str, ...]

    @property
    def constants(self) -> frozenset[str]:
        """What stood in the slots, and what the question calls it."""
        values = (v for s in self.skeleton.slots for v in (s.value, *s.more))
        return frozenset((*values, *(m.said for m in self.mentions if m.said)))


def made_skeleton(query: str, facts: Facts) -> Skeleton:
    """Return the skeleton of a query, its slots named after what stood in them.

    Raises:
        QueryError: Its structure cannot be read.
    """
    vocabulary = facts.vocabulary
    terms = (*vocabulary.classes, *vocabulary.properties)
    labels = slot_labels(shortened(query, facts.namespaces), facts)
    return skeleton_of(query, facts.namespaces, terms=terms, names=labels)


def lesson_of(question: str, query: str, facts: Facts) -> Lesson:
    """Return what a right query teaches about questions like its own.

    Raises:
        QueryError: Its structure cannot be read.
    """
    skeleton = made_skeleton(query, facts)
    mentions = mentions_of(question, skeleton, facts)
    return Lesson(skeleton, mentions, terms_in(skeleton.text, facts))


def terms_in(query: str, facts: Facts) -> tuple[str, ...]:
    """Return the classes and properties in a query, as written, each once."""
    found: dict[str, None] = {}
    for token in tokenize(query):
        if token.kind in ("iri", "name"):
            name = facts.iri_of(token.text)
            if name is not None and name != RDF_TYPE and facts.is_term(name):
                found[token.text] = None
    return tuple(found)


def success_draft(experience: Experience, facts: Facts) -> Draft | Rejected:
    """Return the draft of what a success teaches, or why it teaches nothing that is sure."""
    query = experience.sparql or ""
    unsure = why_unsure(experience)
    if unsure:
        return Rejected(experience.question[:_TITLE_CHARS], unsure, "success", query)
    try:
        lesson = lesson_of(experience.question, query, facts)
        declared = prepare(query, prefixes=facts.namespaces).text
    except QueryError as error:
        return Rejected(experience.question[:_TITLE_CHARS], error.what, "success", query)
    text = lesson.skeleton.text
    return Draft(
        title=title_of(dummies(lesson.skeleton)),
        description=abstracted(experience.question, lesson.mentions),
        content=content_of(steps_of(lesson, facts), lesson.mentions),
        src="success",
        experience=experience,
        pattern=text,
        tags=(*lesson.terms, *query_features(declared).features),
        constants=lesson.constants,
        question=experience.question,
        query=shortened(query, facts.namespaces),
        turns=turns_of(experience.trajectory, query),
    )


def title_of(query: str) -> str:
    """Return a title that tells a query from others: what it gives, and by which paths.

    Examples:
        >>> title_of("SELECT ?m { ?p a up:Protein ; up:sequence/up:mass ?m } LIMIT 5")
        '?m by up:Protein, up:sequence/up:mass'
    """
    shape = outline(query)
    columns = " ".join(f"?{name}" for name in shape.projected)
    head = columns if shape.form == "SELECT" and columns else shape.form
    paths: dict[str, None] = {}
    for clause in read_query(query).statements():
        for pattern in clause.patterns:
            part = pattern.object if pattern.predicate in ("a", "rdf:type") else pattern.predicate
            if part[:1] not in "?$<":
                paths[part] = None
    title = f"{head} by {', '.join(paths)}" if paths else head
    if len(title) <= _TITLE_CHARS:
        return title
    # A name that is cut would be taken for one that the data lack.
    whole, comma, _ = title[: _TITLE_CHARS - 1].rpartition(", ")
    return f"{whole if comma else title[: _TITLE_CHARS - 1]}, …"


def steps_of(lesson: Lesson, facts: Facts) -> list[str]:
    """Return what to do, a step each: what the names lead to, then what the shape is for."""
    steps = []
    # What a name means at another endpoint is not in this one's schema.
    elsewhere = services_names(lesson.skeleton.text)
    here = (name for name in lesson.terms if name not in elsewhere)
    glosses = [gloss for name in here if (gloss := _gloss(name, facts))]
    if glosses:
        steps.append(f"Names: {'; '.join(glosses[:_MOST_GLOSSES])}.")
    steps += _shapes(lesson.skeleton.text)
    return steps


def content_of(steps: Sequence[str], mentions: Sequence[Mention]) -> str:
    """Return numbered steps, and what stood in the slots."""
    lines = [f"{number}. {step}" for number, step in enumerate(steps, 1)]
    if mentions:
        lines.append("Slots, as they were: " + "; ".join(m.line for m in mentions) + ".")
    return "\n".join(lines) or "Use the skeleton as it is."


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


def _shapes(skeleton: str) -> Iterator[str]:
    tokens = outline(skeleton).body
    words = {token.text.upper() for token in tokens if token.kind == "word"}
    features = {
        "aggregate": bool(words & {"COUNT", "SUM", "AVG", "MIN", "MAX"}) and "GROUP" in words,
        "not-exists": {"NOT", "EXISTS"} <= words,
        "minus": "MINUS" in words,
        "optional": "OPTIONAL" in words,
        "union": "UNION" in words,
        "subquery": sum(token.is_word("SELECT") for token in tokens) > 1,
        "graph": "GRAPH" in words,
        "service": "SERVICE" in words,
    }
    yield from (told for feature, told in _SHAPES.items() if features[feature])


def why_unsure(experience: Experience) -> str:
    """Say why nothing shows that a query judged right gives what it should; empty if it does."""
    if experience.sparql is None or not experience.sparql.strip():
        return "it was judged right, and no query was submitted"
    if experience.ran:
        if experience.rows == 0:
            return "it was judged right, and its query has no rows"
        return ""
    text = without_comments(experience.sparql)
    if any(ran.query == text and ran.n for ran in executed_queries(experience.trajectory)):
        return ""
    return "it was judged right, and nothing shows that its query ran"
