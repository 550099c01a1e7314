"""XPath's `fn:replace`, which SPARQL's REPLACE is.

XPath and XQuery Functions and Operators 3.1, sections 5.6.1 and 5.6.4. elementpath translates the
pattern; a pattern that would backtrack for ever is ended by time.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable

import regex  # type: ignore[import-untyped]

from reasoningbank.algebra.faults import ProgramError

__all__ = ["replace_all"]

#: Seconds after which a replacement is given up.
SECONDS = 10.0
_FLAGS = {"s": re.DOTALL, "m": re.MULTILINE, "i": re.IGNORECASE}
_BLANKS = re.compile(r"[\t\n\r ]+")


def replace_all(text: str, pattern: str, replacement: str, flags: str = "") -> str:
    r"""Replace every match of a pattern that does not overlap an earlier one.

    Args:
        text: What is searched.
        pattern: A regular expression of XPath: no look-around, no ``\b``; classes may be
            subtracted (``[a-z-[aeiou]]``).
        replacement: ``$1`` to ``$9`` (and more, where there are so many groups) stand for groups,
            ``$0`` for the match; ``\$`` and ``\\`` for these characters.
        flags: Of ``s`` (dot matches newlines), ``m`` (lines), ``i`` (case), ``x`` (white space in
            the pattern means nothing), ``q`` (pattern and replacement are plain text).

    Raises:
        ProgramError: The pattern, the replacement or a flag is none; the pattern matches the empty
            string; the replacement takes too long. (FORX0001 to FORX0004.)

    Examples:
        >>> replace_all("abracadabra", "a(.)", "a$1$1")
        'abbraccaddabbra'
        >>> replace_all("Welcome to ${cityName}", r"\$\{cityName\}", "Copenhagen")
        'Welcome to Copenhagen'
    """
    found = _compiled(pattern, flags)
    if found.search(""):
        hint = "use + for *, or anchor it to something"
        what = f"the pattern {pattern!r} matches the empty string"
        raise ProgramError(what, where="args.pattern", hint=hint)
    put = (lambda _: replacement) if "q" in flags else _filler(replacement, found.groups)
    try:
        return str(found.sub(put, text, timeout=SECONDS))
    except TimeoutError:
        hint = "make it simpler: no repetition inside a repetition"
        what = f"the pattern {pattern!r} takes too long"
        raise ProgramError(what, where="args.pattern", hint=hint) from None


@functools.lru_cache(maxsize=256)
def _compiled(pattern: str, flags: str) -> regex.Pattern[str]:
    # It takes a fifth of a second to load, and most programs do without.
    from elementpath.regex import RegexError, translate_pattern

    odd = sorted(set(flags) - set("smixq"))
    if odd:
        hint = "use s, m, i, x or q"
        raise ProgramError(f"there is no flag {odd[0]!r}", where="args.flags", hint=hint)
    number = 0
    for flag in set(flags) & set(_FLAGS):
        number |= _FLAGS[flag]
    try:
        if "q" in flags:
            return regex.compile(regex.escape(pattern, special_only=False), number)
        if "x" in flags:
            pattern = _without_blanks(pattern)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            return regex.compile(translate_pattern(pattern, number), number | regex.VERSION0)
    except (RegexError, regex.error, re.error, IndexError, OverflowError) as error:
        hint = "escape what is meant literally with a backslash"
        what = f"the pattern {pattern!r} is no regular expression of XPath: {error}"
        raise ProgramError(what, where="args.pattern", hint=hint) from None


def _without_blanks(pattern: str) -> str:
    """Drop white space outside of character classes.

    Examples:
        >>> _without_blanks("a b [c d] \\\\[ e")
        'ab[c d]\\\\[e'
    """
    kept: list[str] = []
    depth = at = 0
    while at < len(pattern):
        size = 2 if pattern[at] == "\\" else 1
        part = pattern[at : at + size]
        depth += (part == "[") - (part == "]")
        if depth or not _BLANKS.fullmatch(part):
            kept.append(part)
        at += size
    return "".join(kept)


def _filler(replacement: str, groups: int) -> Callable[[regex.Match[str]], str]:
    """Read a replacement string: texts and numbers of groups in turn."""
    parts: list[str | int] = []
    at = 0
    while at < len(replacement):
        sign, following = replacement[at], replacement[at + 1 : at + 2]
        if sign == "\\":
            if following not in ("\\", "$") or not following:
                _refuse(replacement, r"write a backslash as \\")
            parts.append(following)
            at += 2
        elif sign == "$":
            digits = re.match(r"[0-9]+", replacement[at + 1 :])
            if digits is None:
                _refuse(replacement, r"write a dollar sign as \$")
            else:
                # As many digits as name a group that there is, and one at least.
                size = len(digits[0])
                while size > 1 and int(digits[0][:size]) > groups:
                    size -= 1
                parts.append(int(digits[0][:size]))
                at += 1 + size
        else:
            parts.append(sign)
            at += 1

    def put(match: regex.Match[str]) -> str:
        return "".join(
            part if isinstance(part, str) else (match[part] or "" if part <= groups else "")
            for part in parts
        )

    return put


def _refuse(replacement: str, hint: str) -> None:
    what = f"the replacement {replacement!r} is none"
    raise ProgramError(what, where="args.replacement", hint=hint)
