"""Pitfalls of invented names: which do not exist, and what stands for them in the schema."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from reasoningbank.errors import EndpointError, QueryError
from reasoningbank.findings import Finding
from reasoningbank.memory.distillation.facts import Facts
from reasoningbank.memory.distillation.grounding import names_in
from reasoningbank.memory.distillation.syntax_pitfalls import Pitfall
from reasoningbank.schema import is_label, lint, local_name, words
from reasoningbank.sparql import PreparedQuery, iri, prepare
from reasoningbank.sparql.terms import RDF_TYPE, absolute
from reasoningbank.sparql.tokens import tokenize
from reasoningbank.sparql.tree import outline, read_query

__all__ = ["name_pitfall", "written_names"]

#: Corrections told in one item.
_MOST_NAMES = 3
#: Names of a text that does not parse that are looked at.
_MOST_READ = 12
_TITLE_CHARS = 110
#: Part of a class's instances that a property must lead to, to be the usual way there.
_USUAL = 0.25
#: Words that many names have: alone they do not say what is meant.
_VAGUE = frozenset(
    ("class", "concept", "data", "entity", "entry", "identifier", "label", "name", "object",
     "predicate", "property", "reference", "resource", "subject", "title", "type", "value")
)  # fmt: skip
#: Words for what a thing is called by.
_NAMING = frozenset({"label", "name", "symbol", "title"})
#: Names that point from the thing to what holds it.
_INVERSE = re.compile(r"is\w*(?:Of|By|In|_of|_by|_in)")


COUNTING = Pitfall(
    "Numbers of things are counted: (COUNT(?x) AS ?n) with GROUP BY",
    'Questions for "how many" or "the number of"',
    "Write (COUNT(?x) AS ?n) in SELECT and GROUP BY every other column; the data hold the things, "
    "not their number.\nSign: a property made up for a number or count, and no rows.",
    tags=("aggregate",),
)


def name_pitfall(question: str, query: PreparedQuery | str, facts: Facts) -> Pitfall | None:
    """Return the pitfall of the names in a query that do not exist; None where it has none.

    Only names for which schema or data offer another are told: what exists nowhere teaches
    nothing by itself.

    Args:
        question: The question.
        query: The query, prepared, or as it was written where it does not parse.
        facts: What is known of the endpoint's names.
    """
    queries = [query] if isinstance(query, PreparedQuery) else list(_pieces(query, facts))
    found: dict[str, _Correction] = {}
    counting: Pitfall | None = None
    for prepared in queries:
        for finding in _unknown(prepared, facts):
            if finding.fields.get("counting"):
                counting = COUNTING
            correction = _correction(finding, facts)
            if correction is not None:
                found.setdefault(correction.name, correction)
    # A path says more than a name.
    ranked = sorted(found.values(), key=lambda f: "/" not in f.instead)[:_MOST_NAMES]
    if not ranked:
        return counting
    subjects = list(dict.fromkeys(finding.subject for finding in ranked))
    lines = [
        f"For {f.subject}: {f.instead}{f.note}. There is no {f.kind} {f.name}." for f in ranked
    ]
    title = "; ".join(f"{f.subject}: {f.instead}" for f in ranked)
    return Pitfall(
        title if len(title) <= _TITLE_CHARS else f"{title[: _TITLE_CHARS - 1]}…",
        f"Questions about {', '.join(subjects)}, such as: {question}",
        "\n".join(lines) + "\nSign: no rows, whatever the rest of the query is.",
        denied=frozenset(finding.name for finding in ranked),
        tags=tuple(dict.fromkeys(name for f in ranked for name in names_in(f.instead))),
    )


class _Correction(NamedTuple):
    """A name that does not exist, and what to write instead."""

    name: str
    kind: str
    subject: str
    instead: str
    note: str


def _correction(finding: Finding, facts: Facts) -> _Correction | None:
    name, notes = finding.fields["name"], finding.fields.get("notes", {})
    for offer in finding.fields.get("replacements", ()):
        sure = _sure(_local(name), offer, facts)
        if sure:
            note = f" ({notes[offer]})" if notes.get(offer) and sure == offer else ""
            subject = " ".join(words(_local(name)))
            kind = finding.fields["role"]
            return _Correction(name, kind, subject, sure, note or _holder(sure, facts))
    return None


def _sure(wanted: str, instead: str, facts: Facts) -> str:
    """Return a near name, or a path from it, if it means what was wanted; else nothing.

    A wrong hint does harm for as long as it is remembered, so to sound alike is not enough. The
    words of the one must be among those of the other; or the property leads to a class whose
    words are among them, and is the usual way there.
    """
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
        # What leads from a class to itself tells how its instances are related.
        if target in term.domain or _USUAL * (kind.count or 0) > (term.count or 0):
            return ""
        naming = _name_of(target, facts)
        if naming and asked - meant and asked - meant <= _NAMING:
            return f"{instead}/{facts.show(naming)}"
        return instead
    return ""


def _name_of(kind: str, facts: Facts) -> str:
    """Return the property that tells what instances of a class are called, the best there is."""
    has = facts.vocabulary.properties_of(kind)
    best = (p for p in facts.endpoint.label_properties if p in has)
    return next(best, "") or next((p for p in has if is_label(p)), "")


def _holder(path: str, facts: Facts) -> str:
    """Say of what a property is that stands alone, where the schema says so."""
    name = facts.iri_of(path)
    term = facts.vocabulary.properties.get(name or "")
    holders = [
        facts.show(c) for c in (term.domain if term is not None else ()) if facts.has_data(c)
    ]
    return f" (of a {holders[0]})" if len(holders) == 1 else ""


def _unknown(prepared: PreparedQuery, facts: Facts) -> list[Finding]:
    try:
        prepared = _typed(prepared, facts)
        found = lint(prepared, facts.vocabulary, facts.run, namespaces=facts.namespaces)
    except (QueryError, EndpointError):
        return []
    return [one for one in found if one.code in ("unknown-class", "unknown-property")]


def _typed(prepared: PreparedQuery, facts: Facts) -> PreparedQuery:
    """Return a query that also says of what class its subjects are, where that can be told.

    A property that exists tells the class of what has it; a resource has one in the data. With
    its class known, the path from there to what was wanted can be found.
    """
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
    """Yield a small query for each name of a text that does not parse."""
    for name, is_class in list(written_names(query, facts))[:_MOST_READ]:
        text = f"SELECT * {{ ?s a {name} }}" if is_class else f"SELECT * {{ ?s {name} ?o }}"
        try:
            yield prepare(text, prefixes=facts.namespaces)
        except QueryError:
            continue


def written_names(query: str, facts: Facts) -> dict[tuple[str, bool], None]:
    """Return the names in a text that are meant as a class or property, and whether as a class.

    Only namespaces of classes and properties are looked at: elsewhere a name may be a resource.
    """
    found: dict[tuple[str, bool], None] = {}
    for before, token in pairwise(tokenize(query)):
        if token.kind != "name" or token.text.endswith(":") or before.is_word("PREFIX"):
            continue
        name = facts.iri_of(token.text)
        if name is None or name == RDF_TYPE or name[: -len(local_name(name))] not in facts.homes:
            continue
        typed = before.text == "a" or absolute(before.text, facts.namespaces) == RDF_TYPE
        found[token.text, typed] = None
    return found


def _local(name: str) -> str:
    return name.strip("<>").rpartition(":")[2].rpartition("/")[2].rpartition("#")[2]
