"""Operations on strings and URIs: Str, Replace, Concat, STRUUID, ResolveURI, URI, EncodeForURI.

Replace is XPath's ``fn:replace`` (XPath and XQuery Functions and Operators 3.1, sections 5.6.1 and
5.6.4), as in SPARQL. elementpath translates the pattern.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable, Mapping
from typing import Annotated, Any
from urllib.parse import quote

import regex  # type: ignore[import-untyped]
from rdflib import Literal, URIRef

from reasoningbank.algebra.evaluation import Evaluation
from reasoningbank.algebra.operation import PlainText, String, Text, Texts, Uri, Visible, define
from reasoningbank.algebra.terms import ProgramError, literal, resolved
from reasoningbank.algebra.values import Value

#: Seconds after which a replacement is aborted.
SECONDS = 10.0
_FLAGS = {"s": re.DOTALL, "m": re.MULTILINE, "i": re.IGNORECASE}
#: White space, unless it is escaped or in a character class, which may hold another one.
_BLANKS = regex.compile(r"(\\.|\[(?:\\.|[^\]\[\\]|(?1))*\])|[\t\n\r ]+", re.DOTALL)
#: Characters that no IRI may hold, which `resolve` encodes.
_FORBIDDEN = r"\x00-\x20\x7f<>\"{}|^`\\\ud800-\udfff"
#: The parts of a replacement: text, a group's number, an escaped character.
_PARTS = re.compile(r"(?P<text>[^\\$]+)|\$(?P<digits>[0-9]*)|\\(?P<escaped>.?)", re.DOTALL)
#: A percent sign that encodes nothing.
_STRAY = re.compile("%(?![0-9A-Fa-f]{2})")


_STRINGS, _URIS = "Strings", "Making URIs"


@define("Str", "text", _STRINGS)
def string_of(run: Evaluation, input: Annotated[Text, "A term, a binding or a string"]) -> Value:
    """Gets the string value of an RDF term, without its language or datatype."""
    return Literal(str(input))


def _check_replace(given: Mapping[str, Any], visible: Visible) -> None:
    pattern, flags = given["pattern"], given.get("flags", "")
    if isinstance(pattern, str) and isinstance(flags, str):
        groups = _compiled(pattern, flags).groups
        if isinstance(put := given["replacement"], str) and "q" not in flags:
            _replacer(put, groups)


@define("Replace", "text", _STRINGS, check=_check_replace)
def replace(
    run: Evaluation,
    input: Annotated[String, "The string"],
    pattern: Annotated[PlainText, "A regular expression of XPath"],
    replacement: Annotated[PlainText, "The text that replaces each match"],
    flags: Annotated[PlainText, "Of s, m, i, x, q"] = "",
) -> Value:
    """Replaces every match of a regular expression in a string, as SPARQL's REPLACE() does.

    `$1` in the replacement is the first group; write `\\\\$` and `\\\\\\\\` for a dollar sign and a
    backslash. The string keeps its language.
    """
    made = replace_all(str(input), pattern, replacement, flags)
    return literal(made, lang=input.language)


def replace_all(text: str, pattern: str, replacement: str, flags: str = "") -> str:
    r"""Replace every match of a pattern that does not overlap an earlier one."""
    found = _compiled(pattern, flags)
    put = (lambda _: replacement) if "q" in flags else _replacer(replacement, found.groups)
    try:
        return str(found.sub(put, text, timeout=SECONDS))
    except TimeoutError:
        hint = "simplify it: no repetition inside a repetition"
        what = f"the pattern {pattern!r} takes too long"
        raise ProgramError(what, where="args.pattern", hint=hint, code="slow-pattern") from None


@functools.lru_cache(maxsize=256)
def _compiled(pattern: str, flags: str) -> regex.Pattern[str]:
    # It takes a fifth of a second to load, and most programs do without.
    from elementpath.regex import RegexError, translate_pattern

    odd = sorted(set(flags) - set("smixq"))
    if odd:
        what = f"unknown flag {odd[0]!r}"
        hint = "use s, m, i, x or q"
        raise ProgramError(what, where="args.flags", hint=hint, code="bad-flag", flag=odd[0])
    number = sum(_FLAGS[flag] for flag in set(flags) & set(_FLAGS))
    written = _BLANKS.sub(lambda found: found[1] or "", pattern) if "x" in flags else pattern
    try:
        if "q" in flags:
            found = regex.compile(regex.escape(pattern, special_only=False), number)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)
                found = regex.compile(translate_pattern(written, number), number | regex.VERSION0)
    except (RegexError, regex.error, re.error, IndexError, OverflowError) as error:
        hint = "escape literal characters with a backslash"
        what = f"the pattern {pattern!r} is not a regular expression of XPath: {error}"
        raise ProgramError(what, where="args.pattern", hint=hint, code="bad-pattern") from None
    if found.search(""):
        hint = "use + instead of *, or anchor it to something"
        what = f"the pattern {pattern!r} matches the empty string"
        raise ProgramError(what, where="args.pattern", hint=hint, code="empty-match")
    return found


def _replacer(replacement: str, groups: int) -> Callable[[regex.Match[str]], str]:
    """Parse a replacement string into texts and numbers of groups."""
    parts: list[str | int] = []
    for found in _PARTS.finditer(replacement):
        text, digits, escaped = found["text"], found["digits"], found["escaped"]
        if digits:
            # As many digits as name an existing group, and at least one.
            size = len(digits)
            while size > 1 and int(digits[:size]) > groups:
                size -= 1
            parts += [int(digits[:size]), digits[size:]]
        elif text or (escaped and escaped in "\\$"):
            parts.append(text or escaped)
        else:
            sign = found[0][0]
            what, hint = f"the replacement {replacement!r} is invalid", f"write {sign} as \\{sign}"
            raise ProgramError(what, where="args.replacement", hint=hint, code="bad-replacement")

    def put(match: regex.Match[str]) -> str:
        return "".join(
            part if isinstance(part, str) else (match[part] or "" if part <= groups else "")
            for part in parts
        )

    return put


@define("Concat", "text", _STRINGS)
def concat(run: Evaluation, inputs: Annotated[Texts, "The strings"]) -> Value:
    """Concatenates a list of strings into one.

    Useful for building URIs from several parts. The language is kept where all strings share it.
    """
    languages = {text.language for text in inputs}
    shared = languages.pop() if len(languages) == 1 else None
    return literal("".join(inputs), lang=shared)


@define("STRUUID", "text", _STRINGS)
def random_uuid(run: Evaluation) -> Value:
    """Generates a random UUID as a string."""
    rows = " ".join(map(str, run.rows))
    return Literal(run.runtime.uuid(f"{run.path} {rows}"))


def encode_for_uri(text: str) -> str:
    """Percent-encode all but the unreserved characters, as SPARQL's ENCODE_FOR_URI does."""
    return quote(text, safe="")


def resolve(base: str, relative: str) -> str:
    """Resolve a reference against a base by RFC 3986, section 5."""
    message = ""
    # Square brackets are allowed in the address of a host only.
    for forbidden in (f"[{_FORBIDDEN}]", rf"[{_FORBIDDEN}\[\]]"):
        clean = re.sub(forbidden, lambda sign: quote(sign[0], errors="replace"), relative)
        try:
            return resolved(_STRAY.sub("%25", clean), base)
        except (SyntaxError, ValueError) as error:
            message = str(error).rpartition(": ")[2]
    what = f"{relative!r} cannot be resolved against {base}: {message}"
    raise ProgramError(what, hint="encode it with EncodeForURI", code="bad-iri")


@define("ResolveURI", "uri", _URIS)
def resolve_uri(
    run: Evaluation,
    base: Annotated[Uri, "The base URL; end it with a slash to add to it"],
    relative: Annotated[Text, "The relative URI, pre-encoded"],
) -> Value:
    """Creates a new URI relative to the base URL.

    The relative URI must be pre-encoded (use EncodeForURI for names). The last segment of a base
    that does not end with a slash is replaced, as everywhere on the Web.
    """
    return URIRef(resolve(str(base), str(relative)))


@define("URI", "uri", _URIS)
def uri_of(run: Evaluation, input: Annotated[Uri, "An absolute URI"]) -> Value:
    """Makes a URI of a string, as SPARQL's URI() does.

    Use it where a string must become a URI in RDF data.
    """
    return input


@define("EncodeForURI", "text", _URIS)
def encode(run: Evaluation, input: Annotated[String, "The string"]) -> Value:
    """Percent-encodes a string for use inside a URI, as SPARQL's ENCODE_FOR_URI() does.

    Spaces, slashes, colons and all other special characters are replaced.
    """
    return Literal(encode_for_uri(str(input)))
