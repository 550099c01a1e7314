"""What a success teaches, and what made the difference to a wrong attempt at the same task."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from reasoningbank.corpus import query_features
from reasoningbank.errors import QueryError
from reasoningbank.judge.case import executed_queries
from reasoningbank.memory.demonstrations import turns_of
from reasoningbank.memory.experience import (
    TITLE_CHARS,
    Draft,
    Experience,
    Rejected,
    lesson_texts,
    shortened_title,
)
from reasoningbank.memory.grounding import Facts, services_names
from reasoningbank.memory.skeleton import Skeleton, Slot, filled, shortened, skeleton_of, slot_name
from reasoningbank.schema import is_empty, local_name
from reasoningbank.schema.names import used_names
from reasoningbank.sparql import BooleanResult, iri
from reasoningbank.sparql.query import PreparedQuery, prepare
from reasoningbank.sparql.terms import RDF_TYPE
from reasoningbank.sparql.tokens import AGGREGATES, tokenize, without_comments
from reasoningbank.sparql.tree import TriplePattern, outline, read_query

_NUMBERS = (
    ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    ("zero", "uno", "due", "tre", "quattro", "cinque", "sei", "sette", "otto", "nove", "dieci"),
)
#: Resources of one query that are looked up for their class, and names that a step explains.
_MOST_LOOKED_UP = 8
_MOST_GLOSSES = 4
#: Patterns that a contrast shows of one side.
_MOST_PATTERNS = 3
_TYPES = ("a", "rdf:type")


class Lesson:
    """What a right query teaches: its skeleton, its terms, and how the question names values."""

    def __init__(self, experience: Experience, facts: Facts) -> None:
        query = experience.sparql or ""
        self.query = shortened(query, facts.namespaces)
        names = facts.names(self.query).items()
        resources = [(text, name) for text, name in names if not facts.is_term(name)]
        # Slots are named after the classes of their values.
        labels = {
            text: slot_name(local_name(kind))
            for text, name in resources[:_MOST_LOOKED_UP]
            if (kind := facts.kind_of(name))
        }
        self.skeleton = skeleton_of(query, facts.namespaces, terms=facts.terms, names=labels)
        self.terms = terms_in(self.skeleton.text, facts)
        mentions, lines, values = [], [], []
        for slot in self.skeleton.slots:
            said, by = _mention(experience.question, slot, facts)
            why = f' (its {by} is "{said}")' if by else ""
            lines.append(f"<<{slot.name}>> = {', '.join((slot.value, *slot.more))}{why}")
            mentions.append((slot.name, said))
            values += [slot.value, *slot.more, *filter(None, [said])]
        self.slots = f"Slots, as they were: {'; '.join(lines)}." if lines else ""
        self.constants = frozenset(values)
        self.description = abstracted(experience.question, mentions)


def success_draft(experience: Experience, facts: Facts) -> Draft | Rejected:
    """Return the draft of what a success teaches, or why it teaches nothing certain."""
    query = experience.sparql or ""
    if doubt := _doubt(experience):
        return experience.uncertain("success", "unproven", doubt)
    try:
        lesson = Lesson(experience, facts)
        prepared = prepare(query, prefixes=facts.namespaces)
    except QueryError as error:
        return experience.uncertain("success", error.code, error.what)
    return Draft(
        title=title_of(lesson.skeleton.dummy),
        description=lesson.description,
        content=_content(lesson, facts),
        slots=lesson.slots,
        src="success",
        experience=experience,
        pattern=lesson.skeleton.text,
        probe=lesson.skeleton.dummy,
        tags=(*lesson.terms, *query_features(prepared.text).features),
        constants=lesson.constants,
        question=experience.question,
        query=lesson.query,
        turns=turns_of(experience.trajectory, query),
        unproven=_matches_nothing(prepared, lesson.skeleton, facts),
    )


def _doubt(experience: Experience) -> str:
    """Return why a success does not show that its query is right; empty if it does."""
    if experience.sparql is None or not experience.sparql.strip():
        return "it was judged right, and no query was submitted"
    if experience.ran:
        return "it was judged right, and its query has no rows" if experience.rows == 0 else ""
    text = without_comments(experience.sparql)
    seen = any(ran.query == text and ran.n for ran in executed_queries(experience.trajectory))
    return "" if seen else "it was judged right, and nothing shows that its query ran"


def _matches_nothing(prepared: PreparedQuery, skeleton: Skeleton, facts: Facts) -> bool:
    """Return whether a query answers no or zero for all resources of its slots' classes."""
    words = {token.text.upper() for token in outline(prepared.text).body if token.kind == "word"}
    if prepared.form != "ASK" and words.isdisjoint(AGGREGATES):
        return False
    found = facts.ask(prepared.text)
    if found is None or not is_empty(found, prepared):
        return False
    query = read_query(filled(skeleton.text, {slot.name: slot.value for slot in skeleton.slots}))
    ends = {end for one in query.triple_patterns() for end in (one.subject, one.object)}
    values, classes = {}, []
    for slot in skeleton.slots:
        is_open = slot.value in ends
        values[slot.name] = f"?{slot.name}" if is_open else slot.value
        name = facts.iri_of(slot.value) if is_open and slot.kind == "resource" else None
        if name is not None and (kind := facts.kind_of(name)):
            classes.append(f"?{slot.name} a {iri(kind)} . ")
    opened = read_query(filled(skeleton.text, values))
    if opened.where is None:
        return False
    where = opened.text[opened.where.start : opened.where.end]
    found = facts.ask(f"ASK {{ {''.join(classes)}{where} }}")
    return isinstance(found, BooleanResult) and not found.value


def terms_in(query: str, facts: Facts) -> tuple[str, ...]:
    """Return the classes and properties in a query, as written, each once."""
    names = facts.names(query).items()
    return tuple(text for text, name in names if name != RDF_TYPE and facts.is_term(name))


def title_of(query: str) -> str:
    """Return a title for a query: its columns and paths."""
    shape = outline(query)
    columns = " ".join(f"?{name}" for name in shape.projected)
    head = columns if shape.form == "SELECT" and columns else shape.form
    parts = map(_subject_matter, read_query(query).triple_patterns())
    paths = dict.fromkeys(part for part in parts if part[:1] not in "?$<")
    title = f"{head} by {', '.join(paths)}" if paths else head
    if len(title) <= TITLE_CHARS:
        return title
    # A truncated name would be taken for one that does not exist.
    whole, comma, _ = title[: TITLE_CHARS - 1].rpartition(", ")
    return f"{whole if comma else title[: TITLE_CHARS - 1]}, …"


def _subject_matter(pattern: TriplePattern) -> str:
    return pattern.object if pattern.predicate in _TYPES else pattern.predicate


def abstracted(question: str, mentions: Sequence[tuple[str, str]]) -> str:
    """Return a question with slots in place of their mentions: (slot, the question's words)."""
    # If one word refers to several slots, it becomes the first.
    places = {said: name for name, said in reversed(mentions) if said}
    if not places:
        return question
    # In one pass: another mention may be a word of a slot's name.
    longest = sorted(places, key=len, reverse=True)
    said = re.compile("|".join(f"({_whole(one).pattern})" for one in longest), re.IGNORECASE)
    return said.sub(lambda found: f"<<{places[longest[(found.lastindex or 1) - 1]]}>>", question)


def _mention(question: str, slot: Slot, facts: Facts) -> tuple[str, str]:
    """Return the question's words for the value of a slot, and the property that has them."""
    for said in _names_of(slot):
        if match := _whole(said).search(question):
            return match[0], ""
    name = facts.iri_of(slot.value) if slot.kind == "resource" else None
    called = facts.called_in(name, question) if name is not None else None
    return (called[1], facts.show(called[0])) if called else ("", "")


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
    full = [value] if prefix.isupper() else []
    return [*full, local] if len(local) > 2 else full


def _whole(said: str) -> re.Pattern[str]:
    left = r"(?<!\w)" if said[:1].isalnum() else ""
    right = r"(?!\w)" if said[-1:].isalnum() else ""
    return re.compile(f"{left}{re.escape(said)}{right}", re.IGNORECASE)


def _content(lesson: Lesson, facts: Facts) -> str:
    """Return numbered steps, first on names, then on features, and the values of the slots."""
    # The schema knows nothing about the names of another endpoint.
    elsewhere = services_names(lesson.skeleton.text)
    every = (_gloss(name, facts) for name in lesson.terms if name not in elsewhere)
    glosses = list(filter(None, every))[:_MOST_GLOSSES]
    steps = [f"Names: {'; '.join(glosses)}."] if glosses else []
    tokens = outline(lesson.skeleton.text).body
    words = {token.text.upper() for token in tokens if token.kind == "word"}
    if words.isdisjoint(AGGREGATES):
        words.discard("GROUP")
    if sum(token.is_word("SELECT") for token in tokens) < 2:
        words.discard("SELECT")
    features = lesson_texts()["features"].items()
    steps += [step for keywords, step in features if words.issuperset(keywords.split())]
    lines = [f"{number}. {step}" for number, step in enumerate(steps, 1)]
    return "\n".join([*lines, *filter(None, [lesson.slots])]) or "Use the skeleton as it is."


def _gloss(written: str, facts: Facts) -> str:
    term = facts.property_of(written)
    if term is None:
        return ""
    ends = [
        [facts.show(iri) for iri in iris if iri in facts.vocabulary.classes and facts.has_data(iri)]
        for iris in (term.domain, term.range)
    ]
    if ends[0] and ends[1]:
        return f"{written} from {' or '.join(ends[0][:2])} to {' or '.join(ends[1][:2])}"
    said = (term.comment or term.label).split(". ")[0].strip().rstrip(".")
    return f"{written} is {said[0].lower()}{said[1:]}" if 0 < len(said) <= 70 else ""


# -- contrast -----------------------------------------------------------------------------


def contrast_draft(
    experiences: Sequence[Experience], facts: Facts, *, skeleton: bool = True
) -> Draft | None:
    """Return what differs between a right and a wrong query for the same question."""
    right = next((e for e in experiences if e.success and not _doubt(e)), None)
    if right is None:
        return None
    try:
        lesson = Lesson(right, facts)
        prepared = prepare(right.sparql or "", prefixes=facts.namespaces)
    except QueryError:
        return None
    good, terms = lesson.query, set(terms_in(lesson.query, facts))
    bad, common = "", 0
    for experience in experiences:
        if experience.success:
            continue
        try:
            text = shortened(experience.sparql or "", facts.namespaces)
            read_query(text)
        except QueryError:
            continue
        # The nearest has most names in common; one without any teaches nothing.
        shared = len(terms & set(terms_in(text, facts)))
        if shared > common and text.split() != good.split():
            bad, common = text, shared
    if not bad:
        return None
    prologue = "".join(f"PREFIX {p}: <{iri}>\n" for p, iri in facts.namespaces.items())
    used = used_names(read_query(prologue + bad))
    missing = dict.fromkeys(n.written for n in used if facts.exists(n.iri) is False)
    lines = list(_differences(good, bad, missing, lesson.skeleton.slots if skeleton else ()))
    if not lines:
        return None
    return Draft(
        title=_contrast_title(good, bad),
        description=lesson.description if skeleton else f"Questions such as: {right.question}",
        content="\n".join(lines),
        src="contrast",
        experience=right,
        pattern=lesson.skeleton.text if skeleton else "",
        probe=lesson.skeleton.dummy if skeleton else "",
        tags=lesson.terms,
        denied=frozenset(missing),
        constants=lesson.constants | {token.text for token in tokenize(bad)},
        unproven=_matches_nothing(prepared, lesson.skeleton, facts),
    )


def _contrast_title(good: str, bad: str) -> str:
    # A wrong name is left to the text, which says that it is wrong.
    right = dict.fromkeys(map(_subject_matter, _lacking(good, bad)))
    if not right and _lacking(bad, good):
        return "What decides: to ask no more"
    named = ", ".join([*right][:_MOST_PATTERNS]) or outline(good).form
    return shortened_title(f"What decides: {named}")


def _differences(
    good: str, bad: str, missing: Collection[str], slots: Sequence[Slot]
) -> Iterator[str]:
    right, wrong = outline(good), outline(bad)
    if right.form != wrong.form:
        yield f"Right: {right.form}, not {wrong.form}."
    lacking = _lacking(good, bad)
    # To give the class of something does no harm if the class exists.
    surplus = [p for p in _lacking(bad, good) if p.predicate not in _TYPES or p.object in missing]
    if lacking:
        yield f"Right: {_written(lacking, slots)} ."
    if surplus:
        yield f"Not: {_written(surplus, slots)} ."
    shown = surplus[:_MOST_PATTERNS]
    unknown = [name for name in missing if any(name in str(pattern) for pattern in shown)]
    if unknown:
        yield f"There is no {', no '.join(unknown)}."
    if len(right.projected) != len(wrong.projected) and right.form == wrong.form == "SELECT":
        columns = " ".join(f"?{name}" for name in right.projected)
        yield f"Right: the columns {columns or '*'}, no more and no less."
    words = [{t.text.upper() for t in tokenize(query) if t.kind == "word"} for query in (good, bad)]
    for word, text in lesson_texts()["keywords"].items():
        if (word in words[0]) != (word in words[1]):
            yield f"Right: {'with' if word in words[0] else 'without'} {text}."


def _written(patterns: Sequence[TriplePattern], slots: Sequence[Slot]) -> str:
    # Slots of VALUES have several values, and equal numbers are ambiguous.
    times = Counter(slot.value for slot in slots if not slot.more)
    named = {s.value: f"<<{s.name}>>" for s in slots if not s.more and times[s.value] == 1}
    return " . ".join(
        " ".join((named.get(p.subject, p.subject), p.predicate, named.get(p.object, p.object)))
        for p in patterns[:_MOST_PATTERNS]
    )


def _lacking(query: str, other: str) -> list[TriplePattern]:
    """Return the patterns that another query lacks, whatever its variables are called."""
    have = {_plain(pattern) for pattern in read_query(other).triple_patterns()}
    return [p for p in read_query(query).triple_patterns() if _plain(p) not in have]


def _plain(pattern: TriplePattern) -> str:
    predicate = "a" if pattern.predicate in _TYPES else pattern.predicate
    ends = ["?" if end[:1] in "?$" else end for end in (pattern.subject, pattern.object)]
    return f"{ends[0]} {predicate} {ends[1]}"
