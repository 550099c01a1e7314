"""Pitfalls of invented names: which do not exist, and what to use instead."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from reasoningbank.errors import EndpointError, QueryError
from reasoningbank.findings import Finding
from reasoningbank.memory.experience import shortened_title
from reasoningbank.memory.facts import Facts
from reasoningbank.memory.grounding import names_in
from reasoningbank.schema import is_label, lint, local_name, words
from reasoningbank.sparql import PreparedQuery, iri, prepare
from reasoningbank.sparql.terms import RDF_TYPE, absolute
from reasoningbank.sparql.tokens import tokenize
from reasoningbank.sparql.tree import outline, read_query

#: Corrections in one item.
_MOST_NAMES = 3
#: Names that are checked of a text that does not parse.
_MOST_READ = 12
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


class Pitfall(NamedTuple):
    """A mistake: what to do instead, when it applies, and the sign of it."""

    title: str
    description: str
    content: str
    denied: frozenset[str] = frozenset()
    constants: frozenset[str] = frozenset()
    tags: tuple[str, ...] = ()


@cache
def texts() -> Mapping[str, Any]:
    """Return the content of `pitfalls.toml`."""
    return tomllib.loads(Path(__file__).with_name("pitfalls.toml").read_text(encoding="utf-8"))


def known_pitfall(name: str, **values: str) -> Pitfall:
    """Return a pitfall that holds for any question, with values in its content."""
    found = {**texts()[name], "tags": tuple(texts()[name]["tags"])}
    for key, value in values.items():
        found["content"] = found["content"].replace(f"{{{key}}}", value)
    return Pitfall(**found)


def name_pitfall(question: str, query: PreparedQuery | str, facts: Facts) -> Pitfall | None:
    """Return the pitfall of the names in a query that do not exist, if any."""
    queries = [query] if isinstance(query, PreparedQuery) else list(_pieces(query, facts))
    found: dict[str, _Correction] = {}
    counting: Pitfall | None = None
    for prepared in queries:
        for finding in _unknown(prepared, facts):
            if finding.fields.get("counting"):
                counting = known_pitfall("counting")
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
        shortened_title(title),
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
        naming = _name_of(target, facts)
        if naming and asked - meant and asked - meant <= _NAMING:
            return f"{instead}/{facts.show(naming)}"
        return instead
    return ""


def _name_of(kind: str, facts: Facts) -> str:
    """Return the best label property of a class; empty if there is none."""
    has = facts.vocabulary.properties_of(kind)
    best = (p for p in facts.endpoint.label_properties if p in has)
    return next(best, "") or next((p for p in has if is_label(p)), "")


def _holder(path: str, facts: Facts) -> str:
    """Return the class that has a property as a note, if there is only one."""
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
    """Yield a small query for each name of a text that does not parse."""
    for name, is_class in list(written_names(query, facts))[:_MOST_READ]:
        text = f"SELECT * {{ ?s a {name} }}" if is_class else f"SELECT * {{ ?s {name} ?o }}"
        try:
            yield prepare(text, prefixes=facts.namespaces)
        except QueryError:
            continue


def written_names(query: str, facts: Facts) -> dict[tuple[str, bool], None]:
    """Return the names in a text meant as classes or properties, and whether as a class."""
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
