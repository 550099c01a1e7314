"""The nearest real names to one that does not exist: what the writer probably meant.

Names are compared by the words in them (camelCase and underscores undone), words by their
spelling, and rare words weigh more than common ones; labels and comments count for less.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from functools import lru_cache
from typing import Literal

from reasoningbank.tools.contents import NamedTerm
from reasoningbank.tools.vocabulary import Vocabulary

__all__ = [
    "Role",
    "calls",
    "local_name",
    "namespace_of",
    "nearest_names",
    "nearest_prefixes",
    "words",
]

Role = Literal["class", "property", "resource"]

#: Names below this likeness are not worth telling.
LEAST_LIKENESS = 0.5
#: Names this much below the best are left out.
WIDEST_GAP = 0.25
#: Words that say nothing about what a name means.
_EMPTY = frozenset(
    ("has", "have", "is", "of", "the", "a", "an", "get", "in", "by", "to", "with", "and", "or",
     "id", "iri", "uri", "value", "type", "number")
)  # fmt: skip
#: Words for what a thing is called.
_CALLED = frozenset(("label", "name", "title"))
#: How much a word found only in the label, or only in the comment, counts.
_LABEL, _COMMENT = 0.8, 0.65
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def namespace_of(iri: str) -> str:
    """Return an IRI up to its local name.

    Examples:
        >>> namespace_of("http://e/core#Tree"), namespace_of("http://e/core/Tree")
        ('http://e/core#', 'http://e/core/')
    """
    return iri[: len(iri) - len(local_name(iri))]


def local_name(iri: str) -> str:
    """Return what follows the last ``#`` or ``/`` of an IRI.

    Examples:
        >>> local_name("http://e/core#Tree")
        'Tree'
    """
    return re.split(r"[#/]", iri)[-1]


def words(text: str) -> tuple[str, ...]:
    """Return the telling words of a name or sentence, in lower case and singular.

    Examples:
        >>> words("hasProteinNames"), words("Disease_Annotation"), words("hasEC")
        (('protein', 'name'), ('disease', 'annotation'), ('ec',))
    """
    found = tuple(dict.fromkeys(_singular(word.lower()) for word in _WORDS.findall(text)))
    return tuple(word for word in found if word not in _EMPTY) or found


def calls(iri: str) -> bool:
    """Say whether a property tells what a thing is called, by its own name.

    Examples:
        >>> calls("http://e/scientificName"), calls("http://e/prefLabel"), calls("http://e/mass")
        (True, True, False)
    """
    return not _CALLED.isdisjoint(words(local_name(iri)))


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and word[-2] not in "sui" else word


@lru_cache(maxsize=65536)
def _alike(one: str, other: str) -> float:
    """Say how alike two words are, 0 to 1; 0 for words that only share some letters."""
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


@dataclass(frozen=True)
class _Index:
    """The words of all names, and how telling each is."""

    weights: Mapping[str, float]
    rarest: float

    @classmethod
    def of(cls, terms: Iterable[NamedTerm]) -> _Index:
        names = [set(words(local_name(term.iri))) for term in terms]
        counts = Counter(word for name in names for word in name)
        rarest = math.log(1 + len(names))
        return cls({w: math.log(1 + len(names) / n) for w, n in counts.items()}, rarest or 1.0)

    def weight(self, word: str) -> float:
        return self.weights.get(word, self.rarest)

    def likeness(self, wanted: tuple[str, ...], term: NamedTerm) -> float:
        name = words(local_name(term.iri))
        if not wanted or not name:
            return 0.0
        # What a property leads to names it as well: a taxon is reached by up:organism.
        targets = " ".join(local_name(target) for target in term.range if "XMLSchema" not in target)
        label, comment = words(f"{term.label} {targets}"), words(term.comment)

        def found(word: str) -> float:
            return max(
                max((_alike(word, other) for other in name), default=0.0),
                _LABEL * max((_alike(word, other) for other in label), default=0.0),
                _COMMENT * (word in comment),
            )

        total = sum(self.weight(word) for word in wanted)
        recall = sum(self.weight(word) * found(word) for word in wanted) / total
        mine = sum(self.weight(word) for word in name)
        precision = (
            sum(self.weight(w) * max(_alike(w, other) for other in wanted) for w in name) / mine
        )
        return 0.75 * recall + 0.25 * precision


def nearest_names(
    iri: str,
    vocabulary: Vocabulary,
    *,
    role: Role = "resource",
    classes: Iterable[str] = (),
    among: Collection[str] | None = None,
    most: int = 3,
) -> tuple[NamedTerm, ...]:
    """Return the classes or properties that an unknown name was probably meant to be.

    A name that differs only in case, in ``http`` or ``https``, in ``#`` or ``/``, or in its
    namespace comes first. Where a class or property is wanted, the other kind follows only if
    it is much nearer.

    Args:
        iri: The unknown IRI.
        vocabulary: The names there are.
        role: How the name is used in the query.
        classes: The classes its subject has, whose properties are preferred.
        among: The only names to choose from; all where None.
        most: Most names to return.

    Examples:
        >>> core = "http://e/core/"
        >>> names = Vocabulary.of_terms(
        ...     [core + "Protein"], [core + "mass", core + "organism", core + "fullName"]
        ... )
        >>> [t.iri for t in nearest_names(core + "hasMass", names, role="property")]
        ['http://e/core/mass']
        >>> [t.iri for t in nearest_names("http://e/core#protein", names, role="class")]
        ['http://e/core/Protein']
        >>> nearest_names(core + "xyz", names, role="property")
        ()
    """
    kinds: dict[str, Mapping[str, NamedTerm]] = {
        "class": vocabulary.classes,
        "property": vocabulary.properties,
    }
    every = [(kind, term) for kind, terms in kinds.items() for term in terms.values()]
    index = _Index.of(term for _, term in every)
    wanted = words(local_name(iri))
    homely = {p for name in classes for p in vocabulary.properties_of(name)}

    def score(kind: str, term: NamedTerm) -> float:
        likeness = spelling(iri, term.iri) or index.likeness(wanted, term)
        likeness -= 0.2 if role in kinds and kind != role else 0.0
        likeness -= 0.1 if vocabulary.complete and not term.in_data else 0.0
        likeness += 0.03 if namespace_of(term.iri) == namespace_of(iri) else 0.0
        likeness += 0.2 if term.iri in homely else 0.0
        return likeness + 0.005 * math.log1p(term.count or 0)

    chosen = [(k, t) for k, t in every if among is None or t.iri in among]
    ranked = sorted(((score(k, t), t) for k, t in chosen), key=lambda item: (-item[0], item[1].iri))
    # A class that is spelt so must not hide the properties that lead to it.
    fitting = [value for value, t in ranked if role not in kinds or t.iri in kinds[role]]
    least = max(LEAST_LIKENESS, (fitting[0] if fitting else 0.0) - WIDEST_GAP)
    kept = [term for value, term in ranked if value >= least]
    spelt = [
        t for t in kept if spelling(iri, t.iri) and (role not in kinds or t.iri in kinds[role])
    ]
    if spelt:
        # Nobody who misspelt the case or the namespace meant another word.
        kept = spelt
    return tuple(kept[:most])


def spelling(one: str, other: str) -> float:
    """Return how sure it is that two IRIs differ only as people write them; 0 where not."""
    mine, theirs = local_name(one), local_name(other)
    plain = re.sub(r"[\W_]", "", mine.lower())
    if not plain or plain != re.sub(r"[\W_]", "", theirs.lower()):
        return 0.0
    near = _bare(namespace_of(one)) == _bare(namespace_of(other))
    return 1.1 if near else 1.0 if mine == theirs else 0.97


def _bare(namespace: str) -> str:
    return re.sub(r"^https?://(www\.)?|[#/]+$", "", namespace.lower())


def nearest_prefixes(
    prefix: str, namespaces: Mapping[str, str], *, namespace: str = "", most: int = 3
) -> tuple[str, ...]:
    """Return the known prefixes that an unknown one was probably meant to be.

    Args:
        prefix: The unknown prefix, without its colon.
        namespaces: The known ones.
        namespace: The namespace that the query declares for it, where it does.
        most: Most prefixes to return.

    Examples:
        >>> known = {"up": "http://e/core/", "uniprotkb": "http://e/uniprot/", "go": "http://g/"}
        >>> nearest_prefixes("uniprot", known)
        ('uniprotkb', 'up')
        >>> nearest_prefixes("core", known), nearest_prefixes("GO", known)
        (('up',), ('go',))
    """
    found: list[str] = []
    if namespace:
        found += [name for name, space in namespaces.items() if _bare(space) == _bare(namespace)]
    lower = {name.lower(): name for name in namespaces}
    plain = prefix.lower()
    ends: dict[str, str] = {}
    for name, space in namespaces.items():
        ends.setdefault(local_name(space.rstrip("#/")).lower().rstrip("_"), name)
    if plain in lower:
        found.append(lower[plain])
    if plain in ends:
        found.append(ends[plain])
    if len(plain) > 1:
        found += sorted(n for low, n in lower.items() if low.startswith(plain))
        found += sorted((n for low, n in lower.items() if low and plain.startswith(low)), key=len)
    found += (lower[name] for name in get_close_matches(plain, lower, n=most, cutoff=0.6))
    found += (ends[name] for name in get_close_matches(plain, ends, n=most, cutoff=0.75))
    # `uniprot:` is also short for `up:`, its first and last letters.
    if len(plain) > 3:
        found += [n for n in lower.values() if len(n) > 1 and _abbreviates(n.lower(), plain)]
    return tuple(dict.fromkeys(name for name in found if name))[:most]


def _abbreviates(short: str, long: str) -> bool:
    letters = iter(long)
    return short[0] == long[0] and len(short) < 4 and all(letter in letters for letter in short)
