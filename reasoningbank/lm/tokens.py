"""Token counts without a model: an estimate that is the same on every machine.

Prompt budgets depend on it, so it does not change with a library's version. Text is split as the
tokenizers of the GPT-2 family do before merging (words with the space before them, single digits,
runs of signs), and each piece costs its average in the local model's vocabulary (Qwen2.5);
`benchmarks/token_counts.py` measures it.
"""

from __future__ import annotations

import math
import re

_PIECE = re.compile(
    r"(?P<word>[^\r\n\w]?[^\W\d_]+)|(?P<digit>\d)|(?P<signs> ?(?:[^\s\w]|_)+[\r\n]*)|\s*[\r\n]+|\s+"
)
#: The words of a name in camel case, and runs of capitals.
_CAMEL = re.compile(r"[^\W\d_A-Z]+|[A-Z]+(?![^\W\d_A-Z])|[A-Z][^\W\d_A-Z]+")
_VOWEL = re.compile(r"[aeiouy]", re.IGNORECASE)


def count_tokens(text: str) -> int:
    """Return the estimated number of tokens of a text in the local model's vocabulary.

    It was fitted to English, Italian and SPARQL; ``docs/context.md`` gives its error.
    """
    return math.ceil(estimate_tokens(text) - 1e-9)


def estimate_tokens(text: str) -> float:
    """Return the estimate before rounding; those of whole lines add up."""
    return sum(_cost(piece) for piece in _PIECE.finditer(text))


def _cost(piece: re.Match[str]) -> float:
    if word := piece["word"]:
        lead = "" if word[0].isalpha() else word[0]
        letters = word[len(lead) :]
        parts = _CAMEL.findall(letters) or [letters]
        # A whole word behind a space is in the vocabulary more often than a part of a name.
        first = _letters(parts[0], whole=True) if lead == " " else _sign(lead, letters)
        return first + sum(map(_letters, parts[1:] if lead == " " else parts))
    if signs := piece["signs"]:
        return max(1.0, 0.3 * len(signs.strip(" \r\n")))
    return 1.0


def _sign(sign: str, letters: str) -> float:
    if not sign or len(letters) < 2:
        return 0.0
    # A colon is mostly a token of its own; a dot or a slash often begins a longer one.
    return 0.9 if sign == ":" else min(0.7, 0.2 + 0.05 * len(letters))


def _letters(word: str, *, whole: bool = False) -> float:
    capital, base, each = (0.22, 0.55, 0.065) if whole else (0.27, 0.75, 0.075)
    if word.isupper() and len(word) > 1:
        return max(1.1, capital * len(word))
    # English words of some length seldom end in these, Italian ones nearly always.
    romance = 0.8 if whole and len(word) > 4 and word[-1] in "aio" else 0.0
    # rdfs, xsd: what has no vowel is no word.
    spelt = 0.0 if _VOWEL.search(word) else 0.5 * len(word)
    # Letters beyond ASCII are two bytes or more, and seldom part of a longer token.
    foreign = 0.6 * sum(not letter.isascii() for letter in word)
    return max(1.0, base + each * len(word), spelt) + romance + foreign
