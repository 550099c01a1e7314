"""The words of a question: quoted entities and codes apart, the others stemmed in each language.

Elided articles and prepositions are undone (``dell'emozione`` → ``di`` + ``emozione``), accents
and case don't matter, and Snowball's stemmers make one of a word's forms. A question is read in
every language at once, since users mix them; no language has to be guessed.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import snowballstemmer  # type: ignore[import-untyped, unused-ignore]

__all__ = ["LANGUAGES", "Token", "folded", "masked", "read_tokens", "stem", "stream", "telling"]

#: Languages that rules are written in, and the name of Snowball's stemmer for each.
LANGUAGES: Mapping[str, str] = {"it": "italian", "en": "english"}

_QUOTED = re.compile(
    r'"([^"\n]{1,200})"|“([^”\n]{1,200})”|„([^“”\n]{1,200})[“”]|«([^»\n]{1,200})»|`([^`\n]{1,200})`'
    r"|(?<![\w'’])'([^'\n]{1,200})'(?![\w'’])|(?<![\w'’])‘([^’\n]{1,200})’(?![\w'’])"
)
#: Beginnings and ends of words, ``-oso`` or ``pre-``; numbers; codes; words.
_PARTS = re.compile(
    r"(?P<affix>(?<![\w-])-[^\W\d_]{1,15}(?![\w-])|(?<![\w-])[^\W\d_]{1,15}-(?![\w-]))"
    r"|(?P<number>(?<![\w.])\d+(?:[.,]\d+)*(?![\w]))"
    r"|(?P<code>(?<!\w)[\w]*\d(?:[\w:.-]*[\w-])?)"
    r"|(?P<word>[^\W\d_]+)"
)
_ARTICLES: Mapping[str, frozenset[str]] = {
    "it": frozenset({"il", "lo", "la", "i", "gli", "le", "l", "un", "uno", "una"}),
    "en": frozenset({"the", "a", "an", "s"}),
}
_ITALIAN_JOINED = {
    "di": "d del dello della dell dei degli delle",
    "a": "ad al allo alla all ai agli alle",
    "da": "dal dallo dalla dall dai dagli dalle",
    "in": "nel nello nella nell nei negli nelle",
    "su": "sul sullo sulla sull sui sugli sulle",
    "con": "col coi",
    "che": "ch",
    "quanto": "quant",
    "questo": "quest",
    "quello": "quell quel quei quegli",
}
_JOINED: Mapping[str, Mapping[str, str]] = {
    "it": {form: base for base, forms in _ITALIAN_JOINED.items() for form in forms.split()},
    "en": {"n": "and"},
}
#: Words that stand in most questions and tell nothing of what is asked.
_COMMON_TEXT = """
di a da in con su per tra fra e o ma che chi cui quale quali sono essere ha hanno si ne ci come
anche solo ogni tutti tutte tutto
of in on at by for to from with and or but that which who what is are be has have does do their its
as also only each every all there it them this these those any some many
"""
_COMMON = frozenset(_COMMON_TEXT.split())


@dataclass(frozen=True)
class Token:
    """A word of a question.

    Attributes:
        text: As it is written; what stands between the quotes of a quoted one.
        kind: ``word``, ``quoted``, ``affix`` (``-oso``), ``number``, ``code``, or a pack's shape.
        start: Offset of its first character, quotes included.
        end: Offset behind its last one.
    """

    text: str
    kind: str
    start: int
    end: int


def read_tokens(question: str, shapes: Mapping[str, re.Pattern[str]] | None = None) -> list[Token]:
    """Return the tokens of a question in order.

    Args:
        question: Any text.
        shapes: Kinds of codes and numbers by name, e.g. accessions; a token whose whole text
            matches one is of that kind. The first that matches counts.

    Examples:
        >>> [(t.text, t.kind) for t in read_tokens("L'iperonimo di 'cane' in -oso, P05067")]
        ... # doctest: +NORMALIZE_WHITESPACE
        [('L', 'word'), ('iperonimo', 'word'), ('di', 'word'), ('cane', 'quoted'), ('in', 'word'),
         ('-oso', 'affix'), ('P05067', 'code')]
    """
    text = unicodedata.normalize("NFC", question)
    tokens: list[Token] = []
    at = 0
    for quote in _QUOTED.finditer(text):
        tokens += _unquoted(text, at, quote.start(), shapes or {})
        inside = next(group for group in quote.groups() if group is not None)
        tokens.append(Token(inside, "quoted", quote.start(), quote.end()))
        at = quote.end()
    return tokens + _unquoted(text, at, len(text), shapes or {})


def masked(question: str, shapes: Mapping[str, re.Pattern[str]] | None = None) -> str:
    """Return a question with its entities (quoted text, affixes, codes, numbers) made alike.

    What is asked about a word or a protein does not depend on which one it is.

    Examples:
        >>> masked('Quali emozioni esprime "gioia"?'), masked("Which genes encode P05067?")
        ('Quali emozioni esprime X?', 'Which genes encode X?')
    """
    text = unicodedata.normalize("NFC", question)
    pieces: list[str] = []
    at = 0
    for token in read_tokens(text, shapes):
        if token.kind != "word":
            pieces += [text[at : token.start], "X"]
            at = token.end
    return "".join((*pieces, text[at:]))


@lru_cache(maxsize=65_536)
def folded(text: str) -> str:
    """Return a text without case and accents.

    Examples:
        >>> folded("Polarità")
        'polarita'
    """
    letters = unicodedata.normalize("NFD", text.casefold())
    return "".join(c for c in letters if not unicodedata.combining(c))


@lru_cache(maxsize=65_536)
def stem(word: str, language: str) -> str:
    """Return the stem of a word, its accents folded first.

    Examples:
        >>> stem("emozioni", "it") == stem("Emozione", "it"), stem("meanings", "en")
        (True, 'mean')
    """
    plain = folded(word)
    # The stemmers keep the word they work on in themselves.
    with _STEMMING:
        return str(_stemmer(language).stemWord(plain))


def stream(tokens: Sequence[Token], language: str) -> list[tuple[int, str]]:
    """Return the words as rules of a language see them: number of the token, and stem.

    Articles are left out, joined prepositions come as their base, other kinds of tokens as
    ``<kind>``.

    Examples:
        >>> [word for _, word in stream(read_tokens("i sensi dell'aggettivo 'bello'"), "it")]
        ['sens', 'di', 'aggett', '<quoted>']
    """
    found: list[tuple[int, str]] = []
    for number, token in enumerate(tokens):
        if token.kind != "word":
            found.append((number, f"<{token.kind}>"))
            continue
        word = folded(token.text)
        if word in _ARTICLES[language]:
            continue
        joined = _JOINED[language].get(word)
        found.append((number, joined or stem(word, language)))
    return found


def telling(question: str) -> str:
    """Return a question's words for a word index: stems without the common ones, entities whole.

    A word comes as its stem in each language, once where these agree.

    Examples:
        >>> telling('Quali sono le emozioni di "Gioia infinita"?')
        'emozion emozioni gioia infinita'
    """
    found: list[str] = []
    for token in read_tokens(question):
        if token.kind != "word":
            found.append(folded(token.text))
            continue
        word = folded(token.text)
        if word in _COMMON or any(word in words for words in _ARTICLES.values()):
            continue
        if any(word in joined for joined in _JOINED.values()):
            continue
        found += dict.fromkeys(stem(word, language) for language in LANGUAGES)
    return " ".join(found)


_STEMMING = threading.Lock()


@lru_cache(maxsize=8)
def _stemmer(language: str) -> Any:
    return snowballstemmer.stemmer(LANGUAGES[language])


def _unquoted(
    text: str, start: int, end: int, shapes: Mapping[str, re.Pattern[str]]
) -> list[Token]:
    tokens: list[Token] = []
    for part in _PARTS.finditer(text, start, end):
        kind = str(part.lastgroup)
        written = part[0].rstrip(":.-") if kind == "code" else part[0]
        if kind in ("code", "number"):
            kind = next((name for name, form in shapes.items() if form.fullmatch(written)), kind)
        tokens.append(Token(written, kind, part.start(), part.start() + len(written)))
    return tokens
