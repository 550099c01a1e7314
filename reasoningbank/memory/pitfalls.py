"""What a failure teaches: the mistake, its sign, and what to do instead if that is known.

No gold is read. Pitfalls of syntax and form hold for any question, so they say the same for every
task: equal items become one item with several experiences.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import NamedTuple

from reasoningbank.errors import EndpointError, QueryError
from reasoningbank.findings import Finding
from reasoningbank.memory.experience import Draft, Experience, lesson_texts, shortened_title
from reasoningbank.memory.grounding import Facts, names_in
from reasoningbank.memory.skeleton import slot_names
from reasoningbank.schema import (
    explain_empty,
    is_label,
    lint,
    local_name,
    namespace_of,
    nearest_names,
    words,
)
from reasoningbank.schema.names import nearest_prefixes, wrong_prefixes
from reasoningbank.sparql import PreparedQuery, iri, prepare
from reasoningbank.sparql.terms import RDF_TYPE, absolute, last_part
from reasoningbank.sparql.tokens import Token, tokenize
from reasoningbank.sparql.tree import outline, read_query

#: Pitfalls taken from one attempt, the most informative first.
MOST_PITFALLS = 2
#: Causes reported of one empty result, and characters of one.
_MOST_CAUSES, _MOST_CAUSE_CHARS = 2, 200
#: Corrections in one item, and names that are checked of a text that does not parse.
_MOST_NAMES, _MOST_READ = 3, 12
_TITLE_CHARS = 118
_FORMS = ("SELECT", "ASK", "CONSTRUCT", "DESCRIBE")
#: So many declarations without a query, or so many equal patterns, are a runaway reply.
_MANY_PREFIXES, _MANY_PATTERNS = 5, 4
#: Causes that have pitfalls of their own.
_OF_NAMES = ("unknown-class", "unknown-property", "wrong-prefix")
#: Findings of the judge that have a pitfall of their own; the first that was found counts.
_WRONG_ROWS = ("columns-missing", "columns-extra", "wrong-order")
_CODE = re.compile(r"[A-Za-z.].*\d|\d.*[A-Za-z.]")
_NAME = re.compile(r"[A-Z][a-z]{2,}")
#: Share of a class's instances that a property must lead to, to be the usual way there.
_USUAL = 0.25
#: Words of many names, which alone do not say what is meant.
_VAGUE = frozenset(
    ("class", "concept", "data", "entity", "entry", "identifier", "label", "name", "object",
     "predicate", "property", "reference", "resource", "subject", "title", "type", "value")
)  # fmt: skip
#: Words for labels.
_NAMING = frozenset({"label", "name", "symbol", "title"})
#: Names that point from the thing to what holds it.
_INVERSE = re.compile(r"is\w*(?:Of|By|In|_of|_by|_in)")


def failure_drafts(experience: Experience, facts: Facts) -> list[Draft]:
    """Return what a failure teaches, the most informative first; nothing if that is unknown."""
    once = {draft.title: draft for draft in _drafts(experience, facts)}
    return list(once.values())[:MOST_PITFALLS]


def _drafts(experience: Experience, facts: Facts) -> Iterator[Draft]:
    events = experience.trajectory.of("code", "tool_call")
    repeats = any(event.data.get("repeated") for event in events)
    query = experience.sparql
    if query is None or not query.strip():
        yield _known(experience, "repeated" if repeats else "spent" if events else "silent")
        return
    try:
        prepared = prepare(query, prefixes=facts.namespaces)
    except QueryError as error:
        yield from _of_syntax(experience, query, error, facts)
        if names := _of_names(experience, list(_pieces(query, facts)), facts):
            yield names
    else:
        if names := _of_names(experience, [prepared], facts):
            yield names
        if wrong_prefixes(prepared.original or prepared.text, facts.namespaces):
            yield _needless_prefixes(experience, facts)
        yield from _of_result(experience, prepared, facts, known=names is None)
    if repeats:
        yield _known(experience, "repeated")


def _short(title: str) -> str:
    return title if len(title) <= _TITLE_CHARS else f"{title[:117].rsplit(' ', 1)[0]} …"


def _known(
    experience: Experience, name: str, cut: Callable[[str], str] = _short, **values: str
) -> Draft:
    """Return a pitfall of the table, with values in its texts."""
    table = lesson_texts()[name]
    title, description, content = (
        re.sub(r"\{(\w+)\}", lambda found: values[found[1]], table[part])
        for part in ("title", "description", "content")
    )
    tags = tuple(table["tags"])
    return Draft(cut(title), description, content, "failure", experience, tags=tags)


# -- queries that do not parse ------------------------------------------------------------


def _of_syntax(
    experience: Experience, query: str, error: QueryError, facts: Facts
) -> Iterator[Draft]:
    tokens = tokenize(query)
    fix = error.fields.get("fix")
    declared = sum(token.is_word("PREFIX") for token in tokens)
    prologue = declared >= _MANY_PREFIXES and not any(token.is_word(*_FORMS) for token in tokens)
    if slot_names(query):
        yield _known(experience, "unfilled-slot")
    elif prologue or fix in ("late-prefix", "bad-prefix"):
        yield _needless_prefixes(experience, facts)
    elif _runs_away(tokens):
        yield _known(experience, "runaway")
    elif error.code == "unknown-prefix":
        yield from _unknown_prefix(experience, error.fields["prefix"], tokens, facts)
    elif any(t.is_word("SELECT") and _selects_a_name(tokens[n:]) for n, t in enumerate(tokens, 1)):
        yield _known(experience, "selected-name")
    elif any(a.is_word("WHERE") and b.text != "{" for a, b in pairwise(tokens)):
        yield _known(experience, "where")
    elif fix or (error.hint and error.code != "syntax-error"):
        hint = lesson_texts()["fixes"].get(fix or "", error.hint)
        advice = f"{hint[0].upper()}{hint[1:]}"
        sign = "the query cannot be parsed" if error.code == "syntax-error" else error.what
        yield _known(experience, "syntax", shortened_title, advice=advice, sign=sign)


def _own_prefixes(facts: Facts) -> list[str]:
    """Return the endpoint's prefixes with their colon, the vocabulary's first."""
    counts = Counter(map(namespace_of, facts.terms))
    own = facts.endpoint.prefixes
    return [f"{prefix}:" for prefix in sorted(own, key=lambda p: (-counts[own[p]], p))]


def _needless_prefixes(experience: Experience, facts: Facts) -> Draft:
    own = ", ".join(_own_prefixes(facts)[:5])
    return _known(experience, "needless-prefixes", declared=f" ({own}, …)" if own else "")


def _runs_away(tokens: Sequence[Token]) -> bool:
    """Return whether an unclosed query repeats its patterns, with other names and numbers."""
    opened = next((at for at, token in enumerate(tokens) if token.text == "{"), len(tokens))
    shapes: Counter[str] = Counter()
    statement: list[str] = []
    for token in tokens[opened + 1 :]:
        if token.text in (".", ";", "{", "}"):
            shapes[" ".join(statement)] += len(statement) > 1
            statement = []
        elif token.kind == "name":
            prefix, _, local = token.text.partition(":")
            statement.append(f"{prefix}:{re.sub(r'[0-9.]+', '0', local)}")
        else:
            statement.append("0" if token.kind == "number" else token.text)
    depth = sum((t.text == "{") - (t.text == "}") for t in tokens)
    return depth > 0 and max(shapes.values(), default=0) >= _MANY_PATTERNS


def _unknown_prefix(
    experience: Experience, prefix: str, tokens: Sequence[Token], facts: Facts
) -> Iterator[Draft]:
    written = [t.text for t in tokens if t.kind == "name" and t.text.startswith(f"{prefix}:")]
    meant: dict[str, str] = {}
    for text in dict.fromkeys(written):
        local = text.partition(":")[2]
        for term in nearest_names(f"urn:/{local}", facts.vocabulary) if local else ():
            if local_name(term.iri).lower() == local.lower():
                meant.setdefault(text, facts.show(term.iri))
    near = nearest_prefixes(prefix, facts.endpoint.prefixes)
    if not meant and not near:
        return
    instead = "; ".join(f"write {right}, not {wrong}" for wrong, right in list(meant.items())[:3])
    instead = instead or f"write {' or '.join(f'{name}:' for name in near)}"
    draft = _known(
        experience,
        "unknown-prefix",
        lambda title: title[:_TITLE_CHARS],
        prefix=prefix,
        instead=instead,
        advice=f"{instead[0].upper()}{instead[1:]}",
        own=", ".join(_own_prefixes(facts)[:12]),
    )
    yield replace(draft, denied=frozenset(meant))


def _selects_a_name(tokens: Sequence[Token]) -> bool:
    depth = 0
    for token in tokens:
        if token.text in ("{", "}") or token.is_word("WHERE", "FROM", *_FORMS):
            return False
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.kind in ("name", "iri"):
            return True
    return False


# -- names that do not exist --------------------------------------------------------------


class _Correction(NamedTuple):
    """A name that does not exist, and what to write instead."""

    name: str
    kind: str
    subject: str
    instead: str
    note: str


def _of_names(
    experience: Experience, queries: Sequence[PreparedQuery], facts: Facts
) -> Draft | None:
    """Return the pitfall of the names in queries that do not exist, if any."""
    found: dict[str, _Correction] = {}
    counting: Draft | None = None
    for prepared in queries:
        try:
            typed = _typed(prepared, facts)
            findings = lint(typed, facts.vocabulary, facts.run, namespaces=facts.namespaces)
        except (QueryError, EndpointError):
            continue
        for finding in findings:
            if finding.code not in ("unknown-class", "unknown-property"):
                continue
            if finding.fields.get("counting"):
                counting = _known(experience, "counting")
            if correction := _correction(finding, facts):
                found.setdefault(correction.name, correction)
    # A path says more than a name.
    ranked = sorted(found.values(), key=lambda f: "/" not in f.instead)[:_MOST_NAMES]
    if not ranked:
        return counting
    lines = [
        f"For {f.subject}: {f.instead}{f.note}. There is no {f.kind} {f.name}." for f in ranked
    ]
    draft = _known(
        experience,
        "names",
        shortened_title,
        advice="; ".join(f"{f.subject}: {f.instead}" for f in ranked),
        subjects=", ".join(dict.fromkeys(one.subject for one in ranked)),
        question=experience.question,
        lines="\n".join(lines),
    )
    tags = tuple(dict.fromkeys(name for f in ranked for name in names_in(f.instead)))
    return replace(draft, denied=frozenset(one.name for one in ranked), tags=tags)


def _correction(finding: Finding, facts: Facts) -> _Correction | None:
    name, notes = finding.fields["name"], finding.fields.get("notes", {})
    local = last_part(name.strip("<>"))
    for offer in finding.fields.get("replacements", ()):
        if sure := _sure(local, offer, facts):
            note = f" ({notes[offer]})" if notes.get(offer) and sure == offer else ""
            # The class that has the property, if there is only one.
            term = facts.property_of(sure)
            holders = [c for c in (term.domain if term else ()) if facts.has_data(c)]
            if not note and len(holders) == 1:
                note = f" (of a {facts.show(holders[0])})"
            return _Correction(name, finding.fields["role"], " ".join(words(local)), sure, note)
    return None


def _sure(wanted: str, instead: str, facts: Facts) -> str:
    """Return a similar name, or a path to it, if it means what was wanted; else nothing."""
    # A wrong hint does harm for as long as it is remembered, so similar spelling is not enough: the
    # words of one name must be among those of the other, or the property must be the usual way to
    # a class whose words are among them.
    steps = names_in(instead)
    last = facts.iri_of(steps[-1]) if steps else None
    if last is None:
        return ""
    asked, offered = set(words(wanted)), set(words(local_name(last)))
    if offered == asked or (asked <= offered and len(asked) > 1):
        return instead
    if offered <= asked:
        return "" if offered <= _VAGUE else instead
    term = facts.vocabulary.properties.get(last)
    if term is None or _INVERSE.fullmatch(wanted):
        return ""
    for target in term.range:
        kind = facts.vocabulary.classes.get(target)
        meant = set(words(local_name(target)))
        if kind is None or not meant <= asked:
            continue
        # A property from a class to itself relates its instances.
        if target in term.domain or _USUAL * (kind.count or 0) > (term.count or 0):
            return ""
        if asked - meant and asked - meant <= _NAMING:
            has = facts.vocabulary.properties_of(target)
            best = (p for p in facts.endpoint.label_properties if p in has)
            naming = next(best, "") or next((p for p in has if is_label(p)), "")
            return f"{instead}/{facts.show(naming)}" if naming else instead
        return instead
    return ""


def _typed(prepared: PreparedQuery, facts: Facts) -> PreparedQuery:
    """Return a query with the known classes of its subjects, from which paths can be found."""
    query = read_query(prepared.text)
    declared = outline(prepared.text).declared
    if query.where is None:
        return prepared
    kinds: dict[str, str] = {}
    patterns = [p for clause in query.where.clauses for p in clause.patterns]
    for pattern in patterns:
        name = absolute(pattern.predicate, declared)
        term = facts.vocabulary.properties.get(name or "")
        if term is not None and len(term.domain) == 1:
            kinds.setdefault(pattern.subject, term.domain[0])
        resource = absolute(pattern.subject, declared)
        if resource is not None and pattern.subject not in kinds:
            kinds[pattern.subject] = facts.kind_of(resource)
    for pattern in patterns:
        if absolute(pattern.predicate, declared) == RDF_TYPE:
            kinds.pop(pattern.subject, None)
    said = "".join(f" {subject} a {iri(kind)} ." for subject, kind in kinds.items() if kind)
    at = query.where.start + 1
    return prepare(f"{prepared.text[:at]}{said}{prepared.text[at:]}") if said else prepared


def _pieces(query: str, facts: Facts) -> Iterator[PreparedQuery]:
    """Yield a small query for each class and property named in a text that does not parse."""
    texts: dict[str, None] = {}
    for before, token in pairwise(tokenize(query)):
        if token.kind != "name" or token.text.endswith(":") or before.is_word("PREFIX"):
            continue
        name = facts.iri_of(token.text)
        if name is None or name == RDF_TYPE or name[: -len(local_name(name))] not in facts.homes:
            continue
        typed = before.text == "a" or absolute(before.text, facts.namespaces) == RDF_TYPE
        texts[f"?s a {token.text}" if typed else f"?s {token.text} ?o"] = None
    for text in list(texts)[:_MOST_READ]:
        try:
            yield prepare(f"SELECT * {{ {text} }}", prefixes=facts.namespaces)
        except QueryError:
            continue


# -- queries that ran ---------------------------------------------------------------------


def _of_result(
    experience: Experience, prepared: PreparedQuery, facts: Facts, *, known: bool
) -> Iterator[Draft]:
    """Yield the pitfalls of a query that ran; `known` says whether all its names exist."""
    form = experience.finding("form-mismatch")
    if form is not None:
        yield _known(experience, f"form-{form.fields['gold']}")
        return
    if not experience.rows and known:
        yield from _empty(experience, prepared, facts)
    codes = (code for code in _WRONG_ROWS if experience.finding(code))
    yield from (_known(experience, code) for code in islice(codes, 1))
    if experience.rows and experience.ran and prepared.form == "SELECT":
        yield from _left_out(experience, prepared, facts)


def _empty(experience: Experience, prepared: PreparedQuery, facts: Facts) -> Iterator[Draft]:
    findings = explain_empty(prepared, facts.vocabulary, facts.run, namespaces=facts.namespaces)
    # That something similar has a label does not make it the one that was meant.
    lines = [
        finding.what if finding.fields.get("guess") else str(finding)
        for finding in findings
        if finding.code not in _OF_NAMES
    ]
    causes = [line for line in lines if 0 < len(line) <= _MOST_CAUSE_CHARS][:_MOST_CAUSES]
    if causes:
        listed, asked = "\n".join(f"- {line}" for line in causes), experience.question
        draft = _known(experience, "empty", question=asked, cause=causes[0], causes=listed)
        yield replace(draft, constants=frozenset(n for line in causes for n in names_in(line)))


def _left_out(experience: Experience, prepared: PreparedQuery, facts: Facts) -> Iterator[Draft]:
    """Yield what the question names and the query lacks."""
    question = experience.question
    called = (
        facts.called_in(name, question)
        for name in facts.names(prepared.original).values()
        if not facts.is_term(name)
    )
    said = " ".join([prepared.original, *(found[1] for found in called if found)]).casefold()
    absent = [
        named
        for named in _named_in(question)
        if named.casefold() not in said and _is_condition(named, question, facts)
    ]
    if absent:
        missing = ", ".join(f'"{named}"' for named in absent[:2])
        draft = _known(experience, "left-out", question=question, missing=missing)
        yield replace(draft, constants=frozenset(absent))


def _is_condition(named: str, question: str, facts: Facts) -> bool:
    """Return whether a name that a query lacks can be a condition."""
    # A capitalized word may describe the whole endpoint ("Italian words"), so it must occur in the
    # data, alone or with the next one or two words.
    if f'"{named}"' in question or _CODE.search(named):
        return True
    following = re.findall(r"[\w-]+", question.partition(named)[2])[:2]
    return facts.is_called([" ".join((named, *following[:n])) for n in range(3)])


def _named_in(question: str) -> tuple[str, ...]:
    """Return what a question names: quoted texts, codes with digits, capitalized words."""
    quoted = re.findall(r'"([^"]{2,80})"', question)
    rest = re.sub(r'"[^"]*"', " ", question)
    # The first word of a sentence is capitalized anyway.
    found = re.findall(r"(?:(?<=[.?!:] )|^)\W*\w+|(\w[\w.:-]*\w)", rest)
    names = (word for word in found if _CODE.search(word) or _NAME.fullmatch(word))
    return tuple(dict.fromkeys((*quoted, *names)))
