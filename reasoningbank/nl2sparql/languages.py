"""Which of the languages of the rules a question is in, told by its function words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reasoningbank.corpus import Pack
from reasoningbank.nl2sparql.words import Token, folded, read_tokens

__all__ = ["FUNCTION_WORDS", "asked_language", "language_of", "spoken_languages"]

_FUNCTION_TEXT = {
    "it": """
di a da in con su per tra fra e o ma se non che chi cui quale qual quali quanto quanti quanta quante
come dove sono essere ha hanno avere ci si ne mi tutti tutte ogni ognuno ciascuno piu meno suo loro
questo quello cosa del dello della dei degli delle il lo la gli le un una nel nella
""",
    "en": """
of in on at by for to from with and or but not if than as that which who whose what how where is are
was be been do does did has have had it its their they there all every each any some more most less
least can could you me please the a an
""",
}
#: Function words by language.
FUNCTION_WORDS: Mapping[str, frozenset[str]] = {
    language: frozenset(text.split()) for language, text in _FUNCTION_TEXT.items()
}
#: Words of both languages show neither.
_BOTH = frozenset.intersection(*FUNCTION_WORDS.values())


def spoken_languages(tokens: Sequence[Token]) -> frozenset[str]:
    """Return the languages that a question may be in.

    Words such as *all* are of one language in a question of that language, so a language that
    another one clearly outweighs is left out; a mixed question, or a short one, is of all.
    """
    counts = _counts(tokens)
    most = max(counts.values())
    return frozenset(one for one, count in counts.items() if count > 0.4 * most or most < 2)


def language_of(question: str, default: str = "en") -> str:
    """Return the language that most of a question's function words are of.

    Args:
        question: A question.
        default: What is returned where none outweighs the others.

    Examples:
        >>> language_of("Quali sono le emozioni di 'the end'?"), language_of("Which are the verbs?")
        ('it', 'en')
        >>> language_of("emozioni", default="it")
        'it'
    """
    counts = _counts(read_tokens(question))
    most = max(counts.values())
    best = [language for language, count in counts.items() if count == most]
    return best[0] if len(best) == 1 else default


def asked_language(question: str, pack: Pack) -> str:
    """Return the language that a pack's question is asked in; where unsure, the pack's first."""
    return language_of(question, default=next(iter(pack.languages), "en"))


def _counts(tokens: Sequence[Token]) -> dict[str, int]:
    words = [folded(token.text) for token in tokens if token.kind == "word"]
    return {
        language: sum(word in function and word not in _BOTH for word in words)
        for language, function in FUNCTION_WORDS.items()
    }
