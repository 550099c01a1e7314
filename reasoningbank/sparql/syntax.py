"""Syntax errors: where the mistake is, what is wrong, and the likely fix."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path

from reasoningbank.errors import QueryError
from reasoningbank.sparql.tokens import AGGREGATES, FORMS, Token, position, tokenize

#: Longer queries take seconds to parse; split long VALUES lists over several queries.
MOST_CHARS = 50_000

#: Also after a backslash: parsers differ in whether that is an escape.
_ESCAPE = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")
#: DSPy's field markers, which small models misplace.
FIELD_MARKER = re.compile(r"\[\[ ## \w+ ## \]\]")
_PAIRS = {"(": ")", "{": "}", "[": "]"}
#: Built-in functions of SPARQL 1.1 (section 17.4), then those that SPARQL 1.2 adds.
_FUNCTIONS = """
ABS BNODE BOUND CEIL COALESCE CONCAT CONTAINS DATATYPE DAY ENCODE_FOR_URI FLOOR HOURS IF IRI
ISBLANK ISIRI ISLITERAL ISNUMERIC ISURI LANG LANGMATCHES LCASE MD5 MINUTES MONTH NOW RAND
REGEX REPLACE ROUND SAMETERM SECONDS SHA1 SHA256 SHA384 SHA512 STR STRAFTER STRBEFORE STRDT
STRENDS STRLANG STRLEN STRSTARTS STRUUID SUBSTR TIMEZONE TZ UCASE URI UUID YEAR
TRIPLE ISTRIPLE SUBJECT PREDICATE OBJECT LANGDIR HASLANG HASLANGDIR STRLANGDIR
"""
#: Words that parentheses follow without being functions.
_BEFORE_PARENTHESES = """
FILTER BIND SELECT DISTINCT REDUCED BY HAVING ASC DESC IN NOT VALUES AS WHERE EXISTS A SEPARATOR
"""
_MODIFIERS = ("GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "VALUES")
_FILE = Path(__file__).with_name("mistakes.toml")
#: ``said`` by parsers, and ``mistakes`` by their sign among the tokens.
_KNOWN = tomllib.loads(_FILE.read_text("utf-8"))
#: Words that the grammar knows, besides functions and aggregates.
_KEYWORDS = frozenset(
    f"""{_FUNCTIONS} {_BEFORE_PARENTHESES} {" ".join((*FORMS, *AGGREGATES, *_MODIFIERS))}
    PREFIX BASE VERSION FROM NAMED OPTIONAL GRAPH UNION MINUS SERVICE SILENT TRUE FALSE UNDEF
    """.split()
)
#: A string up to a backslash that escapes nothing.
_BAD_ESCAPE = re.compile(r"(?:[^\\]|\\[tbnrf\\\"'uU])*?(\\[^tbnrf\\\"'uU])", re.DOTALL)


def empty_query() -> QueryError:
    """Return the error of a query without words."""
    hint = "write a SELECT, ASK, CONSTRUCT or DESCRIBE"
    return QueryError("the query is empty", hint=hint, code="empty-query")


def refuse_unreadable(query: str) -> None:
    """Refuse a text that is empty, too long, or hides characters."""
    if not isinstance(query, str):
        raise QueryError(f"{query!r:.60} is not a query", hint="give its text", code="no-query")
    if not query.strip():
        raise empty_query()
    if any("\ud800" <= character <= "\udfff" for character in query):
        what = "the query contains half of a character"
        raise QueryError(what, hint="write it as UTF-8 text", code="bad-character")
    refuse_escaped_ascii(query)
    if (chars := len(query)) > MOST_CHARS:
        what = f"the query has {chars:,} characters, more than {MOST_CHARS:,}"
        hint = "split it, or put fewer VALUES into it"
        raise QueryError(what, hint=hint, code="too-long", chars=chars, most=MOST_CHARS)


def refuse_escaped_ascii(text: str) -> None:
    r"""Refuse a query or update that writes visible ASCII or line ends as codepoint escapes."""
    for found in _ESCAPE.finditer(text):
        character = chr(min(int(found[1] or found[2], 16), 0x80))
        # Other control characters mean nothing to the grammar, and are invisible unescaped.
        if character in "\n\r" or " " <= character < "\x7f":
            line, column = position(text, found.start())
            what = f"line {line}, column {column}: {found[0]} hides the character {character!r}"
            hint = 'write the character itself; in a string \\" and \\n'
            raise QueryError(what, hint=hint, code="escaped-ascii")


def syntax_error(
    query: str,
    offset: int,
    what: str = "",
    *,
    said: str = "",
    hint: str = "",
    code: str = "syntax-error",
    **fields: object,
) -> QueryError:
    """Build the error for where parsing stopped; what is not given is worked out."""
    tokens = tokenize(query)
    # pyparsing's and Oxigraph's lists of what they expected help nobody.
    expected = "xpected" in said or "(at char" in said
    if expected and not what:
        # Parsers report the furthest position they reached, which is past the mistake.
        found = next((t for t in reversed(tokens) if t.start < offset), None)
    else:
        found = next((t for t in tokens if t.end > offset), None)
    at = min(offset, len(query)) if found is None else found.start
    line, column = position(query, at)
    fix = ""
    if not what:
        known = next((one for one in _KNOWN["said"] if one["words"] in said), None)
        if known and not hint:
            fix, hint = known["code"], known["fix"]
        if known and expected:
            what = known["what"]
        elif said:
            near = next((i for i, t in enumerate(tokens) if t.start >= at), len(tokens))
            around = tokens[max(0, near - 4) : near + 2]
            words = [t.text if len(t.text) <= 40 else t.text[:40] + "…" for t in around]
            what = f"the query cannot be parsed near {' '.join(words)!r}" if expected else said
        elif found is not None:
            what = f"unexpected {found.text[:60]!r}"
    if not hint:
        fix, hint = next(_fixes(query, tokens, at))
    return QueryError(
        what,
        where=f"line {line}, column {column}",
        hint=hint,
        code=code,
        **{"line": line, "column": column, "fix": fix, **fields},
    )


def _place(query: str, token: Token) -> str:
    line, column = position(query, token.start)
    return f"at line {line}, column {column}"


def _fixes(query: str, tokens: Sequence[Token], offset: int) -> Iterator[tuple[str, str]]:
    """Yield the code and the text of fixes, the most likely first."""
    if "```" in query:
        yield "fence", "send the query alone, without ``` fences"
    if marker := FIELD_MARKER.search(query):
        yield "marker", f"send the query alone: remove {marker[0]} and the text after it"
    yield from _odd_character(query, tokens)
    yield from _start(tokens, offset)
    yield from _brackets(query, tokens)
    yield from _aggregate(tokens)
    yield from _mistakes(tokens)
    yield from _function(tokens)
    yield from _order(tokens)
    yield from _words(query, tokens)
    yield (
        "",
        "check the text just before it: triples end with ' .', "
        "FILTER and BIND take parentheses, blocks take { }",
    )


def _mistakes(tokens: Sequence[Token]) -> Iterator[tuple[str, str]]:
    """Yield the fixes of `mistakes.toml` whose sign is in the query."""
    text = " ".join(
        '""' if t.kind == "string" else t.text.upper() if t.kind == "word" else t.text
        for t in tokens
    )
    for one in _KNOWN["mistakes"]:
        if found := re.search(rf"(?<!\S)(?:{one['sign']})", text):
            yield one["code"], one["fix"].format(*found.groups())


def _odd_character(query: str, tokens: Sequence[Token]) -> Iterator[tuple[str, str]]:
    odd = next((t for t in tokens if t.kind == "other"), None)
    if odd is None:
        return
    where = _place(query, odd)
    if odd.text[0] in "\"'":
        hint = f"close the string that opens {where}; write quotes inside it as \\{odd.text[0]}"
        yield "open-string", hint
    elif odd.text in "“”‘’„":
        yield "curly-quotes", f"use straight quotes instead of {odd.text} {where}"
    elif odd.text == "\\":
        yield "backslash", f"remove the backslash {where}"
    else:
        yield "odd-character", f"remove the character {odd.text!r} {where}"


def _start(tokens: Sequence[Token], offset: int) -> Iterator[tuple[str, str]]:
    first = next((t for t in tokens if t.is_word(*FORMS)), None)
    if first is None:
        yield "no-form", "begin the query with SELECT, ASK, CONSTRUCT or DESCRIBE"
    elif not tokens[0].is_word("PREFIX", "BASE", "VERSION", *FORMS):
        yield "text-before", f"send the query alone: remove the text before {first.text.upper()}"
    elif any(t.is_word("PREFIX") and t.start > first.start for t in tokens):
        yield "late-prefix", "put all PREFIX lines before the query form"
    elif tokens[0].is_word("PREFIX") and offset < first.start:
        hint = "write each prefix as PREFIX name: <namespace>, without a final period"
        yield "bad-prefix", hint


def _brackets(query: str, tokens: Sequence[Token]) -> Iterator[tuple[str, str]]:
    opened: list[Token] = []
    for token in tokens:
        if token.text in _PAIRS:
            opened.append(token)
        elif token.text in _PAIRS.values():
            if not opened or _PAIRS[opened[-1].text] != token.text:
                yield "extra-bracket", f"the {token.text!r} {_place(query, token)} closes nothing"
                return
            opened.pop()
    if opened:
        last = opened[-1]
        hint = f"add the {_PAIRS[last.text]!r} that closes the {last.text!r} {_place(query, last)}"
        yield "open-bracket", hint


def _aggregate(tokens: Sequence[Token]) -> Iterator[tuple[str, str]]:
    depth = 0
    in_head = False
    for token in tokens:
        if token.is_word("SELECT"):
            in_head, depth = True, 0
        elif token.text == "{" or token.is_word("WHERE", "FROM"):
            in_head = False
        elif in_head and depth == 0 and token.is_word(*AGGREGATES):
            hint = f"write ({token.text.upper()}(...) AS ?name) with the outer parentheses"
            yield "aggregate-parentheses", hint
        depth += (token.text == "(") - (token.text == ")")


def _function(tokens: Sequence[Token]) -> Iterator[tuple[str, str]]:
    functions = _FUNCTIONS.split()
    known = (*functions, *AGGREGATES, *_BEFORE_PARENTHESES.split())
    for token, after in pairwise(tokens):
        name = token.text.upper()
        if token.kind == "word" and after.text == "(" and name not in known:
            near = get_close_matches(name, functions, n=1, cutoff=0.8)
            meant = f"did you mean {near[0]}? " if near else ""
            yield (
                "unknown-function",
                f"{meant}SPARQL has no function {token.text}; for texts it has CONTAINS, "
                "STRSTARTS, STRENDS, REGEX, REPLACE, SUBSTR, STRLEN, LCASE, UCASE, CONCAT",
            )


def _words(query: str, tokens: Sequence[Token]) -> Iterator[tuple[str, str]]:
    for token in tokens:
        if token.kind == "word" and token.text.upper() not in _KEYWORDS:
            what = f"{token.text} {_place(query, token)} is no term"
            yield "bare-word", f'{what}: write ?{token.text}, prefix:{token.text} or "{token.text}"'
        if token.kind == "string" and (odd := _BAD_ESCAPE.match(token.text)):
            what = f"{odd[1]} {_place(query, token)} is no escape of a string"
            yield "string-escape", f"{what}: write \\{odd[1]} for a backslash"


def _order(tokens: Sequence[Token]) -> Iterator[tuple[str, str]]:
    depth, last = 0, -1
    for token in tokens:
        depth += (token.text == "{") - (token.text == "}")
        if depth == 0 and token.is_word(*_MODIFIERS):
            rank = _MODIFIERS.index(token.text.upper())
            # LIMIT and OFFSET may come in either order.
            if rank < last and not (rank == 3 and last == 4):
                hint = "put the clauses in the order GROUP BY, HAVING, ORDER BY, LIMIT, OFFSET"
                yield "clause-order", hint
            last = max(rank, last)
