"""The names in a query, and the nearest existing names to one that does not exist.

Names are compared by their words (camelCase and underscores split), words by their spelling. Rare
words weigh more than common ones; labels and comments count less.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher, get_close_matches
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from reasoningbank.errors import QueryError
from reasoningbank.findings import Finding
from reasoningbank.schema.schema import NamedTerm, Schema
from reasoningbank.sparql import STANDARD_PREFIXES
from reasoningbank.sparql.terms import RDF_TYPE, SCHEMA_NAMESPACES, absolute, written
from reasoningbank.sparql.tokens import prologue, tokenize
from reasoningbank.sparql.tree import QueryTree, TriplePattern, outline

Role = Literal["class", "property", "resource"]

_SUBCLASS = STANDARD_PREFIXES["rdfs"] + "subClassOf"
#: Names below this similarity are not suggested.
LEAST_SIMILARITY = 0.5
#: Names this far below the best are left out.
WIDEST_GAP = 0.25
#: Words that say nothing about what a name means.
_EMPTY = frozenset(
    ("has", "have", "is", "of", "the", "a", "an", "get", "in", "by", "to", "with", "and", "or",
     "id", "iri", "uri", "value", "type", "number")
)  # fmt: skip
#: Names that are described, and characters of a comment.
_MOST_DESCRIBED, _COMMENT_CHARS = 12, 100
#: Words that name a label property.
_CALLED = frozenset(("label", "name", "title"))
#: How much a word found only in the label, or only in the comment, counts.
_LABEL, _COMMENT = 0.8, 0.65
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+|\d+")


def namespace_of(iri: str) -> str:
    """Return an IRI up to its local name."""
    return iri[: len(iri) - len(local_name(iri))]


def namespaces_in(schema: Schema) -> set[str]:
    """Return the namespaces of a schema's names, without those of RDF, RDFS and OWL."""
    every = {namespace_of(name) for name in (*schema.classes, *schema.properties)}
    return every.difference(SCHEMA_NAMESPACES)


def local_name(iri: str) -> str:
    """Return what follows the last ``#`` or ``/`` of an IRI."""
    return re.split(r"[#/]", iri)[-1]


def words(text: str) -> tuple[str, ...]:
    """Return the significant words of a name or sentence, in lower case and singular."""
    found = tuple(dict.fromkeys(_singular(word.lower()) for word in _WORDS.findall(text)))
    return tuple(word for word in found if word not in _EMPTY) or found


def spoken(iri: str) -> str:
    """Return the words of a local name in lower case; the name itself if it has none."""
    return " ".join(_WORDS.findall(local_name(iri))).lower() or local_name(iri)


def is_label(iri: str) -> bool:
    """Return whether a property is, by its own name, a label property."""
    return not _CALLED.isdisjoint(words(local_name(iri)))


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and word[-2] not in "sui" else word


@lru_cache(maxsize=65536)
def _alike(one: str, other: str) -> float:
    """Return the similarity of two words, 0 to 1; 0 for words that only share some letters."""
    if one == other:
        return 1.0
    if one in _CALLED and other in _CALLED:
        return 0.8
    short, long = sorted((one, other), key=len)
    if len(short) >= 3 and long.startswith(short):
        return 0.85 if len(short) >= 4 else 0.7
    if one[:1] != other[:1]:
        return 0.0
    ratio = SequenceMatcher(None, one, other).ratio()
    if ratio >= 0.8:
        return ratio
    # located, location: words of one stem
    return 0.7 if len(short) >= 6 and one[:5] == other[:5] else 0.0


def _similarity(wanted: Sequence[str], term: NamedTerm, weight: Callable[[str], float]) -> float:
    """Return how much of the wanted words a name has, and of its words are wanted, weighted."""
    name = words(local_name(term.iri))
    if not wanted or not name:
        return 0.0
    # The range names a property as well: up:organism leads to a taxon.
    targets = " ".join(local_name(target) for target in term.range if "XMLSchema" not in target)
    label, comment = words(f"{term.label} {targets}"), words(term.comment)

    def nearest(word: str, others: Iterable[str]) -> float:
        return max((_alike(word, other) for other in others), default=0.0)

    def found(word: str) -> float:
        described = max(_LABEL * nearest(word, label), _COMMENT * (word in comment))
        return max(nearest(word, name), described)

    def share(of: Sequence[str], value: Callable[[str], float]) -> float:
        return sum(weight(word) * value(word) for word in of) / sum(map(weight, of))

    return 0.75 * share(wanted, found) + 0.25 * share(name, lambda word: nearest(word, wanted))


def nearest_names(
    iri: str,
    schema: Schema,
    *,
    role: Role = "resource",
    classes: Iterable[str] = (),
    among: Collection[str] | None = None,
    most: int = 3,
) -> tuple[NamedTerm, ...]:
    """Return the classes or properties that an unknown name probably means.

    A name that differs only in spelling or namespace comes first. Where a class or property is
    wanted, the other kind follows only if it is much nearer.
    """
    every = [
        *(("class", term) for term in schema.classes.values()),
        *(("property", term) for term in schema.properties.values()),
    ]
    names = [set(words(local_name(term.iri))) for _, term in every]
    counts = Counter(word for name in names for word in name)

    def weight(word: str) -> float:
        return math.log(1 + len(names) / counts[word]) if counts[word] else rarest

    rarest = math.log(1 + len(names)) or 1.0
    wanted = words(local_name(iri))
    own = {p for name in classes for p in schema.properties_of(name)}

    def score(kind: str, term: NamedTerm) -> float:
        similarity = spelling(iri, term.iri) or _similarity(wanted, term, weight)
        similarity -= 0.2 if role not in ("resource", kind) else 0.0
        similarity -= 0.1 if schema.complete and not term.in_data else 0.0
        similarity += 0.03 if namespace_of(term.iri) == namespace_of(iri) else 0.0
        similarity += 0.2 if term.iri in own else 0.0
        return similarity + 0.005 * math.log1p(term.count or 0)

    chosen = [(score(k, t), t) for k, t in every if among is None or t.iri in among]
    ranked = sorted(chosen, key=lambda item: (-item[0], item[1].iri))
    # A class with the same spelling must not hide the properties that lead to it.
    of_role = {"class": schema.classes, "property": schema.properties}.get(role)
    best = next((value for value, t in ranked if of_role is None or t.iri in of_role), 0.0)
    least = max(LEAST_SIMILARITY, best - WIDEST_GAP)
    kept = [term for value, term in ranked if value >= least]
    # A wrong case or namespace is a typo, not another word.
    fitting = (t for t in kept if of_role is None or t.iri in of_role)
    spelt = [t for t in fitting if spelling(iri, t.iri)]
    return tuple((spelt or kept)[:most])


def spelling(one: str, other: str) -> float:
    """Return the similarity of two IRIs that differ only in spelling; 0 for others."""
    mine, theirs = local_name(one), local_name(other)
    plain = re.sub(r"[\W_]", "", mine.lower())
    if not plain or plain != re.sub(r"[\W_]", "", theirs.lower()):
        return 0.0
    near = _bare(namespace_of(one)) == _bare(namespace_of(other))
    return 1.1 if near else 1.0 if mine == theirs else 0.97


def _bare(namespace: str) -> str:
    return re.sub(r"^https?://(www\.)?|[#/]+$", "", namespace.lower())


def nearest_prefixes(prefix: str, namespaces: Mapping[str, str]) -> tuple[str, ...]:
    """Return the known prefixes that an unknown one probably means, at most three."""
    plain = prefix.lower()
    lower = {name.lower(): name for name in namespaces}
    ends: dict[str, str] = {}
    for name, space in namespaces.items():
        ends.setdefault(local_name(space.rstrip("#/")).lower().rstrip("_"), name)
    found = [names[plain] for names in (lower, ends) if plain in names]
    if len(plain) > 1:
        found += sorted(n for low, n in lower.items() if low.startswith(plain))
        found += sorted((n for low, n in lower.items() if low and plain.startswith(low)), key=len)
    found += (lower[name] for name in get_close_matches(plain, lower, cutoff=0.6))
    found += (ends[name] for name in get_close_matches(plain, ends, cutoff=0.75))
    # `uniprot:` is also short for `up:`, its first and last letters.
    if len(plain) > 3:
        found += [n for n in lower.values() if len(n) > 1 and _abbreviates(n.lower(), plain)]
    return tuple(dict.fromkeys(filter(None, found)))[:3]


def _abbreviates(short: str, long: str) -> bool:
    letters = iter(long)
    return short[0] == long[0] and len(short) < 4 and all(letter in letters for letter in short)


def describe_names(query: str, schema: Schema, prefixes: Mapping[str, str]) -> Iterator[str]:
    """Yield a line on each class and property that a query uses, at most 12.

    A name that is unknown is reported only in a namespace with known ones.
    """
    try:
        tree = outline(query)
    except QueryError:
        return
    homes = namespaces_in(schema)
    declared = {**STANDARD_PREFIXES, **prefixes, **tree.declared}
    texts = (token.text for token in tree.body if token.kind in ("iri", "name"))
    used = dict.fromkeys(name for text in texts if (name := absolute(text, declared)))
    lines = []
    for name in used:
        space, short = namespace_of(name), written(name, prefixes)
        kind = "property" if name in schema.properties else "class"
        term = schema.properties.get(name) or schema.classes.get(name)
        if term is not None and space in homes:
            lines.append(f"{short} ({kind}): {_description(term, prefixes)}")
        elif space in homes:
            lines.append(f"{short}: no class or property of this name is known")
    yield from lines[:_MOST_DESCRIBED]


def _description(term: NamedTerm, prefixes: Mapping[str, str]) -> str:
    parts = []
    if term.domain or term.range:
        start, end = (
            ", ".join(written(one, prefixes) for one in names[:3]) or "anything"
            for names in (term.domain, term.range)
        )
        parts.append(f"from {start} to {end}")
    text = " ".join((term.comment or term.label).split())
    if text:
        parts.append(text if len(text) <= _COMMENT_CHARS else f"{text[:_COMMENT_CHARS]}…")
    if term.count is not None:
        parts.append(f"{term.count} in the data")
    return "; ".join(parts) or "known"


class UsedName(NamedTuple):
    iri: str
    written: str
    role: Role
    pattern: TriplePattern

    def fields(self) -> dict[str, Any]:
        subject = self.pattern.subject
        return {"name": self.written, "iri": self.iri, "role": self.role, "subject": subject}


def used_names(query: QueryTree) -> tuple[UsedName, ...]:
    """Return the names in a query's patterns, once per role, in written order."""
    found: dict[tuple[str, Role], UsedName] = {}
    for pattern in query.triple_patterns(services=False):
        for token, role in _roles(pattern, query.declared):
            iri = absolute(token, query.declared)
            if iri is not None:
                found.setdefault((iri, role), UsedName(iri, token, role, pattern))
    return tuple(found.values())


def _roles(pattern: TriplePattern, declared: Mapping[str, str]) -> Iterator[tuple[str, Role]]:
    tokens = tokenize(pattern.predicate)
    steps = [t.text for t in tokens if t.kind in ("iri", "name") or t.text == "a"]
    for step in steps:
        yield step, "property"
    path = {absolute(step, declared) for step in steps}
    typed = RDF_TYPE in path and path <= {RDF_TYPE, _SUBCLASS}
    yield pattern.subject, "resource"
    yield pattern.object, "class" if typed and "^" not in pattern.predicate else "resource"


def wrong_prefixes(query: str, namespaces: Mapping[str, str]) -> list[Finding]:
    """Return a finding for each prefix that a query uses for a namespace not the endpoint's."""
    tokens = tokenize(query)
    declared, start = prologue(tokens)
    used = {token.text.partition(":")[0] for token in tokens[start:] if token.kind == "name"}
    return [
        Finding(
            "wrong-prefix",
            f"PREFIX {prefix}: <{space}> is wrong here, {prefix}: is <{namespaces[prefix]}>",
            hint="leave that line out",
            fields={"prefix": prefix, "declared": space, "known": namespaces[prefix]},
        )
        for prefix, space in declared.items()
        if prefix in used and prefix in namespaces and space not in namespaces.values()
    ]
