"""What the tables say: lemmas, senses, relations, emotions, translations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path

from .tables import TABLES, Line, read_lines

__all__ = [
    "EMOTIONS",
    "GENDERS",
    "INFLECTIONS",
    "PARTS_OF_SPEECH",
    "Affect",
    "Lemma",
    "Relation",
    "Sense",
    "Translation",
    "Words",
    "read_words",
]

#: LiLa's name of a part of speech, by its letter in the tables.
PARTS_OF_SPEECH = {
    "n": "noun",
    "v": "verb",
    "a": "adjective",
    "d": "adverb",
    "p": "pronoun",
    "t": "determiner",
    "e": "adposition",
    "c": "coordinating_conjunction",
    "s": "subordinating_conjunction",
    "i": "interjection",
    "u": "numeral",
    "x": "proper_noun",
}
GENDERS = {"m": ("masculine",), "f": ("feminine",), "mf": ("feminine", "masculine"), "": ()}
DEGREES = {"": "positive", "comp": "comparative", "sup": "superlative"}
#: The inflection classes, in Italian and in English.
INFLECTIONS = {
    "v-are": ("verbo della prima coniugazione, in -are", "verb, first conjugation, in -are"),
    "v-ere": ("verbo della seconda coniugazione, in -ere", "verb, second conjugation, in -ere"),
    "v-ire": ("verbo della terza coniugazione, in -ire", "verb, third conjugation, in -ire"),
    "v-irr": ("verbo irregolare", "irregular verb"),
    "n-o": ("nome in -o", "noun in -o"),
    "n-a": ("nome in -a", "noun in -a"),
    "n-e": ("nome in -e", "noun in -e"),
    "n-inv": ("nome invariabile", "invariable noun"),
    "n-irr": ("nome irregolare", "irregular noun"),
    "a-o": ("aggettivo a quattro forme, in -o", "adjective with four forms, in -o"),
    "a-e": ("aggettivo a due forme, in -e", "adjective with two forms, in -e"),
    "a-inv": ("aggettivo invariabile", "invariable adjective"),
}
EMOTIONS = (
    "Gioia",
    "Tristezza",
    "Paura",
    "Rabbia",
    "Disgusto",
    "Sorpresa",
    "Aspettativa",
    "Fiducia",
    "Amore",
)
#: What a line of `kinds.tsv` and the others says of its first sense and each of the rest.
_RELATIONS = {"kinds.tsv": "hyponym", "parts.tsv": "partMeronym"}
_PAIRS = {"=": "approximateSynonym", "≠": "antonym"}


@dataclass(frozen=True)
class Lemma:
    """An Italian lemma.

    Args:
        forms: Its spellings; the first is its label.
        pos: Its part of speech, as a letter.
        gender: `m`, `f` or `mf` of a noun, else `''`.
        degree: `positive`, `comparative` or `superlative` of an adjective, else `''`.
        inflection: Its inflection class, or `''`.
    """

    forms: tuple[str, ...]
    pos: str
    gender: str
    degree: str
    inflection: str

    @property
    def label(self) -> str:
        """The form that stands for it."""
        return self.forms[0]

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from all others."""
        return self.label, self.pos, self.gender


@dataclass(frozen=True)
class Sense:
    """A sense of a lemma: the lemma, its number from 1, its definition."""

    lemma: Lemma
    number: int
    definition: str


@dataclass(frozen=True)
class Relation:
    """One sense is something of another: `kind` is `hyponym`, `partMeronym`, and so on."""

    subject: Sense
    kind: str
    of: Sense


@dataclass(frozen=True)
class Affect:
    """What Sentix and ELITA say of a lemma; None and `()` where they have no entry."""

    lemma: Lemma
    polarity: Decimal | None
    emotions: tuple[str, ...]


@dataclass(frozen=True)
class Translation:
    """A dialect's word for a lemma: its spellings and its gender."""

    lemma: Lemma
    forms: tuple[str, ...]
    gender: str


@dataclass
class Words:
    """All that the tables say; `dialects` has a list of translations for each dialect."""

    lemmas: list[Lemma] = field(default_factory=list)
    senses: dict[Lemma, list[Sense]] = field(default_factory=dict)
    relations: list[Relation] = field(default_factory=list)
    affects: list[Affect] = field(default_factory=list)
    dialects: dict[str, list[Translation]] = field(default_factory=dict)


def read_words(folder: Path = TABLES, dialects: tuple[str, ...] = ()) -> Words:
    """Reads all tables of a folder.

    Args:
        folder: Where the tables lie.
        dialects: The dialects whose tables are read.

    Raises:
        TableError: A table names something that there is not, or names it twice.
    """
    words = Words()
    named: dict[str, list[Lemma]] = defaultdict(list)
    for line in read_lines(folder / "lemmas.tsv", 2, 4):
        lemma = _lemma(line)
        if lemma.key in {other.key for other in named[lemma.label]}:
            raise line.wrong(f"{'/'.join(lemma.key)} is there twice")
        words.lemmas.append(lemma)
        for name in (lemma.label, "/".join(lemma.key[:2]), "/".join(lemma.key)):
            named[name].append(lemma)
    for line in read_lines(folder / "senses.tsv", 2, 2):
        lemma = _named(line, line.cell(0), named)
        own = words.senses.setdefault(lemma, [])
        own.append(Sense(lemma, len(own) + 1, line.cell(1)))
    words.relations = list(_relations(folder, words, named))
    affects: dict[Lemma, Affect] = {}
    for line in read_lines(folder / "affect.tsv", 3, 3):
        affect = _affect(line, named)
        if affects.setdefault(affect.lemma, affect) is not affect:
            raise line.wrong(f"{line.cell(0)!r} is there twice")
    words.affects = list(affects.values())
    for dialect in dialects:
        lines = read_lines(folder / f"{dialect}.tsv", 2, 2)
        words.dialects[dialect] = [each for line in lines for each in _translations(line, named)]
    return words


def _lemma(line: Line) -> Lemma:
    forms = tuple(form.strip() for form in line.cell(0).split(","))
    pos, told = line.cell(1), line.cell(2)
    if pos not in PARTS_OF_SPEECH:
        raise line.wrong(f"no part of speech {pos!r}; there are {' '.join(PARTS_OF_SPEECH)}")
    if told not in (DEGREES if pos == "a" else GENDERS) or (pos == "n" and not told):
        raise line.wrong(f"no gender or degree {told!r} for a {PARTS_OF_SPEECH[pos]}")
    inflection = line.cell(3) or _inflection(forms[0], pos)
    if inflection and inflection not in INFLECTIONS:
        raise line.wrong(f"no inflection class {inflection!r}; there are {' '.join(INFLECTIONS)}")
    if pos == "a":
        return Lemma(forms, pos, "", DEGREES[told], inflection)
    return Lemma(forms, pos, told, "", inflection)


def _inflection(form: str, pos: str) -> str:
    if pos == "v":
        return f"v-{form[-3:]}"
    if pos not in ("n", "a"):
        return ""
    known = f"{pos}-{form[-1]}"
    return known if known in INFLECTIONS else f"{pos}-inv"


def _named(line: Line, name: str, named: Mapping[str, list[Lemma]]) -> Lemma:
    found = named.get(name, [])
    if len(found) == 1:
        return found[0]
    keys = ", ".join("/".join(lemma.key) for lemma in found)
    raise line.wrong(f"{name!r} may be {keys}" if keys else f"there is no lemma {name!r}")


def _sense(line: Line, text: str, words: Words, named: Mapping[str, list[Lemma]]) -> Sense:
    name, _, position = text.partition("#")
    senses = words.senses.get(_named(line, name, named), [])
    wanted = int(position) if position.isdigit() else 1
    if not 1 <= wanted <= len(senses):
        raise line.wrong(f"{name!r} has {len(senses)} senses, none is {text!r}")
    return senses[wanted - 1]


def _relations(folder: Path, words: Words, named: Mapping[str, list[Lemma]]) -> Iterator[Relation]:
    seen: set[Relation] = set()
    for file, kind in _RELATIONS.items():
        for line in read_lines(folder / file, 2, 2):
            of = _sense(line, line.cell(0), words, named)
            for text in line.cell(1).split(","):
                relation = Relation(_sense(line, text.strip(), words, named), kind, of)
                yield _new(line, relation, seen)
    for line in read_lines(folder / "pairs.tsv", 3, 3):
        if line.cell(0) not in _PAIRS:
            raise line.wrong(f"{line.cell(0)!r} is neither = nor ≠")
        first, second = (_sense(line, line.cell(at), words, named) for at in (1, 2))
        yield _new(line, Relation(first, _PAIRS[line.cell(0)], second), seen)


def _new(line: Line, relation: Relation, seen: set[Relation]) -> Relation:
    turned = Relation(relation.of, relation.kind, relation.subject)
    if relation in seen or turned in seen or relation.subject == relation.of:
        raise line.wrong(f"{relation.subject.lemma.label!r} is there twice, or of itself")
    seen.add(relation)
    return relation


def _affect(line: Line, named: Mapping[str, list[Lemma]]) -> Affect:
    lemma = _named(line, line.cell(0), named)
    emotions = tuple(line.cell(2).split()) if line.cell(2) != "-" else ()
    for emotion in emotions:
        if emotion not in EMOTIONS:
            raise line.wrong(f"no emotion {emotion!r}; there are {' '.join(EMOTIONS)}")
    if line.cell(1) == "-":
        return Affect(lemma, None, emotions)
    try:
        polarity = Decimal(line.cell(1))
    except InvalidOperation:
        raise line.wrong(f"{line.cell(1)!r} is no number") from None
    if not polarity.is_finite() or not -1 <= polarity <= 1:
        raise line.wrong(f"{polarity} is not between -1 and 1")
    return Affect(lemma, polarity, emotions)


def _translations(line: Line, named: Mapping[str, list[Lemma]]) -> Iterator[Translation]:
    lemma = _named(line, line.cell(0), named)
    for word in line.cell(1).split(","):
        spellings = [spelling.strip().partition(":") for spelling in word.split("/")]
        genders = {gender for _, _, gender in spellings}
        if len(genders) > 1 or not genders <= {"", "m", "f"}:
            raise line.wrong(f"the spellings of one word have one gender, not {word.strip()!r}")
        gender = genders.pop() or lemma.gender
        yield Translation(lemma, tuple(form for form, _, _ in spellings), gender)
