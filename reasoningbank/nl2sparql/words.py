"""The words of a question: entities and codes separated, the others stemmed in each language.

Elided articles and prepositions are expanded (``dell'emozione`` → ``di`` + ``emozione``), accents
and case are ignored, and Snowball's stemmers unify the forms of a word. A question is read in every
language at once, since users mix them. Which language it is in is decided by its function words.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

import snowballstemmer  # type: ignore[import-untyped, unused-ignore]

from reasoningbank.corpus import Pack

#: Languages that rules are written in.
Language = Literal["it", "en"]
#: The same, and the name of Snowball's stemmer for each.
LANGUAGES: Mapping[str, str] = {"it": "italian", "en": "english"}

_QUOTED = re.compile(
    r'"([^"\n]{1,200})"|“([^”\n]{1,200})”|„([^“”\n]{1,200})[“”]|«([^»\n]{1,200})»|`([^`\n]{1,200})`'
    r"|(?<![\w'’])'([^'\n]{1,200})'(?![\w'’])|(?<![\w'’])‘([^’\n]{1,200})’(?![\w'’])"
)
#: Beginnings and ends of words, ``-oso`` or ``pre-``; numbers; codes; words.
_PARTS = re.compile(
    r"(?P<affix>(?<![\w-])-[^\W\d_]{1,15}(?![\w-])|(?<![\w-])[^\W\d_]{1,15}-(?![\w-]))"
    r"|(?P<number>(?<![\w.])\d+(?:[.,]\d+)*(?![\w]))"
    r"|(?P<code>(?<!\w)(?:(?:[A-Z]{2,9}:)?[\w]*\d(?:[\w:.-]*[\w-])?|[A-Z]+_[A-Z]+(?!\w)))"
    r"|(?P<word>[^\W\d_]+)"
)
_WORDS = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))
_ARTICLES = {language: frozenset(text.split()) for language, text in _WORDS["articles"].items()}
_JOINED = {
    language: {form: base for base, forms in table.items() for form in forms.split()}
    for language, table in _WORDS["joined"].items()
}
#: What a word index leaves out.
_SILENT = frozenset(_WORDS["common"].split()).union(*_ARTICLES.values(), *_JOINED.values())
#: Function words by language.
FUNCTION_WORDS: Mapping[str, frozenset[str]] = {
    language: frozenset(text.split()) for language, text in _WORDS["functions"].items()
}


class QuestionToken(NamedTuple):
    text: str
    kind: str
    start: int
    end: int


def read_tokens(
    question: str, shapes: Mapping[str, re.Pattern[str]] | None = None
) -> list[QuestionToken]:
    text = unicodedata.normalize("NFC", question)
    tokens: list[QuestionToken] = []
    at = 0
    for quote in (*_QUOTED.finditer(text), None):
        for part in _PARTS.finditer(text, at, quote.start() if quote else len(text)):
            kind, written = str(part.lastgroup), part[0]
            if kind == "code":
                written = written.rstrip(":.-")
            if shapes and kind in ("code", "number"):
                fits = (name for name, form in shapes.items() if form.fullmatch(written))
                kind = next(fits, kind)
            tokens.append(QuestionToken(written, kind, part.start(), part.start() + len(written)))
        if quote:
            inside = str(quote[quote.lastindex or 0])
            tokens.append(QuestionToken(inside, "quoted", quote.start(), quote.end()))
            at = quote.end()
    return tokens


def masked(question: str) -> str:
    """Return a question with its entities (quoted text, affixes, codes, numbers) replaced by X."""
    text = unicodedata.normalize("NFC", question)
    for token in reversed(read_tokens(text)):
        if token.kind != "word":
            text = f"{text[: token.start]}X{text[token.end :]}"
    return text


@lru_cache(maxsize=65_536)
def folded(text: str) -> str:
    """Return a text without case and accents: ``Polarità`` → ``polarita``."""
    letters = unicodedata.normalize("NFD", text.casefold())
    return "".join(c for c in letters if not unicodedata.combining(c))


@lru_cache(maxsize=65_536)
def stem(word: str, language: str) -> str:
    """Return the stem of a word, its accents folded first."""
    # A stemmer holds the word that it works on: threads cannot share one.
    return str(snowballstemmer.stemmer(LANGUAGES[language]).stemWord(folded(word)))


def stream(tokens: Sequence[QuestionToken], language: str) -> list[tuple[int, str]]:
    """Return the words as a language's rules see them: index of the token, and stem."""
    found: list[tuple[int, str]] = []
    for number, token in enumerate(tokens):
        word = folded(token.text)
        if token.kind != "word":
            found.append((number, f"<{token.kind}>"))
        elif word not in _ARTICLES[language]:
            found.append((number, _JOINED[language].get(word) or stem(word, language)))
    return found


def content_words(question: str) -> str:
    """Return a question's words for a word index: stems without common words, entities whole."""
    found: list[str] = []
    for token in read_tokens(question):
        word = folded(token.text)
        if token.kind != "word":
            found.append(word)
        elif word not in _SILENT:
            found += dict.fromkeys(stem(word, language) for language in LANGUAGES)
    return " ".join(found)


def _counts(tokens: Sequence[QuestionToken]) -> dict[str, int]:
    """Return the number of function words of each language that no other one has."""
    words = [folded(token.text) for token in tokens if token.kind == "word"]
    both = frozenset.intersection(*FUNCTION_WORDS.values())
    return {
        language: sum(word in own - both for word in words)
        for language, own in FUNCTION_WORDS.items()
    }


def spoken_languages(tokens: Sequence[QuestionToken]) -> frozenset[str]:
    """Return the languages that a question may be in; all for a mixed or short question."""
    counts = _counts(tokens)
    most = max(counts.values())
    return frozenset(one for one, count in counts.items() if count > 0.4 * most or most < 2)


def language_of(question: str, default: str = "en") -> str:
    """Return the language of most of a question's function words."""
    counts = _counts(read_tokens(question))
    best = [language for language, count in counts.items() if count == max(counts.values())]
    return best[0] if len(best) == 1 else default


def asked_language(question: str, pack: Pack) -> str:
    """Return the language of a question; the pack's first one if that is unclear."""
    return language_of(question, default=next(iter(pack.languages), "en"))
