"""What a failure teaches: the mistake, its sign, and what to do instead if that is known.

No gold is read. Pitfalls of syntax and form hold for any question, so they say the same for every
task: equal items become one item with several experiences.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from reasoningbank.errors import QueryError
from reasoningbank.findings import Finding
from reasoningbank.memory.experience import Draft, Experience, shortened_title
from reasoningbank.memory.facts import Facts
from reasoningbank.memory.grounding import names_in
from reasoningbank.memory.name_pitfalls import Pitfall, known_pitfall, name_pitfall, texts
from reasoningbank.memory.skeleton import slot_names
from reasoningbank.schema import explain_empty, local_name, namespace_of, nearest_names
from reasoningbank.schema.names import nearest_prefixes, wrong_prefixes
from reasoningbank.sparql import PreparedQuery
from reasoningbank.sparql.query import prepare
from reasoningbank.sparql.tokens import Token, tokenize

#: Pitfalls taken from one attempt, the most informative first.
MOST_PITFALLS = 2
#: Causes reported of one empty result, and characters of one.
_MOST_CAUSES, _MOST_CAUSE_CHARS = 2, 200
_TITLE_CHARS = 118
_FORMS = ("SELECT", "ASK", "CONSTRUCT", "DESCRIBE")
#: So many declarations without a query, or so many equal patterns, are a runaway reply.
_MANY_PREFIXES, _MANY_PATTERNS = 5, 4
#: Causes that have pitfalls of their own.
_OF_NAMES = ("unknown-class", "unknown-property", "wrong-prefix")
_CODE = re.compile(r"[A-Za-z.].*\d|\d.*[A-Za-z.]")
_NAME = re.compile(r"[A-Z][a-z]{2,}")
_ANY = "Any question"

#: Findings of the judge that have a pitfall of their own; the first that was found counts.
_WRONG_ROWS = ("columns-missing", "columns-extra", "wrong-order")


def failure_drafts(experience: Experience, facts: Facts) -> list[Draft]:
    """Return what a failure teaches, the most informative first; nothing if that is unknown."""
    once = {pitfall.title: pitfall for pitfall in _pitfalls(experience, facts)}
    return [
        Draft(
            title=pitfall.title,
            description=pitfall.description,
            content=pitfall.content,
            src="failure",
            experience=experience,
            tags=pitfall.tags,
            denied=pitfall.denied,
            constants=pitfall.constants,
        )
        for pitfall in list(once.values())[:MOST_PITFALLS]
    ]


def _pitfalls(experience: Experience, facts: Facts) -> Iterator[Pitfall]:
    events = experience.trajectory.of("code", "tool_call")
    repeats = any(event.data.get("repeated") for event in events)
    query = experience.sparql
    if query is None or not query.strip():
        yield known_pitfall("repeated" if repeats else "spent" if events else "silent")
        return
    try:
        prepared = prepare(query, prefixes=facts.namespaces)
    except QueryError as error:
        yield from _of_syntax(query, error, facts)
        names = name_pitfall(experience.question, query, facts)
        if names is not None:
            yield names
    else:
        names = name_pitfall(experience.question, prepared, facts)
        if names is not None:
            yield names
        if wrong_prefixes(prepared, facts.namespaces):
            yield _needless_prefixes(facts)
        yield from _of_result(experience, prepared, facts, known=names is None)
    if repeats:
        yield known_pitfall("repeated")


# -- queries that do not parse ------------------------------------------------------------


def _of_syntax(query: str, error: QueryError, facts: Facts) -> Iterator[Pitfall]:
    tokens = tokenize(query)
    fix = error.fields.get("fix")
    if slot_names(query):
        yield known_pitfall("unfilled-slot")
    elif _is_prologue(tokens) or fix in ("late-prefix", "bad-prefix"):
        yield _needless_prefixes(facts)
    elif _runs_away(tokens):
        yield known_pitfall("runaway")
    elif error.code == "unknown-prefix":
        yield from _unknown_prefix(error.fields["prefix"], tokens, facts)
    elif any(t.is_word("SELECT") and _selects_a_name(tokens[n:]) for n, t in enumerate(tokens, 1)):
        yield known_pitfall("selected-name")
    elif any(a.is_word("WHERE") and b.text != "{" for a, b in pairwise(tokens)):
        yield known_pitfall("where")
    elif fix or (error.hint and error.code != "syntax-error"):
        hint = texts()["fixes"].get(fix or "", error.hint)
        advice = f"{hint[0].upper()}{hint[1:]}"
        sign = "the query cannot be parsed" if error.code == "syntax-error" else error.what
        yield Pitfall(
            shortened_title(advice),
            f"{_ANY}: the endpoint refuses what does not parse",
            f"{advice}.\nSign: {sign}.",
            tags=("syntax",),
        )


def _is_prologue(tokens: Sequence[Token]) -> bool:
    declared = sum(token.is_word("PREFIX") for token in tokens)
    return declared >= _MANY_PREFIXES and not any(token.is_word(*_FORMS) for token in tokens)


def _own_prefixes(facts: Facts) -> list[str]:
    """Return the endpoint's prefixes with their colon, the vocabulary's first."""
    names = (*facts.vocabulary.classes, *facts.vocabulary.properties)
    counts = Counter(namespace_of(name) for name in names)
    own = facts.endpoint.prefixes
    return [f"{prefix}:" for prefix in sorted(own, key=lambda p: (-counts[own[p]], p))]


def _needless_prefixes(facts: Facts) -> Pitfall:
    own = ", ".join(_own_prefixes(facts)[:5])
    declared = f" ({own}, …)" if own else ""
    return known_pitfall("needless-prefixes", declared=declared)


def _runs_away(tokens: Sequence[Token]) -> bool:
    """Return whether an unclosed query repeats its patterns, with other names and numbers."""
    opened = next((at for at, token in enumerate(tokens) if token.text == "{"), None)
    if opened is None:
        return False
    shapes: Counter[str] = Counter()
    statement: list[str] = []
    for token in tokens[opened + 1 :]:
        if token.text in (".", ";", "{", "}"):
            if len(statement) > 1:
                shapes[" ".join(statement)] += 1
            statement = []
        elif token.kind == "name":
            prefix, _, local = token.text.partition(":")
            statement.append(f"{prefix}:{re.sub(r'[0-9.]+', '0', local)}")
        else:
            statement.append("0" if token.kind == "number" else token.text)
    depth = sum((t.text == "{") - (t.text == "}") for t in tokens)
    return depth > 0 and max(shapes.values(), default=0) >= _MANY_PATTERNS


def _unknown_prefix(prefix: str, tokens: Sequence[Token], facts: Facts) -> Iterator[Pitfall]:
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
    own = ", ".join(_own_prefixes(facts)[:12])
    yield Pitfall(
        f"The prefix {prefix}: is not known: {instead}"[:_TITLE_CHARS],
        f"{_ANY} where a name with {prefix}: seems to fit",
        f"{instead[0].upper()}{instead[1:]}. There is no prefix {prefix}: here; known are {own}.\n"
        f"Sign: \"the prefix '{prefix}:' is not declared\".",
        denied=frozenset(meant),
        tags=("prefix", "syntax"),
    )


def _selects_a_name(tokens: Sequence[Token]) -> bool:
    depth = 0
    for token in tokens:
        if token.text in ("{", "}") or token.is_word("WHERE", "FROM", *_FORMS):
            return False
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.kind in ("name", "iri"):
            return True
    return False


# -- queries that ran ---------------------------------------------------------------------


def _of_result(
    experience: Experience, prepared: PreparedQuery, facts: Facts, *, known: bool
) -> Iterator[Pitfall]:
    """Yield the pitfalls of a query that ran; `known` says whether all its names exist."""
    form = experience.finding("form-mismatch")
    if form is not None:
        yield known_pitfall(f"form-{form.fields['gold']}")
        return
    if not experience.rows and known:
        yield from _empty(experience, prepared, facts)
    codes = (code for code in _WRONG_ROWS if experience.finding(code))
    yield from (known_pitfall(code) for code in islice(codes, 1))
    if experience.rows and experience.ran and prepared.form == "SELECT":
        yield from _left_out(experience, prepared, facts)


def _empty(experience: Experience, prepared: PreparedQuery, facts: Facts) -> Iterator[Pitfall]:
    findings = explain_empty(prepared, facts.vocabulary, facts.run, namespaces=facts.namespaces)
    causes = [line for one in findings if (line := _cause(one))][:_MOST_CAUSES]
    if causes:
        lines = "\n".join(f"- {line}" for line in causes)
        yield Pitfall(
            _short(f"No rows: {causes[0]}"),
            f"Questions such as: {experience.question}",
            f"A query with these parts has no rows, and why:\n{lines}",
            constants=frozenset(name for line in causes for name in names_in(line)),
            tags=("empty",),
        )


def _cause(finding: Finding) -> str:
    """Return what of a cause is worth remembering; empty if nothing is."""
    if finding.code in _OF_NAMES:
        return ""
    # That something similar has a label does not make it the one that was meant.
    line = finding.what if finding.fields.get("guess") else str(finding)
    return line if len(line) <= _MOST_CAUSE_CHARS else ""


def _left_out(experience: Experience, prepared: PreparedQuery, facts: Facts) -> Iterator[Pitfall]:
    """Yield what the question names and the query lacks."""
    said = prepared.original.casefold()
    labels = " ".join(
        found[1]
        for token in tokenize(prepared.original)
        if token.kind in ("iri", "name")
        and (name := facts.iri_of(token.text)) is not None
        and not facts.is_term(name)
        and (found := facts.called_in(name, experience.question)) is not None
    ).casefold()
    absent = [
        named
        for named in named_in(experience.question)
        if named.casefold() not in said
        and named.casefold() not in labels
        and _is_condition(named, experience.question, facts)
    ]
    if absent:
        listed = ", ".join(f'"{named}"' for named in absent[:2])
        yield Pitfall(
            _short(f"Every condition of the question goes into the query: {listed} was left out"),
            f"Questions such as: {experience.question}",
            f"The query had rows and nothing in it for {listed}: add a pattern or FILTER for each "
            "thing that the question names.\nSign: many more rows than there can be.",
            constants=frozenset(absent),
            tags=("conditions",),
        )


def _is_condition(named: str, question: str, facts: Facts) -> bool:
    """Return whether a name that a query lacks can be a condition."""
    # A capitalized word may describe the whole endpoint ("Italian words"), so it must occur in the
    # data, alone or with the next one or two words.
    if f'"{named}"' in question or _CODE.search(named):
        return True
    following = re.findall(r"[\w-]+", question.partition(named)[2])[:2]
    return facts.is_called([" ".join((named, *following[:n])) for n in range(3)])


def named_in(question: str) -> tuple[str, ...]:
    """Return what a question names: quoted texts, codes with digits, capitalized words."""
    quoted = re.findall(r'"([^"]{2,80})"', question)
    rest = re.sub(r'"[^"]*"', " ", question)
    # The first word of a sentence is capitalized anyway.
    words = re.findall(r"(?:(?<=[.?!:] )|^)\W*\w+|(\w[\w.:-]*\w)", rest)
    names = (word for word in words if _CODE.search(word) or _NAME.fullmatch(word))
    return tuple(dict.fromkeys((*quoted, *names)))


def _short(title: str) -> str:
    return title if len(title) <= _TITLE_CHARS else f"{title[:117].rsplit(' ', 1)[0]} …"
